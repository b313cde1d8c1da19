"""Policy, publisher, limits and failures in one plan."""

from random import Random

import pytest

from headwater.errors import FailureKind
from headwater.model import Hints, Observation, Plan
from headwater.schedule.backoff import Failure
from headwater.schedule.compose import Limits, plan_next
from headwater.schedule.interval import IntervalPolicy
from tests.histories import MONDAY

HOUR = 3600.0
NONE = Hints()
LIMITS = Limits()


def plan(
    interval: float = HOUR, hints: Hints = NONE, failure: Failure | None = None, limits: Limits = LIMITS
) -> Plan:
    outcome = "failed" if failure else "unchanged"
    visit = Observation(MONDAY, outcome, hints=hints)  # type: ignore[arg-type]
    return plan_next(IntervalPolicy(interval), None, visit, failure, limits, MONDAY, Random(1))[1]


@pytest.mark.parametrize(
    ("made", "wait", "decided"),
    [
        (plan(), HOUR, "policy"),
        (plan(5), 300, "min_interval"),
        (plan(90 * HOUR), 24 * HOUR, "max_interval"),
        (plan(hints=Hints(ttl_seconds=7200)), 7200, "publisher"),
        (plan(hints=Hints(ttl_seconds=60)), HOUR, "policy"),
        (plan(90 * HOUR, Hints(retry_after_seconds=48 * HOUR)), 48 * HOUR, "publisher"),
        (plan(failure=Failure(1, FailureKind.TIMEOUT)), 900, "backoff"),
        (plan(failure=Failure(1, FailureKind.RATE_LIMITED)), 6 * HOUR, "backoff"),
        (plan(failure=Failure(2, FailureKind.UNAUTHORIZED)), HOUR, "policy"),
        (plan(failure=Failure(5, FailureKind.TIMEOUT)), 24 * HOUR, "paused"),
        (plan(failure=Failure(10, FailureKind.TIMEOUT)), 7 * 24 * HOUR, "error"),
        (plan(failure=Failure(0, FailureKind.TIMEOUT)), HOUR, "policy"),
    ],
)
def test_who_decides(made: Plan, wait: float, decided: str) -> None:
    assert made.next_at == MONDAY + wait
    assert made.reason["decided_by"] == decided
    assert made.reason["policy"] == "interval"


def test_a_refused_login_needs_attention() -> None:
    assert plan(failure=Failure(1, FailureKind.UNAUTHORIZED)).reason["needs_attention"] is True


def test_the_floor_stands_on_top_of_a_backoff() -> None:
    made = plan(hints=Hints(max_age_seconds=3 * HOUR), failure=Failure(1, FailureKind.TIMEOUT))
    assert (made.next_at, made.reason["hint"]) == (MONDAY + 3 * HOUR, "max-age")
