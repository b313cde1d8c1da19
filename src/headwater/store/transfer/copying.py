"""Whole databases, row by row: what backups, restoring and moving to another database share.

Rows are read in the order of their keys, in one consistent view, and come as plain values that either database takes.
What a database can make again is left out: the search index, and Procrastinate's jobs (every run that waits has its
row). Places in the order of storing are a row on SQLite and a sequence on PostgreSQL; here they are a number.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    DateTime,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    func,
    inspect,
    or_,
    select,
    tuple_,
)

from headwater.store.core.bulk import insert_rows, is_sqlite, storable
from headwater.store.core.database import Store
from headwater.store.core.tables import (
    item_clock,
    items,
    items_to_index,
    metadata,
    sessions,
    settings,
    sign_in_links,
    source_names,
    users,
)
from headwater.store.people.users import FIRST_USER_NAME
from headwater.store.pipelines.jobs import defer_forgotten
from headwater.store.reading.search import POSITION

MARK = "copying"  # in the settings: how far copying into this database has come
LEFT_OUT_SETTINGS = (POSITION, MARK, "web.written_at")
# What the database maintains itself, and who is signed in: an ended session must not come back with a backup.
_LEFT_OUT_TABLES = (
    item_clock.name,
    items_to_index.name,  # the whole index is made again
    source_names.name,
    sessions.name,
    sign_in_links.name,
    "alembic_version",
)
BATCH_ROWS = 2_000
BATCH_CHARACTERS = 8_000_000

Key = tuple[Any, ...]


@contextmanager
def snapshot(store: Store, *, alone: bool = False) -> Iterator[Connection]:
    """One view of the whole database that nothing changes, however long it is read.

    `alone`: no one else writes meanwhile, as far as the database can see to that (SQLite).
    """
    if store.is_sqlite:
        with store.writing() if alone else store.reading() as connection:
            yield connection
        return
    with store.translated(), store.engine.connect() as connection:
        connection = connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            yield connection


def copied_tables(schema: MetaData = metadata) -> list[Table]:
    """The tables that are copied, those that others refer to first."""
    return [
        table
        for table in schema.sorted_tables
        if table.name not in _LEFT_OUT_TABLES and not table.name.startswith("item_words")
    ]


def reflected(connection: Connection) -> MetaData:
    """The tables as they are in the database, which may be older than this Headwater."""
    schema = MetaData()
    schema.reflect(connection)
    return schema


def key_columns(table: Table) -> list[Column[Any]]:
    return list(table.primary_key.columns)


def count_rows(connection: Connection, table: Table) -> int:
    query = select(func.count()).select_from(table)
    if table.name == settings.name:
        query = query.where(table.c.key.not_in(LEFT_OUT_SETTINGS))
    return connection.execute(query).scalar_one()


def stream_rows(connection: Connection, table: Table, after: Key | None = None) -> Iterator[list[Key]]:
    """The rows in the order of their keys, from after `after`, in lists that fit in memory."""
    keys = key_columns(table)
    query = select(table).order_by(*keys)
    if after is not None:
        query = query.where(tuple_(*keys) > tuple_(*after))
    if table.name == settings.name:
        query = query.where(table.c.key.not_in(LEFT_OUT_SETTINGS))
    found = connection.execution_options(stream_results=True, yield_per=BATCH_ROWS // 10).execute(query)
    rows: list[Key] = []
    size = 0
    for row in found:
        values = tuple(row)
        rows.append(values)
        size += sum(len(value) for value in values if isinstance(value, str | bytes))
        if len(rows) >= BATCH_ROWS or size >= BATCH_CHARACTERS:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def write_rows(connection: Connection, table: Table, columns: Sequence[str], rows: list[Key]) -> None:
    """Write rows that came from either database."""
    if is_sqlite(connection):
        dates = [n for n, name in enumerate(columns) if isinstance(table.c[name].type, DateTime)]
        if dates:
            rows = [_changed(row, dates, _as_sqlite_date) for row in rows]
    else:
        texts = [n for n, name in enumerate(columns) if isinstance(table.c[name].type, Text)]
        rows = [
            _changed(row, texts, storable) if any("\x00" in (row[n] or "") for n in texts) else row
            for row in rows
        ]
    insert_rows(connection, table, tuple(columns), rows)


def _as_sqlite_date(value: Any) -> Any:
    return None if value is None else value.isoformat(" ")


def _changed(row: Key, places: Sequence[int], change: Any) -> Key:
    values = list(row)
    for place in places:
        values[place] = change(values[place])
    return tuple(values)


def last_position(connection: Connection) -> int:
    """The last place in the order of storing that was given out."""
    highest = connection.execute(
        select(func.max(func.coalesce(items.c.changed_position, 0)), func.max(items.c.position))
    ).one()
    if is_sqlite(connection):
        given = connection.execute(select(item_clock.c.last_position)).scalar()
    else:
        given = connection.exec_driver_sql(
            "SELECT last_value - (NOT is_called)::int FROM item_positions"
        ).scalar_one()
    return max(int(value or 0) for value in (*highest, given))


def set_last_position(connection: Connection, position: int) -> None:
    if is_sqlite(connection):
        insert_rows(
            connection,
            item_clock,
            ("id", "last_position"),
            [(1, position)],
            "ON CONFLICT (id) DO UPDATE SET last_position = excluded.last_position",
        )
    elif position > 0:
        connection.exec_driver_sql("SELECT setval('item_positions', %s)", (position,))


def continue_numbers(connection: Connection, tables: Sequence[Table]) -> None:
    """New rows get numbers after those copied: SQLite sees to it itself, PostgreSQL is told."""
    if is_sqlite(connection):
        return
    for table in tables:
        if [column.name for column in key_columns(table)] != ["id"]:
            continue
        sequence = connection.exec_driver_sql(
            "SELECT pg_get_serial_sequence(%s, 'id')", (table.name,)
        ).scalar()
        if sequence is not None:
            connection.exec_driver_sql(
                f"SELECT setval('{sequence}', max(id)) FROM {table.name} HAVING max(id) > 0"
            )


def wake_runs(connection: Connection) -> None:
    """Give every run that waits a job, where workers are told by jobs."""
    while not is_sqlite(connection) and defer_forgotten(connection, float("inf")):
        pass


def is_binary(column: Column[Any]) -> bool:
    return isinstance(column.type, LargeBinary)


def is_date(column: Column[Any]) -> bool:
    return isinstance(column.type, DateTime)


def drop_everything(connection: Connection) -> None:
    """Take all of Headwater's tables away, with what is in them."""
    if is_sqlite(connection):
        connection.exec_driver_sql("DROP TABLE IF EXISTS item_words")
    else:
        connection.exec_driver_sql("DROP SCHEMA IF EXISTS procrastinate CASCADE")
        connection.exec_driver_sql("DROP TABLE IF EXISTS item_words")
        connection.exec_driver_sql("DROP SEQUENCE IF EXISTS item_positions")
    schema = reflected(connection)
    schema.drop_all(connection)


def has_rows(connection: Connection) -> bool:
    """Whether anything is stored that could be missed: more than the admin that every database begins with."""
    there = set(inspect(connection).get_table_names())
    return any(
        connection.execute(_rows_to_miss(table).limit(1)).first() is not None
        for table in copied_tables()
        if table.name in there and table.name != settings.name
    )


def remove_first_user(connection: Connection) -> None:
    """Make room for the users that are copied, in a database where `has_rows` finds nothing."""
    if inspect(connection).has_table(users.name):
        connection.execute(users.delete())


def _rows_to_miss(table: Table) -> Select[Any]:
    query = select(table.c[key_columns(table)[0].name])
    if table is users:
        query = query.where(
            or_(users.c.id != 1, users.c.name != FIRST_USER_NAME, users.c.password_hash.is_not(None))
        )
    return query
