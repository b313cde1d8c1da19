"""From a freshness target to the budget it takes, and from a budget to the freshness it buys."""

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.schedule.price import Goal
from headwater.simulate.engine import make_executor
from headwater.simulate.fleet import steer_fleet
from headwater.simulate.results import Result, summarise
from headwater.simulate.trace import Conditions, Trace

CURVE_BUDGETS = (48.0, 24.0, 12.0, 6.0, 3.0, 1.5)
WARM_DAYS = 5  # left out of the results: steering begins without knowing the fleet


@dataclass(frozen=True, slots=True)
class Proposal:
    """What to set, what it comes to, and the curve around it."""

    visits_per_day: float
    price_seconds: float
    expected: Result
    curve: tuple[Result, ...]


def propose(
    trace: Trace, goal: Goal, conditions: Conditions, *, curve: Sequence[float] = CURVE_BUDGETS
) -> Proposal:
    """What a goal comes to, steered as in production: the visits that a target takes, the delay that a budget buys."""
    goals = [goal, *(Goal(budget) for budget in curve)]
    with make_executor() as executor:
        expected, *around = executor.map(_run, [trace] * len(goals), goals, [conditions] * len(goals))
    return Proposal(expected.visits_per_day, expected.scale, expected, tuple(around))


def _run(trace: Trace, goal: Goal, conditions: Conditions) -> Result:
    steered = steer_fleet(trace, goal, conditions)
    budget = goal.visits_per_day if goal.delay_seconds is None else None
    return summarise(
        "adaptive", budget, steered.prices[-1], [track.result(WARM_DAYS) for track in steered.tracks]
    )
