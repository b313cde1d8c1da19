"""Items in the order in which they were found, whatever their dates say."""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, func, select

from headwater.model import StoredItem
from headwater.store.core.paging import one_page
from headwater.store.core.tables import items, sources
from headwater.store.reading.listing import read_items
from headwater.store.reading.page_sizes import count_fitting

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """How many items of a source are stored, and how many of them were found of late."""

    source_id: int
    name: str
    type: str
    total_items: int
    last_item_at: float | None
    items_24h: int


def found_items(
    connection: Connection,
    *,
    source_id: int | None = None,
    since: float | None = None,
    visited_only: bool = False,
    after: tuple[float, int] | None = None,
    limit: int,
) -> tuple[list[StoredItem], int]:
    """A page of items and one more, found last first, from before the one at `after` (its time and number).

    The second value is how many of them are the page: `limit` or fewer, as many as there is room for.
    """
    item = items.c
    query = select(item.id, item.first_seen_at)
    if source_id is not None:
        query = query.where(item.source_id == source_id)
    if since is not None:
        query = query.where(item.first_seen_at >= since)
    if visited_only:
        # Asked of each item's source separately: SQLite would first look through all sources for those that are not.
        its = sources.alias("its")
        visited = select(and_(~its.c.is_deleted, its.c.schedule_enabled, its.c.is_active))
        query = query.where(visited.where(its.c.id == item.source_id).correlate(items).scalar_subquery())
    page = one_page(query, [item.first_seen_at, item.id], after=after, limit=limit, newest_first=True)
    found = list(connection.execute(page).scalars())
    fitting = count_fitting(connection, found[:limit])
    return read_items(connection, found[: fitting + 1]), fitting


def item_counts(connection: Connection, now: float, *, after: int | None, limit: int) -> list[ItemCounts]:
    """Up to `limit` sources and one more by number, with the counts of their items."""
    page = one_page(
        select(sources.c.id, sources.c.name, sources.c.type).where(~sources.c.is_deleted),
        [sources.c.id],
        after=None if after is None else (after,),
        limit=limit,
    )
    found = connection.execute(page).all()
    ids = [row.id for row in found]
    of_these = items.c.source_id.in_(ids)
    totals = {
        row[0]: (row[1], row[2])
        for row in connection.execute(
            select(items.c.source_id, func.count(), func.max(items.c.item_at))
            .where(of_these)
            .group_by(items.c.source_id)
        )
    }
    recent: dict[int, int] = {
        row[0]: row[1]
        for row in connection.execute(
            select(items.c.source_id, func.count())
            .where(of_these, items.c.first_seen_at >= now - DAY_SECONDS)
            .group_by(items.c.source_id)
        )
    }
    return [
        ItemCounts(row.id, row.name, row.type, *totals.get(row.id, (0, None)), recent.get(row.id, 0))
        for row in found
    ]
