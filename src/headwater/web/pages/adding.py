"""Adding sources: paste an address and choose among what was found, or bring a list of another reader."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import UploadFile

from headwater.collect.context import read_visit_context
from headwater.collectors.recognition import rules_from
from headwater.collectors.secrets import refers
from headwater.collectors.types import collector_of, source_types
from headwater.errors import FailureKind, HeadwaterError, InputError, Text, VisitError
from headwater.fetch.client import Fetcher, make_fetcher
from headwater.formats.feeds.feed import to_item
from headwater.formats.pages.rules import FEED
from headwater.model import Item, Source
from headwater.sources.adding import NewSource, add_what_is_there, first_visit, read_new_source
from headwater.sources.addresses import read_url
from headwater.sources.catalogue import read_catalogue
from headwater.sources.discovery import FoundFeed, discover, mark_subscribed, preview
from headwater.sources.lists import import_opml
from headwater.store.pipelines.templates import list_templates
from headwater.store.reading.listing import list_folders
from headwater.web.api.problems import Refusal
from headwater.web.pages.frame import Action, InAction, InPage, Page
from headwater.web.pages.live import read_progress
from headwater.web.pages.pipelines import attach_to
from headwater.web.pages.sources import read_config_text

router = APIRouter()

PREVIEWED_ITEMS = 3
LARGEST_LIST_BYTES = 10_000_000
MOST_ADDED = 20  # feeds of one page


@router.get("/sources/add")
async def add_page(page: InPage, url: str = "", type: str = "") -> HTMLResponse:
    """Paste any address: its feeds are found and shown with some of their items before anything is stored.

    A link on another site fills in the address; the person has to press the button.
    """
    page.require("admin")
    if not url or not page.is_own:
        return await _show(page, url=url, type=type)
    try:
        found = await _discover(page, url)
    except HeadwaterError as error:
        is_page = isinstance(error, VisitError) and error.kind is FailureKind.NOT_A_FEED
        problem = None if is_page else error.render(page.language)
        return await _show(page, url=url, type=type, problem=problem, watch_url=url if is_page else None)
    found = await page.context.store.read(mark_subscribed, found)
    return await _show(page, url=url, type=type, found=found)


async def _discover(page: Page, text: str) -> list[FoundFeed]:
    settings = page.context.settings
    rules = rules_from(settings.address_rules)
    async with make_fetcher(settings) as fetcher:
        seconds = settings.visit_timeout_seconds
        return await discover(text, fetcher, seconds, rules=rules, language=page.language)


@router.get("/sources/preview")
async def preview_part(page: InPage, url: str, type: str = "", config: str = "") -> HTMLResponse:
    """What is in a feed, or in a source of another type, that was found, before it is added."""
    page.require("admin")
    if not page.is_own:
        raise Refusal(403, Text("previews are shown on this site's own pages only"))
    items: Sequence[Item] = ()
    problem = None
    try:
        async with make_fetcher(page.context.settings) as fetcher:
            items = await _preview(page, fetcher, url, type, config)
    except HeadwaterError as error:
        problem = error.render(page.language)
    return await page.show("preview.html", items=items, problem=problem)


async def _preview(page: Page, fetcher: Fetcher, url: str, type: str, config: str) -> Sequence[Item]:
    """The first items of a feed or of a source of another type, which is visited without any secret."""
    seconds = page.context.settings.visit_timeout_seconds
    if type in ("", FEED):
        feed = await preview(read_url(url), fetcher, PREVIEWED_ITEMS, seconds)
        return [to_item(entry) for entry in feed.entries]
    wanted = read_new_source(url, type, read_config_text(config), may_refer=False)
    collector = collector_of(wanted.type.name)
    if collector is None or refers(wanted.config):
        return ()
    result = await first_visit(wanted, collector, fetcher, {}, seconds)
    return result.items[:PREVIEWED_ITEMS]


@router.post("/sources/add")
async def add(action: InAction) -> Response:
    """Add the feeds that were ticked, or one source by its address and type."""
    page = action.page
    page.require("admin")
    try:
        wanted = _read_wanted(action)
        added = await add_sources(page, wanted, action.numbers("template"))
    except HeadwaterError as error:
        url = action.text("page") or action.text("url")
        problem = error.render(page.language)
        return await _show(page, url=url, type=action.text("type"), problem=problem, status=400)
    return told_added(action, added)


def _read_wanted(action: Action) -> list[NewSource]:
    folder = action.folder()[0] or None
    if feeds := action.texts("feed")[:MOST_ADDED]:
        return [_read_offer(feed, folder) for feed in feeds]
    return [
        read_new_source(
            action.text("url") or None,
            action.text("type") or None,
            read_config_text(action.text("config")),
            action.text("name") or None,
            folder,
            rules=rules_from(action.page.context.settings.address_rules),
        )
    ]


def _read_offer(text: str, folder: str | None) -> NewSource:
    """A feed's address, or a source of another type as the page wrote it: its url, type and config."""
    if not text.startswith("{"):
        return read_new_source(text, folder=folder)
    offer = read_config_text(text)
    return read_new_source(str(offer.get("url")), str(offer.get("type")), offer.get("config"), folder=folder)


async def add_sources(page: Page, wanted: list[NewSource], templates: list[int]) -> list[Source]:
    """Visit and store the sources, and attach them to pipelines. The first problem is raised when none was added."""
    context = page.context
    async with make_fetcher(context.settings) as fetcher:
        visit_context = await read_visit_context(context.store, context.settings, fetcher)
        results = await asyncio.gather(
            *(add_what_is_there(each, visit_context) for each in wanted), return_exceptions=True
        )
    added = [each for each in results if isinstance(each, Source)]
    for problem in results:
        if isinstance(problem, BaseException) and (not added or not isinstance(problem, HeadwaterError)):
            raise problem
    for template_id in templates:
        await context.store.write(attach_to, [each.id for each in added], template_id, context.clock())
    return added


def told_added(action: Action, added: list[Source]) -> Response:
    page = action.page
    if len(added) == 1:
        return action.back(f"/sources/{added[0].id}", page.t("added source {name}", name=added[0].name))
    return action.back("/sources", page.t("added {count} {count:source|sources}", count=len(added)))


@router.post("/sources/import")
async def import_(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    upload = action.form.get("file")
    if not isinstance(upload, UploadFile):
        raise InputError("choose an OPML file first")
    data = await upload.read(LARGEST_LIST_BYTES + 1)
    if len(data) > LARGEST_LIST_BYTES:
        raise InputError("the file is larger than {limit} bytes", limit=LARGEST_LIST_BYTES)
    report = await asyncio.to_thread(import_opml, page.context.store, data, page.context.clock())
    return await page.show("imported.html", report=report, **await read_progress(page))


async def _show(
    page: Page,
    *,
    url: str,
    type: str,
    found: list[FoundFeed] | None = None,
    problem: str | None = None,
    watch_url: str | None = None,
    status: int = 200,
) -> HTMLResponse:
    return await page.show(
        "add.html",
        status=status,
        url=url,
        type=type,
        types=[each.name for each in source_types()],
        packs=read_catalogue(),
        found=found or [],
        ticked=_first_new(found or []),
        problem=problem,
        watch_url=watch_url,
        **await choices_for_new(page),
    )


def _first_new(found: list[FoundFeed]) -> int | None:
    """The place of what is ticked for a start: the best that works and is not collected yet."""
    new = (place for place, each in enumerate(found) if each.source_id is None and each.problem is None)
    return next(new, None)


async def choices_for_new(page: Page) -> dict[str, Any]:
    """Folders and pipelines that a new source can be put into."""
    store = page.context.store
    return {"folders": await store.read(list_folders), "templates": await store.read(list_templates)}
