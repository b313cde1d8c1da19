"""What reading costs with many people, on SQLite and PostgreSQL: `python -m benchmarks.reading`.

Sources, items, users and subscriptions are made by SQL. Each person subscribes to 200 sources in ten folders and has
read all but the ten newest items of each. Every figure is the median over several people, and is compared with the same
database when one person uses it. Times are CPU time of this process and of the database, so that other work on the
machine does not count.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from sqlalchemy import Connection
from tests.databases import postgres_server

from benchmarks.engine.databases import new_database, server_clock
from benchmarks.verdict import Verdict
from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.people.entries import EntryFilter, list_places, read_entries
from headwater.store.people.reading import mark_all_read, mark_read, unread_counts
from headwater.store.reading.items import ItemChange, write_items

KINDS = ("SQLite", "PostgreSQL")
SUBSCRIPTIONS = 200
FOLDERS = 10
UNREAD = 10  # items of each subscription
MOST_MILLISECONDS = 50.0
MOST_TIMES_ONE_USER = 3.0
MOST_TIMES_WITHOUT_USERS = 1.05
IDS = 10_000
VISITS, NEW_ITEMS = 100, 5  # in a batch that is settled
BASE = 1_700_000_000.0


def numbers(store: Store, count: int) -> str:
    """A table `numbers` with the column n, from 1 to `count`."""
    if store.is_sqlite:
        return (
            f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) "
        )
    return f"WITH numbers(n) AS (SELECT generate_series(1, {count})) "


def runner(store: Store, connection: Connection) -> Callable[[str], object]:
    """Runs a statement as it is, in which PostgreSQL's driver would take a % for a parameter."""
    return lambda text: connection.exec_driver_sql(text if store.is_sqlite else text.replace("%", "%%"))


def vacuum(store: Store) -> None:
    if not store.is_sqlite:
        with (
            store.engine.connect() as plain,
            plain.execution_options(isolation_level="AUTOCOMMIT") as connection,
        ):
            connection.exec_driver_sql("VACUUM ANALYZE")


def fill_items(store: Store, sources: int, items: int) -> None:
    """Sources that all get their items in turn."""
    key = "CAST(n AS BLOB)" if store.is_sqlite else "int8send(n)"
    with store.writing() as connection:
        run = runner(store, connection)
        run(
            f"INSERT INTO sources (name, type, url, url_key, created_at, updated_at) {numbers(store, sources)}"
            f"SELECT 'Source ' || n, 'rss.feed', 'https://' || n || '.example/', n || '.example', {BASE}, {BASE}"
            " FROM numbers"
        )
        run(
            "INSERT INTO items (source_id, external_id, id_hash, title, item_at, first_seen_at, content_hash,"
            f" position, changed_position) {numbers(store, items)}"
            f"SELECT 1 + (n - 1) % {sources}, CAST(n AS TEXT), {key}, 'Item ' || n, {BASE} + n * 0.1 - n % 997,"
            f" {BASE} + n * 0.1, {key}, n, n FROM numbers"
        )
        run(
            "INSERT INTO source_counts (source_id, stored, last_position, last_stored_at)"
            " SELECT source_id, count(*), max(position), max(first_seen_at) FROM items GROUP BY source_id"
        )
        if store.is_sqlite:
            run(
                f"INSERT INTO item_clock VALUES (1, {items}) ON CONFLICT (id) DO UPDATE SET last_position = {items}"
            )
        else:
            run(f"SELECT setval('item_positions', {items})")
    vacuum(store)


def add_users(store: Store, first: int, last: int, sources: int, items: int) -> None:
    """The users with these numbers, each with folders and subscriptions."""
    level = items - UNREAD * sources
    with store.writing() as connection:
        run = runner(store, connection)
        wanted = f"WHERE n BETWEEN {first} AND {last}"
        run(
            f"INSERT INTO users (id, name, created_at) {numbers(store, last)}"
            f"SELECT n, 'bench' || n, {BASE} FROM numbers {wanted}"
        )
        run(
            f"INSERT INTO folders (id, user_id, name, position) {numbers(store, last * FOLDERS)}"
            f"SELECT n, 1 + (n - 1) / {FOLDERS}, 'Folder ' || n, n FROM numbers"
            f" WHERE 1 + (n - 1) / {FOLDERS} BETWEEN {first} AND {last}"
        )
        user, place = f"(1 + (n - 1) / {SUBSCRIPTIONS})", f"((n - 1) % {SUBSCRIPTIONS})"
        source = f"(1 + ({user} * 7919 + {place} * {max(sources // SUBSCRIPTIONS, 1)}) % {sources})"
        run(
            "INSERT INTO subscriptions (user_id, source_id, folder_id, level, settled, created_at)"
            f" {numbers(store, last * SUBSCRIPTIONS)}"
            f"SELECT {user}, {source}, ({user} - 1) * {FOLDERS} + 1 + {place} % {FOLDERS}, {level},"
            f" c.stored - {UNREAD}, {BASE} FROM numbers JOIN source_counts c ON c.source_id = {source}"
            f" WHERE {user} BETWEEN {first} AND {last}"
        )
    vacuum(store)


def page_of_unread(connection: Connection, user_id: int) -> int:
    places = list_places(connection, user_id, EntryFilter(is_read=False), limit=50)
    return len(read_entries(connection, user_id, [place.id for place in places[:50]], longest_text=1_000))


def ids_of_stream(connection: Connection, user_id: int) -> int:
    return len(list_places(connection, user_id, EntryFilter(), limit=IDS))


def mark_folder(connection: Connection, user_id: int) -> int:
    """Mark a folder as read up to a time, so that most becomes read and some stays."""
    chosen = [
        each.source_id for each in unread_counts(connection, user_id) if (each.folder_id or 0) % FOLDERS == 1
    ]
    return mark_all_read(connection, user_id, chosen, until=time.time())


CALLS: dict[str, tuple[Callable[[Connection, int], object], bool]] = {
    "unread counts": (unread_counts, False),
    "page of 50 unread": (page_of_unread, False),
    f"stream/items/ids, n={IDS:,}": (ids_of_stream, False),
    "mark a folder read": (mark_folder, True),
}


def measure(store: Store, users: list[int], clock: Callable[[], float], rounds: int = 3) -> dict[str, float]:
    """Milliseconds of each call: the median over the users."""
    found = {}
    for name, (call, writes) in CALLS.items():
        took = []
        for user_id in users:
            best = float("inf")
            for _ in range(1 if writes else rounds):
                with store.writing() if writes else store.reading() as connection:
                    begun = clock()
                    call(connection, user_id)
                    best = min(best, clock() - begun)
            took.append(best)
        found[name] = statistics.median(took) * 1000
    return found


def settle_milliseconds(
    store: Store, sources: int, mark: str, clock: Callable[[], float], rounds: int = 10
) -> float:
    """What it takes to store the new items of a batch of visits."""
    took = []
    for number in range(rounds):
        visits = []
        for source_id in range(1, min(VISITS, sources) + 1):
            keys = [f"{mark} {number} {source_id} {each}".encode() for each in range(NEW_ITEMS)]
            changes = tuple(
                ItemChange("new", Item(key.decode(), title="New"), key, key, (), b"hash", BASE)
                for key in keys
            )
            visits.append((source_id, changes, time.time()))
        begun = clock()
        with store.writing() as connection:
            write_items(connection, visits)
        took.append(clock() - begun)
    return min(took) * 1000


def bytes_of_a_read_item(store: Store, users: range, sources: int) -> float:
    """What one item takes that a person read on its own: rows of exceptions and their index."""

    def size() -> int:
        with store.reading() as connection:
            if store.is_sqlite:
                pages, free = (
                    connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                    for name in ("page_count", "freelist_count")
                )
                return int((pages - free) * connection.exec_driver_sql("PRAGMA page_size").scalar_one())
            query = "SELECT pg_total_relation_size('read_exceptions')"
            return int(connection.exec_driver_sql(query).scalar_one())

    before, marked = size(), 0
    for user_id in users:
        with store.writing() as connection:
            places = list_places(connection, user_id, EntryFilter(is_read=False), limit=500)
            marked += len(mark_read(connection, user_id, [place.id for place in places], True))
    return (size() - before) / max(marked, 1)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--sources", type=int, default=100_000)
    arguments.add_argument("--items", type=int, default=5_000_000)
    arguments.add_argument("--users", type=int, default=1_000)
    arguments.add_argument("--only", choices=KINDS)
    options = arguments.parse_args()
    verdict = Verdict("reading")
    rng = Random(1)
    with postgres_server() as server_url, tempfile.TemporaryDirectory() as directory:
        for kind in KINDS if options.only is None else (options.only,):
            of_server = server_clock(kind, server_url)

            def clock(of_server: Callable[[], float] = of_server) -> float:
                return time.process_time() + of_server()

            with new_database(kind, Path(directory), server_url) as url, Store.open(url) as store:
                with store.writing() as connection:
                    connection.exec_driver_sql("DELETE FROM users")
                fill_items(store, options.sources, options.items)
                without = settle_milliseconds(store, options.sources, "without", clock)
                add_users(store, 1, 1, options.sources, options.items)
                alone = measure(store, [1], clock)
                add_users(store, 2, options.users, options.sources, options.items)
                sample = sorted(rng.sample(range(2, options.users + 1), min(20, options.users - 1)))
                for name, milliseconds in measure(store, sample, clock).items():
                    verdict.tell(f"{kind}: {name}", milliseconds, " ms", most=MOST_MILLISECONDS)
                    ratio = milliseconds / alone[name]
                    verdict.tell(f"{kind}: {name}, to one user", ratio, " times", most=MOST_TIMES_ONE_USER)
                with_users = settle_milliseconds(store, options.sources, "with", clock)
                size = bytes_of_a_read_item(store, range(2, min(60, options.users)), options.sources)
                with store.writing() as connection:
                    connection.exec_driver_sql("DELETE FROM users")
                without = (without + settle_milliseconds(store, options.sources, "again", clock)) / 2
                verdict.tell(
                    f"{kind}: storing new items, to no users",
                    with_users / without,
                    " times",
                    most=MOST_TIMES_WITHOUT_USERS,
                )
                verdict.tell(f"{kind}: an item read on its own", size, " bytes")
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())
