"""Addresses as people write them, checked and made whole."""

import re
from urllib.parse import unquote, urlsplit, urlunsplit

from headwater.collectors.base import Collector
from headwater.collectors.secrets import refers
from headwater.errors import InputError

MAX_URL_BYTES = 2_000  # what every database can keep in an index, and more than any address in use
_HAS_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_NEVER_IN_A_URL = re.compile(r"[\s\x00-\x20\x7f-\x9f\ud800-\udfff]")


def read_url(text: str) -> str:
    """An http or https address from what people paste: `feed:` and missing schemes are understood."""
    text = text.strip()
    if not text or text.startswith("/"):
        raise InputError(
            "{url} is not an address of the web; it starts with http:// or https://", url=text or "''"
        )
    text = re.sub(r"^feed:(//)?(?=https?:)", "", text, flags=re.IGNORECASE)
    text = re.sub(r"^feed:(//)?", "http://", text, flags=re.IGNORECASE)
    if port := re.match(r"[^/:]+:(\d+)(?=[/?#]|\Z)", text):
        # As browsers have it: a port of one's own is seldom one that speaks TLS.
        text = ("https://" if port[1] in ("443", "8443") else "http://") + text
    elif not _HAS_SCHEME.match(text) or re.match(r"[^/]+:\d", text):
        text = "https://" + text
    try:
        parts = urlsplit(text)
        valid = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        if re.match(r"[a-z]+://[^/?#\[\]]*:\d+(?=[/?#]|$)", text, re.IGNORECASE):
            raise InputError(
                "{url} has a port that does not exist; ports go from 1 to 65535", url=without_userinfo(text)
            ) from None
        valid = False
    if not valid or _NEVER_IN_A_URL.search(text):
        raise InputError(
            "{url} is not an address of the web; it starts with http:// or https://",
            url=without_userinfo(text),
        )
    if (length := len(text.encode())) > MAX_URL_BYTES:
        raise InputError(
            "{url}… is too long for an address: {length} bytes, where {limit} are allowed",
            url=without_userinfo(text)[:80],
            length=length,
            limit=MAX_URL_BYTES,
        )
    return text


def read_address(url: str, collector: Collector | None) -> tuple[str, dict[str, str]]:
    """A source's address as it is stored, and the credentials that stood in it, as keys of a config."""
    refuse_reference(url)
    if collector is None or "https" in collector.schemes:
        return split_credentials(read_url(url))
    if len(url.encode()) > MAX_URL_BYTES or _NEVER_IN_A_URL.search(url):
        raise InputError("{url} is not an address of this type", url=without_userinfo(url)[:80])
    return url, {}


def refuse_reference(url: str) -> None:
    """InputError when the credentials in an address name a secret of this installation.

    A config may name one, which an admin writes. An address may come from a list that someone else has written.
    """
    if refers(unquote(url.rpartition("@")[0])):
        raise InputError(
            "{url}: an address cannot refer to a secret; only a config can", url=without_userinfo(url)[:200]
        )


def split_credentials(url: str) -> tuple[str, dict[str, str]]:
    """An address that `read_url` accepted without its user name and password, and these as keys of a config."""
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    user, colon, password = userinfo.partition(":")
    credentials = {"user": unquote(user)} if userinfo else {}
    if colon:
        credentials["password"] = unquote(password)
    return urlunsplit(parts._replace(netloc=host)), credentials


def without_userinfo(text: str) -> str:
    """What was given as an address, as it may be shown: nothing that can be a password is in it."""
    return re.sub(
        r"\A([a-z][a-z0-9+.-]*://)?([^/]*|[^/:]*:.*)@", r"\1", text, flags=re.IGNORECASE | re.DOTALL
    )
