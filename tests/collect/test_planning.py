"""What the end of a visit means: which policy, which plan, which status, which statistics."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from headwater.collect.outage import OutageDetector
from headwater.collect.planning import Planner
from headwater.errors import FailureKind, FetchError
from headwater.model import Hints, Observation, Source, SourceStats
from headwater.schedule.adaptive import AdaptivePolicy
from headwater.schedule.cadence import unpack_stats
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
        ({"config": {"fetch_interval_minutes": 5}, "fetch_count": 10, "hit_count": 1}, "interval"),
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
def test_own_interval_holds_however_long_the_history_is(given: dict[str, Any], expected: str) -> None:
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


def test_own_outage_leaves_failure_counts_unchanged() -> None:
    before = source(consecutive_failures=4)
    after = planner().after_failure(before, failure(FailureKind.DNS), NOON, ours=True)
    assert (after.consecutive_failures, after.status) == (4, "ok")
    assert after.plan_reason["our_outage"] is True


def test_most_hosts_failing_at_once_is_our_own_outage() -> None:
    outages = OutageDetector()
    for number in range(4):
        outages.record(f"h{number}", NOON, FailureKind.CONNECT)
    assert not outages.is_ours(NOON), "four hosts prove nothing"
    outages.record("h4", NOON, FailureKind.DNS)
    assert outages.is_ours(NOON)
    for number in range(10, 16):
        outages.record(f"h{number}", NOON, None)
    assert not outages.is_ours(NOON), "most others answer"
    for number in range(10, 16):
        outages.record(f"h{number}", NOON, FailureKind.SERVER_ERROR)
    assert not outages.is_ours(NOON), "a host that answers with an error can be reached"
    assert not outages.is_ours(NOON + 3600)


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


@pytest.mark.parametrize(
    ("target", "delays", "late"),
    [
        (None, [3 * HOUR], False),  # within the fixed interval
        (None, [5 * HOUR], True),
        (600.0, [900.0], True),
        (600.0, [100.0, 900.0], False),  # on average
        (600.0, [30 * HOUR], False),  # out before the last visit: its publisher was late
    ],
)
def test_source_is_late_when_items_are_found_after_its_target(
    target: float | None, delays: list[float], late: bool
) -> None:
    before = source(last_fetched_at=NOON - 24 * HOUR)
    times = tuple(NOON - delay for delay in delays)
    after = planner(target_seconds=target).after_success(before, seen(item_times=times))
    assert after.is_late is late
    nothing_new = planner(target_seconds=target).after_success(after, seen(NOON + 60))
    assert nothing_new.is_late is late, "without new items it is as it was"


def test_failing_since_is_the_first_failure_and_ends_with_a_success() -> None:
    first = planner().after_failure(source(last_fetched_at=NOON - 60), failure(), NOON)
    assert first.failing_since_at == NOON
    second = planner().after_failure(first, failure(), NOON + 900)
    assert second.failing_since_at == NOON
    assert planner().after_success(second, seen(NOON + 1800)).failing_since_at is None


def test_source_that_never_answered_is_planned_by_its_fixed_interval() -> None:
    refused = planner("adaptive").after_failure(source(), failure(FailureKind.UNAUTHORIZED), NOON)
    assert (wait(refused), refused.plan_reason["policy"]) == (4 * HOUR, "interval")
    skipped = planner("adaptive").after_success(source(), Observation(NOON, "skipped"))
    assert (wait(skipped), skipped.plan_reason["policy"]) == (4 * HOUR, "interval")


def test_refused_credentials_wait_for_the_fixed_interval_whatever_was_learnt() -> None:
    times = tuple(NOON - HOUR * number for number in range(40))
    known = planner("adaptive").after_success(
        source(), seen(item_times=times, first=True), last_entry_at=NOON, last_fetched_at=NOON
    )
    refused = planner("adaptive").after_failure(known, failure(FailureKind.UNAUTHORIZED), NOON)
    assert wait(refused) == 4 * HOUR
    assert refused.policy_state is not None, "what was learnt is kept"


def test_cadence_has_one_state_whatever_fails() -> None:
    """The table of statistics shows what plans are made of, over 400 visits of which some fail."""
    cadence, rng = planner("cadence"), Random(7)
    current = source()
    at = NOON
    for number in range(400):
        at += 900 + 7200 * rng.random()
        if rng.random() < 0.15:
            current = cadence.after_failure(current, failure(), at)
            current = replace(current, fetch_error_count=current.fetch_error_count + 1)
        elif rng.random() < 0.05:
            current = cadence.after_success(current, Observation(at, "skipped"))
        else:
            new = tuple(at - 600 * rng.random() for _ in range(rng.choice((0, 0, 1, 3))))
            current = cadence.after_success(
                current, seen(at, item_times=new, first=number == 0), last_fetched_at=at, last_entry_at=at
            )
        unpacked = unpack_stats(current.policy_state)
        assert unpacked is not None and current.stats is not None
        for name in (
            "frequency_type",
            "cadence",
            "avg_publish_hour",
            "last_article_at",
            "check_count",
            "hit_count",
        ):
            assert getattr(unpacked[0], name) == getattr(current.stats, name), (number, name)
    assert current.stats is not None and current.stats.check_count == 400


def test_cadence_keeps_its_counts_when_its_state_is_lost() -> None:
    stats = SourceStats(check_count=41, hit_count=9)
    lost = source(last_fetched_at=NOON - HOUR, stats=stats, policy_state=b"damaged")
    history = tuple(NOON - HOUR * number for number in range(2, 20))
    after = planner("cadence").after_success(lost, seen(), history)
    unpacked = unpack_stats(after.policy_state)
    assert unpacked is not None and (unpacked[0].check_count, unpacked[0].hit_count) == (42, 9)
    assert after.stats is not None and after.stats.check_count == 42
