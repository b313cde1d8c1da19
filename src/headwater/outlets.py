"""Publishing outlets: what an outlet shows as RSS, Atom or JSON Feed, served or written to files.

The same items give the same bytes. What is published is sanitised by the writers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from headwater import __version__
from headwater.files import write_whole
from headwater.formats.entry import Entry, Feed, Person
from headwater.formats.write import MEDIA_TYPES, write_feed
from headwater.model import Enclosure
from headwater.store.items import StoredItem
from headwater.store.outlets import Edition, read_edition, read_items

EXTENSIONS = {"rss": "xml", "atom": "atom", "json": "json"}
FORMATS = tuple(MEDIA_TYPES)


@dataclass(frozen=True, slots=True)
class Published:
    """An outlet as a document."""

    edition: Edition
    media_type: str
    body: bytes


def path_of(name: str, format: str) -> str:
    """Where an outlet is served, and what its file is called."""
    return f"{name}.{EXTENSIONS[format]}"


def render_outlet(
    connection: Connection, edition: Edition, format: str, base_url: str | None = None
) -> Published:
    """An edition in one format. `base_url` is where the outlets are found, for the document to say so."""
    outlet = edition.outlet
    self_link = None
    if base_url:
        self_link = f"{base_url.rstrip('/')}/{path_of(outlet.name, format)}"
        if outlet.token:
            self_link += f"?token={outlet.token}"
    entries: dict[str, Entry] = {}
    for item, source_added_at in read_items(connection, edition):
        entry = _entry(item, source_added_at)
        entries.setdefault(entry.id or "", entry)  # two sources may carry the same article
    feed = Feed(
        format,
        title=outlet.title,
        id=f"urn:headwater:outlet:{outlet.name}",
        link=base_url,
        description=outlet.description,
        generator=f"Headwater {__version__}",
        updated=datetime.fromtimestamp(edition.changed_at, UTC),
        self_link=self_link,
        hub_links=(outlet.hub_url,) if outlet.hub_url else (),
        entries=tuple(entries.values()),
    )
    return Published(edition, MEDIA_TYPES[format], write_feed(feed, format))


def write_outlet(
    connection: Connection, name: str, directory: Path, formats: Iterable[str], base_url: str | None = None
) -> list[tuple[Path, bool]]:
    """Write an outlet's files, each whole or not at all. Answers each path and whether it had to be written.

    Where they go, nobody asks for the token: the files say nothing of it.
    """
    edition = read_edition(connection, name)
    edition = replace(edition, outlet=replace(edition.outlet, token=None))
    written = []
    for format in formats:
        path = directory / path_of(name, format)
        body = render_outlet(connection, edition, format, base_url).body
        written.append((path, write_whole(path, body, make_directory=True)))
    return written


def _entry(item: StoredItem, source_added_at: float) -> Entry:
    """An item as it is published. Of its source only the name: many a feed's address is its subscriber's secret."""
    extra = item.extra
    return Entry(
        id=_id(item, source_added_at),
        link=item.url,
        title=item.title,
        authors=(Person(name=item.author),) if item.author else (),
        published=_moment(item.published_at if not item.date_invented else item.first_seen_at),
        updated=_moment(item.updated_at) or _moment(item.published_at) or _moment(item.first_seen_at),
        summary=item.summary,
        content=item.content,
        categories=tuple(extra.get("categories", ())),
        enclosures=tuple(_enclosure(each) for each in extra.get("enclosures", ())),
        image=extra.get("image_url"),
        comments_url=extra.get("comments_url"),
        source_title=item.source_name,
    )


def _id(item: StoredItem, source_added_at: float) -> str:
    """The publisher's own id where it is one for the whole world, else one made of it and its source.

    A source may move, so its address is no part of that.
    """
    scheme, colon, _ = item.external_id.partition(":")
    if colon and scheme.lower() in ("http", "https", "tag", "urn"):
        return item.external_id
    text = f"{item.source_id}\n{source_added_at}\n{item.external_id}"
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=16)
    return f"urn:headwater:item:{digest.hexdigest()}"


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _enclosure(stored: dict[str, Any]) -> Enclosure:
    return Enclosure(**stored)
