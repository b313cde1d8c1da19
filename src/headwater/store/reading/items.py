"""Items: what is known of a source's items, writing new and changed ones, listing them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from operator import attrgetter
from typing import Any, Literal, get_type_hints

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from headwater.errors import NotFoundError
from headwater.markup import LONGEST_TEXT
from headwater.model import Enclosure, Item, StoredItem
from headwater.records import dataclass
from headwater.store.core.bulk import (
    insert_returning,
    insert_rows,
    is_sqlite,
    select_by,
    select_rows,
    storable,
    update_rows,
)
from headwater.store.core.settings import get_setting, set_setting
from headwater.store.core.tables import item_versions, items, seen_ids, sources
from headwater.store.people.reading import note_stored
from headwater.store.reading.positions import last_settled_position, take_positions
from headwater.store.reading.results import index_again, results_of, traits_of
from headwater.store.reading.search import words_of_item, write_words
from headwater.store.reading.selection import EVERYTHING, Selection, conditions

MOST_VERSIONS = 50  # of an item that are read
COUNTED_KEY = "items.counted"
UNKNOWN_CONTENT = b""  # of something seen elsewhere; a likeness has none either, because it is never compared
ChangeKind = Literal["new", "changed", "renamed"]


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered under a key: which item it belongs to, and under that of its id the content seen last."""

    item_key: bytes
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One item that a visit found to be new, changed, or known under another id.

    `id_key` is the hash of the id it has now, `item_key` the one it is stored under; `likenesses` are further
    hashes by which a new item is to be recognised.
    """

    kind: ChangeKind
    item: Item
    id_key: bytes
    item_key: bytes
    likenesses: tuple[bytes, ...]
    content_hash: bytes
    item_at: float
    date_invented: bool = False
    words: tuple[str, ...] | None = None  # of one that has changed: what it is to be found by


# The fields of an item that have their own column, and those that are packed into the column `extra`.
_OWN = tuple(each.name for each in fields(Item) if each.name in items.c and each.name != "external_id")
_PACKED = tuple(each.name for each in fields(Item) if each.name not in (*items.c.keys(), "extras"))
_own_values, _packed_values = attrgetter(*_OWN), attrgetter(*_PACKED)


def _column(name: str, longest_text: int) -> ColumnElement[Any]:
    """A column to read. Texts that were stored before there was a limit are cut as they are read."""
    if name in ("summary", "content"):
        return func.substr(items.c[name], 1, longest_text).label(name)
    return items.c[name]


_READ = tuple(each.name for each in fields(StoredItem) if each.name in items.c)
_NAMES = (*_READ, "source_name", "source_type")


def select_items(*more: ColumnElement[Any], longest_text: int = LONGEST_TEXT) -> Select[Any]:
    """A query for items as a whole, joined with their sources, for `stored_item`; with `more` columns behind."""
    columns = (
        *(_column(name, longest_text) for name in _READ),
        sources.c.name.label("source_name"),
        sources.c.type.label("source_type"),
        items.c.extra,
    )
    return select(*columns, *more).join_from(items, sources)


def known_keys(connection: Connection, source_id: int, keys: Iterable[bytes]) -> dict[bytes, Known]:
    """Which of `keys` this source has shown before."""
    return known_keys_of(connection, {source_id: keys})[source_id]


def known_keys_of(
    connection: Connection, keys: Mapping[int, Iterable[bytes]]
) -> dict[int, dict[bytes, Known]]:
    """Which keys sources have shown before, by source."""
    known: dict[int, dict[bytes, Known]] = {source_id: {} for source_id in keys}
    rows = select_rows(
        connection,
        seen_ids,
        ("source_id", "id_hash"),
        ("item_hash", "content_hash"),
        [(source_id, key) for source_id, some in keys.items() for key in some],
    )
    for source_id, key, item_key, content in rows:
        known[source_id][bytes(key)] = Known(bytes(item_key), bytes(content))
    return known


def earlier_contents(
    connection: Connection, source_id: int, item_keys: Iterable[bytes]
) -> dict[bytes, list[bytes]]:
    """The content hashes of the versions that were replaced, of those items that have some."""
    found: dict[bytes, list[bytes]] = {}
    for item_key, content in select_by(
        connection,
        "SELECT items.id_hash, item_versions.content_hash FROM items JOIN item_versions ON item_id = items.id"
        " WHERE source_id = ? AND id_hash {values}",
        item_keys,
        "bytea",
        source_id,
    ):
        found.setdefault(bytes(item_key), []).append(bytes(content))
    return found


def remember_keys(connection: Connection, source_id: int, keys: Mapping[bytes, bytes], now: float) -> None:
    """Let a source take for seen what it never showed us: by key, the key of the item it belongs to."""
    insert_rows(
        connection,
        seen_ids,
        _SEEN,
        [(source_id, key, item_key, UNKNOWN_CONTENT, now) for key, item_key in keys.items()],
        "ON CONFLICT (source_id, id_hash) DO NOTHING",
    )


def recent_times(connection: Connection, source_id: int, limit: int) -> list[float]:
    """When the newest dated items of a source were published, oldest first."""
    if limit <= 0:
        return []
    mark = "?" if is_sqlite(connection) else "%s"
    rows = connection.exec_driver_sql(
        f"SELECT published_at FROM items WHERE source_id = {mark} AND published_at IS NOT NULL"
        f" ORDER BY item_at DESC LIMIT {mark}",
        (source_id, limit),
    )
    return sorted(row[0] for row in rows)


def publication_times(connection: Connection) -> dict[str, list[float]]:
    """When every source's stored items were published, by the source's number and name."""
    query = (
        select(sources.c.id, sources.c.name, items.c.published_at)
        .join_from(items, sources)
        .where(items.c.published_at.is_not(None), ~items.c.date_invented)
        .order_by(sources.c.id)
    )
    found: dict[str, list[float]] = {}
    for source_id, name, published_at in connection.execute(query):
        found.setdefault(f"{source_id} {name}", []).append(published_at)
    return found


_CONTENT = (*_OWN, "extra")
_NEW = (
    "source_id",
    "external_id",
    "id_hash",
    *_CONTENT,
    "item_at",
    "date_invented",
    "first_seen_at",
    "content_hash",
    "position",
    "changed_position",
)
_SEEN = ("source_id", "id_hash", "item_hash", "content_hash", "first_seen_at")


def write_items(connection: Connection, visits: Sequence[tuple[int, tuple[ItemChange, ...], float]]) -> None:
    """Write the changes of many visits, each given as (source id, changes, time)."""
    new: list[tuple[Any, ...]] = []
    no_content = bytearray(UNKNOWN_CONTENT)
    seen: dict[int, dict[bytes, tuple[Any, ...]]] = {}
    positions = iter(take_positions(connection, sum(len(changes) for _, changes, _ in visits)))
    for source_id, changes, now in visits:
        seen_here = seen.setdefault(source_id, {})
        for change in changes:
            if change.kind == "renamed":
                _rename(connection, source_id, change)
                change = replace(change, item_key=change.id_key)
            # SQLite's driver looks long for a way to write `bytes` and truths, and knows at once how to write these.
            id_key, item_key = bytearray(change.id_key), bytearray(change.item_key)
            content_hash = bytearray(change.content_hash)
            seen_here[change.id_key] = (source_id, id_key, item_key, content_hash, now)
            for key in change.likenesses:
                seen_here[key] = (source_id, bytearray(key), item_key, no_content, now)
            position = next(positions)
            if change.kind == "new":
                new.append(
                    (
                        source_id,
                        storable(change.item.external_id),
                        id_key,
                        *_content_values(change.item),
                        change.item_at,
                        int(change.date_invented),
                        now,
                        content_hash,
                        position,
                        position,
                    )
                )
            else:
                _change(connection, source_id, change, now, position)
    stored = insert_returning(
        connection, items, _NEW, new, "ON CONFLICT (source_id, id_hash) DO NOTHING", "source_id, position"
    )
    if stored:
        note_stored(connection, ((row[0], row[1]) for row in stored), max(now for _, _, now in visits))
    insert_rows(
        connection,
        seen_ids,
        _SEEN,
        [row for rows in seen.values() for row in rows.values()],
        "ON CONFLICT (source_id, id_hash) DO UPDATE SET content_hash = excluded.content_hash",
    )


def _rename(connection: Connection, source_id: int, change: ItemChange) -> None:
    """The item's row takes the id it has now; its old one stays known, as another name for it."""
    connection.execute(
        items.update()
        .where(items.c.source_id == source_id, items.c.id_hash == change.item_key)
        .values(
            external_id=storable(change.item.external_id),
            id_hash=change.id_key,
            url=storable(change.item.url),
        )
    )
    connection.execute(
        seen_ids.update()
        .where(seen_ids.c.source_id == source_id, seen_ids.c.item_hash == change.item_key)
        .values(item_hash=change.id_key)
    )


def _change(connection: Connection, source_id: int, change: ItemChange, now: float, position: int) -> None:
    """The item's row takes the new content; the old one is kept as a version."""
    row = connection.execute(
        select(items).where(items.c.source_id == source_id, items.c.id_hash == change.item_key)
    ).first()
    if row is None or row.content_hash == change.content_hash:
        return  # retention has taken it, or a repeated settlement finds it done
    insert_rows(
        connection,
        item_versions,
        ("item_id", "version", "title", "summary", "content", "updated_at", "content_hash", "replaced_at"),
        [(row.id, row.version, row.title, row.summary, row.content, row.updated_at, row.content_hash, now)],
    )
    update_rows(
        connection,
        items,
        ("id",),
        (*_CONTENT, "content_hash", "version", "changed_position"),
        [(*_content_values(change.item), change.content_hash, row.version + 1, position, row.id)],
    )
    write_words(connection, {row.id: list(change.words or words_of_item(change.item))})
    if traits_of(connection, [row.id]):
        index_again(connection, [row.id])  # with what pipelines made of it


def _content_values(item: Item) -> tuple[Any, ...]:
    extra = {
        name: value
        for name, value in zip(_PACKED, _packed_values(item), strict=True)
        if value or (value == 0 and value is not False)
    }
    if item.enclosures:
        extra["enclosures"] = [
            {name: value for name, value in asdict(enclosure).items() if value is not None}
            for enclosure in item.enclosures
        ]
    if item.extras:
        extra.update(item.extras)
    own = (storable(value) if isinstance(value, str) else value for value in _own_values(item))
    return (*own, storable(_json(extra)) if extra else "{}")


def _json(value: dict[str, Any]) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate somewhere inside
        import json

        return json.dumps(value, ensure_ascii=False)  # which `storable` can mend


def list_items(
    connection: Connection,
    *,
    selection: Selection = EVERYTHING,
    after_id: int | None = None,
    limit: int | None = 50,
) -> list[StoredItem]:
    """Items, newest first; with `after_id`, those stored after that one, oldest first."""
    query = select_items().where(*conditions(connection, selection))
    if after_id is None:
        query = query.order_by(items.c.item_at.desc(), items.c.id.desc())
    else:
        query = query.where(items.c.id > after_id).order_by(items.c.id)
    return with_results(connection, [stored_item(row) for row in connection.execute(query.limit(limit))])


def with_results(connection: Connection, found: Sequence[StoredItem]) -> list[StoredItem]:
    """The same items with what pipelines made of them."""
    results = results_of(connection, [item.id for item in found])
    return [replace(item, results=results[item.id]) if results[item.id] else item for item in found]


def get_item(connection: Connection, item_id: int) -> StoredItem:
    row = connection.execute(select_items().where(items.c.id == item_id)).first()
    if row is None:
        raise NotFoundError("there is no item {id}; it may have been removed by retention", id=item_id)
    return with_results(connection, [stored_item(row)])[0]


@dataclass(frozen=True, slots=True)
class ItemVersion:
    """What an item said before it was changed."""

    version: int
    title: str
    summary: str | None
    content: str | None
    updated_at: float | None
    replaced_at: float


def list_versions(connection: Connection, item_id: int, *, newest: int = MOST_VERSIONS) -> list[ItemVersion]:
    """What an item said at first, then, …, of the newest so many; what it says now is not among them."""
    columns = [
        func.substr(item_versions.c[name], 1, LONGEST_TEXT).label(name)
        if name in ("summary", "content")
        else item_versions.c[name]
        for name in ItemVersion.__dataclass_fields__
    ]
    query = select(*columns).where(item_versions.c.item_id == item_id)
    query = query.order_by(item_versions.c.version.desc()).limit(newest)
    return [ItemVersion(*row) for row in connection.execute(query)][::-1]


@dataclass(frozen=True, slots=True)
class ItemCount:
    """How many items were stored up to a place in the order of storing."""

    count: int
    position: int


def count_all_items(connection: Connection) -> ItemCount:
    """Reads of every item: for the upkeep."""
    position = last_settled_position(connection)
    query = select(func.count()).select_from(items).where(items.c.position <= position)
    return ItemCount(connection.execute(query).scalar_one(), position)


def note_item_count(connection: Connection, counted: ItemCount, now: float) -> None:
    set_setting(connection, COUNTED_KEY, asdict(counted), now)


def count_items(connection: Connection) -> int:
    """How many items are stored: as the last upkeep counted them, after its purge, and those that came since."""
    stored = get_setting(connection, COUNTED_KEY)
    if stored is None:
        return int(connection.execute(select(func.count()).select_from(items)).scalar_one())
    query = select(func.count()).select_from(items).where(items.c.position > stored["position"])
    return int(stored["count"]) + int(connection.execute(query).scalar_one())


def stored_item(row: Row[*tuple[Any, ...]]) -> StoredItem:
    """An item from a row of `select_items`."""
    values = dict(zip(_NAMES, row, strict=False))
    packed = row[len(_NAMES)]
    return StoredItem(**values) if packed == "{}" else StoredItem(**values, **_unpack(packed))


_TYPES: Any = {name: hint for name, hint in get_type_hints(Item).items() if name in _PACKED}


def _unpack(stored: str) -> dict[str, Any]:
    """The fields that are packed into `extra`, without what is of another type: it may come from another program."""
    extras = orjson.loads(stored)
    found = {name: extras.pop(name) for name in _PACKED if name in extras}
    known = {
        "categories": tuple(each for each in _list(found.pop("categories", None)) if isinstance(each, str)),
        "enclosures": tuple(
            file for each in _list(found.pop("enclosures", None)) if (file := _enclosure(each))
        ),
    }
    known |= {name: value for name, value in found.items() if isinstance(value, _TYPES[name])}
    return {**known, "extras": extras or None}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_ENCLOSURE: Any = get_type_hints(Enclosure)


def _enclosure(stored: Any) -> Enclosure | None:
    if not isinstance(stored, dict) or not isinstance(stored.get("url"), str):
        return None
    return Enclosure(
        **{name: value for name, value in stored.items() if isinstance(value, _ENCLOSURE.get(name, ()))}
    )
