"""`/api/raw-items…`: items in the order in which they were found, under the names of older programs."""

from typing import Annotated, Any, ClassVar

import orjson
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.collectors.types import alias_of
from headwater.store.raw_items import RawItem, found_items, item_counts
from headwater.web.api.auth import needs
from headwater.web.api.paging import Cursor, Limit, decode_cursor, split_page
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Since, Time, seconds_of
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged
from headwater.wording import iso

router = APIRouter(prefix="/raw-items", tags=["raw items"])

MOST_RAW_ITEMS = 500


class RawItemEntry(BaseModel):
    """An item as it was found."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 1,
                "source_id": 1,
                "source_name": "Hacker News",
                "source_type": "hackernews",
                "title": "A title",
                "url": "https://example.org/1",
                "author": "somebody",
                "content": "<p>At length</p>",
                "published_at": "2026-02-25T10:12:00.000Z",
                "fetched_at": "2026-02-25T10:30:00.000Z",
                "dedup_key": "https://example.org/1",
                "metadata": {"score": 120},
            }
        }
    )

    id: int
    source_id: int
    source_name: str
    source_type: str = Field(description="The type's one-word name where it has one.")
    title: str
    url: str | None
    author: str | None
    content: str | None = Field(description="Its content, else its summary, as its publisher wrote it.")
    published_at: Time | None
    fetched_at: Time = Field(description="When a visit found it.")
    dedup_key: str = Field(description="Its id at its source: no other item of the source has it.")
    metadata: dict[str, Any]


class RawItemPage(BaseModel):
    items: list[RawItemEntry]
    next: str | None = Field(description="The cursor of the next page; null: there are no more.")


class RawItemCounts(BaseModel):
    """How many items a source has yielded."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "source_id": 1,
                "name": "Hacker News",
                "type": "hackernews",
                "total_items": 812,
                "last_item_at": "2026-02-25T10:12:00.000Z",
                "items_24h": 31,
            }
        }
    )

    source_id: int
    name: str
    type: str = Field(description="The type's one-word name where it has one.")
    total_items: int = Field(description="Those that are stored.")
    last_item_at: Time | None = Field(description="When the newest was published, else first seen.")
    items_24h: int = Field(description="Those found in the last 24 hours.")


class RawItemStats(BaseModel):
    sources: list[RawItemCounts]
    next: str | None = Field(description="The cursor of the next page; null: there are no more.")


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
    found = await context.store.read(
        found_items,
        source_id=source_id,
        since=seconds_of(since),
        after=decode_cursor(cursor, float, int),
        limit=limit,
    )
    return _answer(request, found, limit)


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
    """The same of sources that are visited as planned: neither removed, nor switched off, nor paused by failures."""
    found = await context.store.read(
        found_items,
        visited_only=True,
        since=seconds_of(since),
        after=decode_cursor(cursor, float, int),
        limit=limit,
    )
    return _answer(request, found, limit)


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
    place = decode_cursor(cursor, int)
    found = await context.store.read(
        item_counts, context.clock(), after=place[0] if place else None, limit=limit
    )
    page, following = split_page(found, limit, lambda counts: (counts.source_id,))
    shown = [
        RawItemCounts(
            source_id=counts.source_id,
            name=counts.name,
            type=alias_of(counts.type),
            total_items=counts.total_items,
            last_item_at=counts.last_item_at,
            items_24h=counts.items_24h,
        )
        for counts in page
    ]
    return answer_tagged(request, RawItemStats(sources=shown, next=following))


def _answer(request: Request, found: list[RawItem], limit: int) -> Response:
    page, following = split_page(found, limit, lambda item: (item.first_seen_at, item.id))
    # `RawItemEntry`, as JSON has it: there are hundreds in one answer, and they come from our own rows.
    shown = [
        {
            "id": item.id,
            "source_id": item.source_id,
            "source_name": item.source_name,
            "source_type": alias_of(item.source_type),
            "title": item.title,
            "url": item.url,
            "author": item.author,
            "content": item.content or item.summary,
            "published_at": iso(item.published_at),
            "fetched_at": iso(item.first_seen_at),
            "dedup_key": item.external_id,
            "metadata": item.extra,
        }
        for item in page
    ]
    return answer_tagged(request, orjson.dumps({"items": shown, "next": following}))
