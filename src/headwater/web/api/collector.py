"""`/api/collector/status`: how every source is doing, and the collector as a whole."""

from typing import Annotated, Any, ClassVar

import orjson
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.collect.surroundings import read_intervals
from headwater.collectors.types import alias_of
from headwater.model import Json
from headwater.store.fleet import Fleet, FleetSource, fleet_sources, read_fleet
from headwater.web.api.auth import needs
from headwater.web.api.paging import Cursor, decode_cursor, split_page
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Time
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged
from headwater.wording import iso

router = APIRouter(prefix="/collector", tags=["collector"])

SOURCES_AT_ONCE = 1_000
MOST_AT_ONCE = 10_000


class SourceState(BaseModel):
    """How one source is doing."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 1,
                "name": "Hacker News",
                "type": "hackernews",
                "interval_minutes": 60,
                "last_fetched_at": "2026-02-25T10:30:00.000Z",
                "next_fetch_at": "2026-02-25T11:30:00.000Z",
                "fetch_count": 142,
                "fetch_error_count": 0,
                "last_error": None,
                "status": "ok",
            }
        }
    )

    id: int
    name: str
    type: str = Field(description="The type's one-word name where it has one.")
    interval_minutes: int | float = Field(description="The source's own fixed interval, else its type's.")
    last_fetched_at: Time | None = Field(description="When it was last visited; null: never.")
    next_fetch_at: Time | None = Field(
        description=(
            "When its next visit is planned; null: never visited, so first in line. Under the policy `interval` "
            "this is `last_fetched_at` plus `interval_minutes`, unless the publisher or failures put it off."
        )
    )
    fetch_count: int = Field(description="All visits so far.")
    fetch_error_count: int = Field(description="Those of them that failed.")
    last_error: str | None = Field(description="What went wrong at the last visit; null: nothing.")
    status: str = Field(
        description="ok, needs_attention, paused, error, retired; off: switched off by its owner."
    )


class CollectorStats(BaseModel):
    """The collector as a whole. Some numbers have two names, for those who know them by either."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "total_sources": 224,
                "active_sources": 218,
                "paused_sources": 6,
                "paused_by_error": 6,
                "fetches_24h": 1205,
                "errors_24h": 12,
                "raw_items_24h": 3421,
                "items_24h": 3421,
            }
        }
    )

    total_sources: int = Field(description="All sources.")
    active_sources: int = Field(description="Those that are visited as planned.")
    paused_sources: int = Field(description="The others: switched off, or paused by failures.")
    paused_by_error: int = Field(description="Those paused by failures, or gone for good.")
    fetches_24h: int = Field(description="Visits of the last 24 hours.")
    errors_24h: int = Field(description="Those of them that failed.")
    raw_items_24h: int = Field(description="Items that these visits found new; the same as `items_24h`.")
    items_24h: int


class CollectorStatus(BaseModel):
    sources: list[SourceState]
    stats: CollectorStats
    next: str | None = Field(description="The cursor of the next page of sources; null: there are no more.")


@router.get(
    "/status",
    response_model=CollectorStatus,
    dependencies=[needs("read")],
    responses={**problem_responses(400), **NOT_MODIFIED},
    summary="Status",
)
async def status(
    request: Request,
    context: InContext,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=MOST_AT_ONCE, description="How many sources.")] = SOURCES_AT_ONCE,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Every source with its last and next visit, and the numbers of the last 24 hours."""
    place = decode_cursor(cursor, int)
    found = await context.store.read(fleet_sources, after=place[0] if place else None, limit=limit)
    page, following = split_page(found, limit, lambda source: (source.id,))
    intervals = await read_intervals(context.store, context.settings)
    fleet = await context.store.read(read_fleet, context.clock())
    answer = {
        "sources": [_state(source, intervals.get(source.type, 0.0)) for source in page],
        "stats": _stats(fleet).model_dump(),
        "next": following,
    }
    return answer_tagged(request, orjson.dumps(answer))


def interval_minutes(config: Json, type_minutes: float) -> int | float:
    """The fixed interval of a source with this config; a whole number where it is one."""
    minutes = float(config.get("fetch_interval_minutes") or type_minutes)
    return int(minutes) if minutes.is_integer() else minutes


def _state(source: FleetSource, type_minutes: float) -> dict[str, Any]:
    """A `SourceState`, as JSON has it: there are thousands in one answer, and they come from our own rows."""
    return {
        "id": source.id,
        "name": source.name,
        "type": alias_of(source.type),
        "interval_minutes": interval_minutes(source.config, type_minutes),
        "last_fetched_at": iso(source.last_fetched_at),
        "next_fetch_at": iso(source.next_fetch_at),
        "fetch_count": source.fetch_count,
        "fetch_error_count": source.fetch_error_count,
        "last_error": source.last_error,
        "status": source.status if source.schedule_enabled else "off",
    }


def _stats(fleet: Fleet) -> CollectorStats:
    return CollectorStats(
        total_sources=fleet.total_sources,
        active_sources=fleet.active_sources,
        paused_sources=fleet.total_sources - fleet.active_sources,
        paused_by_error=fleet.paused_by_error,
        fetches_24h=fleet.fetches_24h,
        errors_24h=fleet.errors_24h,
        raw_items_24h=fleet.items_24h,
        items_24h=fleet.items_24h,
    )
