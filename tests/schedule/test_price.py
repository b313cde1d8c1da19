"""Steering the price on a fleet that answers as theory says: visits go with its inverse square root."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.schedule.price import (
    MAX_PRICE,
    MIN_PRICE,
    Fleet,
    Goal,
    Price,
    begin_price,
    predict_visits,
    steer,
)
from tests.histories import DAY, MONDAY

HOUR = 3600.0


def run_fleet(price: Price, budget: float, days: int, *, doubles_on: int | None = None) -> list[float]:
    """Daily visits per source and day over the budget. The fleet sleeps at night, as fleets do."""
    rng = Random(1)
    history = []
    now = MONDAY
    for day in range(days):
        sources = 200 if doubles_on is None or day < doubles_on else 400
        total = 0
        for hour in range(24):
            night = 0.4 if hour < 8 else 1.3
            expected = 6 * (900 / price.seconds) ** 0.5 * sources / 24 * night
            visits = max(0, round(rng.gauss(expected, expected**0.5)))
            total += visits
            now += HOUR
            price = steer(price, Fleet(sources, visits), Goal(budget), now)
        history.append(total / sources / budget)
    return history


@pytest.mark.parametrize("budget", [24.0, 6.0, 2.0])
@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_the_budget_is_kept_after_two_weeks_from_any_start(budget: float, factor: float) -> None:
    start = begin_price(Goal(budget), MONDAY)
    history = run_fleet(Price(start.seconds * factor, MONDAY), budget, 60, doubles_on=30)
    for week in range(14, 60, 7):
        mean = sum(history[week : week + 7]) / len(history[week : week + 7])
        assert mean == pytest.approx(1.0, abs=0.03), (week, mean)


def test_nothing_happens_without_time_sources_or_budget() -> None:
    price = Price(100.0, MONDAY)
    assert steer(price, Fleet(10, 5), Goal(6.0), MONDAY) == price
    assert steer(price, Fleet(0, 5), Goal(6.0), MONDAY + HOUR).seconds == 100.0
    assert steer(price, Fleet(10, 5), Goal(0.0), MONDAY + HOUR).seconds == pytest.approx(100.0)
    assert steer(Price(100.0), Fleet(10, 5), Goal(6.0), MONDAY) == Price(100.0, MONDAY)


def test_the_price_moves_smoothly_and_within_bounds() -> None:
    price, later = Price(100.0, MONDAY), MONDAY + HOUR
    assert price.seconds < steer(price, Fleet(10, 10**6), Goal(6.0), later).seconds < 5 * price.seconds
    dead, busy = Fleet(10, 0, [1e-12]), Fleet(10, 10**9, [1.0])
    assert steer(Price(MIN_PRICE, MONDAY), dead, Goal(6.0), later).seconds == pytest.approx(
        MIN_PRICE, rel=1e-3
    )
    assert steer(Price(MAX_PRICE, MONDAY), busy, Goal(0.01), later).seconds == pytest.approx(
        MAX_PRICE, rel=1e-3
    )


@pytest.mark.parametrize("share", [None, 0.9])
def test_a_freshness_target_is_reached(share: float | None) -> None:
    """Delays here are spread evenly up to two thirds of what the model thinks."""
    rng, price, found = Random(4), Price(5000.0, MONDAY), []
    for hour in range(24 * 12):
        longest = 80.0 * price.seconds**0.5
        delays = [rng.uniform(0.0, longest) for _ in range(4)]
        fleet = Fleet(20, 5, [10.0 / DAY] * 20, delays)
        price = steer(price, fleet, Goal(6.0, 1200.0, share), MONDAY + (hour + 1) * HOUR)
        found += delays if hour > 120 else []
    found.sort()
    reached = sum(found) / len(found) if share is None else found[int(share * len(found))]
    assert reached == pytest.approx(1200.0, rel=0.05)


def test_a_fleet_that_is_unlike_others_begins_near_its_budget() -> None:
    """One source with fifty items a day, two that sleep: the rates say at once what the price must be."""
    for rates in ([50.0 / DAY], [0.01 / DAY] * 2, [300.0 / DAY, 0.1 / DAY]):
        price = begin_price(Goal(6.0), MONDAY)
        for hour in range(5):
            made = len(rates) * predict_visits(Fleet(1, 0, rates), price.seconds) / 24.0
            price = steer(price, Fleet(len(rates), made, rates), Goal(6.0), MONDAY + (hour + 1) * HOUR)
        assert predict_visits(Fleet(1, 0, rates), price.seconds) == pytest.approx(6.0, rel=0.55), "and repays"


@given(
    st.floats(0.0, 1e12),
    st.floats(0.0, 1e9),
    st.lists(st.floats(0.0, 1e6, exclude_min=True), max_size=5),
    st.lists(st.floats(0.0, 1e12), max_size=5),
    st.floats(0.01, 288.0),
    st.none() | st.floats(1.0, 1e6),
    st.none() | st.floats(0.5, 0.99),
)
def test_whatever_was_counted_there_is_a_price(
    sources: float,
    visits: float,
    rates: list[float],
    delays: list[float],
    budget: float,
    target: float | None,
    share: float | None,
) -> None:
    price = begin_price(Goal(budget), MONDAY)
    for hour in (1, 2, 1000):
        fleet = Fleet(sources, visits, rates, delays)
        price = steer(price, fleet, Goal(budget, target, share), MONDAY + hour * HOUR)
        assert MIN_PRICE <= price.seconds <= MAX_PRICE
