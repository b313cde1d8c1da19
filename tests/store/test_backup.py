"""Backups: everything at one moment, in a file that either database is restored from, all or nothing."""

import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from headwater.errors import InputError
from headwater.store.backup import FORMAT, read_contents, restore_backup, write_backup
from headwater.store.copying import last_position
from headwater.store.database import Store
from headwater.store.positions import take_positions
from headwater.store.tables import metadata
from tests.rows import everything, fill

NOW = 1_790_000_000.0


def quietly(done: int, total: int, note: str) -> None:
    assert 0 < done <= total
    assert note


def test_a_backup_is_restored_as_it_was(full: Store, other_url: str, tmp_path: Path) -> None:
    path = tmp_path / "backup.zst"
    written = write_backup(full, path, NOW, quietly)
    assert path.stat().st_mode & 0o777 == 0o600
    assert written.total == sum(len(rows) for rows in everything(full).values())
    with Store(other_url) as other:
        assert restore_backup(other, path, quietly, replace=False) == written
        assert everything(other) == everything(full)
        with other.writing() as connection, full.reading() as old:
            assert last_position(connection) == last_position(old)
            assert min(take_positions(connection, 2)) > last_position(old)
            # The numbers of new rows come after those restored.
            table = metadata.tables["api_keys"]
            values = {"name": "n", "prefix": "p", "key_hash": b"k", "created_at": 0.0}
            number = connection.execute(table.insert().values(values).returning(table.c.id)).scalar_one()
            assert number == 4
            if not other.is_sqlite:
                jobs = connection.exec_driver_sql("SELECT count(*) FROM procrastinate.procrastinate_jobs")
                assert jobs.scalar_one() == 3


def test_a_database_in_use_is_backed_up_as_it_was_at_one_moment(full: Store, tmp_path: Path) -> None:
    before = everything(full)
    changed = False

    def change_meanwhile(done: int, total: int, note: str) -> None:
        nonlocal changed
        if not changed:
            changed = True
            with full.writing() as connection:
                connection.exec_driver_sql("DELETE FROM seen_ids")
                connection.exec_driver_sql("UPDATE items SET title = 'later'")

    write_backup(full, tmp_path / "backup.zst", NOW, change_meanwhile)
    assert changed
    assert everything(full) != before
    with Store(f"sqlite:///{tmp_path / 'restored.db'}") as other:
        restore_backup(other, tmp_path / "backup.zst", quietly, replace=False)
        assert everything(other) == before


def test_what_is_there_is_replaced_only_when_told(full: Store, tmp_path: Path) -> None:
    path = tmp_path / "backup.zst"
    write_backup(full, path, NOW, quietly)
    before = everything(full)
    with full.writing() as connection:
        connection.exec_driver_sql("UPDATE items SET title = 'later'")
    with pytest.raises(InputError, match="not empty; --replace"):
        restore_backup(full, path, quietly, replace=False)
    restore_backup(full, path, quietly, replace=True)
    assert everything(full) == before


def test_a_restore_that_fails_changes_nothing(
    full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "backup.zst"
    write_backup(full, path, NOW, quietly)
    with full.writing() as connection:
        connection.exec_driver_sql("UPDATE items SET title = 'later'")
    before = everything(full)
    monkeypatch.setattr("headwater.store.backup._finish", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        restore_backup(full, path, quietly, replace=True)
    assert everything(full) == before


@pytest.mark.parametrize("damage", ["cut", "flipped", "shortened", "empty", "other"])
def test_a_damaged_backup_is_refused_before_anything_is_touched(damage: str, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'one.db'}") as store:
        with store.writing() as connection:
            fill(connection, metadata)
        path = tmp_path / "backup.zst"
        write_backup(store, path, NOW, quietly)
        data = path.read_bytes()
        lines = zstd.decompress(data).splitlines(keepends=True)
        match damage:
            case "cut":
                data = data[: len(data) // 2]
            case "flipped":
                data = zstd.compress(b"".join(lines).replace(b"title 2", b"title 9"))
            case "shortened":
                data = zstd.compress(b"".join(lines[:-1]))
            case "empty":
                data = b""
            case "other":
                data = zstd.compress(b'{"format": "something"}\n')
        path.write_bytes(data)
        before = everything(store)
        with pytest.raises(InputError, match=r"damaged|not a backup"):
            restore_backup(store, path, lambda *args: None, replace=True)
        assert everything(store) == before


def test_a_newer_backup_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "backup.zst"
    path.write_bytes(zstd.compress(f'{{"format":"{FORMAT}","version":1,"schema":"9999"}}\n'.encode()))
    with pytest.raises(InputError, match="newer Headwater"):
        read_contents(path, quietly)


def test_a_backup_that_cannot_be_written_leaves_nothing(full: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        write_backup(full, tmp_path / "nowhere" / "backup.zst", NOW, quietly)
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot write"):
        write_backup(full, tmp_path / "folder", NOW, quietly)
    assert not list(tmp_path.glob("*.part"))
