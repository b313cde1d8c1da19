"""One visit taken into the state of its source."""

import math

from ..layout import (
    BATCH_ITEMS,
    BATCHES,
    BURST,
    LAST_AT,
    LAST_EVENT_AT,
    OFFSET,
    OFFSET_HIGH,
    OFFSET_LOW,
    PRIOR,
    SCALARS,
    SEEN_SINCE,
    SHAPES,
    SIZE,
    WEIGHT_AT,
    WINDOW,
    Vector,
)
from . import dates, ladder, profile, rhythm
from .workspace import Workspace

BATCH_SECONDS = 300.0  # items this close together are one event
EXPOSURE_STEPS = 8  # samples of the profile in the gap between two visits
OLDEST_HISTORY = 3650 * 86400.0
NEGLIGIBLE = 0.02  # weight below which a shape is left out
BURST_SHARE = 0.5  # a visit that finds this share of the window new is in a burst …
BURST_SECONDS = 1800.0  # … that took at least this long: items that come all at once need not go on
SMALLEST_WINDOW = 10.0  # a source that shows fewer items shows all it has


def begin(state: Vector, at: float) -> None:
    """An empty state, from before the first visit."""
    for index in range(SCALARS):
        state[index] = 0.0
    for index in range(SCALARS, SIZE):
        state[index] = 0
    state[LAST_AT] = at
    state[SEEN_SINCE] = at
    state[WEIGHT_AT] = at
    state[BATCHES] = 1.0
    state[BATCH_ITEMS] = 1.0
    state[PRIOR] = ladder.PRIOR_RATE
    state[OFFSET_LOW] = -dates.ANY_OFFSET
    state[OFFSET_HIGH] = dates.ANY_OFFSET


def digest_visit(
    state: Vector, work: Workspace, at: float, times: Vector, found: int, first: bool, overflow: bool
) -> None:
    """Take in one visit: `times` are those of its new items, ascending; `found` is the number of items shown.

    A date between the last visit and this one is believed, unless the source's dates were wrong too often. Of all other
    items only the gap is known.
    """
    last_at = state[LAST_AT]
    since = last_at  # from when on nothing was missed
    count = len(times)
    if found > 0 and (overflow or found > state[WINDOW]):
        state[WINDOW] = float(found)
    state[BURST] = 0.0
    if first and (count == 0 or times[0] >= at) and state[PRIOR] == ladder.PRIOR_RATE:
        state[PRIOR] = ladder.UNKNOWN_RATE
    if first and count > 0:
        since = max(min(since, times[0]), at - OLDEST_HISTORY)
        state[SEEN_SINCE] = since
        state[WEIGHT_AT] = at
    elif count > 0:
        if at > since:
            dates.judge_visit(state, times, since, at)
        oldest = times[0] - state[OFFSET]
        if overflow and since < oldest < at and dates.are_believed(state):
            since = oldest
        if count >= BURST_SHARE * max(state[WINDOW], SMALLEST_WINDOW):
            state[BURST] = count / max(at - max(min(oldest, at), since), BURST_SECONDS)
    profile.weigh_shapes(state, work.weights)
    if at > since:
        expose(state, work, since, at)
    if count > 0:
        digest_items(state, work, at, times, first, since, last_at)
    state[LAST_AT] = at


def digest_items(
    state: Vector, work: Workspace, at: float, times: Vector, first: bool, since: float, last_at: float
) -> None:
    """Count the items and learn from their times. `since`: from when on nothing was missed."""
    last = state[LAST_EVENT_AT]
    offset = state[OFFSET]
    believed = dates.are_believed(state)
    ladder.find_rates(state, work.rates)
    rate = work.rates[1]
    vague = 0
    for index in range(len(times)):
        if first and times[index] == at:
            continue  # it may be of any age
        state[BATCH_ITEMS] += 1.0
        moment = times[index] - offset
        if first:
            moment = min(max(moment, since), at)
        elif not believed or times[index] == at or moment >= at or moment < last_at - dates.SLACK:
            vague += 1
            continue
        moment = max(moment, since)
        if moment - last >= BATCH_SECONDS:
            ladder.count_event(state, at - moment)
            if moment < at:
                density = profile.learn(state, work, moment)
                if last > 0.0:
                    gap = moment - last
                    rhythm.learn(state, gap, rate * density * math.exp(-min(rate * gap, 700.0)))
        last = max(last, moment)
    if vague > 0:
        # Together they are one event: whether they are more cannot be told.
        moment = profile.spread(state, work, last_at, at)
        ladder.count_event(state, at - moment)
        last = max(last, moment)
        rhythm.forget(state)
    ladder.fade_batches(state)
    state[LAST_EVENT_AT] = last


def expose(state: Vector, work: Workspace, since: float, until: float) -> None:
    """Let the time between two visits pass on the ladder."""
    gap = until - since
    weights = work.weights
    ladder.fade_counts(state, gap)
    if weights[0] > 1.0 - NEGLIGIBLE and weights[SHAPES + 1] < NEGLIGIBLE:
        ladder.add_exposure(state, gap, 1.0)
        return
    steps = int(min(EXPOSURE_STEPS - 1.0, gap / 3600.0)) + 1
    width = gap / steps
    for step in range(steps):
        at = since + (step + 0.5) * width
        local = profile.find_local(state, work, at)
        density = profile.find_density(state, weights, local, profile.find_event_weight(state, at))
        ladder.add_exposure(state, width, density)
