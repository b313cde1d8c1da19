"""Request and Response of the fetcher, plain data.

Secrets (credentials, cookies, headers of a source, a proxy's password) are in none of the reprs. Nothing here
touches the network.
"""

import base64
import re
from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from headwater.errors import InputError
from headwater.model import NO_HINTS, Hints, Validators

_TOKEN = re.compile(r"\A[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# A parameter of an address, the words of its name, and those that say that it holds a secret.
_PARAMETER = re.compile(r"(?<![^&;=])([^&;=]++)=([^&;]*+)")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SECRET_WORDS = frozenset(
    {
        *("key", "apikey", "token", "secret", "password", "passwd", "pwd", "pass", "auth", "authorization"),
        *("credential", "credentials", "signature", "sig", "jwt", "bearer"),
    }
)
_SECRET_NAMES = frozenset(
    ("accesstoken", "authtoken", "authkey", "feedkey", "rsskey", "userkey", "sessionid")
)
# The connection's own headers, and the conditions, which come from the validators and from nowhere else.
_OURS = frozenset(
    {
        *("host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect"),
        *("keep-alive", "proxy-connection", "proxy-authorization", "range", "accept-encoding", "referer"),
        *("if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range"),
    }
)

# Headers of a request that go along to another origin: there is no secret in them.
HARMLESS_HEADERS = frozenset(("accept", "accept-language", "user-agent"))

NO_VALIDATORS = Validators()


@dataclass(frozen=True, slots=True)
class BasicAuth:
    user: str
    password: str = field(repr=False)

    def header(self) -> str:
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")


@dataclass(frozen=True, slots=True)
class BearerAuth:
    token: str = field(repr=False)

    def header(self) -> str:
        return "Bearer " + self.token


Auth = BasicAuth | BearerAuth


@dataclass(slots=True, eq=False)  # not frozen: that makes building one twice as dear
class Request:
    """One thing to get, or to post when it has a `body`. What is None is as the Fetcher was told for all.

    `headers`, `cookies` and `auth` go to the URL's own origin and never to another one it redirects to.
    """

    url: str = field(repr=False)
    validators: Validators = NO_VALIDATORS
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    cookies: Mapping[str, str] | None = field(default=None, repr=False)
    auth: Auth | None = field(default=None, repr=False)
    proxy: str | None = field(default=None, repr=False)
    accept: str | None = None
    answers: frozenset[int] = frozenset()  # statuses that are answers to read, not errors to raise
    max_bytes: int | None = None
    total_seconds: float | None = None
    connect_seconds: float | None = None
    read_seconds: float | None = None
    body: bytes | None = field(default=None, repr=False)
    part: tuple[int, int] | None = None  # the first and last byte that is wanted; servers may send all

    def __post_init__(self) -> None:
        if self.headers:
            for name, value in self.headers.items():
                if not _TOKEN.match(name) or name.lower() in _OURS:
                    raise InputError("The request header {name} cannot be set.", name=name[:80])
                if _UNSENDABLE.search(value):
                    raise InputError("The value of the request header {name} cannot be sent.", name=name)
        if self.cookies:
            for name, value in self.cookies.items():
                if not _TOKEN.match(name) or _UNSENDABLE.search(value) or ";" in value:
                    raise InputError("The cookie {name} cannot be sent.", name=name[:80])
        if isinstance(self.auth, BearerAuth) and _UNSENDABLE.search(self.auth.token):
            raise InputError("The bearer token cannot be sent: it contains control characters.")

    def __repr__(self) -> str:
        return f"Request({public_url(self.url)!r})"


class Headers(Mapping[str, str]):
    """The headers of an answer by name, however it is spelt; of several the first. Decoded when they are asked for."""

    __slots__ = ("_first", "_pairs")

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs
        self._first = {name.lower(): value for name, value in reversed(pairs)}

    def raw(self, name: bytes) -> bytes | None:
        """The bytes that came; `name` in small letters. None for an empty one too."""
        return self._first.get(name) or None

    def __getitem__(self, name: str) -> str:
        return _text(self._first[name.lower().encode()])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower().encode() in self._first

    def __iter__(self) -> Iterator[str]:
        return map(_text, self._first)

    def __len__(self) -> int:
        return len(self._first)

    def items(self) -> ItemsView[str, str]:
        """All of them, also those that are there several times."""
        return [(_text(name), _text(value)) for name, value in self._pairs]  # type: ignore[return-value]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Hop:
    """One redirect: the status of the answer, the URL it leads to, and whether all so far were permanent."""

    status: int
    url: str
    permanent: bool


@dataclass(slots=True, eq=False)
class Response:
    """A good answer. `unchanged` is a 304, or a 200 with the very bytes of `validators.body_hash`.

    `url` is where the answer came from; `permanent_url` is where an unbroken chain of 301 and 308 from the
    start leads, else None. `bytes_received` counts headers and body as they came over the wire.
    """

    url: str
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    validators: Validators
    unchanged: bool
    redirects: tuple[Hop, ...] = ()
    permanent_url: str | None = None
    hints: Hints = NO_HINTS
    bytes_received: int = 0
    elapsed_seconds: float = 0.0
    content_type: str | None = None
    requests: int = 1

    def header_values(self, name: str) -> list[str]:
        """Every value of a header that may be there several times; `name` in small letters."""
        return [value for key, value in self.headers.items() if key.lower() == name]


def without_secrets(url: str) -> str:
    """The URL without user name and password, and with stars for what parameters like `api_key` or `token` hold."""
    start, question, rest = url.partition("?")
    scheme, slashes, place = start.partition("://")
    host, slash, path = place.partition("/")
    query, hash, fragment = rest.partition("#")
    query = _PARAMETER.sub(_starred, query)
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}{question}{query}{hash}{fragment}"


def _starred(parameter: re.Match[str]) -> str:
    words = _WORDS.findall(unquote(parameter[1]))
    name = "".join(words).lower()
    is_secret = name in _SECRET_NAMES or any(word.lower() in _SECRET_WORDS for word in words)
    return f"{parameter[1]}=***" if is_secret and parameter[2] else parameter[0]


def public_url(url: str) -> str:
    """The URL as it may be shown: without secrets and fragment, and on one line."""
    try:
        parts = urlsplit(without_secrets(url))
        netloc = parts.netloc.rpartition("@")[2]
        shown = urlunsplit((parts.scheme, netloc, parts.path, parts.query, ""))
    except ValueError:
        shown = re.sub(r"//[^/@]*@", "//", url)
    shown = _UNSENDABLE.sub(" ", shown)
    return shown if len(shown) <= 500 else shown[:497] + "..."
