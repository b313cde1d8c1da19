"""The mathematics of the adaptive policy, on one flat vector (see `layout`).

λ(t) = items per batch × rate(t) × profile(t): a ladder of decayed rates from slow to fast, times a profile of
mean 1 mixed from competing shapes of the day and the week, each trusted as far as it has predicted so far.
The plan minimises expected delay plus a price per visit over the coming few visits, and takes the first.

Written in the plain subset of Python that compiles as it stands: numbers, indexing and loops, no objects.
Few visits run it as it is; many, and the simulator, compile these very functions. Nothing here knows a clock.
"""

from math import exp, log, sqrt
from typing import Any

from headwater.schedule.layout import (
    BATCH_ITEMS,
    BATCHES,
    BIN_SECONDS,
    COUNTS,
    DAY,
    DAY_BINS,
    EXPOSURES,
    GRAINS,
    HOUR,
    HOUR_BINS,
    LAST_AT,
    LAST_EVENT_AT,
    LEVELS,
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
    WINDOW,
)

# list[float] as it is, an array when compiled.
Vector = Any

_DAY_SECONDS = 86400.0
_WEEK_SECONDS = 604800.0
_MONDAY = 3 * _DAY_SECONDS  # the epoch was a Thursday

# Rate ladder: memories, and how many expected events it takes to leave the slower level behind.
MEMORIES = (45 * _DAY_SECONDS, 7 * _DAY_SECONDS, _DAY_SECONDS, _DAY_SECONDS / 5)
SHRINKAGE = (0.3, 3.0, 4.0, 5.5)
PRIOR_RATE = 0.05 / _DAY_SECONDS
FORECAST_STEPS = 8  # samples of the profile per gap between two visits

# Profile.
PROFILE_MEMORY = 95 * _DAY_SECONDS
DAYS_TO_LEARN = 2 * _DAY_SECONDS
WEEKS_TO_LEARN = 14 * _DAY_SECONDS
SCORE_MEMORY = 0.985  # per event
HALF_WIDTHS = (14, 3, 1)  # broad, medium and sharp kernels, in bins either side …
WIDTHS = (29.0, 7.0, 3.0)  # … and in all
TRUST = (0.6, 1.0, 1.0)  # expected events before a kernel is believed as much as the broader one
HOUR_PRIOR = 2.5  # pseudo-events spread evenly, so that few events make no peaks
WEEK_TRUST = (3.0, 6.0)  # expected events before the week's part, then the day, are believed by half
MAX_WEIGHT = 8.0 * GRAINS  # of a new event, before the histograms are scaled down
MAX_COUNT = 65000  # grains in one bin; 16 bits hold 65535

BATCH_SECONDS = 300.0
BATCH_MEMORY = 50.0

# Planner.
MAX_CELLS = 48
CELLS_PER_VISIT = 6.0
HORIZON_VISITS = 7.0  # how far ahead, at the usual distance between two visits
MIN_CELL_SECONDS = 60.0
MAX_CELL_SECONDS = 14400.0
FAR_SECONDS = 4 * _DAY_SECONDS  # beyond this the hour is not worth choosing
CLOSE_SECONDS = 5400.0  # visits closer than this are planned to the minute
NEGLIGIBLE = 0.02  # weight below which a shape is left out of the plan's arithmetic
_NEVER = 1.0e300
WINDOW_SHARE = 0.7  # a visit is due before this share of the source's window is expected to be new


def begin(vector: Vector, at: float) -> None:
    """An empty state that has seen nothing before `at`."""
    for index in range(SCALARS):
        vector[index] = 0.0
    for index in range(SCALARS, SIZE):
        vector[index] = 0
    vector[LAST_AT] = at
    vector[SEEN_SINCE] = at
    vector[WEIGHT_AT] = at
    vector[BATCHES] = 1.0
    vector[BATCH_ITEMS] = 1.0


def shape_weights(vector: Vector, weights: Vector) -> None:
    """How far each shape is trusted: flat, broad, medium, sharp, then the minute with the first three.

    The last weight is the week's. Flat shapes always score 0, so they are not stored. A source that was seen
    for less than two days, or two weeks, has no shape of the day, or the week, that could be told from the
    hours it was seen in.
    """
    seen = vector[LAST_AT] - vector[SEEN_SINCE]
    if seen < DAYS_TO_LEARN:
        weights[0] = 1.0
        for index in range(SHAPES + 1):
            weights[index + 1] = 0.0
        return
    best = 0.0
    for index in range(SHAPES):
        best = max(best, vector[SHAPE_SCORES + index])
    weights[0] = exp(-best)
    total = weights[0]
    for index in range(SHAPES):
        weight = exp(vector[SHAPE_SCORES + index] - best)
        weights[index + 1] = weight
        total += weight
    for index in range(SHAPES + 1):
        weights[index] /= total
    score = vector[WEEK_SCORE]
    weights[SHAPES + 1] = 1.0 / (1.0 + exp(-score)) if seen > WEEKS_TO_LEARN and score > -500.0 else 0.0


def day_count(vector: Vector, bin_: int, half_width: int) -> float:
    """Weight of a bin and its neighbours, round the clock."""
    total = 0.0
    low, high = bin_ - half_width, bin_ + half_width + 1
    if low >= 0 and high <= DAY_BINS:
        for weight in vector[DAY + low : DAY + high]:
            total += weight
    else:
        for bin_ in range(low, high):
            total += vector[DAY + bin_ % DAY_BINS]
    return total


def shrink(count: float, mean: float, width: float, trust: float, coarser: float) -> float:
    """A density of mean 1 from the weight under a kernel, pulled towards the coarser shape's.

    `trust` is how many events must be expected under the kernel before it is believed as much as the coarser.
    """
    return (count + trust * coarser) / (mean * width + trust)


def hour_density(vector: Vector, minute: int, prior: float) -> float:
    """Mean-1 density of the hour at one minute, lightly smoothed."""
    before = vector[HOUR + (minute - 1) % HOUR_BINS]
    after = vector[HOUR + (minute + 1) % HOUR_BINS]
    total = 0.5 * vector[HOUR + minute] + 0.25 * (before + after)
    density: float = (total * HOUR_BINS + prior) / (vector[WEIGHT] + prior)
    return density


def week_density(vector: Vector, at: float, scale: float) -> float:
    """Mean-1 density of the week at one day: weekdays and the weekend first, then the day by itself."""
    weekday = int(((at + _MONDAY) % _WEEK_SECONDS) // _DAY_SECONDS)
    total = vector[WEIGHT]
    weekend = vector[WEEK + 5] + vector[WEEK + 6]
    if weekday < 5:
        part = shrink(total - weekend, total / WEEK_BINS, 5.0, WEEK_TRUST[0] * scale, 1.0)
    else:
        part = shrink(weekend, total / WEEK_BINS, 2.0, WEEK_TRUST[0] * scale, 1.0)
    return shrink(vector[WEEK + weekday], total / WEEK_BINS, 1.0, WEEK_TRUST[1] * scale, part)


def event_weight(vector: Vector, at: float) -> float:
    """What an event at `at` weighs, in grains: instead of fading the old, the new weigh more."""
    return GRAINS * exp((at - vector[WEIGHT_AT]) / PROFILE_MEMORY)


def coarse_profile(vector: Vector, at: float, weights: Vector) -> float:
    """The profile at a time, minutes averaged out: what the exposures are weighed with."""
    scale = event_weight(vector, at)
    mean = vector[WEIGHT] / DAY_BINS
    bin_ = int((at % _DAY_SECONDS) // BIN_SECONDS)
    broad = shrink(day_count(vector, bin_, HALF_WIDTHS[0]), mean, WIDTHS[0], TRUST[0] * scale, 1.0)
    medium = shrink(day_count(vector, bin_, HALF_WIDTHS[1]), mean, WIDTHS[1], TRUST[1] * scale, broad)
    sharp = shrink(day_count(vector, bin_, HALF_WIDTHS[2]), mean, WIDTHS[2], TRUST[2] * scale, medium)
    value = weights[0] + weights[4] + weights[3] * sharp
    value += (weights[1] + weights[5]) * broad + (weights[2] + weights[6]) * medium
    week = weights[SHAPES + 1]
    value *= 1.0 - week + week * week_density(vector, at, scale)
    result: float = value
    return result


def expose(vector: Vector, since: float, until: float, weights: Vector) -> None:
    """Let time pass on the ladder: counts fade, exposures fade and grow by the profile's share."""
    gap = until - since
    steps = int(min(FORECAST_STEPS - 1.0, gap / 3600.0)) + 1
    width = gap / steps
    for level in range(LEVELS):
        vector[COUNTS + level] *= exp(-gap / MEMORIES[level])
    fade = (
        exp(-width / MEMORIES[0]),
        exp(-width / MEMORIES[1]),
        exp(-width / MEMORIES[2]),
        exp(-width / MEMORIES[3]),
    )
    flat = weights[0] > 1.0 - NEGLIGIBLE and weights[SHAPES + 1] < NEGLIGIBLE
    for step in range(steps):
        profile = 1.0 if flat else coarse_profile(vector, since + (step + 0.5) * width, weights)
        for level in range(LEVELS):
            kept = fade[level]
            old = vector[EXPOSURES + level]
            vector[EXPOSURES + level] = old * kept + profile * MEMORIES[level] * (1.0 - kept)


def learn(vector: Vector, at: float) -> None:
    """Score every shape on how well it foresaw an event at `at`, then add the event to the histograms."""
    weight = event_weight(vector, at)
    if weight > MAX_WEIGHT:
        rescale(vector, GRAINS / weight)
        vector[WEIGHT_AT] = at
        weight = GRAINS
    bin_ = int((at % _DAY_SECONDS) // BIN_SECONDS)
    minute = int((at % 3600.0) // 60.0)
    weekday = int(((at + _MONDAY) % _WEEK_SECONDS) // _DAY_SECONDS)
    mean = vector[WEIGHT] / DAY_BINS
    broad = shrink(day_count(vector, bin_, HALF_WIDTHS[0]), mean, WIDTHS[0], TRUST[0] * weight, 1.0)
    medium = shrink(day_count(vector, bin_, HALF_WIDTHS[1]), mean, WIDTHS[1], TRUST[1] * weight, broad)
    sharp = shrink(day_count(vector, bin_, HALF_WIDTHS[2]), mean, WIDTHS[2], TRUST[2] * weight, medium)
    broad, medium, sharp = log(broad), log(medium), log(sharp)
    hour = log(hour_density(vector, minute, HOUR_PRIOR * weight))
    for index in range(SHAPES + 1):  # the week's score stands right behind them
        vector[SHAPE_SCORES + index] *= SCORE_MEMORY
    if at - vector[SEEN_SINCE] > DAYS_TO_LEARN:
        vector[SHAPE_SCORES] += broad
        vector[SHAPE_SCORES + 1] += medium
        vector[SHAPE_SCORES + 2] += sharp
        vector[SHAPE_SCORES + 3] += hour
        vector[SHAPE_SCORES + 4] += hour + broad
        vector[SHAPE_SCORES + 5] += hour + medium
    if at - vector[SEEN_SINCE] > WEEKS_TO_LEARN:
        vector[WEEK_SCORE] += log(week_density(vector, at, weight))
    # Whole grains, so that a packed state reads back as exactly what it was.
    grains = max(1, int(weight + 0.5))
    vector[DAY + bin_] += grains
    vector[HOUR + minute] += grains
    vector[WEEK + weekday] += grains
    vector[WEIGHT] += grains
    if max(vector[DAY + bin_], vector[HOUR + minute], vector[WEEK + weekday]) > MAX_COUNT:
        # Halving every weight is the same as having learnt at half the scale.
        rescale(vector, 0.5)
        vector[WEIGHT_AT] += PROFILE_MEMORY * log(2.0)


def rescale(vector: Vector, factor: float) -> None:
    for index in range(SCALARS, SIZE):
        vector[index] = int(vector[index] * factor + 0.5)
    total = 0.0
    for index in range(WEEK, WEEK + WEEK_BINS):
        total += vector[index]
    vector[WEIGHT] = total


def digest_visit(
    vector: Vector, at: float, times: Vector, found: int, first: bool, overflow: bool, weights: Vector
) -> None:
    """Take in one visit: `times` are its new items, ascending; `found` is how many items it showed in all.

    A time outside the gap between the two visits is no publisher's: a date from the past that appears only
    now, or our own clock where the publisher gave none. Such an item counts for the rate but teaches the
    profile nothing, which would otherwise learn when we come by.
    """
    since = vector[LAST_AT]
    count = len(times)
    if found > 0 and (overflow or found > vector[WINDOW]):
        vector[WINDOW] = float(found)
    earliest = since
    if first and count > 0:
        since = min(since, times[0])
        earliest = since - 1.0
        vector[SEEN_SINCE] = since
        vector[WEIGHT_AT] = at
    elif overflow and count > 0:
        # What lies before the oldest item of a full window was not seen: it is no evidence of silence.
        since = max(since, times[0])
    shape_weights(vector, weights)
    if at > since:
        expose(vector, since, at, weights)
    last = vector[LAST_EVENT_AT]
    for index in range(count):
        moment = min(max(times[index], earliest), at)
        vector[BATCH_ITEMS] += 1.0
        if moment - last >= BATCH_SECONDS:
            vector[BATCHES] += 1.0
            for level in range(LEVELS):
                vector[COUNTS + level] += exp((moment - at) / MEMORIES[level])
            if earliest < moment < at:
                learn(vector, moment)
        last = max(last, moment)
    if vector[BATCHES] > BATCH_MEMORY:
        kept = BATCH_MEMORY / vector[BATCHES]
        vector[BATCHES] *= kept
        vector[BATCH_ITEMS] *= kept
    vector[LAST_EVENT_AT] = last
    vector[LAST_AT] = at


def find_rates(vector: Vector, rates: Vector) -> None:
    """Batches per second at each memory, each level shrunk towards the slower one."""
    rate = PRIOR_RATE
    for level in range(LEVELS):
        trust = SHRINKAGE[level]
        rate = (vector[COUNTS + level] + trust) / (vector[EXPOSURES + level] + trust / rate)
        rates[level] = rate


# How many bins the running sums reach back over midnight, and how far in all.
MARGIN = 16
REACH = DAY_BINS + 2 * MARGIN + int(MAX_CELL_SECONDS / BIN_SECONDS) + 1
SUMS_SIZE = REACH + 1
# Where a kernel around a bin ends and begins in those sums.
_HIGH_BROAD, _LOW_BROAD = MARGIN + HALF_WIDTHS[0] + 1, MARGIN - HALF_WIDTHS[0]
_HIGH_MEDIUM, _LOW_MEDIUM = MARGIN + HALF_WIDTHS[1] + 1, MARGIN - HALF_WIDTHS[1]
_HIGH_SHARP, _LOW_SHARP = MARGIN + HALF_WIDTHS[2] + 1, MARGIN - HALF_WIDTHS[2]


def sum_day(vector: Vector, sums: Vector) -> None:
    """Running sums of running sums, so that any kernel's mean over any cell takes four look-ups."""
    single = 0.0
    double = 0.0
    index = 0
    for weight in vector[DAY + DAY_BINS - MARGIN : DAY + DAY_BINS]:
        sums[index] = double
        double += single
        single += weight
        index += 1
    for weight in vector[DAY : DAY + DAY_BINS]:
        sums[index] = double
        double += single
        single += weight
        index += 1
    for weight in vector[DAY : DAY + REACH - DAY_BINS - MARGIN]:
        sums[index] = double
        double += single
        single += weight
        index += 1
    sums[index] = double


def read_hour(vector: Vector, prior: float, hour: Vector) -> None:
    """Running sums of the minutes' density, then for each minute how many minutes until a rush is over.

    Where the hour knows no rush those are many.
    """
    norm = HOUR_BINS / (vector[WEIGHT] + prior)
    base = prior / (vector[WEIGHT] + prior)
    before = vector[HOUR + HOUR_BINS - 1]
    here = vector[HOUR]
    total = 0.0
    last = 0.0
    for minute in range(HOUR_BINS):
        after = vector[HOUR + minute + 1] if minute + 1 < HOUR_BINS else vector[HOUR]
        density = base + norm * (0.5 * here + 0.25 * (before + after))
        hour[minute] = total
        total += density
        # A rush is over where the density falls steeply.
        if minute > 0:
            hour[EDGES + minute - 1] = 1.0 if last > 1.5 and density < 0.6 * last else 0.0
        last = density
        before = here
        here = after
    hour[HOUR_BINS] = total
    hour[EDGES + HOUR_BINS - 1] = 1.0 if last > 1.5 and hour[1] < 0.6 * last else 0.0
    distance = 1000.0
    for _ in range(2):
        for minute in range(HOUR_BINS - 1, -1, -1):
            distance = 1.0 if hour[EDGES + minute] == 1.0 else distance + 1.0
            hour[EDGES + minute] = distance


def hour_until(hour: Vector, at: float) -> float:
    """The running sum of the minutes' density up to a time, over whole hours too."""
    minutes = at % 3600.0 / 60.0
    minute = int(minutes)
    below = hour[minute]
    value: float = below + (minutes - minute) * (hour[minute + 1] - below) + hour[HOUR_BINS] * (at // 3600.0)
    return value


EDGES = HOUR_BINS + 1
HOUR_SPACE = EDGES + HOUR_BINS
CELL_SPACE = MAX_CELLS + 1
OUT_AFTER = 0  # seconds until the visit
OUT_RATE = 1  # items per second now, profile aside
OUT_LONG_RATE = 2  # items per second in the long run
OUT_PROFILE = 3  # the profile's say at the time of the visit, 1 is the mean
OUT_BOUND = 4  # 1 where the source's window decided
OUT_FLAT = 5  # how far the flat profile is trusted
OUT_SIZE = 6


def plan_visit(
    vector: Vector,
    now: float,
    price: float,
    weights: Vector,
    rates: Vector,
    sums: Vector,
    hour: Vector,
    times: Vector,
    counts: Vector,
    moments: Vector,
    costs: Vector,
    hull: Vector,
    out: Vector,
) -> None:
    """The wait for which expected delay plus `price` per visit is least over the visits to come.

    `sums` are those of `sum_day`; everything after them is working space.
    """
    find_rates(vector, rates)
    shape_weights(vector, weights)
    size = vector[BATCH_ITEMS] / vector[BATCHES]
    out[OUT_RATE] = rates[LEVELS - 1] * size
    out[OUT_LONG_RATE] = rates[0] * size
    out[OUT_PROFILE] = 1.0
    out[OUT_BOUND] = 0.0
    out[OUT_FLAT] = weights[0] * (1.0 - weights[SHAPES + 1])
    typical = sqrt(2.0 * price / (rates[2] * size))
    if typical > FAR_SECONDS:
        out[OUT_AFTER] = typical
        return
    scale = event_weight(vector, now)
    hour_prior = HOUR_PRIOR * scale
    # The mixed profile is linear in the three kernels' counts: its coefficients, once per plan.
    mean = vector[WEIGHT] / DAY_BINS
    own_broad = 1.0 / (mean * WIDTHS[0] + TRUST[0] * scale)
    own_medium = 1.0 / (mean * WIDTHS[1] + TRUST[1] * scale)
    own_sharp = 1.0 / (mean * WIDTHS[2] + TRUST[2] * scale)
    by_broad = TRUST[1] * scale * own_medium
    by_medium = TRUST[2] * scale * own_sharp
    level = TRUST[0] * scale * own_broad
    mix_sharp = weights[3] * own_sharp
    mix_medium = (weights[2] + weights[3] * by_medium) * own_medium
    passed = weights[1] + (weights[2] + weights[3] * by_medium) * by_broad
    mix_broad = passed * own_broad
    mix_level = weights[0] + passed * level
    hour_medium = weights[6] * own_medium
    hour_passed = weights[5] + weights[6] * by_broad
    hour_broad = hour_passed * own_broad
    hour_level = weights[4] + hour_passed * level
    minutes = weights[4] + weights[5] + weights[6] > NEGLIGIBLE
    sofar = 0.0
    week = weights[SHAPES + 1]
    flat = out[OUT_FLAT] > 1.0 - NEGLIGIBLE
    if minutes:
        read_hour(vector, hour_prior, hour)
        sofar = hour_until(hour, now)
    close = typical < CLOSE_SECONDS
    # Items per second ahead: what is above the long run's rate fades, as fast as the memory it came from.
    slow = rates[1] * size
    change_week = (rates[0] - rates[1]) * size / MEMORIES[1]
    change_day = (rates[2] - rates[1]) * size
    change_hours = (rates[3] - rates[2]) * size
    daily = -1.0 / MEMORIES[2]
    hourly = -1.0 / MEMORIES[3]
    widest = min(max(typical / 3.0, MIN_CELL_SECONDS), MAX_CELL_SECONDS)
    width = min(max(typical / (2.0 * CELLS_PER_VISIT), MIN_CELL_SECONDS), widest)
    # Items already waiting: this plan may be made long after the last visit that worked.
    waiting = rates[1] * size * max(0.0, now - vector[LAST_AT])
    ahead = 0.0
    count = waiting
    moment = 0.0
    bound = 0.0
    share = vector[WINDOW] * WINDOW_SHARE if vector[WINDOW] > 0.0 else _NEVER
    times[0] = 0.0
    counts[0] = 0.0
    moments[0] = 0.0
    cells = 0
    horizon = HORIZON_VISITS * typical
    midnight = 0.0
    weekday = 1.0
    edge = -1
    mixed = 0.0
    finest = 2.0 * price / (CELLS_PER_VISIT * CELLS_PER_VISIT)
    while cells < MAX_CELLS and (ahead < horizon or cells < CELLS_PER_VISIT):
        start = now + ahead
        if minutes and close:
            left = hour[EDGES + int((start % 3600.0) // 60.0)] * 60.0 - start % 60.0
            if left < width:
                width = max(left, MIN_CELL_SECONDS)
        if width > BIN_SECONDS:
            # Whole bins, so that a cell's mean is exact.
            width = ((start + width) // BIN_SECONDS) * BIN_SECONDS - start
        middle = ahead + 0.5 * width
        rate = (
            slow
            + change_week * middle
            + change_day * exp(middle * daily)
            + change_hours * exp(middle * hourly)
        )
        profile = 1.0
        if not flat:
            if width > BIN_SECONDS:
                first = edge if 0 <= edge < DAY_BINS else int((start % _DAY_SECONDS) / BIN_SECONDS + 0.5)
                stop = first + int(width / BIN_SECONDS + 0.5)
            else:
                first = int(((now + middle) % _DAY_SECONDS) // BIN_SECONDS)
                stop = first + 1
            # The mixture's running sum at the two ends of the cell; it begins where the one before has ended.
            if first != edge:
                mixed = mix_broad * (sums[first + _HIGH_BROAD] - sums[first + _LOW_BROAD])
                mixed += mix_medium * (sums[first + _HIGH_MEDIUM] - sums[first + _LOW_MEDIUM])
                mixed += mix_sharp * (sums[first + _HIGH_SHARP] - sums[first + _LOW_SHARP])
            passed = mixed
            mixed = mix_broad * (sums[stop + _HIGH_BROAD] - sums[stop + _LOW_BROAD])
            mixed += mix_medium * (sums[stop + _HIGH_MEDIUM] - sums[stop + _LOW_MEDIUM])
            mixed += mix_sharp * (sums[stop + _HIGH_SHARP] - sums[stop + _LOW_SHARP])
            profile = mix_level + (mixed - passed) / (stop - first)
            edge = stop if width > BIN_SECONDS else -1
            if minutes:
                # The same for the shapes of the day that go with the minutes.
                hours = hour_broad * (sums[stop + _HIGH_BROAD] - sums[stop + _LOW_BROAD])
                hours -= hour_broad * (sums[first + _HIGH_BROAD] - sums[first + _LOW_BROAD])
                hours += hour_medium * (sums[stop + _HIGH_MEDIUM] - sums[stop + _LOW_MEDIUM])
                hours -= hour_medium * (sums[first + _HIGH_MEDIUM] - sums[first + _LOW_MEDIUM])
                reached = hour_until(hour, start + width)
                share_of_hour = (reached - sofar) * 60.0 / width
                sofar = reached
                profile += share_of_hour * (hour_level + hours / (stop - first))
            if week > NEGLIGIBLE:
                if start >= midnight:
                    midnight = (start // _DAY_SECONDS + 1.0) * _DAY_SECONDS
                    weekday = 1.0 - week + week * week_density(vector, start, scale)
                profile *= weekday
        intensity = rate * profile
        items = intensity * width
        ahead += width
        count += items
        moment += items * middle
        cells += 1
        times[cells] = ahead
        counts[cells] = count
        moments[cells] = moment
        costs[cells] = profile
        if count > share:
            bound = ahead
            share = _NEVER
        wished = sqrt(finest / intensity)
        width *= 2.0
        if wished < width:
            width = wished
        if width > widest:
            width = widest
        if width < MIN_CELL_SECONDS:
            width = MIN_CELL_SECONDS
    # Beyond the horizon a second costs what it costs on average: the best that a constant rate allows.
    beyond = sqrt(2.0 * price * (count - waiting) / ahead)
    profile_last = costs[cells]
    # Least cost from each cell's end, backwards. Cost(i, j) = t_j (N_j − N_i) − (M_j − M_i) + price + F_j is
    # a line in N_i for each j, so the best j comes off the lower hull in constant time.
    head = 0
    tail = 0
    best = cells
    after = times[cells]
    costs[cells] = after * counts[cells] - moments[cells] + price  # the line's value at N_i = 0
    hull[0] = cells
    index = cells - 1
    while index >= 0:
        here = counts[index]
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
        if index > 0:
            time = times[index]
            cost += moments[index]
            rest = after - time
            if rest < typical and beyond * rest < cost:
                cost = beyond * rest
            line = time * here - moments[index] + price + cost
            profile_last = costs[index]
            costs[index] = line
            while head < tail:
                one = hull[tail - 1]
                two = hull[tail]
                rise = (costs[two] - line) * (times[one] - times[two])
                if rise < (costs[one] - costs[two]) * (times[two] - time):
                    break
                tail -= 1
            tail += 1
            hull[tail] = index
        index -= 1
    chosen = times[best]
    out[OUT_PROFILE] = profile_last
    if minutes and not close:
        # The cells were too wide to see the minutes: wait for the end of the rush that is near, if one is.
        start = now + chosen - typical / 16.0
        left = hour[EDGES + int((start % 3600.0) // 60.0)] * 60.0 - start % 60.0
        if left < typical / 6.0:
            chosen += left - typical / 16.0
    if bound > 0.0 and bound < chosen:
        chosen = bound
        out[OUT_BOUND] = 1.0
    out[OUT_AFTER] = chosen


def plan_from_state(
    vector: Vector,
    now: float,
    price: float,
    weights: Vector,
    rates: Vector,
    sums: Vector,
    hour: Vector,
    times: Vector,
    counts: Vector,
    moments: Vector,
    costs: Vector,
    hull: Vector,
    out: Vector,
) -> None:
    """`plan_visit` with its sums: everything after `price` is working space."""
    sum_day(vector, sums)
    plan_visit(vector, now, price, weights, rates, sums, hour, times, counts, moments, costs, hull, out)
