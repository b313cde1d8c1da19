"""What the adaptive policy must have learnt from each kind of source."""

from random import Random

import pytest

from headwater.model import Observation
from headwater.schedule import layout
from headwater.schedule.adaptive import AdaptivePolicy
from headwater.schedule.interval import IntervalPolicy
from tests.driving import Drive, drive
from tests.histories import DAY, MONDAY, at_hour, even, hourly, merged

HOUR = 3600.0
POLICY = AdaptivePolicy(800.0)


def compare_with_fixed(times: list[float], days: int = 30, price: float = 800.0) -> tuple[Drive, Drive]:
    """The policy, and a fixed interval that makes as many visits."""
    start, end = MONDAY + 30 * DAY, MONDAY + (30 + days) * DAY
    driven = drive(AdaptivePolicy(price), times, start, end)
    fixed = drive(IntervalPolicy((end - start) / max(len(driven.visits), 1)), times, start, end)
    return driven, fixed


def test_an_even_source_is_visited_at_the_square_root_of_its_rate() -> None:
    times = even(24, 60)
    driven, _ = compare_with_fixed(times)
    expected = (2 * 800 * HOUR) ** 0.5
    assert 30 * DAY / len(driven.visits) == pytest.approx(expected, rel=0.15)


def test_a_fixed_hour_publisher_is_visited_right_after_its_hour() -> None:
    driven, fixed = compare_with_fixed(at_hour(9.0, 60))
    assert driven.mean_delay < fixed.mean_delay / 3


def test_midnight_is_no_edge() -> None:
    noon, _ = compare_with_fixed(at_hour(12.0, 60, spread_minutes=30))
    midnight, _ = compare_with_fixed(at_hour(23.75, 60, spread_minutes=30))
    assert midnight.mean_delay == pytest.approx(noon.mean_delay, rel=0.35)
    assert len(midnight.visits) == pytest.approx(len(noon.visits), rel=0.35)


def test_a_weekday_publisher_is_left_alone_at_weekends() -> None:
    driven, _ = compare_with_fixed(merged(*[at_hour(hour, 60, weekdays=True) for hour in (8, 10, 12, 14)]))
    weekend = sum((visit - MONDAY) // DAY % 7 >= 5 for visit in driven.visits)
    assert weekend / len(driven.visits) < 0.2  # two days in seven would be 0.29


def test_an_hourly_publisher_is_visited_after_the_full_hour() -> None:
    driven, fixed = compare_with_fixed(hourly(60))
    assert driven.mean_delay < 0.5 * fixed.mean_delay
    late = [visit % HOUR for visit in driven.visits[-200:]]
    assert sum(second < 600 for second in late) > 0.6 * len(late)


def test_a_first_visit_is_enough_for_a_good_plan() -> None:
    times = tuple(even(48, 2, start=MONDAY - 2 * DAY))
    state = POLICY.digest(None, Observation(MONDAY, "new", times, len(times), first=True))
    wait = POLICY.plan(state, MONDAY, Random(1)).next_at - MONDAY
    assert 900 < wait < 2 * HOUR


def test_dormant_and_revived() -> None:
    times = merged(even(12, 30), even(12, 20, seed=5, start=MONDAY + 150 * DAY))
    driven = drive(POLICY, times, MONDAY + 20 * DAY, MONDAY + 170 * DAY)
    asleep = [visit for visit in driven.visits if MONDAY + 120 * DAY < visit < MONDAY + 150 * DAY]
    awake = [visit for visit in driven.visits if visit > MONDAY + 155 * DAY]
    assert len(asleep) / 30 < 4
    assert len(awake) / 15 > 10


def test_a_burst_is_followed() -> None:
    times = merged(even(1, 60), even(200, 1, seed=7, start=MONDAY + 45 * DAY))
    driven, _ = compare_with_fixed(times)
    during = [visit for visit in driven.visits if MONDAY + 45.2 * DAY < visit < MONDAY + 46 * DAY]
    usual = [visit for visit in driven.visits if visit < MONDAY + 45 * DAY]
    assert len(during) / 0.8 > 4 * len(usual) / 15


def test_a_full_window_brings_the_next_visit_forward() -> None:
    times = even(200, 10)
    driven = drive(AdaptivePolicy(80_000.0), times, MONDAY + DAY, MONDAY + 10 * DAY, window=20)
    waits = [after - before for before, after in zip(driven.visits, driven.visits[1:], strict=False)]
    assert sum(waits) / len(waits) < 0.9 * 20 / 200 * DAY


def test_daylight_saving_is_followed_within_three_weeks() -> None:
    before = at_hour(9.0, 60)
    after = at_hour(10.0, 40, start=MONDAY + 60 * DAY)
    start, end = MONDAY + 80 * DAY, MONDAY + 100 * DAY
    driven = drive(POLICY, before + after, MONDAY + 30 * DAY, end)
    settled = driven.delays[-20:]
    visits = sum(visit > start for visit in driven.visits)
    fixed = drive(IntervalPolicy((end - start) / visits), before + after, start, end)
    assert sum(settled) / len(settled) < fixed.mean_delay / 3


def test_items_without_a_date_teach_no_hours() -> None:
    """Their time is our own visit's: learning it would be learning our own habits."""
    state = POLICY.digest(None, Observation(MONDAY, "new", (MONDAY,), 1, first=True))
    for day in range(1, 40):
        at = MONDAY + day * DAY
        state = POLICY.digest(state, Observation(at, "new", (at, at), 10))
    vector = layout.unpack_state(state)
    assert vector is not None
    assert vector[layout.WEIGHT] == 0
    assert vector[layout.COUNTS] > 10


def test_failed_visits_change_nothing_but_what_waits_is_not_forgotten() -> None:
    times = tuple(even(24, 20, start=MONDAY - 20 * DAY))
    state = POLICY.digest(None, Observation(MONDAY, "new", times, 20, first=True))
    assert POLICY.digest(state, Observation(MONDAY + DAY, "failed")) == state
    soon = POLICY.plan(state, MONDAY + DAY, Random(1)).next_at - MONDAY - DAY
    assert soon < POLICY.plan(state, MONDAY, Random(1)).next_at - MONDAY


def test_a_damaged_state_begins_anew_and_time_never_runs_backwards() -> None:
    visit = Observation(MONDAY, "new", (MONDAY - 500, MONDAY - 60), 2)
    state = POLICY.digest(None, visit)
    assert state is not None
    assert len(state) <= 1024
    for damaged in (b"", b"\0" * len(state), state[:-1], state[:100] + b"\x07" + state[101:]):
        assert layout.unpack_state(damaged) is None
        assert POLICY.digest(damaged, visit) == state
        assert POLICY.plan(damaged, MONDAY, Random(1)).next_at > MONDAY
    assert POLICY.digest(state, Observation(MONDAY - DAY, "unchanged")) is not None


def test_a_firehose_neither_overflows_nor_stops_learning() -> None:
    state = POLICY.digest(None, Observation(MONDAY, "new", (), 0, first=True))
    for hour in range(1, 60):
        at = MONDAY + hour * HOUR
        times = tuple(at - second * 190 % 3600 for second in range(19))
        state = POLICY.digest(state, Observation(at, "new", times, 20, overflow=True))
    for number in range(30_000 // 19):
        at = MONDAY + (60 + number) * HOUR
        times = tuple(at - 200.0 * minute - 1 for minute in range(17))
        state = POLICY.digest(state, Observation(at, "new", times, 20))
    plan = POLICY.plan(state, at, Random(1))
    assert 0 < plan.next_at - at < HOUR


@pytest.mark.parametrize("per_day", [0.02, 0.3, 3.0, 300.0])
def test_plans_are_made_at_every_hour_and_price(per_day: float) -> None:
    """Cells of every width, at every place in the day, stay within the day's sums."""
    days = 40
    times = tuple(even(per_day, days, start=MONDAY - days * DAY)[-400:])
    state = POLICY.digest(None, Observation(MONDAY, "new", times, 20, first=True))
    for quarter in range(96 * 2):
        now = MONDAY + quarter * 900 + 451.7
        for price in (0.1, 10.0, 1e3, 2e4, 1e5, 1e6, 1e8):
            assert AdaptivePolicy(price).plan(state, now, Random(1)).next_at > now
