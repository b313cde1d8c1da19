"""The engine: claims due sources in batches, visits them concurrently, settles them in groups.

    claim (batch) → waiting line → COLLECTOR_CONCURRENCY visits → settler (group commit)

Every stage waits for the next, so memory does not grow with the backlog. Stopping means: claim nothing more, let
what runs end, give the rest back.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self

from headwater import __version__
from headwater.collect.planning import Planner
from headwater.collect.settler import Settler
from headwater.collect.visit import Surroundings, failed_settlement, internal_failure, visit
from headwater.collectors.types import intervals_by_type
from headwater.config import Settings
from headwater.errors import StoreError
from headwater.fetch.client import Fetcher
from headwater.model import Source
from headwater.store.database import Store
from headwater.store.queue import Settlement, claim_due, claim_sources, next_due_at, release
from headwater.store.settings import interval_settings

log = logging.getLogger(__name__)

BATCH = 100
LEASE_MARGIN = (
    0.2  # of the longest visit, and MIN_LEASE_MARGIN at least, for waiting in line and being settled
)
MIN_LEASE_MARGIN_SECONDS = 5.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.2
RETRY_SECONDS = 2.0
MIN_SLEEP_SECONDS = 0.02


@dataclass(slots=True)
class Tally:
    """What an engine has done so far."""

    visits: int = 0
    failed: int = 0
    unchanged: int = 0
    skipped: int = 0
    items_new: int = 0
    items_updated: int = 0
    failures: list[tuple[Source, str]] = field(default_factory=list)

    def add(self, settlement: Settlement) -> None:
        record = settlement.visit
        self.visits += 1
        self.failed += record.outcome == "failed"
        self.unchanged += record.outcome == "unchanged"
        self.skipped += record.outcome == "skipped"
        self.items_new += record.items_new
        self.items_updated += record.items_updated
        if record.error_message is not None and record.outcome == "failed" and len(self.failures) < BATCH:
            self.failures.append((settlement.before, record.error_message))


class Engine:
    """Collects from one store. An async context manager; `collect_due`, `collect_sources` or `run` does the work."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        rng: Random | None = None,
        on_settled: Callable[[Settlement], None] = lambda settlement: None,
    ) -> None:
        self.tally = Tally()
        self._store = store
        self._settings = settings
        self._clock = clock
        self._rng = rng or Random()
        self._on_settled = on_settled
        self._fetcher = make_fetcher(settings)
        self._slots = asyncio.Semaphore(settings.collector_concurrency)
        self._visits: dict[asyncio.Task[None], Source] = {}
        self._wake = asyncio.Event()
        self._stopping = False

    async def __aenter__(self) -> Self:
        await self._fetcher.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._fetcher.__aexit__(*exc)

    @property
    def in_flight(self) -> int:
        return len(self._visits)

    def wake(self) -> None:
        """Look for due sources now."""
        self._wake.set()

    def stop(self) -> None:
        """Claim nothing more; what is under way may end, within a limit."""
        self._stopping = True
        self._wake.set()

    async def collect_due(self) -> bool:
        """Visit everything that is due, once. False when a stop had to cut visits short."""
        return await self._work(self._claim_until_none)

    async def collect_sources(self, source_ids: Iterable[int]) -> bool:
        """Visit exactly these sources now, whatever their plans say."""
        ids = list(source_ids)

        async def work(world: Surroundings, settler: Settler) -> None:
            for start in range(0, len(ids), BATCH):
                now = self._clock()
                part = ids[start : start + BATCH]
                claimed = await self._store.write(
                    claim_sources, part, now=now, lease_until=self._lease_end(now)
                )
                await self._start_visits(claimed, world, settler)

        return await self._work(work)

    async def run(self) -> bool:
        """Visit sources as they come due, until `stop`."""

        async def work(world: Surroundings, settler: Settler) -> None:
            while not self._stopping:
                try:
                    # A world of its own for every round: intervals set in the database take effect at once.
                    await self._claim_until_none(await self.surroundings(), settler)
                    await self._sleep()
                except StoreError as error:
                    if not error.passing:
                        raise
                    log.warning("%s; trying again in %g s", error, RETRY_SECONDS)
                    await asyncio.sleep(RETRY_SECONDS)

        return await self._work(work)

    async def _work(self, work: Callable[[Surroundings, Settler], Awaitable[None]]) -> bool:
        """Run `work` with a settler beside it, then let every visit end and every result be committed."""
        world = await self.surroundings()
        settler = Settler(
            self._store,
            expecting=lambda: bool(self._visits),
            on_settled=self._settled,
            on_refused=lambda settlement, error: failed_settlement(
                settlement.before, internal_failure(str(error)), world, settlement.visit.started_at
            ),
        )
        settling = asyncio.create_task(settler.run())
        working = asyncio.ensure_future(work(world, settler))
        try:
            # If the settler dies, the database is gone for good: its error is the one to raise.
            await asyncio.wait((working, settling), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            else:
                settling.result()
            return await self._drain()
        finally:
            working.cancel()
            if not settling.done():
                await settler.finish()
            await settling

    async def surroundings(self) -> Surroundings:
        """What a visit needs, with the intervals in force now."""
        stored = await self._store.read(interval_settings)
        intervals = intervals_by_type(self._settings.fetch_intervals, stored)
        return Surroundings(
            store=self._store,
            fetcher=self._fetcher,
            planner=Planner(intervals, self._rng),
            clock=self._clock,
            timeout_seconds=self._settings.visit_timeout_seconds,
        )

    def _lease_end(self, now: float) -> float:
        longest = self._settings.visit_timeout_seconds
        return now + longest + max(LEASE_MARGIN * longest, MIN_LEASE_MARGIN_SECONDS)

    async def _claim_until_none(self, world: Surroundings, settler: Settler) -> None:
        limit = min(BATCH, 2 * self._settings.collector_concurrency)
        while not self._stopping:
            now = self._clock()
            claimed = await self._store.write(
                claim_due, now=now, lease_until=self._lease_end(now), limit=limit
            )
            if not claimed:
                return
            await self._start_visits(claimed, world, settler)

    async def _start_visits(self, claimed: list[Source], world: Surroundings, settler: Settler) -> None:
        """Start a visit to each as slots come free; give back what a stop leaves over."""
        for position, source in enumerate(claimed):
            await self._slots.acquire()
            lease_left = (source.lease_until or 0) - self._clock()
            if self._stopping or lease_left < self._settings.visit_timeout_seconds:
                self._slots.release()
                await self._store.write(release, claimed[position:], now=self._clock())
                return
            task = asyncio.create_task(self._visit(source, world, settler))
            self._visits[task] = source
            task.add_done_callback(self._ended)

    async def _visit(self, source: Source, world: Surroundings, settler: Settler) -> None:
        await settler.put(await visit(source, world))

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._visits[task]
        self._slots.release()
        if not task.cancelled() and (error := task.exception()):
            log.error("a visit ended with an error of our own", exc_info=error)

    def _settled(self, settlement: Settlement) -> None:
        self.tally.add(settlement)
        self._on_settled(settlement)

    async def _sleep(self) -> None:
        """Until something is due, at the latest until the next tick, at once when woken."""
        first = await self._store.read(next_due_at)
        wait = self._settings.collector_tick
        if first is not None:
            wait = min(wait, max(first - self._clock(), MIN_SLEEP_SECONDS))
        if not self._stopping:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)
        self._wake.clear()

    async def _drain(self) -> bool:
        """Wait for running visits; after a stop, no longer than STOP_SECONDS, then give their leases back."""
        while self._visits and not self._stopping:
            await asyncio.wait(self._visits, timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if self._visits:
            await asyncio.wait(self._visits, timeout=STOP_SECONDS)
        if not self._visits:
            return True
        late = dict(self._visits)
        for task in late:
            task.cancel()
        await asyncio.wait(late)
        await self._store.write(release, list(late.values()), now=self._clock())
        return False


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
