"""A database opened: its engine, its transactions, and the threads that keep it off the event loop.

Everything else in `store` is plain functions whose first argument is a connection. They are called
`with store.writing() as connection:` in synchronous code and `await store.write(function, …)` in asynchronous
code; there is no second set of them. Nothing here knows what is stored.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from headwater.config import without_password
from headwater.errors import StoreError
from headwater.files import make_private, make_private_directory, open_private

P = ParamSpec("P")
T = TypeVar("T")

SQLITE_MAGIC = b"SQLite format 3\0"
SQLITE_BUSY_SECONDS = 5.0  # beyond that, a caller that can wait retries
POSTGRES_THREADS = 8
PING_AFTER_SECONDS = 1.0  # of rest, in which the server may have gone away
# A process that is frozen in a transaction (its machine sleeps, a signal stopped it) holds on to rows that others want.
FROZEN_SECONDS = 60.0


class Store:
    """An open, up-to-date database.

    `shared`: by a process that works on for ever beside others, and that therefore lets go of a transaction in which
    it does nothing. A process that computes for minutes about what it reads is not that.
    `durability`: "full" lets SQLite wait for the disk at each commit. A PostgreSQL server has a setting for that.
    """

    def __init__(self, url: str, *, shared: bool = False, durability: str = "normal") -> None:
        self.url = _normalise(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.is_read_only = self.is_sqlite and _is_read_only(Path(str(self.url.database)))
        if self.is_sqlite:
            self.engine = _sqlite_engine(self.url, self.is_read_only, durability)
        else:
            self.engine = _postgres_engine(self.url, shared)
        readers = POSTGRES_THREADS if not self.is_sqlite else 4
        self._read_threads = ThreadPoolExecutor(readers, thread_name_prefix="store-read")
        # SQLite has one writer at a time: one thread spares it the quarrel and keeps commits in order.
        self._write_threads = (
            ThreadPoolExecutor(1, thread_name_prefix="store-write") if self.is_sqlite else self._read_threads
        )

    @classmethod
    def open(cls, url: str, *, shared: bool = False, durability: str = "normal") -> Self:
        """Connect, and bring the tables up to date."""
        from headwater.store.core.migrate import upgrade  # Alembic-free unless there is something to do

        store = cls(url, shared=shared, durability=durability)
        try:
            upgrade(store)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        self._write_threads.shutdown(wait=True)
        self._read_threads.shutdown(wait=True)
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may write: committed at the end, rolled back on any error."""
        with self.translated(), self.engine.connect() as connection:
            connection = connection.execution_options(headwater_writes=True)
            with connection.begin():
                yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the database."""
        with self.translated(), self.engine.connect() as connection, connection.begin():
            yield connection

    async def write(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work(connection, …)` in a writing transaction, off the event loop."""
        return await self._in_thread(self._write_threads, self._call_writing, work, args, kwargs)

    async def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work(connection, …)` in a reading transaction, off the event loop."""
        return await self._in_thread(self._read_threads, self._call_reading, work, args, kwargs)

    def _call_writing(self, work: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        with self.writing() as connection:
            return work(connection, *args, **kwargs)

    def _call_reading(self, work: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        with self.reading() as connection:
            return work(connection, *args, **kwargs)

    async def _in_thread(self, threads: ThreadPoolExecutor, call: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(threads, call, *args)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn the driver's errors into ours: one line that names the database."""
        try:
            yield
        except DBAPIError as error:
            failure = StoreError(
                "the database {url} failed: {problem}", url=self.shown_url, problem=first_line(error.orig)
            )
            failure.passing = _is_passing(error)
            raise failure from error

    @property
    def shown_url(self) -> str:
        return without_password(self.url.render_as_string(hide_password=True))


def _normalise(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StoreError(
            "{url} is not a database URL; use postgresql://… or sqlite:///FILE", url=without_password(text)
        ) from None
    if url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database:
        if url.database == ":memory:":
            raise StoreError("{url} would keep nothing; use sqlite:///FILE", url=text)
        if url.query:
            raise StoreError(
                "{url}: a SQLite URL takes no parameters; use sqlite:///FILE", url=without_password(text)
            )
        return url.set(drivername="sqlite")
    raise StoreError(
        "{url} is not a database URL; use postgresql://… or sqlite:///FILE", url=without_password(text)
    )


def database_files(path: Path) -> list[Path]:
    """A SQLite database's files: itself, and what SQLite keeps beside it while it is open."""
    return [path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm"))]


def _may_be_database(path: Path) -> bool:
    """Whether a file is empty or begins as SQLite's files do; the mode of any other file is not ours to change."""
    with path.open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) in (b"", SQLITE_MAGIC)


def _is_read_only(path: Path) -> bool:
    """Whether a database is there that this user may read and not change."""
    if not os.access(path, os.R_OK) or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return False
    return path.is_file() and path.stat().st_size > 0 and _may_be_database(path)


def _sqlite_engine(url: URL, is_read_only: bool, durability: str) -> Engine:
    path = Path(str(url.database))
    if is_read_only:
        url = _read_only_url(url, path)
    else:
        _prepare_files(path)
    engine = create_engine(
        url,
        hide_parameters=True,
        connect_args={
            "timeout": SQLITE_BUSY_SECONDS,
            "isolation_level": None,  # we say BEGIN ourselves, see below
            "check_same_thread": False,
            "cached_statements": 256,
        },
    )

    engine.dialect.statement_compiler = _SQLiteCompiler

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, record: object) -> None:
        if not is_read_only:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes the lock at once: a reader that turns writer half-way fails instead of waiting.
        writes = connection.get_execution_options().get("headwater_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _read_only_url(url: URL, path: Path) -> URL:
    """The same database, for SQLite to open without a file beside it that it cannot make."""
    query = {"uri": "true", "mode": "ro"}
    log = path.with_name(path.name + "-wal")
    if not log.exists() or not log.stat().st_size:
        query["immutable"] = "1"
    return url.set(database=f"file:{quote(str(path))}", query=query)


def _prepare_files(path: Path) -> None:
    """Make the file, if it is missing, so that only its owner may read it; StoreError when it cannot be written."""
    try:
        make_private_directory(path.parent)
        # Opened here once, so that a path that cannot be written is one clear line and leaves nothing behind.
        open_private(path)
        is_ours = _may_be_database(path)
    except OSError as error:
        problem = error.strerror
        if isinstance(error, FileExistsError | NotADirectoryError):
            problem = f"{error.filename} is not a directory"
        raise StoreError(
            "cannot write the database file {path}: {problem}; choose another place with HEADWATER_DATA_DIR"
            " or HEADWATER_DATABASE_URL",
            path=path,
            problem=problem,
        ) from None
    if is_ours:
        for file in database_files(path):  # SQLite gives the ones it makes later the mode of the first
            make_private(file)


class _SQLiteCompiler(SQLiteCompiler):
    """Writes `NOT flag` where SQLAlchemy writes `flag = 0`: SQLite uses a partial index only if the words agree."""

    def visit_is_true_unary_operator(self, element: Any, operator: Any, **kw: Any) -> str:
        return self.process(element.element, **kw)

    def visit_is_false_unary_operator(self, element: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self.process(element.element, **kw)}"


def _postgres_engine(url: URL, shared: bool) -> Engine:
    engine = create_engine(url, hide_parameters=True, pool_size=POSTGRES_THREADS, max_overflow=4)

    if shared:

        @event.listens_for(engine, "connect")
        def set_up(connection: Any, record: object) -> None:
            connection.execute(f"SET idle_in_transaction_session_timeout = {FROZEN_SECONDS * 1000:.0f}")
            connection.commit()

    @event.listens_for(engine, "checkin")
    def note(connection: object, record: ConnectionPoolEntry) -> None:
        record.info["idle_since"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def ping(connection: Any, record: ConnectionPoolEntry, proxy: object) -> None:
        # One that has just been used is there: asking it every time is a fifth of what a small read costs.
        if time.monotonic() - record.info.get("idle_since", time.monotonic()) > PING_AFTER_SECONDS:
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error:
                raise DisconnectionError from None  # the pool takes another one

    return engine


# Connection lost, deadlock or serialisation, no resources, shutting down, and read-only after a failover.
_PASSING_STATES = ("08", "40", "53", "57", "25006")


def _is_passing(error: DBAPIError) -> bool:
    """Whether the same call may work later: the database is away, busy or out of space, not at a loss."""
    if error.connection_invalidated:
        return True
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL)
    state = getattr(error.orig, "sqlstate", None)
    if state is None:  # it never came to a statement: no connection could be had
        return isinstance(error, OperationalError)
    return str(state).startswith(_PASSING_STATES)


def first_line(error: object) -> str:
    """The first line of a driver's error, which is the one that says what is wrong."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
