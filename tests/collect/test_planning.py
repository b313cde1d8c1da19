"""What the end of a visit means: which policy, which plan, which status, which statistics."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from headwater.collect.outage import Weather
from headwater.collect.planning import Planner
from headwater.errors import FailureKind, FetchError
from headwater.model import Hints, Observation, Source, SourceStats
from headwater.schedule.adaptive import AdaptivePolicy
from headwater.schedule.compose import Limits
from tests.clock import NOON

HOUR = 3600.0


def planner(policy: str = "interval", **changes: Any) -> Planner:
    made = Planner({"rss.feed": 240.0, "web.sitemap": 120.0}, frozenset(), policy, 800.0, Limits(), Random(1))
    return replace(made, **changes)


def source(**fields: Any) -> Source:
    return Source(1, "one", "rss.feed", "https://one.example/", **fields)


def seen(at: float = NOON, **fields: Any) -> Observation:
    return Observation(at, "new" if fields.get("item_times") else "unchanged", **fields)


def failure(kind: FailureKind = FailureKind.SERVER_ERROR, **fields: Any) -> FetchError:
    return FetchError(kind, "it failed", **fields)


def wait(after: Source) -> float:
    assert after.next_fetch_at is not None
    return after.next_fetch_at - NOON


def test_the_interval_is_the_types_or_the_sources_own() -> None:
    assert wait(planner().after_success(source(), seen())) == 4 * HOUR
    assert wait(planner().after_success(source(config={"fetch_interval_minutes": 0.5}), seen())) == 30


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "adaptive"),
        ({"policy": "cadence"}, "cadence"),
        ({"policy": "interval"}, "interval"),
        ({"config": {"fetch_interval_minutes": 5}}, "interval"),
        ({"config": {"fetch_interval_minutes": 5}, "fetch_count": 10, "hit_count": 1}, "adaptive"),
        ({"config": {"fetch_interval_minutes": 5}, "fetch_count": 99, "hit_count": 0}, "interval"),
        (
            {
                "config": {"fetch_interval_minutes": 5},
                "policy": "interval",
                "fetch_count": 99,
                "hit_count": 9,
            },
            "interval",
        ),
    ],
)
def test_an_interval_set_by_hand_holds_until_there_is_history_unless_it_is_pinned(
    given: dict[str, Any], expected: str
) -> None:
    assert planner("adaptive").policy_of(source(**given)).name == expected


def test_a_types_interval_set_by_hand_holds_too() -> None:
    made = planner("adaptive", set_by_hand=frozenset({"rss.feed"}))
    assert made.policy_of(source()).name == "interval"
    assert made.policy_of(source(fetch_count=10, hit_count=1)).name == "adaptive"


def test_the_publishers_floor_raises_any_plan() -> None:
    for policy in ("interval", "cadence", "adaptive"):
        after = planner(policy).after_success(source(), seen(hints=Hints(ttl_seconds=20 * HOUR)))
        assert wait(after) >= 20 * HOUR
        assert after.plan_reason["decided_by"] == "publisher"


def test_failures_back_off_pause_and_give_up_and_success_heals() -> None:
    made = planner()
    current = source()
    waits, states = [], []
    for _ in range(11):
        current = made.after_failure(current, failure(), NOON)
        waits.append(wait(current) / HOUR)
        states.append((current.status, current.is_active))
    assert waits[:4] == [0.25, 0.5, 1.0, 2.0]
    assert waits[4:9] == [24.0] * 5, "probed once a day"
    assert waits[9:] == [168.0] * 2, "probed once a week"
    assert states == [("ok", True)] * 4 + [("paused", False)] * 5 + [("error", False)] * 2
    healed = made.after_success(current, seen())
    assert (healed.status, healed.is_active, healed.consecutive_failures) == ("ok", True, 0)
    assert healed.stats is not None
    assert (healed.stats.fail_count, healed.stats.backoff_until) == (0, 0)


@pytest.mark.parametrize(
    ("error", "hours", "status"),
    [
        (failure(FailureKind.RATE_LIMITED, http_status=429), 6.0, "ok"),
        (failure(FailureKind.RATE_LIMITED, http_status=429, retry_after_seconds=HOUR), 1.0, "ok"),
        (failure(FailureKind.FORBIDDEN, http_status=403), 12.0, "ok"),
        (failure(FailureKind.UNAUTHORIZED, http_status=401), 4.0, "needs_attention"),
        (failure(FailureKind.GONE, http_status=410), 0.25, "retired"),
    ],
)
def test_each_kind_of_failure_has_its_wait(error: FetchError, hours: float, status: str) -> None:
    after = planner().after_failure(source(), error, NOON)
    assert wait(after) / HOUR == hours
    assert after.status == status


def test_our_own_outage_moves_nobodys_count() -> None:
    before = source(consecutive_failures=4)
    after = planner().after_failure(before, failure(FailureKind.DNS), NOON, ours=True)
    assert (after.consecutive_failures, after.status) == (4, "ok")
    assert after.plan_reason["our_outage"] is True


def test_most_hosts_failing_at_once_is_our_own_outage() -> None:
    weather = Weather()
    for number in range(4):
        weather.record(f"h{number}", NOON, FailureKind.CONNECT)
    assert not weather.is_ours(NOON), "four hosts prove nothing"
    weather.record("h4", NOON, FailureKind.DNS)
    assert weather.is_ours(NOON)
    for number in range(10, 16):
        weather.record(f"h{number}", NOON, None)
    assert not weather.is_ours(NOON), "most others answer"
    for number in range(10, 16):
        weather.record(f"h{number}", NOON, FailureKind.SERVER_ERROR)
    assert not weather.is_ours(NOON), "a host that answers with an error can be reached"
    assert not weather.is_ours(NOON + 3600)


def test_a_policy_that_breaks_down_is_stood_in_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(*args: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(AdaptivePolicy, "plan", explode)
    after = planner("adaptive").after_success(source(policy_state=b"whatever"), seen())
    assert wait(after) == 4 * HOUR
    assert after.plan_reason["stands_in_for"] == "adaptive"
    assert after.policy_state is None
    assert "the fixed interval stands in" in caplog.text


def test_a_lost_state_is_rebuilt_from_stored_items() -> None:
    made = planner("adaptive")
    times = [NOON - 86_400 * days for days in range(40, 0, -1)]
    learnt = made.after_success(source(), seen(item_times=tuple(times), items_found=40, first=True))
    lost = source(last_fetched_at=NOON - 60, policy_state=b"damaged", fetch_count=5)
    assert made.history_wanted(lost, news=False) >= 200
    assert made.history_wanted(replace(lost, policy_state=learnt.policy_state), news=False) == 0
    rebuilt = made.after_success(lost, seen(), times)
    assert rebuilt.plan_reason["per_day"] == pytest.approx(learnt.plan_reason["per_day"], rel=0.2)
    blank = made.after_success(replace(lost, policy_state=None), seen())
    assert blank.plan_reason["per_day"] < 0.5 * rebuilt.plan_reason["per_day"]


def test_statistics_are_kept_whatever_the_policy(caplog: pytest.LogCaptureFixture) -> None:
    for policy in ("interval", "cadence", "adaptive"):
        times = tuple(NOON - 7200 * n for n in range(20, 0, -1))
        after = planner(policy).after_success(source(), seen(item_times=times, items_found=20))
        assert after.stats is not None
        assert (after.stats.frequency_type, after.stats.cadence) == ("realtime", "P0")
        assert (after.stats.check_count, after.stats.hit_count) == (1, 1)
        assert after.stats.next_due_at == int(after.next_fetch_at or 0)
        assert after.stats.last_article_at == int(times[-1])
    damaged = source(stats=SourceStats(cadence="P9", check_count=-3))
    again = planner().after_success(damaged, seen())
    assert again.stats is not None
    assert (again.stats.cadence, again.stats.check_count) == ("P2", 1)
    assert "damaged" in caplog.text


def test_cadence_plans_by_the_documents_table() -> None:
    made = planner("cadence")
    times = tuple(NOON - 86_400 * n for n in range(5, 0, -1))
    after = made.after_success(source(), seen(item_times=times, items_found=5))
    assert after.plan_reason["cadence"] == "P2"
    assert 300 <= wait(after) <= 2 * HOUR
