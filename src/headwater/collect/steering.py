"""Steering the fleet's price of a visit, so that all workers together keep to the budget.

The price is one row in the settings table. Every worker reads it. The first worker that finds it an hour old steers
it, in one transaction under the row's lock. What sources of each type usually publish is written beside it, for new
ones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import exp, log
from random import Random
from typing import Any

from sqlalchemy import Connection

from headwater.config import Settings
from headwater.schedule.compose import Limits
from headwater.schedule.kernel.ladder import find_usual_rate
from headwater.schedule.layout import unpack_scalars
from headwater.schedule.price import STEER_EVERY_SECONDS, Fleet, Goal, Price, assume_rates, begin_price, steer
from headwater.store.collecting.spending import read_spending
from headwater.store.core.settings import get_setting, lock_setting, set_setting

PRICE_KEY = "price"
USUAL_RATES_KEY = "usual_rates"
FEWEST_SOURCES = 5  # of a type, before they say what is usual


def find_goal(settings: Settings) -> Goal:
    """What the price is steered to."""
    minutes, percent = settings.freshness_minutes, settings.freshness_percent
    return Goal(
        settings.budget_visits_per_day,
        None if minutes is None else 60.0 * minutes,
        None if percent is None else percent / 100.0,
    )


def begin_for(goal: Goal, limits: Limits, now: float = 0.0) -> Price:
    """The price before anything was counted."""
    return begin_price(goal, now, _fleet(limits))


def read_price(connection: Connection) -> Price | None:
    """The price in force; None before the first one, and if the row is damaged."""
    stored = get_setting(connection, PRICE_KEY)
    try:
        return None if stored is None else Price(**{name: _number(value) for name, value in stored.items()})
    except (TypeError, ValueError, AttributeError):
        return None


def _number(value: Any) -> Any:
    return tuple(map(float, value)) if isinstance(value, list) else float(value)


def read_usual_rates(connection: Connection) -> dict[str, float]:
    """Items per second that sources usually publish, by type."""
    stored = get_setting(connection, USUAL_RATES_KEY)
    try:
        return (
            {str(name): float(rate) for name, rate in stored.items() if float(rate) > 0.0} if stored else {}
        )
    except (TypeError, ValueError, AttributeError):
        return {}


def steer_price(connection: Connection, goal: Goal, limits: Limits, now: float) -> Price:
    """Bring the price up to date, if it is an hour old, and return it."""
    lock_setting(connection, PRICE_KEY)
    price = read_price(connection)
    if price is not None and abs(now - price.at) < STEER_EVERY_SECONDS:
        return price  # another worker was faster
    if price is None or price.at > now:  # of a clock that was ahead
        price = begin_for(goal, limits, now)
    else:
        spent = read_spending(connection, price.at, now, Random(now))
        rates = list(_find_rates(spent.states))
        known = assume_rates(rate for _, rate in rates)
        fleet = _fleet(limits, spent.sources, spent.visits, known, spent.delays)
        price = steer(price, fleet, goal, now)
        set_setting(connection, USUAL_RATES_KEY, _find_usual(rates), now)
    set_setting(connection, PRICE_KEY, asdict(price), now)
    return price


def _fleet(
    limits: Limits,
    sources: float = 0.0,
    visits: float = 0.0,
    rates: Sequence[float] = (),
    delays: Sequence[float] = (),
) -> Fleet:
    return Fleet(sources, visits, rates, delays, limits.min_interval_seconds, limits.max_interval_seconds)


def _find_rates(states: Iterable[tuple[str, bytes]]) -> Iterable[tuple[str, float]]:
    for kind, packed in states:
        state = unpack_scalars(packed)
        if state is not None:
            yield kind, find_usual_rate(state)


def _find_usual(rates: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The geometric mean of the rates of each type."""
    logarithms: dict[str, list[float]] = {}
    for kind, rate in rates:
        if rate > 0.0:
            logarithms.setdefault(kind, []).append(log(rate))
    return {
        kind: exp(sum(each) / len(each)) for kind, each in logarithms.items() if len(each) >= FEWEST_SOURCES
    }
