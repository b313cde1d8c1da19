"""Runs policies over a trace, at equal budgets or at their own.

Sources do not touch each other, so they are replayed side by side: in threads where the loops are compiled,
in processes where they are not. Given the same trace and settings the result is always the same.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any

from headwater.errors import InputError
from headwater.schedule import kernel, layout
from headwater.schedule.adaptive import DEFAULT_PRICE_SECONDS
from headwater.schedule.arithmetic import SPACE_SIZES
from headwater.schedule.compiled import is_compiled
from headwater.simulate import replay
from headwater.simulate.loops import load_functions
from headwater.simulate.results import Result, SourceResult, summarise
from headwater.simulate.trace import SourceTrace, Trace

_RULES = {
    "fixed": replay.RULE_FIXED,
    "miniflux": replay.RULE_MINIFLUX,
    "newsblur": replay.RULE_NEWSBLUR,
    "commafeed": replay.RULE_COMMAFEED,
    "cadence": replay.RULE_CADENCE,
    "square-root": replay.RULE_SQUARE_ROOT,
}
POLICIES = (*_RULES, "adaptive", "clairvoyant")
_BY_PRICE = (
    "adaptive",
    "clairvoyant",
)  # visits go with the price's inverse square root, not with its inverse

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for every policy in a comparison."""

    window: int = 20  # how many items a source shows at once
    min_interval_seconds: float = 300.0
    max_interval_seconds: float = 14 * 86400.0


def replay_source(source: SourceTrace, policy: str, scale: float, conditions: Conditions) -> SourceResult:
    """One policy over one source. `scale` is the price for `adaptive` and `clairvoyant`, else the stretch."""
    functions = load_functions()
    times = make_vector(source.times)
    cursor = make_zeros(replay.CURSOR_SIZE)
    functions.begin_replay(cursor, times, source.start)
    first = int(cursor[replay.FIRST])
    delays = make_vector([-1.0] * max(len(source.times) - first, 1))
    if policy == "clairvoyant":
        size = len(source.times) - first + 1
        visits = functions.visit_clairvoyantly(
            times, first, scale, delays, make_zeros(size), make_zeros(size)
        )
        return SourceResult(source.days, int(visits), 0, 0, delays[: len(source.times) - first])
    if policy == "adaptive":
        functions.advance_adaptive(
            cursor,
            make_zeros(layout.SIZE),
            times,
            source.end,
            scale,
            conditions.window,
            conditions.min_interval_seconds,
            conditions.max_interval_seconds,
            delays,
            *make_space(),
        )
    else:
        functions.advance_rule(
            cursor,
            times,
            source.end,
            _RULES[policy],
            scale,
            conditions.window,
            conditions.min_interval_seconds,
            conditions.max_interval_seconds,
            delays,
        )
    return SourceResult(
        source.days,
        int(cursor[replay.VISITS]),
        int(cursor[replay.USELESS]),
        int(cursor[replay.MISSED]),
        delays[: len(source.times) - first],
    )


def make_space() -> tuple[Any, ...]:
    """The kernel's working space, in the order its functions take it."""
    vectors = [make_zeros(size) for size in SPACE_SIZES]
    return (*vectors, make_indexes(kernel.CELL_SPACE), make_zeros(kernel.OUT_SIZE))


def make_zeros(size: int) -> Any:
    return make_vector([0.0] * size)


def make_indexes(size: int) -> Any:
    if not is_compiled():
        return [0] * size
    import numpy as np

    return np.zeros(size, dtype=np.int64)


def make_vector(values: Sequence[float]) -> Any:
    if not is_compiled():
        return list(values)
    import numpy as np

    return np.array(values, dtype=float)


def make_executor() -> Executor:
    workers = os.cpu_count() or 1
    return ThreadPoolExecutor(workers) if is_compiled() else ProcessPoolExecutor(workers)


def replay_trace(
    trace: Trace, policy: str, scale: float, conditions: Conditions, executor: Executor | None = None
) -> list[SourceResult]:
    if policy not in POLICIES:
        raise InputError(
            "there is no policy {name}: choose from {names}", name=policy, names=", ".join(POLICIES)
        )
    run = partial(replay_source, policy=policy, scale=scale, conditions=conditions)
    if executor is None:
        return [run(source) for source in trace]
    chunk = max(1, len(trace) // (8 * (os.cpu_count() or 1)))
    return list(executor.map(run, trace, chunksize=chunk))


def _visits_per_day(sources: Sequence[SourceResult]) -> float:
    return sum(source.visits for source in sources) / sum(source.days for source in sources)


def find_scale(
    trace: Trace,
    policy: str,
    budget: float,
    conditions: Conditions,
    executor: Executor | None = None,
    *,
    guess: float | None = None,
    tolerance: float = 0.004,
) -> tuple[float, list[SourceResult]]:
    """The scale at which a policy makes `budget` visits per source and day, and its replay there.

    A sixth of the sources is enough to come near; the whole trace then takes two or three steps. Where the
    budget cannot be reached, the nearest is returned.
    """
    power = -0.5 if policy in _BY_PRICE else -1.0
    scale = guess or (DEFAULT_PRICE_SECONDS * (6 / budget) ** 2 if policy in _BY_PRICE else 24 / budget)
    if len(trace) > 60:
        scale = _follow(trace[::6], policy, budget, scale, power, conditions, executor, 0.03, 6)[0]
    return _follow(trace, policy, budget, scale, power, conditions, executor, tolerance, 7)


def _follow(
    trace: Trace,
    policy: str,
    budget: float,
    scale: float,
    power: float,
    conditions: Conditions,
    executor: Executor | None,
    tolerance: float,
    steps: int,
) -> tuple[float, list[SourceResult]]:
    """A secant search in logarithms, starting from the slope that theory gives."""
    sources = replay_trace(trace, policy, scale, conditions, executor)
    best = (abs(log(max(_visits_per_day(sources), 1e-9) / budget)), scale, sources)
    previous: tuple[float, float] | None = None
    for _ in range(steps):
        visits = max(_visits_per_day(sources), 1e-9)
        error = log(visits / budget)
        if abs(error) <= tolerance:
            break
        slope = power
        if previous is not None and abs(log(scale / previous[0])) > 1e-6:
            measured = (log(visits) - log(previous[1])) / log(scale / previous[0])
            slope = min(max(measured, 3 * power), power / 10)
        previous = (scale, visits)
        scale *= 2.718281828 ** min(max(-error / slope, -4.0), 4.0)
        sources = replay_trace(trace, policy, scale, conditions, executor)
        reached = abs(log(max(_visits_per_day(sources), 1e-9) / budget))
        if reached < best[0]:
            best = (reached, scale, sources)
    return best[1], best[2]


def compare(
    trace: Trace,
    policies: Sequence[str],
    budgets: Sequence[float],
    conditions: Conditions,
    progress: Progress | None = None,
) -> list[Result]:
    """Every policy at every budget. An empty list of budgets compares the policies at their own."""
    results = []
    with make_executor() as executor:
        for policy in policies:
            guess = None
            for budget in budgets or (None,):
                if progress is not None:
                    progress(policy, budget or 0.0)
                if budget is None:
                    scale = DEFAULT_PRICE_SECONDS if policy in _BY_PRICE else 1.0
                    sources = replay_trace(trace, policy, scale, conditions, executor)
                else:
                    scale, sources = find_scale(trace, policy, budget, conditions, executor, guess=guess)
                results.append(summarise(policy, budget, scale, sources))
                guess = None
    return results
