"""The nine functions against real databases, and what they do when a database fails them."""

import inspect
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from headwater import smart_scheduler
from headwater.model import Plan
from headwater.smart_scheduler import (
    get_due_sources,
    get_recent_entries,
    get_scheduler_stats,
    get_source_stats,
    update_source_stats,
)
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.sources.editing import act_on_source
from headwater.store.collecting.queue import settle_batch
from headwater.store.core.database import Store
from tests.databases import postgres_database
from tests.store.collecting.test_queue import claim, done

NOW = 1_750_000_000
REQUIRED_COLUMNS = {
    "source_id",
    "source_type",
    "frequency_type",
    "cadence",
    "avg_publish_hour",
    "std_publish_hour",
    "next_due_at",
    "last_check_at",
    "last_article_at",
    "fail_count",
    "backoff_until",
    "last_error",
    "check_count",
    "hit_count",
    "created_at",
    "updated_at",
}
TABLES = (
    """CREATE TABLE IF NOT EXISTS source_stats (
    source_id TEXT PRIMARY KEY,
    source_type TEXT NOT NULL DEFAULT 'rss',
    frequency_type TEXT DEFAULT 'daily',
    cadence TEXT DEFAULT 'P2',
    avg_publish_hour REAL,
    std_publish_hour REAL,
    next_due_at INTEGER DEFAULT 0,
    last_check_at INTEGER DEFAULT 0,
    last_article_at INTEGER DEFAULT 0,
    fail_count INTEGER DEFAULT 0,
    backoff_until INTEGER DEFAULT 0,
    last_error TEXT,
    check_count INTEGER DEFAULT 0,
    hit_count INTEGER DEFAULT 0,
    created_at INTEGER,
    updated_at INTEGER
)""",
    "CREATE INDEX IF NOT EXISTS idx_source_stats_next_due ON source_stats(next_due_at)",
    "CREATE INDEX IF NOT EXISTS idx_source_stats_cadence ON source_stats(cadence)",
    "CREATE INDEX IF NOT EXISTS idx_source_stats_type ON source_stats(source_type)",
    "CREATE INDEX IF NOT EXISTS idx_source_stats_type_due ON source_stats(source_type, next_due_at)",
    "CREATE TABLE IF NOT EXISTS items (source_id INTEGER, published_at DOUBLE PRECISION,"
    " first_seen_at DOUBLE PRECISION)",
)


def create_tables(conn: Any) -> None:
    for statement in TABLES:
        conn.execute(statement)
    conn.commit()


Connect = Callable[[], Any]


@pytest.fixture(scope="session")
def postgres_stats_url(postgres_url: str, worker_name: str) -> Iterator[str]:
    with postgres_database(postgres_url, f"{worker_name}_stats") as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres", "sqlalchemy"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connect]:
    """Opens connections of each kind to one empty database."""
    opened: list[Any] = []
    engine = None
    if request.param == "postgres":
        import psycopg

        url = request.getfixturevalue("postgres_stats_url")
        opener: Connect = lambda: psycopg.connect(url)  # noqa: E731
        with psycopg.connect(url) as server:
            server.execute("DROP TABLE IF EXISTS source_stats, items")
            create_tables(server)
    else:
        path = tmp_path / "stats.db"
        with sqlite3.connect(path) as conn:
            create_tables(conn)
        conn.close()
        if request.param == "sqlite":
            opener = lambda: sqlite3.connect(path, timeout=30, check_same_thread=False)  # noqa: E731
        else:
            engine = sqlalchemy.create_engine(f"sqlite:///{path}")
            opener = engine.connect

    def open_one() -> Any:
        opened.append(opener())
        return opened[-1]

    yield open_one
    for conn in opened:
        conn.close()
    if engine is not None:
        engine.dispose()


@pytest.fixture
def conn(connect: Connect) -> Any:
    return connect()


def add_items(conn: Any, source_id: int, times: list[float | None]) -> None:
    for at in times:
        value = "NULL" if at is None else repr(at)
        statement = f"INSERT INTO items VALUES ({source_id}, {value}, {NOW})"
        conn.execute(sqlalchemy.text(statement) if isinstance(conn, sqlalchemy.Connection) else statement)
    conn.commit()


def run(conn: Any, statement: str) -> None:
    conn.execute(sqlalchemy.text(statement) if isinstance(conn, sqlalchemy.Connection) else statement)
    conn.commit()


def test_nine_functions_are_importable_together() -> None:
    names = {
        "classify_update_frequency",
        "calculate_publish_time_stats",
        "calculate_next_check_time",
        "calculate_backoff",
        "get_source_stats",
        "get_recent_entries",
        "update_source_stats",
        "get_due_sources",
        "get_scheduler_stats",
    }
    assert names <= set(smart_scheduler.__all__)
    assert all(callable(getattr(smart_scheduler, name)) for name in names)


# As the document writes them; what we add comes after, by name only.
SIGNATURES = {
    "classify_update_frequency": "entries",
    "calculate_publish_time_stats": "entries",
    "calculate_next_check_time": (
        "cadence, frequency_type='daily', avg_publish_hour=None, std_publish_hour=None, last_article_at=0"
    ),
    "calculate_backoff": "fail_count, error_message=''",
    "get_source_stats": "conn, source_id",
    "get_recent_entries": "conn, source_id, source_type='rss', limit=30",
    "update_source_stats": "conn, source_id, source_type='rss', has_new_entries=False, error_message=''",
    "get_due_sources": "conn, now, source_type=None, limit=20",
    "get_scheduler_stats": "conn, source_type=None",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_nine_functions_take_what_the_document_says(name: str) -> None:
    taken = inspect.signature(getattr(smart_scheduler, name)).parameters.values()
    shown = [
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"
        for parameter in taken
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    assert ", ".join(shown) == SIGNATURES[name]
    ours = [parameter for parameter in taken if parameter.kind is parameter.KEYWORD_ONLY]
    assert all(parameter.default is not parameter.empty for parameter in ours)


def test_a_row_lives_through_news_silence_and_failure(conn: Any) -> None:
    add_items(conn, 7, [NOW - hour * 3600.0 for hour in range(10)])
    first = update_source_stats(conn, "7", has_new_entries=True, now=NOW)
    assert (first["frequency_type"], first["cadence"]) == ("realtime", "P0")
    assert first["last_article_at"] == NOW
    assert NOW < first["next_due_at"] <= NOW + 1.15 * 900
    second = update_source_stats(conn, "7", now=NOW + 900)
    assert (second["check_count"], second["hit_count"], second["hit_rate"]) == (2, 1, 0.5)
    third = update_source_stats(conn, "7", error_message="HTTP 403", now=NOW + 1800)
    assert third["fail_count"] == 1
    assert third["backoff_until"] == third["next_due_at"] == NOW + 1800 + 12 * 3600
    assert third["last_error"] == "HTTP 403"
    stored = get_source_stats(conn, "7")
    assert stored == third
    assert get_source_stats(conn, "8") is None


def test_recent_entries_are_the_newest_dated_ones(conn: Any) -> None:
    add_items(conn, 1, [float(NOW + number) for number in range(40)])
    add_items(conn, 1, [None])
    add_items(conn, 2, [float(NOW + 99)])
    entries = get_recent_entries(conn, "1")
    assert [entry["published_at"] for entry in entries] == [NOW + 39 - number for number in range(30)]
    assert len(get_recent_entries(conn, "1", "custom", limit=5)) == 5


def test_a_burst_long_ago_does_not_keep_a_source_realtime(conn: Any) -> None:
    burst = [NOW - 400 * 86400.0 + minute * 60 for minute in range(5)]
    slow = [NOW - week * 7 * 86400.0 for week in range(1, 30)]
    add_items(conn, 3, [*burst, *slow])
    for number in range(10):
        row = update_source_stats(conn, "3", now=NOW + number)
    assert row["frequency_type"] == "monthly"


def test_due_sources_are_due_and_not_backed_off(conn: Any) -> None:
    for source in range(5):
        update_source_stats(conn, str(source), "custom" if source == 4 else "rss", now=NOW - 10**6 + source)
    update_source_stats(conn, "1", error_message="rate limited", now=NOW)
    due = get_due_sources(conn, NOW)
    assert [row["source_id"] for row in due] == sorted(
        ("0", "2", "3", "4"),
        key=lambda source: next(r["next_due_at"] for r in due if r["source_id"] == source),
    )
    assert [row["source_id"] for row in get_due_sources(conn, NOW, "custom")] == ["4"]
    assert len(get_due_sources(conn, NOW, limit=2)) == 2
    assert get_due_sources(conn, NOW - 2 * 10**6) == []


def test_due_source_that_is_backed_off_is_not_listed(conn: Any) -> None:
    """Though its time has come: a user may set both, and the document asks for both."""
    for source in ("1", "2"):
        update_source_stats(conn, source, now=NOW)
    run(conn, f"UPDATE source_stats SET next_due_at = {NOW - 60}")
    run(conn, f"UPDATE source_stats SET backoff_until = {NOW + 60} WHERE source_id = '1'")
    assert [row["source_id"] for row in get_due_sources(conn, NOW)] == ["2"]
    assert [row["source_id"] for row in get_due_sources(conn, NOW + 60)] == ["1", "2"]
    stats = get_scheduler_stats(conn, now=NOW)
    assert (stats["due_sources"], stats["backoff_sources"]) == (1, 1)


def test_due_sources_of_headwaters_database_follow_what_people_did(store: Store) -> None:
    """What was asked for comes first; what is paused, removed or gone does not come at all."""
    with store.writing() as connection:
        made = {
            name: add_unvisited(connection, read_new_source(f"https://{name}.example/", "rss", {}, name), NOW)
            for name in ("due", "asked", "paused", "removed", "gone", "later")
        }
        settle_batch(
            connection,
            [
                done(source, NOW, Plan(NOW + (9_000 if source.name in ("asked", "later") else 60)))
                for source in claim(connection, NOW + 1, 10)
            ],
        )
        act_on_source(connection, "pause", made["paused"].id, NOW + 10)
        act_on_source(connection, "remove", made["removed"].id, NOW + 10)
        act_on_source(connection, "refresh", made["asked"].id, NOW + 10)
        connection.exec_driver_sql(f"UPDATE sources SET due_at = NULL WHERE id = {made['gone'].id}")
    numbers = {str(source.id): name for name, source in made.items()}
    with store.writing() as connection:
        for source_id, name in numbers.items():
            update_source_stats(connection, source_id, now=NOW, commit=False)
            due_at = NOW + (9_000 if name in ("asked", "later") else 60)
            connection.exec_driver_sql(
                f"UPDATE source_stats SET next_due_at = {due_at} WHERE source_id = '{source_id}'"
            )

        def listed(**wanted: Any) -> list[str]:
            return [numbers[row["source_id"]] for row in get_due_sources(connection, NOW + 100, **wanted)]

        assert listed() == ["asked", "due"]
        assert listed(limit=1) == ["asked"]
        assert listed(source_type="custom") == []
        stats = get_scheduler_stats(connection, now=NOW + 100)
        assert (stats["total_sources"], stats["due_sources"]) == (5, 1)


def test_scheduler_stats_add_up(conn: Any) -> None:
    update_source_stats(conn, "1", has_new_entries=True, now=NOW - 10**6)
    update_source_stats(conn, "2", "custom", error_message="429", now=NOW)
    stats = get_scheduler_stats(conn, now=NOW)
    assert (stats["total_sources"], stats["by_cadence"]["P2"]) == (2, 2)
    assert (stats["total_checks"], stats["total_hits"], stats["hit_rate"]) == (2, 1, 0.5)
    assert (stats["due_sources"], stats["failing_sources"], stats["backoff_sources"]) == (1, 1, 1)
    assert get_scheduler_stats(conn, "custom", now=NOW)["total_sources"] == 1


@pytest.mark.parametrize(
    "damage",
    ["cadence = 'P9'", "hit_count = 99", "fail_count = -1", "avg_publish_hour = 77", "check_count = -5"],
)
def test_damaged_statistics_start_again(conn: Any, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(4):
        update_source_stats(conn, "1", now=NOW)
    run(conn, f"UPDATE source_stats SET {damage}")
    row = update_source_stats(conn, "1", now=NOW)
    assert (row["check_count"], row["hit_count"], row["cadence"]) == (1, 0, "P2")
    assert "damaged" in caplog.text


def test_missing_tables_are_logged_and_answered_with_defaults(
    conn: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run(conn, "DROP TABLE source_stats")
    run(conn, "DROP TABLE items")
    with caplog.at_level(logging.ERROR):
        row = update_source_stats(conn, "1", has_new_entries=True, now=NOW)
    assert row["cadence"] == "P2"
    assert NOW + 0.85 * 3600 <= row["next_due_at"] <= NOW + 1.15 * 3600
    assert get_source_stats(conn, "1") is None
    assert get_recent_entries(conn, "1") == []
    assert get_due_sources(conn, NOW) == []
    assert get_scheduler_stats(conn)["total_sources"] == 0
    assert "cannot store" in caplog.text
    run(conn, TABLES[0])  # the connection is usable again: what failed was rolled back
    assert update_source_stats(conn, "1", now=NOW)["check_count"] == 1
    assert get_source_stats(conn, "1") is not None


def test_a_closed_connection_still_gives_a_plan() -> None:
    conn = sqlite3.connect(":memory:")
    conn.close()
    assert update_source_stats(conn, "1", now=NOW)["cadence"] == "P2"


def test_concurrent_updates_of_one_source_are_all_counted(connect: Connect) -> None:
    conns = [connect() for _ in range(4)]

    def work(number: int) -> None:
        for step in range(25):
            error = "it failed" if number == 0 else ""
            update_source_stats(
                conns[number], "7", has_new_entries=step % 5 == 0, error_message=error, now=NOW + step
            )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    if isinstance(conns[0], sqlalchemy.Connection):
        for number in range(4):
            work(number)
    else:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    row = get_source_stats(conns[0], "7")
    assert row is not None
    assert (row["check_count"], row["hit_count"]) == (100, 20)


def test_concurrent_updates_lose_no_row(connect: Connect) -> None:
    """Each source's row is written whole by the holder of the source, however many do so at once."""
    conns = [connect() for _ in range(4)]

    def work(number: int) -> None:
        for step in range(10):
            update_source_stats(conns[number], str(number), has_new_entries=step % 2 == 0, now=NOW + step)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    if isinstance(conns[0], sqlalchemy.Connection):
        for number in range(4):
            work(number)
    else:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in range(4):
        row = get_source_stats(conns[0], str(number))
        assert row is not None
        assert (row["check_count"], row["hit_count"]) == (10, 5)
