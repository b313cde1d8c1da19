"""What the publisher's HTTP headers say about when to come back, as data (`model.Hints`).

Pure. It gives no meaning to the numbers: floors and caps are the schedule's business.
"""

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache

from headwater.model import NO_HINTS, Hints

_MAX_AGE = re.compile(r"(?:\A|[\s,;])max-age\s*=\s*\"?([0-9]{1,18})", re.ASCII | re.IGNORECASE)
_ALWAYS_ASK = re.compile(r"(?:\A|[\s,;])no-(?:cache|store)(?:\Z|[\s,;=])", re.IGNORECASE)
_DIGITS = re.compile(r"\A[0-9]{1,18}\Z")


def read_hints(headers: Mapping[str, str], now: float) -> Hints:
    """Hints from lower-case header names; `now` is the time of the answer, used where it has no Date."""
    control = headers.get("cache-control")
    if control is not None and not ("expires" in headers or "retry-after" in headers or "age" in headers):
        return _control_hints(control)
    max_age = _max_age(headers, now)
    retry_after = None
    if (value := headers.get("retry-after")) is not None:
        retry_after = parse_retry_after(value, headers.get("date"), now)
    if max_age is None and retry_after is None:
        return NO_HINTS
    return Hints(max_age_seconds=max_age, retry_after_seconds=retry_after)


def parse_retry_after(value: str, date: str | None, now: float) -> float | None:
    """Seconds to wait, from either form. A date counts from the publisher's own clock where it shows it."""
    value = value.strip()
    if _DIGITS.match(value):
        return float(value)
    until = parse_date(value)
    if until is None:
        return None
    return max(0.0, until - _date_or(date, now))


def parse_date(value: str) -> float | None:
    """An HTTP date as seconds since the epoch; None for anything else."""
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _max_age(headers: Mapping[str, str], now: float) -> float | None:
    control = headers.get("cache-control")
    seconds = None if control is None else _read_control(control)
    if seconds is None:
        expires = headers.get("expires")
        if expires is None:
            return None
        until = parse_date(expires)
        # "0", "-1" and other non-dates mean "already expired" (RFC 9111, 5.3).
        seconds = 0.0 if until is None else until - _date_or(headers.get("date"), now)
    age = headers.get("age", "")
    if _DIGITS.match(age):
        seconds -= float(age)
    return max(0.0, seconds)


@lru_cache(256)  # the web knows few values of this header
def _control_hints(control: str) -> Hints:
    seconds = _read_control(control)
    return NO_HINTS if seconds is None else Hints(max_age_seconds=seconds)


def _read_control(control: str) -> float | None:
    if _ALWAYS_ASK.search(control):
        return 0.0
    match = _MAX_AGE.search(control)
    return None if match is None else float(match[1])


def _date_or(date: str | None, now: float) -> float:
    parsed = parse_date(date) if date is not None else None
    return now if parsed is None else parsed
