"""Replays: budgets met, baselines sane, adaptive ahead, and the same answer compiled or not."""

import json
import os
import subprocess
import sys

import pytest

from headwater.errors import InputError
from headwater.schedule import arithmetic
from headwater.simulate.engine import POLICIES, compare, find_scale, replay_source, run_policy
from headwater.simulate.results import summarise
from headwater.simulate.trace import Conditions, SourceTrace, Trace
from tests.histories import DAY, MONDAY, at_hour, even, hourly, merged


def make_trace(days: int = 60) -> Trace:
    histories = {
        "busy": even(40, days),
        "rare": even(0.2, days, seed=4),
        "morning": merged(at_hour(7.0, days), at_hour(8.5, days)),
        "office": merged(*[at_hour(hour, days, 40, weekdays=True) for hour in (8, 9, 11, 13, 15)]),
        "hourly": hourly(days),
    }
    return tuple(
        SourceTrace(name, tuple(times), MONDAY + 20 * DAY, MONDAY + days * DAY)
        for name, times in histories.items()
    )


TRACE = make_trace()
CONDITIONS = Conditions()


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "clairvoyant"])
@pytest.mark.parametrize("budget", [20.0, 6.0])
def test_find_scale_of_every_policy_meets_the_budget(policy: str, budget: float) -> None:
    scale, sources = find_scale(TRACE, policy, budget, CONDITIONS)
    result = summarise(policy, budget, scale, sources)
    assert result.visits_per_day == pytest.approx(budget, rel=0.03)
    appeared = sum(sum(time > source.start for time in source.times) for source in TRACE)
    assert 0.97 * appeared < result.items <= appeared, "all but those after the last visit"


def test_adaptive_is_ahead_of_every_rule_at_equal_budgets() -> None:
    results = {result.policy: result for result in compare(TRACE, POLICIES, [8.0], CONDITIONS)}
    ours = results["adaptive"].mean_delay
    assert results["clairvoyant"].mean_delay <= ours
    for policy in ("fixed", "miniflux", "newsblur", "commafeed", "cadence", "square-root"):
        assert ours < 0.8 * results[policy].mean_delay, policy


def test_a_fixed_interval_waits_half_of_it() -> None:
    source = SourceTrace("even", tuple(even(100, 40)), MONDAY + DAY, MONDAY + 40 * DAY)
    result = summarise("fixed", None, 1.0, [replay_source(source, "fixed", 1.0, CONDITIONS)])
    assert result.visits_per_day == pytest.approx(24.0, rel=0.01)
    assert result.mean_delay == pytest.approx(1800, rel=0.05)
    assert result.p95_delay == pytest.approx(0.95 * 3600, rel=0.05)


def test_items_beyond_the_window_are_missed() -> None:
    burst = tuple(MONDAY + DAY + second for second in range(1, 51))
    source = SourceTrace("burst", burst, MONDAY, MONDAY + 3 * DAY)
    result = replay_source(source, "fixed", 12.0, Conditions(window=20))
    assert (result.missed, result.visits, result.useless) == (30, 6, 5)


def test_the_clairvoyant_pays_for_visits_only_what_they_are_worth() -> None:
    times = (MONDAY + 100.0, MONDAY + 160.0, MONDAY + 5000.0)
    source = SourceTrace("known", times, MONDAY, MONDAY + DAY)
    dear = replay_source(source, "clairvoyant", 100.0, CONDITIONS)
    assert (dear.visits, list(dear.delays)) == (2, [60.0, 0.0, 0.0])
    cheap = replay_source(source, "clairvoyant", 10.0, CONDITIONS)
    assert (cheap.visits, list(cheap.delays)) == (3, [0.0, 0.0, 0.0])


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(InputError, match="there is no policy magic"):
        compare(TRACE, ["magic"], [6.0], CONDITIONS)


def test_adaptive_at_a_budget_is_steered_to_it() -> None:
    result = run_policy(TRACE, "adaptive", 6.0, CONDITIONS)
    assert result.visits_per_day == pytest.approx(6.0, rel=0.03)


_SCRIPT = """
import json
from headwater.schedule.arithmetic import load_native
from headwater.simulate.engine import replay_trace
from tests.simulate.test_engine import CONDITIONS, make_trace
results = [
    (each.visits, each.missed, sum(each.delays))
    for each in replay_trace(make_trace(35), "adaptive", 800.0, CONDITIONS)
]
print(json.dumps([load_native() is not None, results]))
"""


def test_compiled_and_interpreted_replays_agree() -> None:
    if arithmetic.load_native() is None:
        pytest.skip("nothing is compiled here")
    answers = []
    for value in ("0", "1"):
        environment = {**os.environ, "HEADWATER_COMPILE": value}
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        answers.append(json.loads(done.stdout))
    assert [answer[0] for answer in answers] == [False, True]
    for one, two in zip(answers[0][1], answers[1][1], strict=True):
        assert one == pytest.approx(two, rel=1e-9)
