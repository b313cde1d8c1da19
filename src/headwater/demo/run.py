"""The whole demo in one process: publisher, collector and dashboard on a database that is thrown away.

Before the address is told, some weeks are replayed (`replay`): what was learnt from them is there to be seen. From then
on time is real; one source publishes every few seconds, so that something happens.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from headwater.config import Settings
from headwater.demo.publisher import HOOK, create_publisher
from headwater.demo.replay import Clocks, replay
from headwater.demo.sources import DemoSource
from headwater.demo.weeks import LIVE, MOVED, TOWN, WEEKS, LivingSource
from headwater.fetch.client import make_fetcher
from headwater.pipeline.templates import read_template
from headwater.sources.adding import NewSource, add_unvisited, read_new_source
from headwater.store.core.database import Store
from headwater.store.people.marks import set_read_later, set_starred
from headwater.store.people.reading import mark_all_read
from headwater.store.people.subscriptions import OWNER, heard_sources
from headwater.store.pipelines.attaching import attach
from headwater.store.pipelines.starting import start_runs
from headwater.store.pipelines.templates import add_template
from headwater.store.reading.listing import newest_items
from headwater.store.reading.outlets import Outlet, add_outlet
from headwater.store.reading.selection import Selection
from headwater.web.server import address_of, listen, serve, serve_app

VISIT_EVERY_SECONDS = 5.0  # the source that publishes all the time
DAY = 86_400.0
FIRST_VISITS_APART = 420.0
UNREAD_DAYS = 2
READ_LATER_DAYS = 7.0
TRIED_ITEMS = 30  # that the pipeline runs for at the start
PICKED = "rivers"
STEPS = (
    {
        "step_type": "filter_content",
        "config": {"include_keywords": ["river", "harbour", "tide", "pier", "ferry"]},
    },
    {"step_type": "publish_content", "config": {"target": "outlet", "outlet": PICKED}},
)


async def run_demo(
    settings: Settings,
    *,
    stopping_on_signals: Callable[[Callable[[], None]], contextlib.AbstractContextManager[None]],
    on_ready: Callable[[str, str], None],
    weeks: int = WEEKS,
) -> bool:
    """Publish, replay, collect and show until a signal; then leave nothing behind.

    `on_ready` is told the dashboard's address and that of a webhook to try.
    """
    listener = listen("127.0.0.1", 0)
    base = address_of(listener).rstrip("/")
    clocks = Clocks(time.time)
    now = time.time()
    publisher = create_publisher(
        (*TOWN, MOVED, LIVE), start_at=now, clock_of=lambda path: clocks.at(base + path)
    )
    publisher_gone = asyncio.Event()
    publishing = asyncio.create_task(serve_app(publisher, listener, publisher_gone))
    try:
        with tempfile.TemporaryDirectory(prefix="headwater-demo-") as directory:
            settings = demo_settings(settings, Path(directory))
            # A port that is taken is told of before the weeks are replayed.
            listen(settings.host, settings.port).close()
            with Store.open(settings.database) as store:
                await _replay_weeks(store, settings, base, clocks, now, weeks)
                await store.write(_furnish, base, time.time())
                return await serve(
                    store,
                    settings,
                    stopping_on_signals=stopping_on_signals,
                    on_ready=lambda address: on_ready(address, base + HOOK),
                )
    finally:
        publisher_gone.set()
        await publishing


async def _replay_weeks(
    store: Store, settings: Settings, base: str, clocks: Clocks, now: float, weeks: int
) -> None:
    begin = now - weeks * 7 * DAY
    times: dict[int, float] = {}
    for place, source in enumerate(TOWN):
        first = begin + FIRST_VISITS_APART * place
        added = await store.write(add_unvisited, living_source(source, base), first)
        times[added.id] = first
    async with make_fetcher(settings) as fetcher:
        await replay(store, settings, fetcher, times, now, clocks)
    clocks.run()


def _furnish(connection: Connection, base: str, now: float) -> None:
    """A source that is always at work, a pipeline that picks, and two outlets."""
    live = replace(living_source(LIVE, base), policy="interval")
    added = add_unvisited(connection, live, now)
    add_outlet(connection, Outlet(PICKED, "Rivers and harbours", Selection(outlet=PICKED)), now)
    add_outlet(connection, Outlet("zhongwen", "中文精选", Selection(folders=("中文阅读",))), now)
    template = add_template(
        connection, read_template({"name": "Pick rivers and harbours", "steps": list(STEPS)}), now
    )
    attach(connection, template.id, "source", [added.id], now)
    attach(connection, template.id, "folder", ["Harbour", "City"], now)
    newest = newest_items(connection, limit=TRIED_ITEMS)[:TRIED_ITEMS]
    # As its owner would have left it: what is older is read, a few are kept.
    mark_all_read(connection, OWNER, heard_sources(connection, OWNER), until=now - UNREAD_DAYS * DAY)
    set_starred(connection, OWNER, [item.id for item in newest[3:12:4]], True, now)
    set_read_later(connection, OWNER, [item.id for item in newest[5:7]], READ_LATER_DAYS, now)
    start_runs(connection, template, [item.id for item in newest], now)


def demo_settings(settings: Settings, directory: Path) -> Settings:
    """The user's settings, but for what the demo needs: its own place, and leave to visit itself."""
    changed: dict[str, Any] = {
        "database_url": None,
        "data_dir": directory,
        "allow_hosts": ("127.0.0.1",),
        "proxy": None,  # which could not reach this machine's loopback
        "host_concurrency": 20,
        "host_spacing_seconds": 0.0,
        "collector_tick": 1.0,
        "policy": "adaptive",
    }
    return replace(settings, **changed, origins={**settings.origins, **dict.fromkeys(changed, "demo")})


def living_source(source: LivingSource, base: str) -> NewSource:
    config = {"fetch_interval_minutes": VISIT_EVERY_SECONDS / 60} if source is LIVE else {}
    return read_new_source(base + source.path, kind_of(source), config, source.name, source.folder)


def config_of(source: DemoSource, minutes: float) -> dict[str, Any]:
    """A source's config: all of its past counts, and its pages, which say nothing, are not read."""
    config: dict[str, Any] = {"fetch_interval_minutes": minutes}
    if source.format == "sitemap":
        config |= {"baseline_items": 1_000, "fetch_pages": False}
    return config


def kind_of(source: DemoSource) -> str:
    """The type under which Headwater collects a source of the demo."""
    return "web.sitemap" if source.format == "sitemap" else "rss.feed"
