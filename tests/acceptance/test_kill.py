"""Killed at random moments, a collector loses nothing and doubles nothing."""

import signal
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import func, select

from headwater.demo.documents import CONTENT_TYPES, render
from headwater.demo.run import config_of, kind_of
from headwater.demo.sources import DemoSource, many
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.core.database import Store
from headwater.store.core.tables import collection_records, item_versions, items, sources
from tests.command import Headwater
from tests.leases import leases
from tests.origin import Answer, Origin, Received

pytestmark = pytest.mark.slow

KILLS = 50
# None that corrects its items: whatever is stored as changed was doubled.
SOURCES = [replace(source, corrects=False) for source in many(100)]
LEASE_SECONDS = 8.0  # of a visit that may take three seconds


class Publisher:
    """The demo's sources on an origin, with a clock that the test moves."""

    def __init__(self, origin: Origin) -> None:
        self.started_at = time.time()
        self.now = self.started_at
        self.base = origin.url("").rstrip("/")
        for source in SOURCES:
            origin.route(source.path, self.answering(source))

    def answering(self, source: DemoSource):  # type: ignore[no-untyped-def]
        def answer(request: Received) -> Answer:
            body = render(source, source.items(self.started_at, self.now)[::-1], self.base)
            return Answer(body, content_type=CONTENT_TYPES[source.format], delay=0.1)

        return answer

    def published(self) -> int:
        return sum(len(source.items(self.started_at, self.now)) for source in SOURCES)


@pytest.mark.timeout(900)
def test_fifty_kills_lose_nothing_and_double_nothing(
    tmp_path: Path, database_url: str, origin: Origin, rng: Random
) -> None:
    publisher = Publisher(origin)
    command = Headwater(tmp_path, database_url)
    command.environment |= {
        "HEADWATER_VISIT_TIMEOUT_SECONDS": "3",
        # Few at once: a kill leaves few leases behind, so that the next collector finds work too.
        "COLLECTOR_CONCURRENCY": "5",
        "HEADWATER_HOST_CONCURRENCY": "5",
        "HEADWATER_POLICY": "interval",
    }
    with Store.open(database_url) as store:
        with store.writing() as connection:
            for source in SOURCES:
                wanted = read_new_source(
                    publisher.base + source.path,
                    kind_of(source),
                    config_of(source, 0.01),
                    source.name,
                )
                add_unvisited(connection, wanted, time.time())

        killed = attempts = 0
        while killed < KILLS:
            attempts += 1
            assert attempts < 20 * KILLS, "kills must hit collectors at work"
            publisher.now += 2.0  # the publishers go on meanwhile
            process = command.start("collect")
            deadline = time.monotonic() + 20
            seen = len(origin.requests)
            while len(origin.requests) == seen and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.8))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += process.returncode == -signal.SIGKILL

        time.sleep(LEASE_SECONDS + 0.5)
        command.ok("collect")

        with store.reading() as connection:
            stored = connection.execute(select(func.count()).select_from(items)).scalar_one()
            distinct = connection.execute(
                select(func.count()).select_from(
                    select(items.c.source_id, items.c.title, items.c.published_at).distinct().subquery()
                )
            ).scalar_one()
            counted = connection.execute(select(func.sum(collection_records.c.items_new))).scalar_one()
            versions = connection.execute(select(func.count()).select_from(item_versions)).scalar_one()
            unvisited = connection.execute(
                select(func.count()).select_from(sources).where(sources.c.last_fetched_at.is_(None))
            ).scalar_one()
        in_flight = leases(store)
    assert (in_flight, unvisited) == ({}, 0)
    assert stored == publisher.published() == distinct == counted
    assert versions == 0, "nothing was changed, so nothing may have been stored as changed"
