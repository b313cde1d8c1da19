"""Subscription lists in and out: entries of OPML and of other readers' files become sources, sources become OPML.

What was read elsewhere is remembered as seen, without becoming an item: it does not come back as new.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from headwater.collect.decide import imported_keys
from headwater.errors import InputError
from headwater.fetch.message import without_secrets
from headwater.formats.opml import REASON_BAD_ADDRESS, Outline, write_opml
from headwater.language import translate
from headwater.model import Source
from headwater.sources.adding import make_addition, read_new_source
from headwater.sources.addresses import without_userinfo
from headwater.sources.importing.documents import is_address, read_opml_list
from headwater.sources.importing.export import Export, Seen
from headwater.store.collecting.addresses import Living, find_living
from headwater.store.collecting.sources import Addition, add_sources, duplicate_of, iterate_sources
from headwater.store.core.database import Store, first_line
from headwater.store.reading.items import remember_keys

CHUNK = 1_000
CHUNK_SEEN = 5_000

Outcome = Literal["added", "known", "rejected"]


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one entry of a list."""

    title: str
    url: str
    folder: str | None
    outcome: Outcome
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
    *,
    for_owner: bool = True,
) -> list[Imported]:
    """Add every feed of another reader's file, and remember what was read of it.

    With `for_owner`, the first user subscribes to the sources that are new.
    """
    report = [
        Imported(bad.title, without_userinfo(bad.url), bad.folder, "rejected", reason=translate(bad.reason))
        for bad in export.rejected
    ]
    for start in range(0, len(export.outlines), CHUNK):
        chunk = export.outlines[start : start + CHUNK]
        entries = [_read(outline) for outline in chunk]
        with store.writing() as connection:
            report += _import(connection, chunk, entries, export.seen, now, for_owner)
        on_progress(start + len(chunk), len(export.outlines))
    return report


def _read(outline: Outline) -> Addition | Imported:
    """The source that an entry asks for, or why there is none."""
    reason: str = translate(REASON_BAD_ADDRESS)
    if outline.type is not None or is_address(outline.url):
        try:
            wanted = read_new_source(
                outline.url, outline.type or "rss.feed", name=outline.title or None, folder=outline.folder
            )
            return make_addition(wanted, enabled=not outline.paused)
        except InputError as error:
            reason = error.render()
    return _report(outline, "rejected", reason=reason)


def _report(
    outline: Outline, outcome: Outcome, *, source_id: int | None = None, reason: str | None = None
) -> Imported:
    return Imported(
        outline.title, without_userinfo(outline.url), outline.folder, outcome, source_id, reason=reason
    )


def _import(
    connection: Connection,
    chunk: Sequence[Outline],
    entries: Sequence[Addition | Imported],
    seen: Callable[[Outline], Iterable[Seen]],
    now: float,
    for_owner: bool,
) -> list[Imported]:
    """Add a chunk of a list: its duplicates are found by one query, and the rest is added by one statement."""
    wanted: dict[tuple[str, str], Addition] = {}
    for entry in entries:
        if isinstance(entry, Addition):
            wanted.setdefault(entry.key, entry)
    known = _find(connection, wanted)
    new = [each for key, each in wanted.items() if key not in known]
    added, refused = _add(new, connection, now, for_owner)
    # Others may have added some in between; and of two entries with one address, the second is known.
    known |= _find(connection, wanted.keys() - known.keys() - added.keys() - refused.keys())
    report = []
    for outline, entry in zip(chunk, entries, strict=True):
        if isinstance(entry, Imported):
            report.append(entry)
            continue
        key = entry.key
        if key in refused:
            done = _report(outline, "rejected", reason=refused[key])
        elif key in added and wanted[key] is entry:
            paused = (
                None if entry.enabled else translate("Imported as paused, as it was in the other reader.")
            )
            done = Imported(entry.name, entry.url, entry.folder, "added", added[key], paused)
        else:
            there = known.get(key) or Living(added[key], wanted[key].name, *key, None)
            error = duplicate_of(there, entry.url)
            done = _report(outline, "known", source_id=there.id, reason=error.render())
        if key in added or (key in known and known[key].last_fetched_at is None):
            # A source that was visited knows better what it has shown.
            done = replace(done, seen=_remember(connection, done, seen(outline), now))
        report.append(done)
    return report


def _find(connection: Connection, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Living]:
    keys = list(keys)
    found = find_living(connection, (key for _, key in keys), (type_ for type_, _ in keys))
    return {(each.type, each.url_key): each for each in found}


def _add(
    additions: Sequence[Addition], connection: Connection, now: float, for_owner: bool
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], str]]:
    """Add sources, and report those that the database refuses: they stop no other."""
    if not additions:
        return {}, {}
    try:
        with connection.begin_nested():
            return add_sources(connection, additions, now, for_owner=for_owner), {}
    except DBAPIError as error:
        if isinstance(error, OperationalError | InterfaceError):
            raise  # the database itself is in trouble, not an entry
        if len(additions) == 1:
            return {}, {additions[0].key: first_line(error.orig)}
    middle = len(additions) // 2
    added, refused = _add(additions[:middle], connection, now, for_owner)
    more_added, more_refused = _add(additions[middle:], connection, now, for_owner)
    return added | more_added, refused | more_refused


def _remember(connection: Connection, done: Imported, entries: Iterable[Seen], now: float) -> int:
    """Note what was read elsewhere, so that it does not come back as new."""
    if done.source_id is None:
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


def export_opml(
    store: Store,
    now: float,
    *,
    with_secrets: bool = False,
    on_masked: Callable[[str], None] = lambda url: None,
) -> Iterator[bytes]:
    """An OPML file of all sources in pieces, with their folders, titles and types.

    Secrets in their addresses are starred out unless they are asked for, and `on_masked` is called for each; those of
    configs are never in it.
    """

    def outline(source: Source) -> Outline:
        url = source.url if with_secrets else without_secrets(source.url)
        if url != source.url:
            on_masked(url)
        return Outline(
            url=url,
            title=source.name,
            folder=source.folder,
            site_url=source.metadata.site_url,
            description=source.metadata.description,
            type=None if source.type == "rss.feed" else source.type,
        )

    with store.reading() as connection:
        outlines = map(outline, iterate_sources(connection, by_folder=True))
        yield from write_opml(outlines, title="Headwater", created=datetime.fromtimestamp(now, UTC))
