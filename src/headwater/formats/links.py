"""Addresses: joining relative ones to their base, also inside HTML bodies.

Pure text work. It never judges whether an address may be visited; that is the fetch door's business.
"""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import urljoin

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ORIGIN = re.compile(r"https?://[^/?#\s]+", re.IGNORECASE)
_SPACES = re.compile(r"[\t\r\n]+")
_LINKING: Final = {name[-1]: name for name in ("href", "src", "srcset")}  # attributes, by their last letter
_VALUE = re.compile(r"""=(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))""")
_UNQUOTED: Final = 3
_LAST_LETTERS: Final = "fctFCT"
_USUAL: Final = ('"https://', '"http://')
_LONGEST_HEADER: Final = 8_192
_LONGEST_TAG: Final = 2000  # how far back to look for the beginning of a tag

_LINK_VALUE = re.compile(r"<([^<>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+\s*(?:=\s*(?:\"[^\"]*\"|[^\s;,\"]*))?)*)")
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


def join(base: str | None, url: str | None) -> str | None:
    """`url` made absolute by `base`, cleaned of the white space that publishers break long addresses with."""
    if url is None:
        return None
    url = url.strip()
    if not url:
        return None
    if "\n" in url or "\t" in url or "\r" in url:
        url = _SPACES.sub("", url)
    if not base or is_absolute(url):
        return url
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


def resolve_html(body: str, base: str | None) -> str:
    """`body` with the relative addresses in its tags made absolute."""
    if "=" not in body or not base or not is_absolute(base):
        return body
    edits: list[tuple[int, int, str]] = []
    # From one equals sign to the next: nothing is found faster than a single character.
    position = body.find("=")
    while position >= 0:
        end = position + 1
        if body[position - 1] in _LAST_LETTERS:
            edit, end = _edit_at(body, position, base)
            if edit is not None:
                edits.append((position + 1, end, edit))
        position = body.find("=", end)
    if not edits:
        return body
    parts: list[str] = []
    position = 0
    for start, end, replacement in edits:
        parts += (body[position:start], replacement)
        position = end
    return "".join((*parts, body[position:]))


def _edit_at(body: str, position: int, base: str) -> tuple[str | None, int]:
    """What the value behind the equals sign at `position` is to become, if it is to change, and where it ends."""
    end = position + 1
    name = _LINKING[body[position - 1].lower()]
    if name != "srcset" and body.startswith(_USUAL, end):
        stop = body.find('"', end + 1)
        return None, end if body.find("<", end, stop) >= 0 else stop + 1 or end
    start = position - len(name)
    if body[start:position].lower() != name or (match := _VALUE.match(body, position)) is None:
        return None, end
    value = match[match.lastindex or 1].strip()
    if name == "srcset":
        resolve = _resolve_srcset if match.lastindex != _UNQUOTED else None
    else:
        resolve = _resolve if value and value[0] != "#" and not is_absolute(value) else None
    if resolve is None or not _is_attribute(body, start):
        return None, match.end()
    resolved = resolve(value, base)
    return None if resolved == value else _quote(resolved), match.end()


def _resolve(value: str, base: str) -> str:
    return join(base, value.replace("&amp;", "&")) or value


def _quote(value: str) -> str:
    return '"' + value.replace("&", "&amp;").replace('"', "%22") + '"'


def _is_attribute(body: str, position: int) -> bool:
    """Whether a name begins here, inside of a tag and not in text that talks about one."""
    if body[position - 1 : position] not in (" ", "\n", "\t", "\r", '"', "'", "/"):
        return False
    near = max(0, position - _LONGEST_TAG)
    return body.rfind("<", near, position) > body.rfind(">", near, position)


def _resolve_srcset(value: str, base: str) -> str:
    candidates = []
    for candidate in value.replace("&amp;", "&").split(", "):
        url, space, size = candidate.strip().partition(" ")
        candidates.append((join(base, url) or url) + space + size)
    return ", ".join(candidates)
