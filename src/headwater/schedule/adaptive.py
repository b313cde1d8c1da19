"""The `adaptive` policy: learn when a source publishes, and visit when waiting costs more than a request.

This is the object around the mathematics in `kernel`: it turns visits into numbers, numbers into packed
bytes, and a plan into a reason that can be told. It is pure, like every policy.
"""

from dataclasses import dataclass
from itertools import accumulate
from random import Random

from headwater.model import Observation, Plan
from headwater.schedule import kernel, layout

DEFAULT_PRICE_SECONDS = 800.0  # about six visits per source and day on a usual mix of sources
_JITTER = 0.05


@dataclass(frozen=True, slots=True)
class AdaptivePolicy:
    """`price_seconds`: how many seconds of item delay one request is worth. The fleet's price is steered to a
    budget in `price`; a single source may be driven with any constant.
    """

    price_seconds: float = DEFAULT_PRICE_SECONDS
    name: str = "adaptive"

    def digest(self, state: bytes | None, visit: Observation) -> bytes | None:
        if visit.outcome in ("failed", "skipped"):
            return state
        vector = layout.unpack_state(state)
        begun = vector is None or visit.at < vector[layout.LAST_AT]
        if vector is None or begun:
            vector = [0.0] * layout.SIZE
            kernel.begin(vector, visit.at)
        digest_observation(vector, visit, begun)
        return layout.pack_state(vector)

    def plan(self, state: bytes | None, now: float, rng: Random) -> Plan:
        vector = layout.unpack_state(state)
        if vector is None:
            # Nothing is known yet: the prior alone says how soon to look.
            vector = [0.0] * layout.SIZE
            kernel.begin(vector, now)
        out = plan_vector(vector, now, self.price_seconds)
        spread = 1.0 + _JITTER * out[kernel.OUT_FLAT] * (2.0 * rng.random() - 1.0)
        after = max(out[kernel.OUT_AFTER], kernel.MIN_CELL_SECONDS) * spread
        return Plan(
            now + after,
            {
                "policy": self.name,
                "per_day": round(out[kernel.OUT_RATE] * 86400.0, 3),
                "per_day_long": round(out[kernel.OUT_LONG_RATE] * 86400.0, 3),
                "profile": round(out[kernel.OUT_PROFILE], 2),
                "price": round(self.price_seconds, 1),
                "window": out[kernel.OUT_BOUND] > 0.0,
            },
        )


def digest_observation(vector: list[float], visit: Observation, begun: bool) -> None:
    """Take one visit that worked into an unpacked state. The first visit's items are the source's history."""
    kernel.digest_visit(
        vector,
        visit.at,
        sorted(visit.item_times),
        visit.items_found,
        begun,
        visit.overflow,
        [0.0] * (layout.SHAPES + 2),
    )


def plan_vector(vector: list[float], now: float, price_seconds: float) -> list[float]:
    """The kernel's plan with fresh working space."""
    out = [0.0] * kernel.OUT_SIZE
    space = kernel.CELL_SPACE
    kernel.plan_visit(
        vector,
        now,
        price_seconds,
        [0.0] * (layout.SHAPES + 2),
        [0.0] * layout.LEVELS,
        sum_day(vector),
        [0.0] * kernel.HOUR_SPACE,
        [0.0] * space,
        [0.0] * space,
        [0.0] * space,
        [0.0] * space,
        [0] * space,
        out,
    )
    return out


def sum_day(vector: list[float]) -> list[float]:
    """What `kernel.sum_day` does, in the interpreter's own loops: every plan needs it."""
    day = vector[layout.DAY : layout.DAY + layout.DAY_BINS]
    bins = day[-kernel.MARGIN :] + day + day[: kernel.REACH - layout.DAY_BINS - kernel.MARGIN]
    return list(accumulate(accumulate(bins[:-1], initial=0.0), initial=0.0))


@dataclass(frozen=True, slots=True)
class Habits:
    """What can be told of a source's profile. `hours` are UTC, from and up to."""

    hours: tuple[int, int] | None
    weekdays_only: bool


def describe_state(state: bytes | None, now: float) -> Habits | None:
    """The hours and weekdays most items come in; None while too little was seen to say."""
    vector = layout.unpack_state(state)
    if vector is None or vector[layout.WEIGHT] < 10.0 * kernel.event_weight(vector, now):
        return None
    total = vector[layout.WEIGHT]
    hours = [sum(vector[layout.DAY + 6 * hour : layout.DAY + 6 * hour + 6]) for hour in range(24)]
    weekdays = sum(vector[layout.WEEK : layout.WEEK + 5])
    return Habits(_busiest_hours(hours, total), weekdays > 0.93 * total)


def _busiest_hours(hours: list[float], total: float) -> tuple[int, int] | None:
    """The shortest run of hours, up to eight, that holds most of the items."""
    round_the_clock = hours + hours
    for length in (1, 2, 3, 4, 6, 8):
        sums = [sum(round_the_clock[start : start + length]) for start in range(24)]
        if max(sums) > 0.6 * total:
            best = sums.index(max(sums))
            return best, (best + length) % 24
    return None
