"""Replaying one source: visit, digest what is new, plan, visit again."""

from ..layout import LAST_AT, Vector
from . import digest, plan
from .workspace import OUT_AFTER, OUT_FLAT, OUT_SILENCE, Workspace

_DAY = 86400.0
_LARGEST = 2147483647.0  # of the generator of chances

# The cursor: what holds for a replay, and how far it is.
WINDOW = 0  # number of items that the source shows at once
SHORTEST = 1  # seconds between two visits
LONGEST = 2
DORMANT = 3  # longest wait for a source that has been silent for long
SEED = 4
FIRST = 5  # number of items that were there at the first visit
POSITION = 6  # items seen so far
NEXT_AT = 7  # the visit that is planned
VISITS = 8
USELESS = 9  # visits that found nothing
MISSED = 10  # items that had left the window before they were seen
CURSOR_SIZE = 11


def see_items(cursor: Vector, times: Vector, delays: Vector, at: float) -> int:
    """Note the delay of everything that appeared, and count what had left the window.

    A missed item is given the delay up to the visit that missed it. Returns the position of the first item to be seen.
    """
    old = int(cursor[POSITION])
    first = int(cursor[FIRST])
    window = int(cursor[WINDOW])
    new = old
    while new < len(times) and times[new] <= at:
        delays[new - first] = at - times[new]
        new += 1
    cursor[VISITS] += 1
    cursor[POSITION] = new
    if new == old:
        cursor[USELESS] += 1
    if new - window > old:
        cursor[MISSED] += new - window - old
        return new - window
    return old


def read_dates(stated: Vector, first: int, stop: int, at: float) -> None:
    """Replace dates that are missing, or too far ahead to be meant, by the visit's time."""
    for index in range(first, stop):
        if stated[index] > at + _DAY:
            stated[index] = at


def advance(
    state: Vector,
    work: Workspace,
    cursor: Vector,
    times: Vector,
    stated: Vector,
    delays: Vector,
    until: float,
    price: float,
) -> None:
    """Make every visit that is due up to a time. `times` are when items appear, `stated` their dates, ascending.

    The first visit is not counted.
    """
    while cursor[NEXT_AT] <= until:
        now = cursor[NEXT_AT]
        old = int(cursor[POSITION])
        first = state[LAST_AT] == 0.0
        if first:
            seen = 0
            digest.begin(state, now)
        else:
            seen = see_items(cursor, times, delays, now)
        position = int(cursor[POSITION])
        shown = min(position, int(cursor[WINDOW])) if first or position > old else 0
        read_dates(stated, seen, position, now)
        digest.digest_visit(state, work, now, stated[seen:position], shown, first, not first and seen > old)
        plan.plan_from_scratch(state, work, now, price, cursor[SHORTEST])
        cursor[SEED] = cursor[SEED] * 16807.0 % _LARGEST
        chance = 2.0 * cursor[SEED] / _LARGEST - 1.0
        wait = plan.spread_wait(work.out[OUT_AFTER], work.out[OUT_FLAT], chance)
        longest = plan.find_longest(cursor[LONGEST], cursor[DORMANT], work.out[OUT_SILENCE])
        cursor[NEXT_AT] = now + min(max(wait, cursor[SHORTEST]), longest)
