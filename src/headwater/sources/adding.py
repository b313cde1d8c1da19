"""Adding a source: its first visit is its check, so a new source costs one request and is useful at once."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection

from headwater.collect.bounding import bound_result
from headwater.collect.context import VisitContext
from headwater.collect.decide import Candidate, candidates
from headwater.collect.hub_trust import apply_push
from headwater.collect.planning import read_policy
from headwater.collect.rendering import make_show
from headwater.collect.visit import successful_settlement, too_slow
from headwater.collectors.base import (
    Collector,
    FetchRequest,
    FetchResult,
    SourceConfig,
    has_credentials,
    keeps_origin,
    read_config,
)
from headwater.collectors.recognition import package_rules, recognise
from headwater.collectors.secrets import fill_references, hide_secrets, refers
from headwater.collectors.types import SourceType, collector_of, config_model_of, find_type
from headwater.errors import FailureKind, HeadwaterError, InputError, ParseError, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.memory_budget import holding_responses
from headwater.formats.pages.rules import AddressRules
from headwater.model import Source
from headwater.sources.addresses import read_address, refuse_reference
from headwater.sources.discovery import FoundFeed, discover
from headwater.store.collecting.queue import claim_sources, settle_batch
from headwater.store.collecting.sources import Addition, add_source, refuse_duplicate
from headwater.store.core.bulk import storable
from headwater.threads import read_aside


@dataclass(frozen=True, slots=True)
class NewSource:
    """A source to add, checked as far as that goes without a request."""

    url: str
    type: SourceType
    config: Mapping[str, Any]
    name: str | None = None
    folder: str | None = None
    policy: str | None = None
    for_owner: bool = True  # whether the first user subscribes to it
    is_page: bool = False  # whether its address is known to be a page whose feeds are meant
    may_refer: bool = True  # whether its config may name secrets of this installation


def read_new_source(
    url: str | None,
    type_name: str | None = None,
    config: Mapping[str, Any] | None = None,
    name: str | None = None,
    folder: str | None = None,
    policy: str | None = None,
    rules: AddressRules | None = None,
    may_refer: bool = True,
) -> NewSource:
    """Check what a user gave; InputError names what is wrong.

    Without a type, the rules tell what the address or handle means; without an address, the config may. Credentials in
    the address move to the config, where secrets are kept; what the config says already wins.
    """
    read_policy(policy)
    refuse_reference(url or "")
    is_page = False
    if type_name:
        source_type = find_type(type_name)
    else:
        known = recognise(url or "", rules or package_rules(), may_refer=may_refer)
        source_type, url, is_page = known.type, known.url, known.is_page
        config = {**known.config, **(config or {})}
    collector = collector_of(source_type.name)
    if collector is not None:
        url, config = collector.locate(url, config or {})
    if url is None:
        raise InputError("a source of type {type} needs an address", type=source_type.name)
    url, credentials = read_address(url, collector)
    config = {**credentials, **(config or {})}
    checked = read_config(config_model_of(source_type.name), config, source_type.name)
    # As read, not as written: the planner takes numbers for numbers.
    given = checked.model_dump(mode="json", exclude_unset=True)
    return NewSource(url, source_type, given, name, folder, policy, is_page=is_page, may_refer=may_refer)


async def add_and_visit(wanted: NewSource, context: VisitContext) -> Source:
    """Visit the source and, if that works, store it with what it yielded, all in one transaction.

    VisitError when it cannot be visited: then nothing is stored.
    """
    with holding_responses():
        return await _add_and_visit(wanted, context)


async def _add_and_visit(wanted: NewSource, context: VisitContext) -> Source:
    if not wanted.may_refer and refers(wanted.config):
        raise InputError("{url} needs a secret of this Headwater; ask an admin to add it", url=wanted.url)
    await context.store.read(refuse_duplicate, wanted.type.name, wanted.url)
    started_at = context.clock()
    try:
        result = await try_address(wanted, context)
    except ParseError as error:
        raise VisitError(
            error.kind,
            "{url} cannot be added: {problem}",
            hint="`headwater discover` finds the feeds of a page; a sitemap takes --type sitemap"
            if wanted.type.name.startswith("rss.")
            else error.hint,
            url=wanted.url,
            problem=error.render(),
        ) from error
    if result is None:
        return await context.store.write(_add, wanted, context.clock())

    def take() -> tuple[FetchResult, list[Candidate]]:
        taken, _ = bound_result(result, context.max_items)
        return taken, candidates(taken.items, started_at)

    taken, found = await read_aside(result.bytes_received, take)

    def store(connection: Connection) -> Source:
        now = context.clock()
        source = _add(connection, wanted, now, result.metadata.title)
        (claimed,) = claim_sources(
            connection, [source.id], now=now, lease_until=now + context.timeout_seconds
        )
        settlement = successful_settlement(claimed, taken, found, {}, context.planner, started_at, now)
        if context.takes_pushes:
            settlement = apply_push(settlement, result, None, now)
        settle_batch(connection, [settlement])
        return settlement.after

    return await context.store.write(store)


async def try_address(wanted: NewSource, context: VisitContext) -> FetchResult | None:
    """What a source would yield; None when no collector visits its type. VisitError when it cannot be visited."""
    collector = collector_of(wanted.type.name)
    if collector is None or collector.is_delivered:
        return None
    if collector.why_skipped(read_wanted_config(wanted, collector)) is not None:
        return None
    return await first_visit(wanted, collector, context.fetcher, context.secrets, context.timeout_seconds)


async def add_what_is_there(wanted: NewSource, context: VisitContext) -> Source:
    """The same for what may be a page's address: where it is not a feed, the first source that it leads to is added."""
    if not wanted.is_page:
        try:
            return await add_and_visit(wanted, context)
        except VisitError as error:
            if error.kind is not FailureKind.NOT_A_FEED or wanted.type.name != "rss.feed":
                raise
    return await add_and_visit(await first_feed_of(wanted, context), context)


async def first_feed_of(wanted: NewSource, context: VisitContext) -> NewSource:
    """The first source that its page leads to."""
    try:
        async with asyncio.timeout(context.timeout_seconds):
            best, *_ = await discover(wanted.url, context.fetcher, rules=context.rules)
    except TimeoutError:
        raise too_slow(context.timeout_seconds) from None
    if best.problem is not None:
        raise VisitError(FailureKind.NOT_A_FEED, "{url}: {problem}", url=best.url, problem=best.problem)
    found = _as_found(wanted, best)
    _refuse_to_carry_credentials(wanted, found)
    return found


def _as_found(wanted: NewSource, best: FoundFeed) -> NewSource:
    """The wanted source, as it was found."""
    if best.type == wanted.type.name and not best.config:
        return replace(wanted, url=best.url, is_page=False)
    read = read_new_source(best.url, best.type, {**best.config, **wanted.config})
    return replace(wanted, url=read.url, type=read.type, config=read.config, is_page=False)


def _refuse_to_carry_credentials(given: NewSource, found: NewSource) -> None:
    """InputError when a page names a feed of another origin: credentials are for the one they were given for."""
    if keeps_origin(given.url, found.url):
        return
    if has_credentials(given.config, config_model_of(given.type.name)):
        raise InputError(
            "{url} names its feed at {feed}, to which the credentials are not sent; if they are meant for it, add that"
            " address with them",
            url=given.url,
            feed=found.url,
        )


def add_unvisited(connection: Connection, wanted: NewSource, now: float) -> Source:
    """Store the source without a request: it is first in line for the next collection."""
    return _add(connection, wanted, now)


def read_wanted_config(wanted: NewSource, collector: Collector) -> SourceConfig:
    return read_config(collector.config_model, wanted.config, wanted.type.name)


async def first_visit(
    wanted: NewSource, collector: Collector, fetcher: Fetcher, secrets: Mapping[str, str], seconds: float
) -> FetchResult:
    """What the source yields on a first visit. No secret is in what it raises."""
    source = Source(0, wanted.name or wanted.url, wanted.type.name, wanted.url, wanted.config)
    config = read_wanted_config(wanted, collector)
    try:
        async with asyncio.timeout(seconds):
            filled = fill_references(config, secrets)
            show = make_show(config, fetcher)
            return await collector.collect(FetchRequest(source, filled, fetcher, show=show))
    except HeadwaterError as error:
        raise error.with_values(lambda value: hide_secrets(value, secrets)) from None
    except TimeoutError:
        raise too_slow(seconds) from None


def _add(connection: Connection, wanted: NewSource, now: float, title: str | None = None) -> Source:
    addition = make_addition(wanted, title=title)
    return add_source(
        connection,
        name=addition.name,
        type=addition.type,
        url=addition.url,
        now=now,
        config=addition.config,
        folder=addition.folder,
        policy=addition.policy,
        for_owner=wanted.for_owner,
    )


def make_addition(wanted: NewSource, *, title: str | None = None, enabled: bool = True) -> Addition:
    """The source as it is stored: with a name, and without characters that no database takes."""
    return Addition(
        name=storable(wanted.name or title) or urlsplit(wanted.url).hostname or wanted.url,
        type=wanted.type.name,
        url=wanted.url,
        config=wanted.config,
        folder=storable(wanted.folder),
        policy=wanted.policy,
        enabled=enabled,
    )
