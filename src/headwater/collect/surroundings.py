"""What visits need of the world, put together from the settings and the database."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from sqlalchemy import Connection

from headwater import __version__
from headwater.collect.outage import Weather
from headwater.collect.planning import Planner
from headwater.collect.recall import Recall
from headwater.collect.steering import read_price
from headwater.collectors.types import find_type, intervals_by_type
from headwater.config import Settings
from headwater.errors import InputError
from headwater.fetch.client import Fetcher
from headwater.schedule.backoff import Thresholds
from headwater.schedule.compose import Limits
from headwater.schedule.price import Price, begin_price
from headwater.store.clock import DatabaseClock
from headwater.store.database import Store
from headwater.store.settings import interval_settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    store: Store
    recall: Recall
    fetcher: Fetcher
    planner: Planner
    weather: Weather
    clock: Callable[[], float]
    timeout_seconds: float
    takes_pushes: bool = False  # whether the world can reach us
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # what configs may refer to


async def read_surroundings(
    store: Store,
    settings: Settings,
    fetcher: Fetcher,
    *,
    weather: Weather | None = None,
    clock: Callable[[], float] | None = None,
    rng: Random | None = None,
) -> Surroundings:
    """The surroundings with what the database says now; without a `clock`, also of the time."""
    if clock is None:
        clock = DatabaseClock(store)
        await store.read(clock.measure)
    return Surroundings(
        store=store,
        recall=Recall(store),
        fetcher=fetcher,
        planner=await read_planner(store, settings, rng),
        weather=weather or Weather(),
        clock=clock,
        timeout_seconds=settings.visit_timeout_seconds,
        takes_pushes=settings.public_url is not None,
        secrets=settings.secrets,
    )


async def read_planner(store: Store, settings: Settings, rng: Random | None = None) -> Planner:
    """The planner with what the database says now."""
    rows, price = await store.read(_read_all)
    return make_planner(settings, _known_types(rows), price, rng or Random())


async def read_intervals(store: Store, settings: Settings) -> dict[str, float]:
    """Minutes between visits by type, in force now."""
    return intervals_by_type(settings.fetch_intervals, _known_types(await store.read(interval_settings)))


def _known_types(rows: Mapping[str, float]) -> dict[str, float]:
    intervals = {}
    for name, minutes in rows.items():
        try:
            intervals[find_type(name).name] = minutes
        except InputError as error:  # somebody's slip in a table must not stop every worker
            log.warning("an interval in the settings table is ignored: %s", error)
    return intervals


def _read_all(connection: Connection) -> tuple[dict[str, float], Price | None]:
    return interval_settings(connection), read_price(connection)


def make_planner(
    settings: Settings, stored_intervals: Mapping[str, float], price: Price | None, rng: Random
) -> Planner:
    by_hand = {find_type(name).name for name in (*settings.fetch_intervals, *stored_intervals)}
    return Planner(
        interval_minutes=intervals_by_type(settings.fetch_intervals, stored_intervals),
        set_by_hand=frozenset(by_hand),
        policy=settings.policy,
        price_seconds=(price or begin_price(settings.budget_visits_per_day, 0.0)).seconds,
        limits=Limits(
            min_interval_seconds=settings.min_interval_seconds,
            max_interval_seconds=settings.max_interval_seconds,
            backoff=settings.backoff,
            thresholds=Thresholds(settings.pause_after_failures, settings.error_after_failures),
        ),
        rng=rng,
    )


def make_fetcher(settings: Settings) -> Fetcher:
    """The fetch door as the settings want it."""
    contact = f" (+{settings.contact_url})" if settings.contact_url else ""
    return Fetcher(
        user_agent=f"Headwater/{__version__}{contact}",
        allow=settings.allow_hosts,
        concurrency=settings.collector_concurrency,
        host_concurrency=settings.host_concurrency,
        host_spacing_seconds=settings.host_spacing_seconds,
        max_bytes=settings.max_body_megabytes * 1_000_000,
        proxy=settings.proxy,
    )
