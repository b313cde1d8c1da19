"""Many items from SQLite to PostgreSQL and into a backup: how long it takes, and that nothing is missing.

python -m benchmarks.moving [ITEMS]
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import insert
from tests.databases import PrivatePostgres
from tests.rows import value_for

from benchmarks.verdict import Verdict
from headwater.store.backup import restore_backup, write_backup
from headwater.store.bulk import insert_rows
from headwater.store.copying import copied_tables, count_rows, set_last_position
from headwater.store.database import Store
from headwater.store.moving import move
from headwater.store.tables import items, seen_ids, sources

SOURCES = 1_000
PIECE = 10_000
NOW = 1_790_000_000.0
TEXT = "<p>" + "The quick brown fox jumps over the lazy dog, and the feed says so. " * 4 + "</p>"


def fill(store: Store, count: int) -> None:
    """`count` items of a thousand sources, each with the three ids by which it is recognised."""
    item_columns = (
        *("id", "source_id", "external_id", "id_hash", "url", "title", "content", "published_at", "item_at"),
        *("first_seen_at", "content_hash", "position", "changed_position"),
    )
    with store.writing() as connection:
        rows = [
            {column.name: value_for(column, n) for column in sources.c} | {"pipeline_template_id": None}
            for n in range(1, SOURCES + 1)
        ]
        connection.execute(insert(sources), rows)
        set_last_position(connection, count)
    for start in range(0, count, PIECE):
        numbers = range(start + 1, min(start + PIECE, count) + 1)
        with store.writing() as connection:
            new = [
                (
                    *(
                        n,
                        (n - 1) * SOURCES // count + 1,
                        f"tag:{n}",
                        n.to_bytes(16, "big"),
                        f"https://x.example/{n}",
                    ),
                    *(f"Item {n}", TEXT, NOW - n, NOW - n, NOW, b"c" * 24, n, n),
                )
                for n in numbers
            ]
            insert_rows(connection, items, item_columns, new)
            seen = [
                (
                    (n - 1) * SOURCES // count + 1,
                    kind + n.to_bytes(15, "big"),
                    n.to_bytes(16, "big"),
                    b"c" * 24,
                    NOW,
                )
                for n in numbers
                for kind in (b"i", b"p", b"t")
            ]
            insert_rows(
                connection,
                seen_ids,
                ("source_id", "id_hash", "item_hash", "content_hash", "first_seen_at"),
                seen,
            )


@contextmanager
def timed(what: str, rows: int) -> Iterator[None]:
    began, used = time.perf_counter(), time.process_time()
    yield
    took = time.perf_counter() - began
    print(
        f"{what:<28}{took:8.1f} s {time.process_time() - used:8.1f} s CPU {rows / took:10,.0f} rows/s",
        flush=True,
    )


def counts(store: Store) -> dict[str, int]:
    with store.reading() as connection:
        return {str(table.name): count_rows(connection, table) for table in copied_tables()}


def main() -> int:
    verdict = Verdict("moving")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000

    def quietly(done: int, total: int, note: str) -> None:
        pass

    with tempfile.TemporaryDirectory() as directory, PrivatePostgres() as server:
        with Store.open(f"sqlite:///{directory}/old.db") as old:
            with timed("filling SQLite", 4 * count):
                fill(old, count)
            expected = counts(old)
            rows = sum(expected.values())
            with Store(server.url) as new:
                with timed("SQLite to PostgreSQL", rows):
                    move(old, new, NOW, quietly)
                verdict.tell("rows missing after the move", rows - sum(counts(new).values()), "", most=0)
                assert counts(new) == expected
                path = Path(directory) / "backup.zst"
                with timed("backup of PostgreSQL", rows):
                    write_backup(new, path, NOW, quietly)
        with Store(f"sqlite:///{directory}/restored.db") as restored:
            with timed("restoring into SQLite", rows):
                restore_backup(restored, path, quietly, replace=False)
            verdict.tell(
                "rows missing after backup and restore", rows - sum(counts(restored).values()), "", most=0
            )
            assert counts(restored) == expected
        print(f"{rows:,} rows, {count:,} items; the backup has {path.stat().st_size / 1e6:,.0f} MB")
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())
