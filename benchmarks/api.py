"""How long pages and lists take when much is stored, as a ratio to an empty database: `make bench-api`.

Both databases are filled with a fleet and its items by SQL, and every page and list is asked for in turns with the same
on an empty database. `--scale 1` is 100,000 sources and 5,000,000 items, which takes some gigabytes and a quarter of an
hour to fill; without it, a fiftieth of that. `--keep` leaves the databases in a folder and finds them there again.

It is the worst minute of an hour: the last one, when the visits of nearly an hour are not yet added up.
"""

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from sqlalchemy import Connection
from starlette.testclient import TestClient
from tests.databases import PrivatePostgres, kept_postgres_database, postgres_server

from benchmarks.engine.databases import new_database
from benchmarks.verdict import Verdict
from headwater.config import load_settings
from headwater.store.core.database import Store
from headwater.store.core.settings import get_setting, set_setting
from headwater.store.people.keys import add_key
from headwater.store.pipelines.templates import NewTemplate, add_template
from headwater.store.reading.cursors import create_cursor
from headwater.store.reading.items import ItemCount, count_all_items, note_item_count
from headwater.store.reading.outlets import Outlet, add_outlet
from headwater.store.reading.search import POSITION
from headwater.store.reading.selection import Selection
from headwater.store.reports.hours import HOUR, SLOT, Rolled, hour_of, roll_minutes, set_rolled
from headwater.web.app import create_app

SOURCES, ITEMS = 100_000, 5_000_000
ROUNDS = 11
SERIES = 3
TARGET_MILLISECONDS, TARGET_RATIO = 200.0, 5.0
DAYS = 60
HOURS = 24 * 365  # of visits added up, which stay for good
VISITS = 7  # of each source on record, one every four hours
CLOCK = "benchmark.now"
PATHS = (
    "/",
    "/live",
    "/sources",
    "/sources?search=source+77",
    "/sources?search=source",
    "/sources?search=not+there",
    "/sources?search=source+77&state=failing",
    "/sources?folder=Folder+7",
    "/sources?type=web.sitemap",
    "/sources?state=on_time",
    "/sources?state=due",
    "/sources?state=failing",
    "/sources?state=paused",
    "/sources?state=gone",
    "/sources?state=removed",
    "/sources?sort=name",
    "/sources?sort=-name",
    "/sources?sort=next",
    "/sources?sort=-next",
    "/sources?sort=last",
    "/sources?sort=-last",
    "/sources?sort=errors",
    "/sources?page=20",
    "/sources/add",
    "/sources/7",
    "/sources/7/what-if",
    "/items",
    "/items?search=word77",
    "/items?search=common",
    "/items?folder=Folder+7",
    "/items?source=7",
    "/items/7",
    "/pipelines",
    "/pipelines/new?example=webhook",
    "/pipelines/1",
    "/runs",
    "/runs/live",
    "/runs?status=failed",
    "/runs?template=2",
    "/runs?source=51",
    "/runs/7",
    "/runs/7/live",
    "/outlets",
    "/settings",
    "/outlets/all.xml",
    "/outlets/all.atom",
    "/outlets/one.json",
    "/api/collector/status?limit=50",
    "/api/collector/status",
    "/api/sources",
    "/api/sources?search=source+77",
    "/api/sources?search=source",
    "/api/sources?search=not+there",
    "/api/sources?folder=Folder+7",
    "/api/sources?type=web.sitemap",
    "/api/sources?state=on_time",
    "/api/sources?state=due",
    "/api/sources?state=failing",
    "/api/sources?state=paused",
    "/api/sources?state=gone",
    "/api/sources?state=removed",
    "/api/sources/7",
    "/api/sources/7/plan",
    "/api/sources/7/visits",
    "/api/items",
    "/api/items?full=true",
    "/api/items?search=word77",
    "/api/items?search=common",
    "/api/items?source_id=7",
    "/api/items?folder=Folder+7",
    "/api/items?folder=Unknown",
    "/api/items?type=web.sitemap",
    "/api/items?type=reddit",
    "/api/items?status=ANALYZED",
    "/api/items?outlet=one",
    "/api/items?until=2000-01-01T00:00:00Z",
    "/api/items/7",
    "/api/items/7/versions",
    "/api/raw-items",
    "/api/raw-items?source_id=7",
    "/api/raw-items?since=2100-01-01T00:00:00Z",
    "/api/raw-items/for-digest",
    "/api/raw-items/for-digest?limit=100",
    "/api/raw-items/stats",
    "/api/steps",
    "/api/templates",
    "/api/templates/1",
    "/api/runs",
    "/api/runs?status=failed",
    "/api/runs?template_id=1",
    "/api/runs?template_id=2",
    "/api/runs?source_id=7",
    "/api/runs?source_id=51",
    "/api/runs?since=2100-01-01T00:00:00Z",
    "/api/runs/7",
    "/api/cursors",
    "/api/cursors/all",
    "/api/cursors/all/items",
    "/api/cursors/changes/items",
    "/api/cursors/folder/items",
    "/api/cursors/words/items",
    "/api/outlets",
    "/api/outlets/one",
    "/api/types",
    "/api/types/rss",
    "/api/keys",
    "/api/settings",
    "/api/openapi.json",
    "/healthz",
    "/readyz",
    "/metrics",
)

_FILL = (
    # One in a hundred fails, one is paused, one was removed; one in thirty is a sitemap.
    """
    INSERT INTO sources (id, name, type, url, url_key, folder, is_deleted, schedule_enabled, last_error_kind,
        last_error, consecutive_failures, due_at, next_fetch_at, last_fetched_at, last_entry_at, plan_reason,
        policy_state, fetch_count, hit_count, lease_no, created_at, updated_at, pipeline_template_id)
    SELECT n, 'source ' || n, CASE n % 30 WHEN 0 THEN 'web.sitemap' ELSE 'rss.feed' END, 'https://' || n || '.example/',
        '//' || n || '.example', 'Folder ' || (n % 50), n % 100 = 3, n % 100 <> 2,
        CASE n % 100 WHEN 1 THEN 'timeout' END, CASE n % 100 WHEN 1 THEN 'it took too long' END,
        CASE n % 100 WHEN 1 THEN 2 ELSE 0 END,
        CASE WHEN n % 100 IN (2, 3) THEN NULL ELSE {now} - 60 + n * 7919 % 14400 END,
        {now} - 60 + n * 7919 % 14400, {now} - 14400 + n * 7919 % 14400, {now} - n % 100000,
        '{{"policy": "interval", "interval": 14400.0}}', {state}, 100, 20, 2, {now} - 86400.0 * 90, {now},
        CASE n % 20 WHEN 0 THEN 1 END
    FROM ({sources}) AS numbers
    """,
    """
    INSERT INTO items (id, source_id, external_id, id_hash, url, title, summary, published_at, item_at, first_seen_at,
        content_hash, position, changed_position, status)
    SELECT n, n % {source_count} + 1, 'id ' || n, {id_hash}, 'https://example.org/' || n,
        'Item ' || n || ' about word' || (n % 5000), 'A common summary of item ' || n,
        {now} - 600 - ({item_count} - n) * {step}, {now} - 600 - ({item_count} - n) * {step},
        {now} - ({item_count} - n) * {step}, {id_hash}, n, n, CASE n % 1000 WHEN 0 THEN 'ANALYZED' ELSE 'NEW' END
    FROM ({items}) AS numbers
    """,
    """
    INSERT INTO collection_records (source_id, lease_no, status, started_at, finished_at, items_found, items_new,
        requests, bytes_received, http_status)
    SELECT numbers.n, visits.n, CASE (numbers.n + visits.n) % 5 WHEN 0 THEN 'new' ELSE 'unchanged' END,
        {now} - 14400 * visits.n + numbers.n * 7919 % 14400 + numbers.n % 1000 / 1000.0,
        {now} - 14400 * visits.n + numbers.n * 7919 % 14400 + numbers.n % 1000 / 1000.0 + 1,
        20, CASE (numbers.n + visits.n) % 5 WHEN 0 THEN 2 ELSE 0 END, 1, 9000, 200
    FROM ({sources}) AS numbers CROSS JOIN ({visits}) AS visits ORDER BY 4
    """,
    """
    INSERT INTO collection_hours (hour_at, status, error_kind, visits, items_found, items_new, requests, bytes_received)
    SELECT {hour} - (n / 5 + 1) * 3600,
        CASE n % 5 WHEN 0 THEN 'new' WHEN 1 THEN 'unchanged' ELSE 'failed' END,
        CASE n % 5 WHEN 2 THEN 'timeout' WHEN 3 THEN 'http' WHEN 4 THEN 'parse' ELSE '' END,
        5000, 100000, 10000, 5000, 45000000 FROM ({hours}) AS numbers
    """,
    """
    INSERT INTO pipeline_executions (item_id, item_version, template_id, status, created_at, started_at, completed_at)
    SELECT n * 50, 1, CASE WHEN n % 1000 = 5 THEN 2 ELSE 1 END, CASE n % 100 WHEN 0 THEN 'failed' ELSE 'completed' END,
        {now} - ({run_count} - n) * {step} * 50, {now} - ({run_count} - n) * {step} * 50,
        {now} - ({run_count} - n) * {step} * 50 + n % 60
    FROM ({runs}) AS numbers
    """,
    """
    INSERT INTO pipeline_steps (execution_id, step_index, step_type, status, attempts, started_at, completed_at)
    SELECT id, 0, 'filter_content', status, 1, started_at, completed_at FROM pipeline_executions
    """,
)
_CLOCK = {
    True: "UPDATE item_clock SET last_position = {item_count}",
    False: "SELECT setval('item_positions', {item_count})",
}
_WORDS = {
    True: "INSERT INTO item_words (rowid, words) SELECT id, lower(title || ' ' || summary) FROM items",
    False: "INSERT INTO item_words SELECT id, to_tsvector('simple', lower(title || ' ' || summary)) FROM items",
}


def add_up_visits(connection: Connection, now: float) -> None:
    """As the upkeep would have left it: the hours added up when this one began, the minutes nearly one ago."""
    set_rolled(connection, Rolled(rolled_until=hour_of(now), final_until=hour_of(now) - 30 * 24 * HOUR), now)
    for at in (now - VISITS * 4 * HOUR, now - SLOT + 1):
        roll_minutes(connection, at)
    counted = count_all_items(connection)
    an_hour = int(counted.count / DAYS / 24)
    note_item_count(connection, ItemCount(counted.count - an_hour, counted.position - an_hour), now)


def numbers(store: Store, count: int) -> str:
    if not store.is_sqlite:
        return f"SELECT n FROM generate_series(1::bigint, {count}) AS s(n)"
    return (
        f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) SELECT n FROM s"
    )


def fill(store: Store, scale: float, now: float) -> None:
    source_count, item_count = max(100, int(SOURCES * scale)), max(1_000, int(ITEMS * scale))
    values = {
        "now": now,
        "hour": now // HOUR * HOUR,
        "step": DAYS * 86_400.0 / item_count,
        "source_count": source_count,
        "item_count": item_count,
        "id_hash": "CAST('id ' || n AS BLOB)" if store.is_sqlite else "convert_to('id ' || n, 'UTF8')",
        "state": "zeroblob(500)" if store.is_sqlite else "decode(repeat('00', 500), 'hex')",
        "sources": numbers(store, source_count),
        "items": numbers(store, item_count),
        "visits": numbers(store, VISITS),
        "hours": numbers(store, HOURS * 5),
        "runs": numbers(store, item_count // 50),
        "run_count": item_count // 50,
    }
    with store.writing() as connection:
        steps = (
            {
                "step_type": "filter_content",
                "is_critical": True,
                "config": {},
                "timeout_seconds": None,
                "retries": 0,
            },
        )
        for name in ("one", "two"):
            add_template(connection, NewTemplate(name, steps), now)
        set_setting(connection, POSITION, item_count, now)
    given = (*_FILL, _CLOCK[store.is_sqlite], _WORDS[store.is_sqlite])
    for statement in (each.format(**values) for each in given):
        with store.writing() as connection:
            connection.exec_driver_sql(statement if store.is_sqlite else statement.replace("%", "%%"))
    with store.writing() as connection:
        add_outlet(connection, Outlet("all", "All"), now)
        add_outlet(connection, Outlet("one", "One", Selection(folders=("Folder 7",))), now)
        create_cursor(connection, "all", now=now)
        create_cursor(connection, "changes", now=now, when="changed")
        create_cursor(connection, "folder", now=now, selection=Selection(folders=("Folder 7",)))
        create_cursor(connection, "words", now=now, selection=Selection(search="word77"))
        add_up_visits(connection, now)
    if not store.is_sqlite:  # as PostgreSQL's autovacuum does in time; SQLite has no such service
        with store.engine.connect() as plain, plain.execution_options(isolation_level="AUTOCOMMIT") as vacuum:
            vacuum.exec_driver_sql("VACUUM ANALYZE")
    with store.writing() as connection:
        set_setting(connection, CLOCK, now, now)


@contextmanager
def two_stores(kind: str, keep: Path | None) -> Iterator[tuple[Store, Store]]:
    """An empty database and one to be filled, or that was filled and kept."""
    with ExitStack() as opened:
        if keep is None:
            directory = Path(opened.enter_context(tempfile.TemporaryDirectory()))
            server_url = opened.enter_context(postgres_server()) if kind == "PostgreSQL" else ""
            urls = [opened.enter_context(new_database(kind, directory, server_url)) for _ in range(2)]
        elif kind == "SQLite":
            urls = [f"sqlite:///{keep / name}.db" for name in ("empty", "full")]
        else:
            server = opened.enter_context(PrivatePostgres(keep))
            urls = [kept_postgres_database(server.url, f"benchmark_{name}") for name in ("empty", "full")]
        empty, full = (opened.enter_context(Store.open(url)) for url in urls)
        yield empty, full


def prepare(full: Store, kind: str, scale: float) -> float:
    """The time at which `full` is full: it is filled, unless it was kept."""
    with full.reading() as connection:
        kept = get_setting(connection, CLOCK)
    if kept is not None:
        return float(kept)
    now = time.time() // HOUR * HOUR + HOUR - 60
    started = time.perf_counter()
    fill(full, scale, now)
    print(f"{kind}: filled in {time.perf_counter() - started:.0f} s", flush=True)
    return now


def clock_from(now: float) -> Callable[[], float]:
    """A clock that goes on from then: what is remembered for a while is asked for again, as by a reader."""
    started = time.monotonic()
    return lambda: now + time.monotonic() - started


def client_of(store: Store, clock: Callable[[], float]) -> TestClient:
    settings = load_settings(directory=Path("/nonexistent"), environment={})
    with store.writing() as connection:
        _, secret = add_key(connection, name="bench", scopes=["admin"], now=clock())
    return TestClient(
        create_app(store, settings, clock=clock),
        base_url="http://127.0.0.1:8626",
        headers={"Authorization": f"Bearer {secret}"},
    )


def measure(client: TestClient, path: str) -> float:
    started = time.perf_counter()
    answer = client.get(path)
    taken = time.perf_counter() - started
    assert answer.status_code in (200, 404), (path, answer.text[:500])
    return taken * 1000 if answer.status_code == 200 else 0.0


def compare_path(empty: TestClient, full: TestClient, path: str) -> tuple[float, float, float, bool]:
    """The medians of both, how many times the one is the other, and whether that is good.

    What is not is measured again, at most SERIES times: other work on the machine can only make it look slower.
    """
    for _ in range(SERIES):
        taken = [(measure(empty, path), measure(full, path)) for _ in range(ROUNDS)]
        without, with_all = (median(column) for column in zip(*taken, strict=True))
        # What there is none of on the empty database answers 404 there and has no ratio.
        ratio = with_all / without if without else 0.0
        if met := with_all <= TARGET_MILLISECONDS and ratio <= TARGET_RATIO:
            break
    return without, with_all, ratio, met


def compare(kind: str, scale: float, keep: Path | None, only: str, verdict: Verdict) -> None:
    """Prints a line a path, and tells the slowest and the one that grew most."""
    slowest, most_grown = 0.0, 0.0
    with two_stores(kind, keep) as stores, ExitStack() as opened:
        clock = clock_from(prepare(stores[1], kind, scale))
        empty, full = (opened.enter_context(client_of(store, clock)) for store in stores)
        for path in PATHS:
            if only not in path:
                continue
            without, with_all, ratio, met = compare_path(empty, full, path)
            word = "" if met else "  MISSED"
            print(
                f"  {path:45} {without:7.1f} ms empty {with_all:7.1f} ms full {ratio:6.1f} x{word}",
                flush=True,
            )
            slowest, most_grown = max(slowest, with_all), max(most_grown, ratio)
    verdict.tell(f"{kind}: the slowest page or list", slowest, " ms", most=TARGET_MILLISECONDS)
    verdict.tell(f"{kind}: at most so many times an empty database's", most_grown, "×", most=TARGET_RATIO)


def main(arguments: list[str]) -> int:
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.02, help="1 is 100,000 sources and 5,000,000 items")
    parser.add_argument("--database", choices=["SQLite", "PostgreSQL"], help="only this one")
    parser.add_argument("--only", default="", help="only paths that contain this")
    parser.add_argument("--keep", type=Path, help="a folder in which the databases stay for another time")
    chosen = parser.parse_args(arguments)
    print(f"{SOURCES * chosen.scale:,.0f} sources, {ITEMS * chosen.scale:,.0f} items; median of {ROUNDS}")
    verdict = Verdict("api")
    for kind in [chosen.database] if chosen.database else ["SQLite", "PostgreSQL"]:
        compare(kind, chosen.scale, chosen.keep, chosen.only, verdict)
    return verdict.exit_code()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
