"""Some weeks of collecting in fast time, through the real fetcher, parser, policy and store.

Each source is visited at the moments its own plans name, from WEEKS ago until now. Sources do not wait for each other:
in every round each makes its next visit, with its own clock, which the publisher goes by too. All visits of a round are
settled in one transaction, which claims those of the next.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from headwater.collect.context import VisitContext, read_visit_context
from headwater.collect.visit import visit
from headwater.config import Settings
from headwater.fetch.client import Fetcher
from headwater.model import Source
from headwater.states import next_visit_at
from headwater.store.collecting.queue import Settlement, claim_sources, settle_batch
from headwater.store.core.database import Store

LEASE_SECONDS = 60.0
READ_AGAIN_EVERY = 50  # rounds: the planner follows what was learnt of the fleet


class Clocks:
    """The time at each source of the publisher while weeks are replayed; the real time otherwise."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: dict[str, float] = {}

    def set(self, path: str, at: float) -> None:
        self._times[path] = at

    def run(self) -> None:
        """From now on time is real."""
        self._times.clear()

    def at(self, path: str) -> float:
        return self._times.get(path) or self._clock()


async def replay(
    store: Store, settings: Settings, fetcher: Fetcher, times: dict[int, float], end: float, clocks: Clocks
) -> int:
    """Visit the sources in `times` from the moment given for each until `end`. Returns the number of visits."""
    context = await read_visit_context(store, settings, fetcher, clock=lambda: end)
    visits = rounds = 0
    settlements: list[Settlement] = []
    while True:
        # Nothing else happens meanwhile, so this need not wait for another thread, thousands of times.
        with store.writing() as connection:
            settle_batch(connection, settlements)
            claimed = claim_sources(connection, list(times), now=end, lease_until=end + LEASE_SECONDS)
        if not claimed:
            return visits
        visiting = (_visit_at(source, times[source.id], context, clocks) for source in claimed)
        settlements = await asyncio.gather(*visiting)
        visits += len(settlements)
        rounds += 1
        times = {each.before.id: at for each in settlements if (at := _next(each)) is not None and at < end}
        if rounds % READ_AGAIN_EVERY == 0:
            context = await read_visit_context(store, settings, fetcher, clock=lambda: end)


async def _visit_at(source: Source, at: float, context: VisitContext, clocks: Clocks) -> Settlement:
    clocks.set(source.url, at)
    return await visit(source, replace(context, clock=lambda: at))


def _next(settlement: Settlement) -> float | None:
    return next_visit_at(settlement.after)
