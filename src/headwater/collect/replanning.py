"""Planning again what was planned of something that does not hold any more.

A plan is made of a policy, an interval, limits, and a budget or a freshness target. A checksum of them stands beside it
(`sources.planned_from`), so that a plan that is outdated can be told from one that is not:

    an edit of a source clears its checksum; the edit itself, or the next worker that looks, plans it again
    a setting, a type's interval or the environment changes all checksums; the first worker that notices walks through
    all sources and plans those again whose checksum differs

A new plan is made as of the last visit: a shorter interval makes due what it should have made due, and nothing else.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from random import Random
from typing import Any

from sqlalchemy import Connection

from headwater.collect.context import read_planner
from headwater.collect.planning import Planner
from headwater.collect.steering import PRICE_KEY, read_price
from headwater.config import Settings
from headwater.schedule.price import MAX_PRICE, MIN_PRICE
from headwater.store.collecting.plans import (
    has_outdated,
    lock_planned,
    outdated_ids,
    sources_after,
    write_plans,
)
from headwater.store.core.database import Store
from headwater.store.core.settings import get_setting, interval_settings, lock_setting, set_setting

log = logging.getLogger(__name__)

BATCH = 500
HELD_SECONDS = 1.0  # before another look at rows that another transaction keeps locked
BASIS_KEY = "plans"  # what all plans were last made of


def replan_sources(connection: Connection, source_ids: Iterable[int], planner: Planner) -> int:
    """Plan those of the sources again whose plan is outdated, but for those another transaction holds.

    Returns how many there were.
    """
    locked = lock_planned(connection, list(source_ids))
    planned = [
        (planner.replan(source), requested_at)
        for source, requested_at in locked
        if planner.is_outdated(source)
    ]
    write_plans(connection, planned)
    return len(planned)


class Replanner:
    """Keeps all plans up to date; the engine calls it in every round.

    Only what a worker has not seen before makes it walk through all sources: two that were started with different
    settings do not undo each other's work for ever.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Callable[[], float],
        rng: Random,
        *,
        again_after_seconds: float,
        give_up: Callable[[], bool],
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._again_after = again_after_seconds  # by then no worker plans by the old settings
        self._give_up = give_up
        self._basis: int | None = None
        self._again_at = math.inf
        self._held_until = -math.inf  # what is outdated cannot be had before
        self._intervals: dict[str, float] = {}

    def is_due(self, connection: Connection) -> bool:
        """Whether something has changed since the last `keep`."""
        if interval_settings(connection) != self._intervals:
            return True
        return self._clock() >= self._held_until and has_outdated(connection)

    async def keep(self) -> None:
        """Plan again what is outdated."""
        self._intervals = await self._store.read(interval_settings)
        planner = await read_planner(self._store, self._settings, self._rng)
        if planner.basis != self._basis and await self._store.read(_read_basis) != _as_stored(planner):
            await self._store.write(_follow_goal, planner, self._clock())
            planner = await read_planner(self._store, self._settings, self._rng)
            if not await self._walk(planner):
                return
            await self._store.write(set_setting, BASIS_KEY, _as_stored(planner), self._clock())
            self._again_at = self._clock() + self._again_after
        elif self._clock() >= self._again_at and await self._walk(planner):
            self._again_at = math.inf
        self._basis = planner.basis
        while not self._give_up() and (ids := await self._store.read(outdated_ids, BATCH)):
            if not await self._store.write(replan_sources, ids, planner):
                self._held_until = self._clock() + HELD_SECONDS
                break

    async def _walk(self, planner: Planner) -> bool:
        """Look at every source, a batch at a time; False when it is time to stop."""
        after, count = 0, 0
        while found := await self._store.read(sources_after, after, BATCH):
            if self._give_up():
                return False
            after = found[-1].id
            outdated = await asyncio.to_thread(
                lambda batch: [source.id for source in batch if planner.is_outdated(source)], found
            )
            if outdated:
                count += await self._store.write(replan_sources, outdated, planner)
        if count:
            log.info("settings have changed: planned %s sources again", count)
        return True


def _as_stored(planner: Planner) -> dict[str, Any]:
    return {"basis": planner.basis, "goal": list(planner.goal)}


def _read_basis(connection: Connection) -> Any:
    return get_setting(connection, BASIS_KEY)


def _follow_goal(connection: Connection, planner: Planner, now: float) -> None:
    """Let the price of a visit follow another budget or freshness target at once; steering does the rest."""
    lock_setting(connection, PRICE_KEY)
    stored, price = _read_basis(connection), read_price(connection)
    before = stored.get("goal") if isinstance(stored, dict) else None
    if price is None or not before or before == list(planner.goal):
        return
    seconds = price.seconds * _price_ratio(before, planner.goal)
    followed = replace(price, seconds=min(max(seconds, MIN_PRICE), MAX_PRICE), debt=0.0)
    set_setting(connection, PRICE_KEY, asdict(followed), now)


def _price_ratio(before: Sequence[float | None], after: Sequence[float | None]) -> float:
    """Visits go with the inverse square root of the price, delays with its square root."""
    (old_budget, old_target, *_), (budget, target, *_) = before, after
    if old_target and target:
        return (target / old_target) ** 2
    if old_target or target or not old_budget or not budget:
        return 1.0  # one kind of goal for another: only steering can tell
    return (old_budget / budget) ** 2
