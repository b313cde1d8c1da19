"""Drives a policy object over a list of publication times, as the documentation shows it."""

from bisect import bisect_right
from dataclasses import dataclass
from random import Random

from headwater.model import Observation
from headwater.schedule.policy import Policy


class Middle(Random):
    """Chance that always lands in the middle: plans without jitter."""

    def random(self) -> float:
        return 0.5


@dataclass(frozen=True)
class Drive:
    visits: list[float]
    delays: list[float]
    state: bytes | None

    @property
    def mean_delay(self) -> float:
        return sum(self.delays) / len(self.delays)


def drive(
    policy: Policy,
    times: list[float],
    start: float,
    end: float,
    *,
    rng: Random | None = None,
    window: int = 20,
    shortest: float = 300.0,
    longest: float = 7 * 86400.0,
) -> Drive:
    chance = rng or Middle(0)
    seen = bisect_right(times, start)
    found = min(seen, window)
    state = policy.digest(None, Observation(start, "new", tuple(times[:seen]), found, first=True))
    now = start
    visits: list[float] = []
    delays: list[float] = []
    while True:
        wait = policy.plan(state, now, chance).next_at - now
        now += min(max(wait, shortest), longest)
        if now > end:
            return Drive(visits, delays, state)
        visits.append(now)
        new = bisect_right(times, now)
        delays += [now - time for time in times[seen:new]]
        shown = tuple(times[max(seen, new - window) : new])
        outcome = "new" if shown else "unchanged"
        found = min(new, window) if shown else 0
        state = policy.digest(
            state,
            Observation(now, outcome, shown, found, overflow=new - window > seen),  # type: ignore[arg-type]
        )
        seen = new
