"""Finds the sources that an address or a handle leads to, and checks that their feeds work.

    text → the rule of a known site, if one of its sources works
         → the page: a feed itself, or the feeds it names, or the first that works at the usual places

Candidates are fetched at the same time; those that work come first.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import Connection

from headwater.collect.visit import too_slow
from headwater.collectors.answer import read_json
from headwater.collectors.base import FetchRequest, read_config
from headwater.collectors.feed import hub_of, read_feed
from headwater.collectors.recognition import package_rules, understand
from headwater.collectors.types import collector_of
from headwater.errors import FailureKind, FetchError, HeadwaterError, ParseError, Text, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.memory_budget import holding_responses
from headwater.fetch.message import Request, Response
from headwater.formats.expressions import Budget, compile_expression, evaluate
from headwater.formats.feeds.feed import Feed
from headwater.formats.pages.discover import Candidate, How, find_feeds, guess_feeds
from headwater.formats.pages.rules import FEED, AddressRules, Lookup, Match, Offer, choices_of
from headwater.language import Language
from headwater.model import Source, url_key
from headwater.sources.addresses import read_url
from headwater.sources.offers import may_be_graphql, offers_of_graphql, recognise_answer
from headwater.store.collecting.addresses import find_by_addresses
from headwater.threads import read_aside

MAX_GUESSES = 8
MAX_CHECKED = 8  # candidates that are fetched; the others are listed unchecked
CHECK_SECONDS = 10.0
MOST_SECONDS = 60.0
WATCH_CONFIG: Final = {"watch": True, "item": "body"}


@dataclass(frozen=True, slots=True)
class FoundFeed:
    """A feed or another source, and how it was found.

    `checked`: it was fetched; then it is a feed, or `problem` says why not. `choice` tells it from others of its rule.
    """

    url: str
    title: str | None
    how: How | None  # None: the address itself is a feed
    checked: bool
    items: int | None = None
    hub: str | None = None  # the WebSub hub that pushes it
    problem: str | None = None
    source_id: int | None = None  # of the source that collects it already
    type: str = FEED
    config: Mapping[str, Any] = field(default_factory=dict)
    choice: str | None = None


@dataclass(frozen=True, slots=True)
class _Search:
    """What a search goes by: the door, the rules, and the language of the titles of choices."""

    fetcher: Fetcher
    rules: AddressRules
    language: Language | None


async def discover(
    text: str,
    fetcher: Fetcher,
    seconds: float = MOST_SECONDS,
    *,
    rules: AddressRules | None = None,
    language: Language | None = None,
) -> list[FoundFeed]:
    """What an address or a handle leads to, best first. VisitError when there is nothing, or not in time."""
    try:
        with holding_responses():
            async with asyncio.timeout(seconds):
                return await _discover(text, _Search(fetcher, rules or package_rules(), language))
    except TimeoutError:
        raise too_slow(seconds) from None


async def look_up(
    text: str,
    fetcher: Fetcher,
    seconds: float = MOST_SECONDS,
    *,
    rules: AddressRules | None = None,
    language: Language | None = None,
) -> list[FoundFeed]:
    """The same for people: where there is only a page, watching the page is what they are offered."""
    try:
        return await discover(text, fetcher, seconds, rules=rules, language=language)
    except VisitError as error:
        if error.kind is not FailureKind.NOT_A_FEED:
            raise
        url = str(error.values.get("url") or read_url(text))
        watched = FoundFeed(url, None, "watch", checked=False, type="web.scraper", config=WATCH_CONFIG)
        return [replace(watched, problem=None)]


async def _discover(text: str, search: _Search) -> list[FoundFeed]:
    known = understand(text, search.rules)
    ruled = await _by_rule(known, search) if known else []
    if any(found.problem is None for found in ruled):
        return ruled
    try:
        url = read_url((known.page if known else None) or text)
        return [*await _discover_on_page(url, search, {found.url for found in ruled}), *ruled]
    except HeadwaterError:
        if ruled:
            return ruled
        raise


async def _by_rule(known: Match, search: _Search) -> list[FoundFeed]:
    """What a rule offers, in its order; what does not work comes last."""
    offers = list(known.offers)
    if known.lookup is not None:
        offers = [Offer(feed) for feed in await _look_in(known.lookup, search.fetcher)]
    found = [
        FoundFeed(
            *(offer.url, None if offer.type == FEED else known.title_in(search.language), "rule"),
            checked=False,
            type=offer.type,
            config=offer.config,
            choice=offer.title_in(search.language) if len(offers) > 1 else None,
        )
        for offer in offers
    ]
    tried = (_try(each, search.fetcher, known.is_guess) for each in found[:MAX_CHECKED])
    checked = [*await asyncio.gather(*tried), *found[MAX_CHECKED:]]
    return sorted(checked, key=lambda each: each.problem is not None)


async def _look_in(lookup: Lookup, fetcher: Fetcher) -> list[str]:
    """The address of the feed in a JSON document."""
    response = await fetcher.get(Request(lookup.url, accept="application/json"))
    compile_expression(lookup.feed)
    found = evaluate(lookup.feed, read_json(response), Budget())
    return [found] if isinstance(found, str) and found.startswith(("http://", "https://")) else []


async def _try(found: FoundFeed, fetcher: Fetcher, is_guess: bool) -> FoundFeed:
    """A feed is fetched; a source of another type only where the rule may be wrong, as it costs more."""
    if found.type == FEED:
        return await _fetch(found, fetcher)
    collector = collector_of(found.type) if is_guess else None
    if collector is None:
        return found
    url, config = collector.locate(found.url, found.config)
    read = read_config(collector.config_model, config, found.type)
    source = Source(0, found.url, found.type, url or found.url, config)

    async def visit() -> FoundFeed:
        result = await collector.collect(FetchRequest(source, read, fetcher))
        title = result.metadata.title or found.title
        return replace(found, checked=True, title=title, items=len(result.items))

    return await _in_time(replace(found, checked=True), visit())


async def _discover_on_page(url: str, search: _Search, checked: set[str]) -> list[FoundFeed]:
    fetcher = search.fetcher
    if may_be_graphql(url) and (asked := await _offered(await offers_of_graphql(url, fetcher), search)):
        return asked
    response = await fetcher.get(Request(url))
    try:
        feed = await read_feed(response)
        return [_describe(FoundFeed(response.url, None, None, checked=True), response, feed)]
    except ParseError:
        offer = await read_aside(len(response.body), recognise_answer, response)
        if offer is not None and (told := await _offered([offer], search)):
            return told
        named = await read_aside(
            len(response.body), find_feeds, response.body, response.url, response.content_type
        )
    if candidates := [each for each in named if each.url not in checked]:
        return await _check(_with_choices(candidates, search), fetcher)
    for guess in guess_feeds(response.url)[:MAX_GUESSES]:
        found = await _fetch(_candidate(guess), fetcher)
        if found.problem is None:
            return [found]
    raise VisitError(
        FailureKind.NOT_A_FEED,
        "{url} names no feed, and none is at the usual places",
        hint="to watch the page: `headwater source add {url} --type website --config watch=true --config item=body`",
        url=response.url,
    )


async def _offered(offers: Sequence[Offer], search: _Search) -> list[FoundFeed]:
    """Sources that an answer is, each visited once; without those that do not work."""
    found = (
        FoundFeed(
            *(offer.url, None, "answer"),
            checked=False,
            type=offer.type,
            config=offer.config,
            choice=offer.title_in(search.language),
        )
        for offer in offers
    )
    tried = await asyncio.gather(*(_try(each, search.fetcher, is_guess=True) for each in found))
    return [each for each in tried if each.problem is None]


def _candidate(named: Candidate) -> FoundFeed:
    return FoundFeed(named.url, named.title, named.how, checked=False)


def _with_choices(named: Sequence[Candidate], search: _Search) -> list[FoundFeed]:
    """The feeds that a page names; one of a known site with the choices that its rule has."""
    found: dict[str, FoundFeed] = {}
    for each in named:
        for offer in choices_of(each.url, search.rules):
            choice = offer.title_in(search.language)
            made = replace(_candidate(each), url=offer.url, type=offer.type, config=offer.config)
            found.setdefault(offer.url, replace(made, choice=choice))
    return list(found.values())


async def preview(url: str, fetcher: Fetcher, most_items: int, seconds: float = MOST_SECONDS) -> Feed:
    """The feed at `url` with its first items; VisitError when there is none in time."""
    try:
        with holding_responses():
            async with asyncio.timeout(seconds):
                feed = await read_feed(await fetcher.get(Request(url)))
                return replace(feed, entries=feed.entries[:most_items])
    except TimeoutError:
        raise too_slow(seconds) from None


def mark_subscribed(connection: Connection, found: list[FoundFeed]) -> list[FoundFeed]:
    """The same, with the sources that collect them already."""
    known: Mapping[str, int] = find_by_addresses(connection, [each.url for each in found])
    return [replace(each, source_id=known.get(url_key(each.url))) for each in found]


async def _check(candidates: Sequence[FoundFeed], fetcher: Fetcher) -> list[FoundFeed]:
    """Working feeds first, then those that were not checked, dead ones last; each kind in the order given."""
    tried = (_try(each, fetcher, is_guess=False) for each in candidates[:MAX_CHECKED])
    checked = await asyncio.gather(*tried)
    working = [each for each in checked if each.problem is None]
    return [*working, *candidates[MAX_CHECKED:], *(each for each in checked if each.problem is not None)]


async def _fetch(found: FoundFeed, fetcher: Fetcher) -> FoundFeed:
    found = replace(found, checked=True)

    async def read() -> FoundFeed:
        response = await fetcher.get(Request(found.url))
        return _describe(found, response, await read_feed(response))

    return await _in_time(found, read())


async def _in_time(found: FoundFeed, work: Coroutine[Any, Any, FoundFeed]) -> FoundFeed:
    """What the work finds, or why it does not."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await work
    except (FetchError, VisitError) as error:
        return replace(found, problem=error.render())
    except TimeoutError:
        text = Text("no answer within {seconds} seconds", seconds=f"{CHECK_SECONDS:g}")
        return replace(found, problem=text.render())


def _describe(found: FoundFeed, response: Response, feed: Feed) -> FoundFeed:
    hub = hub_of(response, feed)
    title = feed.title or found.title
    return replace(found, title=title, items=len(feed.entries), hub=hub.url if hub else None)
