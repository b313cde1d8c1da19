"""One source's own history under each policy: how many requests, how long until something new is found."""

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.simulate.engine import Conditions, replay_source
from headwater.simulate.results import Result, summarise
from headwater.simulate.trace import trace_from_history

FEWEST_ITEMS = 5  # below this, a history says nothing
FEWEST_SECONDS = 86_400.0  # nor below this: policies think in hours and days
MOST_ITEMS = 500  # the newest of them: enough to judge by, and quick
FIXED_BASE_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class WhatIf:
    policy: str
    visits_per_day: float
    mean_delay_seconds: float
    p95_delay_seconds: float


def what_if(
    times: Sequence[float],
    *,
    price_seconds: float,
    interval_seconds: float,
    conditions: Conditions,
    now: float,
) -> list[WhatIf]:
    """Each policy as it would do from here: `adaptive` at the fleet's price, `interval` at the source's own."""
    newest = sorted(times)[-MOST_ITEMS:]
    if len(newest) < FEWEST_ITEMS or newest[-1] - newest[0] < FEWEST_SECONDS:
        return []
    trace = trace_from_history({"source": newest}, until=max(now, newest[-1] + 1))
    scales = {"adaptive": price_seconds, "cadence": 1.0, "fixed": interval_seconds / FIXED_BASE_SECONDS}
    return [
        _answer(
            summarise(
                policy, None, scale, [replay_source(source, policy, scale, conditions) for source in trace]
            )
        )
        for policy, scale in scales.items()
    ]


def _answer(result: Result) -> WhatIf:
    policy = "interval" if result.policy == "fixed" else result.policy
    return WhatIf(policy, result.visits_per_day, result.mean_delay, result.p95_delay)
