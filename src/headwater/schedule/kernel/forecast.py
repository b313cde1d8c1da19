"""The items expected from now on, in cells that are narrow where many are expected."""

import math

from ..layout import (
    BATCH_ITEMS,
    BATCHES,
    BIN_SECONDS,
    DAY_BINS,
    GAP_MEAN,
    HOUR,
    HOUR_BINS,
    LAST_AT,
    LAST_EVENT_AT,
    RULE,
    SHAPES,
    WEIGHT,
    Vector,
)
from . import ladder, profile, rhythm, summer
from .workspace import (
    EDGES,
    MARGIN,
    MAX_CELL_SECONDS,
    MAX_CELLS,
    MIX_BROAD,
    MIX_BY_MINUTE,
    MIX_HOUR_BROAD,
    MIX_HOUR_LEVEL,
    MIX_HOUR_MEDIUM,
    MIX_LEVEL,
    MIX_MEDIUM,
    MIX_SHARP,
    Workspace,
)

_DAY = 86400.0
CELLS_PER_VISIT = 6.0
HORIZON_VISITS = 7.0  # at the usual distance between two visits
MIN_CELL_SECONDS = 60.0
CLOSE_SECONDS = 5400.0  # visits closer than this are planned to the minute
NEGLIGIBLE = 0.02  # weight below which a shape is left out
# Where a kernel around a bin ends and begins in the running sums.
_HIGH_BROAD, _LOW_BROAD = MARGIN + profile.BROAD + 1, MARGIN - profile.BROAD
_HIGH_MEDIUM, _LOW_MEDIUM = MARGIN + profile.MEDIUM + 1, MARGIN - profile.MEDIUM
_HIGH_SHARP, _LOW_SHARP = MARGIN + profile.SHARP + 1, MARGIN - profile.SHARP


def mix_shapes(state: Vector, work: Workspace, scale: float) -> None:
    """The mixed profile is linear in the counts under the three kernels: write its coefficients."""
    weights = work.weights
    mix = work.mix
    mean = state[WEIGHT] / DAY_BINS
    own_broad = 1.0 / (mean * profile.BROAD_WIDTH + profile.BROAD_TRUST * scale)
    own_medium = 1.0 / (mean * profile.MEDIUM_WIDTH + profile.MEDIUM_TRUST * scale)
    own_sharp = 1.0 / (mean * profile.SHARP_WIDTH + profile.SHARP_TRUST * scale)
    level = profile.BROAD_TRUST * scale * own_broad
    by_broad = profile.MEDIUM_TRUST * scale * own_medium
    by_medium = profile.SHARP_TRUST * scale * own_sharp
    in_medium = weights[2] + weights[3] * by_medium
    in_broad = weights[1] + in_medium * by_broad
    mix[MIX_LEVEL] = weights[0] + in_broad * level
    mix[MIX_BROAD] = in_broad * own_broad
    mix[MIX_MEDIUM] = in_medium * own_medium
    mix[MIX_SHARP] = weights[3] * own_sharp
    in_broad = weights[5] + weights[6] * by_broad
    mix[MIX_HOUR_LEVEL] = weights[4] + in_broad * level
    mix[MIX_HOUR_BROAD] = in_broad * own_broad
    mix[MIX_HOUR_MEDIUM] = weights[6] * own_medium
    mix[MIX_BY_MINUTE] = weights[4] + weights[5] + weights[6]
    if mix[MIX_BY_MINUTE] > NEGLIGIBLE:
        read_hour(state, work.hour, profile.HOUR_PRIOR * scale)


def read_hour(state: Vector, hour: Vector, prior: float) -> None:
    """Write running sums of the minutes' density, then for each minute how many minutes until a rush is over.

    A rush is over where the density falls steeply. In an hour without a rush the distances are large.
    """
    norm = HOUR_BINS / (state[WEIGHT] + prior)
    base = prior / (state[WEIGHT] + prior)
    own = profile.find_minute_share(state)
    before = state[HOUR + HOUR_BINS - 1]
    here = state[HOUR]
    total = 0.0
    last = 0.0
    for minute in range(HOUR_BINS):
        after = state[HOUR + minute + 1] if minute + 1 < HOUR_BINS else state[HOUR]
        density = base + norm * (own * here + 0.5 * (1.0 - own) * (before + after))
        hour[minute] = total
        total += density
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


def sum_hour(hour: Vector, at: float) -> float:
    """The running sum of the minutes' density up to a time, whole hours included."""
    minutes = at % 3600.0 / 60.0
    minute = int(minutes)
    below = hour[minute]
    value: float = below + (minutes - minute) * (hour[minute + 1] - below) + hour[HOUR_BINS] * (at // 3600.0)
    return value


def find_rush_end(hour: Vector, at: float) -> float:
    """Seconds until the next rush is over."""
    minute = int((at % 3600.0) // 60.0)
    left: float = hour[EDGES + minute] * 60.0 - at % 60.0
    return left


def mean_of_hour_shapes(work: Workspace, first: int, stop: int) -> float:
    """The mean over some bins of the day's shapes that go with the minutes."""
    sums = work.sums
    mix = work.mix
    total = mix[MIX_HOUR_BROAD] * (
        sums[stop + _HIGH_BROAD]
        - sums[stop + _LOW_BROAD]
        - sums[first + _HIGH_BROAD]
        + sums[first + _LOW_BROAD]
    )
    total += mix[MIX_HOUR_MEDIUM] * (
        sums[stop + _HIGH_MEDIUM]
        - sums[stop + _LOW_MEDIUM]
        - sums[first + _HIGH_MEDIUM]
        + sums[first + _LOW_MEDIUM]
    )
    mean: float = mix[MIX_HOUR_LEVEL] + total / (stop - first)
    return mean


def fill_cells(
    state: Vector, work: Workspace, now: float, price: float, typical: float, regular: float
) -> int:
    """Write the cells' ends, and the items expected and their moments up to there. Returns the number of cells.

    `typical` is the usual distance between two visits, `regular` how far regular gaps are trusted.
    """
    rates, weights, mix, sums, hour = work.rates, work.weights, work.mix, work.sums, work.hour
    times, counts, moments = work.times, work.counts, work.moments
    scale = profile.find_event_weight(state, now)
    week = weights[SHAPES + 1]
    flat = weights[0] * (1.0 - week) > 1.0 - NEGLIGIBLE
    minutes = mix[MIX_BY_MINUTE] > NEGLIGIBLE
    close = minutes and typical < CLOSE_SECONDS
    level = mix[MIX_LEVEL]
    by_broad = mix[MIX_BROAD]
    by_medium = mix[MIX_MEDIUM]
    by_sharp = mix[MIX_SHARP]
    sofar = sum_hour(hour, now) if minutes else 0.0
    # Items per second ahead: what is above the long run's rate fades as fast as the memory it comes from.
    size = state[BATCH_ITEMS] / state[BATCHES]
    slow = rates[1] * size
    change_week = (rates[0] - rates[1]) * size / ladder.MEMORIES[1]
    change_day = (rates[2] - rates[1]) * size
    change_hours = (rates[3] - rates[2]) * size
    daily = -1.0 / ladder.MEMORIES[2]
    hourly = -1.0 / ladder.MEMORIES[3]
    rule = int(state[RULE])
    shift = summer.find_shift(work, rule, now)
    changes_at = work.clocks[3 * rule + 1] if rule else 1.0e300
    widest = min(max(typical / 3.0, MIN_CELL_SECONDS), MAX_CELL_SECONDS)
    width = min(max(typical / (2.0 * CELLS_PER_VISIT), MIN_CELL_SECONDS), widest)
    finest = 2.0 * price / (CELLS_PER_VISIT * CELLS_PER_VISIT)
    horizon = HORIZON_VISITS * typical
    # Items may be waiting already: the last visit that worked may be long ago.
    count = slow * max(0.0, now - state[LAST_AT])
    ahead = 0.0
    moment = 0.0
    times[0] = 0.0
    counts[0] = 0.0
    moments[0] = 0.0
    cells = 0
    midnight = 0.0
    weekday = 1.0
    edge = -1
    mixed = 0.0
    spread = due = begun = 0.0
    if regular > 0.0:
        spread = rhythm.find_spread(state)
        due = state[LAST_EVENT_AT] + state[GAP_MEAN] - now
        begun = rhythm.sum_events(state, now, now, spread)
    while cells < MAX_CELLS and (ahead < horizon or cells < CELLS_PER_VISIT):
        start = now + ahead
        if close:
            left = find_rush_end(hour, start)
            if left < width:
                width = max(left, MIN_CELL_SECONDS)
        if regular > 0.0 and ahead < due + 3.0 * spread:
            left = due - 3.0 * spread - ahead
            width = min(width, max(MIN_CELL_SECONDS, left if left > 0.0 else 0.5 * spread))
        if width > BIN_SECONDS:
            # Whole bins, so that a cell's mean is exact.
            width = ((start + width) // BIN_SECONDS) * BIN_SECONDS - start
        middle = ahead + 0.5 * width
        intensity = (
            slow
            + change_week * middle
            + change_day * math.exp(middle * daily)
            + change_hours * math.exp(middle * hourly)
        )
        if not flat:
            if start >= changes_at:
                shift = 3600.0 - shift
                changes_at = 1.0e300
                edge = -1
            if width > BIN_SECONDS:
                first = edge if 0 <= edge < DAY_BINS else int(((start + shift) % _DAY) / BIN_SECONDS + 0.5)
                stop = first + int(width / BIN_SECONDS + 0.5)
            else:
                first = int(((now + middle + shift) % _DAY) // BIN_SECONDS)
                stop = first + 1
            # The running sum of the mixture at both ends of the cell; it begins where the cell before has ended.
            if first != edge:
                mixed = by_broad * (sums[first + _HIGH_BROAD] - sums[first + _LOW_BROAD])
                mixed += by_medium * (sums[first + _HIGH_MEDIUM] - sums[first + _LOW_MEDIUM])
                mixed += by_sharp * (sums[first + _HIGH_SHARP] - sums[first + _LOW_SHARP])
            passed = mixed
            mixed = by_broad * (sums[stop + _HIGH_BROAD] - sums[stop + _LOW_BROAD])
            mixed += by_medium * (sums[stop + _HIGH_MEDIUM] - sums[stop + _LOW_MEDIUM])
            mixed += by_sharp * (sums[stop + _HIGH_SHARP] - sums[stop + _LOW_SHARP])
            density = level + (mixed - passed) / (stop - first)
            edge = stop if width > BIN_SECONDS else -1
            if minutes:
                reached = sum_hour(hour, start + width)
                density += (reached - sofar) * 60.0 / width * mean_of_hour_shapes(work, first, stop)
                sofar = reached
            if week > NEGLIGIBLE:
                if start >= midnight:
                    midnight = ((start + shift) // _DAY + 1.0) * _DAY - shift
                    weekday = 1.0 - week + week * profile.find_week_density(state, start + shift, scale)
                density *= weekday
            intensity *= density
        if regular > 0.0:
            reached = rhythm.sum_events(state, now, start + width, spread)
            intensity += regular * (size * (reached - begun) / width - intensity)
            begun = reached
        items = intensity * width
        ahead += width
        count += items
        moment += items * middle
        cells += 1
        times[cells] = ahead
        counts[cells] = count
        moments[cells] = moment
        wished = math.sqrt(finest / max(intensity, 1.0e-12))
        width *= 2.0
        if wished < width:
            width = wished
        if width > widest:
            width = widest
        if width < MIN_CELL_SECONDS:
            width = MIN_CELL_SECONDS
    return cells
