"""Work on SQLite: the worker claims runs directly from their rows. Nothing to install, nothing to start."""

import asyncio
import logging
from functools import partial

from headwater.pipeline.advance import LEASE_SECONDS
from headwater.pipeline.limits import Pool
from headwater.pipeline.worker import Worker
from headwater.store.core.retry import retry_on_disconnect
from headwater.store.pipelines.runs import ClaimedRun, claim_runs, next_run_due_at

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5  # other processes start runs too: a read of one index
MIN_SLEEP_SECONDS = 0.02


async def run_from_rows(worker: Worker) -> None:
    """Claim and work, in each of the worker's pools, until it is to stop; then let what runs end."""
    async with asyncio.TaskGroup() as pools:
        for pool in worker.pools:
            if pool.step_types:
                pools.create_task(_Line(worker, pool).run())


class _Line:
    """One pool's claims and the runs it is working on."""

    def __init__(self, worker: Worker, pool: Pool) -> None:
        self._worker = worker
        self._pool = pool
        self._tasks: set[asyncio.Task[None]] = set()
        self._free = asyncio.Event()

    async def run(self) -> None:
        try:
            while not self._worker.stopping:
                claimed = await self._claim() if len(self._tasks) < self._pool.slots else []
                for run in claimed:
                    task = asyncio.create_task(self._worker.work_on(run, self._pool))
                    self._tasks.add(task)
                    task.add_done_callback(self._ended)
                await self._rest(claimed=bool(claimed))
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a run was left alone for an error of our own", exc_info=error)
        self._free.set()

    async def _claim(self) -> list[ClaimedRun]:
        now = self._worker.clock()
        claim = partial(
            claim_runs,
            limit=self._pool.slots - len(self._tasks),
            now=now,
            lease_until=now + LEASE_SECONDS,
            step_types=self._pool.step_types,
            in_hand=self._worker.in_hand,
            rates=self._worker.limits.rates,
        )
        return await retry_on_disconnect(
            lambda: self._worker.store.write(claim), give_up=lambda: self._worker.stopping
        )

    async def _rest(self, *, claimed: bool) -> None:
        """Until a slot is free and something may be due."""
        self._free.clear()
        if len(self._tasks) >= self._pool.slots:
            stopping = asyncio.create_task(self._worker.wait_for_stop(3_600))
            freed = asyncio.create_task(self._free.wait())
            await asyncio.wait((stopping, freed), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            freed.cancel()
        elif not claimed:
            await self._wait_for_due()

    async def _wait_for_due(self) -> None:
        """Until a run is due. It looks by reading: a claim that finds nothing would hold up the writers each time."""
        first = await self._next_due_at()
        while not self._worker.stopping:
            now = self._worker.clock()
            wait = LOOK_SECONDS if first is None or first <= now else first - now
            await self._worker.wait_for_stop(min(max(wait, MIN_SLEEP_SECONDS), LOOK_SECONDS))
            first = await self._next_due_at()
            if first is not None and first <= self._worker.clock():
                return

    async def _next_due_at(self) -> float | None:
        return await retry_on_disconnect(
            lambda: self._worker.store.read(next_run_due_at), give_up=lambda: self._worker.stopping
        )
