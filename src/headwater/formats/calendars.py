"""Reads iCalendar (RFC 5545): events with their recurrences, as far as they begin within a span of time. Pure.

Recurrences go by days, weeks, months and years with the usual parts (BYDAY with ordinals, BYMONTHDAY, BYMONTH,
BYSETPOS, COUNT, UNTIL, EXDATE, RDATE); a rule beyond that counts as its first event. Times are local to their zone, so
that a meeting at nine stays at nine over a change of clocks.
"""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from headwater.errors import FailureKind, ParseError
from headwater.formats.charset import decode

MOST_EVENTS: Final = 20_000  # of one calendar
MOST_PERIODS: Final = 4_000  # that are looked through for one event's recurrences
MOST_ALL_PERIODS: Final = 60_000  # for all events of a calendar
LONGEST_LINE: Final = 200_000
_FOLD: Final = re.compile(r"\r?\n[ \t]")
_LINE: Final = re.compile(
    r'([A-Za-z0-9-]{1,60})((?:;[^":;=]{1,60}=(?:"[^"]{0,1000}"|[^":;]{0,1000}))*+):(.*)', re.DOTALL
)
_PARAMETER: Final = re.compile(r';([^":;=]+)=("[^"]*"|[^":;]*)')
_MOMENT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)?(Z)?)?\Z")
_DURATION: Final = re.compile(
    r"\+?P(?:(\d{1,4})W)?(?:(\d{1,5})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,7})S)?)?\Z"
)
_DAYS: Final = {"MO": 0, "TU": 1, "WE": 2, "TH": 3, "FR": 4, "SA": 5, "SU": 6}
_ESCAPES: Final = {"n": "\n", "N": "\n", ",": ",", ";": ";", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Event:
    """One event, or one recurrence of it. `starts` and `ends` are aware; of a whole day, midnight in its zone."""

    uid: str
    title: str
    starts: datetime
    ends: datetime | None = None
    is_whole_day: bool = False
    zone: str | None = None
    recurs: bool = False
    place: str | None = None
    description: str | None = None
    html: str | None = None
    url: str | None = None
    organizer: str | None = None
    status: str | None = None
    categories: tuple[str, ...] = ()
    created: datetime | None = None
    modified: datetime | None = None


@dataclass(frozen=True, slots=True)
class Calendar:
    title: str | None = None
    description: str | None = None
    url: str | None = None
    events: tuple[Event, ...] = ()
    left_out: int = 0  # events that lie outside of the span


@dataclass(slots=True)
class _Value:
    text: str
    parameters: dict[str, str]


_Component = dict[str, list[_Value]]


@dataclass(slots=True)
class _Budget:
    periods: int = MOST_ALL_PERIODS


def is_calendar(data: bytes) -> bool:
    return b"BEGIN:VCALENDAR" in data[:1024].upper()


def read_calendar(
    data: bytes,
    *,
    after: datetime,
    before: datetime,
    most_recurrences: int = 1,
    content_type: str | None = None,
) -> Calendar:
    """The events that end after `after` and begin before `before`, the next first. ParseError when it is none.

    Of an event that recurs, its next `most_recurrences`.
    """
    if not is_calendar(data):
        raise ParseError("This is not a calendar.")
    about, components = _components(decode(data, content_type).text)
    zone = _zone(_text(about, "X-WR-TIMEZONE") or _text(about, "TIMEZONE-ID"))
    changed = {key for each in components if (key := _recurrence_key(each, zone)) is not None}
    budget = _Budget()
    events: list[Event] = []
    left_out = 0
    for component in components:
        event = _event(component, zone)
        if event is None:
            left_out += 1
            continue
        found: list[Event] = []
        for each in _occurrences(event, component, zone, after, budget):
            if each.starts >= before or len(found) >= most_recurrences:
                break
            if each.recurs and (each.uid, each.starts) in changed:
                continue
            if (each.ends or each.starts) > after:
                found.append(each)
        if event.recurs and _recurrence_key(component, zone) is None:
            found = [replace(each, uid=f"{each.uid}/{_name_of(each)}") for each in found]
        events += found
        left_out += not found
    events.sort(key=lambda each: each.starts)
    return Calendar(
        _text(about, "X-WR-CALNAME") or _text(about, "NAME"),
        _text(about, "X-WR-CALDESC") or _text(about, "DESCRIPTION"),
        _text(about, "URL"),
        tuple({each.uid: each for each in events}.values()),
        left_out,
    )


def _components(text: str) -> tuple[_Component, list[_Component]]:
    """What the calendar says of itself, and its events."""
    about: _Component = {}
    events: list[_Component] = []
    inside: list[str] = []
    for line in _FOLD.sub("", text).splitlines():
        if len(line) > LONGEST_LINE or (match := _LINE.fullmatch(line)) is None:
            continue
        name, value = match[1].upper(), match[3]
        if name == "BEGIN":
            inside.append(value.strip().upper())
            if inside[-1] == "VEVENT":
                if len(events) >= MOST_EVENTS:
                    break
                events.append({})
        elif name == "END":
            if inside:
                inside.pop()
        elif inside:
            parameters = {key.upper(): said.strip('"') for key, said in _PARAMETER.findall(match[2])}
            if inside[-1] == "VEVENT":
                events[-1].setdefault(name, []).append(_Value(value, parameters))
            elif inside == ["VCALENDAR"]:
                about.setdefault(name, []).append(_Value(value, parameters))
    if not about and not events:
        raise ParseError("The calendar cannot be read.", kind=FailureKind.MALFORMED)
    return about, events


def _text(component: _Component, name: str) -> str | None:
    values = component.get(name)
    if not values:
        return None
    return re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), values[0].text).strip() or None


def _zone(name: str | None) -> tzinfo | None:
    """A zone by its name in the tz database, which may stand at the end of a longer one; None: not known."""
    parts = (name or "").strip().strip('"').split("/")
    for start in range(len(parts)):
        try:
            return ZoneInfo("/".join(parts[start:]))
        except (ValueError, OSError, KeyError):
            continue
    return None


def _moment(value: _Value, zone: tzinfo | None) -> tuple[datetime, bool] | None:
    """The moment of a value, and whether it is a whole day."""
    match = _MOMENT.match(value.text.strip())
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    place = UTC if match[7] else _zone(value.parameters.get("TZID")) or zone or UTC
    try:
        if match[4] is None:
            return datetime(year, month, day, tzinfo=zone or UTC), True
        second = min(int(match[6] or 0), 59)
        return datetime(year, month, day, int(match[4]), int(match[5]), second, tzinfo=place), False
    except ValueError:
        return None


def _moment_of(component: _Component, name: str, zone: tzinfo | None) -> datetime | None:
    values = component.get(name)
    found = _moment(values[0], zone) if values else None
    return found[0] if found else None


def _recurrence_key(component: _Component, zone: tzinfo | None) -> tuple[str, datetime] | None:
    """Which recurrence of which event a component stands for instead."""
    at = _moment_of(component, "RECURRENCE-ID", zone)
    return None if at is None else (_text(component, "UID") or "", at)


def _event(component: _Component, zone: tzinfo | None) -> Event | None:
    values = component.get("DTSTART")
    started = _moment(values[0], zone) if values else None
    if started is None or values is None:
        return None
    starts, is_whole_day = started
    ends = _moment_of(component, "DTEND", zone)
    if ends is None and (said := _text(component, "DURATION")):
        ends = _later(starts, said)
    if ends is None and is_whole_day:
        ends = starts + timedelta(days=1)
    title = " ".join((_text(component, "SUMMARY") or "").split())
    uid = _text(component, "UID") or f"{starts.isoformat()} {title}"
    key = _recurrence_key(component, zone)
    if key is not None:
        uid = f"{uid}/{_named(key[1], is_whole_day)}"
    organizer = component.get("ORGANIZER")
    categories = [
        word.strip() for each in component.get("CATEGORIES", ()) for word in re.split(r"(?<!\\),", each.text)
    ]
    html = component.get("X-ALT-DESC")
    return Event(
        uid=uid,
        title=title,
        starts=starts,
        ends=ends if ends is not None and ends > starts else None,
        is_whole_day=is_whole_day,
        zone=None if is_whole_day else getattr(starts.tzinfo, "key", None),
        recurs=bool(component.get("RRULE") or component.get("RDATE")),
        place=_text(component, "LOCATION"),
        description=_text(component, "DESCRIPTION"),
        html=_text(component, "X-ALT-DESC")
        if html and html[0].parameters.get("FMTTYPE") == "text/html"
        else None,
        url=_text(component, "URL"),
        organizer=organizer[0].parameters.get("CN") if organizer else None,
        status=(_text(component, "STATUS") or "").upper() or None,
        categories=tuple(dict.fromkeys(word.replace("\\,", ",") for word in categories if word)),
        created=_moment_of(component, "CREATED", None),
        modified=_moment_of(component, "LAST-MODIFIED", None),
    )


def _named(at: datetime, is_whole_day: bool) -> str:
    return at.strftime("%Y%m%d") if is_whole_day else at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _name_of(event: Event) -> str:
    return _named(event.starts, event.is_whole_day)


def _later(starts: datetime, duration: str) -> datetime | None:
    match = _DURATION.match(duration)
    if match is None:
        return None
    weeks, days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    try:
        return starts + timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        return None


def _occurrences(
    event: Event, component: _Component, zone: tzinfo | None, after: datetime, budget: _Budget
) -> Iterator[Event]:
    """The event at each of its times, in order; what lies long before `after` may be left out."""
    if not event.recurs:
        yield event
        return
    length = None if event.ends is None else event.ends - event.starts
    excluded = set(_moments(component, "EXDATE", zone))
    added = sorted(_moments(component, "RDATE", zone))
    rule = _Rule.read(_text(component, "RRULE"), event.starts, zone)
    moments = iter([event.starts]) if rule is None else rule.moments(after - (length or timedelta()), budget)
    for at in _merged(moments, added):
        if at not in excluded:
            yield replace(event, starts=at, ends=None if length is None else at + length)


def _moments(component: _Component, name: str, zone: tzinfo | None) -> Iterator[datetime]:
    for value in component.get(name, ()):
        for part in value.text.split(","):
            if (found := _moment(_Value(part.partition("/")[0], value.parameters), zone)) is not None:
                yield found[0]


def _merged(moments: Iterator[datetime], added: list[datetime]) -> Iterator[datetime]:
    for at in moments:
        while added and added[0] < at:
            yield added.pop(0)
        if added and added[0] == at:
            added.pop(0)
        yield at
    yield from added


@dataclass(frozen=True, slots=True)
class _Rule:
    """A recurrence rule, and what it starts from."""

    starts: datetime
    frequency: str
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    days: tuple[tuple[int, int], ...] = ()  # (which of the month or year, 0 for each; weekday)
    month_days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    week_start: int = 0
    limits: frozenset[str] = field(default=frozenset())

    @classmethod
    def read(cls, text: str | None, starts: datetime, zone: tzinfo | None) -> "_Rule | None":
        """The rule; None where there is none, or one of a kind that is not read."""
        if text is None:
            return None
        parts = {
            name.upper(): said.upper() for name, _, said in (each.partition("=") for each in text.split(";"))
        }
        known = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS", "WKST"}
        if parts.get("FREQ") not in ("DAILY", "WEEKLY", "MONTHLY", "YEARLY") or not parts.keys() <= known:
            return None
        try:
            until = _moment(_Value(parts["UNTIL"], {}), starts.tzinfo) if "UNTIL" in parts else None
            if until is not None and until[1]:
                until = (until[0] + timedelta(days=1, seconds=-1), True)
            return cls(
                starts,
                parts["FREQ"],
                max(int(parts.get("INTERVAL", 1)), 1),
                int(parts["COUNT"]) if "COUNT" in parts else None,
                until[0] if until else None,
                tuple(_weekday(each) for each in parts.get("BYDAY", "").split(",") if each),
                _numbers(parts.get("BYMONTHDAY")),
                _numbers(parts.get("BYMONTH")),
                _numbers(parts.get("BYSETPOS")),
                _DAYS.get(parts.get("WKST", "MO"), 0),
            )
        except (ValueError, KeyError):
            return None

    def moments(self, after: datetime, budget: _Budget) -> Iterator[datetime]:
        """Its moments in order; without a count, those long before `after` are left out."""
        number = 0
        skipped = self._periods_before(after) if self.count is None else 0
        last = self.starts - timedelta(seconds=1)
        for period in range(skipped, skipped + MOST_PERIODS):
            budget.periods -= 1
            if budget.periods < 0:
                return
            try:
                days = self._days_of(period)
                found = sorted(datetime.combine(day, self.starts.timetz()) for day in days)
            except (ValueError, OverflowError):
                return  # beyond the last year there is
            for at in found:
                if at < self.starts or at <= last:
                    continue
                if self.until is not None and at > self.until:
                    return
                last, number = at, number + 1
                if self.count is not None and number > self.count:
                    return
                yield at

    def _periods_before(self, after: datetime) -> int:
        days = max((after - self.starts).days, 0)
        long = {"DAILY": 1, "WEEKLY": 7, "MONTHLY": 31, "YEARLY": 366}[self.frequency] * self.interval
        return max(days // long - 1, 0)

    def _days_of(self, period: int) -> list[date]:
        first = self.starts.date()
        step = period * self.interval
        if self.frequency == "DAILY":
            days = [day for day in (first + timedelta(days=step),) if self._fits(day)]
        elif self.frequency == "WEEKLY":
            monday = first - timedelta(days=(first.weekday() - self.week_start) % 7) + timedelta(weeks=step)
            weekdays = {weekday for _, weekday in self.days} or {first.weekday()}
            week = (monday + timedelta(days=each) for each in range(7))
            days = [day for day in week if day.weekday() in weekdays and self._fits_month(day)]
        elif self.frequency == "MONTHLY":
            months = first.month - 1 + step
            year, month = first.year + months // 12, months % 12 + 1
            days = self._days_of_month(year, month) if self._fits_month(date(year, month, 1)) else []
        else:
            days = self._days_of_year(first.year + step)
        if self.positions:
            days = sorted(days)
            chosen = (each - 1 if each > 0 else len(days) + each for each in self.positions if each)
            days = [days[each] for each in chosen if 0 <= each < len(days)]
        return days

    def _fits_month(self, day: date) -> bool:
        return not self.months or day.month in self.months

    def _fits(self, day: date) -> bool:
        last = calendar.monthrange(day.year, day.month)[1]
        return (
            self._fits_month(day)
            and (not self.days or day.weekday() in {weekday for _, weekday in self.days})
            and (not self.month_days or day.day in self.month_days or day.day - last - 1 in self.month_days)
        )

    def _days_of_month(self, year: int, month: int) -> list[date]:
        last = calendar.monthrange(year, month)[1]
        if not self.days and not self.month_days:
            return [date(year, month, self.starts.day)] if self.starts.day <= last else []
        days = [date(year, month, day) for day in range(1, last + 1)]
        if self.month_days:
            days = [
                day for day in days if day.day in self.month_days or day.day - last - 1 in self.month_days
            ]
        return _nth(days, self.days) if self.days else days

    def _days_of_year(self, year: int) -> list[date]:
        if self.months or self.month_days:
            months = self.months or (range(1, 13) if self.month_days else (self.starts.month,))
            return [day for month in months if 1 <= month <= 12 for day in self._days_of_month(year, month)]
        if self.days:
            first = date(year, 1, 1)
            return _nth(
                [first + timedelta(days=each) for each in range(366 if calendar.isleap(year) else 365)],
                self.days,
            )
        try:
            return [date(year, self.starts.month, self.starts.day)]
        except ValueError:
            if year > 9_999:
                raise
            return []  # 29 February


def _weekday(text: str) -> tuple[int, int]:
    return int(text[:-2] or 0), _DAYS[text[-2:]]


def _numbers(text: str | None) -> tuple[int, ...]:
    return tuple(int(each) for each in (text or "").split(",") if each)


def _nth(days: list[date], wanted: tuple[tuple[int, int], ...]) -> list[date]:
    """Of days in order, those that are the nth of their weekday; of a weekday without a number, all."""
    found = set()
    for number, weekday in wanted:
        of_weekday = [day for day in days if day.weekday() == weekday]
        if number == 0:
            found |= set(of_weekday)
        elif abs(number) <= len(of_weekday):
            found.add(of_weekday[number - 1 if number > 0 else number])
    return sorted(found)
