"""Items: what is known of a source's items, writing new and changed ones, listing them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import orjson
from sqlalchemy import Connection, Row, select

from headwater.model import Item
from headwater.store.bulk import insert_rows, select_by, storable, update_rows
from headwater.store.tables import item_versions, items, seen_ids, sources

ChangeKind = Literal["new", "changed", "renamed"]


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One item that a visit found to be new, changed, or known under another id.

    `keys` are the hashes by which it is to be recognised from now on, its id's first.
    """

    kind: ChangeKind
    item: Item
    keys: tuple[bytes, ...]
    content_hash: bytes
    item_at: float
    date_invented: bool = False


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as it is listed, with the source it came from."""

    id: int
    source_id: int
    source_name: str
    external_id: str
    url: str | None
    title: str
    author: str | None
    summary: str | None
    content: str | None
    published_at: float | None
    updated_at: float | None
    first_seen_at: float
    date_invented: bool
    version: int
    status: str
    extra: dict[str, Any]


def known_keys(connection: Connection, source_id: int, keys: Iterable[bytes]) -> dict[bytes, bytes]:
    """Which of `keys` this source has shown before, each with the hash of the content seen last."""
    return {
        bytes(key): bytes(content)
        for key, content in select_by(
            connection,
            "SELECT id_hash, content_hash FROM seen_ids WHERE source_id = ? AND id_hash {values}",
            keys,
            "bytea",
            source_id,
        )
    }


_CONTENT = ("url", "title", "author", "summary", "content", "published_at", "updated_at", "language", "extra")
_NEW = ("source_id", "external_id", *_CONTENT, "item_at", "date_invented", "first_seen_at", "content_hash")
_SEEN = ("source_id", "id_hash", "content_hash", "first_seen_at")


def write_items(connection: Connection, visits: Sequence[tuple[int, tuple[ItemChange, ...], float]]) -> None:
    """Write the changes of many visits, each given as (source id, changes, time)."""
    new: list[tuple[Any, ...]] = []
    seen: dict[tuple[int, bytes], tuple[Any, ...]] = {}
    changed: list[tuple[int, ItemChange, float]] = []
    for source_id, changes, now in visits:
        for change in changes:
            for key in change.keys:
                seen[source_id, key] = (source_id, key, change.content_hash, now)
            if change.kind == "new":
                item = change.item
                new.append(
                    (
                        source_id,
                        storable(item.external_id),
                        *_content_values(item),
                        change.item_at,
                        change.date_invented,
                        now,
                        change.content_hash,
                    )
                )
            else:
                changed.append((source_id, change, now))
    insert_rows(connection, items, _NEW, new, "ON CONFLICT (source_id, external_id) DO NOTHING")
    for source_id, change, now in changed:
        _write_change(connection, source_id, change, now)
    insert_rows(
        connection,
        seen_ids,
        _SEEN,
        list(seen.values()),
        "ON CONFLICT (source_id, id_hash) DO UPDATE SET content_hash = excluded.content_hash",
    )


def _write_change(connection: Connection, source_id: int, change: ItemChange, now: float) -> None:
    item = change.item
    external_id = storable(item.external_id)
    if change.kind == "renamed":
        # Found by its likeness: the row is the one with this title and date, or this title and address.
        row = connection.execute(
            select(items.c.id).where(
                items.c.source_id == source_id,
                items.c.title == storable(item.title),
                (items.c.published_at == item.published_at) | (items.c.url == storable(item.url)),
            )
        ).first()
        if row is not None:
            connection.execute(
                items.update().where(items.c.id == row.id).values(external_id=external_id, url=item.url)
            )
        return
    row = connection.execute(
        select(items).where(items.c.source_id == source_id, items.c.external_id == external_id)
    ).first()
    if row is None or row.content_hash == change.content_hash:
        return  # retention has taken it, or a repeated settlement finds it done
    insert_rows(
        connection,
        item_versions,
        ("item_id", "version", "title", "summary", "content", "updated_at", "content_hash", "replaced_at"),
        [
            (
                row.id,
                row.version,
                row.title,
                row.summary,
                row.content,
                row.updated_at,
                row.content_hash,
                now,
            )
        ],
    )
    update_rows(
        connection,
        items,
        ("id",),
        (*_CONTENT, "content_hash", "version"),
        [(*_content_values(item), change.content_hash, row.version + 1, row.id)],
    )


def _content_values(item: Item) -> tuple[Any, ...]:
    extra: dict[str, Any] = {}
    if item.image_url:
        extra["image_url"] = item.image_url
    if item.comments_url:
        extra["comments_url"] = item.comments_url
    if item.categories:
        extra["categories"] = list(item.categories)
    if item.enclosures:
        extra["enclosures"] = [
            {name: value for name, value in asdict(enclosure).items() if value is not None}
            for enclosure in item.enclosures
        ]
    return (
        storable(item.url),
        storable(item.title),
        storable(item.author),
        storable(item.summary),
        storable(item.content),
        item.published_at,
        item.updated_at,
        storable(item.language),
        storable(_json(extra)) if extra else "{}",
    )


def _json(value: dict[str, Any]) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate somewhere inside
        import json

        return json.dumps(value, ensure_ascii=False)  # which `storable` can mend


def list_items(
    connection: Connection,
    *,
    source_id: int | None = None,
    after_id: int | None = None,
    limit: int | None = 50,
) -> list[StoredItem]:
    """Items, newest first; with `after_id`, those stored after that one, oldest first."""
    query = select(items, sources.c.name.label("source_name")).join(sources)
    if source_id is not None:
        query = query.where(items.c.source_id == source_id)
    if after_id is None:
        query = query.order_by(items.c.item_at.desc(), items.c.id.desc())
    else:
        query = query.where(items.c.id > after_id).order_by(items.c.id)
    return [_stored_item(row) for row in connection.execute(query.limit(limit))]


def count_items(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT count(*) FROM items").scalar_one())


def _stored_item(row: Row[Any]) -> StoredItem:
    return StoredItem(
        id=row.id,
        source_id=row.source_id,
        source_name=row.source_name,
        external_id=row.external_id,
        url=row.url,
        title=row.title,
        author=row.author,
        summary=row.summary,
        content=row.content,
        published_at=row.published_at,
        updated_at=row.updated_at,
        first_seen_at=row.first_seen_at,
        date_invented=bool(row.date_invented),
        version=row.version,
        status=row.status,
        extra=orjson.loads(row.extra),
    )
