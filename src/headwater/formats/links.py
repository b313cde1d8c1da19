"""Addresses: joining relative ones to their base, also inside HTML bodies.

Pure text work. It never judges whether an address may be visited; that is the fetch door's business.
"""

import re
from typing import Final
from urllib.parse import urljoin

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SPACES = re.compile(r"[\t\r\n]+")
_ATTRIBUTES: Final = r"href|src|poster|cite|longdesc|background|action"
# A cheap look whether a body needs any work: one address that is neither absolute nor a fragment.
_RELATIVE_HINT = re.compile(
    rf"""\b(?:{_ATTRIBUTES}|srcset)\s*=\s*["']?\s*(?![A-Za-z][A-Za-z0-9+.-]*:|\#|["'\s>])""", re.IGNORECASE
)
_TAG = re.compile(r"""<[A-Za-z][^<>"']*+(?:"[^"]*+"[^<>"']*+|'[^']*+'[^<>"']*+)*+>""")
_ADDRESS = re.compile(
    rf"""(\s(?:{_ATTRIBUTES})\s*=\s*)(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE
)
_SRCSET = re.compile(r"""(\ssrcset\s*=\s*)(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


def is_absolute(url: str) -> bool:
    return _ABSOLUTE.match(url) is not None


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
    try:
        return urljoin(base, url)
    except ValueError:  # for instance an unfinished IPv6 address
        return url


def resolve_html(body: str, base: str | None) -> str:
    """`body` with the relative addresses in its tags made absolute."""
    if not base or "=" not in body or not is_absolute(base) or _RELATIVE_HINT.search(body) is None:
        return body

    def address(match: re.Match[str]) -> str:
        value = next((group for group in match.groups()[1:] if group is not None), "")
        stripped = value.strip()
        if not stripped or stripped[0] == "#" or is_absolute(stripped):
            return match[0]
        joined = (join(base, stripped.replace("&amp;", "&")) or value).replace("&", "&amp;").replace('"', "%22")
        return f'{match[1]}"{joined}"'

    def srcset(match: re.Match[str]) -> str:
        value = match[2] if match[2] is not None else match[3]
        parts = []
        for candidate in value.split(", "):
            url, space, size = candidate.strip().partition(" ")
            parts.append((join(base, url) or url) + space + size)
        return f'{match[1]}"{", ".join(parts).replace(chr(34), "%22")}"'

    def tag(match: re.Match[str]) -> str:
        return _SRCSET.sub(srcset, _ADDRESS.sub(address, match[0]))

    return _TAG.sub(tag, body)
