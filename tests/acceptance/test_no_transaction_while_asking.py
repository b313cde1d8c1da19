"""No transaction is open while a publisher is asked: a slow one must hold up no writer and no clean-up of the database.

The origin looks while it holds the answer back, so this is what the database itself sees, not what we think we do.
"""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, event

from headwater.collect.context import read_visit_context
from headwater.collect.engine import Engine
from headwater.config import Settings, load_settings
from headwater.fetch.client import make_fetcher
from headwater.sources.adding import add_and_visit, read_new_source
from headwater.store.core.database import Store
from tests.clock import FakeClock
from tests.collect.test_engine import add, rss
from tests.origin import Answer, Origin, Received

pytestmark = pytest.mark.slow

SOURCES = 12


class Watch:
    """Who has a transaction open on a store, by our own count."""

    def __init__(self, store: Store) -> None:
        self._lock = threading.Lock()
        self.open = 0
        self.begun = 0
        event.listen(store.engine, "begin", self._began)
        event.listen(store.engine, "commit", self._ended)
        event.listen(store.engine, "rollback", self._ended)

    def _began(self, connection: Connection) -> None:
        with self._lock:
            self.open += 1
            self.begun += 1

    def _ended(self, connection: Connection) -> None:
        with self._lock:
            self.open -= 1


def seen_by_database(store: Store) -> int:
    """How many sessions have a transaction open, as the database tells; SQLite tells only whether one is writing."""
    if store.is_sqlite:
        with closing(sqlite3.connect(str(store.url.database), timeout=0, isolation_level=None)) as writer:
            try:
                writer.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return 1
            return 0
    url = store.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with closing(psycopg.connect(url, autocommit=True)) as session:
        row = session.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
        ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(
        load_settings(directory=tmp_path, environment={}),
        allow_hosts=("127.0.0.1",),
        host_spacing_seconds=0.0,
        host_concurrency=20,
        collector_concurrency=1,  # so that no other visit's short transaction is seen
    )


@pytest.fixture
def looking(store: Store, origin: Origin) -> list[tuple[int, int]]:
    """What was open at each request: by our own count, and as the database sees it."""
    watch = Watch(store)
    found: list[tuple[int, int]] = []

    def look(answer: Answer) -> Callable[[Received], Answer]:
        def reply(request: Received) -> Answer:
            found.append((watch.open, seen_by_database(store)))
            return answer

        return reply

    for number in range(SOURCES):
        answer = Answer(status=500) if number % 4 == 3 else Answer(body=rss(number), etag='"1"')
        origin.route(f"/{number}", look(answer))
    return found


async def test_while_visiting(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, looking: list[tuple[int, int]]
) -> None:
    """First visits, conditional ones and failing ones. Claims and commits may go on beside a visit, so what counts
    is that a visit opens none: with one at a time and nothing left to claim, there is none at all."""
    ids = [add(store, origin.url(f"/{number}"), clock).id for number in range(SOURCES)]
    async with Engine(store, settings, clock=clock) as engine:
        for _ in range(2):
            for source_id in ids:
                await engine.collect_sources([source_id])
    assert engine.tally.visits == 2 * SOURCES
    assert looking == [(0, 0)] * (2 * SOURCES)


async def test_while_adding(
    store: Store, settings: Settings, origin: Origin, looking: list[tuple[int, int]]
) -> None:
    async with make_fetcher(settings) as fetcher:
        context = await read_visit_context(store, settings, fetcher)
        await add_and_visit(read_new_source(origin.url("/0")), context)
    assert looking == [(0, 0)]


async def test_the_watch_sees_an_open_transaction(store: Store) -> None:
    """Or the tests above would prove nothing."""
    watch = Watch(store)
    with store.writing() as connection:
        connection.exec_driver_sql("SELECT 1")
        assert (watch.open, seen_by_database(store)) == (1, 1)
    with store.reading() as connection:
        connection.exec_driver_sql("SELECT 1")
        assert (watch.open, seen_by_database(store)) == (1, 0 if store.is_sqlite else 1)
    assert (watch.open, watch.begun, seen_by_database(store)) == (0, 2, 0)
