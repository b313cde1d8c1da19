"""Many items backed up, destroyed, restored and moved: how long it takes, and that nothing is missing or comes back.

    collected (SQLite) → backup → destroyed → restored → moved to PostgreSQL → backup → destroyed → restored

all by the commands that people give, then every source is visited once more on both databases: each feed shows all that
it showed and one item more, and nothing but that one may be new.

python -m benchmarks.moving [ITEMS]
"""

import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

from tests.databases import PrivatePostgres, postgres_database
from tests.origin import Answer, Origin, Received

from benchmarks.verdict import Verdict
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.collecting.sources import request_refresh
from headwater.store.core.database import Store
from headwater.store.transfer.copying import copied_tables, stream_rows

SOURCES = 1_000
NOW = 1_790_000_000.0
TEXT = "<p>" + "The quick brown fox jumps over the lazy dog, and the feed says so. " * 4 + "</p>"

Fingerprint = dict[str, tuple[int, str]]  # by table: its rows, and their sum


class Publisher:
    """A thousand feeds, made when they are asked for; `shown` items each."""

    def __init__(self, shown: int) -> None:
        self.shown = shown

    def answer(self, request: Received) -> Answer:
        feed = int(request.path.rpartition("/")[2])
        items = "".join(
            f"<item><title>Item {n} of {feed}</title><link>https://site{feed}.example/{n}</link>"
            f"<guid isPermaLink='false'>tag:{feed}-{n}</guid><pubDate>{formatdate(NOW - 3600 * n)}</pubDate>"
            f"<description><![CDATA[{TEXT} {feed} {n}]]></description></item>"
            for n in range(self.shown)
        )
        return Answer(f"<rss version='2.0'><channel><title>Feed {feed}</title>{items}</channel></rss>")


class Commands:
    """`headwater` on one database, each command timed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def run(self, what: str, url: str, *arguments: str) -> Any:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._directory),
            "TMPDIR": tempfile.gettempdir(),
            "HEADWATER_DATABASE_URL": url,
            "HEADWATER_ALLOW_HOSTS": "127.0.0.1",
            "HEADWATER_HOST_SPACING_SECONDS": "0",
            "HEADWATER_HOST_CONCURRENCY": "20",
        }
        began, spent = time.perf_counter(), _spent()
        done = subprocess.run(
            [sys.executable, "-m", "headwater", *arguments, "--json"],
            cwd=self._directory,
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )
        took = time.perf_counter() - began
        print(f"{what:<34}{took:8.1f} s {_spent() - spent:8.1f} s CPU", flush=True)
        return json.loads(done.stdout)


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def add_sources(url: str, base: str) -> None:
    with Store.open(url) as store, store.writing() as connection:
        for number in range(SOURCES):
            wanted = read_new_source(f"{base}/{number}", "rss.feed", {}, f"Feed {number}")
            add_unvisited(connection, wanted, time.time())


def refresh_all(url: str) -> None:
    with Store.open(url) as store, store.writing() as connection:
        request_refresh(connection, None, time.time())


def fingerprint(url: str) -> Fingerprint:
    """What a database holds, row by row: the same on either kind for the same rows, each there once."""
    found = {}
    with Store.open(url) as store, store.reading() as connection:
        for table in copied_tables():
            digest, count = hashlib.sha256(), 0
            for rows in stream_rows(connection, table):
                count += len(rows)
                for row in rows:
                    digest.update(repr(row).encode())
            found[str(table.name)] = count, digest.hexdigest()
    return found


def different(expected: Fingerprint, found: Fingerprint) -> int:
    """How many rows are missing or too many; at least 1 where they are other rows."""
    missing = sum(abs(expected[name][0] - found[name][0]) for name in expected)
    return missing or sum(expected[name] != found[name] for name in expected)


def main() -> int:
    verdict = Verdict("moving")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    publisher = Publisher(count // SOURCES)
    with (
        tempfile.TemporaryDirectory() as directory,
        PrivatePostgres() as server,
        postgres_database(server.url, "moved") as moved,
        Origin() as origin,
    ):
        here = Path(directory)
        commands = Commands(here)
        origin.otherwise(publisher.answer)
        file = here / "headwater.db"
        sqlite = f"sqlite:///{file}"
        add_sources(sqlite, origin.url("/feed"))
        collected = commands.run("collecting into SQLite", sqlite, "collect")
        verdict.tell("items not collected", count - collected["items_new"], "", most=0)
        expected = fingerprint(sqlite)

        def back(url: str, name: str) -> Path:
            path = here / f"{name}.zst"
            commands.run(f"backup of {name}", url, "backup", str(path))
            print(f"{'':34}{path.stat().st_size / 1e6:8.1f} MB")
            return path

        backup = back(sqlite, "SQLite")
        for each in here.glob("headwater.db*"):
            each.unlink()
        commands.run("restoring SQLite", sqlite, "restore", str(backup))
        verdict.tell("rows wrong: SQLite restored", different(expected, fingerprint(sqlite)), "", most=0)
        commands.run("moving from SQLite to PostgreSQL", sqlite, "migrate-to", moved)
        verdict.tell("rows wrong: moved", different(expected, fingerprint(moved)), "", most=0)
        backup = back(moved, "PostgreSQL")
        with postgres_database(server.url, "moved"):  # which drops the one that was
            commands.run("restoring PostgreSQL", moved, "restore", str(backup))
            verdict.tell(
                "rows wrong: PostgreSQL restored", different(expected, fingerprint(moved)), "", most=0
            )
            publisher.shown += 1
            for name, url in (("SQLite", sqlite), ("PostgreSQL", moved)):
                refresh_all(url)
                again = commands.run(f"visiting all again on {name}", url, "collect")
                wrong = abs(again["items_new"] - SOURCES)
                verdict.tell(f"items back as new, or not seen: {name}", wrong, "", most=0)
        print(f"{sum(rows for rows, _ in expected.values()):,} rows, {count:,} items")
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())
