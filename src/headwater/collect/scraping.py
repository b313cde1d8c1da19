"""Looking at a page that somebody wants items from: the feeds it names, and selectors for what repeats on it."""

import asyncio
from dataclasses import asdict, dataclass
from typing import Any

from headwater.collect.discovery import FoundFeed
from headwater.collectors.scraper import ACCEPT_PAGE
from headwater.errors import FailureKind, ParseError, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Request, Response
from headwater.formats.discover import find_feeds
from headwater.formats.feed import parse
from headwater.formats.propose import Proposal, propose


@dataclass(frozen=True, slots=True)
class PageReport:
    """What a page offers. A feed is the better choice wherever there is one."""

    url: str
    feeds: tuple[FoundFeed, ...]
    proposals: tuple[Proposal, ...]


async def look_at_page(url: str, fetcher: Fetcher) -> PageReport:
    """Fetch the page once, if its site lets programs read it. VisitError when it has nothing to collect."""
    await fetcher.robots.check(url)
    response = await fetcher.get(Request(url, accept=ACCEPT_PAGE))
    report = await asyncio.to_thread(_read, response)
    if not report.feeds and not report.proposals:
        raise VisitError(
            FailureKind.NOT_A_FEED,
            "{url}: nothing on the page looks like a list of items, and it names no feed; "
            "give selectors with `headwater source add --type website --config item=…`",
            url=response.url,
        )
    return report


def _read(response: Response) -> PageReport:
    try:
        feed = parse(response.body, url=response.url, content_type=response.content_type)
        return PageReport(
            response.url, (FoundFeed(response.url, feed.title or None, None, checked=True),), ()
        )
    except ParseError:
        pass
    named = find_feeds(response.body, response.url, response.content_type)
    feeds = (FoundFeed(each.url, each.title, each.how, checked=False) for each in named)
    proposals = propose(response.body, url=response.url, content_type=response.content_type)
    return PageReport(response.url, tuple(feeds), tuple(proposals))


def config_of(proposal: Proposal) -> dict[str, Any]:
    """The config of a `web.scraper` source that collects what is proposed."""
    return {name: selector for name, selector in asdict(proposal.selectors).items() if selector is not None}
