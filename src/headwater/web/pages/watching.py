"""Watching a page without a feed: its repeating part is proposed, chosen by pointing, and shown as items."""

from dataclasses import asdict
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from headwater.collectors.base import read_config
from headwater.collectors.scraper import ScraperConfig
from headwater.errors import HeadwaterError, InputError, Text
from headwater.fetch.client import make_fetcher
from headwater.formats.pages.scrape import Selectors
from headwater.sources.adding import read_new_source
from headwater.sources.addresses import read_url, without_userinfo
from headwater.sources.watching import PROPOSALS, Choice, PageShelf, WatchedPage, choose, copy_of, numbered
from headwater.web.api.problems import Refusal
from headwater.web.pages.adding import add_sources, choices_for_new, told_added
from headwater.web.pages.frame import Action, InAction, InPage, Page
from headwater.web.policy import COPY_POLICY, FRAMING_POLICY

router = APIRouter()

PARTS = ("item", "title", "summary", "date", "link", "image", "next")
WATCHING = ("watch", "says", "number")
SHOWN_ITEMS = 10


@router.get("/sources/watch")
async def watch_page(
    page: InPage, url: str = "", proposal: Annotated[int, Query(ge=1, le=PROPOSALS)] = 1
) -> HTMLResponse:
    page.require("admin")
    if not url or not page.is_own:
        return await _show(page, url=url)
    try:
        watched = await _look(page, url)
        choice = await choose(watched, None)
        if proposal <= len(choice.proposals):
            choice = numbered(choice, proposal)
    except HeadwaterError as error:
        return await _show(page, url=url, problem=error.render(page.language))
    return await _show(page, url=url, watched=watched, choice=choice, proposal=proposal)


@router.get("/sources/watch/page")
async def copy_part(page: InPage, url: str) -> Response:
    """The copy of the page, for the frame in which its parts are chosen."""
    page.require("admin")
    if not page.is_own:
        raise Refusal(403, Text("previews are shown on this site's own pages only"))
    body = await copy_of(await _look(page, url))
    answer = await page.show("copy.html", body=body)
    answer.headers["Content-Security-Policy"] = COPY_POLICY
    return answer


@router.post("/sources/watch/items")
async def items_part(action: InAction) -> HTMLResponse:
    """The items that the selectors of the form give."""
    page = action.page
    page.require("admin")
    try:
        choice = await choose(await _look(page, action.text("url")), _read_selectors(action))
    except HeadwaterError as error:
        return await page.show("watch_items.html", choice=None, problem=error.render(page.language), shown=0)
    return await page.show("watch_items.html", choice=choice, problem=None, shown=SHOWN_ITEMS)


@router.post("/sources/watch")
async def watch(action: InAction) -> Response:
    """Show what the selectors give, or add the page as a source with them."""
    page = action.page
    page.require("admin")
    url = action.text("url")
    watched = None
    try:
        watched = await _look(page, url)
        selectors = _read_selectors(action)
        if action.text("what") == "add":
            return await _add(action, url, selectors)
        choice = await choose(watched, selectors)
    except HeadwaterError as error:
        written = {name: action.text(name) for name in (*PARTS, *WATCHING)}
        return await _show(
            page, url=url, watched=watched, problem=error.render(page.language), written=written, status=400
        )
    return await _show(page, url=url, watched=watched, choice=choice)


async def _add(action: Action, url: str, selectors: Selectors) -> Response:
    config: dict[str, Any] = {name: value for name, value in asdict(selectors).items() if value}
    if action.text("watch"):
        config = {"item": selectors.item, **_read_watch(action)}
    name, folder = action.text("name") or None, action.folder()[0] or None
    wanted = read_new_source(read_url(url), "web.scraper", config, name, folder)
    return told_added(action, await add_sources(action.page, [wanted], action.numbers("template")))


async def _look(page: Page, url: str) -> WatchedPage:
    settings, shelf = page.context.settings, cast("PageShelf", page.request.app.state.shelf)
    return await shelf.get(read_url(url), lambda: make_fetcher(settings))


def _read_watch(action: Action) -> dict[str, Any]:
    """What the form says of watching one part: what counts as news."""
    if not action.text("watch"):
        return {}
    says = [phrase for line in action.text("says").splitlines() if (phrase := line.strip())]
    number = {"number": True} if action.text("number") else {}
    return {"watch": True, **({"says": says} if says else {}), **number}


def _read_selectors(action: Action) -> Selectors:
    """The selectors of the form, checked as the config of the source will be."""
    written = {name: text for name in PARTS if (text := action.text(name))}
    if "item" not in written:
        raise InputError("say where the items are: point at one, or write a selector")
    config = read_config(ScraperConfig, {**written, **_read_watch(action)}, "web.scraper")
    return cast("Selectors", cast("ScraperConfig", config).selectors())


async def _show(
    page: Page,
    *,
    url: str,
    watched: WatchedPage | None = None,
    choice: Choice | None = None,
    problem: str | None = None,
    written: dict[str, Any] | None = None,
    proposal: int = 1,
    status: int = 200,
) -> HTMLResponse:
    selectors = written
    if selectors is None:
        selectors = asdict(choice.selectors) if choice and choice.selectors else dict.fromkeys(PARTS)
    title = choice.page.metadata.title if choice else None
    answer = await page.show(
        "watch.html",
        status=status,
        url=url,
        shown_url=without_userinfo(watched.url if watched else url),
        is_there=watched is not None,
        choice=choice,
        selectors={**dict.fromkeys(WATCHING, ""), **selectors},
        proposal=proposal,
        title=title or "",
        problem=problem,
        shown=SHOWN_ITEMS,
        **await choices_for_new(page),
    )
    answer.headers["Content-Security-Policy"] = FRAMING_POLICY
    return answer
