"""One visit to one source, from its claim to what is to be written.

    claimed source → collector (fetch, parse) → what is known of these items → decide → plan → Settlement

A visit touches nothing but the network and one read of the database; the settlement is committed by the
caller. It never raises for what a source does: every failure becomes part of the settlement. Only a
StoreError passes through, for that is not a fault of the source's.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from headwater.collect.bounding import bound_result
from headwater.collect.context import VisitContext
from headwater.collect.decide import Candidate, by_address, candidates, decide, id_key
from headwater.collect.host_queues import host_of
from headwater.collect.hub_trust import apply_push
from headwater.collect.outage import NETWORK_KINDS
from headwater.collect.planning import Planner
from headwater.collect.rendering import make_show
from headwater.collectors.base import (
    Collector,
    FetchRequest,
    FetchResult,
    SourceConfig,
    has_credentials,
    keeps_origin,
    read_config,
    reject_empty_result,
)
from headwater.collectors.secrets import fill_references, hide_secrets
from headwater.collectors.types import collector_of, config_model_of
from headwater.errors import FailureKind, FetchError, HeadwaterError, StoreError, Text, VisitError
from headwater.fetch.usage import Usage, count_usage
from headwater.model import NO_HINTS, NO_METADATA, Observation, Source, SourceMetadata, Visit, changed_source
from headwater.states import NO_VISIT_AT
from headwater.store.collecting.memory import read_memory
from headwater.store.collecting.push import read_subscription
from headwater.store.collecting.queue import Settlement
from headwater.store.core.bulk import storable
from headwater.store.core.database import Store
from headwater.store.reading.items import Known, known_keys
from headwater.threads import read_aside

log = logging.getLogger(__name__)

MANY_ITEMS = 500
MANY_BYTES = 1_000_000
POSTPONE_SECONDS = 60.0
MOVED_AFTER = 3  # visits in a row that were sent to the same new address for good

NO_COLLECTOR = Text("there is no collector for it")

_NOT_SENT = frozenset({FailureKind.DNS, FailureKind.CONNECT, FailureKind.TLS})

_warned_types: set[str] = set()


async def visit(source: Source, context: VisitContext) -> Settlement:
    """Visit a claimed source."""
    started_at = context.clock()
    usage = count_usage()
    try:
        collector = collector_of(source.type)
        if collector is None:
            return _skipped(source, context, started_at)
        config = read_config(collector.config_model, source.config, source.type)
        if (reason := collector.why_skipped(config)) is not None:
            return _skipped(source, context, started_at, reason)
        if collector.is_delivered:
            return _awaiting_delivery(source, context, started_at)
        async with asyncio.timeout(context.timeout_seconds):
            result = await collector.collect(await _fetch_request(source, collector, config, context))
        reject_empty_result(source, config, result)
        return await _succeeded(source, result, context, started_at)
    except VisitError as error:
        if error.kind is FailureKind.RATE_LIMITED and error.http_status is None:
            return _postponed(source, error, context, started_at)
        return failed_settlement(source, error, context, started_at, usage)
    except TimeoutError:
        return failed_settlement(source, too_slow(context.timeout_seconds), context, started_at, usage)
    except StoreError:
        raise  # ours, not the source's
    except HeadwaterError as error:
        return failed_settlement(source, internal_failure(error.render("en")), context, started_at, usage)
    except (Exception, SystemExit) as error:  # the latter by a plugin that takes itself for a program
        log.exception("source %s: unexpected error", source.id)
        return failed_settlement(
            source, internal_failure(f"{type(error).__name__}: {error}"), context, started_at, usage
        )


async def _fetch_request(
    source: Source, collector: Collector, config: SourceConfig, context: VisitContext
) -> FetchRequest:
    memory = await context.store.read(read_memory, source.id) if collector.remembers else None
    return FetchRequest(
        source,
        fill_references(config, context.secrets),
        context.fetcher,
        memory,
        partial(_known_ids, context.store, source.id),
        make_show(config, context.fetcher),
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


async def _succeeded(
    source: Source, result: FetchResult, context: VisitContext, started_at: float
) -> Settlement:
    # All visits whose answers are there are read first, and then all are planned: either half keeps the processor's
    # caches for itself, and planning a visit takes half the time.
    await asyncio.sleep(0)
    now = context.clock()
    if len(result.items) > MANY_ITEMS or result.bytes_received > MANY_BYTES:
        # Bounding and hashing them all would hold up every other visit.
        result, note, found = await read_aside(result.bytes_received, _taken, result, context.max_items, now)
    else:
        result, note, found = _taken(result, context.max_items, now)
    wanted = context.planner.history_wanted(source, news=bool(found))
    known: dict[bytes, Known] = {}
    history: list[float] = []
    if source.fetch_count == source.fetch_error_count:
        # Of a source that was never read, only what was read of it elsewhere is known, by id or by address.
        asked = by_address(found) if source.read_elsewhere else []
    else:
        asked = found
    if wanted or asked:
        known, history = await context.recall.ask(source.id, asked, wanted)
    if known:
        found = asked
    context.outages.record(host_of(source.url), now, None)
    settlement = successful_settlement(
        source, result, found, known, context.planner, started_at, now, history
    )
    if note is not None:
        settlement = replace(settlement, visit=replace(settlement.visit, error_message=note.render("en")))
    if context.takes_pushes:
        subscription = await context.store.read(read_subscription, source.id)
        settlement = apply_push(settlement, result, subscription, now)
    return settlement


def _taken(result: FetchResult, most: int, now: float) -> tuple[FetchResult, Text | None, list[Candidate]]:
    """What is taken of a result, in words what is not, and its items with their keys."""
    result, note = bound_result(result, most)
    return result, note, candidates(result.items, now)


def successful_settlement(
    source: Source,
    result: FetchResult,
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
    document = source.hints if result.document_hints is None else result.document_hints
    hints = document
    if result.hints is not NO_HINTS or hints is not NO_HINTS:
        hints = replace(
            document,
            max_age_seconds=result.hints.max_age_seconds,
            retry_after_seconds=result.hints.retry_after_seconds,
        )
    decision = decide(found, known, now=now, has_history=whole and source.last_entry_at is not None)
    # What a collector left where it was because it is known ties this visit to the one before.
    overflow = decision.overflow and not result.known_count
    items_found = len(found) + result.known_count
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
        validators=result.validators,
        hints=document,
        metadata=(metadata := _merge(source.metadata, result.metadata)),
        name=_name_after(source, metadata.title),
        last_fetched_at=now,
        fetch_count=source.fetch_count + 1,
        hit_count=source.hit_count + bool(decision.new_count),
        last_entry_at=_newest(source, decision.item_times, now),
        **_moved(source, result.permanent_url),
    )
    if after.moved_to and after.moved_count >= MOVED_AFTER:
        reason = {**after.plan_reason, "asks_to_move": after.moved_to}
        after = changed_source(after, {"status": "needs_attention", "plan_reason": reason})
    record = Visit(
        source_id=source.id,
        started_at=started_at,
        finished_at=now,
        outcome=seen.outcome,
        items_found=items_found,
        items_new=decision.new_count,
        items_updated=decision.updated_count,
        overflow=overflow,
        http_status=result.http_status,
        requests=result.requests,
        bytes_received=result.bytes_received,
    )
    return Settlement(source, after, record, decision.changes, result.memory)


def failed_settlement(
    source: Source, error: VisitError, context: VisitContext, started_at: float, usage: Usage | None = None
) -> Settlement:
    """What is written when a visit has failed; `usage`: what it has cost all the same."""
    usage = usage or Usage()
    now = context.clock()
    message = hide_secrets(error.render("en"), context.secrets)
    context.outages.record(host_of(source.url), now, error.kind)
    ours = error.kind in NETWORK_KINDS and context.outages.is_ours(now)
    after = replace(
        context.planner.after_failure(source, error, now, ours=ours),
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
        # The last one was not sent when there was no host to send it to.
        requests=max(0, usage.requests - (error.kind in _NOT_SENT)),
        bytes_received=usage.bytes_received,
        error_kind=error.kind,
        error_message=message,
    )
    return Settlement(source, after, record)


def _postponed(source: Source, error: VisitError, context: VisitContext, started_at: float) -> Settlement:
    """Nothing was sent, because the host is resting or its line is too long: no fault of the source's."""
    wait = max(error.retry_after_seconds or 0.0, POSTPONE_SECONDS)
    after = replace(source, next_fetch_at=started_at + wait, plan_reason={"postponed": wait})
    message = error.render("en")
    return Settlement(
        source, after, Visit(source.id, started_at, context.clock(), "skipped", error_message=message)
    )


def _awaiting_delivery(source: Source, context: VisitContext, started_at: float) -> Settlement:
    """Nothing to do, now or later: its items are handed over."""
    after = context.planner.after_success(source, Observation(at=started_at, outcome="skipped"))
    plan = {"delivered": True}
    after = replace(after, next_fetch_at=NO_VISIT_AT, plan_reason=plan, last_fetched_at=started_at)
    return Settlement(source, after, Visit(source.id, started_at, started_at, "skipped"))


def _skipped(
    source: Source, context: VisitContext, started_at: float, reason: Text = NO_COLLECTOR
) -> Settlement:
    if source.type not in _warned_types:
        _warned_types.add(source.type)
        log.warning("sources of type %s are skipped: %s", source.type, reason)
    seen = Observation(at=started_at, outcome="skipped")
    after = context.planner.after_success(source, seen)
    after = replace(after, plan_reason={**after.plan_reason, "skipped": reason.template})
    return Settlement(source, after, Visit(source.id, started_at, started_at, "skipped"))


def _newest(source: Source, item_times: Sequence[float], now: float) -> float | None:
    """The newest entry's time, as far as it has come."""
    return max((source.last_entry_at or 0.0, *(min(time, now) for time in item_times))) or None


def _merge(old: SourceMetadata, new: SourceMetadata) -> SourceMetadata:
    if new is NO_METADATA:
        return old
    return SourceMetadata(
        title=new.title or old.title,
        description=new.description or old.description,
        site_url=new.site_url or old.site_url,
        language=new.language or old.language,
        icon_url=new.icon_url or old.icon_url,
        details=old.details if new.details is None else new.details,
        repairs=old.repairs if new.repairs is None else new.repairs,
    )


def _name_after(source: Source, title: str | None) -> str:
    """The source's name: one that no person chose, its host or its former title, follows its title."""
    name = source.name
    if not title or name == title:
        return name
    # A look before the address is read, which costs a tenth of a visit that finds nothing.
    is_given = name == source.metadata.title or (
        name in source.url.lower() and name == urlsplit(source.url).hostname
    )
    return (storable(title) or name) if is_given else name


def _moved(source: Source, permanent_url: str | None) -> dict[str, Any]:
    """What a permanent redirect changes: it is followed for good once it has been seen often enough.

    A source with credentials moves within its origin only. Anything else is left to its owner: `moved_to` stays.
    """
    if permanent_url is None or permanent_url == source.url:
        return {} if source.moved_to is None else {"moved_to": None, "moved_count": 0}
    count = source.moved_count + 1 if permanent_url == source.moved_to else 1
    if count < MOVED_AFTER or not _may_move(source, permanent_url):
        return {"moved_to": permanent_url, "moved_count": count}
    log.info("source %s has moved for good: %s is now %s", source.id, source.url, permanent_url)
    return {"url": permanent_url, "moved_to": None, "moved_count": 0}


def _may_move(source: Source, url: str) -> bool:
    return keeps_origin(source.url, url) or not has_credentials(source.config, config_model_of(source.type))
