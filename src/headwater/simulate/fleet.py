"""A whole fleet under one price that is steered while it runs, from a cold start: as production does it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwater.schedule.price import STEER_EVERY_SECONDS, Fleet, Goal, Price, assume_rates, begin_price, steer
from headwater.simulate.results import SourceResult
from headwater.simulate.running import Pinned, Running
from headwater.simulate.trace import Conditions, SourceTrace

_DAY = 86400.0
_WEEK = 7 * _DAY
_ENOUGH_RATES = 64


@dataclass(frozen=True, slots=True)
class Track:
    """What became of one source, day by day: its counts at the end of each day since `first_day`."""

    first_day: int
    days: float  # that it was in the fleet
    counts: Sequence[tuple[int, int, int, int]]  # visits, useless ones, missed items, found items
    delays: Sequence[float]

    def result(self, since: int = 0, until: int | None = None) -> SourceResult:
        """What the source came to from one day of the fleet up to another."""
        begin = max(since - self.first_day, 0)
        end = len(self.counts) if until is None else max(min(until - self.first_day, len(self.counts)), begin)
        before, after = self._counts_at(begin), self._counts_at(end)
        visits, useless, missed, found = (b - a for a, b in zip(before, after, strict=True))
        days = max(min(self.days, end) - begin, 0.0)
        return SourceResult(days, visits, useless, missed, self.delays[before[3] : before[3] + found])

    def _counts_at(self, day: int) -> tuple[int, int, int, int]:
        return self.counts[min(day, len(self.counts)) - 1] if day > 0 and self.counts else (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Steered:
    """A fleet's run. `prices` are those at the end of each day."""

    tracks: tuple[Track, ...]
    prices: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Member:
    """A source in the fleet. Its own time is `behind` the fleet's."""

    joins: float
    leaves: float
    behind: float
    running: Running | Pinned
    counts: list[tuple[int, int, int, int]]


def steer_fleet(
    trace: Sequence[SourceTrace],
    goal: Goal,
    conditions: Conditions,
    *,
    days: int | None = None,
    join_days: Sequence[int] | None = None,
) -> Steered:
    """Replay all sources side by side for some days, or until the last one ends.

    `join_days` says on which day each source is added; without it sources join when they really began if they
    overlap, else all together. Each source keeps its own time, a whole number of weeks away, so that weekdays, hours
    and changes of clocks stay what they were.
    """
    begin = min(source.start for source in trace)
    overlap = join_days is None and max(s.start for s in trace) < min(s.end for s in trace)
    fleet = []
    for index, source in enumerate(trace):
        joins = source.start if overlap else begin + (join_days[index] if join_days else 0) * _DAY
        behind = round((joins - source.start) / _WEEK) * _WEEK
        moved = replace(source, start=joins - behind)
        running = Running(moved, conditions) if source.pinned_seconds is None else Pinned(moved, conditions)
        fleet.append(_Member(joins, source.end + behind, behind, running, []))
    if days is None:
        days = max(1, int((max(member.leaves for member in fleet) - begin) / _DAY))
    limits = Fleet(0.0, shortest=conditions.min_interval_seconds, longest=conditions.max_interval_seconds)
    price = begin_price(goal, begin, limits)
    prices = []
    for day in range(days):
        for step in range(1, int(_DAY / STEER_EVERY_SECONDS) + 1):
            now = begin + day * _DAY + step * STEER_EVERY_SECONDS
            counted = _advance([m for m in fleet if m.joins < now <= m.leaves], now, price, limits)
            price = steer(price, counted, goal, now)
        prices.append(price.seconds)
        for member in fleet:
            if member.joins < now:
                member.counts.append(member.running.counts())
    return Steered(
        tuple(
            Track(int((m.joins - begin) / _DAY), (m.leaves - m.joins) / _DAY, m.counts, m.running.delays())
            for m in fleet
        ),
        tuple(prices),
    )


def _advance(members: Sequence[_Member], now: float, price: Price, limits: Fleet) -> Fleet:
    """Make the visits of one step, and count those that the policy planned."""
    visits = 0
    delays: list[float] = []
    rates = []
    for member in members:
        running = member.running
        seen = running.found if isinstance(running, Running) else 0
        made = running.advance(now - member.behind, price.seconds)
        if isinstance(running, Running):
            rates.append(running.usual_rate)
            if made:
                visits += made
                delays += running.delays(seen)
    known = _thin_out(assume_rates(rates))
    return replace(limits, sources=len(rates), visits=visits, rates=known, delays=delays)


def _thin_out(rates: Sequence[float]) -> Sequence[float]:
    """About as many rates as are needed to predict what all of them come to."""
    return sorted(rates)[len(rates) // _ENOUGH_RATES // 2 :: max(1, len(rates) // _ENOUGH_RATES)]
