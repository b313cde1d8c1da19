"""Addresses: joining relative ones to their base, also inside HTML bodies.

Pure text work. It never judges whether an address may be visited; that is the fetch door's business.
"""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import urljoin

from headwater.markup import LONGEST_URL

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ORIGIN = re.compile(r"https?://[^/?#\s]+", re.IGNORECASE)
_SPACES = re.compile(r"[\t\r\n]+")
_SKIPPED = re.compile(r"\A[\x00-\x20]+|[\t\r\n]+")
SAFE_SCHEMES: Final = frozenset(("http", "https", "ftp", "mailto", "magnet"))
# An attribute with a relative address. A pattern that begins with one literal is searched many times faster,
# which is why it begins with the equals sign.
_RELATIVE = re.compile(
    r"""=(?:(?<=[fcFC]=)(?!["']?(?:https?:|[A-Za-z][A-Za-z0-9+.-]*:|\#))"""
    r"""(?:(?<=[\s"'/][hH][rR][eE][fF]=)|(?<=[\s"'/][sS][rR][cC]=))"""
    r"""|(?<=[sS][eE][tT]=)(?<=[\s"'/][sS][rR][cC][sS][eE][tT]=)"""
    r"""(?!"(?:https?://(?:[^"\s,<>]++|,(?=\S))++(?:\s++[^",<>]*+)?(?:,\s*+|(?=")))++"))"""
)
_VALUE = re.compile(r"""=(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))""")
_QUOTED = re.compile(r"""[^"']++|"[^"]*+"|'[^']*+'""")
_UNQUOTED: Final = 3
_QUOTE: Final = '"'
LONGEST_BASE: Final = 2_048
MOST_EDITS: Final = 5_000
_LONGEST_HEADER: Final = 8_192
_LONGEST_TAG: Final = 2000  # how far back to look for the beginning of a tag

_LINK_VALUE = re.compile(
    r"<([^<>]*+)>((?:\s*+;\s*+[\w!#$&+.^`|~*-]++\s*+(?:=\s*+(?:\"[^\"]*+\"|[^\s;,\"]*+))?+)*+)"
)
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]*))", re.IGNORECASE)


def read_link_header(value: str, base: str | None = None) -> list[tuple[str, str]]:
    """The (relation, address) pairs of an HTTP `Link` header."""
    found = []
    for address, parameters in _LINK_VALUE.findall(value[:_LONGEST_HEADER]):
        rel = _REL.search(parameters)
        url = join(base, address)
        if rel and url:
            found += [(name, url) for name in (rel[1] or rel[2] or "").lower().split()]
    return found


def is_absolute(url: str) -> bool:
    return url.startswith(("https://", "http://")) or _ABSOLUTE.match(url) is not None


def is_followable(url: str) -> bool:
    """Whether an address can be followed without running anything: relative, or of a known scheme."""
    if url.startswith(("https://", "http://")):
        return True
    # Browsers skip control characters before an address, and tabs and line ends in it.
    scheme, colon, _ = _SKIPPED.sub("", url).partition(":")
    return not colon or any(mark in scheme for mark in "/?#") or scheme.strip().lower() in SAFE_SCHEMES


def is_plain(url: str) -> bool:
    """Whether an address is absolute and needs no cleaning, as most are."""
    return url.startswith(("https://", "http://")) and url[-1] != " " and url.isprintable()


def join(base: str | None, url: str | None) -> str | None:
    """`url` made absolute by `base`, cleaned of the white space that publishers break long addresses with."""
    if not url or is_plain(url) or not (url := url.strip()):
        return url or None
    if "\n" in url or "\t" in url or "\r" in url:
        url = _SPACES.sub("", url)
    if not base or is_absolute(url):
        return url
    # urljoin takes an address apart at every slash.
    return _join_relative(base, url) if len(url) <= LONGEST_URL else None


def _join_relative(base: str, url: str) -> str:
    # By far the most frequent kind, and urljoin is slow.
    if url[0] == "/" and url[1:2] != "/" and "/." not in url and (origin := _origin(base)):
        return origin + url
    try:
        return urljoin(base, url)
    except ValueError:  # for instance an unfinished IPv6 address
        return url


@lru_cache(maxsize=256)
def _origin(base: str) -> str | None:
    match = _ORIGIN.match(base)
    return match[0] if match else None


# Finds the first place in a body where a tag seems to have a relative address.
find_relative_link: Final = _RELATIVE.search


def resolve_html(body: str, base: str | None) -> str:
    """`body` with the relative addresses in its tags made absolute; cut after too many of them."""
    if not base or len(base) > LONGEST_BASE or not is_absolute(base):
        return body
    parts: list[str] = []
    position = 0
    for found in _RELATIVE.finditer(body):
        start = found.start()
        if start < position or (match := _VALUE.match(body, start)) is None or not _is_attribute(body, start):
            continue
        if (resolved := _resolve_value(match, base, is_set=body[start - 1] in "tT")) is not None:
            parts += (body[position : start + 1], resolved)
            position = match.end()
            if len(parts) == 2 * MOST_EDITS:  # each may be as long as the base
                return "".join(parts)
    return "".join((*parts, body[position:])) if parts else body


def _resolve_value(match: re.Match[str], base: str, *, is_set: bool) -> str | None:
    """The new value of an attribute, in quotes; None where it does not change."""
    value = match[match.lastindex or 0].strip()
    if not value or (is_set and match.lastindex == _UNQUOTED):
        return None
    url = value.replace("&amp;", "&") if "&" in value else value
    resolved = _resolve_srcset(url, base) if is_set else join(base, url) or url
    return None if resolved == url else f'"{resolved.replace("&", "&amp;").replace(_QUOTE, "%22")}"'


def _is_attribute(body: str, position: int) -> bool:
    """Whether an equals sign stands in a tag: not in text, and not in the value of another attribute."""
    near = max(0, position - _LONGEST_TAG)
    start = body.rfind("<", near, position)
    if start < 0 or body.find(">", start, position) >= 0:
        return False
    quotes = body[start:position]
    return ('"' not in quotes and "'" not in quotes) or not _QUOTED.sub("", quotes)


def _resolve_srcset(value: str, base: str) -> str:
    candidates = []
    for candidate in value.split(", "):
        url, space, size = candidate.strip().partition(" ")
        candidates.append((join(base, url) or url) + space + size)
    return ", ".join(candidates)
