"""What visits need of the world, put together from the settings and the database."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from headwater import __version__
from headwater.collect.planning import Planner
from headwater.collectors.types import find_type, intervals_by_type
from headwater.config import Settings
from headwater.errors import InputError
from headwater.fetch.client import Fetcher
from headwater.store.database import Store
from headwater.store.settings import interval_settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    store: Store
    fetcher: Fetcher
    planner: Planner
    clock: Callable[[], float]
    timeout_seconds: float


async def read_surroundings(
    store: Store,
    settings: Settings,
    fetcher: Fetcher,
    *,
    clock: Callable[[], float] = time.time,
    rng: Random | None = None,
) -> Surroundings:
    """The surroundings with what the database says now."""
    stored = {}
    for name, minutes in (await store.read(interval_settings)).items():
        try:
            stored[find_type(name).name] = minutes
        except InputError as error:  # somebody's slip in a table must not stop every worker
            log.warning("an interval in the settings table is ignored: %s", error)
    return Surroundings(
        store=store,
        fetcher=fetcher,
        planner=make_planner(settings, stored, rng or Random()),
        clock=clock,
        timeout_seconds=settings.visit_timeout_seconds,
    )


def make_planner(settings: Settings, stored: dict[str, float], rng: Random) -> Planner:
    return Planner(intervals_by_type(settings.fetch_intervals, stored), rng)


def make_fetcher(settings: Settings) -> Fetcher:
    """The fetch door as the settings want it."""
    contact = f" (+{settings.contact_url})" if settings.contact_url else ""
    return Fetcher(
        user_agent=f"Headwater/{__version__}{contact}",
        allow=settings.allow_hosts,
        host_concurrency=settings.host_concurrency,
        host_spacing_seconds=settings.host_spacing_seconds,
        max_bytes=settings.max_body_megabytes * 1_000_000,
        proxy=settings.proxy,
    )
