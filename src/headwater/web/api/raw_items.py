"""`/api/raw-items…`: items in the order in which they were found, under the names of older programs."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from headwater.model import StoredItem
from headwater.store.reading.raw_items import found_items, item_counts
from headwater.views.raw_items import ItemCountsView, RawItemView, item_counts_json, raw_item_json
from headwater.web.api.auth import needs
from headwater.web.api.paging import Cursor, Limit, Next, answer_page, decode_cursor, decode_number
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Since, seconds_of
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch

router = APIRouter(prefix="/raw-items", tags=["raw items"])

MOST_RAW_ITEMS = 500


class RawItemPage(BaseModel):
    items: list[RawItemView]
    next: Next


class RawItemStats(BaseModel):
    sources: list[ItemCountsView]
    next: Next


RawLimit = Annotated[int, Query(ge=1, le=MOST_RAW_ITEMS, description="How many on a page.")]


@router.get(
    "",
    response_model=RawItemPage,
    dependencies=[needs("read")],
    responses={**problem_responses(400), **NOT_MODIFIED},
    summary="Items as they were found",
)
async def list_(
    request: Request,
    context: InContext,
    cursor: Cursor = None,
    limit: RawLimit = 100,
    source_id: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="Of this source.")] = None,
    since: Since = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Items, found last first; `since` is about when they were found."""
    found, fitting = await context.store.read(
        found_items,
        source_id=source_id,
        since=seconds_of(since),
        after=decode_cursor(cursor, float, int),
        limit=limit,
    )
    return _answer(request, found, fitting)


@router.get(
    "/for-digest",
    response_model=RawItemPage,
    dependencies=[needs("read")],
    responses={**problem_responses(400), **NOT_MODIFIED},
    summary="Items for a digest",
)
async def for_digest(
    request: Request,
    context: InContext,
    cursor: Cursor = None,
    limit: RawLimit = MOST_RAW_ITEMS,
    since: Since = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The same of sources that are visited as planned: neither removed, paused, gone nor failing for long."""
    found, fitting = await context.store.read(
        found_items,
        visited_only=True,
        since=seconds_of(since),
        after=decode_cursor(cursor, float, int),
        limit=limit,
    )
    return _answer(request, found, fitting)


@router.get(
    "/stats",
    response_model=RawItemStats,
    dependencies=[needs("read")],
    responses={**problem_responses(400), **NOT_MODIFIED},
    summary="Items by source",
)
async def stats(
    request: Request,
    context: InContext,
    cursor: Cursor = None,
    limit: Limit = 100,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """How many items each source has yielded, and how many of late; by number of the source."""
    after = decode_number(cursor)
    found = await context.store.read(item_counts, context.clock(), after=after, limit=limit)
    return answer_page(request, "sources", found, limit, lambda each: (each.source_id,), item_counts_json)


def _answer(request: Request, found: list[StoredItem], limit: int) -> Response:
    return answer_page(
        request, "items", found, limit, lambda item: (item.first_seen_at, item.id), raw_item_json
    )
