"""What a feed says about when to come back: ttl, skipHours, skipDays and the syndication module, as data.

`headwater.schedule` gives these numbers their meaning; here they are only read, and dropped when they make
none.
"""

import re
from typing import Final

from headwater.formats.feeds.fields import Fields
from headwater.formats.feeds.scope import Children, Scope, first_text, inner_text, pick
from headwater.model import Hints

PERIODS: Final = {
    "hourly": 3600.0,
    "daily": 86_400.0,
    "weekly": 604_800.0,
    "monthly": 2_629_746.0,
    "yearly": 31_556_952.0,
}
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LONGEST_SECONDS: Final = 31_556_952.0
_OFFSET: Final = re.compile(r":\d\d(?:\.\d+)?\s*([+-])(0\d|1[0-4]):?([0-5]\d)\s*\Z", re.ASCII)


def _number(text: str | None) -> float | None:
    text = (text or "").strip()
    if not text.isascii() or not text.replace(".", "", 1).isdigit() or len(text) > 12:
        return None
    return float(text)


TIMING_NAMES: Final = frozenset(("ttl", "skiphours", "skipdays", "sy:updateperiod", "sy:updatefrequency"))


def add_hints(found: Fields, scope: Scope, channel: Children, names: tuple[str, ...]) -> None:
    """Add the hints in a channel's or feed's children."""
    minutes = _number(first_text(channel, "ttl"))
    found["hints"] = Hints(
        ttl_seconds=min(minutes * 60, _LONGEST_SECONDS) if minutes else None,
        update_period_seconds=_update_period(channel),
        skip_hours=_skip_hours(scope, channel),
        skip_days=_skip_days(scope, channel),
        utc_offset_seconds=_utc_offset(channel),
    )


def _utc_offset(channel: Children) -> float | None:
    """The offset of the feed's own dates from UTC, if they state one."""
    match = _OFFSET.search(first_text(channel, "lastbuilddate", "pubdate", "atom:updated", "dc:date") or "")
    if match is None:
        return None
    seconds = 3600.0 * int(match[2]) + 60.0 * int(match[3])
    return (-seconds if match[1] == "-" else seconds) or None


def _update_period(channel: Children) -> float | None:
    name = (first_text(channel, "sy:updateperiod") or "").lower()
    frequency = _number(first_text(channel, "sy:updatefrequency"))
    if not name and frequency is None:
        return None
    # The module's own defaults: daily, once a period.
    period = PERIODS.get(name or "daily")
    return period / (frequency or 1.0) if period else None


def _skip_hours(scope: Scope, channel: Children) -> tuple[int, ...]:
    hours = set()
    for element in pick(channel, "skiphours"):
        for hour in scope.children(element).get("hour", ()):
            text = inner_text(hour)
            # 24 is how RSS 0.91 wrote midnight.
            if text.isascii() and text.isdigit() and int(text[:3]) <= 24:
                hours.add(int(text[:3]) % 24)
    return tuple(sorted(hours))


def _skip_days(scope: Scope, channel: Children) -> tuple[int, ...]:
    days = set()
    for element in pick(channel, "skipdays"):
        for day in scope.children(element).get("day", ()):
            name = inner_text(day).lower()
            if name in DAYS:
                days.add(DAYS.index(name))
    return tuple(sorted(days))
