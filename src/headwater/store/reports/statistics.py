"""How often sources publish, and how many visits found something: `source_stats`, added up and of one source.

Adding up reads every source, so pages that renew themselves leave it alone.
"""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Text, case, cast, func, select

from headwater.store.collecting.queue import count_due
from headwater.store.collecting.stats import read_stats
from headwater.store.core.tables import source_stats, sources

CADENCES: Final = ("P0", "P1", "P2", "P3", "P4", "P5", "P6")
FREQUENCIES: Final = ("realtime", "high", "daily", "daily_fixed", "weekly", "monthly", "low")


@dataclass(frozen=True, slots=True)
class SchedulerStatistics:
    """Of all sources but the removed ones."""

    total_sources: int  # that were visited at least once
    by_cadence: dict[str, int]
    by_frequency: dict[str, int]
    total_checks: int
    total_hits: int
    due_sources: int
    failing_sources: int
    backoff_sources: int

    @property
    def hit_rate(self) -> float | None:
        """The share of visits that found something new; None before the first."""
        return _share(self.total_hits, self.total_checks)


@dataclass(frozen=True, slots=True)
class SourceStatistics:
    """Of one source."""

    frequency_type: str
    cadence: str
    check_count: int
    hit_count: int
    backoff_until: float | None  # None: no visit waits because of failures

    @property
    def hit_rate(self) -> float | None:
        return _share(self.hit_count, self.check_count)


def read_scheduler_statistics(connection: Connection, now: float) -> SchedulerStatistics:
    """The statistics of all sources."""
    stats = source_stats.c
    is_planned = sources.c.due_at.is_not(None)
    query = (
        select(
            stats.cadence,
            stats.frequency_type,
            func.count(),
            func.sum(stats.check_count),
            func.sum(stats.hit_count),
            _count_if(stats.fail_count > 0),
            _count_if(is_planned & (stats.backoff_until > now)),
        )
        .join_from(sources, source_stats, stats.source_id == cast(sources.c.id, Text))
        .where(~sources.c.is_deleted)
        .group_by(stats.cadence, stats.frequency_type)
    )
    by_cadence = dict.fromkeys(CADENCES, 0)
    by_frequency = dict.fromkeys(FREQUENCIES, 0)
    totals = [0] * 5
    for cadence, frequency, *numbers in connection.execute(query):
        if (
            cadence in by_cadence and frequency in by_frequency
        ):  # other values are damage; the next visit mends it
            by_cadence[cadence] += numbers[0]
            by_frequency[frequency] += numbers[0]
        totals = [total + int(number or 0) for total, number in zip(totals, numbers, strict=True)]
    count, checks, hits, failing, waiting = totals
    return SchedulerStatistics(
        total_sources=count,
        by_cadence=by_cadence,
        by_frequency=by_frequency,
        total_checks=checks,
        total_hits=hits,
        due_sources=count_due(connection, now),
        failing_sources=failing,
        backoff_sources=waiting,
    )


def read_source_statistics(connection: Connection, source_id: int, now: float) -> SourceStatistics | None:
    """The statistics of one source; None before its first visit."""
    stats = read_stats(connection, [source_id]).get(source_id)
    if stats is None:
        return None
    is_planned = connection.execute(
        select(sources.c.due_at.is_not(None)).where(sources.c.id == source_id)
    ).scalar_one()
    return SourceStatistics(
        frequency_type=stats.frequency_type,
        cadence=stats.cadence,
        check_count=stats.check_count,
        hit_count=stats.hit_count,
        backoff_until=float(stats.backoff_until) if is_planned and stats.backoff_until > now else None,
    )


def _count_if(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


def _share(part: int, whole: int) -> float | None:
    return min(part / whole, 1.0) if whole > 0 else None
