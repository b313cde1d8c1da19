"""An open database keeps what is stored in it to itself."""

import traceback
from pathlib import Path

import pytest
from sqlalchemy import text

from headwater.errors import StoreError
from headwater.store.database import Store
from tests.databases import copy_sqlite, empty_tables


def test_no_traceback_shows_what_was_to_be_stored(store: Store) -> None:
    secret = "-".join(["hush"] * 2)  # in no line of this file, which a traceback quotes
    with pytest.raises(StoreError) as caught, store.writing() as connection:
        connection.execute(text("INSERT INTO nowhere VALUES (:config)"), {"config": secret})
    assert "hush-hush" not in "".join(traceback.format_exception(caught.value))


def test_a_full_disk_is_waited_out(sqlite_template: Path, tmp_path: Path) -> None:
    with Store.open(copy_sqlite(sqlite_template, tmp_path / "headwater.db")) as store:
        with pytest.raises(StoreError, match="full") as caught, store.writing() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 1")  # no more than it has
            connection.exec_driver_sql(
                "INSERT INTO settings (key, value, updated_at) VALUES ('k', zeroblob(9000000), 0)"
            )
        assert caught.value.passing


def test_who_is_frozen_in_a_transaction_holds_nobody_up(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_tables(postgres_store)
    monkeypatch.setattr("headwater.store.database.FROZEN_SECONDS", 0.2)
    wanted = text("INSERT INTO settings (key, value, updated_at) VALUES ('k', '1', 0)")
    with Store.open(str(postgres_store.url.render_as_string(hide_password=False)), shared=True) as frozen:
        with pytest.raises(StoreError) as caught, frozen.writing() as connection:
            connection.execute(wanted)
            with postgres_store.writing() as other:
                other.exec_driver_sql("SET LOCAL lock_timeout = '20s'")
                other.execute(wanted)  # waits until it is known whether the first one stays
            connection.execute(wanted)
        assert caught.value.passing
        with frozen.reading() as connection:
            assert connection.execute(text("SELECT count(*) FROM settings WHERE key = 'k'")).scalar_one() == 1
