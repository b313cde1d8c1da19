"""Moving to another database: nothing lost, nothing doubled, wherever it is cut off."""

import re
import time
from pathlib import Path

import pytest
from sqlalchemy import insert

from headwater.errors import HeadwaterError, InputError, StoreError
from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.core.migrate import HEAD, revision
from headwater.store.core.settings import get_setting
from headwater.store.core.tables import metadata, source_leases, sources
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.search import index_batch
from headwater.store.transfer.copying import last_position
from headwater.store.transfer.move import index_moved, move
from tests.command import Headwater
from tests.origin import Origin
from tests.rows import everything, value_for

NOW = 1_790_000_000.0


def quietly(done: int, total: int, note: str) -> None:
    assert done <= total


def test_everything_moves(full: Store, other_url: str) -> None:
    with Store(other_url) as other:
        moved = move(full, other, NOW, quietly)
        assert moved.rows == {name: len(rows) for name, rows in everything(full).items()}
        assert moved.resumed_after == 0
    with Store.open(other_url) as other:
        assert everything(other) == everything(full)
        with other.reading() as connection, full.reading() as old:
            assert last_position(connection) == last_position(old)
        index_moved(other, NOW, quietly)
        assert len(index_batch(other, NOW)) == 0
        with other.writing() as connection:
            number = connection.execute(
                insert(metadata.tables["outlets"])
                .values(name="x", title="x", created_at=0.0, updated_at=0.0)
                .returning(metadata.tables["outlets"].c.id)
            )
            assert number.scalar_one() == 4


def test_it_goes_on_where_it_was_cut(full: Store, other_url: str) -> None:
    class CutError(Exception):
        pass

    tables = [name for name, rows in everything(full).items() if rows]
    for number in (1, len(tables) // 2, len(tables) - 1):

        def cut(done: int, total: int, note: str, number: int = number) -> None:
            if done >= 3 * number:
                raise CutError

        with Store(other_url) as other, pytest.raises(CutError):
            move(full, other, NOW, cut)
    with pytest.raises(StoreError, match="is incomplete"):
        Store.open(other_url)
    with Store(other_url) as other:
        assert move(full, other, NOW, quietly).resumed_after >= 3 * (len(tables) - 1)
    with Store.open(other_url) as other:
        assert everything(other) == everything(full)


def test_it_does_not_go_on_from_what_has_changed(full: Store, tmp_path: Path) -> None:
    def cut(done: int, total: int, note: str) -> None:
        raise KeyboardInterrupt

    url = f"sqlite:///{tmp_path / 'target.db'}"
    with Store(url) as other:
        with pytest.raises(KeyboardInterrupt):
            move(full, other, NOW, cut)
        with full.writing() as connection:
            connection.execute(sources.update().values(updated_at=NOW))
        with pytest.raises(InputError, match="--start-over"):
            move(full, other, NOW, quietly)
        move(full, other, NOW, quietly, start_over=True)
        assert everything(other) == everything(full)


def test_what_is_not_empty_or_busy_is_refused(full: Store, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'target.db'}"
    with pytest.raises(InputError, match="the database in use"):
        move(full, full, NOW, quietly)
    with Store(url) as other:
        move(full, other, NOW, quietly)
        with pytest.raises(InputError, match="not empty"):
            move(full, other, NOW, quietly, start_over=True)
    with full.writing() as connection:
        connection.execute(source_leases.update().values(lease_until=time.time() + 60))
    with (
        Store(f"sqlite:///{tmp_path / 'another.db'}") as other,
        pytest.raises(InputError, match="another process is using"),
    ):
        move(full, other, NOW, quietly)


def fill_items(store: Store, count: int) -> None:
    with store.writing() as connection:
        connection.execute(
            insert(sources).values(
                {c.name: value_for(c, 1) for c in sources.c if c.name != "pipeline_template_id"}
            )
        )
        changes = tuple(
            ItemChange(
                "new", Item(f"id {n}", title=f"title {n}", content="text " * 50), key, key, (), b"c" * 24, NOW
            )
            for n in range(count)
            for key in (n.to_bytes(16, "big"),)
        )
        write_items(connection, [(1, changes, NOW)])


@pytest.mark.slow
def test_killed_in_the_middle_it_is_run_again(store: Store, other_url: str, tmp_path: Path) -> None:
    fill_items(store, 40_000)  # so many that the kill comes before the end
    headwater = Headwater(tmp_path, store.url.render_as_string(hide_password=False))
    process = headwater.start("migrate-to", other_url)
    deadline = time.monotonic() + 60
    with Store(other_url) as other:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                with other.reading() as connection:
                    mark = get_setting(connection, "copying")
            except HeadwaterError:  # its tables are being made
                continue
            if mark and mark["done"].get("items", {}).get("rows", 0) > 0:
                break
    process.kill()
    process.communicate(timeout=60)
    with Store(other_url) as other, other.reading() as connection:
        assert revision(connection) != HEAD
    out = headwater.ok("migrate-to", other_url)
    assert out.startswith("Stop every `headwater serve`, `collect` and `worker` first")
    assert (found := re.search(r"an interrupted move had copied (\d+) rows", out))
    assert 0 < int(found[1]) < 80_000
    rows = everything(store)
    assert len(rows["items"]) == 40_000
    assert f"\n{sum(map(len, rows.values()))} rows are in " in out
    with Store.open(other_url) as other:
        assert everything(other) == rows


@pytest.mark.slow
def test_after_the_move_nothing_comes_back_as_new(
    database_url: str, other_url: str, tmp_path: Path, origin: Origin
) -> None:
    feed = "".join(
        f"<item><guid>{n}</guid><title>News {n}</title><link>http://x.example/{n}</link></item>"
        for n in range(30)
    )
    origin.route("/feed", body=f"<rss version='2.0'><channel><title>t</title>{feed}</channel></rss>")
    headwater = Headwater(tmp_path, database_url)
    headwater.ok("source", "add", origin.url("/feed"))
    moved = headwater.ok("migrate-to", other_url)
    assert re.search(r"A collector seems to be running: the last visit was \d+ s ago\.", moved)
    backup = tmp_path / "b.zst"
    headwater.ok("backup", str(backup))
    restored = f"sqlite:///{tmp_path / 'restored.db'}"
    headwater.ok("restore", str(backup), HEADWATER_DATABASE_URL=restored)
    for url in (other_url, restored):
        report = headwater.json("collect", "--source", "1", HEADWATER_DATABASE_URL=url)
        assert report["items_new"] == 0
        assert len(headwater.json("items", "--limit", "100", HEADWATER_DATABASE_URL=url)) == 30
        assert (
            len(headwater.json("items", "--search", "news", "--limit", "100", HEADWATER_DATABASE_URL=url))
            == 30
        )


def test_move_warns_of_collectors_that_seem_to_run(
    database_url: str, other_url: str, tmp_path: Path, origin: Origin
) -> None:
    origin.route("/feed", body="<rss version='2.0'><channel><title>t</title></channel></rss>")
    headwater = Headwater(tmp_path, database_url)
    headwater.ok("source", "add", origin.url("/feed"))
    out = headwater.ok("migrate-to", other_url)
    first, second, *_ = out.splitlines()
    assert first.startswith("Stop every `headwater serve`, `collect` and `worker` first")
    assert second.startswith("A collector seems to be running: the last visit was ")
    with Store.open(other_url) as other, other.writing() as connection:
        connection.exec_driver_sql("UPDATE collection_records SET started_at = 1, finished_at = 2")
    quiet = headwater.ok("migrate-to", f"sqlite:///{tmp_path / 'third.db'}", HEADWATER_DATABASE_URL=other_url)
    assert quiet.startswith(first) and "seems to be running" not in quiet
