"""Choosing what to watch on a page that has no feed: the page is fetched once and kept while its parts are chosen."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from headwater.collect.rendering import make_show
from headwater.collectors.base import NO_BROWSER
from headwater.collectors.scraper import ACCEPT_PAGE, ScraperConfig
from headwater.collectors.watching import watch_page
from headwater.errors import FailureKind, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.memory_budget import holding_responses
from headwater.fetch.message import Request, Response, public_url
from headwater.formats.pages.copy import copy_page
from headwater.formats.pages.document import MAX_PAGE_BYTES
from headwater.formats.pages.propose import Proposal, propose
from headwater.formats.pages.scrape import ScrapedPage, Selectors, scrape
from headwater.model import SourceMetadata
from headwater.threads import read_aside

KEPT_PAGES: Final = 6
KEPT_SECONDS: Final = 600.0
PROPOSALS: Final = 3


@dataclass(frozen=True, slots=True)
class WatchedPage:
    """A page as it was fetched. `url` is the address at which the redirects ended."""

    url: str
    body: bytes
    content_type: str | None
    fetched_at: float


@dataclass(frozen=True, slots=True)
class Choice:
    """What a config finds on a page, and the lists that the page has. Without `selectors` the page is watched."""

    selectors: Selectors | None
    page: ScrapedPage
    proposals: tuple[Proposal, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many of the items have each part."""
        items = self.page.items
        return {
            "item": len(items),
            "title": sum(bool(item.title) for item in items),
            "summary": sum(bool(item.summary or item.content) for item in items),
            "date": sum(item.published_at is not None for item in items),
            "link": sum(bool(item.url) for item in items),
            "image": sum(bool(item.image_url) for item in items),
        }


class PageShelf:
    """The pages that people are choosing from: a few, for some minutes, so that each click is not a request."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pages: OrderedDict[tuple[str, bool], WatchedPage] = OrderedDict()

    async def get(
        self, url: str, open_fetcher: Callable[[], Fetcher], *, browser: bool = False
    ) -> WatchedPage:
        """The page at `url`, fetched if its site lets programs read it. VisitError when that fails."""
        kept = self._pages.get((url, browser))
        if kept is not None and self._clock() - kept.fetched_at < KEPT_SECONDS:
            return kept
        async with open_fetcher() as fetcher:
            await fetcher.robots.check(url)
            with holding_responses():
                answer = await (_render(url, fetcher) if browser else fetcher.get(_request_to(url)))
                page = WatchedPage(
                    answer.url, answer.body[:MAX_PAGE_BYTES], answer.content_type, self._clock()
                )
        self._pages[url, browser] = page
        self._pages.move_to_end((url, browser))
        while len(self._pages) > KEPT_PAGES:
            self._pages.popitem(last=False)
        return page


def _request_to(url: str) -> Request:
    return Request(url, accept=ACCEPT_PAGE)


async def _render(url: str, fetcher: Fetcher) -> Response:
    show = make_show(ScraperConfig(browser=True), fetcher)
    if show is None:
        raise VisitError(FailureKind.INTERNAL, NO_BROWSER, url=public_url(url))
    return await show(url)


async def choose(page: WatchedPage, config: ScraperConfig | None) -> Choice:
    """What `config` finds; without one, what the best proposal finds, or the page itself where no list is found."""
    return await read_aside(len(page.body), _choose, page, config)


def _choose(page: WatchedPage, config: ScraperConfig | None) -> Choice:
    proposals = tuple(propose(page.body, url=page.url, content_type=page.content_type, limit=PROPOSALS))
    if config is None and proposals:
        return Choice(proposals[0].selectors, proposals[0].page, proposals)
    selectors = None if config is None or config.watch else config.selectors()
    if selectors is None:
        return Choice(None, _watch(page, config or ScraperConfig(watch=True)), proposals)
    found = scrape(page.body, selectors, url=page.url, content_type=page.content_type)
    return Choice(selectors, found, proposals)


def _watch(page: WatchedPage, config: ScraperConfig) -> ScrapedPage:
    """What the first visit of a watched page would find."""
    seen = watch_page(page.body, config.watched(), {}, url=page.url, content_type=page.content_type)
    return ScrapedPage(()) if seen is None else ScrapedPage(seen.items, None, SourceMetadata(seen.title))


async def copy_of(page: WatchedPage) -> str:
    """The page as HTML that is safe to show, for pointing at its parts."""
    return await read_aside(len(page.body), copy_page, page.body, page.content_type)


def numbered(choice: Choice, number: int) -> Choice:
    """The same page by another of its proposals, counted from 1."""
    proposal = choice.proposals[number - 1]
    return replace(choice, selectors=proposal.selectors, page=proposal.page)
