"""`/api/cursors…`: everything since the last acknowledgement, in order, for programs that must miss nothing."""

from typing import Annotated, ClassVar

import orjson
from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.collectors.types import find_type
from headwater.store.core.bulk import storable
from headwater.store.reading.cursors import (
    When,
    acknowledge,
    create_cursor,
    get_cursor,
    list_cursors,
    read_cursor,
    remove_cursor,
    reset_cursor,
)
from headwater.store.reading.listing import refuse_unknown_folders
from headwater.store.reading.selection import Selection
from headwater.views.cursors import CursorView, PlacedItemView, cursor_json, placed_item_json
from headwater.views.shape import Json
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(prefix="/cursors", tags=["cursors"])

NAME = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
CursorName = Annotated[str, Path(pattern=NAME, description="The cursor's name.")]
Position = Annotated[int, Field(ge=0, le=2**63 - 1)]


class Cursors(BaseModel):
    cursors: list[CursorView]


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
    has: list[Annotated[str, Field(max_length=100)]] = Field(
        default=[], max_length=20, description="Only with one of these results: summary, translation:zh, …"
    )
    tags: list[Annotated[str, Field(max_length=100)]] = Field(
        default=[], max_length=100, description="Only with one of these tags of pipelines."
    )
    min_score: float | None = Field(
        default=None, allow_inf_nan=False, description="Only those that a pipeline has scored this high."
    )
    when: When = Field(
        default="stored",
        description="When an item comes up: as it is stored; also when it is changed; or once pipelines are done.",
    )
    with_changes: bool = Field(default=False, description="The same as `when`: changed.")
    from_now: bool = Field(default=False, description="Leave out what is stored already.")


class CursorPage(BaseModel):
    items: list[PlacedItemView]
    position: int = Field(description="Acknowledge this to acknowledge all of them.")
    is_last: bool = Field(description="No more items are stored yet.")


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


@router.get(
    "",
    response_model=Cursors,
    dependencies=[needs("read")],
    responses=problem_responses(),
    summary="List cursors",
)
async def list_(context: InContext) -> Json:
    """All cursors, by name."""
    return {"cursors": [cursor_json(cursor) for cursor in await context.store.read(list_cursors)]}


@router.post(
    "",
    status_code=201,
    response_model=CursorView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404, 409),
    summary="Make a cursor",
)
async def make(context: InContext, response: Response, new: NewCursor) -> Json:
    """Make a cursor before everything that is stored, or behind it."""
    wanted = Selection(
        source_ids=tuple(new.source_ids),
        folders=tuple(storable(folder) or "" for folder in new.folders),
        types=tuple(find_type(each).name for each in new.types),
        search=new.search or None,
        has=tuple(storable(each) or "" for each in new.has),
        tags=tuple(new.tags),
        min_score=new.min_score,
    )
    await context.store.read(refuse_unknown_folders, wanted.folders)
    made = await context.store.write(
        create_cursor,
        new.name,
        now=context.clock(),
        selection=wanted,
        when="changed" if new.with_changes else new.when,
        from_now=new.from_now,
    )
    response.headers["Location"] = f"/api/cursors/{made.name}"
    return cursor_json(made)


@router.get(
    "/{name}",
    response_model=CursorView,
    dependencies=[needs("read")],
    responses=problem_responses(404),
    summary="One cursor",
)
async def one(context: InContext, name: CursorName) -> Json:
    """A cursor and where it is."""
    return cursor_json(await context.store.read(get_cursor, name))


@router.get(
    "/{name}/items",
    response_model=CursorPage,
    dependencies=[needs("read")],
    responses=problem_responses(404),
    summary="What is before it",
)
async def read(
    context: InContext,
    name: CursorName,
    limit: Annotated[int, Query(ge=1, le=1_000, description="How many at most.")] = 100,
) -> Response:
    """The next items. Reading again gives the same until they are acknowledged."""
    page = await context.store.read(read_cursor, name, limit=limit)
    shown = {
        "items": [placed_item_json(each) for each in page.items],
        "position": page.position,
        "is_last": page.is_last,
    }
    return Response(orjson.dumps(shown), media_type="application/json")


@router.post(
    "/{name}/acknowledge",
    response_model=CursorView,
    dependencies=[needs("refresh")],
    responses=problem_responses(400, 404),
    summary="Acknowledge",
)
async def acknowledge_(context: InContext, name: CursorName, given: Acknowledgement) -> Json:
    """Everything up to a position has been dealt with. Acknowledging less than before changes nothing."""
    return cursor_json(await context.store.write(acknowledge, name, given.position, now=context.clock()))


@router.post(
    "/{name}/reset",
    response_model=CursorView,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Put it back",
)
async def reset(context: InContext, name: CursorName, wanted: Reset) -> Json:
    """Read again what comes after a position."""
    return cursor_json(await context.store.write(reset_cursor, name, position=wanted.position))


@router.delete(
    "/{name}",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Remove a cursor",
)
async def remove(context: InContext, name: CursorName) -> None:
    """Delete a cursor. The items stay."""
    await context.store.write(remove_cursor, name)
