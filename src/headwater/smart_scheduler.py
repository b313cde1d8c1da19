"""The nine functions of the smart scheduler, importable together.

Four are pure and live in `schedule.cadence`; the five here keep one `source_stats` row per source. They take
a database connection as it comes: sqlite3, psycopg, or SQLAlchemy's. Scheduling must never stop a collection,
so a database error is logged and answered with a fallback; damaged statistics start again.
"""

import contextlib
import logging
import random
import time
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from headwater.model import SourceStats
from headwater.schedule.cadence import (
    DEFAULT_CADENCE,
    DEFAULT_FREQUENCY,
    FREQUENCY_CADENCE_MAP,
    RECENT_ENTRIES,
    RSS_CADENCE_INTERVALS,
    advance_stats,
    calculate_backoff,
    calculate_next_check_time,
    calculate_publish_time_stats,
    classify_update_frequency,
    is_sound,
    read_times,
)

__all__ = [
    "FREQUENCY_CADENCE_MAP",
    "RSS_CADENCE_INTERVALS",
    "calculate_backoff",
    "calculate_next_check_time",
    "calculate_publish_time_stats",
    "classify_update_frequency",
    "get_due_sources",
    "get_recent_entries",
    "get_scheduler_stats",
    "get_source_stats",
    "update_source_stats",
]

_log = logging.getLogger(__name__)

_STATS = tuple(field.name for field in fields(SourceStats))
_COLUMNS = ("source_id", "source_type", *_STATS)


def _execute(conn: Any, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement with :named values on whichever kind of connection this is, and return its rows."""
    module = type(conn).__module__
    if module.startswith("sqlalchemy"):
        from sqlalchemy import text

        result = conn.execute(text(statement), dict(values))
        return [tuple(row) for row in result] if result.returns_rows else []
    if module.startswith("psycopg"):
        for name in values:
            statement = statement.replace(f":{name}", f"%({name})s")
    cursor = conn.cursor()
    try:
        cursor.execute(statement, dict(values))
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
    finally:
        cursor.close()


def _rollback(conn: Any) -> None:
    with contextlib.suppress(Exception):
        conn.rollback()


def _read_stats(row: Mapping[str, Any]) -> SourceStats | None:
    """The row's numbers, or None where they are damaged."""
    try:
        stats = SourceStats(**{name: row[name] for name in _STATS if row[name] is not None})
        return stats if is_sound(stats) else None
    except (TypeError, ValueError, KeyError):
        return None


def get_source_stats(conn: Any, source_id: str) -> dict[str, Any] | None:
    """The statistics of one source, with its hit rate; None where there are none."""
    try:
        rows = _execute(
            conn,
            f"SELECT {', '.join(_COLUMNS)} FROM source_stats WHERE source_id = :source_id",  # noqa: S608
            {"source_id": str(source_id)},
        )
    except Exception:  # noqa: BLE001 - each driver has its own errors, and none may stop a collection
        _log.exception("cannot read the statistics of source %s", source_id)
        _rollback(conn)
        return None
    return _with_hit_rate(dict(zip(_COLUMNS, rows[0], strict=True))) if rows else None


def _with_hit_rate(row: dict[str, Any]) -> dict[str, Any]:
    checks = row.get("check_count") or 0
    row["hit_rate"] = min((row.get("hit_count") or 0) / checks, 1.0) if checks > 0 else 0.0
    return row


def get_recent_entries(
    conn: Any, source_id: str, source_type: str = "rss", limit: int = RECENT_ENTRIES
) -> list[dict[str, Any]]:
    """The newest entries of a source that carry a usable date, newest first; none on a database error."""
    try:
        rows = _execute(
            conn,
            "SELECT published_at FROM items WHERE source_id = :source_id AND published_at IS NOT NULL"
            " ORDER BY published_at DESC LIMIT :limit",
            {"source_id": int(source_id), "limit": max(int(limit), 0)},
        )
    except Exception:  # noqa: BLE001 - each driver has its own errors, and none may stop a collection
        _log.exception("cannot read the recent entries of source %s (%s)", source_id, source_type)
        _rollback(conn)
        return []
    return [{"published_at": row[0]} for row in rows]


def update_source_stats(
    conn: Any,
    source_id: str,
    source_type: str = "rss",
    has_new_entries: bool = False,
    error_message: str = "",
    *,
    now: float | None = None,
    rng: random.Random | None = None,
    commit: bool = True,
) -> dict[str, Any]:
    """Count one attempt, re-analyse where it is time to, plan the next check, and store it all in one row.

    The row is locked first and its counters are added to in SQL, so that no attempt is lost when many are counted at
    once. A missing or damaged row starts again. Where the row cannot be written, the transaction is rolled back,
    the error is logged, and the result is the plan all the same. `commit=False` leaves the transaction, and
    what to do when it fails, to the caller.
    """
    moment = time.time() if now is None else now
    row = _take_row(conn, str(source_id), source_type, commit=commit)
    before = _read_stats(row) if row is not None else SourceStats()
    if before is None:
        _log.warning("the statistics of source %s are damaged and start again", source_id)
    stats = advance_stats(
        before or SourceStats(),
        has_new_entries=has_new_entries,
        error_message=error_message,
        recent_times=lambda: read_times(get_recent_entries(conn, source_id, source_type)),
        now=moment,
        rng=rng,
    )
    values = {"source_id": str(source_id), "source_type": source_type, **asdict(stats)}
    if row is None:
        return _with_hit_rate(values)
    counted = {} if before is None else _counted(has_new_entries, bool(error_message))
    changes = ", ".join(f"{name} = {counted.get(name, _placeholder(name))}" for name in _COLUMNS[1:])
    try:
        counts = _execute(
            conn,
            f"UPDATE source_stats SET {changes} WHERE source_id = {_placeholder('source_id')}"  # noqa: S608
            f" RETURNING {', '.join(_COUNTERS)}",
            {_key(name): value for name, value in values.items() if name not in counted},
        )
        if commit:
            conn.commit()
        for found in counts:
            values.update(zip(_COUNTERS, found, strict=True))
    except Exception:
        if not commit:
            raise
        _log.exception("cannot store the statistics of source %s", source_id)
        _rollback(conn)
    return _with_hit_rate(values)


_COUNTERS = ("check_count", "hit_count", "fail_count")


def _counted(is_hit: bool, is_failure: bool) -> dict[str, str]:
    """What one attempt does to the counters, in SQL."""
    return {
        "check_count": "COALESCE(check_count, 0) + 1",
        "hit_count": f"COALESCE(hit_count, 0) + {int(is_hit)}",
        "fail_count": "COALESCE(fail_count, 0) + 1" if is_failure else "0",
    }


def _take_row(conn: Any, source_id: str, source_type: str, *, commit: bool) -> dict[str, Any] | None:
    """The row of a source, made where there is none, and held until the transaction ends; None on a database error."""
    begun = {"source_id": source_id, "source_type": source_type, **asdict(SourceStats())}
    try:
        rows = _execute(
            conn,
            f"INSERT INTO source_stats ({', '.join(_COLUMNS)})"  # noqa: S608
            f" VALUES ({', '.join(_placeholder(name) for name in _COLUMNS)})"
            " ON CONFLICT (source_id) DO UPDATE SET source_type = excluded.source_type"
            f" RETURNING {', '.join(_COLUMNS)}",
            {_key(name): value for name, value in begun.items()},
        )
    except Exception:
        if not commit:
            raise
        _log.exception("cannot store the statistics of source %s", source_id)
        _rollback(conn)
        return None
    return dict(zip(_COLUMNS, rows[0], strict=True))


def _key(column: str) -> str:
    """A name no other name begins with, so that replacing one never touches another."""
    return f"value_{_COLUMNS.index(column):02d}"


def _placeholder(column: str) -> str:
    return f":{_key(column)}"


def get_due_sources(
    conn: Any, now: int, source_type: str | None = None, limit: int = 20
) -> list[dict[str, Any]]:
    """The sources due at `now` and not backed off, longest due first; none on a database error.

    In a database of Headwater, sources that a person asked to refresh come first, whatever their plan says, and
    sources that are paused, removed or gone are left out.
    """
    values: dict[str, Any] = {"moment": int(now), "limit": max(int(limit), 0)}
    wanted = ""
    if source_type is not None:
        wanted, values["wanted"] = " AND source_type = :wanted", source_type
    columns = ", ".join(_COLUMNS)
    due = f"SELECT {columns} FROM source_stats WHERE next_due_at <= :moment AND backoff_until <= :moment{wanted}"  # noqa: S608
    order = " ORDER BY next_due_at, source_id LIMIT :limit"
    try:
        rows: list[tuple[Any, ...]] = []
        if _has_sources(conn):
            asked = (
                f"SELECT {columns} FROM source_stats WHERE source_id IN (SELECT CAST(id AS TEXT) FROM sources"  # noqa: S608
                f" WHERE due_at < 0 AND refresh_requested_at IS NOT NULL){wanted}"
            )
            rows = _execute(conn, asked + order, {name: values[name] for name in values if name != "moment"})
            due += " AND source_id NOT IN (SELECT CAST(id AS TEXT) FROM sources WHERE due_at IS NULL OR due_at < 0)"
        rows += _execute(conn, due + order, values)
    except Exception:  # noqa: BLE001 - each driver has its own errors, and none may stop a collection
        _log.exception("cannot read the due sources")
        _rollback(conn)
        return []
    return [_with_hit_rate(dict(zip(_COLUMNS, row, strict=True))) for row in rows[: values["limit"]]]


def _has_sources(conn: Any) -> bool:
    """Whether this is a database of Headwater, and not one with these statistics alone."""
    dialect = getattr(getattr(conn, "dialect", None), "name", "")
    if dialect == "sqlite" or type(conn).__module__.startswith("sqlite3"):
        rows = _execute(conn, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'sources'", {})
    else:
        rows = _execute(conn, "SELECT 1 WHERE to_regclass('sources') IS NOT NULL", {})
    return bool(rows)


def get_scheduler_stats(
    conn: Any, source_type: str | None = None, *, now: float | None = None
) -> dict[str, Any]:
    """The fleet in numbers: sources by cadence and frequency, checks, hits, hit rate, due, failing.

    In a database of Headwater, removed sources are left out, and none that is paused or gone is due or backed off.
    """
    values: dict[str, Any] = {"moment": int(time.time() if now is None else now)}
    wanted, planned = "WHERE 1 = 1", ""
    if source_type is not None:
        wanted, values["wanted"] = "WHERE source_type = :wanted", source_type
    try:
        if _has_sources(conn):
            wanted += " AND source_id NOT IN (SELECT CAST(id AS TEXT) FROM sources WHERE is_deleted)"
            planned = " AND source_id NOT IN (SELECT CAST(id AS TEXT) FROM sources WHERE due_at IS NULL)"
        rows = _execute(
            conn,
            "SELECT cadence, frequency_type, COUNT(*), SUM(check_count), SUM(hit_count),"  # noqa: S608
            f" SUM(CASE WHEN next_due_at <= :moment AND backoff_until <= :moment{planned} THEN 1 ELSE 0 END),"
            " SUM(CASE WHEN fail_count > 0 THEN 1 ELSE 0 END),"
            f" SUM(CASE WHEN backoff_until > :moment{planned} THEN 1 ELSE 0 END)"
            f" FROM source_stats {wanted} GROUP BY cadence, frequency_type",
            values,
        )
    except Exception:  # noqa: BLE001 - each driver has its own errors, and none may stop a collection
        _log.exception("cannot read the scheduler's statistics")
        _rollback(conn)
        rows = []
    by_cadence = dict.fromkeys(RSS_CADENCE_INTERVALS, 0)
    by_frequency = dict.fromkeys(FREQUENCY_CADENCE_MAP, 0)
    totals = [0, 0, 0, 0, 0, 0]
    for cadence, frequency, *numbers in rows:
        whole = [int(number or 0) for number in numbers]
        by_cadence[cadence or DEFAULT_CADENCE] = by_cadence.get(cadence or DEFAULT_CADENCE, 0) + whole[0]
        name = frequency or DEFAULT_FREQUENCY
        by_frequency[name] = by_frequency.get(name, 0) + whole[0]
        totals = [total + number for total, number in zip(totals, whole, strict=True)]
    sources, checks, hits, due, failing, backed_off = totals
    return {
        "total_sources": sources,
        "by_cadence": by_cadence,
        "by_frequency": by_frequency,
        "total_checks": checks,
        "total_hits": hits,
        "hit_rate": min(hits / checks, 1.0) if checks else 0.0,
        "due_sources": due,
        "failing_sources": failing,
        "backoff_sources": backed_off,
    }
