"""`/api/outlets…`: the feeds that Headwater publishes."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Request, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.collectors.types import find_type
from headwater.publish.outlets import check_outlet
from headwater.services.text_templates import LONGEST_TEMPLATE
from headwater.store.core.bulk import storable
from headwater.store.core.versions import check_outlet_version, version_of
from headwater.store.people.keys import ApiKey
from headwater.store.reading.listing import refuse_unknown_folders
from headwater.store.reading.outlets import (
    MOST_ITEMS,
    ORIGINAL,
    Outlet,
    add_outlet,
    change_outlet,
    get_outlet,
    list_outlets,
    remove_outlet,
)
from headwater.store.reading.selection import Selection
from headwater.views.outlets import OutletView, outlet_json
from headwater.views.shape import Json
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import seconds_of
from headwater.web.context import InContext
from headwater.web.etags import (
    NOT_MODIFIED,
    IfMatch,
    IfNoneMatch,
    answer_tagged,
    expected_version,
)
from headwater.web.previewing import preview_outlet

router = APIRouter(prefix="/outlets", tags=["outlets"])

OutletName = Annotated[str, Path(pattern="^[a-z0-9-]{1,63}$", description="The outlet's name.")]
ShortText = Annotated[str, Field(max_length=2_000)]
PREVIEWED = 5  # entries


_TEMPLATE = "A Jinja template over item, text and results; what it makes is sanitised."
BodyTemplate = Annotated[str, Field(max_length=LONGEST_TEMPLATE)]
Content = Annotated[
    list[Annotated[str, Field(max_length=100)]],
    Field(
        min_length=1,
        max_length=20,
        description="What to publish of an item, the first that there is: original, full_text, summary,"
        " translation:zh, transcript, analysis, template. Without original, items that have none are left out.",
    ),
]


class Shown(BaseModel):
    """Which items an outlet shows: all conditions must hold, an empty one does not count, any value of one will do."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"folders": ["News"], "search": "feeds"}}
    )

    source_ids: list[Annotated[int, Field(ge=1, le=2**63 - 1)]] = Field(default=[], max_length=1_000)
    folders: list[ShortText] = Field(default=[], max_length=1_000)
    types: list[ShortText] = Field(default=[], max_length=100)
    search: ShortText | None = None
    since: AwareDatetime | None = Field(default=None, description="Not older than this.")
    until: AwareDatetime | None = Field(default=None, description="Older than this.")
    status: Annotated[str, Field(max_length=20)] | None = Field(default=None, description="NEW or ANALYZED.")
    by_pipelines: bool = Field(default=False, description="Only what pipelines publish to it.")
    has: list[ShortText] = Field(
        default=[], max_length=20, description="With one of these results: summary, translation:zh, …"
    )
    tags: list[ShortText] = Field(default=[], max_length=100, description="With one of these tags.")
    min_score: float | None = Field(
        default=None, allow_inf_nan=False, description="Scored this high or higher."
    )


class Outlets(BaseModel):
    outlets: list[OutletView]


class NewOutlet(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"name": "news", "title": "News", "shows": {"folders": ["News"]}}},
    )

    name: Annotated[str, Field(max_length=63, description="Small letters, digits and hyphens.")]
    title: ShortText | None = Field(default=None, description="null: its name.")
    description: ShortText | None = None
    item_limit: int = Field(default=50, ge=1, le=MOST_ITEMS)
    hub_url: ShortText | None = Field(default=None, description="A WebSub hub to name in it.")
    private: bool = Field(default=False, description="Make a token that its address must carry.")
    shows: Shown = Shown()
    content: Content = ["original"]
    template: BodyTemplate | None = Field(default=None, description=_TEMPLATE)
    own_media: bool = Field(
        default=False, description="Let readers fetch archived images and files from here."
    )
    digest: Annotated[str, Field(max_length=63)] | None = Field(
        default=None, description="Publish the issues of this digest instead of items."
    )


class OutletChanges(BaseModel):
    """What to change; what is left out stays as it is. null clears a description or a hub."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"title": "All the news", "item_limit": 100}}
    )

    title: ShortText | None = None
    description: ShortText | None = None
    item_limit: int | None = Field(default=None, ge=1, le=MOST_ITEMS)
    hub_url: ShortText | None = None
    shows: Shown | None = None
    content: Content | None = None
    template: BodyTemplate | None = Field(default=None, description=_TEMPLATE)
    own_media: bool | None = None


@router.get("", response_model=Outlets, responses=problem_responses(), summary="List outlets")
async def list_(context: InContext, key: Annotated[ApiKey, needs("read")]) -> Json:
    """All outlets, by name."""
    return {"outlets": [_shown(outlet, key) for outlet in await context.store.read(list_outlets)]}


@router.post(
    "",
    status_code=201,
    response_model=OutletView,
    responses=problem_responses(400, 404, 409),
    summary="Add an outlet",
)
async def add(
    context: InContext, response: Response, key: Annotated[ApiKey, needs("admin")], new: NewOutlet
) -> Json:
    """Publish a selection of items as a feed."""
    outlet = Outlet(
        new.name,
        new.title or new.name,
        _selection(new.shows, new.name),
        new.description,
        new.item_limit,
        storable(new.hub_url) or None,
        content=tuple(new.content),
        template=new.template,
        own_media=new.own_media,
        digest=storable(new.digest),
    )
    await context.store.read(refuse_unknown_folders, outlet.selection.folders)
    check_outlet(outlet)
    added = await context.store.write(add_outlet, outlet, context.clock(), private=new.private)
    response.headers["Location"] = f"/api/outlets/{added.name}"
    return _shown(added, key)


class PreviewedEntry(BaseModel):
    """An entry as the outlet would publish it."""

    id: str | None
    title: str | None
    link: str | None
    summary: str | None = Field(description="Sanitised.")
    content: str | None = Field(description="Sanitised.")


class Preview(BaseModel):
    entries: list[PreviewedEntry]


@router.post(
    "/preview", dependencies=[needs("admin")], responses=problem_responses(400, 404), summary="Preview"
)
async def preview(context: InContext, new: NewOutlet) -> Preview:
    """What an outlet would publish, the first few entries. Nothing is stored."""
    outlet = Outlet(
        new.name,
        new.title or new.name,
        _selection(new.shows, storable(new.name) or ""),
        item_limit=new.item_limit,
        content=tuple(new.content),
        template=new.template,
    )
    entries = await preview_outlet(context, outlet, PREVIEWED)
    return Preview(
        entries=[
            PreviewedEntry(
                id=entry.id, title=entry.title, link=entry.link, summary=entry.summary, content=entry.content
            )
            for entry in entries
        ]
    )


@router.get(
    "/{name}",
    response_model=OutletView,
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="One outlet",
)
async def one(
    request: Request,
    context: InContext,
    key: Annotated[ApiKey, needs("read")],
    name: OutletName,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """An outlet and what it shows."""
    outlet = await context.store.read(get_outlet, name)
    return answer_tagged(request, _shown(outlet, key), version_of(outlet))


@router.patch(
    "/{name}",
    response_model=OutletView,
    responses=problem_responses(400, 404, 412),
    summary="Change an outlet",
)
async def change(
    request: Request,
    context: InContext,
    key: Annotated[ApiKey, needs("admin")],
    name: OutletName,
    changes: OutletChanges,
    if_match: IfMatch = None,
) -> Response:
    """Change what is given. Its address stays the same."""
    outlet = await context.store.write(_change, name, changes, expected_version(if_match), context.clock())
    return answer_tagged(request, _shown(outlet, key), version_of(outlet))


@router.delete(
    "/{name}",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Remove an outlet",
)
async def remove(context: InContext, name: OutletName) -> None:
    """Stop publishing it. The items stay."""
    await context.store.write(remove_outlet, name)


def _change(
    connection: Connection, name: str, changes: OutletChanges, version: str | None, now: float
) -> Outlet:
    check_outlet_version(connection, name, version)
    values: dict[str, Any] = {}
    for field in changes.model_fields_set:
        value = getattr(changes, field)
        if field == "shows":
            if value is not None:
                values["selection"] = _selection(value, name)
                before = get_outlet(connection, name).selection.folders  # which may be empty by now
                refuse_unknown_folders(connection, set(values["selection"].folders) - set(before))
        elif field == "content":
            values[field] = tuple(value or (ORIGINAL,))
        elif value is not None or field in ("description", "hub_url", "template"):
            values[field] = (storable(value) or None) if isinstance(value, str) else value
    if values.get("title", "") is None:
        values["title"] = name
    changed = change_outlet(connection, name, now, **values)
    check_outlet(changed)
    return changed


def _selection(shows: Shown, name: str) -> Selection:
    return Selection(
        source_ids=tuple(shows.source_ids),
        folders=tuple(storable(folder) or "" for folder in shows.folders),
        types=tuple(find_type(each).name for each in shows.types),
        search=shows.search or None,
        since=seconds_of(shows.since),
        until=seconds_of(shows.until),
        status=storable(shows.status),
        outlet=name if shows.by_pipelines else None,
        has=tuple(storable(each) or "" for each in shows.has),
        tags=tuple(shows.tags),
        min_score=shows.min_score,
    )


def _shown(outlet: Outlet, key: ApiKey) -> Json:
    return outlet_json(outlet, with_token=key.allows("admin"))
