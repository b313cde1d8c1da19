"""A backup: one compressed file of all rows, which either database can be restored from.

The file is lines of JSON under zstd: a head (which schema), then for each table its name and columns, lists of rows,
and its end with the number of rows and their SHA-256; then a last line with all the numbers. A file without its last
line, or with another sum than it says, is refused before anything is touched.
"""

import hashlib
import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, Table

from headwater.errors import InputError, StoreError
from headwater.store.core.bulk import is_sqlite
from headwater.store.core.database import Store
from headwater.store.core.migrate import HEAD, building, known_revisions, revision, upgrade_in
from headwater.store.core.tables import metadata
from headwater.store.reading.search import restart_index
from headwater.store.transfer.copying import (
    Key,
    continue_numbers,
    copied_tables,
    count_rows,
    drop_everything,
    has_rows,
    is_binary,
    is_date,
    last_position,
    reflected,
    remove_first_user,
    set_last_position,
    snapshot,
    stream_rows,
    wake_runs,
    write_rows,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FORMAT = "headwater-backup"
FORMAT_VERSION = 1
LEVEL = 6
LONGEST_LINE = 1 << 28  # several times what the largest rows take

Advance = Callable[[int, int, str], None]  # (done, of all, what is at work)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a backup holds."""

    schema: str
    created_at: float
    last_position: int
    rows: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def write_backup(store: Store, path: Path, now: float, advance: Advance) -> Contents:
    """Write the whole database as it is at one moment, others at work or not, and read the file back.

    The file appears under its name only when it is whole. It holds secrets: only its owner may read it.
    """
    beside = path.with_name(path.name + ".part")
    try:
        with suppress(FileNotFoundError):
            beside.unlink()
        descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            with zstd.ZstdFile(file, "w", level=LEVEL) as packed, snapshot(store) as connection:
                written = _write(connection, packed, now, advance)
            file.flush()
            os.fsync(file.fileno())
        if (found := read_contents(beside, lambda done, total, note: None)) != written:
            raise StoreError("{path} differs from what was written: {found}", path=path, found=found)
        beside.replace(path)
    except OSError as error:
        raise InputError("cannot write {path}: {problem}", path=path, problem=error.strerror) from None
    finally:
        with suppress(OSError):
            beside.unlink()
    return written


def _write(connection: Connection, packed: zstd.ZstdFile, now: float, advance: Advance) -> Contents:
    def line(value: Any) -> None:
        packed.write(orjson.dumps(value) + b"\n")

    position = last_position(connection)
    contents = Contents(HEAD, now, position)
    head = {"format": FORMAT, "version": FORMAT_VERSION, "schema": HEAD, "created_at": now}
    line(head | {"last_position": position})
    tables = copied_tables()
    total = sum(count_rows(connection, table) for table in tables)
    done = 0
    for table in tables:
        line({"table": table.name, "columns": [column.name for column in table.c]})
        encode = _codec(table, [column.name for column in table.c], _encode_bytes, _encode_date)
        digest, rows = hashlib.sha256(), 0
        for batch in stream_rows(connection, table):
            data = orjson.dumps([encode(row) for row in batch])
            digest.update(data)
            packed.write(data + b"\n")
            rows += len(batch)
            advance(done + rows, total, table.name)
        done += rows
        contents.rows[str(table.name)] = rows
        line({"end": table.name, "rows": rows, "sha256": digest.hexdigest()})
    line({"done": True, "rows": contents.rows})
    return contents


def read_contents(path: Path, advance: Advance) -> Contents:
    """What is in a backup, every row of it read and checked; InputError when it is damaged or no backup."""
    with closing(_Reader(path)) as reader:
        for _ in reader.batches(lambda table, columns: lambda row: row, advance):
            pass
        return reader.contents


def restore_backup(store: Store, path: Path, advance: Advance, *, replace: bool) -> Contents:
    """Fill a database with a backup, all or nothing. One that holds something is refused unless it is to be replaced.

    `store` is open but need not have tables: they are made as they were when the backup was written, then brought up
    to date.
    """
    expected = read_contents(path, advance)
    with closing(_Reader(path)) as reader, store.writing() as connection, building(connection, store):
        if has_rows(connection) and not replace:
            raise InputError(
                "the database {url} is not empty; --replace puts the backup in the place of all that is in it",
                url=store.shown_url,
            )
        if replace or revision(connection) not in (None, expected.schema):
            drop_everything(connection)
        if revision(connection) is None:
            upgrade_in(connection, expected.schema)
        remove_first_user(connection)
        schema = metadata if expected.schema == HEAD else reflected(connection)
        tables = {table.name: table for table in copied_tables(schema)}

        def decoder(name: str, columns: list[str]) -> Callable[[Any], Key]:
            if name not in tables:
                raise _damaged(path, f"table {name}")
            decode = _codec(tables[name], columns, _decode_bytes, _decode_date)
            kinds = [_KINDS[tables[name].c[column].type.python_type] for column in columns]

            def checked(row: Any) -> Key:
                for value, kind in zip(row, kinds, strict=True):
                    if value is not None and not isinstance(value, kind):
                        raise TypeError(value)
                return tuple(decode(row))

            return checked

        for name, columns, rows in reader.batches(decoder, advance):
            write_rows(connection, tables[name], columns, rows)
        _verify(connection, list(tables.values()), expected, path)
        if expected.schema != HEAD:
            upgrade_in(connection, "head")
        _finish(connection, expected)
    return expected


def _verify(connection: Connection, tables: list[Table], expected: Contents, path: Path) -> None:
    found = {
        str(table.name): count_rows(connection, table) for table in tables if table.name in expected.rows
    }
    if found != expected.rows:
        raise StoreError(
            "what was restored from {path} differs from the file: {found}", path=path, found=found
        )


def _finish(connection: Connection, contents: Contents) -> None:
    continue_numbers(connection, copied_tables())
    restart_index(connection)
    set_last_position(connection, max(contents.last_position, last_position(connection)))
    wake_runs(connection)
    if is_sqlite(connection):
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
        if broken is not None:
            raise StoreError("a row of {table} refers to one that is not in the backup", table=broken[0])


class _Reader:
    """A backup read from front to back, and checked on the way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._size = path.stat().st_size
            self._raw = path.open("rb")
        except OSError as error:
            raise InputError("cannot read {path}: {problem}", path=path, problem=error.strerror) from None
        self._file = zstd.ZstdFile(self._raw)
        try:
            self.contents = self._head()
        except BaseException:
            self.close()
            raise

    def _head(self) -> Contents:
        try:
            head = self._line()
            known = head.get("format") == FORMAT
        except (InputError, AttributeError):
            known = False
        if not known:
            raise InputError("{path} is not a backup of Headwater", path=self._path)
        with self._checked("…"):
            version, schema = int(head["version"]), str(head["schema"])
        if version > FORMAT_VERSION or schema not in known_revisions():
            raise InputError(
                "{path} was written by a newer Headwater (schema {schema}); upgrade Headwater first",
                path=self._path,
                schema=schema,
            )
        with self._checked("…"):
            return Contents(schema, float(head["created_at"]), int(head["last_position"]))

    def close(self) -> None:
        self._file.close()
        self._raw.close()

    def batches(
        self, decoder: Callable[[str, list[str]], Callable[[Any], Key]], advance: Advance
    ) -> Iterator[tuple[str, list[str], list[Key]]]:
        """(table, columns, rows) until the end, each row as `decoder(table, columns)` makes it."""
        while not (line := self._object()).get("done"):
            with self._checked("…"):
                name, columns = str(line["table"]), [str(column) for column in line["columns"]]
                decode = decoder(name, columns)
            digest, count = hashlib.sha256(), 0
            while isinstance(rows := self._line(digest), list):
                count += len(rows)
                advance(self._raw.tell(), self._size, name)
                with self._checked(name):
                    decoded = [decode(_fitting(row, len(columns))) for row in rows]
                yield name, columns, decoded
            with self._checked(name):
                told = (rows["end"], rows["rows"], rows["sha256"])
            if told != (name, count, digest.hexdigest()) or name in self.contents.rows:
                raise _damaged(self._path, name)
            self.contents.rows[name] = count
        if line.get("rows") != self.contents.rows:
            raise _damaged(self._path, "…")

    @contextmanager
    def _checked(self, place: str) -> Iterator[None]:
        """Say of what is not shaped as it should be that the file is damaged."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
            raise _damaged(self._path, place) from None

    def _object(self) -> dict[str, Any]:
        if isinstance(line := self._line(), dict):
            return line
        raise _damaged(self._path, "…")

    def _line(self, digest: Any = None) -> Any:
        try:
            data = self._file.readline(LONGEST_LINE)
            value = orjson.loads(data)
        except (zstd.ZstdError, EOFError, ValueError, OSError):
            raise _damaged(self._path, "…") from None
        if digest is not None and isinstance(value, list):
            digest.update(data.rstrip(b"\n"))
        return value


# What stands in the file for a column's values.
_KINDS: dict[type, tuple[type, ...]] = {
    str: (str,),
    int: (int,),
    float: (int, float),
    bool: (bool, int),
    bytes: (str,),
    datetime: (str,),
}


def _fitting(row: Any, length: int) -> list[Any]:
    """A row of plain values that a database takes, one for each column."""
    if not isinstance(row, list) or len(row) != length:
        raise ValueError(row)
    if any(isinstance(value, int) and value >= 1 << 63 for value in row):
        raise OverflowError
    return row


def _damaged(path: Path, place: str) -> InputError:
    return InputError("{path} is damaged ({place}): it cannot be restored", path=path, place=place)


def _codec(
    table: Table, columns: list[str], change_bytes: Callable[[Any], Any], change_date: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """What turns a row of the database into one of the file, or back: JSON has no bytes and no dates."""
    changes = [
        (place, change_bytes if is_binary(table.c[name]) else change_date)
        for place, name in enumerate(columns)
        if is_binary(table.c[name]) or is_date(table.c[name])
    ]

    def change(row: Any) -> Any:
        values = list(row)
        for place, turn in changes:
            if values[place] is not None:
                values[place] = turn(values[place])
        return tuple(values)

    return change


def _encode_bytes(value: bytes) -> str:
    return b64encode(value).decode()


def _decode_bytes(value: str) -> bytes:
    return b64decode(value, validate=True)


def _encode_date(value: datetime) -> str:
    return value.isoformat(sep=" ")


def _decode_date(value: str) -> datetime:
    return datetime.fromisoformat(value)
