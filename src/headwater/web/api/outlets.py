"""`/api/outlets…`: the feeds that Headwater publishes."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.collectors.types import find_type
from headwater.outlets import FORMATS, path_of
from headwater.store.bulk import storable
from headwater.store.keys import ApiKey
from headwater.store.outlets import (
    MOST_ITEMS,
    Outlet,
    add_outlet,
    change_outlet,
    get_outlet,
    list_outlets,
    remove_outlet,
)
from headwater.store.selection import Selection
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Time, seconds_of
from headwater.web.context import InContext

router = APIRouter(prefix="/outlets", tags=["outlets"])

OutletName = Annotated[str, Path(pattern="^[a-z0-9-]{1,63}$", description="The outlet's name.")]
ShortText = Annotated[str, Field(max_length=2_000)]
SHOWN_TOKEN = "***"  # noqa: S105 - what stands for one


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


class ShownTold(BaseModel):
    """Which items an outlet shows."""

    source_ids: list[int]
    folders: list[str]
    types: list[str]
    search: str | None
    since: Time | None
    until: Time | None
    status: str | None
    by_pipelines: bool


class OutletEntry(BaseModel):
    """A feed that Headwater publishes."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "name": "news",
                "title": "News",
                "description": None,
                "item_limit": 50,
                "hub_url": None,
                "private": False,
                "token": None,
                "shows": {
                    "source_ids": [],
                    "folders": ["News"],
                    "types": [],
                    "search": None,
                    "since": None,
                    "until": None,
                    "status": None,
                    "by_pipelines": False,
                },
                "paths": {
                    "rss": "/outlets/news.xml",
                    "atom": "/outlets/news.atom",
                    "json": "/outlets/news.json",
                },
                "created_at": "2026-01-01T00:00:00.000Z",
                "updated_at": "2026-01-01T00:00:00.000Z",
            }
        }
    )

    name: str
    title: str
    description: str | None
    item_limit: int
    hub_url: str | None
    private: bool = Field(description="Its address must carry the token, as ?token=…")
    token: str | None = Field(description="Starred out unless the key has the scope admin.")
    shows: ShownTold
    paths: dict[str, str] = Field(description="Where it is served, by format.")
    created_at: Time
    updated_at: Time


class Outlets(BaseModel):
    outlets: list[OutletEntry]


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


@router.get("", responses=problem_responses(), summary="List outlets")
async def list_(context: InContext, key: Annotated[ApiKey, needs("read")]) -> Outlets:
    """All outlets, by name."""
    return Outlets(outlets=[_entry(outlet, key) for outlet in await context.store.read(list_outlets)])


@router.post("", status_code=201, responses=problem_responses(400, 404, 409), summary="Add an outlet")
async def add(
    context: InContext, response: Response, key: Annotated[ApiKey, needs("admin")], new: NewOutlet
) -> OutletEntry:
    """Publish a selection of items as a feed."""
    outlet = Outlet(
        new.name,
        new.title or new.name,
        _selection(new.shows, new.name),
        new.description,
        new.item_limit,
        storable(new.hub_url) or None,
    )
    added = await context.store.write(add_outlet, outlet, context.clock(), private=new.private)
    response.headers["Location"] = f"/api/outlets/{added.name}"
    return _entry(added, key)


@router.get("/{name}", responses=problem_responses(404), summary="One outlet")
async def one(context: InContext, key: Annotated[ApiKey, needs("read")], name: OutletName) -> OutletEntry:
    """An outlet and what it shows."""
    return _entry(await context.store.read(get_outlet, name), key)


@router.patch("/{name}", responses=problem_responses(400, 404), summary="Change an outlet")
async def change(
    context: InContext, key: Annotated[ApiKey, needs("admin")], name: OutletName, changes: OutletChanges
) -> OutletEntry:
    """Change what is given. Its address stays the same."""
    return _entry(await context.store.write(_change, name, changes, context.clock()), key)


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


def _change(connection: Connection, name: str, changes: OutletChanges, now: float) -> Outlet:
    values: dict[str, Any] = {}
    for field in changes.model_fields_set:
        value = getattr(changes, field)
        if field == "shows":
            if value is not None:
                values["selection"] = _selection(value, name)
        elif value is not None or field in ("description", "hub_url"):
            values[field] = (storable(value) or None) if isinstance(value, str) else value
    if values.get("title", "") is None:
        values["title"] = name
    return change_outlet(connection, name, now, **values)


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
    )


def _entry(outlet: Outlet, key: ApiKey) -> OutletEntry:
    selection = outlet.selection
    return OutletEntry(
        name=outlet.name,
        title=outlet.title,
        description=outlet.description,
        item_limit=outlet.item_limit,
        hub_url=outlet.hub_url,
        private=outlet.token is not None,
        token=SHOWN_TOKEN if outlet.token and not key.allows("admin") else outlet.token,
        shows=ShownTold(
            source_ids=list(selection.source_ids),
            folders=list(selection.folders),
            types=list(selection.types),
            search=selection.search,
            since=selection.since,
            until=selection.until,
            status=selection.status,
            by_pipelines=selection.outlet is not None,
        ),
        paths={format: f"/outlets/{path_of(outlet.name, format)}" for format in FORMATS},
        created_at=outlet.created_at,
        updated_at=outlet.updated_at,
    )
