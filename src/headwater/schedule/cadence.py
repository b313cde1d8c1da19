"""The `cadence` policy: seven rhythms, chosen by how often a source publishes.

The constants, names and results are a contract with code that knows them; `headwater.smart_scheduler` offers
the same functions beside the ones that need a database. Everything here is pure: where a clock or chance is
needed it is a parameter, and only its default reads the real one.
"""

import math
import random
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from headwater.model import Observation, Plan, SourceStats
from headwater.schedule.backoff import (
    FORBIDDEN_SECONDS,
    RATE_LIMITED_SECONDS,
    Failure,
    classify_message,
    find_backoff,
)

RSS_CADENCE_INTERVALS: dict[str, int] = {
    "P0": 15 * 60,
    "P1": 30 * 60,
    "P2": 60 * 60,
    "P3": 2 * 60 * 60,
    "P4": 4 * 60 * 60,
    "P5": 8 * 60 * 60,
    "P6": 24 * 60 * 60,
}

FREQUENCY_CADENCE_MAP: dict[str, str] = {
    "realtime": "P0",
    "high": "P1",
    "daily": "P2",
    "daily_fixed": "P3",
    "weekly": "P4",
    "monthly": "P5",
    "low": "P6",
}

DEFAULT_FREQUENCY = "daily"
DEFAULT_CADENCE = "P2"
MIN_ENTRIES = 3
RECENT_ENTRIES = 30
MAX_WAIT_SECONDS = 24 * 60 * 60
JITTER = 0.15
REANALYSE_EVERY = 10
REANALYSE_EARLY = 3

# Mean hours between two entries, below which a frequency applies.
_THRESHOLDS = (
    (6.0, "realtime"),
    (18.0, "high"),
    (36.0, "daily"),
    (72.0, "daily_fixed"),
    (168.0, "weekly"),
    (720.0, "monthly"),
)
_REALTIME_PER_DAY = 5
_MIN_STD_HOURS, _MAX_STD_HOURS = 1.0, 6.0
_REGULAR_STD_HOURS = 3.0  # up to this spread the hour can be foreseen
_HOUR, _DAY = 3600.0, 86400.0
_LATEST = 253402300800.0  # the year 10000: what is later is not a timestamp


def read_times(entries: Iterable[Mapping[str, Any]]) -> list[float]:
    """The usable `published_at` of entries, ascending. Whatever is not a timestamp is passed over."""
    times = []
    for entry in entries:
        value = entry.get("published_at") if isinstance(entry, Mapping) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if math.isfinite(value) and 0 < value < _LATEST:
            times.append(float(value))
    return sorted(times)


def classify_update_frequency(entries: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """(frequency_type, cadence) from the entries' `published_at`; ("daily", "P2") for fewer than three."""
    return classify_times(read_times(entries))


def classify_times(times: Sequence[float]) -> tuple[str, str]:
    """The same from ascending times. Looks at all it is given: callers pass the recent thirty."""
    if len(times) < MIN_ENTRIES:
        return DEFAULT_FREQUENCY, DEFAULT_CADENCE
    span_hours = (times[-1] - times[0]) / _HOUR
    mean_hours = span_hours / (len(times) - 1)
    frequency = next((name for limit, name in _THRESHOLDS if mean_hours < limit), "low")
    if is_busy_on_most_days(times):
        frequency = "realtime"
    return frequency, FREQUENCY_CADENCE_MAP[frequency]


def is_busy_on_most_days(times: Sequence[float]) -> bool:
    """Whether at least five entries came out on more than half of the days (UTC) that they span.

    This makes a source realtime that publishes five a day and rests at weekends, whose mean interval is above six
    hours. One busy day does not: it must not make a slow source realtime for ever.
    """
    by_day = Counter(int(at // _DAY) for at in times)
    busy = sum(count >= _REALTIME_PER_DAY for count in by_day.values())
    return 2 * busy > max(by_day) - min(by_day) + 1


def calculate_publish_time_stats(
    entries: Sequence[Mapping[str, Any]],
) -> tuple[float | None, float | None]:
    """(avg_hour, std_hour) of the entries' publication hours in UTC, or (None, None) for fewer than three.

    The mean is arithmetic and the deviation is kept between 1 and 6 hours, as the document has it; across
    midnight that is not the middle of the night, which `adaptive` gets right instead.
    """
    return find_publish_hours(read_times(entries))


def find_publish_hours(times: Sequence[float]) -> tuple[float | None, float | None]:
    if len(times) < MIN_ENTRIES:
        return None, None
    hours = [at % _DAY / _HOUR for at in times]
    mean = math.fsum(hours) / len(hours)
    variance = math.fsum((hour - mean) ** 2 for hour in hours) / len(hours)
    return mean, min(max(math.sqrt(variance), _MIN_STD_HOURS), _MAX_STD_HOURS)


def calculate_next_check_time(
    cadence: str,
    frequency_type: str = DEFAULT_FREQUENCY,
    avg_publish_hour: float | None = None,
    std_publish_hour: float | None = None,
    last_article_at: int = 0,
    *,
    now: float | None = None,
    rng: random.Random | None = None,
) -> int:
    """When to check next: after the foreseen hour for regular sources, else the interval with jitter.

    Always after `now`, at most twice the interval away, at most 24 hours.
    """
    moment = time.time() if now is None else now
    interval = RSS_CADENCE_INTERVALS.get(cadence, RSS_CADENCE_INTERVALS[DEFAULT_CADENCE])
    latest = moment + min(2 * interval, MAX_WAIT_SECONDS)
    foreseen = _foresee(frequency_type, avg_publish_hour, std_publish_hour, last_article_at, moment)
    if foreseen is not None and moment < foreseen <= latest:
        due = foreseen
    else:
        wait = interval * (rng or random).uniform(1 - JITTER, 1 + JITTER)
        # A whole second to spare, so that rounding down never leaves the range.
        due = moment + max(wait, interval * (1 - JITTER) + 1)
    return max(math.floor(min(due, latest)), math.floor(moment) + 1)


def _foresee(
    frequency_type: str,
    avg_hour: float | None,
    std_hour: float | None,
    last_article_at: float,
    now: float,
) -> float | None:
    """Half a deviation after the usual hour, for sources that have one; None for all others.

    A source that has already published today is not expected again before tomorrow.
    """
    if frequency_type not in ("daily", "daily_fixed", "weekly") or avg_hour is None or std_hour is None:
        return None
    if not (math.isfinite(avg_hour) and math.isfinite(std_hour)) or std_hour > _REGULAR_STD_HOURS:
        return None
    midnight = now - now % _DAY
    foreseen = midnight + (avg_hour % 24) * _HOUR + std_hour / 2 * _HOUR
    if foreseen <= now or last_article_at >= midnight:
        foreseen += _DAY
    return foreseen


def calculate_backoff(fail_count: int, error_message: str = "") -> int:
    """Seconds to stay away, by the words of the message: 6 h, none, 12 h, or 15 min × 2^(n−1) up to 24 h."""
    if fail_count <= 0 and not error_message:
        return 0
    row = classify_message(error_message)
    if row == "rate":
        return int(RATE_LIMITED_SECONDS)
    if row == "auth":
        return 0
    if row == "forbidden":
        return int(FORBIDDEN_SECONDS)
    return int(find_backoff(Failure(max(fail_count, 1))))


def is_sound(stats: SourceStats) -> bool:
    """Whether the numbers can be true. What cannot starts again."""
    if FREQUENCY_CADENCE_MAP.get(stats.frequency_type) != stats.cadence:
        return False
    for count in (
        stats.check_count,
        stats.hit_count,
        stats.fail_count,
        stats.next_due_at,
        stats.backoff_until,
    ):
        if not isinstance(count, int) or count < 0:
            return False
    for hour in (stats.avg_publish_hour, stats.std_publish_hour):
        if hour is not None and not (isinstance(hour, float | int) and 0 <= hour < 24):
            return False
    return stats.hit_count <= stats.check_count


def needs_analysis(check_count: int, has_new_entries: bool) -> bool:
    """Every tenth check, and on news within the first three."""
    return check_count % REANALYSE_EVERY == 0 or (has_new_entries and check_count <= REANALYSE_EARLY)


def advance_stats(
    stats: SourceStats,
    *,
    has_new_entries: bool,
    error_message: str,
    recent_times: Callable[[], Sequence[float]],
    now: float,
    rng: random.Random | None = None,
    planned_at: float | None = None,
) -> SourceStats:
    """The statistics after one attempt.

    `recent_times` gives up to thirty recent publication times, ascending; it is asked only when needed.
    `planned_at` is the next check if another planner has set it.
    """
    moment = int(now)
    check_count = stats.check_count + 1
    last_article_at = stats.last_article_at
    frequency, cadence = stats.frequency_type, stats.cadence
    mean, deviation = stats.avg_publish_hour, stats.std_publish_hour
    times: Sequence[float] | None = None
    if has_new_entries:
        times = recent_times()
        last_article_at = max(last_article_at, int(times[-1]) if times else moment)
    if needs_analysis(check_count, has_new_entries):
        times = recent_times() if times is None else times
        frequency, cadence = classify_times(times)
        mean, deviation = find_publish_hours(times)
    backoff = fail_count = 0
    if error_message:
        fail_count = stats.fail_count + 1
        backoff = calculate_backoff(fail_count, error_message)
    if planned_at is not None:
        due = int(planned_at)
    else:
        due = calculate_next_check_time(
            cadence, frequency, mean, deviation, last_article_at, now=now, rng=rng
        )
        due = max(due, moment + backoff)
    return SourceStats(
        frequency_type=frequency,
        cadence=cadence,
        avg_publish_hour=mean,
        std_publish_hour=deviation,
        next_due_at=due,
        last_check_at=moment,
        last_article_at=last_article_at,
        fail_count=fail_count,
        backoff_until=moment + backoff if backoff else 0,
        last_error=error_message or None,
        check_count=check_count,
        hit_count=stats.hit_count + (1 if has_new_entries else 0),
        created_at=stats.created_at or moment,
        updated_at=moment,
    )


_FREQUENCIES = tuple(FREQUENCY_CADENCE_MAP)
_HEADER = struct.Struct("<BI")
_BODY = struct.Struct("<BddQIIB")
_VERSION = 1
_NONE = -1.0


@dataclass(frozen=True, slots=True)
class CadencePolicy:
    """The same decisions as a policy object: the state packs the statistics and the recent publication times.

    `scale` stretches every interval, so that the policy can be compared with others at an equal budget.
    """

    scale: float = 1.0
    name: str = "cadence"

    def digest(self, state: bytes | None, visit: Observation) -> bytes | None:
        stats, times = unpack_stats(state) or (SourceStats(), [])
        if visit.item_times:
            usable = read_times({"published_at": min(at, visit.at)} for at in visit.item_times)
            times = sorted(times + usable)[-RECENT_ENTRIES:]
        stats = advance_stats(
            stats,
            has_new_entries=bool(visit.item_times),
            error_message="",
            recent_times=lambda: times,
            now=visit.at,
            rng=random.Random(
                0
            ),  # its due time is not used: `plan` makes its own, with the caller's generator
        )
        return _pack(stats, times)

    def plan(self, state: bytes | None, now: float, rng: random.Random) -> Plan:
        stats, _ = unpack_stats(state) or (SourceStats(), [])
        due = calculate_next_check_time(
            stats.cadence,
            stats.frequency_type,
            stats.avg_publish_hour,
            stats.std_publish_hour,
            stats.last_article_at,
            now=now,
            rng=rng,
        )
        reason = {
            "policy": self.name,
            "cadence": stats.cadence,
            "frequency": stats.frequency_type,
            "interval": RSS_CADENCE_INTERVALS[stats.cadence] * self.scale,
        }
        return Plan(now + (due - now) * self.scale, reason)


def with_counts(state: bytes | None, counts: SourceStats) -> bytes | None:
    """A state that was learnt again, with the checks and hits that were counted before it was lost."""
    found = unpack_stats(state)
    if found is None:
        return state
    stats, times = found
    return _pack(replace(stats, check_count=counts.check_count, hit_count=counts.hit_count), times)


def _pack(stats: SourceStats, times: Sequence[float]) -> bytes:
    mean, deviation = stats.avg_publish_hour, stats.std_publish_hour
    body = _BODY.pack(
        _FREQUENCIES.index(stats.frequency_type),
        _NONE if mean is None else mean,
        _NONE if deviation is None else deviation,
        stats.last_article_at,
        stats.check_count,
        stats.hit_count,
        len(times),
    ) + struct.pack(f"<{len(times)}d", *times)
    return _HEADER.pack(_VERSION, crc32(body)) + body


def unpack_stats(packed: bytes | None) -> tuple[SourceStats, list[float]] | None:
    """The statistics and times, or None where they cannot be trusted."""
    if packed is None or len(packed) < _HEADER.size + _BODY.size:
        return None
    version, checksum = _HEADER.unpack_from(packed)
    body = packed[_HEADER.size :]
    if version != _VERSION or crc32(body) != checksum:
        return None
    which, mean, deviation, last, checks, hits, count = _BODY.unpack_from(body)
    frequency = _FREQUENCIES[which]
    stats = SourceStats(
        frequency_type=frequency,
        cadence=FREQUENCY_CADENCE_MAP[frequency],
        avg_publish_hour=None if mean == _NONE else mean,
        std_publish_hour=None if deviation == _NONE else deviation,
        last_article_at=last,
        check_count=checks,
        hit_count=hits,
    )
    return stats, list(struct.unpack_from(f"<{count}d", body, _BODY.size))
