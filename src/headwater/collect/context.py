"""What every visit needs, made from the settings and the database."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from sqlalchemy import Connection

from headwater.collect.known_items import KnownItems
from headwater.collect.outage import OutageDetector
from headwater.collect.planning import Planner
from headwater.collect.steering import begin_for, find_goal, read_price, read_usual_rates
from headwater.collectors.intervals import intervals_in_force, of_known_types
from headwater.collectors.recognition import package_rules, rules_from
from headwater.collectors.types import find_type, intervals_by_type
from headwater.config import Settings
from headwater.fetch.client import Fetcher
from headwater.formats.pages.rules import AddressRules
from headwater.schedule.backoff import Thresholds
from headwater.schedule.compose import Limits
from headwater.schedule.price import Price
from headwater.store.core.clock import DatabaseClock
from headwater.store.core.database import Store
from headwater.store.core.settings import interval_settings


@dataclass(frozen=True, slots=True)
class VisitContext:
    store: Store
    recall: KnownItems
    fetcher: Fetcher
    planner: Planner
    outages: OutageDetector
    clock: Callable[[], float]
    timeout_seconds: float
    max_items: int = 5_000  # of one document
    takes_pushes: bool = False  # whether the world can reach us
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # what configs may refer to
    rules: AddressRules = field(default_factory=package_rules, repr=False)  # what pasted addresses mean


async def read_visit_context(
    store: Store,
    settings: Settings,
    fetcher: Fetcher,
    *,
    outages: OutageDetector | None = None,
    clock: Callable[[], float] | None = None,
    rng: Random | None = None,
) -> VisitContext:
    """The context by what the database says now; without a `clock`, its clock is used too."""
    if clock is None:
        clock = DatabaseClock(store)
        await store.read(clock.measure)
    return VisitContext(
        store=store,
        recall=KnownItems(store),
        fetcher=fetcher,
        planner=await read_planner(store, settings, rng),
        outages=outages or OutageDetector(),
        clock=clock,
        timeout_seconds=settings.visit_timeout_seconds,
        max_items=settings.max_items,
        takes_pushes=settings.public_url is not None,
        secrets=settings.secrets,
        rules=rules_from(settings.address_rules),
    )


async def read_planner(store: Store, settings: Settings, rng: Random | None = None) -> Planner:
    """The planner with what the database says now."""
    rows, price, usual_rates = await store.read(_read_all)
    return replace(
        make_planner(settings, of_known_types(rows), price, rng or Random()), usual_rates=usual_rates
    )


async def read_intervals(store: Store, settings: Settings) -> dict[str, float]:
    """Minutes between visits by type, in force now."""
    return await store.read(intervals_in_force, settings)


def _read_all(connection: Connection) -> tuple[dict[str, float], Price | None, dict[str, float]]:
    return interval_settings(connection), read_price(connection), read_usual_rates(connection)


def make_planner(
    settings: Settings, stored_intervals: Mapping[str, float], price: Price | None, rng: Random
) -> Planner:
    limits = make_limits(settings)
    by_hand = {find_type(name).name for name in (*settings.fetch_intervals, *stored_intervals)}
    return Planner(
        interval_minutes=intervals_by_type(settings.fetch_intervals, stored_intervals),
        set_by_hand=frozenset(by_hand),
        policy=settings.policy,
        price_seconds=(price or begin_for(find_goal(settings), limits)).seconds,
        limits=limits,
        rng=rng,
        target_seconds=None if settings.freshness_minutes is None else 60.0 * settings.freshness_minutes,
        goal=(settings.budget_visits_per_day, settings.freshness_minutes, settings.freshness_percent),
    )


def make_limits(settings: Settings) -> Limits:
    """What the settings allow, whatever a policy thinks best."""
    return Limits(
        min_interval_seconds=settings.min_interval_seconds,
        max_interval_seconds=settings.max_interval_seconds,
        dormant_interval_seconds=settings.dormant_interval_seconds,
        backoff=settings.backoff,
        thresholds=Thresholds(settings.pause_after_failures, settings.error_after_failures),
    )
