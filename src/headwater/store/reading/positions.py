"""Places in the order of storing: numbers by which others can read "everything since then" without missing anything.

A reader that remembers the last number it saw must never find a smaller one later. SQLite has one writer at a time, so
numbers are committed in the order they are given out. On PostgreSQL transactions commit in any order: number 7 may be
seen before number 6. So there each writer first leaves a lock that names the number before its own
(shared and with the transaction: it makes no other transaction wait, and ends with the writer), and a reader reads
up to the smallest number left by anyone still writing, itself included. A writer that hangs holds back readers,
never writers.
"""

from sqlalchemy import Connection

from headwater.store.core.bulk import is_sqlite

_LOCKS = 0x49744D73  # the class of these locks; any number will do, as long as it never changes
_SPAN = 1 << 31  # a lock's name has 31 bits, and no two writers are as far apart


def take_positions(connection: Connection, count: int) -> list[int]:
    """`count` new numbers in rising order, for rows written in this transaction."""
    if count <= 0:
        return []
    if is_sqlite(connection):
        last = connection.exec_driver_sql(
            "INSERT INTO item_clock (id, last_position) VALUES (1, ?) ON CONFLICT (id)"
            " DO UPDATE SET last_position = last_position + excluded.last_position RETURNING last_position",
            (count,),
        ).scalar_one()
        return list(range(last - count + 1, last + 1))
    # Read before it is locked: a number that is too small only makes readers wait for us a little sooner. A number is
    # only taken for a row, and there is none before the lock.
    rows = connection.exec_driver_sql(
        "SELECT nextval('item_positions') FROM generate_series(1, %s), (SELECT pg_advisory_xact_lock_shared(%s,"
        " ((last_value - (NOT is_called)::int) %% %s)::int) FROM item_positions OFFSET 0) AS locked",
        (count, _LOCKS, _SPAN),
    ).scalars()
    return sorted(rows)


def last_settled_position(connection: Connection) -> int:
    """The number up to which nothing can appear any more. What is read with it must be read after it."""
    if is_sqlite(connection):
        last = connection.exec_driver_sql("SELECT last_position FROM item_clock").scalar()
        return 0 if last is None else int(last)
    # In this order: who locks after we look gets numbers beyond the one we have read.
    last = connection.exec_driver_sql(
        "SELECT last_value - (NOT is_called)::int FROM item_positions"
    ).scalar_one()
    writing = connection.exec_driver_sql(
        "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2"
        " AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        (_LOCKS,),
    ).scalars()
    return min([int(last), *(_unfolded(name, last) for name in writing)])


def _unfolded(name: int, near: int) -> int:
    """The number that a lock's name stands for: of those that fold to it, the one nearest to `near`."""
    distance = (name - near) % _SPAN
    return near + distance if distance < _SPAN // 2 else near + distance - _SPAN
