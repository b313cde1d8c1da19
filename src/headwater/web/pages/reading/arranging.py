"""`/read/feeds` and `/read/add`: what a person subscribes to, arranged in folders; new feeds by their address."""

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.datastructures import UploadFile

from headwater.collect.context import read_visit_context
from headwater.errors import HeadwaterError, InputError
from headwater.fetch.client import make_fetcher
from headwater.sources.catalogue import find_pack, pack_as_list, read_catalogue
from headwater.sources.importing.reading import read_export
from headwater.sources.lists import Imported
from headwater.sources.subscribing import export_for, import_for, subscribe_to_address
from headwater.store.people.folders import (
    add_folder,
    change_folder,
    folder_paths,
    list_folders,
    move_folder,
    remove_folder,
    with_subfolders,
)
from headwater.store.people.reading import count_by_folder
from headwater.store.people.subscriptions import (
    change_subscription,
    find_subscriptions,
    unsubscribe,
)
from headwater.web.api.subscriptions import OPML
from headwater.web.pages.adding import LARGEST_LIST_BYTES
from headwater.web.pages.frame import Action, InUserAction, InUserPage, Page
from headwater.web.pages.visitor import own_path

router = APIRouter()

LONGEST_ADDRESS = 2_000
LONGEST_SEARCH = 200
ON_A_PAGE = 50  # feeds, each with a choice of all folders
MOST_PAGES = 10_000
FEED_SCHEMES = ("web+feed", "feed")  # of links that are meant for a reader


@router.get("/read/feeds")
async def arrange(page: InUserPage) -> HTMLResponse:
    return await _show(page)


async def _show(
    page: Page, problem: str | None = None, report: Sequence[Imported] | None = None
) -> HTMLResponse:
    """Folders and a page of feeds: those that the address asks for."""
    store, user_id, asked = page.context.store, page.user.id, page.request.query_params
    tree = await store.read(list_folders, user_id)
    counted = await store.read(count_by_folder, user_id)
    number = min(_number(asked.get("page", "")) or 1, MOST_PAGES)
    folder_id, search = _number(asked.get("folder", "")), asked.get("search", "")[:LONGEST_SEARCH].strip()
    found = await store.read(
        find_subscriptions,
        user_id,
        search=search,
        folder_ids=None if folder_id is None else with_subfolders(tree, folder_id),
        limit=ON_A_PAGE + 1,
        offset=(number - 1) * ON_A_PAGE,
    )
    return await page.show(
        "read_feeds.html",
        status=200 if problem is None else 422,
        problem=problem,
        report=report,
        rejected=[each for each in report or () if each.outcome == "rejected"],
        folders=tree,
        paths=folder_paths(tree),
        feeds=found[:ON_A_PAGE],
        feed_count=sum(each.feeds for each in counted.values()),
        number_of_page=number,
        has_more=len(found) > ON_A_PAGE,
        folder_id=folder_id,
        search=search,
    )


@router.get("/read/feeds/export")
async def export(page: InUserPage) -> Response:
    """A person's subscriptions, as other readers take them."""
    return StreamingResponse(
        export_for(page.context.store, page.user, page.context.clock()),
        media_type=OPML,
        headers={"Content-Disposition": 'attachment; filename="headwater.opml"'},
    )


@router.post("/read/feeds/import")
async def import_(action: InUserAction) -> Response:
    """Subscribe to what an export of another reader lists, and bring what was read and starred there."""
    page = _editing(action)
    upload = action.form.get("file")
    data = await upload.read(LARGEST_LIST_BYTES + 1) if isinstance(upload, UploadFile) else b""

    def work() -> list[Imported]:
        return import_for(page.context.store, page.user, read_export(None, data), page.context.clock())

    try:
        if not data:
            raise InputError("choose an OPML file first")
        if len(data) > LARGEST_LIST_BYTES:
            raise InputError("the file is larger than {limit} bytes", limit=LARGEST_LIST_BYTES)
        report = await asyncio.to_thread(work)
    except HeadwaterError as error:
        return await _show(page, error.render(page.language))
    return await _show(page, report=report)


@router.post("/read/packs")
async def follow_pack(action: InUserAction) -> Response:
    """Subscribe to the feeds of a pack of the catalogue, in a folder of its name."""
    page = _editing(action)
    pack = find_pack(action.text("pack"))
    title = pack.title_in(page.language)
    store, now = page.context.store, page.context.clock()
    await asyncio.to_thread(import_for, store, page.user, pack_as_list(pack, title), now)
    told = page.t("You follow {name}.", name=title)
    return action.back("/progress" if page.visitor.allows("admin") else "/read?view=all", told)


@router.post("/read/feeds/{subscription_id}")
async def change_feed(action: InUserAction, subscription_id: int) -> Response:
    """Its title, folder and muting, as a form says them."""
    page = _editing(action)
    values = {
        "title": action.text("title") or None,
        "folder_id": _number(action.text("folder")),
        "is_muted": action.text("muted") == "yes",
    }
    return await _do(
        action, change_subscription, user_id=page.user.id, subscription_id=subscription_id, **values
    )


@router.post("/read/feeds/{subscription_id}/remove")
async def remove_feed(action: InUserAction, subscription_id: int) -> Response:
    page = _editing(action)
    return await _do(action, unsubscribe, page.user.id, subscription_id)


@router.post("/read/folders")
async def make_folder(action: InUserAction) -> Response:
    page = _editing(action)
    return await _do(action, add_folder, page.user.id, action.text("name"), _number(action.text("parent")))


@router.post("/read/folders/{folder_id}")
async def edit_folder(action: InUserAction, folder_id: int) -> Response:
    """Its name, and the folder that it is in."""
    page = _editing(action)

    def change(connection: Any) -> None:
        change_folder(connection, page.user.id, folder_id, name=action.text("name"))
        move_folder(connection, page.user.id, folder_id, _number(action.text("parent")))

    return await _do(action, change)


@router.post("/read/folders/{folder_id}/remove")
async def delete_folder(action: InUserAction, folder_id: int) -> Response:
    page = _editing(action)
    return await _do(action, remove_folder, page.user.id, folder_id)


async def _do(action: InUserAction, work: Any, *args: Any, **values: Any) -> Response:
    """Do it and show the same part of the page again, or say what is wrong."""
    page = action.page
    try:
        await page.context.store.write(work, *args, **values)
    except InputError as error:
        return await _show(page, error.render(page.language))
    return RedirectResponse(own_path(action.text("back"), "/read/feeds"), status_code=303)


@router.get("/read/add")
async def add(page: InUserPage, url: str = "") -> HTMLResponse:
    return await _show_adding(page, url)


@router.post("/read/add")
async def subscribe(action: InUserAction) -> Response:
    """Subscribe to what is at an address: a feed, or a page that names one."""
    page = _editing(action)
    url, context = feed_address(action.text("url")), page.context
    try:
        async with make_fetcher(context.settings) as fetcher:
            visit = await read_visit_context(context.store, context.settings, fetcher, clock=context.clock)
            done = await subscribe_to_address(page.user, url, visit, folder_id=_number(action.text("folder")))
    except HeadwaterError as error:
        return await _show_adding(page, url, error.render(page.language))
    told = page.t("You follow {name}.", name=done.subscription.title)
    return action.back(f"/read?feed={done.subscription.id}&view=all", told)


async def _show_adding(page: Page, url: str, problem: str | None = None) -> HTMLResponse:
    tree = await page.context.store.read(list_folders, page.user.id)
    return await page.show(
        "read_add.html",
        status=200 if problem is None else 422,
        url=feed_address(url),
        problem=problem,
        folders=tree,
        paths=folder_paths(tree),
        site=site_of(page),
        packs=read_catalogue(),
    )


@router.get("/subscribe")
async def subscribe_to(page: InUserPage, url: str = "") -> Response:
    """Where links of the kind web+feed: lead, and the bookmarklet."""
    return await _show_adding(page, url)


@router.get("/share")
async def share(page: InUserPage, title: str = "", text: str = "", url: str = "") -> Response:
    """What another app shares with this one: an address, to keep or to follow."""
    found = next((word for word in f"{url} {text}".split() if word.startswith(("http://", "https://"))), "")
    return await page.show("share.html", url=found[:LONGEST_ADDRESS], title=title[:1_000])


def feed_address(text: str) -> str:
    """The web address in a link that is meant for readers: web+feed://host/feed, feed:https://host/feed."""
    text = text.strip()[:LONGEST_ADDRESS]
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() in FEED_SCHEMES:
        return rest if urlsplit(rest).scheme in ("http", "https") else f"https:{rest}"
    return text


def site_of(page: Page) -> str:
    """The address of this site."""
    return (page.context.settings.public_url or str(page.request.base_url)).rstrip("/")


def _editing(action: Action) -> Page:
    action.page.require("edit")
    return action.page


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
