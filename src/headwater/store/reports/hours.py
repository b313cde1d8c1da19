"""Visits by the hour: the visit records added up, so that they can go and long spans are quick to count.

`collection_hours` holds whole hours. How far it reaches is in the settings table: hours before `rolled_until` are in
it, those before `final_until` never change again, for their records are gone or going; so these are added up once
more, to one sum for ever. `collection_minutes` holds the last days by the minute, and reaches to a few minutes ago:
what is left to read of the records themselves is what has just happened, and the ends of a span.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, case, func, select

from headwater.store.core.bulk import insert_rows, is_sqlite
from headwater.store.core.settings import get_setting, set_setting
from headwater.store.core.tables import collection_hours, collection_minutes, collection_records, settings

NOT_MODIFIED = 304
HOUR = 3_600.0
SLOT = 60.0
ROLLED_KEY = "collection_hours"
MINUTES_KEY = "collection_minutes"
EVER_KEY = "collection_ever"
MINUTES_KEPT_SECONDS = 50 * HOUR  # a little more than the reports look back on
VISIT_SECONDS = 300.0  # by which nearly every visit is settled; what comes in later is added up again
_STRAGGLING_SECONDS = 600.0
_SUMS = ("visits", "items_found", "items_new", "items_updated", "requests", "bytes_received", "not_modified")
_COLUMNS = ("hour_at", "status", "error_kind", *_SUMS)


@dataclass(frozen=True, slots=True)
class Rolled:
    """How far the hours reach."""

    rolled_until: float = 0.0
    final_until: float = 0.0


@dataclass(frozen=True, slots=True)
class RolledMinutes:
    """What span of time the minutes cover."""

    since: float = 0.0
    until: float = 0.0


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
    not_modified: int = 0  # of the visits, answered with 304: there was nothing to send

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
        return Rolled()  # a wrong value in the table: it is all added up again


def read_rolled_minutes(connection: Connection) -> RolledMinutes:
    stored = get_setting(connection, MINUTES_KEY)
    try:
        return RolledMinutes(**stored) if stored else RolledMinutes()
    except TypeError:
        return RolledMinutes()


def hour_of(at: float) -> float:
    return at // HOUR * HOUR


def slot_of(at: float) -> float:
    return at // SLOT * SLOT


def first_record_at(connection: Connection) -> float | None:
    """When the oldest visit that is on record began."""
    return connection.execute(select(func.min(collection_records.c.started_at))).scalar()


def add_up(connection: Connection, start: float, end: float, span: float = HOUR) -> list[tuple[Any, ...]]:
    """The rows of `collection_hours`, or of what else is by `span`, for the records from `start` to `end`: the begin of
    one and the end of one.
    """
    records = collection_records.c
    slot = func.floor(records.started_at / span) * span
    kind = func.coalesce(records.error_kind, "")
    sums = (sum_of(collection_records, name) for name in _SUMS[1:])
    query = (
        select(slot, records.status, kind, func.count(), *sums)
        .where(records.started_at >= start, records.started_at < end)
        .group_by(slot, records.status, kind)
    )
    return sorted(
        (float(row[0]), row[1], row[2], *(int(value) for value in row[3:]))
        for row in connection.execute(query)
    )


def write_hours(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    _write(connection, collection_hours, rows)


def _write(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    names = (table.c[0].name, *_COLUMNS[1:])
    insert_rows(
        connection,
        table,
        names,
        rows,
        f"ON CONFLICT ({', '.join(names[:3])}) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in _SUMS),
    )


def roll_minutes(connection: Connection, now: float) -> None:
    """Add the newest records up by the minute, up to those whose visits may still be under way."""
    if not is_sqlite(connection):  # one at a time: two would write the same rows
        connection.execute(select(settings.c.key).where(settings.c.key == MINUTES_KEY).with_for_update())
    rolled = read_rolled_minutes(connection)
    until = slot_of(now - VISIT_SECONDS)
    if rolled.until == until:
        return
    since = max(rolled.since or until - HOUR, until - MINUTES_KEPT_SECONDS)
    # A clock that was ahead has left what is to come; a collector that was away for days, nothing of them.
    start = max(min(rolled.until, until) - _STRAGGLING_SECONDS, since)
    rows = add_up(connection, start, until, SLOT)
    if not rows and 0 < rolled.until < until:
        return  # no process collects: there is nothing to write down
    slot_at = collection_minutes.c.slot_at
    connection.execute(collection_minutes.delete().where((slot_at < since) | (slot_at >= start)))
    _write(connection, collection_minutes, rows)
    set_setting(connection, MINUTES_KEY, asdict(RolledMinutes(since, until)), now)


def set_rolled(connection: Connection, rolled: Rolled, now: float) -> None:
    """The hours reach as far as `rolled` says: what never changes again goes into the sum for ever."""
    until, sums = _read_ever(connection)
    if until > rolled.final_until:  # a clock that was ahead: it is all added up again
        until, sums = 0.0, VisitSums()
    _add(sums, connection, collection_hours, until, rolled.final_until)
    set_setting(connection, EVER_KEY, {"until": rolled.final_until, "sums": asdict(sums)}, now)
    set_setting(connection, ROLLED_KEY, asdict(rolled), now)


def _read_ever(connection: Connection) -> tuple[float, VisitSums]:
    stored = get_setting(connection, EVER_KEY)
    try:
        return (float(stored["until"]), VisitSums(**stored["sums"])) if stored else (0.0, VisitSums())
    except (KeyError, TypeError, ValueError):
        return 0.0, VisitSums()


def delete_records(connection: Connection, before: float, limit: int) -> int:
    """Delete up to `limit` records of visits that began before then; returns how many."""
    mark = "?" if is_sqlite(connection) else "%s"
    return connection.exec_driver_sql(
        "DELETE FROM collection_records WHERE id IN (SELECT id FROM collection_records"
        f" WHERE started_at < {mark} ORDER BY started_at LIMIT {mark})",
        (before, limit),
    ).rowcount


def visits_since(connection: Connection, since: float) -> VisitSums:
    """The visits that began since then, to the second: as far as they are added up so, the rest from the records."""
    rolled_until = read_rolled(connection).rolled_until
    first_whole = hour_of(since) + (HOUR if since % HOUR else 0.0)
    found = VisitSums()
    if first_whole >= rolled_until:
        _add_parts(found, connection, since, None)
        return found
    _add_parts(found, connection, since, first_whole)
    _add(found, connection, collection_hours, first_whole, rolled_until)
    _add_parts(found, connection, rolled_until, None)
    return found


def visits_ever(connection: Connection) -> VisitSums:
    """All visits there have been."""
    until, found = _read_ever(connection)
    rolled_until = read_rolled(connection).rolled_until
    _add(found, connection, collection_hours, until, rolled_until)
    _add_parts(found, connection, rolled_until, None)
    return found


def parts(
    connection: Connection, start: float, end: float | None
) -> Iterator[tuple[Table, float, float | None]]:
    """The tables that tell of the visits from `start` to `end` and of no others, and from when to when each does."""
    minutes = read_rolled_minutes(connection)
    first = max(slot_of(start) + (SLOT if start % SLOT else 0.0), minutes.since)
    last = minutes.until if end is None else min(slot_of(end), minutes.until)
    if first >= last:
        yield collection_records, start, end
        return
    if start < first:
        yield collection_records, start, first
    yield collection_minutes, first, last
    if end is None or last < end:
        yield collection_records, last, end


def _add_parts(found: VisitSums, connection: Connection, start: float, end: float | None) -> None:
    if end is not None and start >= end:
        return
    for table, first, last in parts(connection, start, end):
        _add(found, connection, table, first, last)


def time_of(table: Table) -> ColumnElement[float]:
    """The column by which a table of visits is in order."""
    return table.c.started_at if table is collection_records else table.c[0]


def sum_of(table: Table, name: str) -> ColumnElement[Any]:
    """One of the sums over some of a table of visits."""
    if name == "not_modified" and table is collection_records:
        return func.sum(case((table.c.http_status == NOT_MODIFIED, 1), else_=0))
    return func.sum(table.c[name])


def _add(found: VisitSums, connection: Connection, table: Table, start: float, end: float | None) -> None:
    at = time_of(table)
    count = func.count() if table is collection_records else func.sum(table.c.visits)
    query = (
        select(table.c.status, table.c.error_kind, count, *(sum_of(table, name) for name in _SUMS[1:]))
        .where(at >= start)
        .group_by(table.c.status, table.c.error_kind)
    )
    if end is not None:
        query = query.where(at < end)
    for status, kind, visits, *sums in connection.execute(query):
        found.visits[status] = found.visits.get(status, 0) + int(visits)
        if status == "failed" and kind:
            found.errors[kind] = found.errors.get(kind, 0) + int(visits)
        added = dict(zip(_SUMS[1:], sums, strict=True))
        found.bytes[status] = found.bytes.get(status, 0) + int(added["bytes_received"] or 0)
        for name, value in added.items():
            setattr(found, name, getattr(found, name) + int(value or 0))
