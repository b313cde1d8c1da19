"""The numbers that tell how the collection goes: for `headwater status`, the API and the dashboard.

All are found by an index and cost as much as is due, has failed or happened lately, however much is stored.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from headwater.states import SOURCE_STATES, SourceState
from headwater.store.collecting.counting import count_all_sources
from headwater.store.collecting.outages import Outage, read_outages
from headwater.store.collecting.queue import count_due, is_leased
from headwater.store.collecting.sources import MANUAL_LANE, NEW_LANE, due_since
from headwater.store.collecting.spending import read_spent
from headwater.store.collecting.states import IS_UNUSUAL, NEEDS_ATTENTION, STATE
from headwater.store.core.tables import collection_records, source_leases, sources
from headwater.store.reports.hours import VisitSums, visits_since

RECENT_SECONDS = 3_600.0
DAY = 86_400.0
LISTED = 5


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """How many sources there are, and of those out of the ordinary, how."""

    total: int  # that are not deleted
    active: int  # visited by plan
    states: dict[SourceState, int]  # all but the removed
    paused_by_error: int  # those that fail for long: visited daily or weekly
    needs_attention: int  # by their owners: credentials are refused, or an address has moved
    failing: dict[str, int]  # those that fail, by kind of failure


@dataclass(frozen=True, slots=True)
class LastVisit:
    source_id: int
    source_name: str
    started_at: float
    outcome: str
    items_new: int
    error_message: str | None


@dataclass(frozen=True, slots=True)
class NextVisit:
    source_id: int
    source_name: str
    due_at: float  # in the past: it waits for its turn


@dataclass(frozen=True, slots=True)
class Status:
    at: float
    sources: SourceCounts
    due: int
    lag_seconds: float  # how long the one waits that has waited longest; 0 when nothing is due
    in_flight: int
    next_due_at: float | None
    today: VisitSums  # since midnight, UTC
    last_24h: VisitSums
    spent: dict[str, int]  # its visits by why they were made, as of the last steering
    outages: list[Outage]
    last_visits: list[LastVisit]
    next_visits: list[NextVisit]


def read_status(connection: Connection, now: float) -> Status:
    """How the collection goes."""
    next_visits = read_next_visits(connection, now, limit=LISTED)
    return Status(
        at=now,
        sources=count_sources(connection),
        due=count_due(connection, now),
        lag_seconds=read_lag(connection, now),
        in_flight=count_in_flight(connection, now),
        next_due_at=next_visits[0].due_at if next_visits else None,
        today=visits_since(connection, now // DAY * DAY),
        last_24h=visits_since(connection, now - DAY),
        spent=read_spent(connection, now - DAY),
        outages=read_outages(connection, now),
        last_visits=_last_visits(connection),
        next_visits=next_visits,
    )


def count_sources(connection: Connection) -> SourceCounts:
    """All are counted by the newest, the unusual ones by an index that holds no others."""
    total = count_all_sources(connection)
    states: dict[SourceState, int] = dict.fromkeys(SOURCE_STATES, 0)
    failing: dict[str, int] = {}
    for_long = asking = 0
    kinds = (
        STATE.label("state"),
        sources.c.last_error_kind,
        sources.c.is_active,
        NEEDS_ATTENTION.label("asks"),
    )
    unusual = select(*kinds).where(IS_UNUSUAL).subquery()
    for state, error_kind, is_active, asks, count in connection.execute(
        select(unusual, func.count()).group_by(*unusual.c)
    ):
        states[state] += count
        asking += count if asks else 0
        if state == "failing":
            failing[error_kind or "internal"] = failing.get(error_kind or "internal", 0) + count
            for_long += 0 if is_active else count
    total -= states.pop("removed")
    states["on_time"] = total - sum(number for state, number in states.items() if state != "on_time")
    return SourceCounts(
        total=total,
        active=total - states["paused"] - states["gone"] - for_long,
        states=states,
        paused_by_error=for_long,
        needs_attention=asking,
        failing=failing,
    )


def read_lag(connection: Connection, now: float) -> float:
    """How long the source waits that has waited longest: in each lane that is the first."""
    place = sources.c.due_at
    waits = [0.0]
    for low, high in ((MANUAL_LANE, NEW_LANE), (NEW_LANE, 0.0), (0.0, now)):
        first = connection.execute(
            select(place).where(place >= low, place < high, ~is_leased(now)).order_by(place).limit(1)
        ).scalar()
        if first is not None:
            waits.append(now - due_since(first))
    return max(waits)


def count_in_flight(connection: Connection, now: float) -> int:
    return connection.execute(select(func.count()).where(source_leases.c.lease_until > now)).scalar_one()


def _last_visits(connection: Connection) -> list[LastVisit]:
    record = collection_records.c
    newest = (
        select(record.source_id, record.started_at, record.status, record.items_new, record.error_message)
        .order_by(record.started_at.desc())
        .limit(LISTED)
        .subquery()
    )
    query = (
        select(newest.c.source_id, sources.c.name, *list(newest.c)[1:])
        .join_from(newest, sources, sources.c.id == newest.c.source_id)
        .order_by(newest.c.started_at.desc())
    )
    return [LastVisit(*row) for row in connection.execute(query)]


def read_next_visits(connection: Connection, now: float, *, limit: int) -> list[NextVisit]:
    """First in line first."""
    query = (
        select(sources.c.id, sources.c.name, sources.c.due_at)
        .where(sources.c.due_at.is_not(None), ~is_leased(now))
        .order_by(sources.c.due_at)
        .limit(limit)
    )
    return [NextVisit(row[0], row[1], due_since(row[2])) for row in connection.execute(query)]
