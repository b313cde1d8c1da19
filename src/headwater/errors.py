"""Everything Headwater raises on purpose.

HeadwaterError
├── InputError              what the user gave is wrong; the message names it and the way out
│   ├── SettingError        a setting has a value that is not allowed
│   ├── NotFoundError       there is no such source, item, …
│   ├── ConflictError       it does not fit what there is: a duplicate, a source that is paused
│   └── ChangedError        it was changed by someone else after it had been read
├── StoreError              the database cannot be used
│   ├── NewerDatabaseError  it was written by a newer Headwater
│   ├── IncrementalStateCorrupted  the state of sitemaps that become feeds is damaged
│   └── BusySiteError       another run is at work on the same site
├── StepError               a piece of work failed: a step, a message, a digest
│   └── PassingStepError    … and may succeed later
└── VisitError              a visit to a source failed; carries its kind of failure
    ├── FetchError          … on the way to the bytes
    └── ParseError          … in the bytes

A message is a template and its values, so that it can be shown in either language and so that a test can
compare meaning instead of prose.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Self

from headwater.language import Language, translate


class FailureKind(StrEnum):
    """Why a visit failed. Decides the back-off, so it comes from the failure itself, never from its words."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    BLOCKED = "blocked"  # our guard refused the address
    REDIRECT = "redirect"  # a loop, too many, or to nowhere
    TOO_LARGE = "too_large"
    BROKEN = "broken"  # the transfer was cut, or is not HTTP
    RATE_LIMITED = "rate_limited"  # 429
    UNAUTHORIZED = "unauthorized"  # 401, 407
    FORBIDDEN = "forbidden"  # 403, 451
    NOT_FOUND = "not_found"  # 404
    GONE = "gone"  # 410
    CLIENT_ERROR = "client_error"  # any other 4xx
    SERVER_ERROR = "server_error"  # 5xx
    NOT_A_FEED = "not_a_feed"  # the answer is something else than what the source's type reads
    MALFORMED = "malformed"  # it is the right thing, damaged beyond reading
    CHANGED_STRUCTURE = "changed_structure"  # it reads, but what used to be in it is not there any more
    INTERNAL = "internal"  # our own fault


class Text:
    """A part of a message that is itself text for people: a template and its values, told in their language."""

    def __init__(self, template: str, **values: Any) -> None:
        self.template = template
        self.values = values

    def render(self, language: Language | None = None) -> str:
        values = {
            name: value.render(language) if isinstance(value, Text) else value
            for name, value in self.values.items()
        }
        return translate(self.template, language).format(**values)

    def __str__(self) -> str:
        return self.render("en")


class HeadwaterError(Exception):
    """Base of the tree above. `exit_code` is what the command line ends with.

    `hint` is a template too: which command helps. It is for people at a command line; pages and the API leave it out.
    """

    exit_code = 1
    hint: str | None = None

    def __init__(self, template: str, *, hint: str | None = None, **values: Any) -> None:
        self.template = template
        self.values = values
        if hint is not None:
            self.hint = hint
        super().__init__(template, values)

    def render(self, language: Language | None = None) -> str:
        """The message, in one line."""
        return Text(self.template, **self.values).render(language)

    def render_with_hint(self, language: Language | None = None) -> str:
        """The message for a command line, in one line."""
        message = self.render(language)
        if self.hint is None:
            return message
        hint = Text(self.hint, **self.values)
        if message.endswith((".", "。")):
            return f"{message} {hint.render(language)}"
        return Text("{message}; {hint}", message=message, hint=hint).render(language)

    def with_values(self, change: Callable[[str], str]) -> Self:
        """This error with each text among its values changed."""
        values = {
            name: change(value) if isinstance(value, str) else value for name, value in self.values.items()
        }
        self.values, self.args = values, (self.template, values)
        return self

    def __str__(self) -> str:
        return self.render("en")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.template, self.values, self.__dict__)


def _rebuild(
    kind: type[HeadwaterError], template: str, values: dict[str, Any], state: dict[str, Any]
) -> HeadwaterError:
    """Unpickle an error that crossed a process boundary, whatever its constructor asks for."""
    error = kind.__new__(kind)
    Exception.__init__(error, template, values)
    error.__dict__.update(state)
    return error


class InputError(HeadwaterError):
    exit_code = 2


class SettingError(InputError):
    pass


class NotFoundError(InputError):
    pass


class ConflictError(InputError):
    pass


class ChangedError(InputError):
    pass


class StoreError(HeadwaterError):
    """`passing`: the database is away, and the same call may work in a moment."""

    passing = False


class NewerDatabaseError(StoreError):
    pass


class IncrementalStateCorrupted(StoreError):  # noqa: N818 - the name is public
    pass


class BusySiteError(StoreError):
    pass


class StepError(HeadwaterError):
    """A step, or another piece of work, that failed. `passing`: it may succeed later, so it is retried."""

    passing = False


class PassingStepError(StepError):
    passing = True
    retry_after_seconds: float | None = None  # when the other side says to try again
    counts = True  # as one of the retries; False: it was not its fault, and it waits as often as it has to


class VisitError(HeadwaterError):
    """A visit that failed. `retry_after_seconds` is the publisher's own word, if it gave one."""

    def __init__(
        self,
        kind: FailureKind,
        template: str,
        *,
        http_status: int | None = None,
        retry_after_seconds: float | None = None,
        **values: Any,
    ) -> None:
        super().__init__(template, **values)
        self.kind = kind
        self.http_status = http_status
        self.retry_after_seconds = retry_after_seconds


class FetchError(VisitError):
    pass


class ParseError(VisitError):
    def __init__(self, template: str, *, kind: FailureKind = FailureKind.NOT_A_FEED, **values: Any) -> None:
        super().__init__(kind, template, **values)
