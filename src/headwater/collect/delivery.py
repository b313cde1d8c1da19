"""Storing items that are delivered instead of found by a visit: those that hubs push, and e-mails.

The items are treated like a visit's: decide, settle, one transaction that holds the source's claim. The validators, the
plan and the failures of the source's address stay as they are: it was not visited.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from headwater.collect.bounding import bound_result
from headwater.collect.decide import Candidate, candidates, is_outdated
from headwater.collect.known_items import recall
from headwater.collect.planning import Planner
from headwater.collect.visit import successful_settlement
from headwater.collectors.base import FetchResult
from headwater.model import Source
from headwater.store.collecting.queue import Settlement, claim_sources, settle_batch
from headwater.store.reading.items import Known, earlier_contents, recent_times
from headwater.store.reading.search import words_of_item

LEASE_SECONDS = 60.0
PATIENCE_SECONDS = 2.0  # for a visit under way to end
_KEPT = (
    *(
        "next_fetch_at",
        "plan_reason",
        "planned_from",
        "status",
        "is_active",
        "last_fetched_at",
        "fetch_count",
    ),
    *("moved_to", "moved_count", "consecutive_failures", "last_error", "last_error_kind"),
)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What was handed over, with the keys of its items and the words they are found by."""

    result: FetchResult
    found: list[Candidate]
    words: Mapping[bytes, tuple[str, ...]]


def prepare_delivery(result: FetchResult, most_items: int, now: float) -> Delivered:
    """What is taken of a delivery. Its time depends on what is in it, so it is done off the event loop."""
    result, _ = bound_result(result, most_items)
    found = candidates(result.items, now)
    return Delivered(result, found, {each.id_key: tuple(words_of_item(each.item)) for each in found})


def store_delivery(
    connection: Connection,
    source_id: int,
    delivered: Delivered,
    planner: Planner,
    now: float,
) -> int | None:
    """Claim and settle in one transaction; how many items were left out because something newer is stored.

    None while a visit holds the claim.
    """
    claimed = claim_sources(connection, [source_id], now=now, lease_until=now + LEASE_SECONDS)
    if not claimed:
        return None
    source = claimed[0]
    known = recall(connection, {source.id: delivered.found})[source.id]
    current = _without_outdated(connection, source.id, delivered.found, known)
    settlement = _settlement(connection, source, delivered.result, current, known, planner, now)
    changes = tuple(
        replace(change, words=delivered.words.get(change.id_key)) for change in settlement.changes
    )
    settle_batch(connection, [replace(settlement, changes=changes)])
    return len(delivered.found) - len(current)


def _without_outdated(
    connection: Connection, source_id: int, found: list[Candidate], known: Mapping[bytes, Known]
) -> list[Candidate]:
    """What comes late, or once more, must not undo what came after it; a visit sees what holds."""
    memories = {each.id_key: known[each.id_key] for each in found if each.id_key in known}
    keys = [
        memories[each.id_key].item_key
        for each in found
        if each.id_key in memories and memories[each.id_key].content_hash != each.content_hash
    ]
    earlier = earlier_contents(connection, source_id, keys)
    return [
        each
        for each in found
        if (memory := memories.get(each.id_key)) is None
        or not is_outdated(each, memory, earlier.get(memory.item_key, ()))
    ]


def _settlement(
    connection: Connection,
    source: Source,
    result: FetchResult,
    found: list[Candidate],
    known: dict[bytes, Known],
    planner: Planner,
    now: float,
) -> Settlement:
    """What is written: items, and what policies learn from them."""
    settlement = successful_settlement(
        source,
        replace(result, validators=source.validators),
        found,
        known,
        planner,
        now,
        now,
        recent_times(connection, source.id, planner.history_wanted(source, news=bool(found))),
        whole=False,
    )
    after = replace(settlement.after, **{name: getattr(source, name) for name in _KEPT})
    return replace(settlement, after=after, pushed=True)
