"""Whether the dates that a source states can be believed.

What is certain is that a new item appeared between two visits. The stated time minus the true one, the offset, lies
in a range that follows from that. True dates have 0 in every range, dates in the wrong zone their offset. Dates that
agree on no offset are ignored, and what they taught is forgotten.
"""

import math

from ..layout import (
    DISTRUST,
    FITS,
    MISSES,
    OFFSET,
    OFFSET_HIGH,
    OFFSET_LOW,
    OUTSIDE,
    Vector,
)
from . import profile

SLACK = 900.0  # seconds that a date may be outside the gap
ANY_OFFSET = 1.0e9
_MEMORY = 0.93  # per date
_OUTSIDE_MEMORY = 0.98
_MOST_MISSES = 0.25  # per date that fits
_SAMPLE = 8  # dates of a visit that are judged


def judge_visit(state: Vector, times: Vector, since: float, at: float) -> None:
    """Take in the dates of a visit's new items. A date that is exactly the visit's time is a missing one."""
    missing = 0
    for index in range(min(len(times), _SAMPLE)):
        if times[index] == at:
            missing = 1
        else:
            judge(state, times[index] - at, times[index] - since)
    if missing:
        state[FITS] *= _MEMORY
        state[MISSES] = state[MISSES] * _MEMORY + 1.0
    settle(state)


def judge(state: Vector, low: float, high: float) -> None:
    """Take in the range that one date's offset lies in."""
    state[FITS] *= _MEMORY
    state[MISSES] *= _MEMORY
    state[OUTSIDE] *= _OUTSIDE_MEMORY
    if low > SLACK or high < -SLACK:
        state[OUTSIDE] += 1.0
    lower = max(state[OFFSET_LOW], low)
    upper = min(state[OFFSET_HIGH], high)
    if lower <= upper + SLACK:
        state[FITS] += 1.0
        state[OFFSET_LOW] = min(lower, upper)
        state[OFFSET_HIGH] = max(lower, upper)
        return
    state[MISSES] += 1.0
    if state[MISSES] > _MOST_MISSES * state[FITS] + 1.0:
        state[OFFSET_LOW] = low
        state[OFFSET_HIGH] = high


def settle(state: Vector) -> None:
    """Decide what the dates are worth now: true, true after an offset, or nothing."""
    if state[MISSES] > _MOST_MISSES * state[FITS] + 1.0:
        if state[DISTRUST] == 0.0:
            state[DISTRUST] = 1.0
            profile.forget(state)
        return
    if state[DISTRUST] > 0.0 and state[MISSES] > 0.4 * _MOST_MISSES * state[FITS]:
        return
    state[DISTRUST] = 0.0
    low = state[OFFSET_LOW]
    high = state[OFFSET_HIGH]
    offset = state[OFFSET]
    if low <= SLACK and high >= -SLACK:
        offset = 0.0
    elif state[OUTSIDE] > 1.5 and not low <= offset <= high:
        # A wrong zone is off by whole hours. The range may be wide: visits at better times narrow it.
        middle = 0.5 * (low + high)
        whole = math.floor(middle / 3600.0 + 0.5) * 3600.0
        offset = whole if low <= whole <= high else middle
    if abs(offset - state[OFFSET]) >= 60.0:
        profile.shift(state, state[OFFSET] - offset)
        state[OFFSET] = offset


def are_believed(state: Vector) -> bool:
    """Whether a stated time, less the offset, is taken for the true one."""
    offset = state[OFFSET]
    near: bool = state[OFFSET_LOW] - SLACK <= offset <= state[OFFSET_HIGH] + SLACK
    return near and state[DISTRUST] == 0.0
