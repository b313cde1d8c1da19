"""`/api/cursors…`: everything since the last acknowledgement, in order, for programs that must miss nothing."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.collectors.types import find_type
from headwater.store.bulk import storable
from headwater.store.cursors import (
    Cursor,
    acknowledge,
    create_cursor,
    get_cursor,
    list_cursors,
    read_cursor,
    remove_cursor,
    reset_cursor,
)
from headwater.store.selection import Selection
from headwater.web.api.auth import needs
from headwater.web.api.items import ItemEntry, entry
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Time
from headwater.web.context import InContext

router = APIRouter(prefix="/cursors", tags=["cursors"])

NAME = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
CursorName = Annotated[str, Path(pattern=NAME, description="The cursor's name.")]
Position = Annotated[int, Field(ge=0, le=2**63 - 1)]
_EXAMPLE: dict[str, Any] = {
    "name": "my-archive",
    "position": 812,
    "with_changes": False,
    "source_ids": [],
    "folders": ["News"],
    "types": [],
    "search": None,
    "created_at": "2026-01-01T00:00:00.000Z",
    "acknowledged_at": "2026-02-25T10:30:00.000Z",
}


class CursorEntry(BaseModel):
    """A named reader with a place of its own."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    name: str
    position: int = Field(description="Up to where everything has been dealt with.")
    with_changes: bool = Field(description="Changed items come up again.")
    source_ids: list[int]
    folders: list[str]
    types: list[str]
    search: str | None
    created_at: Time
    acknowledged_at: Time | None


class Cursors(BaseModel):
    cursors: list[CursorEntry]


class NewCursor(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "my-archive", "folders": ["News"]}}
    )

    name: Annotated[str, Field(pattern=NAME)]
    source_ids: list[Annotated[int, Field(ge=1, le=2**63 - 1)]] = Field(
        default=[], max_length=1_000, description="Only of these sources."
    )
    folders: list[Annotated[str, Field(max_length=2_000)]] = Field(
        default=[], max_length=1_000, description="Only of sources in these folders."
    )
    types: list[Annotated[str, Field(max_length=100)]] = Field(
        default=[], max_length=100, description="Only of sources of these types."
    )
    search: Annotated[str, Field(max_length=500)] | None = Field(
        default=None, description='Only with these words; "a phrase", begin* and -not work.'
    )
    with_changes: bool = Field(default=False, description="Changed items come up again.")
    from_now: bool = Field(default=False, description="Leave out what is stored already.")


class PlacedItem(BaseModel):
    """An item, and the position with which it and everything before it is acknowledged."""

    position: int
    item: ItemEntry


class CursorPage(BaseModel):
    items: list[PlacedItem]
    position: int = Field(description="Acknowledge this to acknowledge all of them.")
    is_last: bool = Field(description="There is nothing more for now.")


class Acknowledgement(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"position": 812}}
    )

    position: Position


class Reset(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"position": 0}}
    )

    position: Position = Field(default=0, description="Read again what comes after it.")


@router.get("", dependencies=[needs("read")], responses=problem_responses(), summary="List cursors")
async def list_(context: InContext) -> Cursors:
    """All cursors, by name."""
    return Cursors(cursors=[_entry(cursor) for cursor in await context.store.read(list_cursors)])


@router.post(
    "",
    status_code=201,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404, 409),
    summary="Make a cursor",
)
async def make(context: InContext, response: Response, new: NewCursor) -> CursorEntry:
    """Make a cursor before everything that is stored, or behind it."""
    wanted = Selection(
        source_ids=tuple(new.source_ids),
        folders=tuple(storable(folder) or "" for folder in new.folders),
        types=tuple(find_type(each).name for each in new.types),
        search=new.search or None,
    )
    made = await context.store.write(
        create_cursor,
        new.name,
        now=context.clock(),
        selection=wanted,
        with_changes=new.with_changes,
        from_now=new.from_now,
    )
    response.headers["Location"] = f"/api/cursors/{made.name}"
    return _entry(made)


@router.get("/{name}", dependencies=[needs("read")], responses=problem_responses(404), summary="One cursor")
async def one(context: InContext, name: CursorName) -> CursorEntry:
    """A cursor and where it is."""
    return _entry(await context.store.read(get_cursor, name))


@router.get(
    "/{name}/items",
    dependencies=[needs("read")],
    responses=problem_responses(404),
    summary="What is before it",
)
async def read(
    context: InContext,
    name: CursorName,
    limit: Annotated[int, Query(ge=1, le=1_000, description="How many at most.")] = 100,
) -> CursorPage:
    """The next items. Reading again gives the same until they are acknowledged."""
    page = await context.store.read(read_cursor, name, limit=limit)
    return CursorPage(
        items=[PlacedItem(position=each.position, item=entry(each.item)) for each in page.items],
        position=page.position,
        is_last=page.is_last,
    )


@router.post(
    "/{name}/acknowledge",
    dependencies=[needs("refresh")],
    responses=problem_responses(400, 404),
    summary="Acknowledge",
)
async def acknowledge_(context: InContext, name: CursorName, given: Acknowledgement) -> CursorEntry:
    """Everything up to a position has been dealt with. Acknowledging less than before changes nothing."""
    return _entry(await context.store.write(acknowledge, name, given.position, now=context.clock()))


@router.post(
    "/{name}/reset", dependencies=[needs("admin")], responses=problem_responses(404), summary="Put it back"
)
async def reset(context: InContext, name: CursorName, wanted: Reset) -> CursorEntry:
    """Read again what comes after a position."""
    return _entry(await context.store.write(reset_cursor, name, position=wanted.position))


@router.delete(
    "/{name}",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Remove a cursor",
)
async def remove(context: InContext, name: CursorName) -> None:
    """Forget a cursor. The items stay."""
    await context.store.write(remove_cursor, name)


def _entry(cursor: Cursor) -> CursorEntry:
    return CursorEntry(
        name=cursor.name,
        position=cursor.position,
        with_changes=cursor.with_changes,
        source_ids=list(cursor.selection.source_ids),
        folders=list(cursor.selection.folders),
        types=list(cursor.selection.types),
        search=cursor.selection.search,
        created_at=cursor.created_at,
        acknowledged_at=cursor.acknowledged_at,
    )
