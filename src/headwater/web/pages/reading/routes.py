"""`/read`: the list beside the article, its parts for the browser, and the forms that mark entries."""

import re
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response
from sqlalchemy import Connection

from headwater.errors import HeadwaterError, InputError, NotFoundError
from headwater.model import User
from headwater.store.people.entries import get_entry
from headwater.store.people.marks import add_tags, remove_tags, set_read_later, set_starred
from headwater.store.people.preferences import (
    CHOICES,
    Preferences,
    change_preferences,
    known_preferences,
    list_folder_views,
)
from headwater.store.people.reading import mark_all_read, mark_read
from headwater.store.people.saved_searches import add_saved_search, remove_saved_search
from headwater.store.people.subscriptions import Subscription, get_subscription, heard_sources
from headwater.store.reading.search import index_new_items
from headwater.threads import showing
from headwater.web.api.entries import later_days
from headwater.web.api.paging import Cursor, decode_cursor, split_page
from headwater.web.pages.display import CHOICES as SHOWN_BY_COOKIES
from headwater.web.pages.display import COOKIE_START
from headwater.web.pages.frame import Action, InUserAction, InUserPage, Page
from headwater.web.pages.items import INDEXED_AT_ONCE
from headwater.web.pages.reading.article import picture_addresses, read_article
from headwater.web.pages.reading.filters import Wanted, read_wanted, wanted_of
from headwater.web.pages.reading.highlighting import hits_of
from headwater.web.pages.reading.listing import (
    MOST_UNDONE,
    ON_A_PAGE,
    Found,
    count_fresh,
    day_names,
    find_entries,
    make_rows,
    sources_of,
    unread_ids,
)
from headwater.web.pages.reading.tree import Tree, read_counts, read_tree
from headwater.web.pages.visitor import own_path

router = APIRouter(prefix="/read")

# Pictures come from this site alone; so do sound and video.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
MOST_TAGS = 100
EntryNumber = Annotated[int | None, Query(ge=1, le=2**63 - 1)]


@router.get("")
async def read_page(
    page: InUserPage, item: EntryNumber = None, text: str = "", cursor: Cursor = None
) -> HTMLResponse:
    """The whole page: tree, list and, with `item`, the article."""
    wanted = await _wanted(page)
    feed = await _feed(page, wanted)
    tree = await page.context.store.read(
        read_tree, page.user.id, feed.folder_id if feed else wanted.folder_id
    )
    listed = await _list(page, wanted, cursor)
    opened = None
    if item is not None:
        try:
            opened = await read_article(page, item, text, wanted.search or "")
        except NotFoundError as error:
            listed["problem"] = error.render(page.language)
    response = await page.show(
        "read.html",
        saved=next((each for each in tree.searches if wanted_of(each.filter) == wanted), None),
        wanted_of=wanted_of,
        tree=tree,
        title=_title(page, wanted, tree, feed),
        opened=opened,
        **await _shared(page, wanted),
        **listed,
    )
    response.headers["Content-Security-Policy"] = POLICY
    return response


@router.get("/rows")
async def rows(page: InUserPage, cursor: Cursor = None) -> HTMLResponse:
    """The next entries of a list."""
    wanted = await _wanted(page)
    return await page.show(
        "read_rows.html",
        opened=None,
        **await _shared(page, wanted),
        **await _list(page, wanted, cursor),
    )


@router.get("/items/{entry_id}")
async def article(page: InUserPage, entry_id: int, text: str = "") -> HTMLResponse:
    """The article alone, which the list shows beside itself."""
    wanted = await _wanted(page)
    opened = await read_article(page, entry_id, text, wanted.search or "")
    return await page.show(
        "read_article.html", opened=opened, wanted=wanted, rows=[], addresses=opened["addresses"]
    )


@router.get("/counts")
async def counts(page: InUserPage, since: float = 0.0) -> JSONResponse:
    """The numbers in the tree, and how many entries the list has that are newer than `since`."""
    wanted, user_id = await _wanted(page), page.user.id
    feed = await _feed(page, wanted)
    shown = feed.folder_id if feed else wanted.folder_id

    def read(connection: Connection) -> dict[str, Any]:
        fresh = count_fresh(connection, user_id, wanted, since) if since > 0 else 0
        return {**read_counts(connection, user_id, shown), "fresh": fresh}

    answer = JSONResponse(await page.context.store.read(read))
    answer.headers["Cache-Control"] = "no-store"
    return answer


@router.post("/entries/{entry_id}")
async def mark(action: InUserAction, entry_id: int) -> Response:
    """Mark an entry by a form: read or unread, starred, put aside, tagged."""
    page = action.page
    page.require("edit")
    await page.context.store.write(_mark, page.user, entry_id, action, page.context.clock())
    return action.back(own_path(action.text("back"), "/read"))


def _mark(connection: Connection, user: User, entry_id: int, action: Action, now: float) -> None:
    state = get_entry(connection, user.id, entry_id).state
    if (is_read := action.text("is_read")) in ("yes", "no"):
        mark_read(connection, user.id, [entry_id], is_read == "yes")
    if (is_starred := action.text("is_starred")) in ("yes", "no"):
        set_starred(connection, user.id, [entry_id], is_starred == "yes", now)
    if (is_later := action.text("read_later")) in ("yes", "no"):
        days = later_days(user)
        set_read_later(
            connection,
            user.id,
            [entry_id],
            None if days == "never" else float(days),
            now,
            is_later=is_later == "yes",
        )
    if "tags" in action.form:
        tags = tags_of(action.text("tags"))
        remove_tags(connection, user.id, [entry_id], set(state.tags) - set(tags))
        add_tags(connection, user.id, [entry_id], tags, now)


def tags_of(text: str) -> list[str]:
    """The tags in a field, separated by commas."""
    tags = [tag.strip() for tag in text.replace("，", ",").replace("、", ",").split(",") if tag.strip()]
    if len(tags) > MOST_TAGS:
        raise InputError("an entry has at most {limit} tags", limit=MOST_TAGS)
    return tags


@router.post("/all-read")
async def all_read(action: InUserAction) -> Response:
    """Mark the list as read, up to the time at which it was shown. Scripts get the entries, to undo it."""
    page = action.page
    page.require("edit")
    wanted = await _wanted(page)
    until = _moment(action.text("until")) or page.context.clock()
    marked, ids = await page.context.store.write(_mark_all, page.user.id, wanted, until)
    if action.page.request.headers.get("accept") == "application/json":
        return JSONResponse({"marked": marked, "entry_ids": ids if marked <= MOST_UNDONE else []})
    told = page.t("{count} {count:entry|entries} marked as read", count=marked)
    return action.back(wanted.address(), told)


def _moment(text: str) -> float | None:
    """A time in seconds since 1970, as a form has it."""
    return float(text) if re.fullmatch(r"\d{1,11}(\.\d{1,6})?", text) else None


def _mark_all(connection: Connection, user_id: int, wanted: Wanted, until: float) -> tuple[int, list[int]]:
    ids = unread_ids(connection, user_id, wanted, until)
    if wanted.tag or wanted.search or wanted.view in ("starred", "later"):
        mark_read(connection, user_id, ids, True)
        return len(ids), ids
    chosen = sources_of(connection, user_id, wanted)
    if chosen is None:
        chosen = heard_sources(connection, user_id)
    return mark_all_read(connection, user_id, chosen, until=until), ids


@router.post("/preferences")
async def choose(action: InUserAction) -> Response:
    """Change preferences by a form; what it does not name stays as it is."""
    page = action.page
    page.require("edit")
    changes: dict[str, Any] = {
        name: _as_chosen(name, action.text(name)) for name in CHOICES if name in action.form
    }
    await page.context.store.write(change_preferences, page.user.id, changes)
    response = action.back(own_path(action.text("back"), "/read"))
    for name in SHOWN_BY_COOKIES:
        if name in changes:
            response.delete_cookie(COOKIE_START + name)  # else this browser's choice would hide the new one
    return response


def _as_chosen(name: str, text: str) -> Any:
    """A form's text as the value of a preference."""
    texts = {
        ("yes" if each is True else "no" if each is False else str(each)): each for each in CHOICES[name]
    }
    return texts.get(text, text)


@router.post("/searches")
async def save_search(action: InUserAction) -> Response:
    """Keep the list that is shown under a name."""
    page = action.page
    page.require("edit")
    wanted = await _wanted(page)
    try:
        await page.context.store.write(
            add_saved_search, page.user.id, action.text("name"), wanted.as_saved(), page.context.clock()
        )
    except InputError as error:
        return action.back(wanted.address(), error.render(page.language), bad=True)
    return action.back(wanted.address(), page.t("The search is saved."))


@router.post("/searches/{search_id}/remove")
async def forget_search(action: InUserAction, search_id: int) -> Response:
    page = action.page
    page.require("edit")
    await page.context.store.write(remove_saved_search, page.user.id, search_id)
    return action.back(own_path(action.text("back"), "/read"), page.t("The search is deleted."))


async def _wanted(page: Page) -> Wanted:
    """The list that the address asks for, as the person likes it, or likes it in that folder."""
    wanted = read_wanted(page.request, known_preferences(page.user.preferences))
    return wanted if wanted.folder_id is None else read_wanted(page.request, await _preferences(page, wanted))


async def _list(page: Page, wanted: Wanted, cursor: str | None) -> dict[str, Any]:
    """The rows of one page of the list."""
    context, problem, found = page.context, None, Found([], [], {})
    if wanted.search:
        await index_new_items(context.store, context.clock(), INDEXED_AT_ONCE)
    after = decode_cursor(cursor, float, int)
    try:
        found = await context.store.read(
            find_entries, page.user.id, wanted, None if after is None else (after[0], after[1])
        )
    except HeadwaterError as error:  # a search for nothing, a folder that is gone
        problem = error.render(page.language)
    _, following = split_page(found.places, ON_A_PAGE, lambda place: (place.item_at, place.id))
    addresses = await picture_addresses(page)
    return {
        "rows": await showing.run(make_rows, found.entries, addresses, hits_of(wanted.search)),
        "days": day_names(found.entries, page),
        "following": following,
        "icons": found.icons,
        "problem": problem,
        "addresses": addresses,
        "shown_at": context.clock(),
    }


async def _feed(page: Page, wanted: Wanted) -> Subscription | None:
    """The feed whose list is shown; None: of several, or of one that is gone, which the list says."""
    if wanted.feed_id is None:
        return None
    try:
        return await page.context.store.read(get_subscription, page.user.id, wanted.feed_id)
    except NotFoundError:
        return None


async def _shared(page: Page, wanted: Wanted) -> dict[str, Any]:
    """What the page and its parts both need."""
    return {
        "wanted": wanted,
        "reading": await _preferences(page, wanted),
        "here": wanted.address(),
    }


async def _preferences(page: Page, wanted: Wanted) -> Preferences:
    """How the person reads this list."""
    preferences = known_preferences(page.user.preferences)
    if wanted.folder_id is None:
        return preferences
    views = await page.context.store.read(list_folder_views, page.user.id)
    return replace(preferences, **views.get(wanted.folder_id, {}))


def _title(page: Page, wanted: Wanted, tree: Tree, feed: Subscription | None) -> str:
    """What stands above the list."""
    if wanted.feed_id is not None:
        return feed.title if feed else ""
    if wanted.folder_id is not None:
        return next((each.name for each in tree.folders if each.id == wanted.folder_id), "")
    if wanted.search:
        return page.t("Found")
    names = {"unread": "Unread", "starred": "Starred", "later": "Read later", "all": "All items"}
    return wanted.tag or page.t(names[wanted.view])
