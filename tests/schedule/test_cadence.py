"""The cadence document's tables, thresholds and edge cases."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from headwater.model import Observation, SourceStats
from headwater.schedule.cadence import (
    FREQUENCY_CADENCE_MAP,
    RSS_CADENCE_INTERVALS,
    CadencePolicy,
    calculate_backoff,
    calculate_next_check_time,
    calculate_publish_time_stats,
    classify_update_frequency,
    is_sound,
    needs_analysis,
    unpack_stats,
)
from tests.driving import Middle, drive
from tests.histories import DAY, MONDAY, even

HOUR = 3600.0


def entries(count: int, gap_hours: float) -> list[dict[str, Any]]:
    return [{"published_at": MONDAY - number * gap_hours * HOUR} for number in range(count)]


def test_all_constants_equal_the_documents_tables() -> None:
    assert RSS_CADENCE_INTERVALS == {
        "P0": 15 * 60,
        "P1": 30 * 60,
        "P2": 60 * 60,
        "P3": 2 * 60 * 60,
        "P4": 4 * 60 * 60,
        "P5": 8 * 60 * 60,
        "P6": 24 * 60 * 60,
    }
    assert FREQUENCY_CADENCE_MAP == {
        "realtime": "P0",
        "high": "P1",
        "daily": "P2",
        "daily_fixed": "P3",
        "weekly": "P4",
        "monthly": "P5",
        "low": "P6",
    }


@pytest.mark.parametrize("count", [3, 4, 5, 10, 30])
@pytest.mark.parametrize(
    ("gap_hours", "expected"),
    [
        (5.999, ("realtime", "P0")),
        (6, ("high", "P1")),
        (17.999, ("high", "P1")),
        (18, ("daily", "P2")),
        (35.999, ("daily", "P2")),
        (36, ("daily_fixed", "P3")),
        (71.999, ("daily_fixed", "P3")),
        (72, ("weekly", "P4")),
        (167.999, ("weekly", "P4")),
        (168, ("monthly", "P5")),
        (719.999, ("monthly", "P5")),
        (720, ("low", "P6")),
    ],
)
def test_thresholds_hold_exactly(gap_hours: float, expected: tuple[str, str], count: int) -> None:
    assert classify_update_frequency(entries(count, gap_hours)) == expected


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_entries_decide_nothing(count: int) -> None:
    assert classify_update_frequency(entries(count, 1)) == ("daily", "P2")
    assert calculate_publish_time_stats(entries(count, 1)) == (None, None)


def test_unusable_timestamps_are_passed_over() -> None:
    bad: list[Any] = [None, "yesterday", float("nan"), float("inf"), -5, 0, True, 1e300, [], {}]
    mixed = [{"published_at": value} for value in bad] + [{}] + entries(3, 24)
    assert classify_update_frequency(mixed) == ("daily", "P2")
    assert classify_update_frequency([{"published_at": value} for value in bad]) == ("daily", "P2")
    assert calculate_publish_time_stats(mixed) == calculate_publish_time_stats(entries(3, 24))


def test_all_at_once_is_realtime() -> None:
    assert classify_update_frequency(entries(5, 0)) == ("realtime", "P0")


def test_order_of_entries_does_not_matter() -> None:
    assert classify_update_frequency(entries(9, 40)[::-1]) == classify_update_frequency(entries(9, 40))


def test_same_hour_every_day_has_the_least_deviation() -> None:
    daily = [{"published_at": MONDAY + day * DAY + 9.5 * HOUR} for day in range(5)]
    assert calculate_publish_time_stats(daily) == (9.5, 1.0)


def test_the_mean_across_midnight_is_arithmetic() -> None:
    around = [{"published_at": MONDAY + day * DAY + hour * HOUR} for day, hour in enumerate((23, 1, 23, 1))]
    assert calculate_publish_time_stats(around) == (12.0, 6.0)


def test_a_regular_source_is_checked_after_its_hour() -> None:
    now = MONDAY + 8 * HOUR
    due = calculate_next_check_time("P2", "daily", 9.0, 1.0, int(now - DAY), now=now)
    assert due == MONDAY + 9.5 * HOUR


def test_what_was_published_today_is_not_expected_again_today() -> None:
    now = MONDAY + 8.5 * HOUR
    due = calculate_next_check_time("P2", "daily", 9.0, 1.0, int(MONDAY + 8 * HOUR), now=now, rng=Middle())
    assert due == now + HOUR


def test_an_irregular_source_gets_its_interval() -> None:
    now = MONDAY + 8 * HOUR
    assert calculate_next_check_time("P2", "daily", 9.0, 5.0, 0, now=now, rng=Middle()) == now + HOUR


@pytest.mark.parametrize(
    ("count", "message", "seconds"),
    [
        (1, "", 900),
        (2, "timeout", 1800),
        (7, "timeout", 57600),
        (8, "timeout", 86400),
        (10**9, "timeout", 86400),
        (1, "HTTP 429 Too Many Requests", 21600),
        (3, "操作频繁", 21600),
        (3, "登录已过期", 0),
        (3, "token expired", 0),
        (3, "403 Forbidden", 43200),
        (3, "429 after 401 and 403", 21600),
        (3, "401 then 403", 0),
    ],
)
def test_backoff(count: int, message: str, seconds: int) -> None:
    assert calculate_backoff(count, message) == seconds


def test_analysis_happens_early_and_every_tenth_time() -> None:
    assert [number for number in range(1, 31) if needs_analysis(number, True)] == [1, 2, 3, 10, 20, 30]
    assert [number for number in range(1, 31) if needs_analysis(number, False)] == [10, 20, 30]


def test_the_policy_settles_on_the_sources_rhythm() -> None:
    times = even(10, 60)
    driven = drive(CadencePolicy(), times, MONDAY + 20 * DAY, MONDAY + 30 * DAY)
    assert CadencePolicy().plan(driven.state, MONDAY, Middle()).reason["cadence"] == "P0"
    assert len(driven.visits) == pytest.approx(960, rel=0.02)


def test_damaged_state_starts_again() -> None:
    policy = CadencePolicy()
    visit = Observation(MONDAY, "new", (MONDAY - 30, MONDAY - 20, MONDAY - 10), 3)
    state = policy.digest(None, visit)
    assert state is not None
    for damaged in (b"", b"x" * 20, state[:-1], state[:9] + b"\xff" + state[10:]):
        assert policy.plan(damaged, MONDAY, Random(1)).reason["cadence"] == "P2"
        assert policy.digest(damaged, visit) == state
    failed, known = (
        unpack_stats(each) for each in (policy.digest(state, Observation(MONDAY, "failed")), state)
    )
    assert failed is not None and known is not None
    assert failed[0] == replace(known[0], check_count=known[0].check_count + 1), "counted, as in the table"


def test_five_a_day_on_most_days_is_realtime_though_it_rests_on_others() -> None:
    monday = 1_700_438_400.0  # 2023-11-20
    busy_days = (0, 1, 3, 4, 6)
    times = [monday + 86_400 * day + 3_600 * (8 + hour) for day in busy_days for hour in range(5)]
    assert (times[-1] - times[0]) / (len(times) - 1) > 6 * 3600, "by its mean interval it is not"
    found = classify_update_frequency([{"published_at": at} for at in times])
    assert found == ("realtime", "P0")
    four = [{"published_at": at} for number, at in enumerate(times) if number % 5]
    assert classify_update_frequency(four)[0] != "realtime"


@pytest.mark.parametrize(
    ("change", "sound"),
    [
        ({}, True),
        ({"check_count": 3, "hit_count": 3}, True),
        ({"check_count": 3, "hit_count": 4}, False),
        ({"fail_count": -1}, False),
        ({"cadence": "realtime", "frequency_type": "weekly"}, False),
        ({"avg_publish_hour": 23.5, "std_publish_hour": 0.0}, True),
        ({"avg_publish_hour": 24.0}, False),
        ({"std_publish_hour": "9"}, False),
    ],
)
def test_statistics_that_cannot_be_true_are_not_sound(change: dict[str, Any], sound: bool) -> None:
    assert is_sound(replace(SourceStats(), **change)) is sound
