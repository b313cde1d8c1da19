"""The whole demo in one process: publisher, collector and dashboard on a database that is thrown away."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from headwater.collect.adding import NewSource, add_unvisited, read_new_source
from headwater.config import Settings
from headwater.demo.publisher import HOOK, create_publisher
from headwater.demo.sources import DOZEN, DemoSource
from headwater.store.database import Store
from headwater.web.server import address_of, listen, serve, serve_app

VISIT_EVERY_SECONDS = 3.0


async def run_demo(
    settings: Settings,
    *,
    stopping_on_signals: Callable[[Callable[[], None]], contextlib.AbstractContextManager[None]],
    on_ready: Callable[[str, str], None],
) -> bool:
    """Publish, collect and show until a signal; then leave nothing behind.

    `on_ready` is told the dashboard's address and that of a webhook to try.
    """
    listener = listen("127.0.0.1", 0)
    publisher_gone = asyncio.Event()
    publishing = asyncio.create_task(
        serve_app(create_publisher(DOZEN, start_at=time.time()), listener, publisher_gone)
    )
    base = address_of(listener).rstrip("/")
    try:
        with tempfile.TemporaryDirectory(prefix="headwater-demo-") as directory:
            settings = demo_settings(settings, Path(directory))
            with Store.open(settings.database) as store:
                with store.writing() as connection:
                    for source in DOZEN:
                        add_unvisited(connection, demo_source(source, base), time.time())
                return await serve(
                    store,
                    settings,
                    stopping_on_signals=stopping_on_signals,
                    on_ready=lambda address: on_ready(address, base + HOOK),
                )
    finally:
        publisher_gone.set()
        await publishing


def demo_settings(settings: Settings, directory: Path) -> Settings:
    """The user's settings, but for what the demo needs: a place of its own, and leave to visit itself."""
    return replace(
        settings,
        database_url=None,
        data_dir=directory,
        allow_hosts=("127.0.0.1",),
        proxy=None,  # which could not reach this machine's loopback
        host_concurrency=20,
        host_spacing_seconds=0.0,
        collector_tick=1.0,
        policy="interval",  # a day of the demo lasts minutes: there is nothing to learn for a policy of days
    )


def demo_source(source: DemoSource, base: str) -> NewSource:
    config = config_of(source, VISIT_EVERY_SECONDS / 60)
    return read_new_source(base + source.path, kind_of(source), config, source.name)


def config_of(source: DemoSource, minutes: float) -> dict[str, Any]:
    """A source's config: all of its past counts, and its pages, which say nothing, are not read."""
    config: dict[str, Any] = {"fetch_interval_minutes": minutes}
    if source.format == "sitemap":
        config |= {"baseline_items": 1_000, "fetch_pages": False}
    return config


def kind_of(source: DemoSource) -> str:
    """The type under which Headwater collects a source of the demo."""
    return "web.sitemap" if source.format == "sitemap" else "rss.feed"
