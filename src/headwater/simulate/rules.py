"""The rules that other readers plan by, and `cadence`, replayed over one source.

Each rule is a function of what a reader knows after a visit. `scale` stretches its waits to a budget; 1 is the rule
as it is published.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, sqrt
from random import Random

from headwater.schedule.cadence import (
    DEFAULT_CADENCE,
    DEFAULT_FREQUENCY,
    RECENT_ENTRIES,
    calculate_next_check_time,
    classify_times,
    find_publish_hours,
    needs_analysis,
)
from headwater.simulate.results import SourceResult
from headwater.simulate.trace import Conditions, SourceTrace

_HOUR, _DAY = 3600.0, 86400.0
_RATE_MEMORY = 30 * _DAY


@dataclass(slots=True)
class Reader:
    """What a reader knows of a source: its items up to `position`, and the numbers that a rule keeps."""

    times: Sequence[float]
    position: int
    now: float
    new: int = 0  # items of the last visit
    checks: int = 0
    rate: float = 0.0  # fading count of items …
    exposure: float = 0.0  # … and seconds
    cadence: tuple[str, str] = (DEFAULT_FREQUENCY, DEFAULT_CADENCE)
    hours: tuple[float | None, float | None] = (None, None)
    rng: Random = field(default_factory=lambda: Random(0))

    def count_since(self, seconds: float) -> int:
        return self.position - bisect_left(self.times, self.now - seconds, 0, self.position)

    @property
    def newest(self) -> float:
        return self.times[self.position - 1] if self.position else 0.0


def wait_fixed(reader: Reader) -> float:
    return _HOUR


def wait_square_root(reader: Reader) -> float:
    """The square root of the rate over about a month."""
    if reader.checks == 1:
        known = reader.times[: reader.position]
        if known:
            reader.exposure = _RATE_MEMORY * (1 - exp((known[0] - reader.now) / _RATE_MEMORY))
        reader.rate = sum(exp((time - reader.now) / _RATE_MEMORY) for time in known)
    else:
        for time in reader.times[reader.position - reader.new : reader.position]:
            reader.rate += exp((time - reader.now) / _RATE_MEMORY)
    return sqrt(_HOUR / ((reader.rate + 0.2) / (reader.exposure + 0.2 * _DAY / 0.05)))


def wait_miniflux(reader: Reader) -> float:
    """The mean gap of the last week's items."""
    recent = reader.count_since(7 * _DAY)
    return 7 * _DAY / recent if recent else _DAY


def wait_newsblur(reader: Reader) -> float:
    recent = reader.count_since(30 * _DAY)
    return min(3 * _HOUR / max(0.25, sqrt(sqrt(recent))), _DAY)


def wait_commafeed(reader: Reader) -> float:
    """Half the mean gap of the items shown, and longer for sources that have fallen silent."""
    longest = 4 * _HOUR
    silence = reader.now - reader.newest
    for days, wait in ((30, longest), (14, longest / 2), (7, longest / 4)):
        if silence > days * _DAY:
            return wait
    shown = min(reader.position, 20)
    if shown < 2:
        return longest / 8
    gap = (reader.newest - reader.times[reader.position - shown]) / (shown - 1)
    return min(max(gap / 2, 300.0), longest / 6)


def wait_cadence(reader: Reader) -> float:
    if needs_analysis(reader.checks, reader.new > 0 or (reader.checks == 1 and reader.position > 0)):
        recent = reader.times[max(reader.position - RECENT_ENTRIES, 0) : reader.position]
        reader.cadence, reader.hours = classify_times(recent), find_publish_hours(recent)
    frequency, cadence = reader.cadence
    due = calculate_next_check_time(
        cadence, frequency, *reader.hours, int(reader.newest), now=reader.now, rng=reader.rng
    )
    return due - reader.now


RULES: dict[str, Callable[[Reader], float]] = {
    "fixed": wait_fixed,
    "miniflux": wait_miniflux,
    "newsblur": wait_newsblur,
    "commafeed": wait_commafeed,
    "cadence": wait_cadence,
    "square-root": wait_square_root,
}


def replay_rule(name: str, source: SourceTrace, scale: float, conditions: Conditions) -> SourceResult:
    """Make every visit of a rule to a source. The first one is not counted."""
    rule = RULES[name]
    times, now = source.times, source.start
    shortest, longest = conditions.min_interval_seconds, conditions.max_interval_seconds
    reader = Reader(times, bisect_right(times, now), now)
    visits = useless = missed = 0
    delays: list[float] = []
    while True:
        reader.checks += 1
        wait = min(max(scale * rule(reader), shortest), longest)
        if name == "square-root":
            kept = exp(-wait / _RATE_MEMORY)
            reader.rate *= kept
            reader.exposure = reader.exposure * kept + _RATE_MEMORY * (1 - kept)
        reader.now = now = now + wait
        if now > source.end:
            return SourceResult(source.days, visits, useless, missed, delays)
        visits += 1
        old, position = reader.position, reader.position
        while position < len(times) and times[position] <= now:
            delays.append(now - times[position])
            position += 1
        reader.position, reader.new = position, position - old
        useless += position == old
        missed += max(0, position - conditions.window - old)


def visit_knowingly(source: SourceTrace, price: float) -> SourceResult:
    """The visits of a reader that knows every item beforehand and pays `price` for each: the least that is possible.

    A visit only pays at the moment of an item. Least cost of having seen the first n items, forwards; an item that
    would wait longer than a visit costs gets its own.
    """
    times = source.times[bisect_right(source.times, source.start) :]
    costs, begins = [0.0], [0]
    for last, time in enumerate(times, 1):
        best, waiting, start = float("inf"), 0.0, last
        begin = last
        while start >= 1 and (wait := time - times[start - 1]) <= price:
            waiting += wait
            if (cost := costs[start - 1] + waiting + price) < best:
                best, begin = cost, start
            start -= 1
        costs.append(best)
        begins.append(begin)
    delays = [0.0] * len(times)
    visits, last = 0, len(times)
    while last > 0:
        for index in range(begins[last] - 1, last):
            delays[index] = times[last - 1] - times[index]
        visits, last = visits + 1, begins[last] - 1
    return SourceResult(source.days, visits, 0, 0, delays)
