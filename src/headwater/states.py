"""The state of a source: one word for how it is doing, the same in the API, on the command line and on pages.

    removed   a person removed it
    paused    a person paused it
    gone      its publisher says that it is gone for good (410)
    failing   its last visits failed; after many failures it is visited daily or weekly until it works
    pending   not visited yet
    late      the new items of its last productive visit were found later than its target
    on_time   everything else

The first that applies counts. `store.collecting.states` says the same in SQL. Pure.
"""

from datetime import UTC, datetime, tzinfo
from typing import Final, Literal, Protocol

from headwater.errors import FailureKind
from headwater.language import Language, retell, translate

SourceState = Literal["pending", "on_time", "late", "failing", "paused", "gone", "removed"]
SOURCE_STATES: Final[tuple[SourceState, ...]] = (
    "on_time",
    "late",
    "failing",
    "pending",
    "paused",
    "gone",
    "removed",
)

_WORDS: dict[SourceState, str] = {
    "pending": "not visited yet",
    "on_time": "on time",
    "late": "late",
    "failing": "failing",
    "paused": "paused",
    "gone": "gone",
    "removed": "removed",
}


_FAILURES: dict[str, str] = {
    FailureKind.DNS: "host not found",
    FailureKind.CONNECT: "no connection",
    FailureKind.TLS: "TLS error",
    FailureKind.TIMEOUT: "timeout",
    FailureKind.BLOCKED: "address refused",
    FailureKind.REDIRECT: "bad redirect",
    FailureKind.TOO_LARGE: "too large",
    FailureKind.BROKEN: "broken transfer",
    FailureKind.RATE_LIMITED: "rate limited",
    FailureKind.UNAUTHORIZED: "credentials refused",
    FailureKind.FORBIDDEN: "forbidden",
    FailureKind.NOT_FOUND: "not found",
    FailureKind.GONE: "gone",
    FailureKind.CLIENT_ERROR: "other client error",
    FailureKind.SERVER_ERROR: "server error",
    FailureKind.NOT_A_FEED: "not a feed",
    FailureKind.MALFORMED: "damaged",
    FailureKind.CHANGED_STRUCTURE: "page has changed",
    FailureKind.INTERNAL: "internal error",
}


def tell_failure_kind(kind: str, language: Language | None = None) -> str:
    """Why visits failed, in a word or two."""
    return translate(_FAILURES.get(kind, kind), language)


class Stateful(Protocol):
    """What of a source its state is found from."""

    @property
    def is_deleted(self) -> bool: ...
    @property
    def schedule_enabled(self) -> bool: ...
    @property
    def status(self) -> str: ...
    @property
    def consecutive_failures(self) -> int: ...
    @property
    def last_fetched_at(self) -> float | None: ...
    @property
    def is_late(self) -> bool: ...


class Planned(Stateful, Protocol):
    @property
    def next_fetch_at(self) -> float | None: ...


class Failed(Stateful, Protocol):
    @property
    def last_error(self) -> str | None: ...
    @property
    def last_error_kind(self) -> str | None: ...
    @property
    def failing_since_at(self) -> float | None: ...


def find_state(source: Stateful) -> SourceState:
    """The one state of a source."""
    if source.is_deleted:
        return "removed"
    if not source.schedule_enabled:
        return "paused"
    if source.status == "retired":
        return "gone"
    if source.consecutive_failures > 0:
        return "failing"
    if source.last_fetched_at is None:
        return "pending"
    return "late" if source.is_late else "on_time"


def needs_attention(source: Failed) -> bool:
    """Whether only a person can help: its credentials are refused, or it redirects to where they are not sent."""
    if not is_visited(source):
        return False
    is_refused = source.consecutive_failures > 0 and source.last_error_kind == FailureKind.UNAUTHORIZED
    return is_refused or source.status == "needs_attention"


NO_VISIT_AT: Final = 4_102_444_800.0  # the year 2100: where items are handed over, no visit is ever due


def next_visit_at(source: Planned) -> float | None:
    """When the next visit is planned; None when none is: it is paused, gone or removed, or has no plan yet, or its
    items are handed over.
    """
    at = source.next_fetch_at
    return at if is_visited(source) and (at is None or at < NO_VISIT_AT) else None


def is_visited(source: Stateful) -> bool:
    """Whether the collector visits the source at all."""
    return find_state(source) not in ("paused", "gone", "removed")


def tell_state(state: SourceState, language: Language | None = None) -> str:
    """The state in words."""
    return translate(_WORDS[state], language)


def tell_failure(source: Failed, language: Language | None = None, zone: tzinfo = UTC) -> str | None:
    """The error of a source that fails or is gone, and since when; None for all others."""
    if source.last_error is None or find_state(source) not in ("failing", "gone"):
        return None
    if source.failing_since_at is None:
        return translate("the last visit failed: {error}", language).format(error=_error_of(source, language))
    since = datetime.fromtimestamp(source.failing_since_at, zone).strftime("%Y-%m-%d %H:%M")
    return translate("failing since {since}: {error}", language).format(
        since=since, error=_error_of(source, language)
    )


def _error_of(source: Failed, language: Language | None) -> str:
    return retell(source.last_error or "", language)


def tell_advice(source: Failed, language: Language | None = None) -> str | None:
    """What its owner can do about the state of a source; None when there is nothing to do."""
    advice = _find_advice(source)
    return None if advice is None else str(translate(advice, language))


_OF_KINDS: dict[str, str] = {
    FailureKind.UNAUTHORIZED: "set its credentials again; it is then visited at once",
    FailureKind.FORBIDDEN: "check in a browser whether the address is public; it may need credentials",
    FailureKind.NOT_FOUND: "check its address, and give it the new one if it has moved",
    FailureKind.NOT_A_FEED: "check its address: it may point to a page instead of a feed",
    FailureKind.DNS: "check the spelling of its host; if the site no longer exists, remove the source",
    FailureKind.BLOCKED: "check its address; a private one must be allowed in the setting `allow_hosts`",
    FailureKind.TOO_LARGE: "raise the setting `max_body_megabytes`, or remove the source",
    FailureKind.CHANGED_STRUCTURE: "check its config against what the page looks like now",
}


def _find_advice(source: Failed) -> str | None:
    match find_state(source):
        case "removed":
            return "restore it if you want it back"
        case "paused":
            return "resume it if you want it visited again"
        case "gone":
            return "give it another address, or remove it"
        case "late":
            return "raise the budget, or set a shorter interval for it"
        case "failing":
            return _OF_KINDS.get(source.last_error_kind or "", "nothing; Headwater retries it automatically")
        case _:
            return None
