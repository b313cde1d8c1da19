"""Tuning there and back."""

import pytest

from headwater.simulate.engine import Conditions
from headwater.simulate.tune import propose_budget, propose_freshness
from tests.simulate.test_engine import make_trace


def test_a_target_and_its_budget_lead_to_each_other() -> None:
    trace, conditions = make_trace(), Conditions()
    proposal = propose_budget(trace, 1800.0, conditions, curve=(12.0, 3.0))
    assert proposal.expected.mean_delay == pytest.approx(1800.0, rel=0.1)
    back = propose_freshness(trace, proposal.visits_per_day, conditions, curve=())
    assert back.expected.mean_delay == pytest.approx(1800.0, rel=0.1)
    assert back.price_seconds == pytest.approx(proposal.price_seconds, rel=0.2)
    fast, slow = proposal.curve
    assert fast.mean_delay < slow.mean_delay


def test_the_95th_percentile_can_be_the_target() -> None:
    proposal = propose_budget(make_trace(), 7200.0, Conditions(), measure="p95", curve=())
    assert proposal.expected.p95_delay == pytest.approx(7200.0, rel=0.15)
