"""What lists show of items and sources: a few columns of a few rows, read from an index.

A page that is fetched every other second must not read the contents of what it names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from sqlalchemy import ColumnElement, Connection, Select, select

from headwater.model import Json
from headwater.store.items import StoredItem, stored_item
from headwater.store.paging import one_page
from headwater.store.search import is_common
from headwater.store.selection import EVERYTHING, WALKED_ITEMS, Selection, conditions
from headwater.store.tables import LIVE, items, sources


@dataclass(frozen=True, slots=True)
class ListedItem:
    id: int
    source_id: int
    source_name: str
    url: str | None
    title: str
    first_seen_at: float
    item_at: float
    version: int


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


def newest_items(
    connection: Connection,
    selection: Selection = EVERYTHING,
    *,
    after: tuple[float, int] | None = None,
    limit: int,
) -> list[ListedItem]:
    """Up to `limit` items and one more, newest first, from after the one at `after` (its time and number)."""
    column = items.c
    query = select(
        column.id,
        column.source_id,
        sources.c.name,
        column.url,
        column.title,
        column.first_seen_at,
        column.item_at,
        column.version,
    ).join_from(items, sources)
    found = newest_rows(connection, query, selection, after=after, limit=limit)
    return [ListedItem(*row) for row in found]


def newest_rows(
    connection: Connection,
    query: Select[Any],
    selection: Selection,
    *,
    after: tuple[float, int] | None = None,
    limit: int,
) -> Sequence[Any]:
    """Up to `limit` rows and one more of a query over items joined with their sources, newest items first."""
    order = [items.c.item_at, items.c.id]

    def read(*wanted: ColumnElement[bool]) -> Sequence[Any]:
        page = one_page(query.where(*wanted), order, after=after, limit=limit, newest_first=True)
        return connection.execute(page).all()

    # Many sources have a page's worth among the newest of all, most likely, and so has a common word.
    # If not, theirs are gathered.
    if selection.folders or selection.types or _looks_for_common_words(connection, selection):
        walked = one_page(select(items.c.item_at), order, after=after, limit=0, newest_first=True)
        last = connection.execute(walked.offset(WALKED_ITEMS)).scalar()
        near = () if last is None else (items.c.item_at >= last,)
        found = read(*conditions(connection, selection, item_by_item=True), *near)
        if last is None or len(found) > limit:
            return found
    return read(*conditions(connection, selection))


def _looks_for_common_words(connection: Connection, selection: Selection) -> bool:
    if selection.search is None or selection.source_ids:
        return False
    return is_common(connection, selection.search)


def read_items(connection: Connection, item_ids: Sequence[int]) -> list[StoredItem]:
    """These items as a whole, in this order; those that are gone are left out."""
    query = (
        select(items, sources.c.name.label("source_name"))
        .join_from(items, sources)
        .where(items.c.id.in_(item_ids))
    )
    found = {row.id: stored_item(row) for row in connection.execute(query)}
    return [found[item_id] for item_id in item_ids if item_id in found]


def list_folders(connection: Connection) -> list[str]:
    """The folders that sources are in."""
    return values_in_use(connection, "folder")


def values_in_use(connection: Connection, name: Literal["folder", "type"]) -> list[str]:
    """The different values of a column that sources have: from one to the next by its index, not source by source."""
    found = connection.exec_driver_sql(
        f"WITH RECURSIVE found(value) AS (SELECT min({name}) FROM sources WHERE {LIVE} UNION ALL"
        f" SELECT (SELECT min({name}) FROM sources WHERE {LIVE} AND {name} > found.value)"
        " FROM found WHERE found.value IS NOT NULL) SELECT value FROM found WHERE value IS NOT NULL"
    )
    return sorted(found.scalars())


def first_sources(connection: Connection, *, limit: int) -> list[ListedSource]:
    """The sources that were added first."""
    columns = [sources.c[name] for name in ListedSource.__dataclass_fields__]
    query = select(*columns).where(~sources.c.is_deleted).order_by(sources.c.id).limit(limit)
    found = []
    for row in connection.execute(query):
        values = row._asdict()
        found.append(ListedSource(**{**values, "plan_reason": orjson.loads(values["plan_reason"])}))
    return found
