"""An open database keeps what is stored in it to itself."""

import traceback
from pathlib import Path

import pytest
from sqlalchemy import text

from headwater.errors import StoreError
from headwater.store.database import Store
from tests.databases import copy_sqlite


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
