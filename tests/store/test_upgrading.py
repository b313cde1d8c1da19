"""A database of any age comes to the newest schema with everything that was in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, select

from headwater.store import backup
from headwater.store.copying import copied_tables, reflected, set_last_position
from headwater.store.database import Store
from headwater.store.items import list_items
from headwater.store.migrate import HEAD, known_revisions, revision, upgrade
from headwater.store.overview import read_status
from headwater.store.positions import take_positions
from headwater.store.queue import list_due
from headwater.store.search import index_new_items
from headwater.store.sources import list_sources
from headwater.store.tables import metadata, source_leases
from tests.databases import postgres_database
from tests.rows import fill

NOW = 1_790_000_000.0
OLD = sorted(known_revisions() - {HEAD})


@pytest.fixture(params=["sqlite", "postgresql"])
def aged(request: pytest.FixtureRequest, tmp_path: Path, worker_name: str) -> Iterator[Store]:
    """A store whose tables nobody has made yet."""
    if request.param == "sqlite":
        with Store(f"sqlite:///{tmp_path / 'aged.db'}") as store:
            yield store
    else:
        server = request.getfixturevalue("postgres_url")
        with postgres_database(server, f"{worker_name}_aged") as url, Store(url) as store:
            yield store


def rows_of(connection: Connection, schema: MetaData) -> dict[str, list[dict[str, Any]]]:
    return {
        table.name: sorted((row._asdict() for row in connection.execute(select(table))), key=repr)
        for table in copied_tables(schema)
    }


def make(store: Store, age: str) -> dict[str, list[dict[str, Any]]]:
    """Its tables as they were at `age`, each with rows."""
    upgrade(store, age)
    with store.writing() as connection:
        schema = reflected(connection)
        fill(connection, schema)
        if "item_clock" in schema.tables:
            set_last_position(connection, 3)
    with store.reading() as connection:
        assert revision(connection) == age
        return rows_of(connection, schema)


def check(store: Store, before: dict[str, list[dict[str, Any]]]) -> None:
    """Everything is there, and what Headwater asks of a database is answered."""
    with store.writing() as connection:
        assert revision(connection) == HEAD
        for name, rows in before.items():
            table = metadata.tables[name]
            columns = [table.c[column] for column in rows[0] if column in table.c]
            assert columns, name
            now = [row._asdict() for row in connection.execute(select(*columns))]
            kept = [{column.name: row[column.name] for column in columns} for row in rows]
            assert sorted(now, key=repr) == sorted(kept, key=repr), name
        held = {row["id"]: row["lease_until"] for row in before["sources"] if "lease_until" in row}
        assert not held or held == dict(
            connection.execute(select(source_leases.c.source_id, source_leases.c.lease_until)).all()
        ), "who was being visited still is"
        assert len(list_sources(connection)) == 3
        assert len(list_items(connection)) == 3
        assert len(index_new_items(connection, NOW)) == 3
        assert read_status(connection, NOW).sources.total == 3
        assert list_due(connection, NOW) is not None
        assert min(take_positions(connection, 1)) > 3


@pytest.mark.parametrize("age", OLD)
def test_nothing_is_lost_on_the_way_to_the_newest_schema(age: str, aged: Store) -> None:
    before = make(aged, age)
    upgrade(aged)
    check(aged, before)


@pytest.mark.parametrize("age", OLD[::3])
def test_an_old_backup_is_restored_into_the_newest_schema(
    age: str, aged: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup written when `age` was the newest."""
    path = tmp_path / "old.zst"
    with Store(f"sqlite:///{tmp_path / 'old.db'}") as old:
        before = make(old, age)
        with old.reading() as connection:
            tables = copied_tables(reflected(connection))
        with monkeypatch.context() as patch:
            patch.setattr(backup, "HEAD", age)
            patch.setattr(backup, "copied_tables", lambda: tables)
            patch.setattr(backup, "last_position", lambda connection: 0)
            backup.write_backup(old, path, NOW, lambda *args: None)
    backup.restore_backup(aged, path, lambda *args: None, replace=False)
    check(aged, before)
