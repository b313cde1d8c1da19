"""A day of ten thousand sources on the real engine, queue and planner; only clock and publishers are made up."""

import time
from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from headwater.collect.engine import Engine
from headwater.collectors.base import Collector, FetchRequest, FetchResult
from headwater.config import load_settings
from headwater.model import Item, url_key
from headwater.store.collecting.queue import Settlement, next_due_at
from headwater.store.collecting.sources import NEW_LANE
from headwater.store.core.bulk import insert_rows
from headwater.store.core.database import Store
from headwater.store.core.tables import sources
from tests.clock import FakeClock
from tests.databases import copy_sqlite
from tests.histories import even

pytestmark = pytest.mark.slow

SOURCES = 10_000
DAY = 86_400.0
TICK = 60.0  # the clock moves this far at least; what comes due in between waits for it
HISTORY_DAYS = 20
SHOWN = 5
MOST_CPU_SECONDS = 60.0


class MadeUpPublishers(Collector):
    """Every source publishes at its own pace, from one item a month to five a day, and shows its newest items."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._start = clock() - HISTORY_DAYS * DAY
        self._times: dict[int, list[float]] = {}

    def times(self, source_id: int) -> list[float]:
        if source_id not in self._times:
            per_day = 10 ** Random(source_id).uniform(-1.5, 0.7)
            self._times[source_id] = even(per_day, HISTORY_DAYS + 2, source_id, self._start)
        return self._times[source_id]

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        source = fetch_request.source
        times = self.times(source.id)
        count = bisect_right(times, self._clock())
        if source.last_fetched_at is not None and count == bisect_right(times, source.last_fetched_at):
            return FetchResult(unchanged=True, http_status=304)
        items = (
            Item(f"{source.id}-{number}", title="Post", published_at=times[number])
            for number in range(max(0, count - SHOWN), count)
        )
        return FetchResult(items=tuple(items), http_status=200)


def add_sources(store: Store, now: float) -> None:
    columns = ("name", "type", "url", "url_key", "due_at", "created_at", "updated_at")
    urls = [f"https://{number}.example/feed" for number in range(SOURCES)]
    with store.writing() as connection:
        rows = [(url, "rss.feed", url, url_key(url), NEW_LANE + now, now, now) for url in urls]
        insert_rows(connection, sources, columns, rows)


@pytest.mark.timeout(900)
async def test_a_day_passes_as_planned(
    tmp_path: Path, sqlite_template: Path, clock: FakeClock, rng: Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    publishers = MadeUpPublishers(clock)
    monkeypatch.setattr("headwater.collect.visit.collector_of", lambda type_name: publishers)
    settings = replace(
        load_settings(directory=tmp_path, environment={}),
        collector_concurrency=200,
        budget_visits_per_day=2.0,
    )
    start = clock()
    visits: list[tuple[int, float, float | None]] = []

    def note(settlement: Settlement) -> None:
        visits.append((settlement.before.id, settlement.visit.started_at, settlement.before.next_fetch_at))

    began = time.process_time()
    with Store.open(copy_sqlite(sqlite_template, tmp_path / "day.db")) as store:
        add_sources(store, start)
        async with Engine(store, settings, clock=clock, rng=rng, on_settled=note) as engine:
            while clock() < start + DAY:
                await engine.collect_due()
                with store.reading() as connection:
                    first = next_due_at(connection, clock())
                assert first is not None
                clock.now = max(first, clock() + TICK)
    spent = time.process_time() - began
    print(f"{len(visits)} visits, {spent:.1f} s of CPU")

    assert {source_id for source_id, _, planned_at in visits if planned_at is None} == set(
        range(1, SOURCES + 1)
    )
    lags = [at - planned_at for _, at, planned_at in visits if planned_at is not None]
    assert min(lags) >= 0, "no source is visited before it is due"
    assert max(lags) <= TICK, "and none later than the clock allows"
    assert engine.tally.failed == 0

    # All were new at once, which is the first minute; from then on the visits are spread.
    minutes = Counter(int((at - start) // 60) for _, at, planned_at in visits if planned_at is not None)
    mean = sum(minutes.values()) / (DAY / 60)
    assert mean > SOURCES / (DAY / 60), "a day without visits would be spread well too"
    assert max(minutes.values()) <= 4 * mean
    by_hour = Counter(minute // 60 for minute in minutes.elements())
    assert max(by_hour.values()) <= 2 * 60 * mean
    assert spent < MOST_CPU_SECONDS
