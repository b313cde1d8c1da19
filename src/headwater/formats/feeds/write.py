"""Writes a Feed as RSS 2.0, Atom 1.0 or JSON Feed 1.1.

What one format has no word for is said in a well-known extension, so that reading the document back gives the
same feed. The same feed gives the same bytes. It neither fetches nor asks a clock; `prepare` fills in what is missing.
"""

from collections.abc import Callable, Mapping
from typing import Final

from headwater.formats.feeds.feed import Feed
from headwater.formats.feeds.prepare import prepare
from headwater.formats.feeds.write_json import as_json_feed
from headwater.formats.feeds.write_xml import as_atom, as_rss
from headwater.model import Json

MEDIA_TYPES: Final = {
    "rss": "application/rss+xml; charset=utf-8",
    "atom": "application/atom+xml; charset=utf-8",
    "json": "application/feed+json",
}
_XML_WRITERS: Final[Mapping[str, Callable[[Feed], bytes]]] = {"rss": as_rss, "atom": as_atom}


def write_feed(feed: Feed, format: str, records: Mapping[str, Json] | None = None) -> bytes:
    """The document of `feed` in `format`, one of the keys of MEDIA_TYPES.

    `records` are the public JSON of entries, by id. Only JSON Feed has a place for them.
    """
    feed = prepare(feed, author_needed=format == "atom")
    if format == "json":
        return as_json_feed(feed, records or {})
    return _XML_WRITERS[format](feed)
