"""What lists show of items and sources: a few columns of a few rows, read from an index.

A page that is fetched every other second must not read the contents of what it names.
"""

from dataclasses import dataclass

import orjson
from sqlalchemy import Connection, select

from headwater.model import Json
from headwater.store.tables import items, sources


@dataclass(frozen=True, slots=True)
class ListedItem:
    id: int
    source_name: str
    url: str | None
    title: str
    first_seen_at: float


@dataclass(frozen=True, slots=True)
class ListedSource:
    id: int
    name: str
    type: str
    status: str
    schedule_enabled: bool
    last_error: str | None
    last_fetched_at: float | None
    next_fetch_at: float | None
    plan_reason: Json
    fetch_count: int


def newest_items(connection: Connection, *, limit: int) -> list[ListedItem]:
    """The newest items, newest first."""
    column = items.c
    query = (
        select(column.id, sources.c.name, column.url, column.title, column.first_seen_at)
        .join_from(items, sources)
        .order_by(column.item_at.desc(), column.id.desc())
        .limit(limit)
    )
    return [ListedItem(*row) for row in connection.execute(query)]


def first_sources(connection: Connection, *, limit: int) -> list[ListedSource]:
    """The sources that were added first."""
    columns = [sources.c[name] for name in ListedSource.__dataclass_fields__]
    query = select(*columns).where(~sources.c.is_deleted).order_by(sources.c.id).limit(limit)
    found = []
    for row in connection.execute(query):
        values = row._asdict()
        found.append(ListedSource(**{**values, "plan_reason": orjson.loads(values["plan_reason"])}))
    return found
