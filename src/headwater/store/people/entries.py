"""Entries: the items of a person's subscriptions with the person's state, listed by time.

Lists are sorted by `item_at`. The index for subscriptions is in the order of storing, and an item is never published
after it was stored. So the newest items of 200 sources are found among those stored last: in a window of positions that
grows until it holds a full page of items newer than everything before it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    func,
    or_,
    select,
    tuple_,
    union_all,
)

from headwater.errors import NotFoundError
from headwater.markup import LONGEST_TEXT
from headwater.model import StoredItem
from headwater.store.core.bulk import batches, select_by
from headwater.store.core.tables import (
    entry_marks,
    entry_tags,
    items,
    read_exceptions,
    sources,
    subscriptions,
)
from headwater.store.people.reading import are_read
from headwater.store.reading.items import select_items, stored_item
from headwater.store.reading.search import finds_few, matches

Sort = Literal["newest", "oldest"]
FIRST_WINDOW = 20_000  # positions in which a page is looked for first
CLOCK_SLACK_SECONDS = 600.0  # by how much the clocks of workers may differ


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which entries to list; conditions must all hold, and one that is None does not count.

    Without `source_ids`, the entries of all subscriptions that are not muted.
    """

    source_ids: tuple[int, ...] | None = None
    is_read: bool | None = None
    is_starred: bool | None = None
    read_later: bool | None = None
    tag: str | None = None
    search: str | None = None
    since: float | None = None  # first seen then or later
    until: float | None = None  # first seen before


@dataclass(frozen=True, slots=True)
class EntryState:
    """What a person did with an item."""

    is_read: bool
    starred_at: float | None = None
    later_at: float | None = None
    later_until: float | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Copy:
    """An entry of another subscription that tells the same story."""

    id: int
    feed_id: int | None
    feed_title: str
    title: str
    url: str | None
    is_read: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """An item with a person's state."""

    item: StoredItem
    subscription_id: int | None  # None: the person does not subscribe to its source any more
    folder_id: int | None
    feed_title: str
    state: EntryState = field(default=EntryState(False))
    is_muted: bool = False  # its subscription is left out of lists of several
    also_in: tuple[Copy, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """An item's number and time, and when it was first seen."""

    id: int
    item_at: float
    first_seen_at: float


def list_places(
    connection: Connection,
    user_id: int,
    wanted: EntryFilter,
    *,
    sort: Sort = "newest",
    after: tuple[float, int] | None = None,
    limit: int,
) -> list[Place]:
    """The places of up to `limit` entries and one more, from after the one at `after` (its time and number)."""
    page = _Page(sort, after, limit)
    if wanted.source_ids == ():
        return []
    if wanted.is_starred or wanted.read_later or wanted.tag is not None:
        return _read(connection, user_id, wanted, page, [_marked(user_id, wanted)])
    if (
        wanted.search is not None
        or sort == "oldest"
        or (wanted.source_ids is not None and len(wanted.source_ids) == 1)
    ):
        by_number = wanted.search is not None and finds_few(connection, wanted.search)
        return _read(connection, user_id, wanted, page, _branches(user_id, wanted, by_number=by_number))
    return _by_windows(connection, user_id, wanted, page)


@dataclass(frozen=True, slots=True)
class _Page:
    sort: Sort
    after: tuple[float, int] | None
    limit: int


_PLACE = (items.c.id, items.c.item_at, items.c.first_seen_at)


def _subscribed(user_id: int, wanted: EntryFilter) -> list[ColumnElement[bool]]:
    own = subscriptions.c
    is_there = select(~sources.c.is_deleted).where(sources.c.id == own.source_id).scalar_subquery()
    conditions: list[ColumnElement[bool]] = [own.user_id == user_id, is_there]
    if wanted.source_ids is None:
        conditions.append(~own.is_muted)
    else:
        conditions.append(own.source_id.in_(wanted.source_ids))
    return conditions


def _branches(user_id: int, wanted: EntryFilter, *, by_number: bool = False) -> list[Select[Any]]:
    """The items of the chosen subscriptions, read, unread or all.

    `by_number`: something else names a few items. SQLite would go through all items of every subscription for them.
    """
    own, except_ = subscriptions.c, read_exceptions.c
    here = (items.c.source_id + 0 if by_number else items.c.source_id) == own.source_id
    its = and_(
        except_.user_id == own.user_id,
        except_.source_id == own.source_id,
        except_.position == items.c.position,
    )
    chosen = _subscribed(user_id, wanted)
    if wanted.is_read is None:
        return [select(*_PLACE).join_from(subscriptions, items, here).where(*chosen)]
    by_level = items.c.position <= own.level if wanted.is_read else items.c.position > own.level
    usual = (
        select(*_PLACE)
        .join_from(subscriptions, items, and_(here, by_level))
        .outerjoin(read_exceptions, its)
        .where(*chosen, except_.user_id.is_(None))
    )
    excepted = (
        select(*_PLACE)
        .join_from(
            subscriptions,
            read_exceptions,
            and_(except_.user_id == own.user_id, except_.source_id == own.source_id),
        )
        .join(items, and_(here, items.c.position == except_.position))
        .where(*chosen, except_.is_read if wanted.is_read else ~except_.is_read)
    )
    return [usual, excepted]


def _marked(user_id: int, wanted: EntryFilter) -> Select[Any]:
    """The items that a person starred, tagged or put aside, of any source."""
    if wanted.tag is not None:
        table = entry_tags
        conditions = [entry_tags.c.user_id == user_id, entry_tags.c.tag == wanted.tag]
    else:
        table = entry_marks
        conditions = [entry_marks.c.user_id == user_id]
    query = select(*_PLACE).join_from(
        table, items, and_(items.c.source_id == table.c.source_id, items.c.position == table.c.position)
    )
    if wanted.source_ids is not None:
        conditions.append(table.c.source_id.in_(wanted.source_ids))
    mine = select(entry_marks.c.item_id).where(entry_marks.c.user_id == user_id)
    for flag, column in (
        (wanted.is_starred, entry_marks.c.starred_at),
        (wanted.read_later, entry_marks.c.later_at),
    ):
        if flag:
            conditions.append(
                column.is_not(None)
                if table is entry_marks
                else items.c.id.in_(mine.where(column.is_not(None)))
            )
    if wanted.is_read is not None:
        own, except_ = subscriptions.c, read_exceptions.c
        query = query.outerjoin(
            subscriptions, and_(own.user_id == user_id, own.source_id == items.c.source_id)
        ).outerjoin(
            read_exceptions,
            and_(
                except_.user_id == user_id,
                except_.source_id == items.c.source_id,
                except_.position == items.c.position,
            ),
        )
        is_unread = or_(
            and_(except_.user_id.is_not(None), ~except_.is_read),
            and_(except_.user_id.is_(None), own.id.is_not(None), items.c.position > own.level),
        )
        conditions.append(~is_unread if wanted.is_read else is_unread)
    return query.where(*conditions)


def _more(connection: Connection, user_id: int, wanted: EntryFilter) -> list[ColumnElement[bool]]:
    """The conditions that every branch has."""
    conditions: list[ColumnElement[bool]] = []
    if wanted.since is not None:
        conditions.append(items.c.first_seen_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(items.c.first_seen_at < wanted.until)
    if wanted.search is not None:
        conditions.append(matches(connection, wanted.search))
    mine = select(entry_marks.c.item_id).where(entry_marks.c.user_id == user_id)
    if wanted.is_starred is False:
        conditions.append(items.c.id.not_in(mine.where(entry_marks.c.starred_at.is_not(None))))
    if wanted.read_later is False:
        conditions.append(items.c.id.not_in(mine.where(entry_marks.c.later_at.is_not(None))))
    return conditions


def _read(
    connection: Connection,
    user_id: int,
    wanted: EntryFilter,
    page: _Page,
    branches: Sequence[Select[Any]],
    *more: ColumnElement[bool],
) -> list[Place]:
    """One page of what the branches find together."""
    conditions = [*_more(connection, user_id, wanted), *more]
    if page.after is not None:
        place, start = tuple_(items.c.item_at, items.c.id), tuple_(*page.after)
        conditions.append(place < start if page.sort == "newest" else place > start)
    found = union_all(*(branch.where(*conditions) for branch in branches)).subquery()
    place_of = (found.c.item_at, found.c.id)
    order = [column.desc() for column in place_of] if page.sort == "newest" else place_of
    query = select(found.c.id, found.c.item_at, found.c.first_seen_at).order_by(*order).limit(page.limit + 1)
    return [Place(*row) for row in connection.execute(query)]


def _by_windows(connection: Connection, user_id: int, wanted: EntryFilter, page: _Page) -> list[Place]:
    """A page of the newest, looked for among the items stored last, then among more, then among all."""
    window = max(FIRST_WINDOW, 20 * page.limit)
    floor = _start(connection, page) - window
    branches = _branches(user_id, wanted)
    while floor > 0:
        oldest = _first_seen_around(connection, floor)
        found = _read(connection, user_id, wanted, page, branches, items.c.position > floor)
        # What lies before the window was stored before `oldest`, and so published before.
        certain = [place for place in found if place.item_at > oldest + CLOCK_SLACK_SECONDS]
        if len(certain) > page.limit:
            return certain
        window *= 8
        floor -= window
    return _read(connection, user_id, wanted, page, branches)


def _start(connection: Connection, page: _Page) -> int:
    """The position of what was stored when the page's first item was published."""
    query = select(items.c.position).order_by(items.c.first_seen_at.desc(), items.c.id.desc()).limit(1)
    if page.after is not None:
        query = query.where(items.c.first_seen_at <= page.after[0] + CLOCK_SLACK_SECONDS)
    return connection.execute(query).scalar() or 0


def _first_seen_around(connection: Connection, position: int) -> float:
    query = (
        select(items.c.first_seen_at)
        .where(items.c.position <= position)
        .order_by(items.c.position.desc())
        .limit(1)
    )
    return connection.execute(query).scalar() or 0.0


def read_entries(
    connection: Connection, user_id: int, item_ids: Sequence[int], *, longest_text: int = LONGEST_TEXT
) -> list[Entry]:
    """These items with a person's state, in this order; those that the person may not see are left out.

    A person sees the items of their subscriptions, and those they starred, tagged or put aside. Texts are cut at
    `longest_text` characters.
    """
    found: dict[int, tuple[StoredItem, int]] = {}
    for those in batches(dict.fromkeys(item_ids)):
        query = select_items(items.c.position, longest_text=longest_text).where(items.c.id.in_(those))
        found |= {row.id: (stored_item(row), row[-1]) for row in connection.execute(query)}
    states = entry_states(
        connection, user_id, [(item.id, item.source_id, place) for item, place in found.values()]
    )
    own, its = subscriptions.c, {item.source_id for item, _ in found.values()}
    feeds: dict[int, Any] = {}
    for some in batches(sorted(its)):
        query = select(own.source_id, own.id, own.folder_id, own.title, own.is_muted)
        feeds |= {
            row.source_id: row
            for row in connection.execute(query.where(own.user_id == user_id, own.source_id.in_(some)))
        }
    entries = []
    for item_id in item_ids:
        if item_id not in found:
            continue
        item, _ = found[item_id]
        feed, state = feeds.get(item.source_id), states[item_id]
        if feed is None and not _is_marked(state):
            continue
        if feed is None:
            entries.append(Entry(item, None, None, item.source_name, state))
        else:
            title = feed.title or item.source_name
            entries.append(Entry(item, feed.id, feed.folder_id, title, state, feed.is_muted))
    return entries


def get_entry(connection: Connection, user_id: int, item_id: int) -> Entry:
    found = read_entries(connection, user_id, [item_id])
    if not found:
        raise NotFoundError("there is no entry {id}", id=item_id)
    return found[0]


def visible_ids(connection: Connection, user_id: int, item_ids: Iterable[int]) -> set[int]:
    """Those of the items that a person may see."""
    wanted = set(item_ids)
    sql = (
        "SELECT i.id FROM items i JOIN subscriptions s ON s.source_id = i.source_id"
        " WHERE s.user_id = ? AND i.id {values}"
    )
    found = {row[0] for row in select_by(connection, sql, wanted, "bigint", user_id)}
    for table in ("entry_marks", "entry_tags"):
        sql = f"SELECT item_id FROM {table} WHERE user_id = ? AND item_id {{values}}"
        found |= {row[0] for row in select_by(connection, sql, wanted - found, "bigint", user_id)}
    return found


def entry_states(
    connection: Connection, user_id: int, places: Sequence[tuple[int, int, int]]
) -> dict[int, EntryState]:
    """The state of items, each given as number, source and position."""
    is_read = are_read(connection, user_id, [(source_id, position) for _, source_id, position in places])
    numbers = [item_id for item_id, _, _ in places]
    marks = {
        row[0]: (row[1], row[2], row[3])
        for row in select_by(
            connection,
            "SELECT item_id, starred_at, later_at, later_until FROM entry_marks"
            " WHERE user_id = ? AND item_id {values}",
            numbers,
            "bigint",
            user_id,
        )
    }
    tags: dict[int, list[str]] = defaultdict(list)
    for item_id, tag in select_by(
        connection,
        "SELECT item_id, tag FROM entry_tags WHERE user_id = ? AND item_id {values} ORDER BY tag",
        numbers,
        "bigint",
        user_id,
    ):
        tags[item_id].append(tag)
    return {
        item_id: EntryState(
            is_read(source_id, position), *marks.get(item_id, (None, None, None)), tuple(tags[item_id])
        )
        for item_id, source_id, position in places
    }


def _is_marked(state: EntryState) -> bool:
    return state.starred_at is not None or state.later_at is not None or bool(state.tags)


def count_entries(connection: Connection, user_id: int, wanted: EntryFilter) -> int:
    """How many entries a filter finds among what a person starred, tagged or put aside."""
    query = select(func.count()).select_from(_marked(user_id, wanted).subquery())
    return connection.execute(query).scalar_one()


def list_ids_between(
    connection: Connection,
    user_id: int,
    source_ids: Sequence[int],
    *,
    after: int | None,
    before: int | None,
    limit: int,
) -> list[int]:
    """Numbers of items of a person's subscriptions: rising from after `after`, else falling from before `before`."""
    own = subscriptions.c
    query = (
        select(items.c.id)
        .join_from(subscriptions, items, items.c.source_id == own.source_id)
        .where(own.user_id == user_id, own.source_id.in_(source_ids))
        .limit(limit)
    )
    if after is not None:
        return list(connection.execute(query.where(items.c.id > after).order_by(items.c.id)).scalars())
    if before is not None:
        query = query.where(items.c.id < before)
    return list(connection.execute(query.order_by(items.c.id.desc())).scalars())


def count_stored(connection: Connection, source_ids: Iterable[int]) -> int:
    """How many items these sources have stored so far."""
    sql = "SELECT stored FROM source_counts WHERE source_id {values}"
    return sum(row[0] for row in select_by(connection, sql, source_ids, "bigint"))
