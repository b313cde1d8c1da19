"""Reads the dates that feeds carry into aware UTC datetimes of whole seconds.

It takes the standard forms first and the known strange ones after, and returns None for everything it is not
sure of: a wrong date is worse than none. It never asks a clock.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from headwater.formats.date_words import MILITARY_ZONES, MONTHS, WEEKDAYS, ZONES

# Outside of these years a date is a program's null value or a typing error, not a publication.
FIRST_YEAR: Final = 1000
LAST_YEAR: Final = 2200

_LONGEST: Final = 120

_RFC822 = re.compile(
    r"\s*+(?:[A-Za-z]{3,9}\s*+\.?,?\s*+)?(\d{1,2})[\s-]([A-Za-z]{3,9})[\s-](\d{4})\s++(\d{1,2}):(\d{2})(?::(\d{1,2}))?"
    r"(?:\.\d+)?\s*+(?:([+-])(\d{2}):?(\d{2})|([A-Za-z]{1,5}))?\s*+\Z"
)
_ISO = re.compile(
    r"\s*+(\d{4})(?:-?(\d{2})(?:-?(\d{2})(?:(?:\s*+[Tt]\s*+|\s++)(\d{1,2})(?::?(\d{2})(?::?(\d{2})(?:[.,]\d+)?)?)?"
    r"\s*+(?:[zZ]|(?:UTC|GMT)?\s*+([+-])\s*+(\d{1,2})(?::?(\d{2}))?Z?|([A-Za-z]{2,5}))?)?)?)?\s*+\Z"
)
_ISO_SHORT_YEAR = re.compile(r"\s*+(\d{2})-(\d{2})-(\d{2})\s*+\Z")
_ISO_TRUNCATED = re.compile(r"\s*+-(\d{2})-?(\d{2})\s*+\Z")  # year of the century and month
_ISO_ORDINAL = re.compile(r"\s*+(?:(\d{4})-?|(\d{2})-)(\d{3})\s*+\Z")
_ISO_WEEK = re.compile(r"\s*+(\d{4})-?[Ww](\d{2})(?:-?([1-7]))?\s*+\Z")
_ISO_DIGITS = re.compile(r"\s*+(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})\s*+\Z")
_EPOCH = re.compile(r"\s*+(\d{9,10}|\d{12,13})(?:\.\d+)?\s*+\Z")
_COMMENT = re.compile(r"\([^()]*\)")
_EAST_ASIAN = re.compile(
    r"\s*+(\d{4})\s*+[년年]\s*+(\d{1,2})\s*+[월月]\s*+(\d{1,2})\s*+[일日号]?\s*+(?:[(（].[)）]|星期.|[월화수목금토일]요일)?\s*+"
    r"(?:(오전|오후|上午|下午|午前|午後)\s*+)?(?:(\d{1,2})\s*+[:시時时点]\s*+(\d{1,2})\s*+(?:[:분分]\s*+(?:(\d{1,2})\s*+[초秒]?)?)?)?"
    r"\s*+([+-]\d{2}:?\d{2}|[A-Za-z]{1,5})?\s*+\Z"
)
_KOREAN_ISO = re.compile(r"\s*+(\d{4})-(\d{2})-(\d{2})\s++(오전|오후)\s++(\d{1,2}):(\d{2}):(\d{2})\s*+\Z")
_YEAR_FIRST = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_SLASHED = re.compile(r"(?<!\d)(\d{1,2})/(\d{1,2})/(\d{2,4})(?!\d)")
_SPACED = re.compile(r"(?<![\d:+-])(\d{1,2})\s(\d{1,2})\s(\d{4})(?![\d:])")
_DOTTED = re.compile(r"(?<![\d.])(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4}|\d{2})(?![\d.])")
_CLOCK = re.compile(r"(?<![\d:+-])(\d{1,2}):(\d{2})(?::(\d{1,2})(?:[.,]\d+)?)?(?![\d:])")
_MERIDIEM = re.compile(r"(?<=[\d\s])([ap])\.?\s?m\b\.?", re.IGNORECASE)
_OFFSET = re.compile(
    r"(?:\b(?:gmt|utc|z)\s?|(?<=\s))([+-])\s?(\d{1,2}):?(\d{2})?(?![\d:])(?:\s*+z\b)?", re.IGNORECASE
)
_OLSON = re.compile(r"\b([A-Z][A-Za-z]+(?:/[A-Z][A-Za-z0-9_+-]+){1,2})")
_ORDINAL_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th|er|º|ª)\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]+|\d+", re.UNICODE)
_NOISE: Final = frozenset(("de", "del", "of", "the", "um", "à", "den", "le", "г", "uhr", "v", "kl", "t"))
_WEEKDAY_NUMBERS: Final = {"mon": 0, "tue": 1, "wed": 2, "thu": 3, "fri": 4, "sat": 5, "sun": 6}


def parse_date(text: str | None) -> datetime | None:
    """The moment `text` names, in UTC (which is also assumed where no zone is given), or None."""
    if not text or len(text) > _LONGEST:
        return None
    if text[10:11] == "T" and (exact := _read_exact_iso(text)):
        return exact
    if text[3:5] == ", " and len(text) > _SHORTEST_EXACT and (exact := _read_exact_rfc822(text)):
        return exact
    if match := _RFC822.match(text):
        day, name, year, hour, minute, second, sign, zone_hours, zone_minutes, zone = match.groups()
        month = MONTHS.get(name.lower())
        offset = _offset(sign, zone_hours, zone_minutes) if sign else _zone_offset(zone)
        if month is not None and offset is not None:
            return _moment(int(year), month, int(day), int(hour), int(minute), int(second or 0), offset)
    elif (match := _ISO.match(text)) and not _is_meridiem(match):
        return _read_iso(match)
    try:
        return _read_uncommon(text.strip())
    except (ValueError, OverflowError):
        return None


def _read_exact_iso(text: str) -> datetime | None:
    """The standard form as the standard library reads it, which is faster; None leaves it to the others."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if not FIRST_YEAR < moment.year < LAST_YEAR:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC, microsecond=0)
    if moment.tzinfo is not UTC:
        if not -_LARGEST_OFFSET <= (moment.utcoffset() or _ZERO) <= _LARGEST_OFFSET:
            return None
        moment = moment.astimezone(UTC)
    return moment.replace(microsecond=0) if moment.microsecond else moment


_MONTHS: Final = {name.title(): f"{number:02}" for name, number in MONTHS.items() if len(name) == 3}
_UTC_NAMES: Final = frozenset((" GMT", " UTC", " +0000", " -0000", " Z"))
_SHORTEST_EXACT: Final = len("Tue, 10 Nov 2026 08:05:00")
_NUMERIC_ZONE: Final = len(" +0200")


def _read_exact_rfc822(text: str) -> datetime | None:
    """`Tue, 10 Nov 2026 08:05:00 GMT`, which most publishers write; None leaves it to the others."""
    month, zone = _MONTHS.get(text[8:11]), text[25:]
    if month is None or not text[7] == text[11] == text[16] == " ":
        return None
    if zone in _UTC_NAMES:
        return _read_exact_iso(f"{text[12:16]}-{month}-{text[5:7]}T{text[17:25]}Z")
    if len(zone) != _NUMERIC_ZONE or zone[1] not in "+-":
        return None
    return _read_exact_iso(f"{text[12:16]}-{month}-{text[5:7]}T{text[17:25]}{zone[1:]}")


def _is_meridiem(iso: re.Match[str]) -> bool:
    return (iso[10] or "").lower() in ("am", "pm")


def _read_iso(match: re.Match[str]) -> datetime | None:
    year, month, day, hour, minute, second, sign, zone_hours, zone_minutes, zone = match.groups()
    if (digits := match[0].strip()).isdigit() and len(
        digits
    ) == 6:  # YYMMDD, or YYYYMM: only when it cannot be both
        return (
            None if 1900 <= int(year) <= LAST_YEAR else _read_short_year(digits[:2], digits[2:4], digits[4:])
        )
    offset = _offset(sign, zone_hours, zone_minutes) if sign else _zone_offset(zone)
    if offset is None:
        return None
    return _moment(
        int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0), offset
    )


def _moment(
    year: int, month: int, day: int, hour: int, minute: int, second: int, offset: timedelta | ZoneInfo
) -> datetime | None:
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    carry = 0
    if second == 60:  # a leap second; POSIX time has none
        second, carry = 59, 1
    if hour == 24 and minute == second == 0:  # ISO 8601's other midnight
        hour, carry = 0, 86400
    try:
        if isinstance(offset, ZoneInfo):
            moment = datetime(year, month, day, hour, minute, second, tzinfo=offset).astimezone(UTC)
        else:
            moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            if offset:
                moment -= offset
        return moment + timedelta(seconds=carry) if carry else moment
    except (ValueError, OverflowError):
        return None


_ZERO: Final = timedelta()
_LARGEST_OFFSET: Final = timedelta(hours=14, minutes=59)


@lru_cache(maxsize=256)
def _offset(sign: str, hours: str, minutes: str | None) -> timedelta | None:
    size = int(hours) * 60 + int(minutes or 0)
    if size > 14 * 60 + 59 or int(minutes or 0) > 59:
        return None
    return timedelta(minutes=-size if sign == "-" else size)


def _zone_offset(zone: str | None) -> timedelta | None:
    if not zone:
        return _ZERO
    zone = zone.lower()
    if zone in ZONES:
        return timedelta(minutes=ZONES[zone])
    return _ZERO if zone in MILITARY_ZONES else None


@cache
def _olson_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _read_uncommon(text: str) -> datetime | None:
    if match := _EPOCH.match(text):
        seconds = int(match[1])
        if seconds >= 10**11:
            seconds //= 1000
        return datetime.fromtimestamp(seconds, UTC)
    if match := _ISO_DIGITS.match(text):
        year, month, day, hour, minute, second = map(int, match.groups())
        return _moment(year, month, day, hour, minute, second, _ZERO)
    if match := _ISO_SHORT_YEAR.match(text):
        return _read_short_year(match[1], match[2], match[3])
    if match := _ISO_TRUNCATED.match(text):
        return _read_short_year(match[1], match[2], "1")
    if match := _ISO_ORDINAL.match(text):
        year = _full_year(match[1] or match[2])
        first = _moment(year, 1, 1, 0, 0, 0, _ZERO)
        moment = first and first + timedelta(days=int(match[3]) - 1)
        return moment if moment and moment.year == year else None
    if match := _ISO_WEEK.match(text):
        return datetime.fromisocalendar(int(match[1]), int(match[2]), int(match[3] or 1)).replace(tzinfo=UTC)
    if match := _EAST_ASIAN.match(text):
        return _read_east_asian(match, korean="년" in text)
    if match := _KOREAN_ISO.match(text):
        hours = _twelve_hours(int(match[5]), "p" if match[4] == "오후" else "a")
        date = (int(match[1]), int(match[2]), int(match[3]))
        return _moment(*date, hours, int(match[6]), int(match[7]), timedelta(hours=9))
    return _read_words(text)


def _read_east_asian(match: re.Match[str], *, korean: bool) -> datetime | None:
    year, month, day, meridiem, hour, minute, second, zone = match.groups()
    hours = int(hour or 0)
    if meridiem:
        hours = _twelve_hours(hours, "p" if meridiem in ("오후", "下午", "午後") else "a")
    offset: timedelta | None
    if zone and zone[0] in "+-":
        offset = _offset(zone[0], zone[1:3], zone[-2:])
    elif zone:
        offset = _zone_offset(zone)
    else:  # Korean has one zone; the other scripts are written in several
        offset = timedelta(hours=9) if korean and hour else _ZERO
    if offset is None:
        return None
    return _moment(int(year), int(month), int(day), hours, int(minute or 0), int(second or 0), offset)


def _read_words(text: str) -> datetime | None:
    """Forms with words in them: each part is found and taken out, and nothing may be left over."""
    previous = None
    while previous != text:  # comments may nest
        previous, text = text, _COMMENT.sub(" ", text)
    zone: timedelta | ZoneInfo | None = None
    if (match := _OLSON.search(text)) and match[1] in _olson_zones():
        zone, text = ZoneInfo(match[1]), _cut(text, match)
    hour = minute = second = 0
    meridiem = _MERIDIEM.search(text)
    text = _cut(text, meridiem) if meridiem else text
    if clock := _CLOCK.search(text):
        hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
        before, after = text[: clock.start()], text[clock.end() :]
        if zone is None and (match := _OFFSET.search(" " + after)):
            zone = _offset(match[1], match[2], match[3])
            if zone is None:
                return None
            after = _cut(" " + after, match)
        text = f"{before} {after}"
    if meridiem:
        if not clock or hour > 23 or (hour == 0 and meridiem[1] in "pP"):
            return None
        hour = _twelve_hours(hour, meridiem[1].lower())
    weekday = next((_WEEKDAY_NUMBERS.get(word[:3].lower()) for word in _WORDS.findall(text)), None)
    year = month = day = None
    if match := _YEAR_FIRST.search(text):
        (year, month, day), text = (int(match[1]), int(match[2]), int(match[3])), _cut(text, match)
    elif match := _SLASHED.search(text):
        numbers = _read_numbers(match, weekday, american=bool(meridiem))
        if numbers is None:
            return None
        (year, month, day), text = numbers, _cut(text, match)
    elif match := _DOTTED.search(text):
        (day, month, year), text = (int(match[1]), int(match[2]), _full_year(match[3])), _cut(text, match)
    elif match := _SPACED.search(text):
        numbers = _read_numbers(match, weekday, american=False)
        if numbers is None:
            return None
        (year, month, day), text = numbers, _cut(text, match)
    left: list[str] = []
    for word in _WORDS.findall(_ORDINAL_DAY.sub(r"\1", text)):
        lower = word.lower()
        if word.isdigit():
            left.append(word)
        elif lower in MONTHS and month is None and not (lower in WEEKDAYS and _names_month_later(text, word)):
            month = MONTHS[lower]
        elif (
            lower in WEEKDAYS
            or lower in _NOISE
            or (lower == "at" and not text.rstrip().lower().endswith("at"))
        ):
            continue
        elif lower in ZONES:
            zone = timedelta(minutes=ZONES[lower]) if zone is None else zone  # "-0700 MST" says it twice
        else:
            return None
    if year is None:
        if clock and len(left) < 2:
            return None
        year, day = _year_and_day(left)
    elif left:
        return None
    if month is None or day is None:
        return None
    return _moment(year, month, day, hour, minute, second, _ZERO if zone is None else zone)


def _cut(text: str, match: re.Match[str]) -> str:
    return f"{text[: match.start()]} {text[match.end() :]}"


def _names_month_later(text: str, word: str) -> bool:
    """Whether another word is the month: "mar" is a Spanish Tuesday and an English March."""
    after = text[text.index(word) + len(word) :]
    return any(other.lower() in MONTHS for other in _WORDS.findall(after))


def _year_and_day(numbers: list[str]) -> tuple[int, int]:
    """Beside the name of a month: a year alone, or a year and a day."""
    match [len(number) for number in numbers]:
        case [4]:
            return int(numbers[0]), 1
        case [4, 1 | 2]:
            return int(numbers[0]), int(numbers[1])
        case [1 | 2, 4 | 2]:
            return _full_year(numbers[1]), int(numbers[0])
        case _:
            raise ValueError(numbers)


def _read_numbers(
    match: re.Match[str], weekday: int | None, *, american: bool
) -> tuple[int, int, int] | None:
    """Three numbers as (year, month, day), if only one reading of them is possible."""
    first, second, third = match.groups()
    if len(third) == 3:
        return None
    left, right, year = int(first), int(second), _full_year(third)
    readings = {(year, right, left), (year, left, right)}
    possible = {reading for reading in readings if reading[1] <= 12}
    if len(possible) > 1 and weekday is not None:
        possible = {(y, m, d) for y, m, d in possible if d <= 31 and _weekday(y, m, d) == weekday}
    if len(possible) > 1 and american:
        return year, left, right
    # 03/04/2023 is March in one country and April in the next.
    return possible.pop() if len(possible) == 1 else None


def _weekday(year: int, month: int, day: int) -> int | None:
    try:
        return datetime(year, month, day, tzinfo=UTC).weekday()
    except ValueError:
        return None


def _read_short_year(year: str, month: str, day: str) -> datetime | None:
    return _moment(_full_year(year), int(month), int(day), 0, 0, 0, _ZERO)


def _full_year(digits: str) -> int:
    year = int(digits)
    if len(digits) > 2:
        return year
    return year + (2000 if year < 69 else 1900)


def _twelve_hours(hour: int, half: str) -> int:
    if half == "p":
        return hour + 12 if hour < 12 else hour
    return 0 if hour == 12 else hour
