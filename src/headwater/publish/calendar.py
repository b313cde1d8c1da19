"""When something is due again: every few hours, daily, weekly, or by cron, in a time zone. Pure.

A local time that a clock change skips is taken as the first minute after the gap; one that occurs twice counts once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from headwater.errors import InputError

DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_EVERY = re.compile(r"every (\d{1,5}) ?(minutes?|hours?|days?)", re.IGNORECASE)
_DAILY = re.compile(r"daily (?:at )?(\d{1,2}):(\d{2})", re.IGNORECASE)
_WEEKLY = re.compile(r"weekly (?:on )?([a-z]{3})[a-z]* (?:at )?(\d{1,2}):(\d{2})", re.IGNORECASE)
_UNITS = {"minute": 60.0, "hour": 3_600.0, "day": 86_400.0}
_FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_SEARCHED_DAYS = 366 * 9  # a 29 February may be eight years away
SHORTEST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Calendar:
    """A schedule that was read: a period, or the minutes, hours, days, months and weekdays of cron."""

    period_seconds: float | None = None
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()  # 0 is Sunday
    any_day: bool = True  # the day of the month is *
    any_weekday: bool = True

    def has_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_date, by_weekday = day.day in self.days, (day.isoweekday() % 7) in self.weekdays
        if self.any_day or self.any_weekday:
            return by_date and by_weekday
        return by_date or by_weekday  # as cron has it, when both are given


def read_zone(name: str) -> ZoneInfo:
    """InputError for a time zone that does not exist."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise InputError(
            "there is no time zone {name}; write it as Europe/Berlin or UTC", name=name or "''"
        ) from None


@lru_cache(maxsize=256)
def read_schedule(text: str) -> Calendar:
    """`every 6 hours`, `daily 07:30`, `weekly mon 07:30`, or five fields of cron; InputError for anything else."""
    words = " ".join(text.split())
    if found := _EVERY.fullmatch(words):
        seconds = int(found[1]) * _UNITS[found[2].lower().rstrip("s")]
        if not SHORTEST_SECONDS <= seconds <= 366 * 86_400:
            raise _wrong(text, "the period is from 5 minutes to 366 days")
        return Calendar(period_seconds=seconds)
    if found := _DAILY.fullmatch(words):
        return _read_cron(text, f"{found[2]} {found[1]} * * *")
    if found := _WEEKLY.fullmatch(words):
        return _read_cron(text, f"{found[3]} {found[2]} * * {found[1]}")
    return _read_cron(text, words)


def next_time(schedule: str, zone: str, after: float, anchor: float = 0.0) -> float:
    """The first time after `after`. A period counts from `anchor`, the time of the last."""
    calendar = read_schedule(schedule)
    if calendar.period_seconds is not None:
        periods = int((after - anchor) // calendar.period_seconds) + 1
        return anchor + max(periods, 1) * calendar.period_seconds
    local_zone = read_zone(zone)
    first = datetime.fromtimestamp(after, local_zone).date() - timedelta(days=1)
    for offset in range(_SEARCHED_DAYS):
        for found in _times_of(calendar, first + timedelta(days=offset), local_zone):
            if found > after:
                return found
    raise InputError("{schedule} never comes", schedule=schedule)


def _times_of(calendar: Calendar, day: date, zone: ZoneInfo) -> Iterator[float]:
    if not calendar.has_day(day):
        return
    last = None
    for hour in sorted(calendar.hours):
        for minute in sorted(calendar.minutes):
            found = _moment(datetime.combine(day, time(hour, minute)), zone)
            if found != last:
                yield found
            last = found


def _moment(local: datetime, zone: ZoneInfo) -> float:
    at = local.replace(tzinfo=zone)
    moment = at.timestamp()
    if datetime.fromtimestamp(moment, zone).replace(tzinfo=None) == local:
        return moment
    # The clocks go from `before` to `after` in the gap: the gap's end is where the two offsets meet.
    gap = (at.replace(fold=1).utcoffset() or timedelta()) - (at.utcoffset() or timedelta())
    start = local
    while datetime.fromtimestamp(start.replace(tzinfo=zone).timestamp(), zone).replace(tzinfo=None) != start:
        start -= timedelta(minutes=1)
        if local - start > abs(gap) + timedelta(hours=1):
            return moment
    return (
        (start + timedelta(minutes=1) - (start.replace(tzinfo=zone).utcoffset() or timedelta()))
        .replace(tzinfo=UTC)
        .timestamp()
    )


def _read_cron(text: str, words: str) -> Calendar:
    fields = words.split()
    if len(fields) != len(_FIELDS):
        raise _wrong(
            text, "write `every 6 hours`, `daily 07:30`, `weekly mon 07:30` or the five fields of cron"
        )
    minutes, hours, days, months, weekdays = (
        _read_field(text, field.lower(), *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    )
    calendar = Calendar(
        None,
        minutes,
        hours,
        days,
        months,
        frozenset(each % 7 for each in weekdays),
        fields[2].startswith("*"),
        fields[4].startswith("*"),
    )
    if not any(calendar.has_day(date(2024, 1, 1) + timedelta(days=offset)) for offset in range(366 * 4)):
        raise _wrong(text, "no such day exists")
    return calendar


def _read_field(text: str, field: str, least: int, most: int) -> frozenset[int]:
    names = _MONTHS if most == 12 else DAYS if most == 7 else ()
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if step and not (step.isdecimal() and len(step) <= 3 and int(step) > 0):
            raise _wrong(text, f"{part} is wrong")
        if span == "*":
            first, last = least, most if most != 7 else 6
        else:
            one, dash, other = span.partition("-")
            first = _read_number(text, one, names, least)
            last = _read_number(text, other, names, least) if dash else most if step else first
        if not least <= first <= last <= most:
            raise _wrong(text, f"{part} is not from {least} to {most}")
        found.update(range(first, last + 1, int(step or 1)))
    return frozenset(found)


def _read_number(text: str, word: str, names: tuple[str, ...], least: int) -> int:
    if word in names:
        return names.index(word) + (least if names is _MONTHS else 0)
    if not word.isdecimal() or len(word) > 2:
        raise _wrong(text, f"{word or 'nothing'} is not a number")
    return int(word)


def _wrong(text: str, problem: str) -> InputError:
    return InputError("the schedule {text} cannot be read: {problem}", text=text or "''", problem=problem)
