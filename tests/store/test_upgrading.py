"""A database of any age comes to the newest schema with everything that was in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet
from sqlalchemy import Connection, MetaData, select

from headwater.store.collecting.queue import iterate_due
from headwater.store.collecting.sources import list_sources
from headwater.store.core.database import Store
from headwater.store.core.migrate import HEAD, known_revisions, revision, upgrade
from headwater.store.core.schema import schema_differences
from headwater.store.core.tables import metadata, source_leases
from headwater.store.people.entries import EntryFilter, list_places
from headwater.store.people.folders import folder_paths, list_folders
from headwater.store.people.reading import mark_read, unread_counts
from headwater.store.people.sessions import NewSession, open_session
from headwater.store.people.subscriptions import list_subscriptions
from headwater.store.people.users import add_user, list_users
from headwater.store.reading.items import list_items
from headwater.store.reading.positions import take_positions
from headwater.store.reports.overview import read_status
from headwater.store.transfer import backup
from headwater.store.transfer.copying import copied_tables, reflected, set_last_position
from tests.databases import postgres_database
from tests.rows import fill

NOW = 1_790_000_000.0
OLD = sorted(known_revisions() - {HEAD})


def all_but_the_last_slow(values: list[str]) -> list[ParameterSet]:
    """The same test with each value: the quick ring tries the newest alone."""
    return [*(pytest.param(each, marks=pytest.mark.slow) for each in values[:-1]), pytest.param(values[-1])]


@pytest.fixture(params=["sqlite", "postgresql"])
def aged(request: pytest.FixtureRequest, tmp_path: Path, worker_name: str) -> Iterator[Store]:
    """A store without its tables."""
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
        assert read_status(connection, NOW).sources.total == 3
        assert list(iterate_due(connection, NOW)) is not None
        assert min(take_positions(connection, 1)) > 3


@pytest.mark.parametrize("age", all_but_the_last_slow(OLD))
def test_nothing_is_lost_on_the_way_to_the_newest_schema(age: str, aged: Store) -> None:
    before = make(aged, age)
    upgrade(aged)
    check(aged, before)


def test_keys_sessions_and_links_become_the_first_admins(aged: Store) -> None:
    make(aged, "0028")
    tables = {"api_keys": "key_hash", "sessions": "token_hash", "sign_in_links": "token_hash"}
    with aged.reading() as connection:
        old = reflected(connection)
        before = {
            name: set(connection.execute(select(old.tables[name].c[column])).scalars())
            for name, column in tables.items()
        }
    upgrade(aged)
    with aged.writing() as connection:
        (admin,) = list_users(connection)
        assert (admin.id, admin.name, admin.role) == (1, "admin", "admin")
        for name, column in tables.items():
            table = metadata.tables[name]
            assert set(connection.execute(select(table.c.user_id)).scalars()) == {1}, name
            now = set(connection.execute(select(table.c[column])).scalars())
            assert now == before[name] and len(now) == 3, name
        assert {row.key_id for row in connection.execute(select(metadata.tables["sessions"]))} == {1, 2, 3}
        assert add_user(connection, name="li", now=NOW).id == 2
        open_session(connection, NewSession("account", user_id=2), NOW)


# Migrations 0009 and 0010 were changed after their release. What databases of the earlier forms have otherwise:
# the version they say, and the statements that make them of one of today's.
EARLIER_FORMS = {
    "0009 of the first release": (
        "0009",
        "DROP INDEX ix_items_analyzed; DROP INDEX ix_sources_folder;"
        "DROP INDEX ix_sources_name; DROP INDEX ix_sources_template",
    ),
    "0009 without names": (
        "0009",
        "DROP INDEX ix_sources_name; DROP INDEX ix_sources_folder;"
        "CREATE INDEX ix_sources_folder ON sources (folder, id) WHERE NOT is_deleted",
    ),
    "0009 with names in another order": (
        "0009",
        "DROP INDEX ix_sources_name; CREATE INDEX ix_sources_name ON sources (is_deleted, name, url)",
    ),
    "0010 before minutes": (
        "0011",
        "DROP INDEX ix_sources_template; DROP INDEX ix_sources_due; DROP INDEX IF EXISTS ix_sources_last_fetched_at;"
        "CREATE INDEX ix_sources_template ON sources (pipeline_template_id) WHERE pipeline_template_id IS NOT NULL;"
        "CREATE INDEX ix_sources_due ON sources (due_at);"
        "CREATE INDEX ix_sources_last_fetched_at ON sources (last_fetched_at)",
    ),
}


@pytest.mark.parametrize("form", EARLIER_FORMS)
def test_upgrade_of_an_earlier_form_ends_in_the_newest_schema(form: str, aged: Store) -> None:
    age, statements = EARLIER_FORMS[form]
    before = make(aged, age)
    with aged.writing() as connection:
        for statement in statements.split(";"):
            connection.exec_driver_sql(statement)
    upgrade(aged)
    check(aged, before)
    with aged.reading() as connection:
        assert [str(each.message) for each in schema_differences(connection)] == []


@pytest.mark.parametrize("age", all_but_the_last_slow(OLD[::3]))
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


def test_upgrade_subscribes_first_user_to_all_sources_and_marks_all_read(aged: Store) -> None:
    make(aged, "0029")
    with aged.writing() as connection:
        connection.exec_driver_sql("UPDATE sources SET folder = 'News / World' WHERE id < 3")
        connection.exec_driver_sql("UPDATE sources SET folder = NULL WHERE id = 3")
    upgrade(aged)
    with aged.writing() as connection:
        found = list_subscriptions(connection, 1)
        assert [
            (each.id, each.source_id, each.unread_count) for each in sorted(found, key=lambda each: each.id)
        ] == [(number, number, 0) for number in (1, 2, 3)]
        paths = folder_paths(list_folders(connection, 1))
        assert {paths.get(each.folder_id or 0) for each in found} == {("News", "World"), None}
        assert list_places(connection, 1, EntryFilter(is_read=False), limit=10) == []
        assert len(list_places(connection, 1, EntryFilter(), limit=10)) == 3
        mark_read(connection, 1, [1], False)
        assert [each.count for each in unread_counts(connection, 1)] == [1, 0, 0]
        assert not schema_differences(connection)
