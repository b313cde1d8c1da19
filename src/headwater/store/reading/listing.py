"""What lists show of items and sources: a few columns of a few rows, read from an index.

A page that is fetched every other second must not read the contents of what it names.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Select, func, select, text

from headwater.errors import NotFoundError
from headwater.markup import LONGEST_TEXT
from headwater.model import Json, ListedItem, StoredItem
from headwater.store.collecting.addresses import values_in_use
from headwater.store.core.paging import one_page
from headwater.store.core.tables import CURRENT_SCORE, item_results, items, sources
from headwater.store.reading.items import select_items, stored_item, with_results
from headwater.store.reading.results import Traits, traits_of
from headwater.store.reading.search import is_common
from headwater.store.reading.selection import EVERYTHING, WALKED_ITEMS, Selection, conditions
from headwater.wording import NOTHING


@dataclass(frozen=True, slots=True)
class ScoredItem:
    score: float
    item: ListedItem


@dataclass(frozen=True, slots=True)
class ListedSource:
    id: int
    name: str
    type: str
    status: str
    schedule_enabled: bool
    is_deleted: bool
    is_late: bool
    consecutive_failures: int
    last_error: str | None
    last_fetched_at: float | None
    last_entry_at: float | None
    next_fetch_at: float | None
    plan_reason: Json
    fetch_count: int


_LISTED = [
    items.c.get(name, sources.c.name)
    for name in ListedItem.__dataclass_fields__
    if name not in Traits.__dataclass_fields__
]


def newest_items(
    connection: Connection,
    selection: Selection = EVERYTHING,
    *,
    after: tuple[float, int] | None = None,
    limit: int,
) -> list[ListedItem]:
    """Up to `limit` items and one more, newest first, from after the one at `after` (its time and number)."""
    query = select(*_LISTED).join_from(items, sources)
    found = newest_rows(connection, query, selection, after=after, limit=limit)
    return [ListedItem(*row) for row in found]


def read_beginnings(
    connection: Connection, item_ids: Sequence[int], characters: int = 1_000
) -> dict[int, str]:
    """How the text of each of some items begins: its summary, else its content."""
    summary, content = items.c.summary, items.c.content
    begins = func.substr(func.coalesce(func.nullif(summary, ""), content, ""), 1, characters)
    query = select(items.c.id, begins).where(items.c.id.in_(item_ids))
    return {item_id: text or "" for item_id, text in connection.execute(query)}


def best_items(
    connection: Connection,
    selection: Selection = EVERYTHING,
    *,
    after: tuple[float, int] | None = None,
    limit: int,
) -> list[ScoredItem]:
    """Up to `limit` items with a score and one more, the best first, from after the one at `after` (score, number)."""
    result = item_results.c
    query = (
        select(result.value, *_LISTED)
        .select_from(item_results)
        .join(items, items.c.id == result.item_id)
        .join(sources, sources.c.id == items.c.source_id)
        .where(text(f"({CURRENT_SCORE})"), *conditions(connection, selection, item_by_item=True))
    )
    page = one_page(query, [result.value, result.item_id], after=after, limit=limit, newest_first=True)
    return [ScoredItem(score, ListedItem(*row)) for score, *row in connection.execute(page)]


def with_traits(connection: Connection, found: Sequence[ListedItem]) -> list[ListedItem]:
    """The same items with what lists show of their results."""
    traits = traits_of(connection, [item.id for item in found])
    return [
        replace(
            item,
            result_keys=its.result_keys,
            pipeline_score=its.pipeline_score,
            tags=its.tags,
        )
        if (its := traits.get(item.id))
        else item
        for item in found
    ]


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
    has_results = selection.has or selection.tags or selection.min_score is not None
    if selection.folders or selection.types or has_results or _looks_for_common_words(connection, selection):
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


def read_items(
    connection: Connection, item_ids: Sequence[int], *, longest_text: int = LONGEST_TEXT
) -> list[StoredItem]:
    """These items as a whole, in this order; those that are gone are left out. Texts are cut at `longest_text`."""
    query = select_items(longest_text=longest_text).where(items.c.id.in_(item_ids))
    found = {row.id: stored_item(row) for row in connection.execute(query)}
    return with_results(connection, [found[item_id] for item_id in item_ids if item_id in found])


def list_folders(connection: Connection) -> list[str]:
    """The folders that sources are in."""
    return values_in_use(connection, "folder")


def refuse_unknown_folders(connection: Connection, folders: Iterable[str]) -> None:
    """NotFoundError for the first folder that no source is in, not even one that was removed."""
    for folder in folders:
        used = select(sources.c.id).where(sources.c.folder == folder).limit(1)
        if connection.execute(used).first() is None:
            known = list_folders(connection)
            raise NotFoundError(
                "there is no folder {name}; the folders are: {folders}",
                name=folder,
                folders=", ".join(known) or NOTHING,
            )


def first_sources(connection: Connection, *, limit: int) -> list[ListedSource]:
    """The sources that were added first."""
    columns = [sources.c[name] for name in ListedSource.__dataclass_fields__]
    query = select(*columns).where(~sources.c.is_deleted).order_by(sources.c.id).limit(limit)
    found = []
    for row in connection.execute(query):
        values = row._asdict()
        found.append(ListedSource(**{**values, "plan_reason": orjson.loads(values["plan_reason"])}))
    return found
