"""Reading URLs: of sources, of redirects, of proxies. Credentials are taken out of them at once.

Pure. Whether a URL may be fetched is the guard's business.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urljoin

from yarl import URL

from headwater.errors import FailureKind, FetchError, SettingError
from headwater.fetch.message import BasicAuth, public_url

_LEGAL = re.compile(r"\Ahttps?://[!#$%&'()*+,\-./0-9:;=?@A-Z_a-z~\[\]]+\Z")


_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")


@dataclass(frozen=True, slots=True)
class Proxy:
    """`is_ours` when the operator set it for all requests: then the guard does not ask for its address."""

    url: URL
    login: tuple[str, str] | None = field(repr=False)
    is_ours: bool

    @property
    def address(self) -> str:
        """Where it is, as libcurl takes it. A SOCKS proxy looks names up itself, as the others do."""
        scheme = "socks5h" if self.is_socks else self.url.scheme
        return f"{scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def is_socks(self) -> bool:
        return self.url.scheme.startswith("socks")

    @property
    def host(self) -> str:
        return self.url.raw_host or ""

    @property
    def port(self) -> int:
        return self.url.port or 1080

    @property
    def authorization(self) -> str | None:
        return None if self.login is None else BasicAuth(*self.login).header()


@lru_cache(
    4096
)  # a source is visited again and again, and reading its address costs as much as a tenth of that
def read_url(text: str) -> tuple[URL, BasicAuth | None]:
    """The URL without credentials and fragment, and the credentials; FetchError when it is none."""
    try:
        url = _parse(text)
        # Asking for the port is what makes yarl look at it.
        readable = url.port is not None or url.scheme not in ("http", "https")
    except ValueError:
        readable = False
    if not readable:
        raise FetchError(
            FailureKind.BLOCKED, "{url}: this is not an address that can be fetched.", url=public_url(text)
        )
    if url.raw_user is None and url.raw_password is None:
        return url, None
    return url.with_user(None), BasicAuth(url.user or "", url.password or "")


def keeps_credentials(before: URL, after: URL) -> bool:
    """Whether what was meant for `before` may be sent to `after`: the same scheme, host and port.

    A host that moves from http to https, on the usual ports of both, stays the same host: only it can show the
    certificate. The way back is another origin.
    """
    if _host(before) != _host(after):
        return False
    ways = ((before.scheme, before.port), (after.scheme, after.port))
    return ways[0] == ways[1] or ways == (("http", 80), ("https", 443))


def _host(url: URL) -> str:
    return (url.raw_host or "").lower()


def read_location(url: URL, location: str) -> URL | None:
    """Where a Location header leads from `url`, None when nowhere. Credentials in it are not used."""
    if not location.isascii():
        # Bytes that are not UTF-8 are most likely Latin-1.
        raw = location.encode("utf-8", "surrogateescape")
        try:
            location = raw.decode()
        except UnicodeDecodeError:
            location = raw.decode("latin-1")
    try:
        following, _ = read_url(urljoin(str(url), location.strip()))
    except (FetchError, ValueError):
        return None
    return following if following.raw_host else None


def read_proxy(text: str, *, is_ours: bool) -> Proxy:
    try:
        url, userinfo = read_url(text)
    except FetchError:
        url, userinfo = URL(), None
    if url.scheme not in _PROXY_SCHEMES or not url.raw_host:
        raise SettingError(
            "The proxy {proxy} is not one that can be used; write it as http://host:port or socks5://host:port.",
            proxy=public_url(text),
        )
    return Proxy(url, None if userinfo is None else (userinfo.user, userinfo.password), is_ours)


def _parse(text: str) -> URL:
    """Read a URL without touching what is already in order: some servers sign every byte of theirs."""
    text = text.strip()
    url = URL(text, encoded=True) if _LEGAL.match(text) else URL(text)
    if url.raw_fragment:
        url = url.with_fragment(None)
    return url if url.raw_path or not url.raw_host else url.with_path("/")
