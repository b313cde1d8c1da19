"""Writing many rows at once, the fastest way each database has.

SQLite takes a prepared statement and a list; PostgreSQL takes one statement with an array a column
(`unnest`), which is four times as fast as a list. The arrays are written out here: the driver converts every
value separately, which takes longer than all else. Only fixed table and column names reach the SQL text.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import Connection, CursorResult, Dialect, Table
from sqlalchemy.exc import DBAPIError

T = TypeVar("T")

CHUNK = 2_000  # rows in one statement: enough to be fast, few enough not to hold a second copy of everything
TOGETHER = 50  # rows that SQLite takes in one step: one at a time would release the interpreter's lock
RETURNED = 64  # rows of one INSERT … RETURNING: SQLite's driver keeps each with its values, 25 MB with a thousand rows
VALUES = 10_000  # looked up in one statement; SQLite takes 32,766 parameters


def is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


@contextmanager
def sent_together(connection: Connection) -> Iterator[None]:
    """Send what is written within to PostgreSQL without waiting for each statement's answer; nothing is read within."""
    if is_sqlite(connection):
        yield
        return
    from psycopg import Error

    driver_connection: Any = connection.connection.driver_connection
    try:
        with driver_connection.pipeline():
            yield
    except Error as error:  # one that was only told at the end
        raise DBAPIError.instance("", None, error, Error) from error


def insert_rows(
    connection: Connection,
    table: Table,
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
    on_conflict: str = "",
) -> None:
    """Insert `rows`, each in the order of `columns`; `on_conflict` is the clause for rows already there."""
    for start in range(0, len(rows), CHUNK):
        part = list(rows[start : start + CHUNK])
        if is_sqlite(connection):
            for first in range(0, len(part) - len(part) % TOGETHER, TOGETHER):
                values = tuple(chain.from_iterable(part[first : first + TOGETHER]))
                connection.exec_driver_sql(_sqlite_insert(table, columns, on_conflict, TOGETHER), values)
            if rest := part[len(part) - len(part) % TOGETHER :]:
                connection.exec_driver_sql(_sqlite_insert(table, columns, on_conflict), rest)
        else:
            connection.exec_driver_sql(
                _postgres_insert(table, columns, on_conflict), _arrays(table, columns, part)
            )


def insert_returning(
    connection: Connection,
    table: Table,
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
    on_conflict: str,
    returned: str,
) -> list[Any]:
    """Insert `rows` as `insert_rows` does; answers `returned` of those that were written."""
    found: list[Any] = []
    clause = f"{on_conflict} RETURNING {returned}"
    start = 0
    while left := min(len(rows) - start, CHUNK):
        if is_sqlite(connection):
            # In powers of two, for the sake of which see `padding`.
            left = 1 << (min(left, RETURNED).bit_length() - 1)
            values = tuple(chain.from_iterable(rows[start : start + left]))
            found += connection.exec_driver_sql(_sqlite_insert(table, columns, clause, left), values)
        else:
            part = rows[start : start + left]
            found += connection.exec_driver_sql(
                _postgres_insert(table, columns, clause), _arrays(table, columns, part)
            )
        start += left
    return found


def update_rows(
    connection: Connection,
    table: Table,
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Set `columns` of the rows found by `keys`; each tuple holds the columns' values, then the keys'."""
    if rows:
        if is_sqlite(connection):
            connection.exec_driver_sql(_sqlite_update(table, keys, columns), list(rows))
        else:
            connection.exec_driver_sql(
                _postgres_update(table, keys, columns), _arrays(table, columns + keys, rows)
            )


def select_rows(
    connection: Connection,
    table: Table,
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
) -> list[Any]:
    """`keys` and `columns` of the rows whose keys are among `rows`, each in the order of `keys`."""
    found: list[Any] = []
    size = VALUES // len(keys)
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        if is_sqlite(connection):
            more = padding(len(part))  # rows of nothing, which match nothing
            values: tuple[Any, ...] = (*chain.from_iterable(part), *[None] * (more * len(keys)))
            marks = ",".join([f"({','.join('?' * len(keys))})"] * (len(part) + more))
            wanted = f"(VALUES {marks})"
            names = [f"column{number}" for number in range(1, len(keys) + 1)]
        else:
            values = _arrays(table, keys, part)
            wanted = f"unnest({_array_marks(table, keys)})"
            names = [f"k_{name}" for name in keys]
        alias = "w" if is_sqlite(connection) else f"w ({', '.join(names)})"
        matching = " AND ".join(f"t.{name} = w.{key}" for name, key in zip(keys, names, strict=True))
        found += connection.exec_driver_sql(
            f"SELECT {', '.join(f't.{name}' for name in keys + columns)}"
            f" FROM {wanted} AS {alias} JOIN {table.name} AS t ON {matching}",
            values,
        )
    return found


def select_by(
    connection: Connection, sql: str, values: Iterable[Any], array_type: str, *more: Any
) -> list[Any]:
    """The rows of `sql`, in which `{values}` stands for "is one of `values`", after the parameters `more`."""
    return [row for result in _execute_by(connection, sql, values, array_type, more) for row in result]


def run_by(connection: Connection, sql: str, values: Iterable[Any], array_type: str, *more: Any) -> None:
    """The same for a statement that returns nothing."""
    for result in _execute_by(connection, sql, values, array_type, more):
        result.close()


def _execute_by(
    connection: Connection, sql: str, values: Iterable[Any], array_type: str, more: tuple[Any, ...]
) -> Iterator[CursorResult[Any]]:
    for part in batches(values):
        if is_sqlite(connection):
            part += part[-1:] * padding(len(part))
            marks = ",".join("?" * len(part))
            yield connection.exec_driver_sql(sql.format(values=f"IN ({marks})"), (*more, *part))
        else:
            statement = sql.replace("?", "%s").format(values=f"= ANY(%s::{array_type}[])")
            yield connection.exec_driver_sql(statement, (*more, part))


def batches(values: Iterable[T]) -> Iterator[list[T]]:
    """The values in lists as long as one statement takes them."""
    values = list(values)
    for start in range(0, len(values), VALUES):
        yield values[start : start + VALUES]


def padding(count: int) -> int:
    """How many more values make a power of two of them.

    SQLite's driver keeps the statements it has prepared, for each connection one for each number of values, and long
    ones take long to prepare and much memory: with few numbers, all of them are soon there and no more come.
    """
    return (1 << max(count - 1, 0).bit_length()) - count


def storable(text: str | None) -> str | None:
    """`text` without what no database takes: NUL characters and lone surrogates."""
    if text is None:
        return None
    if "\x00" in text:
        text = text.replace("\x00", "")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.encode("utf-8", "replace").decode("utf-8")
    return text


def _arrays(
    table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> tuple[str | list[Any], ...]:
    """Every column's values as one array, as PostgreSQL reads it."""
    return tuple(
        write(values) for write, values in zip(_writers(table, columns), zip(*rows, strict=True), strict=True)
    )


@cache
def _writers(
    table: Table, columns: tuple[str, ...]
) -> tuple[Callable[[tuple[Any, ...]], str | list[Any]], ...]:
    return tuple(_WRITERS.get(table.c[name].type.python_type, list) for name in columns)


def _number_array(values: tuple[Any, ...]) -> str:
    return "{" + ",".join(["NULL" if value is None else repr(value) for value in values]) + "}"


def _truth_array(values: tuple[Any, ...]) -> str:
    return "{" + ",".join(["NULL" if value is None else "t" if value else "f" for value in values]) + "}"


def _bytes_array(values: tuple[Any, ...]) -> str:
    return "{" + ",".join(["NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values]) + "}"


def _text_array(values: tuple[Any, ...]) -> str:
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if '"' in text:
        text = text.replace('"', '\\"')
    return f'"{text}"'


_WRITERS: dict[type, Callable[[tuple[Any, ...]], str | list[Any]]] = {
    int: _number_array,
    float: _number_array,
    bool: _truth_array,
    bytes: _bytes_array,
    str: _text_array,
}


@cache
def _sqlite_insert(table: Table, columns: tuple[str, ...], on_conflict: str, count: int = 1) -> str:
    marks = ",".join([f"({','.join('?' * len(columns))})"] * count)
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {marks} {on_conflict}"


@cache
def _postgres_insert(table: Table, columns: tuple[str, ...], on_conflict: str) -> str:
    return (
        f"INSERT INTO {table.name} ({', '.join(columns)}) "
        f"SELECT * FROM unnest({_array_marks(table, columns)}) {on_conflict}"
    )


@cache
def _sqlite_update(table: Table, keys: tuple[str, ...], columns: tuple[str, ...]) -> str:
    return (
        f"UPDATE {table.name} SET {', '.join(f'{name} = ?' for name in columns)} "
        f"WHERE {' AND '.join(f'{name} = ?' for name in keys)}"
    )


@cache
def _postgres_update(table: Table, keys: tuple[str, ...], columns: tuple[str, ...]) -> str:
    names = [f"c_{name}" for name in columns] + [f"k_{name}" for name in keys]
    return (
        f"UPDATE {table.name} AS t SET {', '.join(f'{name} = v.c_{name}' for name in columns)} "
        f"FROM unnest({_array_marks(table, columns + keys)}) AS v ({', '.join(names)}) "
        f"WHERE {' AND '.join(f't.{name} = v.k_{name}' for name in keys)}"
    )


def _array_marks(table: Table, columns: tuple[str, ...]) -> str:
    return ", ".join(f"%s::{table.c[name].type.compile(_postgres())}[]" for name in columns)


@cache
def _postgres() -> Dialect:
    # Imported here: it is a tenth of what a command on SQLite takes to start.
    from sqlalchemy.dialects import postgresql

    return postgresql.dialect()  # type: ignore[no-untyped-call]
