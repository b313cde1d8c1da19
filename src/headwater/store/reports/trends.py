"""What the overview draws: visits and new items by the hour, how late items are found, what fails.

Each is found by an index and costs as much as it shows, however much is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from headwater.store.collecting.states import in_state
from headwater.store.core.tables import collection_hours, collection_records, items, sources
from headwater.store.reports.hours import HOUR, hour_of, parts, read_rolled, sum_of, time_of

NEWEST_ITEMS = 1_000
# Upper ends, in seconds, of the classes that delays are counted in; the last class has none.
DELAY_CLASSES = (10.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0)


@dataclass(frozen=True, slots=True)
class HourSums:
    """The visits of one hour, added up."""

    visits: int = 0
    unchanged: int = 0
    skipped: int = 0
    failed: int = 0
    items_new: int = 0
    not_modified: int = 0  # of the unchanged, those answered with 304


@dataclass(frozen=True, slots=True)
class FailingSource:
    source_id: int
    source_name: str
    last_error: str | None
    consecutive_failures: int
    next_fetch_at: float | None


def read_hours(connection: Connection, now: float, hours: int) -> list[HourSums]:
    """The last `hours` hours, oldest first; the last one has only begun."""
    first = hour_of(now) - (hours - 1) * HOUR
    rolled_until = max(first, read_rolled(connection).rolled_until)
    found: dict[float, dict[str, int]] = {}
    for table, start, end in (
        (collection_hours, first, rolled_until),
        *parts(connection, rolled_until, None),
    ):
        at = time_of(table)
        hour = func.floor(at / HOUR) * HOUR
        count = func.count() if table is collection_records else func.sum(table.c.visits)
        query = (
            select(hour, table.c.status, count, func.sum(table.c.items_new), sum_of(table, "not_modified"))
            .where(at >= start)
            .group_by(hour, table.c.status)
        )
        for hour_at, status, visits, items_new, not_modified in connection.execute(
            query if end is None else query.where(at < end)
        ):
            sums = found.setdefault(float(hour_at), {})
            sums[status] = sums.get(status, 0) + int(visits)
            sums["visits"] = sums.get("visits", 0) + int(visits)
            sums["items_new"] = sums.get("items_new", 0) + int(items_new or 0)
            sums["not_modified"] = sums.get("not_modified", 0) + int(not_modified or 0)
    return [_hour(found.get(first + number * HOUR, {})) for number in range(hours)]


def _hour(sums: dict[str, int]) -> HourSums:
    return HourSums(**{name: sums.get(name, 0) for name in HourSums.__dataclass_fields__})


def count_delays(connection: Connection) -> list[int]:
    """How many of the newest items were found how long after they were published, by DELAY_CLASSES and one more.

    What was there already when its source was first visited tells nothing, nor does a date we had to invent.
    """
    item = items.c
    newest = (
        select(item.source_id, item.first_seen_at, item.published_at)
        .where(item.published_at.is_not(None), ~item.date_invented)
        .order_by(item.item_at.desc(), item.id.desc())
        .limit(NEWEST_ITEMS)
        .subquery()
    )
    query = select(newest.c.first_seen_at - newest.c.published_at).where(
        newest.c.published_at
        >= select(sources.c.created_at).where(sources.c.id == newest.c.source_id).scalar_subquery()
    )
    return classify(list(connection.execute(query).scalars()))


def classify(delays: Sequence[float]) -> list[int]:
    counts = [0] * (len(DELAY_CLASSES) + 1)
    for delay in delays:
        counts[next((n for n, end in enumerate(DELAY_CLASSES) if delay < end), len(DELAY_CLASSES))] += 1
    return counts


def failing_sources(connection: Connection, *, limit: int) -> list[FailingSource]:
    """Sources that fail; the worst first."""
    column = sources.c
    query = (
        select(
            column.id,
            column.name,
            column.last_error,
            column.consecutive_failures,
            column.next_fetch_at,
        )
        .where(*in_state("failing"))
        .order_by(column.consecutive_failures.desc(), column.id)
        .limit(limit)
    )
    return [FailingSource(*row) for row in connection.execute(query)]
