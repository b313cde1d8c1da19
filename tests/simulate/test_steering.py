"""A fleet from a cold start, and what happens when it doubles."""

from dataclasses import replace

import pytest

from headwater.schedule.price import Price
from headwater.simulate.engine import Conditions
from headwater.simulate.steering import steer_fleet
from headwater.simulate.trace import SourceTrace
from tests.histories import DAY, MONDAY, at_hour, even


def make_fleet(size: int, days: int) -> list[SourceTrace]:
    fleet = []
    for number in range(size):
        kind = number % 4
        if kind == 0:
            times = even(0.05 + number / 10, days, seed=number)
        elif kind == 1:
            times = at_hour(number % 24, days, 60)
        else:
            times = even(2.0 ** (number % 5), days, seed=number)
        fleet.append(SourceTrace(str(number), tuple(times), MONDAY + 20 * DAY, MONDAY + days * DAY))
    return fleet


@pytest.mark.parametrize("price", [None, Price(30_000.0)])
def test_the_budget_is_kept_from_a_cold_start_through_a_doubling(price: Price | None) -> None:
    fleet = make_fleet(24, 70)
    later = [replace(source, name=f"later {source.name}") for source in fleet]
    joins = [0] * len(fleet) + [28] * len(later)
    history = steer_fleet([*fleet, *later], 6.0, 49, Conditions(), join_days=joins, price=price)
    assert [day.sources for day in (history[0], history[-1])] == [24, 48]
    for begin in range(14, 49, 7):
        week = history[begin : begin + 7]
        mean = sum(day.visits for day in week) / sum(day.sources for day in week)
        assert mean == pytest.approx(6.0, rel=0.03), begin
