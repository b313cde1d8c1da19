"""Takes a feed out of what is around it: gzip, a page that shows it as text, a script's call, a warning of PHP.

Pure. A page that merely mentions a feed stays a page: the feed must be all that its body holds.
"""

import html
import re
from typing import Final

from headwater.formats.limits import inflate

_GZIP_MAGIC: Final = b"\x1f\x8b"
_MOST_WRAPPINGS: Final = 3
_HEAD_BYTES: Final = 65_536
_ESCAPED = re.compile(rb"[\s\xef\xbb\xbf]*+&lt;(?:\?xml|rss|feed|rdf:RDF)\b")
# How browsers and programs that drive them show a document that is not a page.
_SHOWN = re.compile(
    rb"<body\b[^>]*+>\s*+(?:<div\b[^>]*+>\s*+)?<pre\b[^>]*+>(?=\s*+(?:&lt;(?:\?xml|rss|feed|rdf:RDF)\b|\{))",
    re.IGNORECASE,
)
_JSON_START = re.compile(
    rb'\{\s*+"(?:version|title|home_page_url|feed_url|description|user_comment|items)"\s*+:'
)
_JSON_FEED: Final = b"jsonfeed.org/version/"


def unzip_feed(data: bytes, most_bytes: int) -> bytes:
    """What gzip within gzip holds, up to a size; anything else as it is."""
    for _ in range(_MOST_WRAPPINGS):
        if not data.startswith(_GZIP_MAGIC):
            break
        data, _ = inflate(data, most_bytes + 1)
    return data


def unwrap(data: bytes) -> tuple[bytes, str] | None:
    """The document inside of one that is not a feed, and what was around it."""
    if _ESCAPED.match(data):
        return _unescape(data), "HTML"
    if shown := _SHOWN.search(data, 0, _HEAD_BYTES):
        end = data.rfind(b"</pre>")
        return _unescape(data[shown.end() : end if end > shown.end() else len(data)]), "HTML"
    start = _JSON_START.search(data, 0, _HEAD_BYTES)
    if start and start.start() and _JSON_FEED in data.replace(b"\\/", b"/"):
        return data[start.start() :], "text"
    return None


def _unescape(data: bytes) -> bytes:
    return html.unescape(data.decode("utf-8", "surrogateescape")).strip().encode("utf-8", "surrogateescape")
