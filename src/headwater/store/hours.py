"""Visits by the hour: the visit records added up, so that they can go and long spans are quick to count.

`collection_hours` holds whole hours. How far it reaches is in the settings table: hours before `rolled_until` are in
it, those before `final_until` never change again, for their records are gone or going.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table, func, select

from headwater.store.bulk import insert_rows, is_sqlite
from headwater.store.settings import get_setting
from headwater.store.tables import collection_hours, collection_records

HOUR = 3_600.0
ROLLED_KEY = "collection_hours"
_SUMS = ("visits", "items_found", "items_new", "items_updated", "requests", "bytes_received")
_COLUMNS = ("hour_at", "status", "error_kind", *_SUMS)


@dataclass(frozen=True, slots=True)
class Rolled:
    """How far the hours reach."""

    rolled_until: float = 0.0
    final_until: float = 0.0


@dataclass(slots=True)
class VisitSums:
    """Visits of a span of time, added up."""

    visits: dict[str, int] = field(default_factory=dict)  # by outcome
    errors: dict[str, int] = field(default_factory=dict)  # failed ones by kind
    bytes: dict[str, int] = field(default_factory=dict)  # received, by outcome
    items_found: int = 0
    items_new: int = 0
    items_updated: int = 0
    requests: int = 0
    bytes_received: int = 0

    @property
    def total(self) -> int:
        return sum(self.visits.values())

    @property
    def failed(self) -> int:
        return self.visits.get("failed", 0)

    @property
    def bytes_saved(self) -> float:
        """About how much more would have been received if publishers had sent unchanged documents again.

        A visit that found something new tells how large a document is, on average; each that found nothing saved that
        much, less what it received all the same.
        """
        read = self.visits.get("new", 0)
        if not read:
            return 0.0
        whole = self.visits.get("unchanged", 0) * self.bytes.get("new", 0) / read
        return max(0.0, whole - self.bytes.get("unchanged", 0))

    @property
    def success_rate(self) -> float | None:
        """Of the visits that were made, the part that worked; None without any."""
        made = self.total - self.visits.get("skipped", 0)
        return (made - self.failed) / made if made else None


def read_rolled(connection: Connection) -> Rolled:
    stored = get_setting(connection, ROLLED_KEY)
    try:
        return Rolled(**stored) if stored else Rolled()
    except TypeError:
        return Rolled()  # somebody's slip in the table: it is all added up again


def hour_of(at: float) -> float:
    return at // HOUR * HOUR


def first_record_at(connection: Connection) -> float | None:
    """When the oldest visit that is on record began."""
    return connection.execute(select(func.min(collection_records.c.started_at))).scalar()


def add_up(connection: Connection, start: float, end: float) -> list[tuple[Any, ...]]:
    """The rows of `collection_hours` for the records from `start` to `end`, both whole hours."""
    records = collection_records.c
    hour = func.floor(records.started_at / HOUR) * HOUR
    kind = func.coalesce(records.error_kind, "")
    sums = (func.sum(records[name]) for name in _SUMS[1:])
    query = (
        select(hour, records.status, kind, func.count(), *sums)
        .where(records.started_at >= start, records.started_at < end)
        .group_by(hour, records.status, kind)
    )
    return [
        (float(row[0]), row[1], row[2], *(int(value) for value in row[3:]))
        for row in connection.execute(query)
    ]


def write_hours(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    insert_rows(
        connection,
        collection_hours,
        _COLUMNS,
        rows,
        "ON CONFLICT (hour_at, status, error_kind) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in _SUMS),
    )


def delete_records(connection: Connection, before: float, limit: int) -> int:
    """Delete up to `limit` records of visits that began before then; answers how many."""
    mark = "?" if is_sqlite(connection) else "%s"
    return connection.exec_driver_sql(
        "DELETE FROM collection_records WHERE id IN (SELECT id FROM collection_records"
        f" WHERE started_at < {mark} ORDER BY started_at LIMIT {mark})",
        (before, limit),
    ).rowcount


def visits_since(connection: Connection, since: float) -> VisitSums:
    """The visits that began since then, to the second: whole hours as added up, the rest from the records."""
    rolled_until = read_rolled(connection).rolled_until
    first_whole = hour_of(since) + (HOUR if since % HOUR else 0.0)
    found = VisitSums()
    if first_whole >= rolled_until:
        _add(found, connection, collection_records, since, None)
        return found
    _add(found, connection, collection_records, since, first_whole)
    _add(found, connection, collection_hours, first_whole, rolled_until)
    _add(found, connection, collection_records, rolled_until, None)
    return found


def _add(found: VisitSums, connection: Connection, table: Table, start: float, end: float | None) -> None:
    by_hour = table is collection_hours
    at = table.c.hour_at if by_hour else table.c.started_at
    count = func.sum(table.c.visits) if by_hour else func.count()
    query = (
        select(table.c.status, table.c.error_kind, count, *(func.sum(table.c[name]) for name in _SUMS[1:]))
        .where(at >= start)
        .group_by(table.c.status, table.c.error_kind)
    )
    if end is not None:
        query = query.where(at < end)
    for status, kind, visits, *sums in connection.execute(query):
        found.visits[status] = found.visits.get(status, 0) + int(visits)
        if status == "failed" and kind:
            found.errors[kind] = found.errors.get(kind, 0) + int(visits)
        found.bytes[status] = found.bytes.get(status, 0) + int(sums[-1] or 0)
        for name, value in zip(_SUMS[1:], sums, strict=True):
            setattr(found, name, getattr(found, name) + int(value or 0))
