"""Starred and tagged entries of another reader's file: they become items of their sources, with the person's marks.

Their texts come along where the file has them, for a feed may have dropped them long ago. A source that others
subscribe to takes nothing from one person's file: of its entries, those that are stored are marked.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sqlalchemy import Connection, select

from headwater.collect.bounding import bound_items
from headwater.collect.decide import imported_keys
from headwater.model import Item
from headwater.sources.importing.export import Export, Marked
from headwater.store.core.bulk import select_by
from headwater.store.core.database import Store
from headwater.store.core.tables import subscriptions
from headwater.store.people.marks import add_tags, set_starred
from headwater.store.people.reading import mark_read
from headwater.store.reading.items import UNKNOWN_CONTENT, ItemChange, known_keys, write_items

CHUNK = 200


def bring_marked(
    store: Store, user_id: int, export: Export, source_ids: Sequence[int | None], now: float
) -> int:
    """Bring the marked entries of every subscription along; `source_ids` in the order of its outlines. How many."""
    count = 0
    for outline, source_id in zip(export.outlines, source_ids, strict=True):
        if source_id is None:
            continue
        for part in _chunks(export.marked(outline)):
            with store.writing() as connection:
                count += _bring(connection, user_id, source_id, part, now)
    return count


def _chunks(entries: Iterable[Marked]) -> Iterator[list[Marked]]:
    left = iter(entries)
    while part := list(islice(left, CHUNK)):
        yield part


def _bring(
    connection: Connection, user_id: int, source_id: int, entries: Sequence[Marked], now: float
) -> int:
    keys = [imported_keys(each.external_id, each.url) for each in entries]
    known = known_keys(connection, source_id, [key for those in keys for key in those])
    homes = [
        next((known[key].item_key for key in those if key in known), next(iter(those))) for those in keys
    ]
    changes = {
        home: ItemChange(
            "new",
            _item(entry),
            home,
            home,
            tuple(key for key in those if key != home),
            UNKNOWN_CONTENT,
            entry.published_at or now,
            entry.published_at is None,
        )
        for entry, those, home in zip(entries, keys, homes, strict=True)
    }
    there = _numbers(connection, source_id, homes)
    if not _is_shared(connection, user_id, source_id):
        missing = tuple(change for home, change in changes.items() if home not in there)
        write_items(connection, [(source_id, missing, now)])
    numbers = _numbers(connection, source_id, homes)
    for entry, home in zip(entries, homes, strict=True):
        if home in numbers:
            _mark(connection, user_id, numbers[home], entry, now, is_new=home not in there)
    return len(numbers)


def _is_shared(connection: Connection, user_id: int, source_id: int) -> bool:
    own = subscriptions.c
    others = select(own.id).where(own.source_id == source_id, own.user_id != user_id).limit(1)
    return connection.execute(others).first() is not None


def _item(entry: Marked) -> Item:
    item = Item(
        entry.external_id or entry.url or "",
        url=entry.url,
        title=entry.title,
        author=entry.author,
        content=entry.content,
        published_at=entry.published_at,
    )
    return bound_items((item,))[0]


def _numbers(connection: Connection, source_id: int, homes: Iterable[bytes]) -> dict[bytes, int]:
    sql = "SELECT id_hash, id FROM items WHERE source_id = ? AND id_hash {values}"
    rows = select_by(connection, sql, set(homes), "bytea", source_id)
    return {bytes(row[0]): row[1] for row in rows}


def _mark(
    connection: Connection, user_id: int, item_id: int, entry: Marked, now: float, *, is_new: bool
) -> None:
    if entry.is_starred:
        set_starred(connection, user_id, [item_id], True, now)
    if entry.tags:
        add_tags(connection, user_id, [item_id], entry.tags, now)
    if entry.is_read and is_new:
        mark_read(connection, user_id, [item_id], True)
