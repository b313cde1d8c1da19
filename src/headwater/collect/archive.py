"""Reading a feed back to its beginning, on demand: the archives that it names (RFC 5005), one after the other.

    the feed → its prev-archive, or its next page → that one's → … → the first

Each document's items are stored in one transaction with the place that was reached, so reading goes on there after a
kill. What is known stays as it is: an archive may be older than what is stored. Plans learn nothing from it, and no
pipeline runs start, for these items were published long ago.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from sqlalchemy import Connection

from headwater.collect.bounding import bound_result
from headwater.collect.context import VisitContext
from headwater.collect.decide import Candidate, candidates, decide
from headwater.collect.delivery import LEASE_SECONDS
from headwater.collect.known_items import recall
from headwater.collect.visit import too_slow
from headwater.collectors.base import FetchResult, SourceConfig, read_config, request_to
from headwater.collectors.feed import FeedCollector, read_feed, read_items
from headwater.collectors.secrets import fill_references, hide_secrets
from headwater.collectors.types import collector_of
from headwater.errors import FailureKind, HeadwaterError, InputError, ParseError, VisitError
from headwater.fetch.message import NO_VALIDATORS, public_url
from headwater.formats.feeds.feed import Feed
from headwater.model import Source, Visit
from headwater.store.collecting.memory import read_memory
from headwater.store.collecting.queue import Settlement, claim_sources, settle_batch
from headwater.store.collecting.sources import get_source
from headwater.threads import read_aside

MOST_DOCUMENTS: Final = 10_000  # of one feed
WAIT_SECONDS: Final = 0.2  # for a visit under way to end
PATIENCE: Final = 600  # so often


@dataclass(frozen=True, slots=True)
class Place:
    """How far a feed was read back. `url` is the document to read next; None: its beginning was reached."""

    url: str | None
    documents: int = 0
    items: int = 0  # that were new
    last: str = ""  # what the document before consisted of, to tell one that comes again

    @classmethod
    def read(cls, memory: bytes | None) -> "Place | None":
        """The place in a source's memory; None when it was never read back."""
        try:
            found: Any = orjson.loads(memory or b"{}")["archive"]
            return cls(found["url"], found["documents"], found["items"], found["last"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return None

    def to_bytes(self) -> bytes:
        told = {"url": self.url, "documents": self.documents, "items": self.items, "last": self.last}
        return orjson.dumps({"archive": told})


Progress = Callable[[Place], None]


async def read_back(
    source_id: int,
    context: VisitContext,
    *,
    again: bool = False,
    most_documents: int = MOST_DOCUMENTS,
    progress: Progress = lambda place: None,
) -> Place:
    """Read a source's archives from where it was left, or from the feed itself, to their end.

    InputError for a source that is not a feed, VisitError when a document cannot be read: then the place is kept.
    """
    source = await context.store.read(get_source, source_id)
    if not isinstance(collector_of(source.type), FeedCollector):
        raise InputError("{name} is not a feed; only feeds have archives", name=source.name)
    place = Place.read(await context.store.read(read_memory, source_id))
    if place is None or place.url is None or again:
        place = Place(source.url)
    while place.url is not None and place.documents < most_documents:
        place = await _read_one(source, place, context)
        progress(place)
    return place


async def _read_one(source: Source, place: Place, context: VisitContext) -> Place:
    """Read the document of a place and store its items with the next place."""
    config = read_config(SourceConfig, source.config, source.type)
    started_at = context.clock()
    try:
        async with asyncio.timeout(context.timeout_seconds):
            feed, result = await _fetch(source, fill_references(config, context.secrets), place, context)
    except TimeoutError:
        raise too_slow(context.timeout_seconds) from None
    except HeadwaterError as error:
        raise error.with_values(lambda value: hide_secrets(value, context.secrets)) from None
    older = feed.archive_link or feed.next_link
    if older is None and place.documents == 0:
        raise VisitError(
            FailureKind.NOT_FOUND,
            "{url} names no archive and no older page, so there is nothing to read back",
            url=public_url(place.url or source.url),
        )
    result, _ = bound_result(result, context.max_items)
    found = await read_aside(result.bytes_received, candidates, result.items, context.clock())
    digest = _digest(found)
    # Some answer an address they do not know with their newest page: nothing but a circle follows from there.
    is_end = older is None or older == place.url or digest == place.last
    reached = replace(place, url=None if is_end else older, documents=place.documents + 1, last=digest)

    def store(connection: Connection) -> Place | None:
        return _store(connection, source.id, found, reached, result, started_at, context.clock())

    for _ in range(PATIENCE):
        if (stored := await context.store.write(store)) is not None:
            return stored
        await asyncio.sleep(WAIT_SECONDS)
    raise VisitError(FailureKind.INTERNAL, "source {name} is being visited all the time", name=source.name)


async def _fetch(
    source: Source, config: SourceConfig, place: Place, context: VisitContext
) -> tuple[Feed, FetchResult]:
    url = place.url or source.url
    response = await context.fetcher.get(request_to(source, config, url, NO_VALIDATORS))
    try:
        feed = await read_feed(response)
    except ParseError as error:
        raise VisitError(
            error.kind, "{url}: {problem}", url=public_url(url), problem=error.render()
        ) from None
    return feed, FetchResult.of(response, items=await read_items(feed, len(response.body)))


def _digest(found: list[Candidate]) -> str:
    """What a document consists of."""
    return hashlib.blake2b(b"".join(sorted(each.id_key for each in found)), digest_size=16).hexdigest()


def _store(
    connection: Connection,
    source_id: int,
    found: list[Candidate],
    reached: Place,
    result: FetchResult,
    started_at: float,
    now: float,
) -> Place | None:
    """Claim, and settle what is new of a document; None while a visit holds the claim."""
    claimed = claim_sources(connection, [source_id], now=now, lease_until=now + LEASE_SECONDS)
    if not claimed:
        return None
    (source,) = claimed
    decision = decide(found, recall(connection, {source_id: found})[source_id], now=now, has_history=False)
    changes = tuple(change for change in decision.changes if change.kind == "new")
    reached = replace(reached, items=reached.items + len(changes))
    record = Visit(
        source_id,
        started_at,
        now,
        "new" if changes else "unchanged",
        items_found=len(found),
        items_new=len(changes),
        http_status=result.http_status,
        requests=result.requests,
        bytes_received=result.bytes_received,
    )
    settle_batch(
        connection,
        [Settlement(source, source, record, changes, reached.to_bytes(), read_back=True)],
    )
    return reached
