"""The engine: claims due sources in batches, visits them concurrently, settles them in groups.

    claim (batch) → lanes (by host) → COLLECTOR_CONCURRENCY visits → settler (group commit)

Every stage waits for the next, so memory does not grow with the backlog. Stopping means: claim nothing more, let
what runs end, give the rest back.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self

from headwater import __version__
from headwater.collect.lanes import Lanes
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
LOOK_SECONDS = 1.0
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
        self._lanes = Lanes(settings.host_concurrency, settings.host_spacing_seconds)
        self._visits: dict[asyncio.Task[None], Source] = {}
        self._world: Surroundings | None = None
        self._settler: Settler | None = None
        self._late_until = 0.0  # when the last source that was told to come back later is due
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
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
        self._room.set()

    async def collect_due(self) -> bool:
        """Visit everything that is due, once. False when a stop had to cut visits short."""

        async def work() -> None:
            await self._claim_until_none()
            while not self._stopping and self._late_until > self._clock():
                await self._sleep()
                await self._claim_until_none()

        return await self._work(work)

    async def collect_sources(self, source_ids: Iterable[int]) -> bool:
        """Visit exactly these sources now, whatever their plans say."""
        waiting = deque(source_ids)

        async def work() -> None:
            while waiting and await self._has_room():
                part = [waiting.popleft() for _ in range(min(BATCH, len(waiting)))]
                now = self._clock()
                claimed = await self._store.write(
                    claim_sources, part, now=now, lease_until=self._lease_end(now)
                )
                waiting.extend(source.id for source in await self._line_up(claimed))
                if len(waiting) == len(part):  # all of them wait for their hosts
                    await asyncio.sleep(POLL_SECONDS)

        return await self._work(work)

    async def run(self) -> bool:
        """Visit sources as they come due, until `stop`."""

        async def work() -> None:
            while not self._stopping:
                try:
                    # Made anew every round: intervals set in the database take effect at once.
                    self._world = await self.surroundings()
                    await self._claim_until_none()
                    await self._sleep()
                except StoreError as error:
                    if not error.passing:
                        raise
                    log.warning("%s; trying again in %g s", error, RETRY_SECONDS)
                    await asyncio.sleep(RETRY_SECONDS)

        return await self._work(work)

    async def _work(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Run `work` with a settler beside it, then let every visit end and every result be committed."""
        self._world = world = await self.surroundings()
        self._settler = settler = Settler(
            self._store,
            expecting=lambda: bool(self._visits),
            on_settled=self._settled,
            on_refused=lambda settlement, error: failed_settlement(
                settlement.before, internal_failure(str(error)), world, settlement.visit.started_at
            ),
        )
        settling = asyncio.create_task(settler.run())
        working = asyncio.ensure_future(work())
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
            for task in self._visits:
                task.cancel()
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

    async def _claim_until_none(self) -> None:
        limit = min(BATCH, 2 * self._settings.collector_concurrency)
        while await self._has_room():
            now = self._clock()
            claimed = await self._store.write(
                claim_due, now=now, lease_until=self._lease_end(now), limit=limit
            )
            if not claimed:
                return
            await self._line_up(claimed)

    async def _has_room(self) -> bool:
        """Wait until more sources can be used; False when it is time to stop."""
        if self._lanes.ready >= self._settings.collector_concurrency:
            self._room.clear()
            await self._room.wait()
        return not self._stopping

    async def _line_up(self, claimed: list[Source]) -> list[Source]:
        """Give every source its visit as slots and hosts come free; answers those sent away for now."""
        late = self._lanes.add(claimed)
        self._fill_slots()
        if late:
            now = self._clock()
            self._late_until = max(self._late_until, *(now + seconds for _, seconds in late))
            await self._store.write(release, [(source, now + seconds) for source, seconds in late])
        return [source for source, _ in late]

    def _fill_slots(self) -> None:
        while not self._stopping and len(self._visits) < self._settings.collector_concurrency:
            source = self._lanes.take()
            if source is None:
                break
            task = asyncio.create_task(self._visit(source))
            self._visits[task] = source
            task.add_done_callback(self._ended)
        if self._lanes.ready < self._settings.collector_concurrency:
            self._room.set()

    async def _visit(self, source: Source) -> None:
        assert self._world is not None and self._settler is not None  # noqa: S101 - set by _work
        started = time.monotonic()
        try:
            lease_left = (source.lease_until or 0) - self._clock()
            if lease_left < self._settings.visit_timeout_seconds:
                # It has waited so long that the visit might outlast the lease.
                await self._store.write(release, [(source, self._clock())])
            else:
                await self._settler.put(await visit(source, self._world))
        finally:
            self._lanes.done(source, time.monotonic() - started)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._visits[task]
        if not task.cancelled() and (error := task.exception()):
            log.error("a visit ended with an error of our own", exc_info=error)
        self._fill_slots()

    def _settled(self, settlement: Settlement) -> None:
        self.tally.add(settlement)
        self._on_settled(settlement)

    async def _sleep(self) -> None:
        """Until something is due, at the latest until the next tick, at once when woken.

        Other processes add sources and ask for refreshes too, so the head of the line is looked at every
        LOOK_SECONDS: one read of an index.
        """
        until = self._clock() + self._settings.collector_tick
        while not self._stopping:
            now = self._clock()
            first = await self._store.read(next_due_at)
            if first is not None and first <= now:
                break
            wait = min(until - now, LOOK_SECONDS, first - now if first is not None else LOOK_SECONDS)
            if wait <= 0:
                break
            try:
                await asyncio.wait_for(self._wake.wait(), max(wait, MIN_SLEEP_SECONDS))
                break
            except TimeoutError:
                continue
        self._wake.clear()

    async def _drain(self) -> bool:
        """Wait for running visits; after a stop, no longer than STOP_SECONDS, then give their leases back."""
        while self._visits and not self._stopping:
            await asyncio.wait(self._visits, timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        unbegun = self._lanes.clear()
        if self._visits:
            await asyncio.wait(self._visits, timeout=STOP_SECONDS)
        late = dict(self._visits)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        now = self._clock()
        left_over = [*unbegun, *late.values()]
        if left_over:
            await self._store.write(release, [(source, now) for source in left_over])
        return not late


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
