"""`/api/items…`: what sources have yielded, searched and read, with what it said before."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from headwater.collectors.types import find_type
from headwater.fetch.client import make_fetcher
from headwater.model import ListedItem
from headwater.newsletters.unsubscribing import unsubscribe
from headwater.store.core.bulk import storable
from headwater.store.core.database import Store
from headwater.store.reading.items import get_item, list_versions
from headwater.store.reading.listing import best_items, newest_items, read_items, with_traits
from headwater.store.reading.page_sizes import count_fitting
from headwater.store.reading.results import result_history
from headwater.store.reading.search import index_new_items
from headwater.store.reading.selection import Selection
from headwater.views.items import (
    ItemView,
    ListedItemView,
    VersionView,
    item_json,
    listed_item_json,
    version_json,
)
from headwater.views.results import ReplacedResultView, ResultView, replaced_result_json, results_json
from headwater.web.api.auth import needs
from headwater.web.api.paging import Cursor, Limit, Next, decode_cursor, split_page
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Since, Until, seconds_of
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged

INDEXED_AT_ONCE = 100  # new items that a search waits for; the rest is indexed beside it

router = APIRouter(prefix="/items", tags=["items"])

ItemId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The item's number.")]
SourceIds = Annotated[
    list[Annotated[int, Field(ge=1, le=2**63 - 1)]],
    Query(alias="source_id", max_length=100, description="Of this source; may be repeated."),
]
Texts = list[Annotated[str, Field(max_length=2_000)]]


class ItemPage(BaseModel):
    items: list[ListedItemView]
    next: Next


class FullItemPage(BaseModel):
    items: list[ItemView]
    next: Next


class ItemResults(BaseModel):
    """What pipelines have made of an item, now and before."""

    results: dict[str, ResultView]
    replaced: list[ReplacedResultView] = Field(description="What newer results have replaced, newest first.")


class Unsubscribed(BaseModel):
    asked: str = Field(description="The address that was asked, without what is secret in it.")


class Versions(BaseModel):
    """What an item said at first, then, …; what it says now is not among them."""

    versions: list[VersionView]


@router.get(
    "",
    response_model=ItemPage | FullItemPage,
    dependencies=[needs("read")],
    responses={**problem_responses(400), **NOT_MODIFIED},
    summary="List and search items",
)
async def list_(
    request: Request,
    context: InContext,
    cursor: Cursor = None,
    limit: Limit = 50,
    search: Annotated[
        str | None,
        Query(max_length=500, description='Words, "phrases", beginn*, -not, in all that the item says.'),
    ] = None,
    source_ids: SourceIds = [],  # noqa: B006 - FastAPI copies it
    folder: Annotated[Texts, Query(max_length=100, description="In this folder; may be repeated.")] = [],  # noqa: B006
    type: Annotated[
        Texts, Query(max_length=100, description="Of sources of this type; may be repeated.")
    ] = [],  # noqa: B006
    status: Annotated[str | None, Query(max_length=20, description="NEW or ANALYZED.")] = None,
    outlet: Annotated[
        str | None, Query(max_length=63, description="What pipelines have published to this outlet.")
    ] = None,
    has: Annotated[
        Texts,
        Query(max_length=20, description="With this result, as summary or translation:zh; may be repeated."),
    ] = [],  # noqa: B006
    tag: Annotated[
        Texts, Query(max_length=100, description="With this tag of a pipeline; may be repeated.")
    ] = [],  # noqa: B006
    min_score: Annotated[
        float | None, Query(allow_inf_nan=False, description="Scored this high or higher by a pipeline.")
    ] = None,
    sort: Annotated[
        Literal["newest", "score"], Query(description="By time, or by score: only items that have one.")
    ] = "newest",
    since: Since = None,
    until: Until = None,
    full: Annotated[bool, Query(description="With their bodies and all the rest.")] = False,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Items, newest first. Conditions must all hold; of one that is repeated, any will do."""
    selection = Selection(
        source_ids=tuple(source_ids),
        folders=tuple(storable(each) or "" for each in folder),
        types=tuple(find_type(each).name for each in type),
        search=search.strip() if search else None,
        since=seconds_of(since),
        until=seconds_of(until),
        status=storable(status),
        outlet=storable(outlet),
        has=tuple(storable(each) or "" for each in has),
        tags=tuple(tag),
        min_score=min_score,
    )
    store = context.store
    if selection.search:
        await index_new_items(store, context.clock(), INDEXED_AT_ONCE)
    place = decode_cursor(cursor, float, int)
    if sort == "score":
        best = await store.read(best_items, selection, after=place, limit=limit)
        room = await _room(store, [each.item for each in best[:limit]], full)
        chosen, following = split_page(best, room, lambda each: (each.score, each.item.id))
        page: Sequence[ListedItem] = [each.item for each in chosen]
    else:
        found = await store.read(newest_items, selection, after=place, limit=limit)
        room = await _room(store, found[:limit], full)
        page, following = split_page(found, room, lambda item: (item.item_at, item.id))
    if full:
        whole = await store.read(read_items, [item.id for item in page])
        shown = [item_json(item) for item in whole]
    else:
        shown = [listed_item_json(item) for item in await store.read(with_traits, page)]
    return answer_tagged(request, {"items": shown, "next": following})


async def _room(store: Store, page: Sequence[ListedItem], full: bool) -> int:
    """How many items of a page are shown: all, but for whole ones with very long texts."""
    return await store.read(count_fitting, [item.id for item in page]) if full else len(page)


@router.get(
    "/{item_id}",
    response_model=ItemView,
    dependencies=[needs("read")],
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="One item",
)
async def one(
    request: Request, context: InContext, item_id: ItemId, if_none_match: IfNoneMatch = None
) -> Response:
    """An item as a whole, as its publisher wrote it."""
    return answer_tagged(request, item_json(await context.store.read(get_item, item_id)))


@router.get(
    "/{item_id}/results",
    response_model=ItemResults,
    dependencies=[needs("read")],
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="What pipelines made of it",
)
async def results(
    request: Request, context: InContext, item_id: ItemId, if_none_match: IfNoneMatch = None
) -> Response:
    """The results of an item, and those that newer ones have replaced."""
    item = await context.store.read(get_item, item_id)
    replaced = await context.store.read(result_history, item_id)
    shown = {
        "results": results_json(item.results),
        "replaced": [replaced_result_json(each) for each in replaced],
    }
    return answer_tagged(request, shown)


@router.post(
    "/{item_id}/unsubscribe",
    response_model=Unsubscribed,
    dependencies=[needs("admin")],
    responses=problem_responses(404, 409, 502),
    summary="Unsubscribe from its newsletter",
)
async def unsubscribe_(context: InContext, item_id: ItemId) -> dict[str, str]:
    """Ask the sender of the letter that an item came in to send no more, where the letter offers that (RFC 8058)."""
    item = await context.store.read(get_item, item_id)
    async with make_fetcher(context.settings) as fetcher:
        return {"asked": await unsubscribe(item, fetcher)}


@router.get(
    "/{item_id}/versions",
    response_model=Versions,
    dependencies=[needs("read")],
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="What it said before",
)
async def versions(
    request: Request, context: InContext, item_id: ItemId, if_none_match: IfNoneMatch = None
) -> Response:
    """The earlier versions of an item, oldest first."""
    await context.store.read(get_item, item_id)
    found = await context.store.read(list_versions, item_id)
    return answer_tagged(request, {"versions": [version_json(each) for each in found]})
