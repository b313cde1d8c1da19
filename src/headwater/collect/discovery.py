"""Finding the feeds of a page somebody pasted, with as few requests as that takes.

A known site's rule needs none; a page that names its feeds needs one; only a page that names none has the usual
places tried, one after the other until one answers with a feed.
"""

from dataclasses import dataclass

from headwater.errors import FailureKind, FetchError, ParseError, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Request
from headwater.formats.discover import Candidate, How, find_feeds, guess_feeds
from headwater.formats.feed import Feed, parse
from headwater.formats.sites import known_feeds

MAX_GUESSES = 8


@dataclass(frozen=True, slots=True)
class FoundFeed:
    """A feed, and how it was found. `checked`: it was fetched and is one."""

    url: str
    title: str | None
    how: How | None  # None: the address itself is a feed
    checked: bool


async def discover(url: str, fetcher: Fetcher) -> list[FoundFeed]:
    """The feeds of the page at `url`, best first. VisitError when the page cannot be had or has none."""
    if ruled := known_feeds(url):
        return [FoundFeed(feed, None, "rule", checked=False) for feed in ruled]
    response = await fetcher.get(Request(url))
    try:
        feed = parse(response.body, url=response.url, content_type=response.content_type)
        return [FoundFeed(response.url, feed.title or None, None, checked=True)]
    except ParseError:
        named = find_feeds(response.body, response.url, response.content_type)
    if named:
        return [FoundFeed(each.url, each.title, each.how, checked=False) for each in named]
    for guess in guess_feeds(response.url)[:MAX_GUESSES]:
        if guessed := await _try(guess, fetcher):
            return [FoundFeed(guess.url, guessed.title or None, guess.how, checked=True)]
    raise VisitError(
        FailureKind.NOT_A_FEED, "{url} names no feed, and none is at the usual places", url=response.url
    )


async def preview(url: str, fetcher: Fetcher) -> Feed:
    """The feed at `url` as it stands; VisitError when there is none."""
    response = await fetcher.get(Request(url))
    return parse(response.body, url=response.url, content_type=response.content_type)


async def _try(guess: Candidate, fetcher: Fetcher) -> Feed | None:
    try:
        return await preview(guess.url, fetcher)
    except (FetchError, ParseError):
        return None
