"""The rate ladder: events per second over memories from slow to fast.

Each level has a fading count of events and a fading exposure: seconds, weighted by the profile. A level with little
evidence falls back on the slower one.
"""

import math

from ..layout import BATCH_ITEMS, BATCHES, COUNTS, EXPOSURES, LEVELS, PRIOR, Vector

_DAY = 86400.0
MEMORIES = (45 * _DAY, 7 * _DAY, _DAY, _DAY / 5)
SHRINKAGE = (0.3, 3.0, 4.0, 5.5)  # expected events before a level counts as much as the slower one
PRIOR_RATE = 0.05 / _DAY  # beside a history of dates, which says more …
UNKNOWN_RATE = 0.36 / _DAY  # … and without one
BATCH_MEMORY = 50.0
KNOWN_SECONDS, KNOWN_EVENTS = 1.5 * _DAY, 3.0  # either is enough to know a source's rate


def find_rates(state: Vector, rates: Vector) -> None:
    """Events per second at each memory."""
    rate = state[PRIOR]
    for level in range(LEVELS):
        trust = SHRINKAGE[level]
        rate = (state[COUNTS + level] + trust) / (state[EXPOSURES + level] + trust / rate)
        rates[level] = rate


def find_usual_rate(state: Vector) -> float:
    """Items per second over the last week or so; 0 while too little was seen."""
    if state[EXPOSURES] < KNOWN_SECONDS and state[COUNTS] < KNOWN_EVENTS:
        return 0.0
    rate = state[PRIOR]
    for level in range(2):
        trust = SHRINKAGE[level]
        rate = (state[COUNTS + level] + trust) / (state[EXPOSURES + level] + trust / rate)
    items: float = rate * state[BATCH_ITEMS] / state[BATCHES]
    return items


def fade_counts(state: Vector, seconds: float) -> None:
    for level in range(LEVELS):
        state[COUNTS + level] *= math.exp(-seconds / MEMORIES[level])


def add_exposure(state: Vector, seconds: float, profile: float) -> None:
    """Let seconds pass at one value of the profile."""
    for level in range(LEVELS):
        memory = MEMORIES[level]
        kept = math.exp(-seconds / memory)
        state[EXPOSURES + level] = state[EXPOSURES + level] * kept + profile * memory * (1.0 - kept)


def count_event(state: Vector, age: float) -> None:
    """Count an event that happened `age` seconds before the counts' time."""
    state[BATCHES] += 1.0
    for level in range(LEVELS):
        state[COUNTS + level] += math.exp(-age / MEMORIES[level])


def fade_batches(state: Vector) -> None:
    """Keep the mean number of items of an event to the newest events."""
    if state[BATCHES] > BATCH_MEMORY:
        kept = BATCH_MEMORY / state[BATCHES]
        state[BATCHES] *= kept
        state[BATCH_ITEMS] *= kept
