"""A reason told in one sentence."""

from dataclasses import replace
from datetime import timedelta, timezone
from random import Random
from typing import Any

import pytest

from headwater.errors import FailureKind
from headwater.model import Hints, Observation, Plan, Source
from headwater.schedule.adaptive import AdaptivePolicy
from headwater.schedule.backoff import Failure
from headwater.schedule.cadence import CadencePolicy
from headwater.schedule.compose import Limits, plan_next
from headwater.schedule.explain import explain_next, explain_plan, explain_source, tell_duration, tell_rate
from headwater.schedule.interval import IntervalPolicy
from headwater.schedule.policy import Policy
from tests.histories import DAY, MONDAY, at_hour

NONE = Hints()


def make(
    policy: Policy, hints: Hints = NONE, failure: Failure | None = None, state: bytes | None = None
) -> Plan:
    visit = Observation(MONDAY, "failed" if failure else "unchanged", hints=hints)
    return plan_next(policy, state, visit, failure, Limits(), MONDAY, Random(1))[1]


def test_interval_and_cadence() -> None:
    assert explain_plan(make(IntervalPolicy(3600.0)), "en") == (
        "fixed interval of 60 min; next visit 2023-11-20 01:00"
    )
    assert explain_plan(make(CadencePolicy()), "zh").startswith("节奏 P2（daily），每 60 分钟 一次；下次访问")


def test_adaptive_tells_the_usual_hours_in_the_readers_zone() -> None:
    policy = AdaptivePolicy()
    times = at_hour(7.5, 60, weekdays=True, start=MONDAY - 60 * DAY - 3 * DAY)
    times = [time for time in times if time < MONDAY]
    state = policy.digest(None, Observation(MONDAY, "new", tuple(times), 20, first=True))
    text = explain_plan(policy.plan(state, MONDAY, Random(1)), "en", timezone(timedelta(hours=1)), state)
    assert ", mostly 08–09 h" in text
    assert text.endswith("because waiting longer would cost more than a request")
    chinese = explain_plan(policy.plan(state, MONDAY, Random(1)), "zh", state=state)
    assert "多在 07–08 时" in chinese


def test_the_overlay_that_decided_is_named() -> None:
    policy = IntervalPolicy(3600.0)
    assert "publisher asks to wait 3 h (ttl)" in explain_plan(make(policy, Hints(ttl_seconds=10800)), "en")
    once = make(policy, failure=Failure(1, FailureKind.TIMEOUT))
    assert "because 1 visit failed" in explain_plan(once, "en")
    failed = make(policy, failure=Failure(3, FailureKind.TIMEOUT))
    assert "because 3 visits in a row failed" in explain_plan(failed, "en")
    assert "visited once a day" in explain_plan(make(policy, failure=Failure(5, FailureKind.DNS)), "en")
    assert "needs your attention" in explain_plan(
        make(policy, failure=Failure(1, FailureKind.UNAUTHORIZED)), "en"
    )


def test_numbers_are_told_in_fitting_units() -> None:
    assert [tell_rate(rate, "en") for rate in (240.0, 3.0, 0.5, 0.05, 0.001)] == [
        "about 240 items a day",
        "about 3 items a day",
        "about 3.5 items a week",
        "about 1.5 items a month",
        "hardly any items",
    ]
    assert [tell_duration(seconds, "en") for seconds in (10, 900, 5400, 9000, 86400 * 3)] == [
        "10 s",
        "15 min",
        "90 min",
        "2.5 h",
        "3 days",
    ]


def test_explanation_of_a_failing_source_names_error_time_and_way_out() -> None:
    source = Source(
        *(1, "one", "rss.feed", "https://one.example/"),
        last_fetched_at=MONDAY,
        next_fetch_at=MONDAY + 900,
        plan_reason=make(IntervalPolicy(900.0), failure=Failure(1, FailureKind.NOT_FOUND)).reason,
        consecutive_failures=1,
        last_error="there is nothing at this address",
        last_error_kind=FailureKind.NOT_FOUND,
        failing_since_at=MONDAY,
    )
    plan, error, advice = explain_source(source, "en")
    assert "because 1 visit failed" in plan
    assert error.startswith("failing since 20") and error.endswith("there is nothing at this address")
    assert advice == "what to do: check its address, and give it the new one if it has moved"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"status": "retired"}, "gone"),
        ({"schedule_enabled": False}, "paused"),
        ({"is_deleted": True}, "removed"),
    ],
)
def test_explanation_of_a_source_that_is_not_visited_names_no_visit(
    changes: dict[str, Any], word: str
) -> None:
    source = Source(
        *(1, "one", "rss.feed", "https://one.example/"),
        last_fetched_at=MONDAY,
        next_fetch_at=MONDAY + 900,
        **changes,
    )
    assert explain_next(source, "en") == f"{word}; no visit is planned"


def test_no_rate_is_told_of_a_source_that_never_showed_an_item() -> None:
    policy = AdaptivePolicy()
    plan = policy.plan(policy.digest(None, Observation(MONDAY, "unchanged", first=True)), MONDAY, Random(1))
    source = Source(
        *(1, "one", "rss.feed", "https://one.example/"),
        last_fetched_at=MONDAY,
        next_fetch_at=plan.next_at,
        plan_reason=plan.reason,
    )
    assert "items a" not in explain_next(source, "en")
    assert explain_next(source, "en").startswith("no items so far; next visit")
    assert "items a" in explain_next(replace(source, last_entry_at=MONDAY), "en")
