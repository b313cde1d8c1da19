"""Regular gaps: for a source that publishes every so many hours, the time since its last event is evidence.

The gaps' mean and spread fade. Regular gaps compete with rate and profile: each is trusted as far as it has predicted
the events so far, and the silence since the last one.
"""

import math

from ..layout import GAP_COUNT, GAP_MEAN, GAP_SCORE, GAP_VARIANCE, LAST_EVENT_AT, Vector

MEMORY = 12.0  # gaps
SCORE_MEMORY = 0.97  # per event
HANDICAP = 1.5  # log likelihood by which gaps must predict each event better: an exact minute is worth more
FIRST_LEAD = 3.0  # … and by which they must be ahead in all to count half
LOWEST_SCORE, HIGHEST_SCORE = -10.0, 30.0
WIDEST = 0.2  # spread over mean from which gaps are not regular
NARROWEST_SECONDS = 30.0
OUTLIERS = 0.1  # share of gaps that may be anything
MOST_SKIPPED = 4
_ROOT_2PI = 2.5066282746310002
_ROOT_2 = 1.4142135623730951


def find_spread(state: Vector) -> float:
    """The standard deviation of the next gap, wider while few gaps are known."""
    count = state[GAP_COUNT]
    spread: float = max(math.sqrt(state[GAP_VARIANCE]) * (1.0 + 2.0 / count), NARROWEST_SECONDS)
    return spread


def learn(state: Vector, gap: float, density: float) -> None:
    """Take in a gap between two events. `density` is what rate and profile gave for its end, per second."""
    mean = state[GAP_MEAN]
    if state[GAP_COUNT] < 1.0:
        restart(state, gap)
        return
    spread = WIDEST * mean
    if state[GAP_COUNT] >= 2.0:
        spread = find_spread(state)
        off = (gap - mean) / spread
        likelihood = OUTLIERS * math.exp(-gap / mean) / mean
        if off * off < 100.0:
            likelihood += (1.0 - OUTLIERS) * math.exp(-0.5 * off * off) / (spread * _ROOT_2PI)
        gain = math.log(max(likelihood, 1.0e-30) / max(density, 1.0e-30)) - HANDICAP
        score = SCORE_MEMORY * state[GAP_SCORE] + gain
        state[GAP_SCORE] = min(max(score, LOWEST_SCORE), HIGHEST_SCORE)
    turns = max(1.0, math.floor(gap / mean + 0.5))
    off = gap / turns - mean
    if turns <= MOST_SKIPPED and abs(off) < 4.0 * spread and spread <= WIDEST * mean:
        count = min(state[GAP_COUNT] + 1.0, MEMORY)
        state[GAP_COUNT] = count
        state[GAP_MEAN] = mean + off / count
        state[GAP_VARIANCE] += (off * off * (count - 1.0) / count - state[GAP_VARIANCE]) / count
        return
    state[GAP_COUNT] *= 0.5
    if state[GAP_COUNT] < 1.0:
        restart(state, gap)


def restart(state: Vector, gap: float) -> None:
    state[GAP_COUNT] = 1.0
    state[GAP_MEAN] = gap
    state[GAP_VARIANCE] = 0.0


def forget(state: Vector) -> None:
    state[GAP_COUNT] = 0.0
    state[GAP_SCORE] = 0.0


def weigh(state: Vector, now: float, rate: float) -> float:
    """How far the next event is expected after a regular gap, given the silence since the last one."""
    if state[GAP_COUNT] < 2.0 or state[GAP_SCORE] < -FIRST_LEAD:
        return 0.0
    mean = state[GAP_MEAN]
    spread = find_spread(state)
    if spread > WIDEST * mean:
        return 0.0
    silence = max(now - state[LAST_EVENT_AT], 0.0)
    regular = (1.0 - OUTLIERS) * 0.5 * math.erfc((silence - mean) / (spread * _ROOT_2))
    if regular < 1.0e-6:
        return 0.0
    anything = OUTLIERS * math.exp(-silence / mean)
    score = state[GAP_SCORE] - FIRST_LEAD + math.log(regular + anything) + rate * silence
    return regular / (regular + anything) / (1.0 + math.exp(-min(max(score, -50.0), 50.0)))


def sum_events(state: Vector, now: float, at: float, spread: float) -> float:
    """Expected number of events up to a time, given none since the last one until now."""
    mean = state[GAP_MEAN]
    last = state[LAST_EVENT_AT]
    turns: float = max(1.0, math.floor((at - last) / mean + 0.5))
    wide = min(spread * math.sqrt(turns), WIDEST * mean) * _ROOT_2
    before = 0.5 * math.erfc((last + turns * mean - at) / wide)
    if turns == 1.0:
        before = max(0.0, 1.0 - (1.0 - before) / (0.5 * math.erfc((now - last - mean) / wide)))
    return turns - 1.0 + before
