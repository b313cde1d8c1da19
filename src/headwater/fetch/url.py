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


@dataclass(frozen=True, slots=True)
class Proxy:
    """`is_ours` when the operator set it for all requests: then the guard does not ask for its address."""

    url: URL
    authorization: str | None = field(repr=False)
    is_ours: bool


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


def read_location(url: URL, location: str) -> URL | None:
    """Where a Location header leads from `url`, None when nowhere. Credentials in it are not used."""
    if not location.isascii():
        # Bytes that are no UTF-8 are most likely Latin-1.
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
    if url.scheme not in ("http", "https") or not url.raw_host:
        raise SettingError(
            "The proxy {proxy} is not one that can be used; write it as http://host:port.",
            proxy=public_url(text),
        )
    return Proxy(url, userinfo.header() if userinfo is not None else None, is_ours)


def _parse(text: str) -> URL:
    """Read a URL without touching what is already in order: some servers sign every byte of theirs."""
    text = text.strip()
    url = URL(text, encoded=True) if _LEGAL.match(text) else URL(text)
    if url.raw_fragment:
        url = url.with_fragment(None)
    return url if url.raw_path or not url.raw_host else url.with_path("/")
