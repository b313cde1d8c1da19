"""The fleet's price of a visit, steered so that its visits add up to a budget.

Every source compares the delay of its items with one and the same price, in seconds of delay per request;
that is what makes the fleet's requests go where they save most. The price is steered, not computed: it goes
up while the fleet spends more visits than it may, and down while it spends fewer.

Pure. The state is four numbers, made to be stored in one row that many workers share: whoever holds the row
calls `steer` with the visits counted since `at`, and everyone reads `seconds`.
"""

from dataclasses import dataclass
from math import exp, log

from headwater.schedule.adaptive import DEFAULT_PRICE_SECONDS

_DAY = 86400.0
MIN_PRICE, MAX_PRICE = 0.01, 1e9
STEER_EVERY_SECONDS = 3600.0  # what `steer` is tuned for; calling more often or more rarely does no harm
_SMOOTHING_SECONDS = 1.0 * _DAY  # must outlast the night, or the price would swing with the hours
_REACTION_SECONDS = 3.0 * _DAY
_REPAY_SECONDS = 10.0 * _DAY
_DEBT_DAYS = 0.25
_FAR_OFF = 0.3  # a deviation (in logarithms) that comes of a wrong price, not of the day


@dataclass(frozen=True, slots=True)
class Price:
    """`seconds` is the price; `visits` and `expected` are fading sums of what was made and what was allowed;
    `debt` is by how many days' budget the fleet is ahead (positive) or behind.
    """

    seconds: float = DEFAULT_PRICE_SECONDS
    at: float = 0.0
    visits: float = 0.0
    expected: float = 0.0
    debt: float = 0.0


def begin_price(visits_per_day: float, now: float) -> Price:
    """A first price for a budget per source, for a usual mix of sources. Steering does the rest."""
    seconds = DEFAULT_PRICE_SECONDS * (6.0 / visits_per_day) ** 2 if visits_per_day > 0 else MAX_PRICE
    return Price(min(max(seconds, MIN_PRICE), MAX_PRICE), now)


def steer(price: Price, visits: int, sources: int, visits_per_day: float, now: float) -> Price:
    """The price after `visits` were made by `sources` sources since `price.at`.

    `visits_per_day` is the budget per source. Visits grow as the price falls with its square root, so a ratio
    of visits asks for its square in price; most of a deviation is put right within about three days, and what
    was spent too much or too little is evened out over the following ones.
    """
    elapsed = now - price.at
    if price.at <= 0.0 or elapsed <= 0.0 or sources <= 0 or visits_per_day <= 0.0:
        return Price(price.seconds, max(now, price.at), price.visits, price.expected, price.debt)
    allowed = visits_per_day * sources * elapsed / _DAY
    kept = exp(-elapsed / _SMOOTHING_SECONDS)
    made = price.visits * kept + visits
    expected = price.expected * kept + allowed
    kept_debt = exp(-elapsed / (4.0 * _REPAY_SECONDS))
    error = log(max(made, 0.5) / max(expected, 0.5))
    # While the price is still being looked for, nothing is owed for it.
    owed = (visits - allowed) / (visits_per_day * sources) if abs(error) < _FAR_OFF else 0.0
    debt = min(max(price.debt * kept_debt + owed, -_DEBT_DAYS), _DEBT_DAYS)
    # Little evidence moves the price little: the deviation of a count n is about √n.
    trust = expected / (expected + 20.0)
    reaction = min(1.0, elapsed / _REACTION_SECONDS)
    step = 2.0 * reaction * (trust * error + debt * _DAY / _REPAY_SECONDS)
    step = min(max(step, -0.5), 0.5)
    seconds = min(max(price.seconds * exp(step), MIN_PRICE), MAX_PRICE)
    return Price(seconds, now, made, expected, debt)


def steer_to_delay(price: Price, mean_delay_seconds: float, target_seconds: float, now: float) -> Price:
    """The price for a freshness target: delay grows with the price's square root."""
    elapsed = now - price.at
    if price.at <= 0.0 or elapsed <= 0.0 or mean_delay_seconds <= 0.0 or target_seconds <= 0.0:
        return Price(price.seconds, max(now, price.at), price.visits, price.expected, price.debt)
    reaction = min(1.0, elapsed / _REACTION_SECONDS)
    step = min(max(2.0 * reaction * log(target_seconds / mean_delay_seconds), -0.5), 0.5)
    seconds = min(max(price.seconds * exp(step), MIN_PRICE), MAX_PRICE)
    return Price(seconds, now, price.visits, price.expected, price.debt)
