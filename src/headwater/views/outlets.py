"""An outlet: which items it shows, and where it is served."""

from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.reading.outlets import Outlet
from headwater.store.reading.selection import Selection
from headwater.views.shape import Json, Shape, Time, with_example
from headwater.wording import iso

EXTENSIONS: Final = {"rss": "xml", "atom": "atom", "json": "json"}
FORMATS: Final = tuple(EXTENSIONS)
MASKED_TOKEN: Final = "***"  # noqa: S105 - what is shown instead of one


class SelectionView(BaseModel):
    """Which items an outlet shows: all conditions must hold, an empty one does not count."""

    source_ids: list[int]
    folders: list[str]
    types: list[str]
    search: str | None
    since: Time | None
    until: Time | None
    status: str | None
    by_pipelines: bool = Field(description="Only what pipelines publish to it.")
    has: list[str] = Field(description="With one of these results.")
    tags: list[str]
    min_score: float | None


class OutletView(BaseModel):
    """A feed that Headwater publishes."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: outlet_json(_EXAMPLE))

    name: str
    title: str
    description: str | None
    item_limit: int
    hub_url: str | None
    private: bool = Field(description="Its address must carry the token, as ?token=…")
    token: str | None = Field(description="Shown as *** unless the key has the scope admin.")
    shows: SelectionView
    content: list[str] = Field(
        description="What it publishes of an item, the first that there is: original, a result, template."
    )
    template: str | None = Field(description="Makes the body, where the content says template.")
    digest: str | None = Field(description="The digest whose issues it publishes; null: items.")
    own_media: bool = Field(description="Archived images and files are read from here.")
    paths: dict[str, str] = Field(
        description="Where it is served, by format; with its token if you may see it."
    )
    created_at: Time
    updated_at: Time


def path_of(name: str, format: str) -> str:
    """Where an outlet is served, and what its file is called."""
    return f"{name}.{EXTENSIONS[format]}"


selection_json: Shape[Selection] = Shape(
    SelectionView,
    source_ids=lambda selection: list(selection.source_ids),
    folders=lambda selection: list(selection.folders),
    types=lambda selection: list(selection.types),
    since=lambda selection: iso(selection.since),
    until=lambda selection: iso(selection.until),
    by_pipelines=lambda selection: selection.outlet is not None,
    has=lambda selection: list(selection.has),
    tags=lambda selection: list(selection.tags),
)
_outlet_json: Shape[Outlet] = Shape(
    OutletView,
    ("token", "paths"),
    private=lambda outlet: outlet.token is not None,
    shows=lambda outlet: selection_json(outlet.selection),
    content=lambda outlet: list(outlet.content),
)


def outlet_json(outlet: Outlet, *, with_token: bool = False) -> Json:
    """`with_token`: for an owner of the installation; others see that there is one."""
    query = f"?token={outlet.token}" if outlet.token and with_token else ""
    return _outlet_json(
        outlet,
        token=MASKED_TOKEN if outlet.token and not with_token else outlet.token,
        paths={format: f"/outlets/{path_of(outlet.name, format)}{query}" for format in FORMATS},
    )


_EXAMPLE: Outlet = Outlet(
    "news", "News", Selection(folders=("News",)), created_at=1_767_225_600.0, updated_at=1_767_225_600.0
)
