"""`web.scraper`: the items of a web page, by the site's own feed where it has one, else by CSS selectors.

With selectors the page is read as they say, and older pages behind its `next` link only while nothing on them is
known. Without, the page's feed is looked for once and remembered, and asked instead of the page from then on. The
site's robots.txt is obeyed for pages; a feed is published for programs and needs no asking.

A page that shows nothing where it showed several items has most likely changed: that is a failure, not silence.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any, Self, TypeVar

import orjson
from pydantic import Field, field_validator, model_validator

from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig, request_to
from headwater.collectors.watching import Watch, watch_page
from headwater.errors import FailureKind, FetchError, ParseError, VisitError
from headwater.fetch.message import NO_VALIDATORS, Response
from headwater.fetch.robots import Told, site_of
from headwater.formats.expressions import compile_expression
from headwater.formats.feeds.feed import to_item
from headwater.formats.feeds.parse import parse
from headwater.formats.pages.discover import find_feeds, guess_feeds
from headwater.formats.pages.scrape import ScrapedPage, Selectors, find_selector_fault, is_costly, scrape
from headwater.model import Item, SourceMetadata
from headwater.threads import read_aside

ACCEPT_PAGE = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"
MAX_FEEDS = 8  # places tried for a feed
FEW_ITEMS = 2  # a page that had no more than that may well have none today
BIG_BYTES = 32_000
MOST_REMEMBERED_CHARACTERS = 50_000  # of a robots.txt; a longer one is asked for again

LONGEST_SELECTOR = 1_000  # characters

T = TypeVar("T")


def _selector(what: str) -> Any:
    return Field(default=None, max_length=LONGEST_SELECTOR, description=f"CSS selector {what}")


class ScraperConfig(SourceConfig):
    item: str | None = _selector("of one item. Without it, the site's own feed is looked for.")
    title: str | None = _selector("of the title, within the item.")
    link: str | None = _selector("of the link, within the item.")
    date: str | None = _selector("of the date, within the item.")
    summary: str | None = _selector("of the text, within the item.")
    image: str | None = _selector("of the picture, within the item.")
    next: str | None = _selector("of the link to the next page.")
    watch: bool = Field(
        default=False,
        description="Watch the page: it, or what the selector item finds first, is one item, which changes with it.",
    )
    ignore: tuple[str, ...] = Field(
        default=(),
        max_length=20,
        description="CSS selectors of what is not watched, besides what always changes.",
    )
    says: tuple[str, ...] = Field(
        default=(), max_length=20, description="Items only when the watched page begins to say one of these."
    )
    number: bool = Field(
        default=False, description="Watch the first number, such as a price, and nothing else."
    )
    below: float | None = Field(default=None, description="Only numbers below this.")
    above: float | None = Field(default=None, description="Only numbers above this.")
    value: str | None = Field(
        default=None,
        max_length=1_000,
        description="A JMESPath expression: watch this value of a JSON answer.",
    )
    browser: bool = Field(
        default=False, description="Open the page in a real browser, for pages that are made by scripts."
    )
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
        watching = (
            self.ignore,
            self.says,
            self.number,
            self.below is not None,
            self.above is not None,
            self.value,
        )
        if not self.watch and any(watching):
            raise ValueError("ignore, says, number, below, above and value are for watching: set watch too")
        if (self.below is not None or self.above is not None) and not self.number:
            raise ValueError("below and above are for numbers: set number too")
        return self

    @field_validator("ignore")
    @classmethod
    def _are_css(cls, selectors: tuple[str, ...]) -> tuple[str, ...]:
        for selector in selectors:
            if (
                len(selector) > LONGEST_SELECTOR
                or not selector.strip()
                or find_selector_fault(selector) is not None
            ):
                raise ValueError(f"{selector[:80]} is not a CSS selector")
            if is_costly(selector):
                raise ValueError(
                    "Input should look for one thing in :has(), not for one thing inside another"
                )
        return selectors

    @field_validator("says")
    @classmethod
    def _are_phrases(cls, phrases: tuple[str, ...]) -> tuple[str, ...]:
        if any(not phrase.strip() or len(phrase) > 200 for phrase in phrases):
            raise ValueError("a phrase has 1 to 200 characters")
        return phrases

    @field_validator("value")
    @classmethod
    def _is_expression(cls, value: str | None) -> str | None:
        if value is not None:
            compile_expression(value)
        return value

    def watched(self) -> Watch:
        return Watch(self.item, self.ignore, self.says, self.number, self.below, self.above, self.value)

    def selectors(self) -> Selectors | None:
        if self.item is None:
            return None
        return Selectors(self.item, self.title, self.link, self.date, self.summary, self.image, self.next)


class ScraperCollector(Collector):
    config_model = ScraperConfig
    remembers = True

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        return await with_remembered_robots(fetch_request, _collect)


async def _collect(fetch_request: FetchRequest) -> FetchResult:
    if fetch_request.config.watch:
        return await _watch(fetch_request)
    selectors = fetch_request.config.selectors()
    return await (
        _collect_feed(fetch_request) if selectors is None else _collect_pages(fetch_request, selectors)
    )


async def with_remembered_robots(
    fetch_request: FetchRequest, collect: Callable[[FetchRequest], Awaitable[FetchResult]]
) -> FetchResult:
    """The result of `collect`. The site's robots.txt stays known from one visit to the next, for a day."""
    robots, site = fetch_request.fetcher.robots, site_of(fetch_request.source.url)
    remembered = _remembered(fetch_request)
    before = remembered.get("robots")
    match before:
        case {"asked_at": int() | float() as asked_at, "text": str() as text}:
            robots.recall(site, Told(asked_at, text), time.time())
    result = await collect(fetch_request)
    told = robots.told(site)
    if told is None or len(told.text) > MOST_REMEMBERED_CHARACTERS:
        return result
    memory = remembered if result.memory is None else orjson.loads(result.memory)
    known = asdict(told)
    if result.memory is None and known == before:
        return result
    return replace(result, memory=orjson.dumps({**memory, "robots": known}))


async def _collect_pages(fetch_request: FetchRequest, selectors: Selectors) -> FetchResult:
    response = await get_page(fetch_request)
    if response.unchanged:
        return FetchResult.of(response)
    page = await _read(response, selectors)
    _refuse_emptiness(page, response.url, selectors, _remembered(fetch_request).get("found"))
    result = FetchResult.of(
        response,
        items=page.items,
        metadata=page.metadata,
        memory=orjson.dumps({"found": len(page.items)}),
    )
    seen = {response.url}
    for _ in range(fetch_request.config.max_pages - 1):
        following = page.next_url
        if (
            following is None
            or following in seen
            or await fetch_request.known([each.external_id for each in page.items])
        ):
            break
        seen.add(following)
        try:
            answer = await get_page(fetch_request, following)
            page = await _read(answer, selectors)
        except VisitError:
            break  # what the first page showed is worth keeping
        result = replace(
            result,
            items=_merge(result.items, page.items),
            requests=result.requests + answer.requests,
            bytes_received=result.bytes_received + answer.bytes_received,
        )
    return result


async def _watch(fetch_request: FetchRequest) -> FetchResult:
    """The watched page as an item, if it says something else than at the last visit."""
    config: ScraperConfig = fetch_request.config
    response = await get_page(fetch_request)
    if response.unchanged and not config.browser:
        return FetchResult.of(response)
    before = _remembered(fetch_request)
    url = fetch_request.source.url
    seen = await in_thread_if_big(
        response,
        lambda answer: watch_page(
            answer.body, config.watched(), before, url=url, content_type=answer.content_type
        ),
    )
    if seen is None:
        raise ParseError(
            "{url}: what is watched is not on the page: {what}",
            hint="`headwater scrape` proposes selectors",
            kind=FailureKind.CHANGED_STRUCTURE if "watched" in before else FailureKind.NOT_A_FEED,
            url=url,
            what=config.value or config.item or "body",
        )
    result = FetchResult.of(
        response,
        items=seen.items,
        metadata=SourceMetadata(seen.title or None, site_url=url),
        memory=orjson.dumps({**{key: before[key] for key in ("robots",) if key in before}, **seen.memory}),
    )
    return replace(result, unchanged=not seen.items, known_count=0 if seen.items else 1, permanent_url=None)


async def get_page(fetch_request: FetchRequest, url: str | None = None) -> Response:
    """A page, if its site lets programs read it; the source's own (no `url`) only if it has changed."""
    await fetch_request.fetcher.robots.check(url or fetch_request.source.url)
    validators = fetch_request.source.validators if url is None else NO_VALIDATORS
    if fetch_request.config.browser:
        return await fetch_request.show_page(url or fetch_request.source.url)
    request = request_to(
        fetch_request.source, fetch_request.config, url or fetch_request.source.url, validators
    )
    return await fetch_request.fetcher.get(replace(request, accept=ACCEPT_PAGE))


async def in_thread_if_big(response: Response, read: Callable[[Response], T]) -> T:
    """What `read` makes of an answer, off the event loop when that may take a while."""
    if len(response.body) < BIG_BYTES:
        return read(response)
    return await read_aside(len(response.body), read, response)


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
            "{url}: the selector {selector} finds no item on the page",
            hint="`headwater scrape` proposes selectors",
            kind=FailureKind.NOT_A_FEED,
            url=url,
            selector=selectors.item,
        )
    if found_before > FEW_ITEMS:
        raise ParseError(
            "{url}: the selector {selector} finds no item, where it found {count} before: the page has changed",
            hint="`headwater scrape` proposes selectors",
            kind=FailureKind.MALFORMED,
            url=url,
            selector=selectors.item,
            count=found_before,
        )


def _merge(items: tuple[Item, ...], more: tuple[Item, ...]) -> tuple[Item, ...]:
    by_id = {item.external_id: item for item in more} | {item.external_id: item for item in items}
    order = dict.fromkeys(item.external_id for item in (*items, *more))
    return tuple(by_id[each] for each in order)


def _remembered(fetch_request: FetchRequest) -> dict[str, Any]:
    """What the last good visit left; nothing where that makes no sense any more."""
    try:
        memory = orjson.loads(fetch_request.memory or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return memory if isinstance(memory, dict) else {}


async def _collect_feed(fetch_request: FetchRequest) -> FetchResult:
    """The items of the feed that the page names."""
    if feed_url := _remembered(fetch_request).get("feed"):
        try:
            return await _ask_feed(fetch_request, feed_url, known=True)
        except VisitError as error:
            if error.kind not in (FailureKind.NOT_FOUND, FailureKind.GONE, FailureKind.NOT_A_FEED):
                raise
            # The feed has gone elsewhere; the page knows where.
    await fetch_request.fetcher.robots.check(fetch_request.source.url)
    page = await fetch_request.fetcher.get(
        request_to(fetch_request.source, fetch_request.config, fetch_request.source.url, NO_VALIDATORS)
    )
    requests, received = page.requests, page.bytes_received
    try:
        result = _read_feed_result(page)
    except ParseError:
        named = find_feeds(page.body, page.url, page.content_type) or guess_feeds(page.url)
        for candidate in named[:MAX_FEEDS]:
            requests += 1
            try:
                result = await _ask_feed(fetch_request, candidate.url)
                break
            except (FetchError, ParseError):
                continue
        else:
            raise ParseError(
                "{url} has no feed", hint="`headwater scrape` proposes selectors", url=page.url
            ) from None
    return replace(result, requests=requests, bytes_received=received + result.bytes_received)


async def _ask_feed(fetch_request: FetchRequest, url: str, *, known: bool = False) -> FetchResult:
    validators = fetch_request.source.validators if known else NO_VALIDATORS
    request = request_to(fetch_request.source, fetch_request.config, url, validators)
    return _read_feed_result(await fetch_request.fetcher.get(request))


def _read_feed_result(response: Response) -> FetchResult:
    memory = orjson.dumps({"feed": response.url})
    if response.unchanged:
        return replace(FetchResult.of(response), permanent_url=None, memory=memory)
    feed = parse(response.body, url=response.url, content_type=response.content_type)
    result = FetchResult.of(
        response,
        items=tuple(to_item(entry, feed) for entry in feed.entries),
        metadata=feed.metadata,
        document_hints=feed.hints,
        memory=memory,
    )
    return replace(result, permanent_url=None)  # where the feed moves says nothing of the page
