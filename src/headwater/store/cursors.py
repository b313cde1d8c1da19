"""Consumer cursors: a named reader gets everything since its last acknowledgement, in order, at least once.

A cursor is a place in the order of storing (see store.positions). Reading does not move it; acknowledging does, and
only forward. With changes, an item comes up again at the place of its last change, as it is then: versions that were
replaced before they were read are not told one by one.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Row, Select, func, select

from headwater.errors import InputError, NotFoundError
from headwater.store.items import StoredItem, stored_item
from headwater.store.positions import last_settled_position
from headwater.store.tables import consumer_cursors, items, sources

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


@dataclass(frozen=True, slots=True)
class CursorFilter:
    """Which items a cursor is for; what is None makes no difference."""

    source_id: int | None = None
    folder: str | None = None
    type: str | None = None
    query: str | None = None  # occurs in title, summary or content; case makes no difference


EVERYTHING = CursorFilter()


@dataclass(frozen=True, slots=True)
class Cursor:
    name: str
    position: int
    with_changes: bool
    filter: CursorFilter
    created_at: float
    acknowledged_at: float | None


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """An item and the number with which it is acknowledged, along with everything before it."""

    position: int
    item: StoredItem


@dataclass(frozen=True, slots=True)
class Page:
    """What a cursor has before it. Acknowledging `position` acknowledges all of it, and what the filter left out."""

    items: tuple[PlacedItem, ...]
    position: int
    is_last: bool


def create_cursor(
    connection: Connection,
    name: str,
    *,
    now: float,
    filter: CursorFilter = EVERYTHING,
    with_changes: bool = False,
    from_now: bool = False,
) -> Cursor:
    """A new cursor, before everything that is stored, or behind it."""
    if not _NAME.match(name):
        raise InputError(
            "{name} cannot be a cursor's name; use letters, digits, dots, hyphens and underscores", name=name
        )
    if connection.execute(select(consumer_cursors.c.name).where(consumer_cursors.c.name == name)).first():
        raise InputError("there is a cursor {name} already; remove it first, or reset it", name=name)
    if filter.source_id is not None:
        from headwater.store.sources import get_source

        get_source(connection, filter.source_id)
    connection.execute(
        consumer_cursors.insert().values(
            name=name,
            position=last_settled_position(connection) if from_now else 0,
            with_changes=with_changes,
            filters=orjson.dumps(_without_none(asdict(filter))).decode(),
            created_at=now,
        )
    )
    return get_cursor(connection, name)


def get_cursor(connection: Connection, name: str) -> Cursor:
    row = connection.execute(select(consumer_cursors).where(consumer_cursors.c.name == name)).first()
    if row is None:
        raise NotFoundError("there is no cursor {name}; `headwater cursor list` shows them all", name=name)
    return _cursor(row)


def list_cursors(connection: Connection) -> list[Cursor]:
    return [
        _cursor(row) for row in connection.execute(select(consumer_cursors).order_by(consumer_cursors.c.name))
    ]


def read_cursor(connection: Connection, name: str, *, limit: int = 100) -> Page:
    """The next items before the cursor, at most `limit`. Reading again gives the same until they are acknowledged."""
    cursor = get_cursor(connection, name)
    settled = max(cursor.position, last_settled_position(connection))
    place = _place(cursor)
    columns = (items, sources.c.name.label("source_name"))
    query = _matching(select(*columns).join_from(items, sources), cursor, settled)
    rows = connection.execute(query.order_by(place).limit(limit)).all()
    found = tuple(
        PlacedItem(row.changed_position if cursor.with_changes else row.position, stored_item(row))
        for row in rows
    )
    is_last = len(found) < limit
    return Page(found, settled if is_last else found[-1].position, is_last)


def count_before(connection: Connection, cursor: Cursor) -> int:
    """How many items the cursor has before it."""
    settled = last_settled_position(connection)
    query = select(func.count()).select_from(items.join(sources))
    return int(connection.execute(_matching(query, cursor, settled)).scalar_one())


def acknowledge(connection: Connection, name: str, position: int, *, now: float) -> Cursor:
    """Everything up to `position` has been dealt with. Acknowledging less than before changes nothing."""
    cursor = get_cursor(connection, name)
    settled = last_settled_position(connection)
    if position > settled:
        raise InputError(
            "{position} cannot be acknowledged: nothing beyond {last} has been given out yet",
            position=position,
            last=settled,
        )
    connection.execute(
        consumer_cursors.update()
        .where(consumer_cursors.c.name == cursor.name, consumer_cursors.c.position <= position)
        .values(position=position, acknowledged_at=now)
    )
    return get_cursor(connection, name)


def reset_cursor(connection: Connection, name: str, *, position: int = 0) -> Cursor:
    """Put a cursor back, to read again what comes after `position`."""
    get_cursor(connection, name)
    connection.execute(
        consumer_cursors.update().where(consumer_cursors.c.name == name).values(position=position)
    )
    return get_cursor(connection, name)


def remove_cursor(connection: Connection, name: str) -> None:
    get_cursor(connection, name)
    connection.execute(consumer_cursors.delete().where(consumer_cursors.c.name == name))


def _place(cursor: Cursor) -> Any:
    return items.c.changed_position if cursor.with_changes else items.c.position


def _matching(query: Select[Any], cursor: Cursor, settled: int) -> Select[Any]:
    wanted = cursor.filter
    query = query.where(_place(cursor) > cursor.position, _place(cursor) <= settled)
    if wanted.source_id is not None:
        query = query.where(items.c.source_id == wanted.source_id)
    if wanted.folder is not None:
        query = query.where(sources.c.folder == wanted.folder)
    if wanted.type is not None:
        query = query.where(sources.c.type == wanted.type)
    if wanted.query is not None:
        texts = (items.c.title, items.c.summary, items.c.content)
        here = [text.icontains(wanted.query, autoescape=True) for text in texts]
        query = query.where(here[0] | here[1] | here[2])
    return query


def _cursor(row: Row[Any]) -> Cursor:
    return Cursor(
        name=row.name,
        position=row.position,
        with_changes=bool(row.with_changes),
        filter=CursorFilter(**orjson.loads(row.filters)),
        created_at=row.created_at,
        acknowledged_at=row.acknowledged_at,
    )


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
