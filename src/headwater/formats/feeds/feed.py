"""What the readers give and the writers take: a feed and its entries, whatever format they are in.

Titles are plain text in one line. `summary` and `content` are raw HTML fragments: sanitise before showing
them. Datetimes are aware, in UTC, of whole seconds. Addresses are absolute where the feed allowed it.
"""

import hashlib
from dataclasses import field
from datetime import datetime

from headwater.model import NO_HINTS, Enclosure, Hints, Item, Json, Repair, SourceMetadata
from headwater.records import dataclass


@dataclass(frozen=True, slots=True)
class Person:
    name: str | None = None
    email: str | None = None
    url: str | None = None

    def __str__(self) -> str:
        return self.name or self.email or self.url or ""


def join_persons(persons: tuple[Person, ...]) -> str | None:
    return ", ".join(filter(None, map(str, persons))) or None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a feed, as its publisher states it.

    Nothing is invented; authors are inherited from the feed where its format says so.
    """

    id: str | None = None
    link: str | None = None
    title: str = ""
    authors: tuple[Person, ...] = ()
    published: datetime | None = None
    updated: datetime | None = None
    summary: str | None = None
    content: str | None = None
    categories: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    image: str | None = None
    language: str | None = None
    comments_url: str | None = None
    comments_feed: str | None = None
    comments_count: int | None = None
    source_title: str | None = None
    source_url: str | None = None
    extras: Json | None = field(default=None, hash=False)  # by the keys of `vocabulary`

    @property
    def author(self) -> str | None:
        return join_persons(self.authors)


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed. `format` is a name such as `rss-2.0`, `atom-1.0` or `json-1.1`; `repairs` tell what was
    wrong with it."""

    format: str
    title: str = ""
    id: str | None = None
    link: str | None = None
    description: str | None = None
    language: str | None = None
    icon: str | None = None
    image: str | None = None
    authors: tuple[Person, ...] = ()
    categories: tuple[str, ...] = ()
    generator: str | None = None
    rights: str | None = None
    published: datetime | None = None
    updated: datetime | None = None
    self_link: str | None = None
    next_link: str | None = None  # the page with older entries (RFC 5005)
    archive_link: str | None = None  # the archive before this document (RFC 5005); read, never written
    hub_links: tuple[str, ...] = ()
    hints: Hints = NO_HINTS
    extras: Json | None = field(default=None, hash=False)  # by the keys of `vocabulary`
    entries: tuple[Entry, ...] = ()
    repairs: tuple[Repair, ...] = ()
    left_out_count: int = 0  # entries beyond those that are read of one document

    @property
    def author(self) -> str | None:
        return join_persons(self.authors)

    @property
    def metadata(self) -> SourceMetadata:
        """What a source that yields this feed says of itself."""
        return SourceMetadata(
            title=self.title or None,
            description=self.description,
            site_url=self.link,
            language=self.language,
            icon_url=self.icon or self.image,
            details=self.extras or {},
            repairs=self.repairs,
        )


def external_id(entry: Entry) -> str:
    """What tells an entry from the others of its source: its id, else its link, else a hash of title and
    content."""
    if entry.id:
        return entry.id
    if entry.link:
        return entry.link
    digest = hashlib.blake2b(digest_size=16)
    for part in (entry.title, entry.content or entry.summary or ""):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))  # so that no two splits of one text are alike
        digest.update(encoded)
    if not (entry.title or entry.content or entry.summary):  # a bare enclosure, or nothing at all
        digest.update(repr((entry.published, [file.url for file in entry.enclosures])).encode())
    return f"hash:{digest.hexdigest()}"


def to_item(entry: Entry, feed: Feed | None = None) -> Item:
    """The item that `entry` becomes. With `feed`, what the feed says for all its entries fills the gaps."""
    authors = entry.authors or (feed.authors if feed else ())
    return Item(
        external_id=external_id(entry),
        url=entry.link,
        title=entry.title,
        author=join_persons(authors),
        summary=entry.summary,
        content=entry.content,
        published_at=entry.published.timestamp() if entry.published else None,
        updated_at=entry.updated.timestamp() if entry.updated else None,
        language=entry.language or (feed.language if feed else None),
        image_url=entry.image,
        comments_url=entry.comments_url,
        comments_count=entry.comments_count,
        categories=entry.categories,
        enclosures=entry.enclosures,
        extras=_item_extras(entry),
    )


def _item_extras(entry: Entry) -> Json | None:
    """The extras of an entry, and what else an item has no field for."""
    if not (entry.comments_feed or entry.source_title or entry.source_url):
        return entry.extras
    others = {
        "comments_feed": entry.comments_feed,
        "source_title": entry.source_title,
        "source_url": entry.source_url,
    }
    return {**(entry.extras or {}), **{name: value for name, value in others.items() if value}}
