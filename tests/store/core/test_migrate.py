"""Migrations build what the tables say, in any order of starts, and refuse what they do not know."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from headwater.errors import NewerDatabaseError, StoreError
from headwater.store.core.database import Store
from headwater.store.core.migrate import HEAD, alembic_config, known_revisions, revision
from headwater.store.core.schema import schema_differences
from tests import migrations
from tests.databases import postgres_database
from tests.migrations import edited, hashes, recorded

SOURCE_STATS = {
    "source_id": "TEXT",
    "source_type": "TEXT",
    "frequency_type": "TEXT",
    "cadence": "TEXT",
    "avg_publish_hour": "REAL",
    "std_publish_hour": "REAL",
    "next_due_at": "INTEGER",
    "last_check_at": "INTEGER",
    "last_article_at": "INTEGER",
    "fail_count": "INTEGER",
    "backoff_until": "INTEGER",
    "last_error": "TEXT",
    "check_count": "INTEGER",
    "hit_count": "INTEGER",
    "created_at": "INTEGER",
    "updated_at": "INTEGER",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path, worker_name: str) -> Iterator[str]:
    """An untouched database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new.db'}"
    else:
        with postgres_database(request.getfixturevalue("postgres_url"), f"{worker_name}_empty") as url:
            yield url


def test_migrations_equal_tables(store: Store) -> None:
    with store.reading() as connection:
        assert [str(each.message) for each in schema_differences(connection)] == []


def test_head_is_the_newest_migration(store: Store) -> None:
    with store.reading() as connection:
        script = ScriptDirectory.from_config(alembic_config(connection))
        assert script.get_heads() == [HEAD], (
            "two migrations have the same down_revision, or HEAD is not the last"
        )
    assert {each.revision for each in script.walk_revisions()} == known_revisions()
    with store.reading() as connection:
        assert revision(connection) == HEAD


def test_migration_edited_after_landing_is_found() -> None:
    now, before = hashes(), recorded()
    assert edited(now, before) == [], "landed migrations are frozen: undo the edit and write a new migration"
    assert sorted(now.keys() - before.keys()) == [], "record new migrations with: python -m tests.migrations"


def test_record_of_migrations_refuses_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "record"
    record.write_text("".join(f"{value}  {name}\n" for name, value in hashes().items() if "0002" not in name))
    monkeypatch.setattr(migrations, "RECORD", record)
    assert migrations.main() == 0, "a new one is added"
    assert recorded() == hashes()
    record.write_text(record.read_text().replace(hashes()["0001_first_tables.py"], "0" * 64))
    assert migrations.main() == 1
    assert edited(hashes(), recorded()) == ["0001_first_tables.py"]


def test_opening_again_changes_nothing(empty_url: str) -> None:
    for _ in range(2):
        with Store.open(empty_url) as store, store.reading() as connection:
            assert revision(connection) == HEAD


def test_source_stats_is_the_documents_table(store: Store) -> None:
    with store.reading() as connection:
        columns = {
            column["name"]: column["type"] for column in inspect(connection).get_columns("source_stats")
        }
        indexes = {
            index["name"]: index["column_names"] for index in inspect(connection).get_indexes("source_stats")
        }
    assert set(columns) == set(SOURCE_STATS)
    if store.is_sqlite:
        assert {name: str(kind) for name, kind in columns.items()} == SOURCE_STATS
    assert indexes == {
        "idx_source_stats_next_due": ["next_due_at"],
        "idx_source_stats_cadence": ["cadence"],
        "idx_source_stats_type": ["source_type"],
        "idx_source_stats_type_due": ["source_type", "next_due_at"],
    }


def test_a_newer_database_is_refused(empty_url: str) -> None:
    with Store.open(empty_url) as store, store.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NewerDatabaseError, match=r"newer Headwater \(schema 9999.*upgrade Headwater"):
        Store.open(empty_url)


def test_another_programs_database_is_refused(empty_url: str) -> None:
    foreign = Store(empty_url)
    with foreign.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE items (id INTEGER)")
    foreign.close()
    with pytest.raises(StoreError, match="another program's tables"):
        Store.open(empty_url)


@pytest.mark.slow
def test_workers_that_start_together_do_not_fight(empty_url: str) -> None:
    code = "import sys; from headwater.store.core.database import Store; Store.open(sys.argv[1]).close()"
    workers = [
        subprocess.Popen([sys.executable, "-c", code, empty_url], stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    errors = [worker.communicate(timeout=120)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 6, errors
    with Store.open(empty_url) as store, store.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM alembic_version").scalar_one() == 1


def test_a_failed_migration_leaves_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of an upgrade or none: a crash in the middle must not leave half a schema."""
    from alembic import command

    real = command.upgrade

    def fail_after(*args: object, **kwargs: object) -> None:
        real(*args, **kwargs)  # type: ignore[arg-type]
        raise RuntimeError("power cut")

    monkeypatch.setattr(command, "upgrade", fail_after)
    with pytest.raises(RuntimeError):
        Store.open(empty_url)
    store = Store(empty_url)
    with store.reading() as connection:
        assert inspect(connection).get_table_names() == []
    store.close()
