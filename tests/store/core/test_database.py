"""An open database keeps what is stored in it to itself."""

import subprocess
import sys
import traceback
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import text

from headwater.errors import StoreError
from headwater.store.core.database import Store
from headwater.store.core.settings import set_setting
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


@pytest.mark.parametrize(("durability", "synchronous"), [("normal", 1), ("full", 2)])
def test_sqlite_waits_for_the_disk_as_chosen(
    sqlite_template: Path, tmp_path: Path, durability: str, synchronous: int
) -> None:
    url = copy_sqlite(sqlite_template, tmp_path / "headwater.db")
    with Store.open(url, durability=durability) as store, store.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == synchronous


def test_process_frozen_in_a_transaction_holds_up_no_other(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_tables(postgres_store)
    monkeypatch.setattr("headwater.store.core.database.FROZEN_SECONDS", 0.2)
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


def modes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in (directory, *directory.iterdir())}


def test_database_files_are_their_owners_alone(tmp_path: Path) -> None:
    place = tmp_path / "data"
    names = ["headwater.db", "headwater.db-shm", "headwater.db-wal"]
    private = {"data": 0o700, **dict.fromkeys(names, 0o600)}
    with Store.open(f"sqlite:///{place / 'headwater.db'}") as store, store.writing():
        assert modes(place) == private
    (place / "headwater.db").chmod(0o644)
    with Store.open(f"sqlite:///{place / 'headwater.db'}") as store, store.writing():
        assert modes(place) == private, "one from before is tightened"


READ_ONLY = """
import os, sys
from headwater.errors import StoreError
from headwater.store.core.database import Store
from headwater.store.core.settings import get_setting, set_setting
with Store.open(sys.argv[1]) as store, store.reading() as connection:
    get_setting(connection, "x")  # everything is imported now
if os.geteuid() == 0:  # for whom no file is read-only
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
with Store.open(sys.argv[2]) as store:
    with store.reading() as connection:
        print(get_setting(connection, "kept"))
    try:
        with store.writing() as connection:
            set_setting(connection, "kept", 8, 0.0)
    except StoreError as error:
        print(error)
"""


@pytest.mark.parametrize("in_use", [False, True], ids=["closed", "in use"])
@pytest.mark.parametrize("mode", [0o555, 0o755], ids=["read-only directory", "directory of another"])
def test_read_only_database_can_be_read_and_not_changed(
    in_use: bool, mode: int, sqlite_template: Path
) -> None:
    with TemporaryDirectory() as name:  # pytest's own are closed to other users
        folder = Path(name)
        url = copy_sqlite(sqlite_template, folder / "one.db")
        other = copy_sqlite(sqlite_template, folder / "other.db")
        with ExitStack() as stack:
            store = stack.enter_context(Store.open(url))
            with store.writing() as connection:
                set_setting(connection, "kept", 7, 0.0)
            if not in_use:
                stack.close()
            for file in folder.glob("one.db*"):
                file.chmod(0o444)
            folder.chmod(mode)
            done = subprocess.run(
                [sys.executable, "-c", READ_ONLY, other, url], capture_output=True, text=True, timeout=60
            )
            folder.chmod(0o755)
        assert done.stdout.splitlines() == [
            "7",
            f"the database {url} failed: attempt to write a readonly database",
        ], done.stderr
