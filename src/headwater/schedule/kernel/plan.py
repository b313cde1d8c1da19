"""The next visit: the first of the visits whose expected delay and price together are least."""

import math

from ..layout import (
    BATCH_ITEMS,
    BATCHES,
    BIN_SECONDS,
    BURST,
    GAP_MEAN,
    LAST_AT,
    LAST_EVENT_AT,
    LEVELS,
    RULE,
    SHAPES,
    WINDOW,
    Vector,
)
from . import forecast, ladder, profile, rhythm, summer
from .workspace import (
    MARGIN,
    MIX_BY_MINUTE,
    OUT_AFTER,
    OUT_BOUND,
    OUT_FLAT,
    OUT_LONG_RATE,
    OUT_PROFILE,
    OUT_RATE,
    OUT_REGULAR,
    OUT_SILENCE,
    REACH,
    Workspace,
)

_DAY = 86400.0
_NEVER = 1.0e300
MIN_WAIT_SECONDS = 60.0
FAR_SECONDS = 4 * _DAY  # beyond this the hour is not worth choosing
PUNCTUAL_SHARE = 0.8  # trust in the minutes from which a source is punctual
MAX_RUSHES = 12  # that are compared near a visit
WINDOW_SHARE = 0.7  # a visit is due before this share of the window is expected to be new
JITTER = 0.05
DORMANT_SHARE = 0.1  # of the time since the last item that a dormant source may be left alone


def plan_visit(state: Vector, work: Workspace, now: float, price: float, shortest: float) -> None:
    """Write to `out` when to visit next. `sums` must be those of the state.

    A visit costs `price` seconds of delay, and two visits are at least `shortest` seconds apart.
    """
    rates, weights, out = work.rates, work.weights, work.out
    ladder.find_rates(state, rates)
    profile.weigh_shapes(state, weights)
    size = state[BATCH_ITEMS] / state[BATCHES]
    out[OUT_RATE] = rates[LEVELS - 1] * size
    out[OUT_LONG_RATE] = rates[0] * size
    out[OUT_PROFILE] = 1.0
    out[OUT_BOUND] = 0.0
    out[OUT_FLAT] = weights[0] * (1.0 - weights[SHAPES + 1])
    regular = rhythm.weigh(state, now, rates[1])
    out[OUT_REGULAR] = regular
    out[OUT_SILENCE] = max(0.0, now - state[LAST_EVENT_AT]) if state[LAST_EVENT_AT] > 0.0 else 0.0
    typical = max(math.sqrt(2.0 * price / (rates[2] * size)), shortest)
    if typical > FAR_SECONDS:
        out[OUT_AFTER] = typical
        keep_in_window(state, out, rates[1] * size)
        return
    forecast.mix_shapes(state, work, profile.find_event_weight(state, now))
    cells = forecast.fill_cells(state, work, now, price, typical, regular)
    waiting = rates[1] * size * max(0.0, now - state[LAST_AT])
    best = choose_cell(work, cells, price, typical, shortest, waiting)
    chosen = work.times[best]
    width = chosen - work.times[best - 1]
    out[OUT_PROFILE] = (work.counts[best] - work.counts[best - 1]) / (width * rates[2] * size)
    is_wide = typical >= forecast.CLOSE_SECONDS  # too wide to show the minutes
    if is_wide and regular < 0.5 and work.mix[MIX_BY_MINUTE] > forecast.NEGLIGIBLE:
        chosen = wait_for_rush(state, work, now, typical, best)
    elif regular >= 0.5:
        chosen = wait_for_event(state, now, price + shortest, chosen)
    if state[WINDOW] > 0.0 and work.counts[cells] > WINDOW_SHARE * state[WINDOW]:
        full = 1
        while work.counts[full] <= WINDOW_SHARE * state[WINDOW]:
            full += 1
        if work.times[full] < chosen:
            chosen = work.times[full]
            out[OUT_BOUND] = 1.0
    out[OUT_AFTER] = chosen
    keep_in_window(state, out, 0.0)


def plan_from_scratch(state: Vector, work: Workspace, now: float, price: float, shortest: float) -> None:
    """The same, with the sums made here."""
    profile.sum_day(state, work.sums, MARGIN, REACH)
    plan_visit(state, work, now, price, shortest)


def choose_cell(
    work: Workspace, cells: int, price: float, typical: float, shortest: float, waiting: float
) -> int:
    """The cell at whose end to visit first. `waiting`: items that are there already.

    Least cost from each cell's end, backwards. Cost(i, j) = t_j (N_j − N_i) − (M_j − M_i) + price + F_j is a line in
    N_i for each j, so the best j comes off the lower hull in constant time. A line joins the hull once `shortest` has
    passed.
    """
    times, counts, moments, costs, hull = work.times, work.counts, work.moments, work.costs, work.hull
    after = times[cells]
    # Beyond the horizon a second costs what it costs at a constant rate and the best interval.
    beyond = math.sqrt(2.0 * price * max(counts[cells] - waiting, 0.0) / after)
    head = 0
    tail = 0
    best = cells
    costs[cells] = after * counts[cells] - moments[cells] + price  # the line's value at N_i = 0
    hull[0] = cells
    joins = cells - 1
    index = cells - 1
    while index >= 0:
        here = counts[index]
        time = times[index]
        while joins > index and times[joins] >= time + shortest:
            line = costs[joins]
            while head < tail:
                one = hull[tail - 1]
                two = hull[tail]
                rise = (costs[two] - line) * (times[one] - times[two])
                if rise < (costs[one] - costs[two]) * (times[two] - times[joins]):
                    break
                tail -= 1
            tail += 1
            hull[tail] = joins
            joins -= 1
        best = hull[head]
        cost = costs[best] - times[best] * here
        while head < tail:
            rival = hull[head + 1]
            value = costs[rival] - times[rival] * here
            if value > cost:
                break
            head += 1
            best = rival
            cost = value
        cost += moments[index]
        rest = after - time
        if rest < typical and beyond * rest < cost:
            cost = beyond * rest
        costs[index] = time * here - moments[index] + price + cost
        index -= 1
    return best


def wait_for_rush(state: Vector, work: Workspace, now: float, typical: float, best: int) -> float:
    """Seconds until the visit, for cells that are too wide to show the minutes: at the end of a rush that is near."""
    times, rates, hour = work.times, work.rates, work.hour
    chosen: float = times[best]
    reach = typical / 6.0
    by_minute = work.mix[MIX_BY_MINUTE]
    if by_minute < PUNCTUAL_SHARE:
        left = forecast.find_rush_end(hour, now + chosen - typical / 16.0)
        return chosen + left - typical / 16.0 if left < reach else chosen
    # A punctual source: the end of the rush that is worth most.
    size = state[BATCH_ITEMS] / state[BATCHES]
    rate = rates[2] * size
    index = best - 1
    while index > 0 and times[index] > chosen - reach:
        index -= 1
    shift = summer.find_shift(work, int(state[RULE]), now + chosen)
    start = now + times[index]
    until = now + chosen + reach
    planned = now + chosen
    count = work.counts[index]
    moment = 0.0
    least = _NEVER
    sofar = forecast.sum_hour(hour, start)
    for _ in range(MAX_RUSHES):
        left = max(forecast.find_rush_end(hour, start), 1.0)
        if start < planned < start + left:
            left = planned - start  # the end of the chosen cell
        if start + left > until:
            break
        start += left
        first = int(((start + shift - 30.0) % _DAY) // BIN_SECONDS)
        reached = forecast.sum_hour(hour, start)
        moment += count * left
        count += rate * 60.0 * (reached - sofar) * forecast.mean_of_hour_shapes(work, first, first + 1)
        count += rate * left * (1.0 - by_minute)
        sofar = reached
        # What waits until here, less what need not wait for the visit after.
        cost = moment - count * typical
        if cost < least:
            least = cost
            chosen = start - now
    return chosen


def wait_for_event(state: Vector, now: float, miss: float, chosen: float) -> float:
    """Seconds until the visit, for a regular source whose next event is near the chosen visit: right after that event.

    The cells charge an event that is missed with the wait for the visit after, as if it went unnoticed. In fact the
    next plan comes back soon: `miss` is what that costs. Waiting pays as long as the event is that likely to be missed.
    """
    spread = rhythm.find_spread(state)
    due: float = state[LAST_EVENT_AT] + state[GAP_MEAN] - now
    cost = miss / (2.13 * spread)
    if due < spread or abs(chosen - due) > 4.0 * spread or cost < 1.05:
        return chosen
    return due + spread * math.sqrt(2.0 * math.log(cost))


def keep_in_window(state: Vector, out: Vector, rate: float) -> None:
    """Come back before a burst, or a rate, has filled the source's window."""
    fastest = max(state[BURST], rate)
    if state[WINDOW] > 0.0 and fastest > 0.0:
        longest = WINDOW_SHARE * state[WINDOW] / fastest
        if longest < out[OUT_AFTER]:
            out[OUT_AFTER] = max(longest, MIN_WAIT_SECONDS)
            out[OUT_BOUND] = 1.0


def spread_wait(wait: float, flat: float, chance: float) -> float:
    """A wait with jitter, as far as the profile is flat: sources added together drift apart. `chance`: from −1 to 1."""
    return max(wait, MIN_WAIT_SECONDS) * (1.0 + JITTER * flat * chance)


def find_longest(longest: float, dormant: float, silence: float) -> float:
    """The longest wait: for a source that has been silent for long, up to `dormant`."""
    return max(longest, min(dormant, DORMANT_SHARE * silence))
