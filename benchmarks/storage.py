"""What an item and a visit take on disk, on SQLite and PostgreSQL: `python -m benchmarks.storage`.

Feeds of 20 blog posts are collected by the real engine, then visited again unchanged. Indexes, the memory of what was
seen and the search's own are part of it; the free space that a database keeps for itself is, too.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.databases import postgres_server

from benchmarks.engine.contenders import contender, headwater
from benchmarks.engine.databases import new_database
from benchmarks.engine.origin import feed_url, serving
from benchmarks.verdict import Verdict
from headwater.store.database import Store

ITEMS = 20
KINDS = ("SQLite", "PostgreSQL")
MOST_BYTES_OF_AN_ITEM = 8_000
MOST_BYTES_OF_A_VISIT = 600


def size(store: Store) -> int:
    """Bytes of the database as it stands on disk."""
    if not store.is_sqlite:
        with store.reading() as connection:
            return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())
    with store.writing() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(str(store.url.database)).stat().st_size


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--sources", type=int, default=1000)
    arguments.add_argument("--rounds", type=int, default=10, help="visits that find nothing, to each")
    options = arguments.parse_args()
    verdict = Verdict("storage")
    with (
        postgres_server() as server_url,
        tempfile.TemporaryDirectory() as directory,
        serving(options.sources, ITEMS) as port,
    ):
        urls = [feed_url(port, number, options.sources) for number in range(options.sources)]
        for kind in KINDS:
            with ExitStack() as stack:
                url = stack.enter_context(new_database(kind, Path(directory), server_url))
                store = stack.enter_context(Store.open(url))
                empty = size(store)
                there = stack.enter_context(contender(headwater, url, urls, 50))
                there.visit()
                full = size(store)
                for _ in range(options.rounds):
                    there.visit()
                visited = size(store)
            item = (full - empty) / options.sources / ITEMS
            visit = (visited - full) / options.sources / options.rounds
            verdict.tell(
                f"{kind}: an item, with its share of its source", item, " B", most=MOST_BYTES_OF_AN_ITEM
            )
            verdict.tell(f"{kind}: the record of a visit", visit, " B", most=MOST_BYTES_OF_A_VISIT)
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())
