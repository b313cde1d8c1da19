"""Bringing a database to the tables this Headwater knows, once, by the first process that starts.

Starting workers take a lock (PostgreSQL: an advisory lock; SQLite: the write transaction itself), so that one
upgrades and the others find it done. Alembic is imported only when there is something to do.
"""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, inspect

from headwater.errors import NewerDatabaseError, StoreError

if TYPE_CHECKING:
    from alembic.config import Config

    from headwater.store.core.database import Store

ADVISORY_LOCK = 0x48656164  # any number will do, as long as it never changes
PATIENCE_SECONDS = 60.0
UNFINISHED = (
    "unfinished"  # in the place of a revision while rows are being copied into it: not to be used yet
)
MIGRATIONS = Path(__file__).parents[1] / "migrations"
_REVISION = re.compile(r'^(down_)?revision = "(\w+)"', re.MULTILINE)


def _find_head() -> str:
    """The last migration: the one that none follows. Alembic would tell, too, but takes long to import."""
    found: dict[bool, set[str]] = {False: set(), True: set()}
    for path in (MIGRATIONS / "versions").glob("*.py"):
        for is_before, revision in _REVISION.findall(path.read_text(encoding="utf-8")):
            found[bool(is_before)].add(revision)
    heads = sorted(found[False] - found[True])
    if len(heads) != 1:
        raise RuntimeError(f"migrations {heads} have no order: make one the down_revision of the other")
    return heads[0]


HEAD = _find_head()


def upgrade(store: "Store", target: str = "head") -> None:
    """Migrate the database to `target`; refuse one that a newer Headwater has written."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            _upgrade(store, target)
            return
        except StoreError as error:
            if not (_is_locked_out(error) and time.monotonic() < deadline):
                raise  # only a file that others are upgrading is worth the wait


def _is_locked_out(error: StoreError) -> bool:
    """Whether another process is writing to the SQLite file."""
    code = getattr(getattr(error.__cause__, "orig", None), "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _upgrade(store: "Store", target: str) -> None:
    if target == "head":
        with store.reading() as connection:
            if revision(connection) == HEAD:
                return
    with store.writing() as connection, building(connection, store):
        if target == "head" and revision(connection) == HEAD:
            return
        upgrade_in(connection, target)


@contextmanager
def building(connection: Connection, store: "Store") -> Iterator[None]:
    """Alone with the database's tables, for as long as the transaction lasts, if they are Headwater's to change."""
    if not store.is_sqlite:
        # Held until the transaction ends, so that no other process looks before the commit.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
    current = revision(connection)
    _refuse_newer(current, store)
    if current is None and _has_foreign_tables(connection):
        raise StoreError(
            "the database {url} holds another program's tables; give Headwater a separate database",
            url=store.shown_url,
        )
    yield


def upgrade_in(connection: Connection, target: str) -> None:
    """Migrate to `target` in the transaction that is under way."""
    from alembic import command

    if revision(connection) == "0009":
        _complete_0009(connection)
    command.upgrade(alembic_config(connection), target)


def _complete_0009(connection: Connection) -> None:
    """Make what the first released form of migration 0009 left out, and 0010 drops. 0018 sees to the rest."""
    for name, column in (("ix_sources_name", "name"), ("ix_sources_template", "pipeline_template_id")):
        connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS {name} ON sources ({column})")


def revision(connection: Connection) -> str | None:
    """The schema version the database says it has; None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    row = connection.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    return None if row is None else str(row[0])


def alembic_config(connection: Connection) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def known_revisions() -> set[str]:
    return {path.name.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py")}


def _refuse_newer(current: str | None, store: "Store") -> None:
    if current == UNFINISHED:
        raise StoreError(
            "the database {url} is incomplete: run `headwater migrate-to` once more and let it finish",
            url=store.shown_url,
        )
    if current is not None and current not in known_revisions():
        raise NewerDatabaseError(
            "the database {url} was written by a newer Headwater (schema {current}, this one knows {known}); "
            "upgrade Headwater or choose another database",
            url=store.shown_url,
            current=current,
            known=HEAD,
        )


def _has_foreign_tables(connection: Connection) -> bool:
    ours = {"sources", "items", "settings"}
    return bool(ours & set(inspect(connection).get_table_names()))


__all__: list[Any] = [
    "HEAD",
    "UNFINISHED",
    "alembic_config",
    "building",
    "known_revisions",
    "revision",
    "upgrade",
    "upgrade_in",
]
