"""`/bookmarks`: pages and items that a person keeps, with their copies of the text."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from headwater.errors import InputError
from headwater.formats.html import sanitize_html
from headwater.formats.links import resolve_html
from headwater.markup import bound_html, visible_text
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
from headwater.threads import showing
from headwater.web.pages.frame import InUserAction, InUserPage, Number, Page
from headwater.web.pages.items import guess_language
from headwater.web.pages.reading.article import picture_addresses
from headwater.web.pages.reading.routes import POLICY, tags_of
from headwater.web.pages.visitor import own_path
from headwater.web.pictures import PictureAddresses

router = APIRouter(prefix="/bookmarks")

ON_A_PAGE = 50


@router.get("")
async def bookmarks(page: InUserPage, search: str = "", tag: str = "", before: Number = "") -> HTMLResponse:
    return await _show(page, search[:500], tag[:200], int(before) if before else None)


async def _show(
    page: Page, search: str = "", tag: str = "", before: int | None = None, problem: str | None = None
) -> HTMLResponse:
    found = await page.context.store.read(
        list_bookmarks,
        page.user.id,
        tag=tag or None,
        search=search.strip() or None,
        before_id=before,
        limit=ON_A_PAGE,
    )
    shown = found[:ON_A_PAGE]
    response = await page.show(
        "bookmarks.html",
        status=200 if problem is None else 422,
        bookmarks=shown,
        following=shown[-1].id if len(found) > ON_A_PAGE else None,
        search=search,
        tag=tag,
        problem=problem,
        addresses=await picture_addresses(page),
        language_of=guess_language,
    )
    response.headers["Content-Security-Policy"] = POLICY
    return response


@router.post("")
async def add(action: InUserAction) -> Response:
    """Keep an item, or an address whose page is fetched in the background."""
    page = action.page
    page.require("edit")
    store, now = page.context.store, page.context.clock()
    back = own_path(action.text("back"), "/bookmarks")
    try:
        if items := action.numbers("item"):
            await store.write(bookmark_item, page.user.id, items[0], now)
        else:
            url, _ = split_credentials(read_url(action.text("url")))
            given: dict[str, Any] = {
                "title": action.text("title") or None,
                "tags": tags_of(action.text("tags")),
            }
            await store.write(add_bookmark, page.user.id, url, now, **given)
    except InputError as error:
        if back != "/bookmarks":
            return action.back(back, error.render(page.language), bad=True)
        return await _show(page, problem=error.render(page.language))
    return action.back(back, page.t("The bookmark is kept."))


@router.get("/{bookmark_id}")
async def bookmark(page: InUserPage, bookmark_id: int) -> HTMLResponse:
    found = await page.context.store.read(get_bookmark, page.user.id, bookmark_id)
    addresses = await picture_addresses(page)
    response = await page.show(
        "bookmark.html",
        bookmark=found,
        body=await showing.run(_body, found, addresses),
        language=guess_language(found.title or found.excerpt or ""),
        addresses=addresses,
    )
    response.headers["Content-Security-Policy"] = POLICY
    return response


def _body(found: Bookmark, addresses: PictureAddresses) -> Markup:
    raw, _ = bound_html(found.content or "")
    body = sanitize_html(resolve_html(raw, found.url))
    if not visible_text(body, 10).strip() and "<img" not in body:
        return Markup("")
    return Markup(addresses.in_html(body))  # noqa: S704 - sanitised


@router.post("/{bookmark_id}")
async def change(action: InUserAction, bookmark_id: int) -> Response:
    page = action.page
    page.require("edit")
    values: dict[str, Any] = {
        "title": action.text("title") or None,
        "note": action.text("note") or None,
        "tags": tags_of(action.text("tags")),
    }
    await page.context.store.write(change_bookmark, page.user.id, bookmark_id, page.context.clock(), **values)
    return action.back(f"/bookmarks/{bookmark_id}", page.t("saved"))


@router.post("/{bookmark_id}/remove")
async def remove(action: InUserAction, bookmark_id: int) -> Response:
    page = action.page
    page.require("edit")
    await page.context.store.write(remove_bookmark, page.user.id, bookmark_id)
    return action.back("/bookmarks", page.t("The bookmark is deleted."))
