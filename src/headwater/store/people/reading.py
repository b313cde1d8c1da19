"""Reading state: which items of a person's subscriptions are read.

A subscription has a level, a position in the order of storing: items at or below it are read, later ones are unread.
`read_exceptions` holds the items for which the opposite is true. Unread counts come from counters:
`source_counts.stored` less `subscriptions.settled`. Every function here keeps `settled` right: it grows when an unread
item is read or deleted, and shrinks when a read one becomes unread. Moving the level alone changes nothing.

On PostgreSQL, writers lock items first, then subscriptions, both by number, so that none waits for another in a circle.
(`id + 0` keeps it from reading a whole table in the order of its key.)
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, select

from headwater.store.core.bulk import insert_rows, is_sqlite, run_by, select_by, select_rows, update_rows
from headwater.store.core.tables import read_exceptions, source_counts, subscriptions

TIDY_EXCEPTIONS = 100  # read items above a level from which on it is worth raising it
_KEY = ("user_id", "source_id", "position")


@dataclass(frozen=True, slots=True)
class Unread:
    """How much of a subscription is unread."""

    subscription_id: int
    source_id: int
    folder_id: int | None
    is_muted: bool
    count: int
    last_stored_at: float | None


@dataclass(frozen=True, slots=True)
class _Level:
    id: int
    source_id: int
    level: int


def unread_counts(connection: Connection, user_id: int) -> list[Unread]:
    """How much is unread of each of a person's subscriptions; no item is read for it."""
    rows = connection.exec_driver_sql(
        "SELECT s.id, s.source_id, s.folder_id, s.is_muted, coalesce(c.stored, 0) - s.settled, c.last_stored_at"
        " FROM subscriptions s LEFT JOIN source_counts c ON c.source_id = s.source_id"
        f" WHERE s.user_id = {_mark(connection)}"
        " AND (SELECT NOT is_deleted FROM sources WHERE sources.id = s.source_id)",
        (user_id,),
    )
    found = [Unread(row[0], row[1], row[2], bool(row[3]), max(row[4], 0), row[5]) for row in rows]
    return sorted(found, key=lambda each: each.subscription_id)


@dataclass(frozen=True, slots=True)
class FolderCount:
    """How many subscriptions are in a folder, and how much of those that are not muted is unread."""

    feeds: int
    unread: int


def count_by_folder(connection: Connection, user_id: int) -> dict[int | None, FolderCount]:
    """The counts of a person's folders; None: of what is in none."""
    rows = connection.exec_driver_sql(
        "SELECT s.folder_id, count(*), sum(CASE WHEN NOT s.is_muted AND c.stored > s.settled"
        " THEN c.stored - s.settled ELSE 0 END)"
        " FROM subscriptions s LEFT JOIN source_counts c ON c.source_id = s.source_id"
        f" WHERE s.user_id = {_mark(connection)}"
        " AND (SELECT NOT is_deleted FROM sources WHERE sources.id = s.source_id) GROUP BY s.folder_id",
        (user_id,),
    )
    return {row[0]: FolderCount(row[1], int(row[2])) for row in rows}


def mark_read(connection: Connection, user_id: int, item_ids: Iterable[int], is_read: bool) -> set[int]:
    """Mark items as read or unread. Returns those of them that are items of the person's subscriptions."""
    found = lock_items(connection, item_ids)
    levels = _lock_subscriptions(connection, user_id, {source_id for _, source_id, _ in found})
    found = [row for row in found if row[1] in levels]
    known = {
        (source_id, position): bool(is_read_)
        for _, source_id, position, is_read_ in select_rows(
            connection,
            read_exceptions,
            _KEY,
            ("is_read",),
            [(user_id, source_id, position) for _, source_id, position in found],
        )
    }
    changed: dict[int, list[int]] = defaultdict(list)
    for _, source_id, position in found:
        by_level = position <= levels[source_id].level
        if known.get((source_id, position), by_level) != is_read:
            changed[source_id].append(position)
    _flip(connection, user_id, levels, changed, is_read)
    if is_read:
        _tidy(connection, user_id, [levels[source_id] for source_id in changed])
    return {item_id for item_id, _, _ in found}


def _flip(
    connection: Connection,
    user_id: int,
    levels: dict[int, _Level],
    changed: dict[int, list[int]],
    is_read: bool,
) -> None:
    """Give items that have the other state this one."""
    gone, new = [], []
    for source_id, positions in changed.items():
        for position in positions:
            if (position <= levels[source_id].level) == is_read:
                gone.append((user_id, source_id, position))
            else:
                new.append((user_id, source_id, position, is_read))
    _delete_exceptions(connection, gone)
    insert_rows(connection, read_exceptions, (*_KEY, "is_read"), new)
    _settle(
        connection,
        {
            levels[source_id].id: len(those) if is_read else -len(those)
            for source_id, those in changed.items()
        },
    )


def mark_all_read(
    connection: Connection, user_id: int, source_ids: Iterable[int], *, until: float | None = None
) -> int:
    """Mark everything in these subscriptions as read, or what was first seen up to a time. Returns how many items."""
    levels = _lock_subscriptions(connection, user_id, set(source_ids))
    if not levels:
        return 0
    if until is None:
        return _raise_all(connection, user_id, list(levels.values()))
    return _raise_until(connection, user_id, levels, until)


def _raise_all(connection: Connection, user_id: int, levels: Sequence[_Level]) -> int:
    """Set the levels to the newest item, as the counters have it: both numbers come from one row."""
    source_ids = [each.source_id for each in levels]
    before = select_by(
        connection,
        "SELECT sum(c.stored - s.settled) FROM subscriptions s JOIN source_counts c ON c.source_id = s.source_id"
        " WHERE s.user_id = ? AND s.source_id {values}",
        source_ids,
        "bigint",
        user_id,
    )
    run_by(
        connection,
        "UPDATE subscriptions SET level = c.last_position, settled = c.stored FROM source_counts AS c"
        " WHERE c.source_id = subscriptions.source_id AND subscriptions.user_id = ?"
        " AND subscriptions.source_id {values}",
        source_ids,
        "bigint",
        user_id,
    )
    run_by(
        connection,
        "DELETE FROM read_exceptions WHERE user_id = ? AND source_id {values}",
        source_ids,
        "bigint",
        user_id,
    )
    return sum(int(row[0] or 0) for row in before)


def _raise_until(connection: Connection, user_id: int, levels: dict[int, _Level], until: float) -> int:
    """Raise each level as far as everything up to it is old enough; the rest become exceptions."""
    unread: dict[int, list[tuple[int, bool]]] = defaultdict(list)  # position, and whether it is to be read
    for source_id, position, first_seen_at in unread_positions(connection, user_id, levels):
        unread[source_id].append((position, first_seen_at <= until))
    raised: dict[int, int] = {}
    settled: dict[int, int] = {}
    kept_unread, read_above = [], []
    for source_id, those in unread.items():
        level = levels[source_id].level
        above = [position for position, _ in those if position > level]
        fresh = [position for position, is_old in those if position > level and not is_old]
        reach = min(fresh) - 1 if fresh else max(above, default=level)
        raised[source_id] = reach
        old = [position for position, is_old in those if is_old]
        settled[levels[source_id].id] = len(old)
        kept_unread += [(user_id, source_id, position) for position in old if position <= level]
        read_above += [(user_id, source_id, position, True) for position in old if position > reach]
    _delete_exceptions(connection, kept_unread)
    _raise(connection, user_id, [levels[source_id] for source_id in raised], raised)
    insert_rows(connection, read_exceptions, (*_KEY, "is_read"), read_above)
    _settle(connection, settled)
    return sum(settled.values())


def _raise(connection: Connection, user_id: int, levels: Sequence[_Level], raised: dict[int, int]) -> None:
    """Raise levels over items that are all read: the exceptions that say so are not needed any more."""
    moved = [each for each in levels if raised[each.source_id] > each.level]
    if moved:
        column = read_exceptions.c
        connection.execute(
            read_exceptions.delete().where(
                column.user_id == user_id,
                column.source_id == bindparam("source"),
                column.position <= bindparam("until"),
                column.is_read,
            ),
            [{"source": each.source_id, "until": raised[each.source_id]} for each in moved],
        )
        rows = [(raised[each.source_id], each.id) for each in moved]
        update_rows(connection, subscriptions, ("id",), ("level",), rows)


def unread_positions(
    connection: Connection, user_id: int, source_ids: Iterable[int]
) -> list[tuple[int, int, float]]:
    """The unread items of subscriptions: source, position, and when each was first seen."""
    wanted = sorted(source_ids)
    above = select_by(
        connection,
        "SELECT s.source_id, i.position, i.first_seen_at FROM subscriptions s"
        " JOIN items i ON i.source_id = s.source_id AND i.position > s.level"
        " LEFT JOIN read_exceptions e"
        " ON e.user_id = s.user_id AND e.source_id = s.source_id AND e.position = i.position"
        " WHERE s.user_id = ? AND e.user_id IS NULL AND s.source_id {values}",
        wanted,
        "bigint",
        user_id,
    )
    below = select_by(
        connection,
        "SELECT e.source_id, e.position, i.first_seen_at FROM read_exceptions e"
        " JOIN items i ON i.source_id = e.source_id AND i.position = e.position"
        " WHERE e.user_id = ? AND NOT e.is_read AND e.source_id {values}",
        wanted,
        "bigint",
        user_id,
    )
    return [(row[0], row[1], row[2]) for row in (*above, *below)]


def _tidy(connection: Connection, user_id: int, levels: Sequence[_Level]) -> None:
    """Where more items above the level are read than unread, raise it to the newest item.

    The unread ones become the exceptions, which are fewer then.
    """
    rows = select_by(
        connection,
        "SELECT source_id, count(*) FROM read_exceptions WHERE user_id = ? AND is_read AND source_id {values}"
        " GROUP BY source_id",
        [each.source_id for each in levels],
        "bigint",
        user_id,
    )
    reads = {row[0]: row[1] for row in rows if row[1] > TIDY_EXCEPTIONS}
    crowded = {each.source_id: each for each in levels if each.source_id in reads}
    if not crowded:
        return
    newest = {
        row[0]: row[1]
        for row in select_by(
            connection,
            "SELECT source_id, last_position FROM source_counts WHERE source_id {values}",
            crowded,
            "bigint",
        )
    }
    unread: dict[int, list[int]] = defaultdict(list)
    for source_id, position, _ in unread_positions(connection, user_id, crowded):
        if crowded[source_id].level < position <= newest.get(source_id, 0):
            unread[source_id].append(position)
    chosen = [each for each in crowded.values() if 2 * len(unread[each.source_id]) < reads[each.source_id]]
    _raise(connection, user_id, chosen, {each.source_id: newest.get(each.source_id, 0) for each in chosen})
    insert_rows(
        connection,
        read_exceptions,
        (*_KEY, "is_read"),
        [
            (user_id, each.source_id, position, False)
            for each in chosen
            for position in unread[each.source_id]
        ],
    )


def lock_items(connection: Connection, item_ids: Iterable[int]) -> list[tuple[int, int, int]]:
    """Number, source and position of those of the items that are there, kept from being deleted meanwhile."""
    query = "SELECT id, source_id, position FROM items WHERE id {values} ORDER BY id"
    if not is_sqlite(connection):
        query += " FOR KEY SHARE"
    rows = select_by(connection, query, sorted(set(item_ids)), "bigint")
    return [(row[0], row[1], row[2]) for row in rows]


def note_deleted(connection: Connection, item_ids: Sequence[int]) -> None:
    """Keep the counters right when items are about to be deleted. On PostgreSQL, the items are locked already."""
    rows = select_by(connection, "SELECT source_id FROM items WHERE id {values}", item_ids, "bigint")
    source_ids = sorted({row[0] for row in rows})
    if not is_sqlite(connection):
        query = "SELECT id FROM subscriptions WHERE source_id {values} ORDER BY id + 0 FOR UPDATE"
        select_by(connection, query, source_ids, "bigint")
    run_by(
        connection,
        "UPDATE subscriptions SET settled = settled + gone.number FROM ("
        "SELECT s.id, count(*) AS number FROM items i JOIN subscriptions s ON s.source_id = i.source_id"
        " LEFT JOIN read_exceptions e"
        " ON e.user_id = s.user_id AND e.source_id = s.source_id AND e.position = i.position"
        " WHERE i.id {values} AND CASE WHEN e.user_id IS NULL THEN i.position > s.level ELSE NOT e.is_read END"
        " GROUP BY s.id) AS gone WHERE gone.id = subscriptions.id",
        item_ids,
        "bigint",
    )
    gone = select_by(
        connection,
        "SELECT e.user_id, e.source_id, e.position FROM items i JOIN subscriptions s ON s.source_id = i.source_id"
        " JOIN read_exceptions e"
        " ON e.user_id = s.user_id AND e.source_id = s.source_id AND e.position = i.position WHERE i.id {values}",
        item_ids,
        "bigint",
    )
    _delete_exceptions(connection, [(row[0], row[1], row[2]) for row in gone])


def note_stored(connection: Connection, stored: Iterable[tuple[int, int]], now: float) -> None:
    """Keep the counters right when items were stored, each given as source and position."""
    positions: dict[int, list[int]] = defaultdict(list)
    for source_id, position in stored:
        positions[source_id].append(position)
    insert_rows(
        connection,
        source_counts,
        ("source_id", "stored", "last_position", "last_stored_at"),
        [(source_id, len(those), max(those), now) for source_id, those in sorted(positions.items())],
        "ON CONFLICT (source_id) DO UPDATE SET stored = source_counts.stored + excluded.stored,"
        " last_position = excluded.last_position, last_stored_at = excluded.last_stored_at",
    )


def _lock_subscriptions(connection: Connection, user_id: int, source_ids: set[int]) -> dict[int, _Level]:
    query = "SELECT id, source_id, level FROM subscriptions WHERE user_id = ? AND source_id {values} ORDER BY id + 0"
    if not is_sqlite(connection):
        query += " FOR UPDATE"
    rows = select_by(connection, query, sorted(source_ids), "bigint", user_id)
    return {row[1]: _Level(row[0], row[1], row[2]) for row in rows}


def _settle(connection: Connection, numbers: dict[int, int]) -> None:
    """Add to `settled` of subscriptions."""
    if numbers:
        connection.execute(
            subscriptions.update()
            .where(subscriptions.c.id == bindparam("number"))
            .values(settled=subscriptions.c.settled + bindparam("more")),
            [{"number": number, "more": more} for number, more in sorted(numbers.items())],
        )


def _delete_exceptions(connection: Connection, keys: Sequence[tuple[int, int, int]]) -> None:
    if keys:
        column = read_exceptions.c
        connection.execute(
            read_exceptions.delete().where(
                column.user_id == bindparam("user"),
                column.source_id == bindparam("source"),
                column.position == bindparam("place"),
            ),
            [{"user": user, "source": source, "place": place} for user, source, place in keys],
        )


def are_read(
    connection: Connection, user_id: int, places: Sequence[tuple[int, int]]
) -> Callable[[int, int], bool]:
    """Tells of items, each given as source and position, whether a person has read them.

    An item of a source that the person does not subscribe to counts as read.
    """
    wanted = {source_id for source_id, _ in places}
    sql = "SELECT source_id, level FROM subscriptions WHERE user_id = ? AND source_id {values}"
    levels = {row[0]: row[1] for row in select_by(connection, sql, wanted, "bigint", user_id)}
    keys = [(user_id, source_id, position) for source_id, position in places]
    known = {
        (source_id, position): bool(is_read)
        for _, source_id, position, is_read in select_rows(
            connection, read_exceptions, _KEY, ("is_read",), keys
        )
    }

    def is_read(source_id: int, position: int) -> bool:
        if (source_id, position) in known:
            return known[source_id, position]
        return source_id not in levels or position <= levels[source_id]

    return is_read


def count_state_rows(connection: Connection, user_id: int) -> int:
    """How many rows the reading state of a person takes beyond their subscriptions."""
    query = select(func.count()).select_from(read_exceptions).where(read_exceptions.c.user_id == user_id)
    return connection.execute(query).scalar_one()


def _mark(connection: Connection) -> str:
    return "?" if is_sqlite(connection) else "%s"
