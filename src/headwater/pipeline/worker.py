"""A worker: takes runs that are due, works on several at once, and gives everything back when it is told to stop.

How it hears of runs depends on the database (`runner` looks at the rows themselves on SQLite, `queue` is woken by
Procrastinate on PostgreSQL). What is done with a run is the same: step by step, each one committed, under a lease
that is renewed while the run is in hand.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from headwater.config import Settings
from headwater.errors import InputError, StoreError
from headwater.fetch.client import Fetcher
from headwater.pipeline.advance import (
    LEASE_SECONDS,
    Workbench,
    cancelled,
    handed_on,
    interrupted,
    perform,
)
from headwater.pipeline.batch import Batch
from headwater.pipeline.ledger import make_ledger
from headwater.pipeline.limits import Pool, make_pools, read_limits
from headwater.pipeline.registry import STEP_HANDLERS, find_step
from headwater.services.requests import secrets_for_steps
from headwater.services.targets import mail_defaults
from headwater.store.core.clock import DatabaseClock
from headwater.store.core.database import Store
from headwater.store.core.retry import retry_on_disconnect
from headwater.store.pipelines.runs import ClaimedRun, StepEnd, cancelled_among, commit_steps, renew_leases

log = logging.getLogger(__name__)

STOP_SECONDS = 30.0
LOOK_SECONDS = 1.0  # how soon a cancelled run is noticed
RENEW_SECONDS = LEASE_SECONDS / 4


@dataclass(slots=True)
class Tally:
    """What a worker has done so far."""

    steps: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, end: StepEnd) -> None:
        self.steps += 1
        self.completed += end.status == "completed"
        self.failed += end.status == "failed"
        self.skipped += end.status == "skipped"


@dataclass(slots=True)
class _InHand:
    run: ClaimedRun
    performing: "asyncio.Task[StepEnd] | None" = None
    why_stopped: Literal["cancelled", "interrupted", "lost"] | None = None

    def stop(self, why: Literal["cancelled", "interrupted", "lost"]) -> None:
        self.why_stopped = why
        if self.performing is not None:
            self.performing.cancel()


def _raise_first(working: "asyncio.Task[None]") -> None:
    """The task's error, if it ended with one: of those of its pools the first, which says what is wrong."""
    try:
        working.result()
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


class Worker:
    """Works on the runs of one store until `stop`.

    Without a `clock` of the caller's, the database's decides what is due and which leases have expired.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        fetcher: Fetcher | None,
        *,
        concurrency: int | None = None,
        only: Collection[str] = (),
        without: Collection[str] = (),
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.tally = Tally()
        self.store = store
        self._database_clock = DatabaseClock(store)  # unless the caller has one that counts
        self.clock = clock or self._database_clock
        self.limits = read_limits(settings.step_limits)
        for name in (*only, *without):
            find_step(name)
        step_types = set(only or STEP_HANDLERS) - set(without)
        if not step_types:
            raise InputError("there is no step type left for this worker")
        self.pools = make_pools(step_types, concurrency or settings.pipeline_concurrency or 1, self.limits)
        self._bench = Workbench(
            settings.data_dir / "files",
            fetcher,
            secrets_for_steps(settings.secrets),
            mail_defaults(settings),
            make_ledger(store, settings, self.clock),
            self.clock,
        )
        self._in_hand: dict[int, _InHand] = {}
        self._commits: Batch[StepEnd, bool] = Batch(self._commit, lambda: len(self._in_hand))
        self._stopping_since: float | None = None
        self._stop_event = asyncio.Event()

    @property
    def stopping(self) -> bool:
        return self._stopping_since is not None

    @property
    def in_hand(self) -> list[int]:
        """The runs being worked on."""
        return list(self._in_hand)

    def stop(self) -> None:
        """Take no more; the steps that run may end, within a limit."""
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
        self._stop_event.set()

    async def wait_for_stop(self, seconds: float) -> None:
        """Sleep, but no longer than until `stop`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop_event.wait()

    async def run(self) -> bool:
        """Work until `stop`. False when steps had to be cut short; they begin again elsewhere."""
        if self.store.is_sqlite:
            from headwater.pipeline.runner import run_from_rows as run_from
        else:
            from headwater.pipeline.queue import run_from_queue as run_from
        await retry_on_disconnect(self._set_clock, give_up=lambda: self.stopping)
        watching = asyncio.create_task(self._watch())
        working = asyncio.create_task(run_from(self))
        stopping = asyncio.create_task(self._stop_event.wait())
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            self.stop()  # if it ended unasked, there was an error
            done, _ = await asyncio.wait((working,), timeout=self._stop_seconds_left())
            in_time = bool(done)
            if not in_time:
                for each in self._in_hand.values():
                    each.stop("interrupted")
                await asyncio.wait((working,), timeout=STOP_SECONDS)
            if working.done():
                _raise_first(working)
            return in_time
        finally:
            for task in (working, watching, stopping):
                task.cancel()
            await asyncio.gather(working, watching, stopping, return_exceptions=True)

    async def _set_clock(self) -> None:
        if self.clock is self._database_clock and self._database_clock.is_stale:
            await self.store.read(self._database_clock.measure)

    def _stop_seconds_left(self) -> float:
        if self._stopping_since is None:
            return STOP_SECONDS
        return max(0.0, self._stopping_since + STOP_SECONDS - time.monotonic())

    async def work_on(self, run: ClaimedRun, pool: Pool) -> None:
        """Take a run as far as this pool can: step after step, each committed before the next."""
        current = _InHand(run)
        if run.id in self._in_hand:  # this process was frozen until its own lease expired
            self._in_hand[run.id].stop("lost")
        self._in_hand[run.id] = current
        try:
            while True:
                end = await self._perform(current)
                if end is None:
                    return
                if self.stopping or not self._goes_on(end, pool):
                    end = handed_on(end, self.clock())
                if not await self._commits.ask(end):
                    log.warning("run %s: a step ended after its lease had passed on", run.id)
                    return
                self.tally.add(end)
                if end.status == "failed":
                    log.warning("run %s failed: %s", run.id, end.error_message)
                if not end.keeps_lease:
                    return
                current.run = end.next_run()
        except StoreError as error:
            # Its lease expires, and another worker takes it from where it was.
            log.warning("run %s is left alone: %s", run.id, error)
        finally:
            if self._in_hand.get(run.id) is current:
                del self._in_hand[run.id]

    def _goes_on(self, end: StepEnd, pool: Pool) -> bool:
        """Whether this pool may do the next step at once: it runs the type, and the type's starts are not limited."""
        step_type = end.run.steps[end.index].step_type
        return step_type in pool.step_types and step_type not in self.limits.rates

    async def _perform(self, current: _InHand) -> StepEnd | None:
        current.performing = asyncio.create_task(perform(current.run, self._bench))
        try:
            if current.why_stopped is not None:
                current.performing.cancel()
            await asyncio.wait((current.performing,))
            if not current.performing.cancelled():
                return current.performing.result()
        except asyncio.CancelledError:
            current.performing.cancel()
            await asyncio.wait((current.performing,))
            raise
        finally:
            current.performing = None
        if current.why_stopped == "cancelled":
            return cancelled(current.run, self.clock())
        if current.why_stopped == "lost":
            return None
        return interrupted(current.run, self.clock())

    async def _commit(self, ends: list[StepEnd]) -> list[bool]:
        accepted = await retry_on_disconnect(
            lambda: self.store.write(commit_steps, ends), give_up=lambda: self._stop_seconds_left() <= 0
        )
        return [end.run.lease in accepted for end in ends]

    async def _watch(self) -> None:
        """Renew the leases of what is in hand, and notice what is to be stopped."""
        renewed_at = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._set_clock()
                if not self._in_hand:
                    renewed_at = time.monotonic()  # a run just claimed has its whole lease
                    continue
                for run_id in await self.store.read(cancelled_among, self.in_hand):
                    if run_id in self._in_hand:
                        self._in_hand[run_id].stop("cancelled")
                if time.monotonic() - renewed_at >= RENEW_SECONDS:
                    renewed_at = time.monotonic()
                    await self._renew()
            except StoreError as error:
                log.warning("leases could not be renewed: %s", error)

    async def _renew(self) -> None:
        leases = {each.run.lease for each in self._in_hand.values()}
        held = await self.store.write(renew_leases, leases, self.clock() + LEASE_SECONDS)
        for run_id, lease_no in leases - held:
            current = self._in_hand.get(run_id)
            # What ended while we looked is gone from our hands; what is still there has been taken from us.
            if current is not None and current.run.lease_no == lease_no and current.performing is not None:
                current.stop("lost")
