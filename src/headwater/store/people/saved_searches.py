"""Searches that people keep under a name: the conditions of a list of entries."""

from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, func, select

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.model import Json
from headwater.store.core.bulk import storable
from headwater.store.core.tables import saved_searches
from headwater.store.people.folders import lock_user

LONGEST_NAME = 200
MOST_SEARCHES = 500


@dataclass(frozen=True, slots=True)
class SavedSearch:
    """A person's search; `filter` holds parameters of a list of entries."""

    id: int
    name: str
    filter: Json
    position: int
    created_at: float


_COLUMNS = [saved_searches.c[name] for name in SavedSearch.__dataclass_fields__]


def list_saved_searches(connection: Connection, user_id: int) -> list[SavedSearch]:
    """A person's searches in their order."""
    column = saved_searches.c
    query = select(*_COLUMNS).where(column.user_id == user_id).order_by(column.position, column.id)
    return [SavedSearch(row[0], row[1], orjson.loads(row[2]), *row[3:]) for row in connection.execute(query)]


def get_saved_search(connection: Connection, user_id: int, search_id: int) -> SavedSearch:
    found = [each for each in list_saved_searches(connection, user_id) if each.id == search_id]
    if not found:
        raise NotFoundError("there is no saved search {id}", id=search_id)
    return found[0]


def add_saved_search(
    connection: Connection, user_id: int, name: str, wanted: Json, now: float
) -> SavedSearch:
    """Keep a search, last in the order; ConflictError when there is one of this name."""
    lock_user(connection, user_id)
    there = list_saved_searches(connection, user_id)
    if len(there) >= MOST_SEARCHES:
        raise InputError("at most {most} searches can be saved", most=MOST_SEARCHES)
    name = _read_name(there, name, None)
    last = func.coalesce(func.max(saved_searches.c.position), 0)
    position = connection.execute(select(last).where(saved_searches.c.user_id == user_id)).scalar_one() + 1
    made = connection.execute(
        saved_searches.insert()
        .values(
            user_id=user_id,
            name=name,
            filter=orjson.dumps(wanted).decode(),
            position=position,
            created_at=now,
        )
        .returning(saved_searches.c.id)
    ).scalar_one()
    return get_saved_search(connection, user_id, made)


def change_saved_search(
    connection: Connection,
    user_id: int,
    search_id: int,
    *,
    name: str | None = None,
    wanted: Json | None = None,
    position: int | None = None,
) -> SavedSearch:
    """Rename a search, give it other conditions or another place in the order (0: first)."""
    lock_user(connection, user_id)
    get_saved_search(connection, user_id, search_id)
    there = list_saved_searches(connection, user_id)
    values: dict[str, Any] = {}
    if name is not None:
        values["name"] = _read_name(there, name, search_id)
    if wanted is not None:
        values["filter"] = orjson.dumps(wanted).decode()
    if values:
        connection.execute(saved_searches.update().where(saved_searches.c.id == search_id).values(**values))
    if position is not None:
        order = [each.id for each in there if each.id != search_id]
        order.insert(position, search_id)
        for place, each in enumerate(order, 1):
            connection.execute(
                saved_searches.update().where(saved_searches.c.id == each).values(position=place)
            )
    return get_saved_search(connection, user_id, search_id)


def remove_saved_search(connection: Connection, user_id: int, search_id: int) -> None:
    get_saved_search(connection, user_id, search_id)
    connection.execute(saved_searches.delete().where(saved_searches.c.id == search_id))


def _read_name(there: list[SavedSearch], name: str, own_id: int | None) -> str:
    name = " ".join((storable(name) or "").split())
    if not name:
        raise InputError("a saved search needs a name")
    if len(name) > LONGEST_NAME:
        raise InputError("a saved search's name has at most {limit} characters", limit=LONGEST_NAME)
    if any(each.name == name and each.id != own_id for each in there):
        raise ConflictError("there is a saved search {name} already", name=name)
    return name
