"""What the fleet has spent on visits and what they found, for steering the price of a visit."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import orjson
from sqlalchemy import Connection, func, or_, select

from headwater.store.collecting.counting import count_visited_sources
from headwater.store.core.bulk import select_by
from headwater.store.core.settings import get_setting, set_setting
from headwater.store.core.tables import collection_records, items, sources

SAMPLE_SOURCES = 2_000  # a sample as large as this tells the sum over millions to a few per cent
MOST_DELAYS = 20_000
SPENT_KEY = "spent"
DAY_SECONDS = 86_400.0
_PINNED = ("interval", "cadence")


@dataclass(frozen=True, slots=True)
class Spending:
    """Of the sources that the adaptive policy plans: how many, types and states (of all, or of a sample), the visits
    that it planned, and the delays of the items that those found.
    """

    sources: float
    states: Sequence[tuple[str, bytes]]
    visits: int
    delays: Sequence[float]


def read_spending(connection: Connection, since: float, now: float, rng: Random) -> Spending:
    states, share = _sample(connection, rng)
    visits = count_visits(connection, since, now)
    _note(connection, visits, now)
    return Spending(
        sources=share * count_visited_sources(connection),
        states=states,
        visits=visits.get("adaptive", 0),
        delays=_read_delays(connection, since, now),
    )


def read_spent(connection: Connection, since: float) -> dict[str, int]:
    """The visits noted since then, by why they were made: a policy, or asked, or pushed."""
    total: dict[str, int] = {}
    for at, counts in get_setting(connection, SPENT_KEY) or ():
        for why, count in counts.items() if at > since else ():
            total[why] = total.get(why, 0) + count
    return total


def _note(connection: Connection, visits: dict[str, int], now: float) -> None:
    """Keep the counts of the last day, for all to see: counting them again would read every visit's record."""
    noted = get_setting(connection, SPENT_KEY) or []
    kept = [[at, counts] for at, counts in noted if now - DAY_SECONDS < at < now]
    set_setting(connection, SPENT_KEY, [*kept, [now, visits]], now)


def count_visits(connection: Connection, since: float, now: float) -> dict[str, int]:
    """The visits since then, by why they were made: the policy that planned them, or asked, or pushed."""
    record = collection_records.c
    query = (
        select(record.planned_by, sources.c.policy, func.count())
        .join_from(collection_records, sources)
        .where(record.started_at > since, record.started_at <= now, record.status != "skipped")
        .group_by(record.planned_by, sources.c.policy)
    )
    counts: dict[str, int] = {}
    for planned_by, policy, count in connection.execute(query):
        why = policy if planned_by == "adaptive" and policy in _PINNED else planned_by
        counts[why] = counts.get(why, 0) + count
    return counts


def _sample(connection: Connection, rng: Random) -> tuple[list[tuple[str, bytes]], float]:
    """States of sources that the adaptive policy plans, and their share of all that are visited."""
    # One query each: in one query, SQLite finds neither by the index alone.
    first, last = (connection.execute(select(end(sources.c.id))).scalar() for end in (func.min, func.max))
    if first is None or last is None:
        return [], 1.0
    numbers = range(first, last + 1)
    chosen = numbers if len(numbers) <= SAMPLE_SOURCES else rng.sample(numbers, SAMPLE_SOURCES)
    rows = select_by(
        connection,
        "SELECT policy, plan_reason, type, policy_state FROM sources"
        " WHERE NOT is_deleted AND schedule_enabled AND is_active AND id {values}",
        list(chosen),
        "bigint",
    )
    adaptive = [(kind, state) for policy, reason, kind, state in rows if _is_adaptive(policy, reason)]
    share = len(adaptive) / len(rows) if rows else 1.0
    return [(kind, bytes(state)) for kind, state in adaptive if state is not None], share


def _is_adaptive(policy: str | None, reason: str) -> bool:
    if policy in _PINNED:
        return False
    told = orjson.loads(reason)
    return bool(told.get("policy", "adaptive") == "adaptive" and told.get("decided_by") != "pushed")


def _read_delays(connection: Connection, since: float, now: float) -> list[float]:
    """How long after they appeared the items found since then were found.

    Left out is what tells nothing of it: what was there before its source was added, and whatever has no date, or
    one that is not between the visit that found it and the one before.
    """
    item, record = items.c, collection_records.c
    query = (
        select(item.first_seen_at - item.published_at)
        .join_from(items, sources)
        .join(
            collection_records,
            (record.source_id == item.source_id)
            & (record.finished_at == item.first_seen_at)
            & (record.started_at > since - 3600.0),
        )
        .where(
            item.first_seen_at > since,
            item.first_seen_at <= now,
            ~item.date_invented,
            item.published_at >= sources.c.created_at,
            item.published_at <= item.first_seen_at,
            or_(record.since_at.is_(None), item.published_at >= record.since_at),
            record.planned_by == "adaptive",
            or_(sources.c.policy.is_(None), sources.c.policy.not_in(_PINNED)),
        )
        .order_by(item.first_seen_at.desc())
        .limit(MOST_DELAYS)
    )
    return [float(delay) for delay in connection.execute(query).scalars()]
