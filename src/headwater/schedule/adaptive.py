"""The `adaptive` policy: learn when a source publishes, and visit when waiting costs more than a request.

This is the object around the mathematics in `kernel`: it turns visits into numbers, numbers into packed
bytes, and a plan into a reason that can be told. It is pure, like every policy.
"""

from dataclasses import dataclass
from random import Random

from headwater.model import Observation, Plan
from headwater.schedule import arithmetic, layout
from headwater.schedule.kernel import summer, workspace
from headwater.schedule.kernel.plan import spread_wait
from headwater.schedule.kernel.profile import find_event_weight

DEFAULT_PRICE_SECONDS = 800.0  # about six visits per source and day on a usual mix of sources


@dataclass(frozen=True, slots=True)
class AdaptivePolicy:
    """`price_seconds`: how many seconds of item delay one request is worth. The fleet's price is steered to a
    budget in `price`; a single source may be driven with any constant.
    """

    price_seconds: float = DEFAULT_PRICE_SECONDS
    min_interval_seconds: float = 300.0
    prior_rate: float | None = None
    name: str = "adaptive"

    def digest(self, state: bytes | None, visit: Observation) -> bytes | None:
        if visit.outcome in ("failed", "skipped"):
            return state
        return arithmetic.current().digest(state, visit, self.prior_rate)

    def plan(self, state: bytes | None, now: float, rng: Random) -> Plan:
        out = arithmetic.current().plan(state, now, self.price_seconds, self.min_interval_seconds)
        wait = spread_wait(out[workspace.OUT_AFTER], out[workspace.OUT_FLAT], 2.0 * rng.random() - 1.0)
        return Plan(
            now + wait,
            {
                "policy": self.name,
                "per_day": round(out[workspace.OUT_RATE] * 86400.0, 3),
                "per_day_long": round(out[workspace.OUT_LONG_RATE] * 86400.0, 3),
                "profile": round(out[workspace.OUT_PROFILE], 2),
                "price": round(self.price_seconds, 1),
                "silent_days": round(out[workspace.OUT_SILENCE] / 86400.0, 2),
                "window": out[workspace.OUT_BOUND] > 0.0,
            },
        )


@dataclass(frozen=True, slots=True)
class Habits:
    """What can be told of a source's profile. `hours` are UTC, from and up to."""

    hours: tuple[int, int] | None
    weekdays_only: bool


def describe_state(state: bytes | None, now: float) -> Habits | None:
    """The hours and weekdays most items come in; None while too little was seen to say."""
    vector = layout.unpack_state(state)
    if vector is None or vector[layout.WEIGHT] < 10.0 * find_event_weight(vector, now):
        return None
    total = vector[layout.WEIGHT]
    ahead = _find_hours_ahead(int(vector[layout.RULE]), now)
    days = [sum(vector[layout.DAY + 6 * hour : layout.DAY + 6 * hour + 6]) for hour in range(24)]
    hours = days[ahead:] + days[:ahead]
    weekdays = sum(vector[layout.WEEK : layout.WEEK + 5])
    return Habits(_busiest_hours(hours, total), weekdays > 0.93 * total)


def _find_hours_ahead(rule: int, now: float) -> int:
    """Hours by which the source's clock, which the profile follows, is ahead of its standard time."""
    if rule == summer.NO_RULE:
        return 0
    clocks = [0.0] * (3 * rule + 3)
    summer.find_span(clocks, rule, now)
    return int(clocks[-1] // 3600)


def _busiest_hours(hours: list[float], total: float) -> tuple[int, int] | None:
    """The shortest run of hours, up to eight, that holds most of the items."""
    round_the_clock = hours + hours
    for length in (1, 2, 3, 4, 6, 8):
        sums = [sum(round_the_clock[start : start + length]) for start in range(24)]
        if max(sums) > 0.6 * total:
            best = sums.index(max(sums))
            return best, (best + length) % 24
    return None
