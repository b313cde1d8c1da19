"""Watching a page without a feed: its repeating part is proposed, chosen by pointing, and shown as items."""

from dataclasses import asdict
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from headwater.collectors.base import read_config
from headwater.collectors.scraper import ScraperConfig
from headwater.errors import HeadwaterError, InputError, Text
from headwater.fetch.client import make_fetcher
from headwater.sources.adding import read_new_source
from headwater.sources.addresses import read_url, without_userinfo
from headwater.sources.watching import PROPOSALS, Choice, PageShelf, WatchedPage, choose, copy_of, numbered
from headwater.web.api.problems import Refusal
from headwater.web.pages.adding import add_sources, choices_for_new, told_added
from headwater.web.pages.frame import Action, InAction, InPage, Page
from headwater.web.policy import COPY_POLICY, FRAMING_POLICY

router = APIRouter()

PARTS = ("item", "title", "summary", "date", "link", "image", "next")
FIELDS = (*PARTS, "watch", "watched", "says", "number", "below", "above", "browser")
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
async def copy_part(page: InPage, url: str, browser: bool = False) -> Response:
    """The copy of the page, for the frame in which its parts are chosen."""
    page.require("admin")
    if not page.is_own:
        raise Refusal(403, Text("previews are shown on this site's own pages only"))
    body = await copy_of(await _look(page, url, browser=browser))
    answer = await page.show("copy.html", body=body)
    answer.headers["Content-Security-Policy"] = COPY_POLICY
    return answer


@router.post("/sources/watch/items")
async def items_part(action: InAction) -> HTMLResponse:
    """The items that the form gives."""
    page = action.page
    page.require("admin")
    try:
        config = _read_config(action)
        choice = await choose(await _look(page, action.text("url"), browser=config.browser), config)
    except HeadwaterError as error:
        return await page.show("watch_items.html", choice=None, problem=error.render(page.language), shown=0)
    return await page.show("watch_items.html", choice=choice, problem=None, shown=SHOWN_ITEMS)


@router.post("/sources/watch")
async def watch(action: InAction) -> Response:
    """Show what the form gives, or add the page as a source with it."""
    page = action.page
    page.require("admin")
    url = action.text("url")
    watched = None
    written = {name: action.text(name) for name in FIELDS}
    try:
        watched = await _look(page, url, browser=bool(written["browser"]))
        config = _read_config(action)
        if action.text("what") == "add":
            return await _add(action, url, config)
        choice = await choose(watched, config)
    except HeadwaterError as error:
        return await _show(
            page, url=url, watched=watched, problem=error.render(page.language), written=written, status=400
        )
    return await _show(page, url=url, watched=watched, choice=choice, written=written)


async def _add(action: Action, url: str, config: ScraperConfig) -> Response:
    name, folder = action.text("name") or None, action.folder()[0] or None
    values = config.model_dump(mode="json", exclude_defaults=True)
    wanted = read_new_source(read_url(url), "web.scraper", values, name, folder)
    return told_added(action, await add_sources(action.page, [wanted], action.numbers("template")))


async def _look(page: Page, url: str, *, browser: bool = False) -> WatchedPage:
    settings, shelf = page.context.settings, cast("PageShelf", page.request.app.state.shelf)
    return await shelf.get(read_url(url), lambda: make_fetcher(settings), browser=browser)


def _read_config(action: Action) -> ScraperConfig:
    """What the form says, checked as the config of a source: a list of items, or a page that is watched."""
    values: dict[str, Any]
    if action.text("watch"):
        values = {
            "watch": True,
            "item": action.text("watched") or None,
            "says": [phrase for line in action.text("says").splitlines() if (phrase := line.strip())],
            "number": bool(action.text("number")),
            "below": action.decimal("below"),
            "above": action.decimal("above"),
        }
    else:
        values = {name: text for name in PARTS if (text := action.text(name))}
        if "item" not in values:
            raise InputError("say where the items are: point at one, or write a selector")
    values["browser"] = bool(action.text("browser"))
    return cast("ScraperConfig", read_config(ScraperConfig, values, "web.scraper"))


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
    form = dict.fromkeys(FIELDS) | (written or {})
    if written is None and choice and choice.selectors:
        form |= asdict(choice.selectors)
    elif written is None:
        form["watch"] = "1"
    title = choice.page.metadata.title if choice else None
    answer = await page.show(
        "watch.html",
        status=status,
        url=url,
        shown_url=without_userinfo(watched.url if watched else url),
        is_there=watched is not None,
        choice=choice,
        form=form,
        proposal=proposal,
        title=title or "",
        problem=problem,
        shown=SHOWN_ITEMS,
        **await choices_for_new(page),
    )
    answer.headers["Content-Security-Policy"] = FRAMING_POLICY
    return answer
