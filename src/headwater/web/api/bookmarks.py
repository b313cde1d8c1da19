"""`/api/bookmarks…`: items and any addresses that you keep."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.errors import InputError
from headwater.sources.addresses import read_url, split_credentials
from headwater.store.people.bookmarks import (
    Bookmark,
    add_bookmark,
    bookmark_item,
    change_bookmark,
    get_bookmark,
    list_bookmarks,
    remove_bookmark,
)
from headwater.views.reading import BookmarkView, WholeBookmarkView, bookmark_json, whole_bookmark_json
from headwater.views.shape import Json
from headwater.web.api.auth import InUser
from headwater.web.api.paging import Cursor, Limit, Next, answer_page, decode_number
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged

router = APIRouter(prefix="/bookmarks", tags=["reading"])

BookmarkId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The bookmark's number.")]
TagNames = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=100)]


class BookmarkPage(BaseModel):
    bookmarks: list[BookmarkView]
    next: Next


class NewBookmark(BaseModel):
    """What to keep: an entry by its number, or any address."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"url": "https://example.org/page", "tags": ["later"]}}
    )

    url: Annotated[str, Field(max_length=2_000)] | None = None
    item_id: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    title: Annotated[str, Field(max_length=1_000)] | None = Field(
        default=None, description="Your title; null: the page's."
    )
    note: Annotated[str, Field(max_length=100_000)] | None = None
    tags: TagNames = Field(default_factory=list)


class BookmarkChanges(BaseModel):
    """What to change; what is left out stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"note": "Read again.", "tags": ["later"]}}
    )

    title: Annotated[str, Field(max_length=1_000)] | None = None
    note: Annotated[str, Field(max_length=100_000)] | None = None
    tags: TagNames = Field(default_factory=list)


@router.get(
    "",
    response_model=BookmarkPage,
    responses={**problem_responses(400), **NOT_MODIFIED},
    summary="List bookmarks",
)
async def list_(
    request: Request,
    context: InContext,
    user: InUser,
    limit: Limit = 50,
    cursor: Cursor = None,
    tag: Annotated[str | None, Query(max_length=200, description="With this tag.")] = None,
    search: Annotated[str | None, Query(max_length=500, description="With these words.")] = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Your bookmarks, newest first."""
    found = await context.store.read(
        list_bookmarks, user.id, tag=tag, search=search, before_id=decode_number(cursor), limit=limit
    )
    return answer_page(request, "bookmarks", found, limit, lambda each: (each.id,), bookmark_json)


@router.post(
    "",
    status_code=201,
    response_model=WholeBookmarkView,
    responses=problem_responses(400, 404, 409),
    summary="Bookmark a page or an entry",
)
async def add(context: InContext, user: InUser, wanted: NewBookmark) -> Json:
    """Keep an entry with its text, or an address, whose page is fetched in the background."""
    given: dict[str, Any] = {"title": wanted.title, "note": wanted.note, "tags": wanted.tags}
    made: Bookmark
    if wanted.item_id is not None and wanted.url is None:
        made = await context.store.write(bookmark_item, user.id, wanted.item_id, context.clock(), **given)
    elif wanted.url is not None and wanted.item_id is None:
        url, _ = split_credentials(read_url(wanted.url))
        made = await context.store.write(add_bookmark, user.id, url, context.clock(), **given)
    else:
        raise InputError("a bookmark takes either url or item_id")
    return whole_bookmark_json(made)


@router.get(
    "/{bookmark_id}",
    response_model=WholeBookmarkView,
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="One bookmark",
)
async def one(
    request: Request,
    context: InContext,
    user: InUser,
    bookmark_id: BookmarkId,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """A bookmark with its copy of the text."""
    found = await context.store.read(get_bookmark, user.id, bookmark_id)
    return answer_tagged(request, whole_bookmark_json(found))


@router.patch(
    "/{bookmark_id}",
    response_model=WholeBookmarkView,
    responses=problem_responses(400, 404),
    summary="Change a bookmark",
)
async def change(context: InContext, user: InUser, bookmark_id: BookmarkId, changes: BookmarkChanges) -> Json:
    """Change its title, note or tags."""
    values: dict[str, Any] = changes.model_dump(include=changes.model_fields_set)
    return whole_bookmark_json(
        await context.store.write(change_bookmark, user.id, bookmark_id, context.clock(), **values)
    )


@router.delete(
    "/{bookmark_id}",
    status_code=204,
    responses=problem_responses(404),
    summary="Delete a bookmark",
)
async def remove(context: InContext, user: InUser, bookmark_id: BookmarkId) -> None:
    """Delete a bookmark with its copy of the text."""
    await context.store.write(remove_bookmark, user.id, bookmark_id)
