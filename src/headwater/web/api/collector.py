"""`/api/collector`: how every source is doing, and the collector as a whole."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.collect.context import read_intervals
from headwater.store.reports.fleet import Fleet, fleet_sources, read_fleet
from headwater.store.reports.statistics import read_scheduler_statistics
from headwater.views.shape import Json
from headwater.views.sources import CollectorSourceView, collector_source_json
from headwater.views.statistics import SchedulerStatisticsView, scheduler_statistics_json
from headwater.web.api.auth import needs
from headwater.web.api.paging import Cursor, Next, decode_number, split_page
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged

router = APIRouter(prefix="/collector", tags=["collector"])

SOURCES_AT_ONCE = 1_000
MOST_AT_ONCE = 10_000


class CollectorStats(BaseModel):
    """The collector as a whole. Some numbers have two names, because the documents name them twice."""

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
    paused_sources: int = Field(description="The others: paused, gone, or failing for long.")
    paused_by_error: int = Field(description="Those that fail for long, or are gone.")
    fetches_24h: int = Field(description="Visits of the last 24 hours.")
    errors_24h: int = Field(description="Those of them that failed.")
    raw_items_24h: int = Field(description="Items that these visits found new; the same as `items_24h`.")
    items_24h: int


class CollectorStatus(BaseModel):
    sources: list[CollectorSourceView]
    stats: CollectorStats
    next: Next


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
    found = await context.store.read(fleet_sources, after=decode_number(cursor), limit=limit)
    page, following = split_page(found, limit, lambda source: (source.id,))
    intervals = await read_intervals(context.store, context.settings)
    fleet = await context.store.read(read_fleet, context.clock())
    shown = [collector_source_json(source, intervals.get(source.type, 0.0)) for source in page]
    return answer_tagged(request, {"sources": shown, "stats": _stats(fleet), "next": following})


@router.get(
    "/statistics",
    response_model=SchedulerStatisticsView,
    dependencies=[needs("read")],
    responses=problem_responses(),
    summary="Statistics",
)
async def statistics(context: InContext) -> Json:
    """How often sources publish, how many visits found something new, what is due and what is in back-off."""
    return scheduler_statistics_json(await context.store.read(read_scheduler_statistics, context.clock()))


def _stats(fleet: Fleet) -> dict[str, int]:
    return {
        "total_sources": fleet.total_sources,
        "active_sources": fleet.active_sources,
        "paused_sources": fleet.total_sources - fleet.active_sources,
        "paused_by_error": fleet.paused_by_error,
        "fetches_24h": fleet.fetches_24h,
        "errors_24h": fleet.errors_24h,
        "raw_items_24h": fleet.items_24h,
        "items_24h": fleet.items_24h,
    }
