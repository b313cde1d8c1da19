"""A host that takes thirty seconds for every answer, with five hundred sources on it, delays no other source."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.collect.engine import Engine
from headwater.config import Settings, load_settings
from headwater.model import url_key
from headwater.store.collecting.sources import NEW_LANE
from headwater.store.core.bulk import insert_rows
from headwater.store.core.database import Store
from headwater.store.core.tables import sources
from tests.collect.test_engine import rss
from tests.origin import Answer, Origin

pytestmark = pytest.mark.slow

SLOW = 500
OTHERS = 80  # half of them new, half coming due over COMING_SECONDS
COMING_SECONDS = 6.0
ANSWER_SECONDS = 30.0
MOST_DELAY_SECONDS = 1.0
ATTEMPTS = 3  # this machine may be busy with something else: that only ever adds to a delay


@pytest.fixture
def many_hosts() -> Iterator[Origin]:
    """One server that is every loopback address."""
    with Origin(host="0.0.0.0") as server:
        server.otherwise(Answer(body=rss(1)))
        yield server


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The default settings."""
    return replace(load_settings(directory=tmp_path, environment={}), allow_hosts=("127.0.0.0/8",))


def add(store: Store, urls: list[str], due: list[float | None]) -> None:
    """Sources that are due at these times; None: new."""
    now = time.time()
    columns = ("name", "type", "url", "url_key", "due_at", "next_fetch_at", "created_at", "updated_at")
    rows = [
        (url, "rss.feed", url, url_key(url), NEW_LANE + now if at is None else at, at, now, now)
        for url, at in zip(urls, due, strict=True)
    ]
    with store.writing() as connection:
        insert_rows(connection, sources, columns, rows)


async def delays_of_others(store: Store, settings: Settings, origin: Origin, round_: str) -> list[float]:
    """How long after they were due the other sources were asked, each on its own host."""
    seen = len(origin.requests)
    begin = time.time() + 0.5
    begin_monotonic = time.monotonic() + 0.5
    paths = [f"/{round_}/{number}" for number in range(OTHERS)]
    urls = [origin.url(path, host=f"127.0.1.{number + 1}") for number, path in enumerate(paths)]
    due: list[float | None] = [
        None if number % 2 else begin + COMING_SECONDS * number / OTHERS for number in range(OTHERS)
    ]
    add(store, urls, due)
    async with Engine(store, settings) as engine:
        await asyncio.sleep(begin - time.time())
        running = asyncio.create_task(engine.run())
        async with asyncio.timeout(60):
            while sum(request.path in paths for request in origin.requests[seen:]) < OTHERS:
                await asyncio.sleep(0.1)
        engine.stop()
        await running
    asked = {request.path: request.at - begin_monotonic for request in origin.requests[seen:]}
    return [asked[path] - (0.0 if at is None else at - begin) for path, at in zip(paths, due, strict=True)]


async def test_others_do_not_wait_for_a_slow_host(
    store: Store, settings: Settings, many_hosts: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.collect.engine.STOP_SECONDS", 0.2)  # the slow answers need not be awaited
    alone = max(await delays_of_others(store, settings, many_hosts, "alone"))
    for attempt in range(ATTEMPTS):
        for number in range(SLOW):
            many_hosts.route(f"/slow-{attempt}/{number}", body=rss(1), delay=ANSWER_SECONDS)
        host = f"127.0.2.{attempt + 1}"
        urls = [many_hosts.url(f"/slow-{attempt}/{number}", host=host) for number in range(SLOW)]
        add(store, urls, [None] * SLOW)  # before the others: new ones stand in line by age
        beside = max(await delays_of_others(store, settings, many_hosts, f"beside-{attempt}"))
        asked_slow = [each for each in many_hosts.requests if each.path.startswith(f"/slow-{attempt}/")]
        assert 1 <= len(asked_slow) <= settings.host_concurrency, "the slow host was at work all the while"
        print(f"latest alone {alone:.2f} s, beside the slow host {beside:.2f} s")
        if beside - alone <= MOST_DELAY_SECONDS:
            return
    pytest.fail(f"others were delayed by {beside - alone:.2f} s every time")
