"""The fleet's price of a visit, steered so that its visits come to a budget or its delays to a target.

Every source weighs the delay of its items against the same price, in seconds of delay per visit. A model predicts
visits and delays from the sources' rates: visits go with the inverse square root of the price, delays with its square
root, both within the limits. What was counted says by how much the model is wrong. The price is the one at which both
together come to the goal.

Pure. The state is a few numbers in one row that all workers share: the worker that holds the row calls `steer` with
what was counted since `at`, and every worker reads `seconds`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from math import exp, log, sqrt

_DAY = 86400.0
MIN_PRICE, MAX_PRICE = 0.01, 1e9
STEER_EVERY_SECONDS = 3600.0
# Items a day of sources as they usually are, for a fleet whose rates are not known yet.
USUAL_RATES = tuple(rate / _DAY for rate in (0.01, 0.025, 0.055, 0.14, 0.36, 0.9, 2.4, 11.0))
_UNKNOWN_RATES = tuple(USUAL_RATES[index] for index in (4, 3, 5, 2, 6, 1, 7, 0))  # from the middle outwards
USUAL_TRUST = 0.93  # visits made for each one that the model predicts
_DELAYS_MEMORY = 3.0 * _DAY
_ENOUGH = 40.0  # visits, or items, that are kept until there are newer ones
_DOUBT = 4.0  # visits, or items, before what was counted weighs as much as the model …
_DOUBT_DAYS = 0.5  # … and days: the first hours after a start are unlike all others
_DEBT_DAYS = 1.0
# A small fleet must repay soon to keep its budget; for a large one an even price saves more delay.
_SMALL_FLEET = 300.0  # visits a day
_VISITS_MEMORY = (1.0 * _DAY, 7.0 * _DAY)
_REPAY_DAYS = (0.8, 6.0)
_MOST_OWED = (0.5, 0.15)  # share of a day's visits that is saved, or added, to repay
_DAY_STEPS = int(_DAY / STEER_EVERY_SECONDS)
_UNEVEN = 0.08  # by how much the last day may differ from the budget, apart from a single visit …
_EVENING = (
    4.0  # … and how hard the rest is made up for: the more often sources are visited, the sooner it helps
)
_EVENING_VISITS = 6.0
_DELAY_DEBT_MEMORY = 14.0 * _DAY
_REPAY_ITEMS = 8.0
_MOST_DELAY = 0.4  # by which the target is lowered, or raised, to repay
_MOST_STEP = 1.5  # of the price's logarithm
_BINS = 48  # of delays, as multiples of the model's mean …
_LEAST, _RATIO = 0.02, 1.18  # … each so much wider than the one before
_USUAL_DELAYS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5)  # multiples before any delay was seen


@dataclass(frozen=True, slots=True)
class Price:
    """The price in `seconds`, and what it was steered by.

    `visits` and `expected` are fading sums of visits made and predicted; `debt` is how many days' budget the fleet is
    ahead of its budget. `day_visits` and `day_allowed` are those of the last day, step by step. `delays` counts found
    items by their delay as a multiple of the predicted mean, and `delay_sum` adds the multiples up; `delay_debt` is how
    many items' delay the fleet is above its target.
    """

    seconds: float
    at: float = 0.0
    visits: float = 0.0
    expected: float = 0.0
    debt: float = 0.0
    day_visits: tuple[float, ...] = ()
    day_allowed: tuple[float, ...] = ()
    delays: tuple[float, ...] = ()
    delay_sum: float = 0.0
    delay_debt: float = 0.0


@dataclass(frozen=True, slots=True)
class Goal:
    """A budget in visits per source and day. With `delay_seconds` the mean delay is steered to that instead, and with
    `share` the time within which that share of all items is found.
    """

    visits_per_day: float
    delay_seconds: float | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """What was counted since the last steering, of the sources that the policy plans.

    First visits do not count as visits: people ask for them. `rates` are items per second of all sources or of a
    sample, `delays` those of the items found, `shortest` and `longest` the limits between two visits.
    """

    sources: float
    visits: float = 0.0
    rates: Sequence[float] = ()
    delays: Sequence[float] = ()
    shortest: float = 300.0
    longest: float = _DAY


def assume_rates(rates: Iterable[float]) -> list[float]:
    """The rates, with usual ones for sources of which too little is known."""
    unknown = cycle(_UNKNOWN_RATES)
    return [rate if rate > 0.0 else next(unknown) for rate in rates]


def begin_price(goal: Goal, now: float, fleet: Fleet | None = None) -> Price:
    """A first price, from the rates alone."""
    fleet = fleet or Fleet(0.0)
    if goal.delay_seconds:
        wished = goal.delay_seconds / _find_multiple(Price(0.0), goal.share)
        return Price(_solve(lambda seconds: predict_delay(fleet, seconds) >= wished), now)
    wished = goal.visits_per_day / USUAL_TRUST
    return Price(_solve(lambda seconds: predict_visits(fleet, seconds) <= wished), now)


def steer(price: Price, fleet: Fleet, goal: Goal, now: float) -> Price:
    """The price after what `fleet` did since `price.at`."""
    elapsed = now - price.at
    if price.at <= 0.0 or elapsed <= 0.0 or fleet.sources <= 0:
        return replace(price, at=max(now, price.at))
    price = _count_visits(price, fleet, goal, elapsed)
    price = _count_delays(price, fleet, goal, elapsed)
    if goal.delay_seconds:
        seconds = _price_for_delay(price, fleet, goal)
    elif goal.visits_per_day > 0.0:
        seconds = _price_for_budget(price, fleet, goal)
    else:
        seconds = price.seconds
    return replace(price, seconds=min(max(seconds, MIN_PRICE), MAX_PRICE), at=now)


def predict_visits(fleet: Fleet, seconds: float) -> float:
    """Visits per source and day at a price, if every source's items were spread evenly."""
    rates = fleet.rates or USUAL_RATES
    return _DAY * sum(1.0 / wait for wait in _predict_waits(fleet, rates, seconds)) / len(rates)


def predict_delay(fleet: Fleet, seconds: float) -> float:
    """The mean delay of an item at a price, if every source's items were spread evenly."""
    rates = fleet.rates or USUAL_RATES
    waits = _predict_waits(fleet, rates, seconds)
    return 0.5 * sum(rate * wait for rate, wait in zip(rates, waits, strict=True)) / sum(rates)


def _predict_waits(fleet: Fleet, rates: Sequence[float], seconds: float) -> list[float]:
    return [min(max(sqrt(2.0 * seconds / rate), fleet.shortest), fleet.longest) for rate in rates]


def _count_visits(price: Price, fleet: Fleet, goal: Goal, elapsed: float) -> Price:
    days = elapsed / _DAY
    predicted = predict_visits(fleet, price.seconds) * fleet.sources * days
    kept = _kept(price.expected, elapsed, _by_size(_VISITS_MEMORY, fleet, goal))
    daily = goal.visits_per_day * fleet.sources
    owed = fleet.visits / daily - days if daily > 0.0 else 0.0
    debt = price.debt * exp(-days / 7.0) + owed
    return replace(
        price,
        visits=price.visits * kept + fleet.visits,
        expected=price.expected * kept + predicted,
        debt=min(max(debt, -_DEBT_DAYS), _DEBT_DAYS),
        day_visits=(*price.day_visits, fleet.visits)[-_DAY_STEPS:],
        day_allowed=(*price.day_allowed, daily * days)[-_DAY_STEPS:],
    )


def _count_delays(price: Price, fleet: Fleet, goal: Goal, elapsed: float) -> Price:
    counts = list(price.delays) if len(price.delays) == _BINS else [0.0] * _BINS
    kept = _kept(sum(counts), elapsed, _DELAYS_MEMORY)
    mean = predict_delay(fleet, price.seconds)
    counts = [count * kept for count in counts]
    total = price.delay_sum * kept
    for delay in fleet.delays:
        multiple = max(delay, 0.0) / mean
        counts[_find_bin(multiple)] += 1.0
        total += multiple
    debt = price.delay_debt * exp(-elapsed / _DELAY_DEBT_MEMORY)
    debt += sum(_find_excess(delay, goal) for delay in fleet.delays)
    most = _REPAY_ITEMS + sum(counts)
    return replace(price, delays=tuple(counts), delay_sum=total, delay_debt=min(max(debt, -most), most))


def _find_excess(delay: float, goal: Goal) -> float:
    """By how much one item is above the target: 0 in the mean where the target is met."""
    if not goal.delay_seconds:
        return 0.0
    if goal.share is None:
        return delay / goal.delay_seconds - 1.0
    return goal.share / (1.0 - goal.share) if delay > goal.delay_seconds else -1.0


def _kept(evidence: float, elapsed: float, memory: float) -> float:
    """The share of old evidence that is kept: it fades, but not below what is enough."""
    return 1.0 if evidence <= _ENOUGH else max(exp(-elapsed / memory), _ENOUGH / evidence)


def _by_size(values: tuple[float, float], fleet: Fleet, goal: Goal) -> float:
    """Between the value for the smallest fleets and that for the largest."""
    daily = goal.visits_per_day * fleet.sources
    return values[0] + (values[1] - values[0]) * daily / (daily + _SMALL_FLEET)


def _price_for_budget(price: Price, fleet: Fleet, goal: Goal) -> float:
    """The price at which the model, as far as it was right so far, comes to the budget and repays the debt."""
    doubt = _DOUBT + _DOUBT_DAYS * goal.visits_per_day * fleet.sources
    trust = (price.visits + USUAL_TRUST * doubt) / (price.expected + doubt)
    most = _by_size(_MOST_OWED, fleet, goal)
    owed = min(max(price.debt / _by_size(_REPAY_DAYS, fleet, goal), -most), most)
    wished = goal.visits_per_day * (1.0 - owed) * _even_out(price, goal) / trust
    return _solve(lambda seconds: predict_visits(fleet, seconds) <= wished, near=price.seconds)


def _even_out(price: Price, goal: Goal) -> float:
    """The share of the budget to spend now, so that no day, such as a quiet Saturday, is far from the budget."""
    allowed = sum(price.day_allowed)
    if len(price.day_allowed) < _DAY_STEPS or allowed <= 0.0:
        return 1.0
    off = sum(price.day_visits) / allowed - 1.0
    beyond = max(0.0, abs(off) - _UNEVEN - 1.0 / allowed) * (1.0 if off > 0.0 else -1.0)
    return max(0.1, 1.0 - beyond * _EVENING * goal.visits_per_day / (goal.visits_per_day + _EVENING_VISITS))


def _price_for_delay(price: Price, fleet: Fleet, goal: Goal) -> float:
    """The price at which the model, as far as it was right so far, comes to the target and repays the debt."""
    items = _REPAY_ITEMS if goal.share is None else _REPAY_ITEMS / (1.0 - goal.share)
    owed = price.delay_debt / (items + sum(price.delays))
    wished = (goal.delay_seconds or 0.0) * (1.0 - min(max(owed, -_MOST_DELAY), _MOST_DELAY))
    wished /= _find_multiple(price, goal.share)
    return _solve(lambda seconds: predict_delay(fleet, seconds) >= wished, near=price.seconds)


def _find_multiple(price: Price, share: float | None) -> float:
    """The mean of the multiples seen, or the one within which that share of the items was found."""
    if share is None:
        usual = _DOUBT * sum(_USUAL_DELAYS) / len(_USUAL_DELAYS)
        return (price.delay_sum + usual) / (sum(price.delays) + _DOUBT)
    counts = list(price.delays) or [0.0] * _BINS
    for usual in _USUAL_DELAYS:
        counts[_find_bin(usual)] += _DOUBT / len(_USUAL_DELAYS)
    wanted = share * sum(counts)
    for index, count in enumerate(counts):
        if count >= wanted:
            low = _LEAST * _RATIO**index if index else 0.0
            return low + (_LEAST * _RATIO ** (index + 1) - low) * wanted / count
        wanted -= count
    return _LEAST * _RATIO**_BINS


def _find_bin(multiple: float) -> int:
    return min(int(log(max(multiple, _LEAST) / _LEAST) / log(_RATIO)), _BINS - 1)


def _solve(is_enough: Callable[[float], bool], near: float | None = None) -> float:
    """The lowest price that is high enough, within one step of `near`."""
    low, high = log(MIN_PRICE), log(MAX_PRICE)
    if near is not None:
        low, high = max(low, log(near) - _MOST_STEP), min(high, log(near) + _MOST_STEP)
    for _ in range(24 if near is None else 14):
        middle = (low + high) / 2.0
        if is_enough(exp(middle)):
            high = middle
        else:
            low = middle
    return exp((low + high) / 2.0)
