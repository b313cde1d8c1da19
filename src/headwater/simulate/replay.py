"""Replaying one source: visit, see what is new, plan, visit again.

Two loops, one for the adaptive policy and one for all the others, in the plain subset of Python that the
simulator compiles (see `schedule.compiled`). `cursor` carries a replay along, so that it can be stopped and resumed.
"""

from math import exp, floor, sqrt

from headwater.schedule.kernel import (
    MIN_CELL_SECONDS,
    OUT_AFTER,
    Vector,
    begin,
    digest_visit,
    plan_from_state,
)

POSITION = 0  # items seen so far
NEXT_AT = 1  # the visit that is planned
VISITS = 2
USELESS = 3  # visits that found nothing
MISSED = 4  # items that had left the window before they were seen
FIRST = 5  # items that were there at the first visit
RATE = 6  # of the rules: decayed count …
EXPOSURE = 7  # … and time
CHECKS = 8
CADENCE = 9
MEAN_HOUR = 10
STD_HOUR = 11
CURSOR_SIZE = 12


def see_items(cursor: Vector, times: Vector, at: float, window: int, delays: Vector) -> int:
    """Note the delay of all that appeared up to `at`, and count what had left the window already.

    A missed item is given the delay up to the visit that missed it, so that missing never looks like speed.
    Returns the position of the first new item still to be seen.
    """
    old = int(cursor[POSITION])
    first = int(cursor[FIRST])
    new = old
    count = len(times)
    while new < count and times[new] <= at:
        delays[new - first] = at - times[new]
        new += 1
    seen = old
    if new - window > old:
        seen = new - window
        cursor[MISSED] += seen - old
    cursor[VISITS] += 1
    if new == old:
        cursor[USELESS] += 1
    cursor[POSITION] = new
    return seen


def begin_replay(cursor: Vector, times: Vector, start: float) -> None:
    """Stand right before the first visit at `start`."""
    for index in range(CURSOR_SIZE):
        cursor[index] = 0.0
    position = 0
    while position < len(times) and times[position] <= start:
        position += 1
    cursor[POSITION] = position
    cursor[FIRST] = position
    cursor[NEXT_AT] = start


def wait_adaptive(
    vector: Vector,
    now: float,
    price: float,
    shortest: float,
    longest: float,
    weights: Vector,
    rates: Vector,
    sums: Vector,
    hour: Vector,
    cells: Vector,
    counts: Vector,
    moments: Vector,
    costs: Vector,
    hull: Vector,
    out: Vector,
) -> float:
    plan_from_state(vector, now, price, weights, rates, sums, hour, cells, counts, moments, costs, hull, out)
    wait: float = min(max(out[OUT_AFTER], MIN_CELL_SECONDS, shortest), longest)
    return wait


def advance_adaptive(
    cursor: Vector,
    vector: Vector,
    times: Vector,
    until: float,
    price: float,
    window: int,
    shortest: float,
    longest: float,
    delays: Vector,
    weights: Vector,
    rates: Vector,
    sums: Vector,
    hour: Vector,
    cells: Vector,
    counts: Vector,
    moments: Vector,
    costs: Vector,
    hull: Vector,
    out: Vector,
) -> None:
    """Make every visit of the adaptive policy that is due up to `until`. The first one is not counted."""
    while cursor[NEXT_AT] <= until:
        now = cursor[NEXT_AT]
        if vector[0] == 0.0:
            position = int(cursor[POSITION])
            begin(vector, now)
            shown = min(position, window)
            digest_visit(vector, now, times[:position], shown, True, False, weights)
        else:
            old = int(cursor[POSITION])
            seen = see_items(cursor, times, now, window, delays)
            position = int(cursor[POSITION])
            shown = min(position, window) if position > old else 0
            digest_visit(vector, now, times[seen:position], shown, False, seen > old, weights)
        cursor[NEXT_AT] = now + wait_adaptive(
            vector,
            now,
            price,
            shortest,
            longest,
            weights,
            rates,
            sums,
            hour,
            cells,
            counts,
            moments,
            costs,
            hull,
            out,
        )


RULE_FIXED = 0
RULE_SQUARE_ROOT = 1
RULE_MINIFLUX = 2
RULE_NEWSBLUR = 3
RULE_COMMAFEED = 4
RULE_CADENCE = 5
_DAY = 86400.0
_RATE_MEMORY = 30 * _DAY


def wait_by_rule(cursor: Vector, times: Vector, rule: int, scale: float, now: float) -> float:
    """How long the field's own rules wait. `scale` stretches them to a budget; 1 is the rule as it is."""
    position = int(cursor[POSITION])
    if rule == RULE_SQUARE_ROOT:
        rate = (cursor[RATE] + 0.2) / (cursor[EXPOSURE] + 0.2 * _DAY / 0.05)
        return scale * sqrt(3600.0 / rate)
    if rule == RULE_MINIFLUX:
        recent = count_since(times, position, now - 7 * _DAY)
        return min(max(scale * 7 * _DAY / recent, 300.0), _DAY) if recent > 0 else _DAY
    if rule == RULE_NEWSBLUR:
        recent = count_since(times, position, now - 30 * _DAY)
        return scale * min(3 * 3600.0 / max(0.25, sqrt(sqrt(1.0 * recent))), _DAY)
    if rule == RULE_COMMAFEED:
        return scale * wait_commafeed(times, position, now)
    if rule == RULE_CADENCE:
        return scale * wait_cadence(cursor, times, now)
    return scale * 3600.0


def count_since(times: Vector, position: int, since: float) -> int:
    count = 0
    while position - count > 0 and times[position - count - 1] >= since:
        count += 1
    return count


def wait_commafeed(times: Vector, position: int, now: float) -> float:
    """Half the mean gap of the entries shown, and ever longer for sources that have fallen silent."""
    longest = 4 * 3600.0
    if position == 0 or now - times[position - 1] > 30 * _DAY:
        return longest
    silence = now - times[position - 1]
    if silence > 14 * _DAY:
        return longest / 2
    if silence > 7 * _DAY:
        return longest / 4
    shown = min(position, 20)
    gap = (times[position - 1] - times[position - shown]) / max(1, shown - 1)
    return min(max(gap / 2, 300.0), longest / 6) if shown > 1 else longest / 8


def wait_cadence(cursor: Vector, times: Vector, now: float) -> float:
    """What `calculate_next_check_time` answers, in the middle of its jitter."""
    interval = cadence_seconds(int(cursor[CADENCE]))
    rank = int(cursor[CADENCE])
    latest = min(2 * interval, _DAY)
    if 2 <= rank <= 4 and 0.0 <= cursor[STD_HOUR] <= 3.0:
        midnight = now - now % _DAY
        foreseen = midnight + cursor[MEAN_HOUR] * 3600.0 + cursor[STD_HOUR] * 1800.0
        newest = floor(times[int(cursor[POSITION]) - 1]) if cursor[POSITION] > 0 else 0
        if foreseen <= now or newest >= midnight:
            foreseen += _DAY
        if now < foreseen <= now + latest:
            due: float = floor(foreseen) - now
            return due
    regular: float = floor(now + interval) - now
    return regular


def cadence_seconds(rank: int) -> float:
    seconds = 900.0
    for _ in range(rank):
        seconds *= 2.0
    return 86400.0 if rank == 6 else seconds


def analyse_cadence(cursor: Vector, times: Vector) -> None:
    """Rank and usual hour from the recent thirty items, as `cadence` has them."""
    position = int(cursor[POSITION])
    count = min(position, 30)
    cursor[CADENCE] = 2.0
    cursor[STD_HOUR] = -1.0
    if count < 3:
        return
    mean_hours = (times[position - 1] - times[position - count]) / 3600.0 / (count - 1)
    rank = 0
    for limit in (6.0, 18.0, 36.0, 72.0, 168.0, 720.0):
        if mean_hours >= limit:
            rank += 1
    cursor[CADENCE] = rank
    total = 0.0
    for index in range(position - count, position):
        total += times[index] % _DAY / 3600.0
    mean = total / count
    squares = 0.0
    for index in range(position - count, position):
        squares += (times[index] % _DAY / 3600.0 - mean) ** 2
    cursor[MEAN_HOUR] = mean
    cursor[STD_HOUR] = min(max(sqrt(squares / count), 1.0), 6.0)


def advance_rule(
    cursor: Vector,
    times: Vector,
    until: float,
    rule: int,
    scale: float,
    window: int,
    shortest: float,
    longest: float,
    delays: Vector,
) -> None:
    """Make every visit of one of the rules that is due up to `until`. The first one is not counted."""
    while cursor[NEXT_AT] <= until:
        now = cursor[NEXT_AT]
        old = int(cursor[POSITION])
        if cursor[CHECKS] == 0:
            if old > 0:
                cursor[EXPOSURE] = _RATE_MEMORY * (1 - exp((times[0] - now) / _RATE_MEMORY))
            for index in range(old):
                cursor[RATE] += exp((times[index] - now) / _RATE_MEMORY)
            new = old
        else:
            see_items(cursor, times, now, window, delays)
            new = int(cursor[POSITION]) - old
            for index in range(old, old + new):
                cursor[RATE] += exp((times[index] - now) / _RATE_MEMORY)
        cursor[CHECKS] += 1
        if rule == RULE_CADENCE and (cursor[CHECKS] % 10 == 0 or (new > 0 and cursor[CHECKS] <= 3)):
            analyse_cadence(cursor, times)
        elif rule == RULE_CADENCE and cursor[CHECKS] == 1:
            cursor[CADENCE] = 2.0
            cursor[STD_HOUR] = -1.0
        wait = min(max(wait_by_rule(cursor, times, rule, scale, now), shortest), longest)
        kept = exp(-wait / _RATE_MEMORY)
        cursor[RATE] *= kept
        cursor[EXPOSURE] = cursor[EXPOSURE] * kept + _RATE_MEMORY * (1 - kept)
        cursor[NEXT_AT] = now + wait


def visit_clairvoyantly(
    times: Vector, first: int, price: float, delays: Vector, costs: Vector, ends: Vector
) -> int:
    """The visits of one who knows every item beforehand and pays `price` for each: nobody can do better.

    Visits only ever pay at the moment of an item. Least cost of having seen the first n items, forwards; an
    item that would wait longer than a visit costs gets one of its own.
    """
    count = len(times) - first
    costs[0] = 0.0
    for last in range(1, count + 1):
        best = 1e300
        waiting = 0.0
        start = last
        while start >= 1:
            wait = times[first + last - 1] - times[first + start - 1]
            if wait > price:
                break
            waiting += wait
            cost = costs[start - 1] + waiting + price
            if cost < best:
                best = cost
                ends[last] = start
            start -= 1
        costs[last] = best
    visits = 0
    last = count
    while last > 0:
        start = int(ends[last])
        for index in range(start, last + 1):
            delays[index - 1] = times[first + last - 1] - times[first + index - 1]
        visits += 1
        last = start - 1
    return visits
