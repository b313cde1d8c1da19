"""A whole fleet under one price that is steered while it runs, from a cold start."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwater.schedule import layout
from headwater.schedule.price import STEER_EVERY_SECONDS, Price, begin_price, steer
from headwater.simulate import replay
from headwater.simulate.engine import Conditions, make_space, make_vector, make_zeros
from headwater.simulate.loops import load_functions
from headwater.simulate.trace import SourceTrace

_DAY = 86400.0
_WEEK = 7 * _DAY


@dataclass(frozen=True, slots=True)
class Day:
    """One simulated day of the fleet."""

    sources: int
    visits: int
    price: float

    @property
    def visits_per_source(self) -> float:
        return self.visits / self.sources if self.sources else 0.0


def steer_fleet(
    trace: Sequence[SourceTrace],
    visits_per_day: float,
    days: int,
    conditions: Conditions,
    *,
    join_days: Sequence[int] | None = None,
    price: Price | None = None,
) -> list[Day]:
    """Replay all sources on one common calendar; `join_days` says on which day each source is added.

    A source's own time is moved by whole weeks, so that its weekdays and hours stay what they were. A first
    visit counts, as it does in production.
    """
    functions = load_functions()
    space = make_space()
    begin = _WEEK * 2700  # a Thursday, like every whole number of weeks
    fleet = []
    for index, source in enumerate(trace):
        joins = begin + (join_days[index] if join_days else 0) * _DAY
        shift = round((joins - source.start) / _WEEK) * _WEEK
        times = make_vector([time + shift for time in source.times])
        cursor = make_zeros(replay.CURSOR_SIZE)
        functions.begin_replay(cursor, times, joins)
        room = make_zeros(max(len(source.times) - int(cursor[replay.FIRST]), 1))
        fleet.append((joins, times, cursor, make_zeros(layout.SIZE), room))
    price = begin_price(visits_per_day, begin) if price is None else replace(price, at=begin)
    history = []
    steps = int(_DAY / STEER_EVERY_SECONDS)
    for day in range(days):
        total = 0
        for step in range(steps):
            until = begin + day * _DAY + (step + 1) * STEER_EVERY_SECONDS
            made = 0
            present = 0
            for joins, times, cursor, vector, delays in fleet:
                if joins >= until:
                    continue
                present += 1
                before = cursor[replay.VISITS] + (vector[0] != 0.0)
                functions.advance_adaptive(
                    cursor,
                    vector,
                    times,
                    until,
                    price.seconds,
                    conditions.window,
                    conditions.min_interval_seconds,
                    conditions.max_interval_seconds,
                    delays,
                    *space,
                )
                made += int(cursor[replay.VISITS] + (vector[0] != 0.0) - before)
            price = steer(price, made, present, visits_per_day, until)
            total += made
        history.append(Day(present, total, price.seconds))
    return history
