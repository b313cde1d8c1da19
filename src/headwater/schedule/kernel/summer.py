"""Summer time: by how much a source's clock is ahead of its standard time.

Publishers live by their own clock, which many change twice a year. No source says which rule it follows, so the
rules compete: for some weeks after a change, each event is scored at the hour that each rule puts it.
"""

import math

from ..layout import Vector
from .workspace import Workspace

NO_RULE = 0
EUROPE = 1
NORTH_AMERICA = 2
AUSTRALIA = 3
_DAY = 86400.0
_HOUR = 3600.0
# Days of the year, from 0 in a year without leap day: the change is on the Sunday on or before them.
_MAR_14, _MAR_31, _APR_7, _OCT_7, _OCT_31, _NOV_7 = 72, 89, 96, 279, 303, 310


def find_shift(work: Workspace, rule: int, at: float) -> float:
    """Seconds by which the clocks of a rule are ahead at a time."""
    if rule == NO_RULE:
        return 0.0
    clocks = work.clocks
    if at < clocks[3 * rule] or at >= clocks[3 * rule + 1]:
        find_span(clocks, rule, at)
    shift: float = clocks[3 * rule + 2]
    return shift


def guess_rule(work: Workspace, offset: float, at: float) -> int:
    """The rule that a date's stated offset from UTC, in seconds, suggests. Events correct a wrong guess."""
    for rule, lowest, highest in ((EUROPE, 0.0, 2.0), (NORTH_AMERICA, -9.0, -3.5), (AUSTRALIA, 9.5, 10.5)):
        standard = (offset - find_shift(work, rule, at)) / _HOUR
        if offset != 0.0 and lowest <= standard <= highest:
            return rule
    return NO_RULE


def find_span(clocks: Vector, rule: int, at: float) -> None:
    """Write since when and until when the clocks of a rule show what they show at a time, and what they show."""
    year = 1970 + int(math.floor(at / (365.2425 * _DAY)))
    first = find_change(rule, year, 0)
    second = find_change(rule, year, 1)
    summer = rule != AUSTRALIA  # between the two changes of a year
    if at < first:
        since = find_change(rule, year - 1, 1)
        until = first
        summer = not summer
    elif at < second:
        since = first
        until = second
    else:
        since = second
        until = find_change(rule, year + 1, 0)
        summer = not summer
    clocks[3 * rule] = since
    clocks[3 * rule + 1] = until
    clocks[3 * rule + 2] = _HOUR if summer else 0.0


def find_change(rule: int, year: int, second: int) -> float:
    """When the clocks of a rule change in a year, for the first or the second time."""
    if rule == EUROPE:
        day = _OCT_31 if second else _MAR_31
        hour = 1.0
    elif rule == NORTH_AMERICA:
        day = _NOV_7 if second else _MAR_14
        hour = 8.0
    else:
        day = _OCT_7 if second else _APR_7
        hour = -8.0
    before = year - 1
    days = 365 * (year - 1970) + before // 4 - before // 100 + before // 400 - 477 + day
    if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        days += 1
    days -= (days + 4) % 7  # the epoch was a Thursday
    return days * _DAY + hour * _HOUR
