"""The nine functions of the smart scheduler, importable together.

Four are pure and live in `schedule.cadence`; the five here keep one `source_stats` row per source. They take
a database connection as it comes: sqlite3, psycopg, or SQLAlchemy's. Scheduling must never stop a collection,
so a database error is logged and answered with a fallback; damaged statistics are begun anew.
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
    except Exception:  # noqa: BLE001 - each driver has errors of its own, and none may stop a collection
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
    except Exception:  # noqa: BLE001 - each driver has errors of its own, and none may stop a collection
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

    A missing or damaged row is begun anew. Where the row cannot be written, the transaction is rolled back,
    the error is logged, and the result is the plan all the same. `commit=False` leaves the transaction, and
    what to do when it fails, to the caller.
    """
    moment = time.time() if now is None else now
    row = get_source_stats(conn, source_id)
    stats = _read_stats(row) if row is not None else SourceStats()
    if stats is None:
        _log.warning("the statistics of source %s are damaged and begin anew", source_id)
        stats = SourceStats()
    stats = advance_stats(
        stats,
        has_new_entries=has_new_entries,
        error_message=error_message,
        recent_times=lambda: read_times(get_recent_entries(conn, source_id, source_type)),
        now=moment,
        rng=rng,
    )
    values = {"source_id": str(source_id), "source_type": source_type, **asdict(stats)}
    names = ", ".join(_COLUMNS)
    changes = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[1:])
    try:
        _execute(
            conn,
            f"INSERT INTO source_stats ({names})"  # noqa: S608
            f" VALUES ({', '.join(_placeholder(name) for name in _COLUMNS)})"
            f" ON CONFLICT (source_id) DO UPDATE SET {changes}",
            {_key(name): value for name, value in values.items()},
        )
        if commit:
            conn.commit()
    except Exception:
        if not commit:
            raise
        _log.exception("cannot store the statistics of source %s", source_id)
        _rollback(conn)
    return _with_hit_rate(values)


def _key(column: str) -> str:
    """A name no other name begins with, so that replacing one never touches another."""
    return f"value_{_COLUMNS.index(column):02d}"


def _placeholder(column: str) -> str:
    return f":{_key(column)}"


def get_due_sources(
    conn: Any, now: int, source_type: str | None = None, limit: int = 20
) -> list[dict[str, Any]]:
    """The sources due at `now` and not backed off, longest due first; none on a database error."""
    wanted = "" if source_type is None else " AND source_type = :wanted"
    values: dict[str, Any] = {"moment": int(now), "limit": max(int(limit), 0)}
    if source_type is not None:
        values["wanted"] = source_type
    try:
        rows = _execute(
            conn,
            f"SELECT {', '.join(_COLUMNS)} FROM source_stats"  # noqa: S608
            f" WHERE next_due_at <= :moment AND backoff_until <= :moment{wanted}"
            " ORDER BY next_due_at, source_id LIMIT :limit",
            values,
        )
    except Exception:  # noqa: BLE001 - each driver has errors of its own, and none may stop a collection
        _log.exception("cannot read the due sources")
        _rollback(conn)
        return []
    return [_with_hit_rate(dict(zip(_COLUMNS, row, strict=True))) for row in rows]


def get_scheduler_stats(
    conn: Any, source_type: str | None = None, *, now: float | None = None
) -> dict[str, Any]:
    """The fleet in numbers: sources by cadence and frequency, checks, hits, hit rate, due, failing."""
    moment = int(time.time() if now is None else now)
    wanted = "" if source_type is None else " WHERE source_type = :wanted"
    values: dict[str, Any] = {"moment": moment}
    if source_type is not None:
        values["wanted"] = source_type
    try:
        rows = _execute(
            conn,
            "SELECT cadence, frequency_type, COUNT(*), SUM(check_count), SUM(hit_count),"  # noqa: S608
            " SUM(CASE WHEN next_due_at <= :moment AND backoff_until <= :moment THEN 1 ELSE 0 END),"
            " SUM(CASE WHEN fail_count > 0 THEN 1 ELSE 0 END),"
            " SUM(CASE WHEN backoff_until > :moment THEN 1 ELSE 0 END)"
            f" FROM source_stats{wanted} GROUP BY cadence, frequency_type",
            values,
        )
    except Exception:  # noqa: BLE001 - each driver has errors of its own, and none may stop a collection
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
