"""Runs policies over a trace, at equal budgets or at their own.

`adaptive` is steered to its budget as in production. The waits of the other policies are stretched by one factor
until their visits come to the budget. Each policy at each budget runs in its own process. Given the same trace and
settings the result is always the same.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from math import exp, inf, log, sqrt

from headwater.errors import InputError
from headwater.schedule.price import Goal
from headwater.simulate.fleet import steer_fleet
from headwater.simulate.results import Result, SourceResult, summarise
from headwater.simulate.rules import RULES, replay_rule, visit_knowingly
from headwater.simulate.running import Running
from headwater.simulate.trace import Conditions, SourceTrace, Trace

POLICIES = (*RULES, "adaptive", "clairvoyant")
DEFAULT_PRICE_SECONDS = 800.0  # about six visits per source and day on a usual mix of sources
_SAMPLE = 60  # sources that are enough to come near a budget

Progress = Callable[[str, float], None]


def replay_source(source: SourceTrace, policy: str, scale: float, conditions: Conditions) -> SourceResult:
    """One policy over one source. `scale` is the price for `adaptive` and `clairvoyant`, else the stretch."""
    if policy == "clairvoyant":
        return visit_knowingly(source, scale)
    if policy != "adaptive":
        return replay_rule(policy, source, scale, conditions)
    running = Running(source, conditions)
    running.advance(source.end, scale)
    return running.result()


def replay_trace(trace: Trace, policy: str, scale: float, conditions: Conditions) -> list[SourceResult]:
    return [replay_source(source, policy, scale, conditions) for source in trace]


def run_policy(trace: Trace, policy: str, budget: float | None, conditions: Conditions) -> Result:
    """One policy at a budget, or with None at its own."""
    if budget is None:
        scale = DEFAULT_PRICE_SECONDS if policy in ("adaptive", "clairvoyant") else 1.0
        return summarise(policy, None, scale, replay_trace(trace, policy, scale, conditions))
    if policy == "adaptive":
        steered = steer_fleet(trace, Goal(budget), conditions)
        return summarise(policy, budget, steered.prices[-1], [track.result() for track in steered.tracks])
    scale, sources = find_scale(trace, policy, budget, conditions)
    return summarise(policy, budget, scale, sources)


def compare(
    trace: Trace,
    policies: Sequence[str],
    budgets: Sequence[float],
    conditions: Conditions,
    progress: Progress | None = None,
) -> list[Result]:
    """Every policy at every budget. An empty list of budgets compares the policies at their own."""
    for name in policies:
        if name not in POLICIES:
            raise InputError(
                "there is no policy {name}: choose from {names}", name=name, names=", ".join(POLICIES)
            )
    wanted = [(policy, budget) for policy in policies for budget in budgets or (None,)]
    results = []
    with make_executor() as executor:
        running = [
            executor.submit(run_policy, trace, policy, budget, conditions) for policy, budget in wanted
        ]
        for (policy, budget), future in zip(wanted, running, strict=True):
            if progress is not None:
                progress(policy, budget or 0.0)
            results.append(future.result())
    return results


def make_executor() -> Executor:
    return ProcessPoolExecutor(os.cpu_count() or 1)


def find_scale(
    trace: Trace, policy: str, budget: float, conditions: Conditions, *, tolerance: float = 0.004
) -> tuple[float, list[SourceResult]]:
    """The scale at which a policy makes `budget` visits per source and day, and its replay there.

    A part of the sources is enough to come near; the whole trace then takes two or three steps. If the budget cannot be
    reached, the nearest is returned.
    """
    power = -0.5 if policy in ("adaptive", "clairvoyant") else -1.0
    scale = DEFAULT_PRICE_SECONDS * (6 / budget) ** 2 if power == -0.5 else 24 / budget
    if len(trace) > 2 * _SAMPLE:
        scale = _search(trace[:: len(trace) // _SAMPLE], policy, budget, scale, power, conditions, 0.03)[0]
    return _search(trace, policy, budget, scale, power, conditions, tolerance)


def _search(
    trace: Trace,
    policy: str,
    budget: float,
    scale: float,
    power: float,
    conditions: Conditions,
    tolerance: float,
) -> tuple[float, list[SourceResult]]:
    """A secant search in logarithms, starting from the slope that theory gives.

    It stays between scales known to be too small and too large: if a few sources change their habits at one scale,
    visits fall steeply there.
    """
    best: tuple[float, float, list[SourceResult]] | None = None
    previous: tuple[float, float] | None = None
    low, high = 0.0, inf  # scales that make too many visits, and too few
    for _ in range(8):
        sources = replay_trace(trace, policy, scale, conditions)
        visits = max(sum(s.visits for s in sources) / sum(s.days for s in sources), 1e-9)
        error = log(visits / budget)
        if best is None or abs(error) < best[0]:
            best = (abs(error), scale, sources)
        if abs(error) <= tolerance:
            break
        slope = power
        if previous is not None and abs(log(scale / previous[0])) > 1e-6:
            measured = (log(visits) - log(previous[1])) / log(scale / previous[0])
            slope = min(max(measured, 3 * power), power / 10)
        previous = (scale, visits)
        low, high = (max(low, scale), high) if error > 0.0 else (low, min(high, scale))
        wanted = scale * exp(min(max(-error / slope, -4.0), 4.0))
        scale = sqrt(low * high) if 0.0 < low < high < inf and not low < wanted < high else wanted
    return (scale, []) if best is None else best[1:]
