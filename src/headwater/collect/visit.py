"""One visit to one source, from its claim to what is to be written.

    claimed source → collector (fetch, parse) → what is known of these items → decide → plan → Settlement

A visit touches nothing but the network and one read of the database; the settlement is committed by whoever
asked for the visit. It never raises for what a source does: every failure becomes part of the settlement. Only a
StoreError passes through, for that is no fault of the source's.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from headwater.collect.decide import Candidate, by_address, candidates, decide, id_key
from headwater.collect.lanes import host_of
from headwater.collect.outage import NETWORK_KINDS
from headwater.collect.planning import Planner
from headwater.collect.surroundings import Surroundings
from headwater.collect.trust import heed_push
from headwater.collectors.base import (
    Collector,
    Errand,
    Harvest,
    SourceConfig,
    read_config,
    refuse_emptiness,
)
from headwater.collectors.secrets import fill_references, hide_secrets
from headwater.collectors.types import collector_of
from headwater.errors import FailureKind, FetchError, HeadwaterError, StoreError, Text, VisitError
from headwater.model import NO_HINTS, NO_METADATA, Observation, Source, SourceMetadata, Visit
from headwater.store.database import Store
from headwater.store.items import Known, known_keys
from headwater.store.memory import read_memory
from headwater.store.push import read_subscription
from headwater.store.queue import Settlement

log = logging.getLogger(__name__)

MANY_ITEMS = 500
POSTPONE_SECONDS = 60.0
MOVED_AFTER = 3  # visits in a row that were sent to the same new address for good

NO_COLLECTOR = Text("there is no collector for it")

_warned_types: set[str] = set()


async def visit(source: Source, world: Surroundings) -> Settlement:
    """Visit a claimed source."""
    started_at = world.clock()
    try:
        collector = collector_of(source.type)
        if collector is None:
            return _skipped(source, world, started_at)
        config = read_config(collector.config_model, source.config, source.type)
        if (reason := collector.why_skipped(config)) is not None:
            return _skipped(source, world, started_at, reason)
        async with asyncio.timeout(world.timeout_seconds):
            harvest = await collector.collect(await _errand(source, collector, config, world))
        refuse_emptiness(source, config, harvest)
        return await _succeeded(source, harvest, world, started_at)
    except VisitError as error:
        if error.kind is FailureKind.RATE_LIMITED and error.http_status is None:
            return _postponed(source, error, world, started_at)
        return failed_settlement(source, error, world, started_at)
    except TimeoutError:
        return failed_settlement(source, too_slow(world.timeout_seconds), world, started_at)
    except StoreError:
        raise  # ours, not the source's
    except HeadwaterError as error:
        return failed_settlement(source, internal_failure(error.render("en")), world, started_at)
    except (Exception, SystemExit) as error:  # the latter by a plugin that takes itself for a program
        log.exception("source %s: unexpected error", source.id)
        return failed_settlement(
            source, internal_failure(f"{type(error).__name__}: {error}"), world, started_at
        )


async def _errand(source: Source, collector: Collector, config: SourceConfig, world: Surroundings) -> Errand:
    memory = await world.store.read(read_memory, source.id) if collector.remembers else None
    return Errand(
        source,
        fill_references(config, world.secrets),
        world.fetcher,
        memory,
        partial(_known_ids, world.store, source.id),
    )


async def _known_ids(store: Store, source_id: int, external_ids: Sequence[str]) -> set[str]:
    ids = {id_key(external_id): external_id for external_id in external_ids}
    found = await store.read(known_keys, source_id, ids)
    return {ids[key] for key in found}


def too_slow(seconds: float) -> VisitError:
    return FetchError(FailureKind.TIMEOUT, "the visit took longer than {seconds:g} s in all", seconds=seconds)


def internal_failure(problem: str) -> VisitError:
    return VisitError(
        FailureKind.INTERNAL, "Headwater could not finish the visit: {problem}", problem=problem
    )


async def _succeeded(source: Source, harvest: Harvest, world: Surroundings, started_at: float) -> Settlement:
    # All visits whose answers are there are read first, and then all are planned: either half keeps the processor's
    # caches for itself, and planning a visit takes half the time.
    await asyncio.sleep(0)
    now = world.clock()
    if len(harvest.items) > MANY_ITEMS:  # hashing them all would hold up every other visit
        found = await asyncio.to_thread(candidates, harvest.items, now)
    else:
        found = candidates(harvest.items, now)
    wanted = world.planner.history_wanted(source, news=bool(found))
    known: dict[bytes, Known] = {}
    history: list[float] = []
    if source.fetch_count == source.fetch_error_count:
        # Of a source that was never read, only what somebody has read elsewhere is known, by id or by address.
        asked = by_address(found) if source.read_elsewhere else []
    else:
        asked = found
    if wanted or asked:
        known, history = await world.recall.ask(source.id, asked, wanted)
    if known:
        found = asked
    world.weather.record(host_of(source.url), now, None)
    settlement = successful_settlement(source, harvest, found, known, world.planner, started_at, now, history)
    if world.takes_pushes:
        subscription = await world.store.read(read_subscription, source.id)
        settlement = heed_push(settlement, harvest, subscription, now)
    return settlement


def successful_settlement(
    source: Source,
    harvest: Harvest,
    found: list[Candidate],
    known: Mapping[bytes, Known],
    planner: Planner,
    started_at: float,
    now: float,
    history: Sequence[float] = (),
    *,
    whole: bool = True,
) -> Settlement:
    """What is written when a visit has worked.

    `known` is what the database knows of what was found, `history` what the planner wanted to be told. `whole`:
    what was found is all that the source shows, so that sharing nothing with it means that something was missed.
    """
    # A document that was not read again says what it said the last time.
    document = source.hints if harvest.document_hints is None else harvest.document_hints
    hints = document
    if harvest.hints is not NO_HINTS or hints is not NO_HINTS:
        hints = replace(
            document,
            max_age_seconds=harvest.hints.max_age_seconds,
            retry_after_seconds=harvest.hints.retry_after_seconds,
        )
    decision = decide(found, known, now=now, has_history=whole and source.last_entry_at is not None)
    # What a collector left where it was because it is known ties this visit to the one before.
    overflow = decision.overflow and not harvest.known_count
    items_found = len(found) + harvest.known_count
    seen = Observation(
        at=now,
        outcome="new" if decision.new_count else "unchanged",
        item_times=decision.item_times,
        items_found=items_found,
        first=source.last_fetched_at is None,
        overflow=overflow,
        hints=hints,
    )
    after = planner.after_success(
        source,
        seen,
        history,
        validators=harvest.validators,
        hints=document,
        metadata=_merge(source.metadata, harvest.metadata),
        last_fetched_at=now,
        fetch_count=source.fetch_count + 1,
        hit_count=source.hit_count + bool(decision.new_count),
        last_entry_at=max((source.last_entry_at or 0.0, *decision.item_times), default=None) or None,
        **_moved(source, harvest.permanent_url),
    )
    record = Visit(
        source_id=source.id,
        started_at=started_at,
        finished_at=now,
        outcome=seen.outcome,
        items_found=items_found,
        items_new=decision.new_count,
        items_updated=decision.updated_count,
        overflow=overflow,
        http_status=harvest.http_status,
        requests=harvest.requests,
        bytes_received=harvest.bytes_received,
    )
    return Settlement(source, after, record, decision.changes, harvest.memory)


def failed_settlement(
    source: Source, error: VisitError, world: Surroundings, started_at: float
) -> Settlement:
    """What is written when a visit has failed."""
    now = world.clock()
    message = hide_secrets(error.render("en"), world.secrets)
    world.weather.record(host_of(source.url), now, error.kind)
    ours = error.kind in NETWORK_KINDS and world.weather.is_ours(now)
    after = replace(
        world.planner.after_failure(source, error, now, ours=ours),
        last_fetched_at=now,
        fetch_count=source.fetch_count + 1,
        fetch_error_count=source.fetch_error_count + 1,
        last_error=message,
        last_error_kind=error.kind,
    )
    record = Visit(
        source_id=source.id,
        started_at=started_at,
        finished_at=now,
        outcome="failed",
        http_status=error.http_status,
        error_kind=error.kind,
        error_message=message,
    )
    return Settlement(source, after, record)


def _postponed(source: Source, error: VisitError, world: Surroundings, started_at: float) -> Settlement:
    """Nothing was sent, because the host is resting or its line is too long: no fault of the source's."""
    wait = max(error.retry_after_seconds or 0.0, POSTPONE_SECONDS)
    after = replace(source, next_fetch_at=started_at + wait, plan_reason={"postponed": wait})
    message = error.render("en")
    return Settlement(
        source, after, Visit(source.id, started_at, world.clock(), "skipped", error_message=message)
    )


def _skipped(
    source: Source, world: Surroundings, started_at: float, reason: Text = NO_COLLECTOR
) -> Settlement:
    if source.type not in _warned_types:
        _warned_types.add(source.type)
        log.warning("sources of type %s are skipped: %s", source.type, reason)
    seen = Observation(at=started_at, outcome="skipped")
    after = world.planner.after_success(source, seen)
    return Settlement(source, after, Visit(source.id, started_at, started_at, "skipped"))


def _merge(old: SourceMetadata, new: SourceMetadata) -> SourceMetadata:
    if new is NO_METADATA:
        return old
    return SourceMetadata(
        title=new.title or old.title,
        description=new.description or old.description,
        site_url=new.site_url or old.site_url,
        language=new.language or old.language,
        icon_url=new.icon_url or old.icon_url,
    )


def _moved(source: Source, permanent_url: str | None) -> dict[str, Any]:
    """What a permanent redirect changes: it is followed for good once it has been seen often enough."""
    if permanent_url is None or permanent_url == source.url:
        return {} if source.moved_to is None else {"moved_to": None, "moved_count": 0}
    count = source.moved_count + 1 if permanent_url == source.moved_to else 1
    if count < MOVED_AFTER:
        return {"moved_to": permanent_url, "moved_count": count}
    log.info("source %s has moved for good: %s is now %s", source.id, source.url, permanent_url)
    return {"url": permanent_url, "moved_to": None, "moved_count": 0}
