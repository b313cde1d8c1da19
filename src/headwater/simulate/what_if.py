"""One source's own history under each policy: how many visits, how long until something new is found."""

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.simulate.engine import replay_source
from headwater.simulate.results import Result, summarise
from headwater.simulate.trace import Conditions, Evidence, SourceTrace, weigh_evidence

MOST_ITEMS = 300  # the newest of them: enough to judge by, and quick
FIXED_BASE_SECONDS = 3_600.0
FACTORS = (6.0, 2.0, 1.0, 0.5, 1 / 6)  # of the cost that is looked at: from few visits to many


@dataclass(frozen=True, slots=True)
class WhatIf:
    policy: str
    visits_per_day: float
    mean_delay_seconds: float
    p95_delay_seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What each policy would come to; empty if there is too little history."""

    evidence: Evidence
    policies: tuple[WhatIf, ...] = ()
    curves: tuple[WhatIf, ...] = ()  # the same policies at other costs, each from few visits to many


def what_if(
    times: Sequence[float],
    *,
    price_seconds: float,
    interval_seconds: float,
    conditions: Conditions,
    now: float,
) -> Answer:
    """Each policy as it would do from here: `adaptive` at the fleet's price, `interval` at the source's own."""
    newest = sorted(times)[-MOST_ITEMS:]
    if not newest:
        return Answer(Evidence(0, 0, 0.0))
    end = max(now, newest[-1] + 1)
    source = SourceTrace("source", tuple(newest), newest[0] + 0.1 * (end - newest[0]), end)
    evidence = weigh_evidence((source,))
    if not evidence.is_enough:
        return Answer(evidence)
    scales = {"adaptive": price_seconds, "cadence": 1.0, "fixed": interval_seconds / FIXED_BASE_SECONDS}

    def replay(policy: str, factor: float) -> WhatIf:
        scale = scales[policy] * factor
        return _show(summarise(policy, None, scale, [replay_source(source, policy, scale, conditions)]))

    found = {(policy, factor): replay(policy, factor) for policy in scales for factor in FACTORS}
    return Answer(evidence, tuple(found[policy, 1.0] for policy in scales), tuple(found.values()))


def _show(result: Result) -> WhatIf:
    policy = "interval" if result.policy == "fixed" else result.policy
    return WhatIf(policy, result.visits_per_day, result.mean_delay, result.p95_delay)
