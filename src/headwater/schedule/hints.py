"""The publisher's floor: the earliest moment at which the publisher wants us back.

It only ever raises a plan, never lowers it. Each wish is capped, so that a mistaken header cannot lose us a
source: 24 hours, and 7 days for Retry-After, which a publisher sends on purpose.
"""

from dataclasses import dataclass

from headwater.model import NO_HINTS, Hints

MAX_FLOOR_SECONDS = 24 * 3600.0
MAX_RETRY_AFTER_SECONDS = 7 * 24 * 3600.0
_HOUR = 3600.0
_DAY = 86400.0
_MONDAY = 3 * _DAY  # the epoch was a Thursday


@dataclass(frozen=True, slots=True)
class Floor:
    """Not before `at`, because of `hint`."""

    at: float
    hint: str


def find_floor(hints: Hints, now: float) -> Floor | None:
    """The latest of all the publisher's wishes, or None where it has none."""
    if hints is NO_HINTS:
        return None
    wishes = [
        Floor(now + min(seconds, cap), name)
        for name, seconds, cap in (
            ("max-age", hints.max_age_seconds, MAX_FLOOR_SECONDS),
            ("ttl", hints.ttl_seconds, MAX_FLOOR_SECONDS),
            ("updatePeriod", hints.update_period_seconds, MAX_FLOOR_SECONDS),
            ("Retry-After", hints.retry_after_seconds, MAX_RETRY_AFTER_SECONDS),
        )
        if seconds is not None and seconds > 0
    ]
    return max(wishes, key=lambda wish: wish.at, default=None)


def skip_closed_hours(hints: Hints, at: float, now: float) -> Floor | None:
    """The first moment from `at` on outside the hours and days the publisher asked to skip.

    None where `at` itself will do, and where nothing is open within 24 hours of `now`: then the wish cannot
    be meant, and the plan stands.
    """
    if not hints.skip_hours and not hints.skip_days:
        return None
    latest = max(at, now + MAX_FLOOR_SECONDS)
    moment = at
    while _is_closed(hints, moment):
        moment = (moment // _HOUR + 1) * _HOUR
        if moment > latest:
            return None
    if moment == at:
        return None
    return Floor(moment, "skipHours" if _hour(at) in hints.skip_hours else "skipDays")


def _hour(at: float) -> int:
    return int(at % _DAY // _HOUR)


def _is_closed(hints: Hints, at: float) -> bool:
    weekday = int((at + _MONDAY) // _DAY) % 7
    return _hour(at) in hints.skip_hours or weekday in hints.skip_days
