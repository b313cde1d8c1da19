"""Subscription lists in and out: entries of OPML and of other readers' files become sources, sources become OPML.

What was read elsewhere is remembered as seen, without becoming an item: it does not come back as new.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from headwater.collect.adding import add_unvisited, read_new_source, without_userinfo
from headwater.collect.decide import imported_keys
from headwater.collect.importing.documents import read_opml_list
from headwater.collect.importing.export import Export, Seen
from headwater.errors import ConflictError, InputError
from headwater.formats.opml import Outline, write_opml
from headwater.language import translate
from headwater.model import Source
from headwater.store.database import Store, first_line
from headwater.store.items import remember_keys
from headwater.store.sources import get_source

CHUNK = 200
CHUNK_SEEN = 5_000


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one entry of a list."""

    title: str
    url: str
    folder: str | None
    outcome: Literal["added", "known", "rejected"]
    source_id: int | None = None
    reason: str | None = None
    seen: int = 0  # entries read elsewhere that will not come back as new


def import_opml(
    store: Store, data: bytes, now: float, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> list[Imported]:
    """Add every feed of an OPML file, unvisited and first in line. One bad entry stops no other."""
    return import_export(store, read_opml_list(data), now, on_progress)


def import_export(
    store: Store,
    export: Export,
    now: float,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Imported]:
    """Add every feed of another reader's file, and remember what was read of it."""
    report = [
        Imported(bad.title, without_userinfo(bad.url), bad.folder, "rejected", reason=translate(bad.reason))
        for bad in export.rejected
    ]
    for start in range(0, len(export.outlines), CHUNK):
        chunk = export.outlines[start : start + CHUNK]
        with store.writing() as connection:
            for outline in chunk:
                done = _import(connection, outline, now)
                report.append(replace(done, seen=_remember(connection, done, export.seen(outline), now)))
        on_progress(start + len(chunk), len(export.outlines))
    return report


def _remember(connection: Connection, done: Imported, entries: Iterable[Seen], now: float) -> int:
    """Note what was read elsewhere, unless the source has been visited: then it has a better memory of its own."""
    if done.source_id is None or get_source(connection, done.source_id).last_fetched_at is not None:
        return 0
    count = 0
    rest = iter(entries)
    while part := list(islice(rest, CHUNK_SEEN)):
        keys: dict[bytes, bytes] = {}
        for entry in part:
            keys |= imported_keys(entry.external_id, entry.url)
        remember_keys(connection, done.source_id, keys, now)
        count += len(part)
    return count


def _import(connection: Connection, outline: Outline, now: float) -> Imported:
    url = without_userinfo(outline.url)
    try:
        wanted = read_new_source(
            outline.url, outline.type or "rss.feed", name=outline.title or None, folder=outline.folder
        )
    except InputError as error:
        return Imported(outline.title, url, outline.folder, "rejected", reason=error.render())
    try:
        with connection.begin_nested():  # an entry that cannot be stored takes no other with it
            source = add_unvisited(connection, wanted, now)
    except ConflictError as error:
        there: int = error.values["id"]
        return Imported(outline.title, url, outline.folder, "known", there, error.render())
    except InputError as error:
        return Imported(outline.title, url, outline.folder, "rejected", reason=error.render())
    except DBAPIError as error:
        if isinstance(error, OperationalError | InterfaceError):
            raise  # the database itself is in trouble, not this entry
        return Imported(outline.title, url, outline.folder, "rejected", reason=first_line(error.orig))
    return Imported(source.name, source.url, source.folder, "added", source_id=source.id)


def export_opml(sources: Iterable[Source], now: float) -> bytes:
    """An OPML file of `sources`, with their folders, titles and types."""
    return write_opml(
        (
            Outline(
                url=source.url,
                title=source.name,
                folder=source.folder,
                site_url=source.metadata.site_url,
                description=source.metadata.description,
                type=None if source.type == "rss.feed" else source.type,
            )
            for source in sources
        ),
        title="Headwater",
        created=datetime.fromtimestamp(now, UTC),
    )
