"""A schema that differs from its version is found, and what can be made again is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import inspect

from headwater.store.core.database import Store
from headwater.store.core.schema import repair, schema_differences
from headwater.store.core.tables import metadata
from tests.databases import postgres_database
from tests.rows import fill

REPAIRABLE = {
    "DROP TABLE source_stats": "the table source_stats is missing",
    "ALTER TABLE sources DROP COLUMN icon_url": "the column sources.icon_url is missing",
    "ALTER TABLE items DROP COLUMN version": "the column items.version is missing",
    "DROP INDEX ix_items_item_at": "the index ix_items_item_at is missing, or has other columns",
    "DROP INDEX uq_sources_type_url": "the index uq_sources_type_url is missing, or has other columns",
}
BEYOND_REPAIR = {
    "DROP TRIGGER source_renamed{on}": "the trigger source_renamed is missing",
    "ALTER TABLE items DROP COLUMN content_hash": "the column items.content_hash is missing",
    "DROP TABLE item_words": "the table item_words is missing",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def own(request: pytest.FixtureRequest, tmp_path: Path, worker_name: str) -> Iterator[Store]:
    """A database that the test may damage, with rows in every table."""
    if request.param == "sqlite":
        with Store.open(f"sqlite:///{tmp_path / 'own.db'}") as store:
            yield store
    else:
        server = request.getfixturevalue("postgres_url")
        with postgres_database(server, f"{worker_name}_own") as url, Store.open(url) as store:
            yield store


def messages(store: Store) -> list[str]:
    with store.reading() as connection:
        return [str(each.message) for each in schema_differences(connection)]


def damage(store: Store, statement: str) -> None:
    with store.writing() as connection:
        connection.exec_driver_sql(statement.format(on="" if store.is_sqlite else " ON sources"))


def test_schema_with_other_programs_tables_is_well(own: Store) -> None:
    damage(own, "CREATE TABLE notes (id INTEGER)")
    damage(own, "CREATE INDEX my_own ON items (author)")
    assert messages(own) == []


@pytest.mark.slow
def test_schema_with_something_missing_is_found_and_repaired(own: Store) -> None:
    with own.writing() as connection:
        fill(connection, metadata)
    for statement, message in REPAIRABLE.items():
        damage(own, statement)
        assert messages(own)[:1] == [message]
        with own.writing() as connection:
            assert repair(connection) == []
        assert messages(own) == []
    with own.reading() as connection:
        assert len(inspect(connection).get_indexes("source_stats")) == 4, "a table comes with its indexes"
        assert connection.exec_driver_sql("SELECT count(*) FROM items").scalar_one() == 3, "no row is lost"


@pytest.mark.slow
def test_schema_beyond_repair_is_found(own: Store) -> None:
    for statement, message in BEYOND_REPAIR.items():
        damage(own, statement)
        assert message in messages(own)
    with own.writing() as connection:
        assert {str(each.message) for each in repair(connection)} == set(BEYOND_REPAIR.values())
