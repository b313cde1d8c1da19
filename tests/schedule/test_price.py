"""Steering the price on a fleet that answers as theory says: visits go with its inverse square root."""

from random import Random

import pytest

from headwater.schedule.price import MAX_PRICE, MIN_PRICE, Price, begin_price, steer, steer_to_delay
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
            price = steer(price, visits, sources, budget, now)
        history.append(total / sources / budget)
    return history


@pytest.mark.parametrize("budget", [24.0, 6.0, 2.0])
@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_the_budget_is_kept_after_two_weeks_from_any_start(budget: float, factor: float) -> None:
    start = begin_price(budget, MONDAY)
    history = run_fleet(Price(start.seconds * factor, MONDAY), budget, 60, doubles_on=30)
    for week in range(14, 60, 7):
        mean = sum(history[week : week + 7]) / len(history[week : week + 7])
        assert mean == pytest.approx(1.0, abs=0.03), (week, mean)


def test_nothing_happens_without_time_sources_or_budget() -> None:
    price = Price(100.0, MONDAY)
    assert steer(price, 5, 10, 6.0, MONDAY) == price
    assert steer(price, 5, 0, 6.0, MONDAY + HOUR).seconds == 100.0
    assert steer(price, 5, 10, 0.0, MONDAY + HOUR).seconds == 100.0
    assert steer(Price(100.0), 5, 10, 6.0, MONDAY) == Price(100.0, MONDAY)


def test_the_price_moves_smoothly_and_within_bounds() -> None:
    price = Price(100.0, MONDAY)
    assert price.seconds < steer(price, 10**6, 10, 6.0, MONDAY + HOUR).seconds < 2 * price.seconds
    assert steer(Price(MIN_PRICE, MONDAY), 0, 10**6, 6.0, MONDAY + 30 * DAY).seconds == MIN_PRICE
    assert steer(Price(MAX_PRICE, MONDAY), 10**9, 10, 6.0, MONDAY + 30 * DAY).seconds == MAX_PRICE


def test_a_freshness_target_is_reached() -> None:
    price = Price(5000.0, MONDAY)
    for hour in range(24 * 21):
        price = steer_to_delay(price, 60 * price.seconds**0.5, 1200.0, MONDAY + (hour + 1) * HOUR)
    assert price.seconds == pytest.approx(400.0, rel=0.02)
