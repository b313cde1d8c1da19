"""What a source, an item and a visit take on disk, on SQLite and PostgreSQL: `python -m benchmarks.storage`.

Feeds of 20 blog posts are collected by the real engine, then visited again unchanged. Indexes, the memory of what was
seen and the search's own are part of it; the free space that a database keeps for itself is, too.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.databases import postgres_server

from benchmarks.engine.contenders import contender, headwater
from benchmarks.engine.databases import new_database
from benchmarks.engine.origin import feed_url, serving
from benchmarks.engine.scale import fill
from benchmarks.verdict import Verdict
from headwater.store.core.database import Store
from headwater.store.reading.search import index_all

ITEMS = 20
KINDS = ("SQLite", "PostgreSQL")
# Visits also leave dead rows of sources behind, which PostgreSQL uses again: they are not part of what is kept.
RECORDS = "pg_total_relation_size('collection_records')"
MOST_BYTES_OF_A_SOURCE = 3_000
MOST_BYTES_OF_AN_ITEM = 8_000
MOST_BYTES_OF_A_VISIT = 600


def size(store: Store, of: str = "pg_database_size(current_database())") -> int:
    """Bytes of the database as it stands on disk; on PostgreSQL, of a part of it where one is named."""
    with store.reading() as connection:
        if not store.is_sqlite:
            return int(connection.exec_driver_sql(f"SELECT {of}").scalar_one())
        pages, each = (
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size")
        )
    return int(pages * each)


def _source_bytes(kind: str, directory: Path, server_url: str, count: int) -> float:
    with new_database(kind, directory, server_url) as url, Store.open(url) as store:
        empty = size(store)
        fill(store, count, url="'http://host' || n || '.example/feed'", etag="'\"0123456789abcdef\"'")
        return (size(store) - empty) / count


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--sources", type=int, default=1000)
    arguments.add_argument("--fleet", type=int, default=20_000, help="sources, to see what one takes")
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
                there = stack.enter_context(contender(headwater, url, f"{urls[0]}?warm-up", 50))
                there.visit(urls)
                index_all(store, time.time())
                full = size(store)
                before = size(store, RECORDS)
                for _ in range(options.rounds):
                    there.visit()
                after = size(store, RECORDS)
            source = _source_bytes(kind, Path(directory), server_url, options.fleet)
            item = (full - empty) / options.sources / ITEMS
            visit = (after - before) / options.sources / options.rounds
            verdict.tell(
                f"{kind}: a source, with what was learnt of it", source, " B", most=MOST_BYTES_OF_A_SOURCE
            )
            verdict.tell(
                f"{kind}: an item, with its share of its source", item, " B", most=MOST_BYTES_OF_AN_ITEM
            )
            verdict.tell(f"{kind}: the record of a visit", visit, " B", most=MOST_BYTES_OF_A_VISIT)
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())
