"""Looking at a page that is to yield items: the feeds it names, and selectors for what repeats on it."""

from dataclasses import asdict, dataclass
from typing import Any

from headwater.collectors.scraper import ACCEPT_PAGE
from headwater.errors import FailureKind, ParseError, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.memory_budget import holding_responses
from headwater.fetch.message import Request, Response
from headwater.formats.feeds.parse import parse
from headwater.formats.pages.discover import find_feeds
from headwater.formats.pages.propose import Proposal, propose
from headwater.sources.discovery import FoundFeed
from headwater.threads import read_aside


@dataclass(frozen=True, slots=True)
class PageReport:
    """What a page offers. A feed is the better choice wherever there is one."""

    url: str
    feeds: tuple[FoundFeed, ...]
    proposals: tuple[Proposal, ...]


async def look_at_page(url: str, fetcher: Fetcher) -> PageReport:
    """Fetch the page once, if its site lets programs read it. VisitError when it has nothing to collect."""
    await fetcher.robots.check(url)
    with holding_responses():
        response = await fetcher.get(Request(url, accept=ACCEPT_PAGE))
        report = await read_aside(len(response.body), _read, response)
    if not report.feeds and not report.proposals:
        raise VisitError(
            FailureKind.NOT_A_FEED,
            "{url}: nothing on the page looks like a list of items, and it names no feed",
            hint="give selectors with `headwater source add --type website --config item=…`",
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
