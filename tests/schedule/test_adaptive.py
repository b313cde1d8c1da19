"""What the adaptive policy must have learnt from each kind of source."""

from bisect import bisect_right
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.model import Hints, Observation
from headwater.schedule import layout
from headwater.schedule.adaptive import AdaptivePolicy, describe_state
from headwater.schedule.compose import Limits, plan_next
from headwater.schedule.interval import IntervalPolicy
from tests.driving import Drive, Middle, drive
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


def test_items_without_a_date_are_spread_over_the_gap_they_appeared_in() -> None:
    """What is certain is that they came since the last visit, not that they came when we did."""
    state = POLICY.digest(None, Observation(MONDAY, "new", (MONDAY,), 1, first=True))
    for day in range(1, 40):
        at = MONDAY + day * DAY
        state = POLICY.digest(state, Observation(at - 6 * HOUR, "unchanged"))
        state = POLICY.digest(state, Observation(at, "new", (at, at), 10))
    vector = layout.unpack_state(state)
    assert vector is not None
    within = sum(vector[layout.DAY + 108 : layout.DAY + 144])
    assert within == vector[layout.WEIGHT] > 0
    assert max(vector[layout.DAY : layout.DAY + 144]) < 0.4 * within, "no peak at our own hour"
    assert vector[layout.COUNTS] > 10


EARLY, LATE = -5 * HOUR, 8 * HOUR


@pytest.mark.parametrize(("what", "bound"), [(EARLY, 1.4), (LATE, 1.6), ("day", 1.9), ("none", 1.9)])
def test_dates_that_are_not_true_are_corrected_or_not_believed(what: float | str, bound: float) -> None:
    """A source with office hours, whatever its dates say, is found nearly as soon as with true ones."""
    times = merged(*[at_hour(hour, 90, 50) for hour in (8, 9.5, 11, 14)])
    found = []
    for stated in (times, [state_date(time, what) for time in times]):
        seen, now, delays = bisect_right(times, MONDAY + 20 * DAY), MONDAY + 20 * DAY, []
        state = POLICY.digest(None, observe(now, stated[:seen], first=True))
        while (now := POLICY.plan(state, now, Middle(0)).next_at) < MONDAY + 90 * DAY:
            new = bisect_right(times, now)
            delays += [now - time for time in times[seen:new] if time > MONDAY + 40 * DAY]
            state = POLICY.digest(state, observe(now, stated[seen:new]))
            seen = new
        found.append(sum(delays) / len(delays))
    assert found[1] < bound * found[0], found


def state_date(time: float, what: float | str) -> float:
    if what == "day":
        return time // DAY * DAY
    return time + 9e9 if isinstance(what, str) else time + what


def observe(now: float, stated: list[float], *, first: bool = False) -> Observation:
    """As a visit shows it: a date too far ahead to be meant is replaced by the visit's own time."""
    dates = tuple(date if date < now + DAY else now for date in stated)
    return Observation(now, "new" if dates else "unchanged", dates, min(len(dates), 20), first=first)


@pytest.mark.parametrize("minute", [5, 42])
def test_a_punctual_source_is_visited_a_minute_or_two_after_its_moment(minute: int) -> None:
    rng = Random(minute)
    times = [MONDAY + day * DAY + 9 * HOUR + minute * 60 + rng.uniform(-30, 30) for day in range(100)]
    driven = drive(AdaptivePolicy(700.0), times, MONDAY + 10 * DAY, MONDAY + 100 * DAY, longest=DAY)
    assert len(driven.visits) / 90 < 3.5
    settled = driven.delays[-60:]
    assert sum(settled) / len(settled) <= 120


def test_a_burst_on_a_short_feed_loses_little() -> None:
    """Sixty items in two hours on a feed that shows twenty."""
    burst = [MONDAY + 40 * DAY + 9 * HOUR + 120 * number for number in range(60)]
    times = merged(even(6, 60), burst)
    state = POLICY.digest(None, observe(MONDAY + 38 * DAY, [t for t in times if t < MONDAY + 38 * DAY][-20:]))
    state = POLICY.digest(state, Observation(burst[0], "unchanged", (), 20))
    now, lost, seen = burst[0] + 1800.0, 0, burst[0]
    while now < MONDAY + 41 * DAY:
        new = [time for time in times if seen < time <= now]
        lost += max(0, len(new) - 20)
        outcome = Observation(now, "new", tuple(new[-20:]), 20, overflow=len(new) > 20)
        state = POLICY.digest(state, outcome)
        seen, now = now, POLICY.plan(state, now, Middle(0)).next_at
    assert lost <= 5


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 3e6),
            st.lists(st.floats(-1e12, 1e12) | st.floats(), max_size=5),
            st.integers(0, 30),
            st.booleans(),
        ),
        max_size=12,
    ),
    st.floats(0.01, 1e9),
)
def test_no_date_makes_a_policy_break_down_or_leave_its_limits(
    visits: list[tuple[float, list[float], int, bool]], price: float
) -> None:
    now, state = MONDAY, None
    for gap, dates, shown, overflow in visits:
        now += gap
        seen = Observation(now, "new" if dates else "unchanged", tuple(dates), shown, state is None, overflow)
        state, plan = plan_next(AdaptivePolicy(price), state, seen, None, Limits(), now, Random(1))
        assert 300.0 <= plan.next_at - now <= DAY
        assert state is not None
        assert len(state) <= 1024
        assert layout.unpack_state(state) is not None


def test_failed_visits_change_nothing_but_what_waits_is_not_forgotten() -> None:
    times = tuple(even(24, 20, start=MONDAY - 20 * DAY))
    state = POLICY.digest(None, Observation(MONDAY, "new", times, 20, first=True))
    assert POLICY.digest(state, Observation(MONDAY + DAY, "failed")) == state
    soon = POLICY.plan(state, MONDAY + DAY, Random(1)).next_at - MONDAY - DAY
    assert soon < POLICY.plan(state, MONDAY, Random(1)).next_at - MONDAY


def test_damaged_state_starts_again_and_time_never_runs_backwards() -> None:
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


@pytest.mark.parametrize(("days", "hours"), [(41, (8, 9)), (240, (7, 8))])
def test_usual_hours_follow_the_clock_of_the_source(days: int, hours: tuple[int, int]) -> None:
    now, spring = MONDAY + days * DAY, MONDAY + 132 * DAY  # 2024-03-31
    seen = tuple(time if time < spring else time - HOUR for time in at_hour(8.0, days))
    berlin = Hints(utc_offset_seconds=HOUR if now < spring else 2 * HOUR)
    state = POLICY.digest(None, Observation(now, "new", seen, len(seen), first=True, hints=berlin))
    habits = describe_state(state, now)
    assert habits is not None
    assert habits.hours == hours
