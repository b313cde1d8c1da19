"""Tuning there and back."""

import pytest

from headwater.schedule.price import Goal
from headwater.simulate.trace import Conditions
from headwater.simulate.tune import propose
from tests.simulate.test_engine import make_trace


def test_target_and_its_budget_lead_to_each_other() -> None:
    trace, conditions = make_trace(), Conditions()
    proposal = propose(trace, Goal(6.0, 1800.0), conditions, curve=(12.0, 3.0))
    assert proposal.expected.mean_delay == pytest.approx(1800.0, rel=0.1)
    back = propose(trace, Goal(proposal.visits_per_day), conditions, curve=())
    assert back.expected.mean_delay == pytest.approx(1800.0, rel=0.15)
    fast, slow = proposal.curve
    assert fast.mean_delay < slow.mean_delay


def test_target_of_a_share_is_reached() -> None:
    proposal = propose(make_trace(), Goal(6.0, 7200.0, 0.95), Conditions(), curve=())
    assert proposal.expected.p95_delay == pytest.approx(7200.0, rel=0.15)
