"""Backups: everything at one moment, in a file that either database is restored from, all or nothing."""

import sys
from hashlib import sha256
from pathlib import Path

import orjson
import pytest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from headwater.errors import InputError
from headwater.store.core.database import Store
from headwater.store.core.migrate import HEAD
from headwater.store.core.tables import metadata
from headwater.store.reading.positions import take_positions
from headwater.store.transfer.backup import FORMAT, LONGEST_LINE, read_contents, restore_backup, write_backup
from headwater.store.transfer.copying import last_position
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
            values = {"name": "n", "prefix": "p", "key_hash": b"k", "created_at": 0.0, "user_id": 1}
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
    monkeypatch.setattr("headwater.store.transfer.backup._finish", lambda *args: 1 / 0)
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


HEAD_LINE = {"format": FORMAT, "version": 1, "schema": HEAD, "created_at": NOW, "last_position": 0}
KEYS = ["id", "name", "prefix", "key_hash", "scopes", "created_at", "last_used_at", "revoked_at", "user_id"]


def forged(columns: object = KEYS, rows: object = (), **changes: object) -> list[object]:
    """The lines of a backup of one user and some keys, whose sums are right, whatever it says."""
    count = len(rows) if isinstance(rows, list) else 0
    return [
        {**HEAD_LINE, **changes},
        *forged_table("users", ["id", "name", "created_at"], [[1, "n", 0.0]], 1),
        *forged_table("api_keys", columns, rows, count),
        {"done": True, "rows": {"users": 1, "api_keys": count}},
    ]


def forged_table(name: str, columns: object, rows: object, count: int) -> list[object]:
    end = {"end": name, "rows": count, "sha256": sha256(orjson.dumps(rows)).hexdigest()}
    return [{"table": name, "columns": columns}, rows, end]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([{"format": FORMAT}], id="head without version"),
        pytest.param(forged(version="newest"), id="version is not a number"),
        pytest.param(forged(created_at=[]), id="time is a list"),
        pytest.param(forged(last_position=None), id="no position"),
        pytest.param([HEAD_LINE, [], {"done": True}], id="list instead of a table"),
        pytest.param([HEAD_LINE, 7], id="number instead of a table"),
        pytest.param([HEAD_LINE, {"columns": []}], id="table without a name"),
        pytest.param([HEAD_LINE, {"table": "api_keys", "columns": 5}], id="columns are a number"),
        pytest.param([HEAD_LINE, {"table": "api_keys", "columns": []}, 5], id="number instead of rows"),
        pytest.param([HEAD_LINE, {"table": "api_keys", "columns": []}, {}], id="end without sums"),
        pytest.param([HEAD_LINE, {"done": True}], id="end without numbers"),
        pytest.param(forged(columns=["id", "x = 1; --"], rows=[[1, 2]]), id="unknown column"),
        pytest.param(forged(rows=[5]), id="row is a number"),
        pytest.param(forged(rows=[[1]]), id="row too short"),
        pytest.param(forged(rows=[[{}, "n", "p", "", "[]", 0.0, None, None, 1]]), id="object for a number"),
        pytest.param(forged(rows=[["x", "n", "p", "", "[]", 0.0, None, None, 1]]), id="text for a number"),
        pytest.param(forged(rows=[[1, 5, "p", "", "[]", 0.0, None, None, 1]]), id="number for a text"),
        pytest.param(forged(rows=[[1, "n", "p", 5, "[]", 0.0, None, None, 1]]), id="number for bytes"),
        pytest.param(forged(rows=[[1, "n", "p", "!", "[]", 0.0, None, None, 1]]), id="bytes badly written"),
        pytest.param(forged(rows=[[2**63, "n", "p", "", "[]", 0.0, None, None, 1]]), id="number too large"),
    ],
)
def test_malicious_backup_is_refused_in_one_line(
    lines: list[object], database_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "backup.zst"
    path.write_bytes(zstd.compress(b"".join(orjson.dumps(line) + b"\n" for line in lines)))
    with Store.open(database_url) as store:
        before = everything(store)
        with pytest.raises(InputError, match="is damaged"):
            restore_backup(store, path, lambda *args: None, replace=True)
        assert everything(store) == before


def test_forged_backup_that_is_shaped_right_is_restored(tmp_path: Path) -> None:
    """What the cases above differ from."""
    path = tmp_path / "backup.zst"
    lines = forged(rows=[[1, "n", "p", "aGFzaA==", "[]", 0.0, None, None, 1]])
    path.write_bytes(zstd.compress(b"".join(orjson.dumps(line) + b"\n" for line in lines)))
    with Store.open(f"sqlite:///{tmp_path / 'one.db'}") as store:
        assert restore_backup(store, path, lambda *args: None, replace=True).rows == {
            "users": 1,
            "api_keys": 1,
        }


def test_backup_of_one_endless_line_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "backup.zst"
    path.write_bytes(zstd.compress(b"[" + b"0," * (LONGEST_LINE // 2 + 1)))
    with pytest.raises(InputError, match="not a backup"):
        read_contents(path, quietly)
