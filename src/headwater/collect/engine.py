"""The engine: claims due sources in batches, visits them concurrently, settles them in groups.

    claim (batch) → host queues → COLLECTOR_CONCURRENCY visits → settler (group commit)

Every stage waits for the next, so memory does not grow with the backlog. Stopping means: claim nothing more, let
what runs end within STOP_SECONDS, give the rest back.
"""

import asyncio
import contextlib
import logging
import math
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self, TypeVar

from sqlalchemy import Connection

from headwater.collect.bookmarks import BookmarkFetcher
from headwater.collect.context import VisitContext, make_limits, read_visit_context
from headwater.collect.host_queues import HostQueues
from headwater.collect.logbook import Logbook
from headwater.collect.outage import NETWORK_KINDS, OutageDetector
from headwater.collect.push import Subscriber
from headwater.collect.replanning import Replanner
from headwater.collect.settler import Settler
from headwater.collect.steering import find_goal, steer_price
from headwater.collect.upkeep import Upkeep
from headwater.collect.visit import failed_settlement, internal_failure, visit
from headwater.config import Settings
from headwater.errors import StoreError
from headwater.fetch.client import make_fetcher
from headwater.fetch.memory_budget import holding_responses
from headwater.model import Source
from headwater.schedule.price import STEER_EVERY_SECONDS
from headwater.store.collecting.outages import TOLD_EVERY_SECONDS, clear_outage, mark_outage
from headwater.store.collecting.queue import Settlement, claim_due, claim_sources, next_due_at, release_leases
from headwater.store.collecting.sources import next_enabled_ids
from headwater.store.core.clock import DatabaseClock
from headwater.store.core.database import Store
from headwater.store.core.notify import Listener
from headwater.store.core.retry import retry_on_disconnect

log = logging.getLogger(__name__)

BATCH = 100
IDS_AT_ONCE = 10_000  # read ahead of the visits, where all sources are visited
LEASE_MARGIN = (
    0.2  # of the longest visit, and MIN_LEASE_MARGIN at least, for waiting in line and being settled
)
MIN_LEASE_MARGIN_SECONDS = 5.0
STOP_SECONDS = 30.0
SLOW_SECONDS = 1.0  # of a visit, after which it no longer takes another's place
LOOK_SECONDS = 1.0
MIN_SLEEP_SECONDS = 0.02
HELD_SECONDS = 0.1  # before another look at due sources that another transaction keeps locked

T = TypeVar("T")


@dataclass(slots=True)
class Tally:
    """What an engine has done so far."""

    visits: int = 0
    failed: int = 0
    unchanged: int = 0
    skipped: int = 0
    items_new: int = 0
    items_updated: int = 0
    elsewhere: int = 0  # asked for by name, but being visited by another collector
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
    """Collects from one store. An async context manager; `collect_due`, `collect_sources` or `run` does the work.

    Without a `clock` of the caller's, the database's decides what is due and which leases have expired.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        clock: Callable[[], float] | None = None,
        rng: Random | None = None,
        on_settled: Callable[[Settlement], None] = lambda settlement: None,
    ) -> None:
        self.tally = Tally()
        self._store = store
        self._settings = settings
        self._database_clock = DatabaseClock(store)  # unless the caller has one that counts
        self._clock = clock or self._database_clock
        self._rng = rng or Random()
        self._on_settled = on_settled
        self._fetcher = make_fetcher(settings)
        self._host_queues = HostQueues(settings.host_concurrency, settings.host_spacing_seconds)
        self._visits: dict[asyncio.Task[None], Source] = {}
        self._slow: set[asyncio.Task[None]] = set()  # of the visits, those that take long
        self._began: dict[asyncio.Task[None], float] = {}  # when each visit did
        self._looking: asyncio.TimerHandle | None = None
        self._context: VisitContext | None = None
        self._settler: Settler | None = None
        self._outages = OutageDetector()
        self._logbook: Logbook | None = None
        self._machine = socket.gethostname()
        self._outage_since: float | None = None
        self._outage_told_at = 0.0
        self._steered_at = 0.0
        self._on_given_back: Callable[[int], None] = lambda source_id: None  # claimed, but not visited
        self._found_nothing_at = -math.inf  # there was nothing to claim, since the last sleep
        self._asleep_until = -math.inf  # when it looks at the line again, unless it is woken
        self._wake = asyncio.Event()  # something may be due
        self._listener = Listener(store, self.wake)
        self._upkeep = Upkeep(store, settings, self._clock, give_up=lambda: self._stopping)
        self._keeping_up: asyncio.Task[None] | None = None
        self._replanner = Replanner(
            store,
            settings,
            self._clock,
            self._rng,
            # By then every worker has read the settings again, and what it visited before is settled.
            again_after_seconds=settings.collector_tick + self._lease_end(0.0),
            give_up=lambda: self._stopping,
        )
        self._progress = asyncio.Event()  # a visit has ended
        self._stopping_since: float | None = None

    async def __aenter__(self) -> Self:
        await self._set_clock()
        await self._fetcher.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._fetcher.__aexit__(*exc)

    @property
    def clock(self) -> Callable[[], float]:
        """The time by which it works."""
        return self._clock

    async def _set_clock(self) -> None:
        if self._clock is self._database_clock and self._database_clock.is_stale:
            await self._retry(lambda: self._store.read(self._database_clock.measure))

    @property
    def in_flight(self) -> int:
        return len(self._visits)

    @property
    def _stopping(self) -> bool:
        return self._stopping_since is not None

    def wake(self) -> None:
        """Something may have come due: look at once."""
        self._wake.set()

    def stop(self) -> None:
        """Claim nothing more; what is under way may end, within a limit."""
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
        self._wake.set()
        self._progress.set()

    def _stop_seconds_left(self) -> float:
        if self._stopping_since is None:
            return STOP_SECONDS
        return self._stopping_since + STOP_SECONDS - time.monotonic()

    async def collect_due(self) -> bool:
        """Visit everything that is due now, once. False when a stop had to cut visits short."""
        waiting: deque[int] = deque()  # those whose host's line was full
        self._on_given_back = waiting.append
        now = self._clock()

        async def work() -> None:
            # What comes due while this goes on is for the next run, or it might never end.
            await self._claim_until_none(due_by=now)
            await self._visit_named(waiting)

        return await self._work(work)

    async def collect_sources(self, source_ids: Iterable[int]) -> bool:
        """Visit exactly these sources now, whatever their plans say."""
        waiting = deque(source_ids)
        self._on_given_back = waiting.append
        return await self._work(lambda: self._visit_named(waiting))

    async def collect_all(self) -> bool:
        """Visit every source that is not paused now, whatever their plans say."""
        waiting: deque[int] = deque()
        self._on_given_back = waiting.append
        last = 0

        async def read_more() -> list[int]:
            nonlocal last
            found = await self._retry(lambda: self._store.read(next_enabled_ids, last, IDS_AT_ONCE))
            last = found[-1] if found else last
            return found

        return await self._work(lambda: self._visit_named(waiting, read_more))

    async def _visit_named(
        self, waiting: deque[int], read_more: Callable[[], Awaitable[list[int]]] | None = None
    ) -> None:
        while not self._stopping and (waiting or self._visits or read_more):
            if read_more and not waiting:
                waiting.extend(more := await read_more())
                read_more = read_more if more else None
            if waiting and await self._has_room():
                part = [waiting.popleft() for _ in range(min(self._claim_limit(), len(waiting)))]
                claimed = await self._claim(claim_sources, part)
                self.tally.elsewhere += len(part) - len(claimed)
                if not await self._line_up(claimed):
                    continue
            # The rest waits for hosts that are busy, or for nothing but the visits under way.
            await self._next_progress()

    async def run(self) -> bool:
        """Visit sources as they come due, until `stop`."""

        async def work() -> None:
            while not self._stopping:
                await self._steer()
                await self._retry(self._replanner.keep)
                # Made again every round: what is set in the database takes effect at once.
                self._context = await self._retry(self._read_context)
                if self._upkeep.may_be_due and (self._keeping_up is None or self._keeping_up.done()):
                    self._keeping_up = asyncio.create_task(self.keep_up())
                await self._claim_until_none(for_seconds=self._settings.collector_tick)
                await self._sleep()

        self._logbook = logbook = Logbook()
        listening = asyncio.create_task(self._listener.run())
        subscriber = Subscriber(self._store, self._settings.public_url, self._fetcher, self._clock)
        bookmarks = BookmarkFetcher(self._store, self._fetcher, self._clock)
        beside = (listening, asyncio.create_task(subscriber.run()), asyncio.create_task(bookmarks.run()))
        try:
            return await self._work(work)
        finally:
            logbook.sum_up(self.in_flight, now=True)
            for task in beside:
                task.cancel()
            await asyncio.wait((*beside, *((self._keeping_up,) if self._keeping_up else ())))

    async def keep_up(self) -> None:
        """Do the hourly upkeep, if it is time for it and no other worker does it."""
        try:
            await self._upkeep.run_if_due()
        except StoreError as error:
            log.warning("upkeep: %s; it goes on another time", error)
        except Exception:
            log.exception("upkeep: unexpected error")

    async def _work(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Run `work` with a settler beside it, then let every visit end and every result be committed."""
        await self._steer()  # here too, for collecting from cron
        await self._retry(self._replanner.keep)
        self._context = context = await self._retry(self._read_context)
        self._settler = settler = Settler(
            self._store,
            expecting=lambda: bool(self._visits),
            on_settled=self._settled,
            on_refused=lambda settlement, error: failed_settlement(
                settlement.before, internal_failure(str(error)), context, settlement.visit.started_at
            ),
            give_up=lambda: self._stop_seconds_left() <= 0,
        )
        settling = asyncio.create_task(settler.run())
        working = asyncio.ensure_future(work())
        try:
            # If the settler dies, the database is gone for good: its error is the one to raise.
            await asyncio.wait((working, settling), return_when=asyncio.FIRST_COMPLETED)
            failed = working.exception() if working.done() else None
            in_time = await self._drain(settling)
            if failed is not None and not self._is_beside_the_point(failed):
                raise failed
            return in_time
        finally:
            working.cancel()
            left_over = await self._cut_off()
            await settler.finish()
            await settling
            if left_over:  # stopped at once, or by an error: their leases need not expire first
                with contextlib.suppress(StoreError):
                    await self._store.write(release_leases, left_over)

    def _is_beside_the_point(self, failed: BaseException) -> bool:
        """Whether it is a look into a busy database that was given up because we were told to stop."""
        return self._stopping and isinstance(failed, StoreError) and failed.passing

    async def _read_context(self) -> VisitContext:
        return await read_visit_context(
            self._store,
            self._settings,
            self._fetcher,
            outages=self._outages,
            clock=self._clock,
            rng=self._rng,
        )

    async def _steer(self) -> None:
        """Keep the fleet's price of a visit up to date; other workers may be faster."""
        now = self._clock()
        if abs(now - self._steered_at) >= STEER_EVERY_SECONDS:
            price = await self._retry(
                lambda: self._store.write(
                    steer_price, find_goal(self._settings), make_limits(self._settings), now
                )
            )
            self._steered_at = price.at

    async def _tell_outage(self) -> None:
        """Leave a mark while our own network is down, for every process to see; take it away afterwards."""
        now = self._clock()
        if not self._outages.is_ours(now):
            if self._outage_since is not None:
                self._outage_since = None
                log.warning("our network is back")
                await self._retry(lambda: self._store.write(clear_outage, self._machine))
        elif self._outage_since is None or now - self._outage_told_at >= TOLD_EVERY_SECONDS:
            if self._outage_since is None:
                log.warning(
                    "most hosts fail at once: our own network is down, and no source is blamed for it"
                )
            self._outage_since = since = self._outage_since or now
            self._outage_told_at = now
            await self._retry(lambda: self._store.write(mark_outage, self._machine, since, now))

    async def _retry(self, work: Callable[[], Awaitable[T]]) -> T:
        return await retry_on_disconnect(work, give_up=lambda: self._stopping)

    def _claim_limit(self) -> int:
        return min(BATCH, 2 * self._settings.collector_concurrency)

    async def _claim(
        self, claim: Callable[..., list[Source]], *which: object, **more: object
    ) -> list[Source]:
        await self._set_clock()
        now = self._clock()
        return await self._retry(
            lambda: self._store.write(claim, *which, now=now, lease_until=self._lease_end(now), **more)
        )

    def _lease_end(self, now: float) -> float:
        longest = self._settings.visit_timeout_seconds
        return now + longest + max(LEASE_MARGIN * longest, MIN_LEASE_MARGIN_SECONDS)

    async def _claim_until_none(self, due_by: float | None = None, for_seconds: float = math.inf) -> None:
        until = time.monotonic() + for_seconds  # however much is due, other things must get their turn
        crowded = False
        while time.monotonic() < until and await self._has_room():
            # Behind the many sources of one busy host stand others: they are reached in larger steps.
            limit = BATCH if crowded else self._claim_limit()
            began_at = self._clock()
            claimed = await self._claim(claim_due, limit, due_by=due_by)
            if not claimed:
                self._found_nothing_at = began_at
                return
            crowded = await self._line_up(claimed)

    async def _has_room(self) -> bool:
        """Wait until more sources can be used; False when it is time to stop."""
        while not self._stopping and self._host_queues.ready >= self._settings.collector_concurrency:
            await self._next_progress()
        return not self._stopping

    async def _next_progress(self) -> None:
        self._progress.clear()
        if self._visits and not self._stopping:
            await self._progress.wait()

    async def _line_up(self, claimed: list[Source]) -> bool:
        """Give every source its visit as slots and hosts come free; send those away whose host's line is full.

        Returns whether any was sent away.
        """
        in_flight = {source.id for source in self._visits.values()}
        late = self._host_queues.add(source for source in claimed if source.id not in in_flight)
        self._fill_slots()
        if late:
            now = self._clock()
            due_at = {source.id: now + seconds for source, seconds in late}
            await self._retry(
                lambda: self._store.write(release_leases, [source for source, _ in late], due_at)
            )
            for source, _ in late:
                self._on_given_back(source.id)
        return bool(late)

    def _fill_slots(self) -> None:
        limit = self._settings.collector_concurrency
        while not self._stopping and len(self._visits) - len(self._slow) < limit:
            source = self._host_queues.take()
            if source is None:
                break
            task = asyncio.create_task(self._visit(source))
            self._visits[task] = source
            self._began[task] = time.monotonic()
            task.add_done_callback(self._ended)
            if self._looking is None:
                self._look_for_slow()

    def _look_for_slow(self) -> None:
        """Let long visits hold up no others: others begin beside them, up to a limit."""
        room = self._settings.slow_visits - len(self._slow)
        since = time.monotonic() - SLOW_SECONDS
        late = [task for task, began in self._began.items() if began < since and task not in self._slow]
        self._slow.update(late[: max(room, 0)])
        self._looking = None
        if self._visits:
            self._looking = asyncio.get_running_loop().call_later(SLOW_SECONDS / 4, self._look_for_slow)
            if late:
                self._fill_slots()
                self._progress.set()

    async def _visit(self, source: Source) -> None:
        assert self._context is not None and self._settler is not None  # noqa: S101 - set by _work
        started = time.monotonic()
        try:
            lease_left = (source.lease_until or 0) - self._clock()
            if lease_left < self._settings.visit_timeout_seconds:
                # It has waited so long that the visit might outlast the lease.
                await self._give_back(source)
            else:
                with holding_responses():
                    await self._settler.put(await visit(source, self._context))
        except StoreError as error:
            # No fault of the source's: it is due again as it was.
            log.warning("source %s: %s", source.id, error)
            await self._give_back(source)
        finally:
            self._host_queues.done(source, time.monotonic() - started)

    async def _give_back(self, source: Source) -> None:
        await self._retry(lambda: self._store.write(release_leases, [source]))
        self._on_given_back(source.id)

    def _ended(self, task: asyncio.Task[None]) -> None:
        source = self._visits.pop(task)
        self._slow.discard(task)
        del self._began[task]
        if not task.cancelled() and (error := task.exception()):
            log.error("source %s: a visit ended with an error of our own", source.id, exc_info=error)
        self._fill_slots()
        # While there are sources in line for every slot, no caller waits to hear of each of thousands of visits.
        if self._host_queues.ready < self._settings.collector_concurrency or not self._visits:
            self._progress.set()

    def _settled(self, settlement: Settlement) -> None:
        self.tally.add(settlement)
        if settlement.visit.error_kind in NETWORK_KINDS or self._outage_since is not None:
            self._wake.set()  # an outage may have begun or ended
        if (settlement.after.next_fetch_at or math.inf) < self._asleep_until:
            self._wake.set()  # it was not in line when the others were looked at
        if self._logbook is not None:
            self._logbook.note(settlement)
            self._logbook.sum_up(self.in_flight)
        self._on_settled(settlement)

    async def _sleep(self) -> None:
        """Until something is due, at the latest until the next tick, at once when woken.

        Other processes add sources and ask for refreshes too. Where they cannot announce it, the head of the line
        is looked at every LOOK_SECONDS: one read of an index.
        """
        self._asleep_until = until = self._clock() + self._settings.collector_tick
        tried_at, self._found_nothing_at = self._found_nothing_at, -math.inf
        while not self._stopping:
            self._wake.clear()  # before the look: what is announced from here on may be missing in it
            await self._set_clock()
            await self._tell_outage()
            now = self._clock()
            first, is_outdated = await self._retry(lambda: self._store.read(self._look))
            if is_outdated:
                break
            if first is not None and first <= now:
                if first <= tried_at:  # and could not be had
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._wake.wait(), HELD_SECONDS)
                break
            tried_at = -math.inf
            wait = min(until, until if first is None else first) - now
            if wait <= 0:
                break
            if not self._listener.is_listening:
                wait = min(wait, LOOK_SECONDS)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), max(wait, MIN_SLEEP_SECONDS))

    def _look(self, connection: Connection) -> tuple[float | None, bool]:
        return next_due_at(connection, self._clock()), self._replanner.is_due(connection)

    async def _drain(self, settling: asyncio.Task[None]) -> bool:
        """Wait for running visits; after a stop, no longer than STOP_SECONDS, then give their leases back."""
        while self._visits and not settling.done() and self._stop_seconds_left() > 0:
            await asyncio.wait(
                (*self._visits, settling),
                timeout=min(self._stop_seconds_left(), LOOK_SECONDS),
                return_when=asyncio.FIRST_COMPLETED,
            )
        if settling.done():
            settling.result()
        in_time = not self._visits
        if left_over := await self._cut_off():
            await retry_on_disconnect(
                lambda: self._store.write(release_leases, left_over),
                give_up=lambda: self._stop_seconds_left() <= 0,
            )
        return in_time

    async def _cut_off(self) -> list[Source]:
        """End every visit now. Returns the sources that were claimed and not visited."""
        unbegun = self._host_queues.clear()
        late = dict(self._visits)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        return [*unbegun, *late.values()]
