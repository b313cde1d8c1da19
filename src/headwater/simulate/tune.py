"""From a freshness target to the budget it takes, and from a budget to the freshness it buys."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Literal

from headwater.simulate.engine import Conditions, find_scale, make_executor, replay_trace
from headwater.simulate.results import Result, summarise
from headwater.simulate.trace import Trace

Measure = Literal["mean", "p95"]
CURVE_BUDGETS = (48.0, 24.0, 12.0, 6.0, 3.0, 1.5)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What to set, what it comes to, and the curve around it."""

    visits_per_day: float
    price_seconds: float
    expected: Result
    curve: tuple[Result, ...]


def propose_freshness(
    trace: Trace,
    budget: float,
    conditions: Conditions,
    *,
    policy: str = "adaptive",
    curve: Sequence[float] = CURVE_BUDGETS,
) -> Proposal:
    """What `budget` visits per source and day buy."""
    with make_executor() as executor:
        scale, sources = find_scale(trace, policy, budget, conditions, executor)
        expected = summarise(policy, budget, scale, sources)
        around = _trace_curve(trace, policy, curve, scale, budget, conditions, executor)
    return Proposal(expected.visits_per_day, scale, expected, around)


def propose_budget(
    trace: Trace,
    delay_seconds: float,
    conditions: Conditions,
    *,
    measure: Measure = "mean",
    policy: str = "adaptive",
    curve: Sequence[float] = CURVE_BUDGETS,
    tolerance: float = 0.02,
) -> Proposal:
    """The smallest budget whose mean or 95th-percentile delay is `delay_seconds`.

    Delay grows with the price's square root, which makes most steps land close to the mark.
    """
    with make_executor() as executor:
        scale, _ = find_scale(trace, policy, 6.0, conditions, executor, tolerance=0.2)
        expected = summarise(policy, None, scale, replay_trace(trace, policy, scale, conditions, executor))
        low, high = 0.0, inf  # prices known to be too fresh, and not fresh enough
        for _ in range(16):
            reached = expected.mean_delay if measure == "mean" else expected.p95_delay
            if reached <= 0 or abs(log(reached / delay_seconds)) < tolerance or high < 1.001 * low:
                break
            if reached < delay_seconds:
                low = scale
            else:
                high = scale
            wished = scale * exp(min(max(2.0 * log(delay_seconds / reached), -3.0), 3.0))
            scale = wished if low < wished < high else sqrt(low * high)
            sources = replay_trace(trace, policy, scale, conditions, executor)
            expected = summarise(policy, None, scale, sources)
        around = _trace_curve(trace, policy, curve, scale, expected.visits_per_day, conditions, executor)
    return Proposal(expected.visits_per_day, scale, expected, around)


def _trace_curve(
    trace: Trace,
    policy: str,
    budgets: Sequence[float],
    scale: float,
    visits: float,
    conditions: Conditions,
    executor: Executor,
) -> tuple[Result, ...]:
    """One replay per point: the price is near enough, and the curve shows where it landed."""
    results = []
    for budget in budgets:
        price = scale * (visits / budget) ** 2
        results.append(
            summarise(policy, budget, price, replay_trace(trace, policy, price, conditions, executor))
        )
    return tuple(results)
