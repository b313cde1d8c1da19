"""The profile: how much more or less than usual a source publishes at a time; its mean is 1.

Several shapes of the day compete with the flat one: broad, medium and sharp kernels over a histogram of ten-minute
bins, and the minute of the hour alone, with the broad and with the medium kernel. Each is trusted as far as it has
predicted the events so far. The day of the week is a separate factor, trusted in the same way. The histograms of
the day and of the week follow the source's own clock (see `summer`).
"""

import math

from ..layout import (
    BIN_SECONDS,
    DAY,
    DAY_BINS,
    GRAINS,
    HOUR,
    HOUR_BINS,
    LAST_AT,
    MINUTE_SCORE,
    RULE,
    RULE_SCORES,
    RULES,
    SCALARS,
    SEEN_SINCE,
    SHAPE_SCORES,
    SHAPES,
    SIZE,
    WEEK,
    WEEK_BINS,
    WEEK_SCORE,
    WEIGHT,
    WEIGHT_AT,
    Vector,
)
from . import summer
from .workspace import Workspace

_DAY = 86400.0
_WEEK = 604800.0
_MONDAY = 3 * _DAY  # the epoch was a Thursday
MEMORY = 95 * _DAY
DAYS_TO_LEARN = 2 * _DAY  # before that, the hours of the events are the hours the source was seen in
WEEKS_TO_LEARN = 14 * _DAY
SCORE_MEMORY = 0.985  # per event
BROAD, MEDIUM, SHARP = 14, 3, 1  # bins on either side of a kernel's centre …
BROAD_WIDTH, MEDIUM_WIDTH, SHARP_WIDTH = 29.0, 7.0, 3.0  # … and in all
BROAD_TRUST, MEDIUM_TRUST, SHARP_TRUST = 0.6, 1.0, 1.0  # expected events before a kernel counts half
HOUR_PRIOR = 2.5  # events spread evenly over the hour, so that few real ones make no peak
WEEKEND_TRUST, WEEKDAY_TRUST = (
    3.0,
    6.0,
)  # expected events before weekend or not, then the day itself, counts half
MAX_WEIGHT = 8.0 * GRAINS  # of a new event, before the histograms are scaled down
MAX_COUNT = 65000  # grains in a bin; 16 bits hold 65535
WIDEST_SPREAD = 0.8 * _DAY  # a gap longer than this says nothing about the hour
SPREAD_POINTS = 8
CHANGE_MEMORY = 45 * _DAY  # how long after a change of clocks events tell the rules apart
RULE_LEAD = 3.0  # log likelihood by which another rule must be ahead


def weigh_shapes(state: Vector, weights: Vector) -> None:
    """How far each is trusted: flat, broad, medium, sharp, minute, minute and broad, minute and medium; week last.

    The flat shape's score is always 0, so it is not stored.
    """
    seen = state[LAST_AT] - state[SEEN_SINCE]
    if seen < DAYS_TO_LEARN:
        weights[0] = 1.0
        for index in range(1, SHAPES + 2):
            weights[index] = 0.0
        return
    best = 0.0
    for index in range(SHAPES):
        best = max(best, state[SHAPE_SCORES + index])
    total = math.exp(-best)
    weights[0] = total
    for index in range(SHAPES):
        weight = math.exp(state[SHAPE_SCORES + index] - best)
        weights[index + 1] = weight
        total += weight
    for index in range(SHAPES + 1):
        weights[index] /= total
    weights[SHAPES + 1] = logistic(state[WEEK_SCORE]) if seen > WEEKS_TO_LEARN else 0.0


def logistic(score: float) -> float:
    return 1.0 / (1.0 + math.exp(-score)) if score > -500.0 else 0.0


def sum_day(state: Vector, sums: Vector, margin: int, reach: int) -> None:
    """Running sums of running sums of the day, so that the mean of a kernel over a cell takes four look-ups."""
    single = 0.0
    double = 0.0
    for index in range(reach):
        sums[index] = double
        double += single
        single += state[DAY + (index - margin) % DAY_BINS]
    sums[reach] = double


def count_day(state: Vector, centre: int, half: int) -> float:
    """Grains in a bin and its neighbours, across midnight too."""
    total = 0.0
    low = centre - half
    high = centre + half + 1
    if low < 0:
        for index in range(DAY + DAY_BINS + low, DAY + DAY_BINS):
            total += state[index]
        low = 0
    if high > DAY_BINS:
        for index in range(DAY, DAY + high - DAY_BINS):
            total += state[index]
        high = DAY_BINS
    for index in range(DAY + low, DAY + high):
        total += state[index]
    return total


def shrink(count: float, expected: float, trust: float, coarser: float) -> float:
    """A density of mean 1 from the grains under a kernel, pulled towards the coarser shape's density."""
    return (count + trust * coarser) / (expected + trust)


def find_bin(at: float) -> int:
    return int((at % _DAY) // BIN_SECONDS)


def find_hour_density(state: Vector, minute: int, prior: float, share: float) -> float:
    """The density of the hour at a minute: `share` of it is the minute's own, the rest that of its neighbours."""
    before = state[HOUR + (minute - 1) % HOUR_BINS]
    after = state[HOUR + (minute + 1) % HOUR_BINS]
    total = share * state[HOUR + minute] + 0.5 * (1.0 - share) * (before + after)
    density: float = (total * HOUR_BINS + prior) / (state[WEIGHT] + prior)
    return density


def find_minute_share(state: Vector) -> float:
    """How far exact minutes are trusted over smoothed ones: from a half to all."""
    return 0.5 + 0.5 * logistic(state[MINUTE_SCORE])


def find_week_density(state: Vector, local: float, scale: float) -> float:
    """The density of the week at a day: weekend or not first, then the day itself."""
    weekday = int(((local + _MONDAY) % _WEEK) // _DAY)
    mean = state[WEIGHT] / WEEK_BINS
    weekend = state[WEEK + 5] + state[WEEK + 6]
    if weekday < 5:
        part = shrink(state[WEIGHT] - weekend, mean * 5.0, WEEKEND_TRUST * scale, 1.0)
    else:
        part = shrink(weekend, mean * 2.0, WEEKEND_TRUST * scale, 1.0)
    return shrink(state[WEEK + weekday], mean, WEEKDAY_TRUST * scale, part)


def find_event_weight(state: Vector, at: float) -> float:
    """Grains of an event at a time: old events do not fade, new ones weigh more."""
    age = (at - state[WEIGHT_AT]) / MEMORY
    return GRAINS * math.exp(min(max(age, -30.0), 300.0))


def find_local(state: Vector, work: Workspace, at: float) -> float:
    """A time on the clock that the histograms follow."""
    return at + summer.find_shift(work, int(state[RULE]), at)


def find_density(state: Vector, weights: Vector, local: float, scale: float) -> float:
    """The profile at a local time, apart from the minutes."""
    centre = find_bin(local)
    mean = state[WEIGHT] / DAY_BINS
    broad = shrink(count_day(state, centre, BROAD), mean * BROAD_WIDTH, BROAD_TRUST * scale, 1.0)
    medium = shrink(count_day(state, centre, MEDIUM), mean * MEDIUM_WIDTH, MEDIUM_TRUST * scale, broad)
    sharp = shrink(count_day(state, centre, SHARP), mean * SHARP_WIDTH, SHARP_TRUST * scale, medium)
    value = weights[0] + weights[4] + weights[3] * sharp
    value += (weights[1] + weights[5]) * broad + (weights[2] + weights[6]) * medium
    week = weights[SHAPES + 1]
    if week > 0.0:
        value *= 1.0 - week + week * find_week_density(state, local, scale)
    result: float = value
    return result


def learn(state: Vector, work: Workspace, at: float) -> float:
    """Score every shape by how well it predicted an event, and add the event. Returns the profile's value."""
    weight = scale_weight(state, at)
    choose_rule(state, work, at, weight)
    local = find_local(state, work, at)
    centre = find_bin(local)
    minute = int((at % 3600.0) // 60.0)
    mean = state[WEIGHT] / DAY_BINS
    broad = shrink(count_day(state, centre, BROAD), mean * BROAD_WIDTH, BROAD_TRUST * weight, 1.0)
    medium = shrink(count_day(state, centre, MEDIUM), mean * MEDIUM_WIDTH, MEDIUM_TRUST * weight, broad)
    sharp = shrink(count_day(state, centre, SHARP), mean * SHARP_WIDTH, SHARP_TRUST * weight, medium)
    prior = HOUR_PRIOR * weight
    hour = math.log(find_hour_density(state, minute, prior, find_minute_share(state)))
    exact = find_hour_density(state, minute, prior, 1.0)
    smooth = find_hour_density(state, minute, prior, 0.5)
    state[MINUTE_SCORE] = SCORE_MEMORY * state[MINUTE_SCORE] + math.log(exact / smooth)
    score_shapes(state, at, broad, medium, sharp, hour)
    weights = work.weights
    value = weights[0] + weights[1] * broad + weights[2] * medium + weights[3] * sharp
    value += math.exp(hour) * (weights[4] + weights[5] * broad + weights[6] * medium)
    if at - state[SEEN_SINCE] > WEEKS_TO_LEARN:
        week = find_week_density(state, local, weight)
        state[WEEK_SCORE] += math.log(week)
        value *= 1.0 - weights[SHAPES + 1] + weights[SHAPES + 1] * week
    # Whole grains, so that a packed state reads back exactly.
    add_grains(state, at, local, max(1, int(weight + 0.5)))
    result: float = value
    return result


def score_shapes(state: Vector, at: float, broad: float, medium: float, sharp: float, hour: float) -> None:
    """Fade the scores, and add how well each shape predicted an event; `hour` is a logarithm already."""
    for index in range(SHAPES + 1):  # the score of the week is next to them
        state[SHAPE_SCORES + index] *= SCORE_MEMORY
    if at - state[SEEN_SINCE] > DAYS_TO_LEARN:
        broad = math.log(broad)
        medium = math.log(medium)
        state[SHAPE_SCORES] += broad
        state[SHAPE_SCORES + 1] += medium
        state[SHAPE_SCORES + 2] += math.log(sharp)
        state[SHAPE_SCORES + 3] += hour
        state[SHAPE_SCORES + 4] += hour + broad
        state[SHAPE_SCORES + 5] += hour + medium


def scale_weight(state: Vector, at: float) -> float:
    """Grains of an event at a time, after scaling down histograms that would overflow."""
    weight = find_event_weight(state, at)
    if weight > MAX_WEIGHT:
        rescale(state, GRAINS / weight)
        state[WEIGHT_AT] = at
        weight = GRAINS
    return weight


def add_grains(state: Vector, at: float, local: float, grains: int) -> None:
    """Add an event, or a part of one, to the histograms."""
    in_day = DAY + find_bin(local)
    in_hour = HOUR + int((at % 3600.0) // 60.0)
    in_week = WEEK + int(((local + _MONDAY) % _WEEK) // _DAY)
    state[in_day] += grains
    state[in_hour] += grains
    state[in_week] += grains
    state[WEIGHT] += grains
    if max(state[in_day], state[in_hour], state[in_week]) > MAX_COUNT:
        # Halving every weight is the same as having learnt at half the scale.
        rescale(state, 0.5)
        state[WEIGHT_AT] += MEMORY * math.log(2.0)


def rescale(state: Vector, factor: float) -> None:
    for index in range(SCALARS, SIZE):
        state[index] = int(state[index] * factor + 0.5)
    total = 0.0
    for index in range(WEEK, WEEK + WEEK_BINS):
        total += state[index]
    state[WEIGHT] = total


def spread(state: Vector, work: Workspace, since: float, until: float) -> float:
    """Learn an event that happened at an unknown time between two visits. Returns its expected time.

    Its grains are shared out over the gap in proportion to the profile, and every shape is scored on the gap as a
    whole.
    """
    gap = until - since
    if gap > WIDEST_SPREAD or gap <= 0.0:
        return 0.5 * (since + until)
    weights = work.weights
    weight = scale_weight(state, until)
    points = int(min(SPREAD_POINTS - 1.0, gap / 1200.0)) + 1
    width = gap / points
    mean = state[WEIGHT] / DAY_BINS
    broads = mediums = sharps = total = shares = moment = 0.0
    for _ in range(2):
        # First the sum, then each point's share of it.
        known = total
        kept = 0.0
        for point in range(points):
            at = since + (point + 0.5) * width
            local = find_local(state, work, at)
            centre = find_bin(local)
            broad = shrink(count_day(state, centre, BROAD), mean * BROAD_WIDTH, BROAD_TRUST * weight, 1.0)
            medium = shrink(
                count_day(state, centre, MEDIUM), mean * MEDIUM_WIDTH, MEDIUM_TRUST * weight, broad
            )
            belief = weights[0] + weights[4] + (weights[1] + weights[5]) * broad
            belief += (weights[2] + weights[3] + weights[6]) * medium
            if known == 0.0:
                broads += broad
                mediums += medium
                sharps += shrink(
                    count_day(state, centre, SHARP), mean * SHARP_WIDTH, SHARP_TRUST * weight, medium
                )
                total += belief
            else:
                shares += belief
                moment += (at - since) * belief
                kept += weight * belief / known
                grains = int(kept + 0.5)
                if grains > 0:
                    add_grains(state, at, local, grains)
                    kept -= grains
    score_shapes(state, until, broads / points, mediums / points, sharps / points, 0.0)
    return since + moment / shares


def forget(state: Vector) -> None:
    for index in range(SCALARS, SIZE):
        state[index] = 0
    for index in range(SHAPES + 1):
        state[SHAPE_SCORES + index] = 0.0
    state[MINUTE_SCORE] = 0.0
    state[WEIGHT] = 0.0


def shift(state: Vector, seconds: float) -> None:
    """Move the day and the hour: they were learnt from times that far off."""
    turn(state, DAY, DAY_BINS, int(math.floor(seconds / BIN_SECONDS + 0.5)))
    turn(state, HOUR, HOUR_BINS, int(math.floor(seconds / 60.0 + 0.5)))


def turn(state: Vector, first: int, count: int, steps: int) -> None:
    """Turn a circular histogram by so many bins."""
    steps = steps % count
    done = 0
    start = 0
    while done < count and steps > 0:
        index = start
        carried = state[first + index]
        while True:
            index = (index + steps) % count
            other = state[first + index]
            state[first + index] = carried
            carried = other
            done += 1
            if index == start:
                break
        start += 1


def choose_rule(state: Vector, work: Workspace, at: float, scale: float) -> None:
    """Score the summer-time rules on an event, for some weeks after a change of clocks, and follow the best."""
    current = int(state[RULE])
    changed = 0.0
    for rule in range(1, RULES):
        changed += abs(find_change(state, work, rule, at))
    if changed == 0.0:
        return
    before = find_local(state, work, at) - find_change(state, work, current, at)
    best = current
    for rule in range(RULES):
        local = before + find_change(state, work, rule, at)
        density = find_density(state, work.weights, local, scale)
        state[RULE_SCORES + rule] = SCORE_MEMORY * state[RULE_SCORES + rule] + math.log(density)
        if state[RULE_SCORES + rule] > state[RULE_SCORES + best]:
            best = rule
    if state[RULE_SCORES + best] > state[RULE_SCORES + current] + RULE_LEAD:
        moved = find_old_shift(work, best, at) - find_old_shift(work, current, at)
        turn(state, DAY, DAY_BINS, int(math.floor(moved / BIN_SECONDS + 0.5)))
        state[RULE] = best


def find_change(state: Vector, work: Workspace, rule: int, at: float) -> float:
    """Seconds by which the clocks of a rule were put forward since most of the profile was learnt."""
    now = summer.find_shift(work, rule, at)
    since = work.clocks[3 * rule]
    if rule == 0 or at - since > CHANGE_MEMORY or since < state[SEEN_SINCE]:
        return 0.0
    return 3600.0 if now > 0.0 else -3600.0


def find_old_shift(work: Workspace, rule: int, at: float) -> float:
    """Seconds by which the clocks of a rule were ahead before their last change, if that was not long ago."""
    now = summer.find_shift(work, rule, at)
    if rule == 0 or at - work.clocks[3 * rule] > CHANGE_MEMORY:
        return now
    return 3600.0 - now
