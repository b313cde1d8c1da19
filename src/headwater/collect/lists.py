"""Subscription lists in and out: OPML entries become sources, sources become OPML."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from headwater.collect.adding import add_unvisited, read_new_source, without_userinfo
from headwater.errors import InputError
from headwater.formats.opml import Outline, read_opml, write_opml
from headwater.language import translate
from headwater.model import Source
from headwater.store.database import Store, first_line

CHUNK = 200


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one entry of a list."""

    title: str
    url: str
    folder: str | None
    outcome: Literal["added", "known", "rejected"]
    source_id: int | None = None
    reason: str | None = None


def import_opml(
    store: Store, data: bytes, now: float, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> list[Imported]:
    """Add every feed of an OPML file, unvisited and first in line. One bad entry stops no other."""
    opml = read_opml(data)
    report = [
        Imported(bad.title, without_userinfo(bad.url), bad.folder, "rejected", reason=translate(bad.reason))
        for bad in opml.rejected
    ]
    for start in range(0, len(opml.outlines), CHUNK):
        chunk = opml.outlines[start : start + CHUNK]
        with store.writing() as connection:
            report += [_import(connection, outline, now) for outline in chunk]
        on_progress(start + len(chunk), len(opml.outlines))
    return report


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
    except InputError as error:
        return Imported(outline.title, url, outline.folder, "known", reason=error.render())
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
