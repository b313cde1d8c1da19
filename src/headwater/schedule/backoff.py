"""How long to stay away after a failure, when to pause, and when the fault is our own.

Pure functions over numbers and kinds of failure. The kind comes from the failure itself; the words of a
message are read only where there is nothing else.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from headwater.errors import FailureKind

_MINUTE = 60.0
_HOUR = 3600.0
_DAY = 24 * _HOUR

Preset = Literal["cadence", "pipeline", "refresh"]

RATE_LIMITED_SECONDS = 6 * _HOUR
FORBIDDEN_SECONDS = 12 * _HOUR
FIRST_SECONDS = 15 * _MINUTE
MAX_SECONDS = 24 * _HOUR
PIPELINE_MAX_SECONDS = 2 * _HOUR
REFRESH_SECONDS = (15 * _MINUTE, 30 * _MINUTE, 60 * _MINUTE)
MAX_RETRY_AFTER_SECONDS = 7 * _DAY
PROBE_PAUSED_SECONDS = _DAY
PROBE_ERROR_SECONDS = 7 * _DAY

_RATE_WORDS = ("429", "rate", "频繁")
_AUTH_WORDS = ("401", "expired", "过期")
_FORBIDDEN_WORDS = ("403", "forbidden")


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed visit, as the back-off sees it. `count` is the number in a row, this one included."""

    count: int
    kind: FailureKind | None = None
    http_status: int | None = None
    message: str = ""
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """After how many failures in a row a source is paused, and after how many it is in error."""

    paused: int = 5
    error: int = 10


DEFAULT_THRESHOLDS = Thresholds()


def classify_failure(failure: Failure) -> Literal["rate", "auth", "forbidden", "other"]:
    """Which row of the table applies: by kind, else by status, else by the message's words."""
    if failure.kind is not None:
        if failure.kind is FailureKind.RATE_LIMITED:
            return "rate"
        if failure.kind is FailureKind.UNAUTHORIZED:
            return "auth"
        if failure.kind is FailureKind.FORBIDDEN:
            return "forbidden"
        return "other"
    if failure.http_status is not None:
        if failure.http_status == 429:
            return "rate"
        if failure.http_status in (401, 407):
            return "auth"
        if failure.http_status in (403, 451):
            return "forbidden"
        return "other"
    return classify_message(failure.message)


def classify_message(message: str) -> Literal["rate", "auth", "forbidden", "other"]:
    """The last resort: what a message's words say, in the order of the table."""
    words = message.lower()
    if any(word in words for word in _RATE_WORDS):
        return "rate"
    if any(word in words for word in _AUTH_WORDS):
        return "auth"
    if any(word in words for word in _FORBIDDEN_WORDS):
        return "forbidden"
    return "other"


def double_from(first: float, count: int, longest: float) -> float:
    """`first` doubled with every failure after the first one, without overflowing on the way to `longest`."""
    if count <= 0:
        return 0.0
    return min(first * 2.0 ** min(count - 1, 64), longest)


def find_backoff(failure: Failure, preset: Preset = "cadence", base_seconds: float = FIRST_SECONDS) -> float:
    """Seconds to stay away. A Retry-After of the publisher's counts for more than any table."""
    if failure.retry_after_seconds is not None and failure.retry_after_seconds > 0:
        return min(failure.retry_after_seconds, MAX_RETRY_AFTER_SECONDS)
    if preset == "pipeline":
        return min(base_seconds * 2.0 ** min(max(failure.count, 0), 64), PIPELINE_MAX_SECONDS)
    if preset == "refresh":
        return REFRESH_SECONDS[min(max(failure.count, 1), len(REFRESH_SECONDS)) - 1]
    row = classify_failure(failure)
    if row == "rate":
        return RATE_LIMITED_SECONDS
    if row == "auth":
        return 0.0
    if row == "forbidden":
        return FORBIDDEN_SECONDS
    return double_from(FIRST_SECONDS, failure.count, MAX_SECONDS)


def find_status(count: int, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Literal["ok", "paused", "error"]:
    if count >= thresholds.error:
        return "error"
    if count >= thresholds.paused:
        return "paused"
    return "ok"


def find_probe(count: int, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> float | None:
    """Seconds between two probes of a source that is paused or in error; None while it is neither."""
    status = find_status(count, thresholds)
    if status == "error":
        return PROBE_ERROR_SECONDS
    if status == "paused":
        return PROBE_PAUSED_SECONDS
    return None


def is_our_outage(
    failed_hosts: Collection[str], visited_hosts: Collection[str], *, at_least: int = 5, share: float = 0.5
) -> bool:
    """Whether so many distinct hosts fail at once that the fault must be on our side.

    Then no source's failure count moves. Below `at_least` failing hosts there is no telling which it is.
    """
    failed = set(failed_hosts)
    return len(failed) >= at_least and len(failed) > share * len(set(visited_hosts) | failed)
