"""Consumer cursors: a named reader gets everything since its last acknowledgement, in order, at least once.

A cursor is a place in the order of storing (see store.positions). Reading does not move it; acknowledging does, and
only forward. An item comes up when it is stored; or also when it is changed, at the place of its last change and as it
is then (versions that were replaced before they were read are not told one by one); or when pipelines have finished it.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, func, literal, select

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.model import StoredItem
from headwater.store.core.tables import consumer_cursors, items, sources
from headwater.store.reading.listing import read_items
from headwater.store.reading.page_sizes import count_fitting
from headwater.store.reading.positions import last_settled_position
from headwater.store.reading.results import traits_of
from headwater.store.reading.search import first_outdated_position, first_unindexed_position
from headwater.store.reading.selection import (
    EVERYTHING,
    WALKED_ITEMS,
    Selection,
    conditions,
    from_json,
    refuse_unknown_sources,
    to_json,
)

When = Literal["stored", "changed", "processed"]
WHENS: tuple[When, ...] = get_args(When)
_PLACES: dict[When, ColumnElement[int]] = {
    "stored": items.c.position,
    "changed": items.c.changed_position,
    "processed": items.c.processed_position,
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


@dataclass(frozen=True, slots=True)
class Cursor:
    name: str
    position: int
    when: When
    selection: Selection
    created_at: float
    acknowledged_at: float | None


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """An item and the number with which it is acknowledged, along with everything before it."""

    position: int
    item: StoredItem


@dataclass(frozen=True, slots=True)
class Page:
    """What a cursor has before it. Acknowledging `position` acknowledges all of it, and what the selection left out."""

    items: tuple[PlacedItem, ...]
    position: int
    is_last: bool


def create_cursor(
    connection: Connection,
    name: str,
    *,
    now: float,
    selection: Selection = EVERYTHING,
    when: When = "stored",
    from_now: bool = False,
) -> Cursor:
    """A new cursor, before everything that is stored, or behind it."""
    if not _NAME.match(name):
        raise InputError(
            "{name} cannot be a cursor's name; use letters, digits, dots, hyphens and underscores", name=name
        )
    if connection.execute(select(consumer_cursors.c.name).where(consumer_cursors.c.name == name)).first():
        raise ConflictError("there is a cursor {name} already; remove it first, or reset it", name=name)
    refuse_unknown_sources(connection, selection)
    conditions(connection, selection)  # complains of a search for nothing
    connection.execute(
        consumer_cursors.insert().values(
            name=name,
            position=last_settled_position(connection) if from_now else 0,
            read_when=when,
            filters=orjson.dumps(to_json(selection)).decode(),
            created_at=now,
        )
    )
    return get_cursor(connection, name)


def get_cursor(connection: Connection, name: str) -> Cursor:
    row = connection.execute(select(consumer_cursors).where(consumer_cursors.c.name == name)).first()
    if row is None:
        raise NotFoundError(
            "there is no cursor {name}", hint="`headwater cursor list` shows them all", name=name
        )
    return _cursor(row)


def list_cursors(connection: Connection) -> list[Cursor]:
    return [
        _cursor(row) for row in connection.execute(select(consumer_cursors).order_by(consumer_cursors.c.name))
    ]


def read_cursor(connection: Connection, name: str, *, limit: int = 100) -> Page:
    """The next items before the cursor, at most `limit`. Reading again gives the same until they are acknowledged."""
    cursor = get_cursor(connection, name)
    settled = _readable_position(connection, cursor)
    place = _PLACES[cursor.when]
    query = select(items.c.id, place.label("place")).join_from(items, sources).order_by(place).limit(limit)
    # Near the cursor there is a page's worth, most likely. If not, all that is before it is gathered.
    near = min(settled, cursor.position + WALKED_ITEMS)
    rows = connection.execute(_matching(connection, query, cursor, near, item_by_item=True)).all()
    if len(rows) < limit and near < settled:
        rows = connection.execute(_matching(connection, query, cursor, settled)).all()
    fitting = count_fitting(connection, [row.id for row in rows])
    read = {item.id: item for item in read_items(connection, [row.id for row in rows[:fitting]])}
    found = tuple(PlacedItem(row.place, read[row.id]) for row in rows[:fitting])
    is_last = len(found) < limit and fitting == len(rows)
    return Page(found, settled if is_last else found[-1].position, is_last)


def count_before(connection: Connection, cursor: Cursor) -> int:
    """How many items the cursor has before it."""
    settled = _readable_position(connection, cursor)
    query = select(func.count()).select_from(items.join(sources))
    return int(connection.execute(_matching(connection, query, cursor, settled)).scalar_one())


@dataclass(frozen=True, slots=True)
class Gathered:
    """The items before a cursor that were asked for, how many there are in all, and where they end."""

    item_ids: tuple[int, ...]
    count: int
    position: int


def gather_items(connection: Connection, cursor: Cursor, *, limit: int, by_score: bool = False) -> Gathered:
    """The newest items before a cursor, or those with the best score; the cursor need not be stored."""
    settled = _readable_position(connection, cursor)
    query = select(items.c.id, items.c.item_at).join_from(items, sources)
    rows = connection.execute(_matching(connection, query, cursor, settled)).all()
    scores: dict[int, float] = {}
    if by_score:
        traits = traits_of(connection, [row.id for row in rows])
        scores = {item_id: each.pipeline_score or 0.0 for item_id, each in traits.items()}
    ranked = sorted(rows, key=lambda row: (scores.get(row.id, -1.0), row.item_at, row.id), reverse=True)
    return Gathered(tuple(row.id for row in ranked[:limit]), len(rows), settled)


def acknowledge(connection: Connection, name: str, position: int, *, now: float) -> Cursor:
    """Everything up to `position` has been dealt with. Acknowledging less than before changes nothing."""
    cursor = get_cursor(connection, name)
    settled = last_settled_position(connection)
    if position > settled:
        raise InputError(
            "{position} cannot be acknowledged: items were returned only up to {last}",
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


def _matching(
    connection: Connection, query: Select[Any], cursor: Cursor, last: int, *, item_by_item: bool = False
) -> Select[Any]:
    # As literals, by which PostgreSQL knows that it may be nearly all there is, even when it plans for any cursor.
    place = _PLACES[cursor.when]
    return query.where(
        place > literal(cursor.position, literal_execute=True),
        place <= literal(last, literal_execute=True),
        *conditions(connection, cursor.selection, item_by_item=item_by_item),
    )


def _readable_position(connection: Connection, cursor: Cursor) -> int:
    """How far the cursor can be read: a search finds nothing in what is not yet in the index, so it waits for that."""
    settled = last_settled_position(connection)
    if cursor.selection.search is not None:
        waiting = [first_unindexed_position(connection)]
        if cursor.when == "processed":
            waiting.append(first_outdated_position(connection))
        settled = min([settled, *(position - 1 for position in waiting if position is not None)])
    return max(cursor.position, settled)


def _cursor(row: Row[Any]) -> Cursor:
    return Cursor(
        name=row.name,
        position=row.position,
        when=row.read_when,
        selection=from_json(orjson.loads(row.filters)),
        created_at=row.created_at,
        acknowledged_at=row.acknowledged_at,
    )
