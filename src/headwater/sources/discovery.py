"""Finds the feeds of a page, and checks that they work.

    address → the rule of a known site, if one of its feeds works
            → the page: a feed itself, or the feeds it names, or the first that works at the usual places

Candidates are fetched at the same time; those that work come first.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from headwater.collect.visit import too_slow
from headwater.collectors.feed import hub_of, read_feed
from headwater.errors import FailureKind, FetchError, HeadwaterError, ParseError, Text, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Request, Response
from headwater.fetch.room import holding_answers
from headwater.formats.feeds.feed import Feed
from headwater.formats.pages.discover import Candidate, How, find_feeds, guess_feeds
from headwater.formats.pages.sites import known_feeds
from headwater.model import url_key
from headwater.store.collecting.addresses import find_by_addresses
from headwater.threads import read_aside

MAX_GUESSES = 8
MAX_CHECKED = 8  # candidates that are fetched; the others are listed unchecked
CHECK_SECONDS = 10.0
MOST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class FoundFeed:
    """A feed, and how it was found.

    `checked`: it was fetched; then it is a feed, or `problem` says why not.
    """

    url: str
    title: str | None
    how: How | None  # None: the address itself is a feed
    checked: bool
    items: int | None = None
    hub: str | None = None  # the WebSub hub that pushes it
    problem: str | None = None
    source_id: int | None = None  # of the source that collects it already


async def discover(url: str, fetcher: Fetcher, seconds: float = MOST_SECONDS) -> list[FoundFeed]:
    """The feeds of the page at `url`, best first. VisitError when the page cannot be fetched in time or has none."""
    try:
        with holding_answers():
            async with asyncio.timeout(seconds):
                return await _discover(url, fetcher)
    except TimeoutError:
        raise too_slow(seconds) from None


async def _discover(url: str, fetcher: Fetcher) -> list[FoundFeed]:
    ruled = await _check([Candidate(feed, how="rule") for feed in known_feeds(url)], fetcher)
    if any(found.problem is None for found in ruled):
        return ruled
    try:
        return [*await _discover_on_page(url, fetcher, {found.url for found in ruled}), *ruled]
    except HeadwaterError:
        if ruled:
            return ruled
        raise


async def _discover_on_page(url: str, fetcher: Fetcher, checked: set[str]) -> list[FoundFeed]:
    response = await fetcher.get(Request(url))
    try:
        feed = await read_feed(response)
        return [_describe(FoundFeed(response.url, None, None, checked=True), response, feed)]
    except ParseError:
        named = await read_aside(
            len(response.body), find_feeds, response.body, response.url, response.content_type
        )
    if candidates := [each for each in named if each.url not in checked]:
        return await _check(candidates, fetcher)
    for guess in guess_feeds(response.url)[:MAX_GUESSES]:
        found = await _fetch(guess, fetcher)
        if found.problem is None:
            return [found]
    raise VisitError(
        FailureKind.NOT_A_FEED, "{url} names no feed, and none is at the usual places", url=response.url
    )


async def preview(url: str, fetcher: Fetcher, most_items: int, seconds: float = MOST_SECONDS) -> Feed:
    """The feed at `url` with its first items; VisitError when there is none in time."""
    try:
        with holding_answers():
            async with asyncio.timeout(seconds):
                feed = await read_feed(await fetcher.get(Request(url)))
                return replace(feed, entries=feed.entries[:most_items])
    except TimeoutError:
        raise too_slow(seconds) from None


def mark_subscribed(connection: Connection, found: list[FoundFeed]) -> list[FoundFeed]:
    """The same, with the sources that collect them already."""
    known: Mapping[str, int] = find_by_addresses(connection, [each.url for each in found])
    return [replace(each, source_id=known.get(url_key(each.url))) for each in found]


async def _check(candidates: Sequence[Candidate], fetcher: Fetcher) -> list[FoundFeed]:
    """Working feeds first, then those that were not checked, dead ones last; each kind in the order given."""
    checked = await asyncio.gather(*(_fetch(each, fetcher) for each in candidates[:MAX_CHECKED]))
    rest = [FoundFeed(each.url, each.title, each.how, checked=False) for each in candidates[MAX_CHECKED:]]
    working = [each for each in checked if each.problem is None]
    return [*working, *rest, *(each for each in checked if each.problem is not None)]


async def _fetch(candidate: Candidate, fetcher: Fetcher) -> FoundFeed:
    found = FoundFeed(candidate.url, candidate.title, candidate.how, checked=True)
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            response = await fetcher.get(Request(candidate.url))
            return _describe(found, response, await read_feed(response))
    except (FetchError, ParseError) as error:
        return replace(found, problem=error.render())
    except TimeoutError:
        text = Text("no answer within {seconds} seconds", seconds=f"{CHECK_SECONDS:g}")
        return replace(found, problem=text.render())


def _describe(found: FoundFeed, response: Response, feed: Feed) -> FoundFeed:
    hub = hub_of(response, feed)
    title = feed.title or found.title
    return replace(found, title=title, items=len(feed.entries), hub=hub.url if hub else None)
