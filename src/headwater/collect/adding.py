"""Adding a source: its first visit is its check, so a new source costs one request and is useful at once."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from sqlalchemy import Connection

from headwater.collect.decide import candidates
from headwater.collect.discovery import discover
from headwater.collect.surroundings import Surroundings
from headwater.collect.trust import heed_push
from headwater.collect.visit import successful_settlement, too_slow
from headwater.collectors.base import Collector, Errand, Harvest, SourceConfig, read_config
from headwater.collectors.secrets import fill_references, hide_secrets
from headwater.collectors.types import (
    SourceType,
    collector_of,
    config_model_of,
    find_type,
    recognise_type,
)
from headwater.errors import FailureKind, HeadwaterError, InputError, ParseError, VisitError
from headwater.fetch.client import Fetcher
from headwater.model import Source
from headwater.store.bulk import storable
from headwater.store.queue import claim_sources, settle
from headwater.store.sources import add_source, refuse_duplicate

MAX_URL_BYTES = 2_000  # what every database can keep in an index, and more than any address in use
_HAS_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_NEVER_IN_A_URL = re.compile(r"[\s\x00-\x20\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class NewSource:
    """A source somebody wants, checked as far as that goes without a request."""

    url: str
    type: SourceType
    config: Mapping[str, Any]
    name: str | None = None
    folder: str | None = None


def read_new_source(
    url: str | None,
    type_name: str | None = None,
    config: Mapping[str, Any] | None = None,
    name: str | None = None,
    folder: str | None = None,
) -> NewSource:
    """Check what a user gave; InputError names what is wrong.

    Without a type, the address tells it; without an address, the config may. Credentials in the address move to the
    config, where secrets are kept; what the config says already wins.
    """
    source_type = find_type(type_name) if type_name else recognise_type(url or "")
    collector = collector_of(source_type.name)
    if collector is not None:
        url, config = collector.locate(url, config or {})
    if url is None:
        raise InputError("a source of type {type} needs an address", type=source_type.name)
    url, credentials = split_credentials(read_url(url))
    config = {**credentials, **(config or {})}
    checked = read_config(config_model_of(source_type.name), config, source_type.name)
    # As read, not as written: whoever plans the visits takes numbers for numbers.
    return NewSource(url, source_type, checked.model_dump(mode="json", exclude_unset=True), name, folder)


async def add_and_visit(wanted: NewSource, world: Surroundings) -> Source:
    """Visit the source and, if that works, store it with what it yielded, all in one transaction.

    VisitError when it cannot be visited: then nothing is stored.
    """
    await world.store.read(refuse_duplicate, wanted.type.name, wanted.url)
    collector = collector_of(wanted.type.name)
    if collector is None or collector.why_skipped(read_wanted_config(wanted, collector)) is not None:
        return await world.store.write(_add, wanted, world.clock())
    started_at = world.clock()
    try:
        harvest = await first_visit(wanted, collector, world.fetcher, world.secrets, world.timeout_seconds)
    except ParseError as error:
        template = "{url} cannot be added: {problem}"
        if wanted.type.name.startswith("rss."):
            template = (
                "{url} cannot be added: {problem} `headwater discover` finds the feeds of a page;"
                " a sitemap takes --type sitemap"
            )
        raise VisitError(error.kind, template, url=wanted.url, problem=error.render()) from error

    def store(connection: Connection) -> Source:
        now = world.clock()
        source = _add(connection, wanted, now, harvest.metadata.title)
        (claimed,) = claim_sources(connection, [source.id], now=now, lease_until=now + world.timeout_seconds)
        found = candidates(harvest.items, now)
        settlement = successful_settlement(claimed, harvest, found, {}, world.planner, started_at, now)
        if world.takes_pushes:
            settlement = heed_push(settlement, harvest, None, now)
        settle(connection, [settlement])
        return settlement.after

    return await world.store.write(store)


async def add_what_is_there(wanted: NewSource, world: Surroundings) -> Source:
    """The same for what may be a page's address: where it is no feed, the first feed that it names is added."""
    try:
        return await add_and_visit(wanted, world)
    except VisitError as error:
        if error.kind is not FailureKind.NOT_A_FEED or wanted.type.name != "rss.feed":
            raise
    try:
        async with asyncio.timeout(world.timeout_seconds):
            best, *_ = await discover(wanted.url, world.fetcher)
    except TimeoutError:
        raise too_slow(world.timeout_seconds) from None
    return await add_and_visit(replace(wanted, url=best.url), world)


def add_unvisited(connection: Connection, wanted: NewSource, now: float) -> Source:
    """Store the source without a request: it is first in line for the next collection."""
    return _add(connection, wanted, now)


def read_wanted_config(wanted: NewSource, collector: Collector) -> SourceConfig:
    return read_config(collector.config_model, wanted.config, wanted.type.name)


async def first_visit(
    wanted: NewSource, collector: Collector, fetcher: Fetcher, secrets: Mapping[str, str], seconds: float
) -> Harvest:
    """What the source yields to somebody who knows nothing of it. No secret is in what it raises."""
    source = Source(0, wanted.name or wanted.url, wanted.type.name, wanted.url, wanted.config)
    config = read_wanted_config(wanted, collector)
    try:
        async with asyncio.timeout(seconds):
            return await collector.collect(Errand(source, fill_references(config, secrets), fetcher))
    except HeadwaterError as error:
        raise error.with_values(lambda value: hide_secrets(value, secrets)) from None
    except TimeoutError:
        raise too_slow(seconds) from None


def _add(connection: Connection, wanted: NewSource, now: float, title: str | None = None) -> Source:
    return add_source(
        connection,
        name=storable(wanted.name or title) or urlsplit(wanted.url).hostname or wanted.url,
        type=wanted.type.name,
        url=wanted.url,
        now=now,
        config=wanted.config,
        folder=storable(wanted.folder),
    )


def read_url(text: str) -> str:
    """An http or https address from what people paste: `feed:` and missing schemes are understood."""
    text = text.strip()
    if not text or text.startswith("/"):
        raise InputError(
            "{url} is not an address of the web; it starts with http:// or https://", url=text or "''"
        )
    text = re.sub(r"^feed:(//)?(?=https?:)", "", text, flags=re.IGNORECASE)
    text = re.sub(r"^feed:(//)?", "http://", text, flags=re.IGNORECASE)
    if not _HAS_SCHEME.match(text) or re.match(r"[^/]+:\d", text):
        text = "https://" + text
    try:
        parts = urlsplit(text)
        valid = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        if re.match(r"[a-z]+://[^/?#\[\]]*:\d+(?=[/?#]|$)", text, re.IGNORECASE):
            raise InputError(
                "{url} has a port that does not exist; ports go from 1 to 65535", url=without_userinfo(text)
            ) from None
        valid = False
    if not valid or _NEVER_IN_A_URL.search(text):
        raise InputError(
            "{url} is not an address of the web; it starts with http:// or https://",
            url=without_userinfo(text),
        )
    if (length := len(text.encode())) > MAX_URL_BYTES:
        raise InputError(
            "{url}… is too long for an address: {length} bytes, where {limit} are allowed",
            url=without_userinfo(text)[:80],
            length=length,
            limit=MAX_URL_BYTES,
        )
    return text


def split_credentials(url: str) -> tuple[str, dict[str, str]]:
    """An address that `read_url` accepted without its user name and password, and these as keys of a config."""
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    user, colon, password = userinfo.partition(":")
    credentials = {"user": unquote(user)} if userinfo else {}
    if colon:
        credentials["password"] = unquote(password)
    return urlunsplit(parts._replace(netloc=host)), credentials


def without_userinfo(text: str) -> str:
    """What somebody gave as an address, as it may be shown: nothing that can be a password is in it."""
    return re.sub(
        r"\A([a-z][a-z0-9+.-]*://)?([^/]*|[^/:]*:.*)@", r"\1", text, flags=re.IGNORECASE | re.DOTALL
    )
