"""`web.scraper`: the items of a web page, by the site's own feed where it has one, else by CSS selectors.

With selectors the page is read as they say, and older pages behind its `next` link only while nothing on them is
known. Without, the page's feed is looked for once and remembered, and asked instead of the page from then on. The
site's robots.txt is obeyed for pages; a feed is published for programs and needs no asking.

A page that shows nothing where it showed several items has most likely changed: that is a failure, not silence.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any, Self, TypeVar

import orjson
from pydantic import Field, field_validator, model_validator

from headwater.collectors.base import Collector, Errand, Harvest, SourceConfig, request_to
from headwater.errors import FailureKind, FetchError, ParseError, VisitError
from headwater.fetch.message import NO_VALIDATORS, Response
from headwater.fetch.robots import Told, site_of
from headwater.formats.discover import find_feeds, guess_feeds
from headwater.formats.feed import parse, to_item
from headwater.formats.scrape import ScrapedPage, Selectors, find_selector_fault, is_costly, scrape
from headwater.model import Item

ACCEPT_PAGE = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"
MAX_FEEDS = 8  # places tried for a feed
FEW_ITEMS = 2  # a page that had no more than that may well have none today
BIG_BYTES = 32_000
MOST_REMEMBERED_CHARACTERS = 50_000  # of a robots.txt; a longer one is asked for again

T = TypeVar("T")


class ScraperConfig(SourceConfig):
    item: str | None = Field(
        default=None, description="CSS selector of one item. Without it, the site's own feed is looked for."
    )
    title: str | None = Field(default=None, description="CSS selector of the title, within the item.")
    link: str | None = Field(default=None, description="CSS selector of the link, within the item.")
    date: str | None = Field(default=None, description="CSS selector of the date, within the item.")
    summary: str | None = Field(default=None, description="CSS selector of the text, within the item.")
    image: str | None = Field(default=None, description="CSS selector of the picture, within the item.")
    next: str | None = Field(default=None, description="CSS selector of the link to the next page.")
    max_pages: int = Field(
        default=5, ge=1, le=100, description="How many pages are read at most, following next."
    )

    @field_validator("item", "title", "link", "date", "summary", "image", "next")
    @classmethod
    def _is_css(cls, value: str | None) -> str | None:
        if value is not None and (find_selector_fault(value) is not None or not value.strip()):
            raise ValueError("Input should be a CSS selector, or selector@attribute")
        if value is not None and is_costly(value):
            raise ValueError("Input should look for one thing in :has(), not for one thing inside another")
        return value

    @model_validator(mode="after")
    def _parts_need_an_item(self) -> Self:
        if self.item is None and any((self.title, self.link, self.date, self.summary, self.image, self.next)):
            raise ValueError("the selectors of parts need an item to be looked for in: set item too")
        return self

    def selectors(self) -> Selectors | None:
        if self.item is None:
            return None
        return Selectors(self.item, self.title, self.link, self.date, self.summary, self.image, self.next)


class ScraperCollector(Collector):
    config_model = ScraperConfig
    remembers = True

    async def collect(self, errand: Errand) -> Harvest:
        return await with_remembered_robots(errand, _collect)


async def _collect(errand: Errand) -> Harvest:
    selectors = errand.config.selectors()
    return await (_collect_feed(errand) if selectors is None else _collect_pages(errand, selectors))


async def with_remembered_robots(errand: Errand, collect: Callable[[Errand], Awaitable[Harvest]]) -> Harvest:
    """What `collect` harvests. The site's robots.txt stays known from one visit to the next, for a day."""
    robots, site = errand.fetcher.robots, site_of(errand.source.url)
    remembered = _remembered(errand)
    before = remembered.get("robots")
    match before:
        case {"asked_at": int() | float() as asked_at, "text": str() as text}:
            robots.recall(site, Told(asked_at, text), time.time())
    harvest = await collect(errand)
    told = robots.told(site)
    if told is None or len(told.text) > MOST_REMEMBERED_CHARACTERS:
        return harvest
    memory = remembered if harvest.memory is None else orjson.loads(harvest.memory)
    known = asdict(told)
    if harvest.memory is None and known == before:
        return harvest
    return replace(harvest, memory=orjson.dumps({**memory, "robots": known}))


async def _collect_pages(errand: Errand, selectors: Selectors) -> Harvest:
    response = await get_page(errand)
    if response.unchanged:
        return Harvest.of(response)
    page = await _read(response, selectors)
    _refuse_emptiness(page, response.url, selectors, _remembered(errand).get("found"))
    harvest = Harvest.of(
        response,
        items=page.items,
        metadata=page.metadata,
        memory=orjson.dumps({"found": len(page.items)}),
    )
    seen = {response.url}
    for _ in range(errand.config.max_pages - 1):
        following = page.next_url
        if (
            following is None
            or following in seen
            or await errand.known([each.external_id for each in page.items])
        ):
            break
        seen.add(following)
        try:
            answer = await get_page(errand, following)
            page = await _read(answer, selectors)
        except VisitError:
            break  # what the first page showed is worth keeping
        harvest = replace(
            harvest,
            items=_merge(harvest.items, page.items),
            requests=harvest.requests + answer.requests,
            bytes_received=harvest.bytes_received + answer.bytes_received,
        )
    return harvest


async def get_page(errand: Errand, url: str | None = None) -> Response:
    """A page, if its site lets programs read it; the source's own (no `url`) only if it has changed."""
    await errand.fetcher.robots.check(url or errand.source.url)
    validators = errand.source.validators if url is None else NO_VALIDATORS
    request = request_to(errand.source, errand.config, url or errand.source.url, validators)
    return await errand.fetcher.get(replace(request, accept=ACCEPT_PAGE))


async def in_thread_if_big(response: Response, read: Callable[[Response], T]) -> T:
    """What `read` makes of an answer, off the event loop when that may take a while."""
    return read(response) if len(response.body) < BIG_BYTES else await asyncio.to_thread(read, response)


async def _read(response: Response, selectors: Selectors) -> ScrapedPage:
    return await in_thread_if_big(
        response,
        lambda answer: scrape(answer.body, selectors, url=answer.url, content_type=answer.content_type),
    )


def _refuse_emptiness(page: ScrapedPage, url: str, selectors: Selectors, found_before: Any) -> None:
    if page.items:
        return
    if found_before is None:
        raise ParseError(
            "{url}: the selector {selector} finds no item on the page; `headwater scrape` proposes selectors",
            kind=FailureKind.NOT_A_FEED,
            url=url,
            selector=selectors.item,
        )
    if found_before > FEW_ITEMS:
        raise ParseError(
            "{url}: the selector {selector} finds no item, where it found {count} before: the page has changed;"
            " `headwater scrape` proposes new selectors",
            kind=FailureKind.MALFORMED,
            url=url,
            selector=selectors.item,
            count=found_before,
        )


def _merge(items: tuple[Item, ...], more: tuple[Item, ...]) -> tuple[Item, ...]:
    by_id = {item.external_id: item for item in more} | {item.external_id: item for item in items}
    order = dict.fromkeys(item.external_id for item in (*items, *more))
    return tuple(by_id[each] for each in order)


def _remembered(errand: Errand) -> dict[str, Any]:
    """What the last good visit left; nothing where that makes no sense any more."""
    try:
        memory = orjson.loads(errand.memory or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return memory if isinstance(memory, dict) else {}


async def _collect_feed(errand: Errand) -> Harvest:
    """The items of the feed that the page names."""
    if feed_url := _remembered(errand).get("feed"):
        try:
            return await _ask_feed(errand, feed_url, known=True)
        except VisitError as error:
            if error.kind not in (FailureKind.NOT_FOUND, FailureKind.GONE, FailureKind.NOT_A_FEED):
                raise
            # The feed has gone elsewhere; the page knows where.
    await errand.fetcher.robots.check(errand.source.url)
    page = await errand.fetcher.get(
        request_to(errand.source, errand.config, errand.source.url, NO_VALIDATORS)
    )
    requests, received = page.requests, page.bytes_received
    try:
        harvest = _harvest_feed(page)
    except ParseError:
        named = find_feeds(page.body, page.url, page.content_type) or guess_feeds(page.url)
        for candidate in named[:MAX_FEEDS]:
            requests += 1
            try:
                harvest = await _ask_feed(errand, candidate.url)
                break
            except (FetchError, ParseError):
                continue
        else:
            raise ParseError(
                "{url} has no feed; `headwater scrape` proposes selectors for its items", url=page.url
            ) from None
    return replace(harvest, requests=requests, bytes_received=received + harvest.bytes_received)


async def _ask_feed(errand: Errand, url: str, *, known: bool = False) -> Harvest:
    validators = errand.source.validators if known else NO_VALIDATORS
    request = request_to(errand.source, errand.config, url, validators)
    return _harvest_feed(await errand.fetcher.get(request))


def _harvest_feed(response: Response) -> Harvest:
    memory = orjson.dumps({"feed": response.url})
    if response.unchanged:
        return replace(Harvest.of(response), permanent_url=None, memory=memory)
    feed = parse(response.body, url=response.url, content_type=response.content_type)
    harvest = Harvest.of(
        response,
        items=tuple(to_item(entry, feed) for entry in feed.entries),
        metadata=feed.metadata,
        document_hints=feed.hints,
        memory=memory,
    )
    return replace(harvest, permanent_url=None)  # where the feed moves says nothing of the page
