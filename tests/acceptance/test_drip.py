"""Sixty origins that send one byte a second delay no other source, and are given up long before their visits' time."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.collect.engine import Engine
from headwater.config import load_settings
from headwater.store.collecting.sources import get_source
from headwater.store.core.database import Store
from tests.acceptance.test_slow_host import add
from tests.collect.test_engine import rss
from tests.origin import Answer, Origin

pytestmark = pytest.mark.slow

DRIPS = 60
MOST_WAIT_SECONDS = 20.0  # on a machine with much else to do; alone it is three
GIVEN_UP_SECONDS = 40.0  # of the sixty that a visit may take


@pytest.mark.timeout(180)
async def test_healthy_source_is_visited_while_sixty_origins_drip(store: Store, tmp_path: Path) -> None:
    settings = replace(load_settings(directory=tmp_path, environment={}), allow_hosts=("127.0.0.0/8",))
    assert settings.collector_concurrency < DRIPS, "they could take every place"
    with Origin(host="0.0.0.0") as origin:
        origin.otherwise(Answer(body=rss(1), fault="drip", drip_seconds=1.0))
        origin.route("/healthy", body=rss(1))
        drips = [origin.url(f"/{number}", host=f"127.0.2.{number + 1}") for number in range(DRIPS)]
        now = time.time()
        due: list[float | None] = [*[now - 60.0] * DRIPS, now - 1.0]
        add(store, [*drips, origin.url("/healthy", host="127.0.1.1")], due)
        async with Engine(store, settings) as engine:
            began = time.monotonic()
            running = asyncio.create_task(engine.run())
            async with asyncio.timeout(MOST_WAIT_SECONDS):
                while not any(request.path == "/healthy" for request in origin.requests):
                    await asyncio.sleep(0.05)
            print(f"the healthy source was asked after {time.monotonic() - began:.1f} s")
            async with asyncio.timeout(GIVEN_UP_SECONDS):
                while engine.tally.failed < 20:
                    await asyncio.sleep(0.1)
            print(f"twenty drips were given up after {time.monotonic() - began:.1f} s")
            engine.stop()
            await running
        with store.reading() as connection:
            assert "too slowly" in (get_source(connection, 1).last_error or "")
