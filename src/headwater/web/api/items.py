"""`/api/items…`: what sources have yielded, searched and read, with what it said before."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.collectors.types import find_type
from headwater.store.bulk import storable
from headwater.store.items import StoredItem, get_item, list_versions
from headwater.store.listing import newest_items, read_items
from headwater.store.search import index_new_items
from headwater.store.selection import Selection
from headwater.web.api.auth import needs
from headwater.web.api.paging import Cursor, Limit, decode_cursor, split_page
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Since, Time, Until, seconds_of
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged

router = APIRouter(prefix="/items", tags=["items"])

ItemId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The item's number.")]
SourceIds = Annotated[
    list[Annotated[int, Field(ge=1, le=2**63 - 1)]],
    Query(alias="source_id", max_length=100, description="Of this source; may be repeated."),
]
Texts = list[Annotated[str, Field(max_length=2_000)]]

_EXAMPLE: dict[str, Any] = {
    "id": 1,
    "source_id": 1,
    "source_name": "Example",
    "url": "https://example.org/1",
    "title": "A title",
    "item_at": "2026-02-25T10:12:00.000Z",
    "first_seen_at": "2026-02-25T10:30:00.000Z",
    "version": 1,
}


class ListedItem(BaseModel):
    """An item in a list, without its body."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    id: int
    source_id: int
    source_name: str
    url: str | None
    title: str
    item_at: Time = Field(description="When it was published, else first seen: what lists are sorted by.")
    first_seen_at: Time = Field(description="When a visit found it.")
    version: int = Field(description="Counts its changes; 1: as it was found.")


class ItemEntry(BaseModel):
    """An item as a whole. HTML in it is as its publisher wrote it: sanitise it before you show it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 1,
                "source_id": 1,
                "source_name": "Example",
                "external_id": "https://example.org/1",
                "url": "https://example.org/1",
                "title": "A title",
                "author": "Somebody",
                "summary": "<p>In short</p>",
                "content": "<p>At length</p>",
                "published_at": "2026-02-25T10:12:00.000Z",
                "updated_at": None,
                "first_seen_at": "2026-02-25T10:30:00.000Z",
                "date_invented": False,
                "version": 1,
                "status": "NEW",
                "extra": {"categories": ["news"]},
            }
        }
    )

    id: int
    source_id: int
    source_name: str
    external_id: str = Field(description="Its id at its source.")
    url: str | None
    title: str
    author: str | None
    summary: str | None
    content: str | None
    published_at: Time | None
    updated_at: Time | None
    first_seen_at: Time
    date_invented: bool = Field(
        description="Its date was missing or impossible, so first seen stands for it."
    )
    version: int
    status: str = Field(description="NEW, or ANALYZED once a pipeline has completed.")
    extra: dict[str, Any] = Field(description="image_url, comments_url, categories, enclosures, score, …")


class ItemPage(BaseModel):
    items: list[ListedItem]
    next: str | None = Field(description="The cursor of the next page; null: there are no more.")


class FullItemPage(BaseModel):
    items: list[ItemEntry]
    next: str | None = Field(description="The cursor of the next page; null: there are no more.")


class VersionEntry(BaseModel):
    """What an item said until it was changed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "version": 1,
                "title": "A titel",
                "summary": None,
                "content": "<p>At length</p>",
                "updated_at": None,
                "replaced_at": "2026-02-25T12:00:00.000Z",
            }
        }
    )

    version: int
    title: str
    summary: str | None
    content: str | None
    updated_at: Time | None
    replaced_at: Time


class Versions(BaseModel):
    """What an item said at first, then, …; what it says now is not among them."""

    versions: list[VersionEntry]


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
    )
    store = context.store
    if selection.search:
        await store.write(index_new_items, context.clock())
    found = await store.read(newest_items, selection, after=decode_cursor(cursor, float, int), limit=limit)
    page, following = split_page(found, limit, lambda item: (item.item_at, item.id))
    if full:
        whole = await store.read(read_items, [item.id for item in page])
        return answer_tagged(request, FullItemPage(items=[entry(item) for item in whole], next=following))
    listed = [
        ListedItem(
            id=item.id,
            source_id=item.source_id,
            source_name=item.source_name,
            url=item.url,
            title=item.title,
            item_at=item.item_at,
            first_seen_at=item.first_seen_at,
            version=item.version,
        )
        for item in page
    ]
    return answer_tagged(request, ItemPage(items=listed, next=following))


@router.get(
    "/{item_id}",
    response_model=ItemEntry,
    dependencies=[needs("read")],
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="One item",
)
async def one(
    request: Request, context: InContext, item_id: ItemId, if_none_match: IfNoneMatch = None
) -> Response:
    """An item as a whole, as its publisher wrote it."""
    return answer_tagged(request, entry(await context.store.read(get_item, item_id)))


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
    shown = [
        VersionEntry(
            version=each.version,
            title=each.title,
            summary=each.summary,
            content=each.content,
            updated_at=each.updated_at,
            replaced_at=each.replaced_at,
        )
        for each in found
    ]
    return answer_tagged(request, Versions(versions=shown))


def entry(item: StoredItem) -> ItemEntry:
    return ItemEntry(
        id=item.id,
        source_id=item.source_id,
        source_name=item.source_name,
        external_id=item.external_id,
        url=item.url,
        title=item.title,
        author=item.author,
        summary=item.summary,
        content=item.content,
        published_at=item.published_at,
        updated_at=item.updated_at,
        first_seen_at=item.first_seen_at,
        date_invented=item.date_invented,
        version=item.version,
        status=item.status,
        extra=item.extra,
    )
