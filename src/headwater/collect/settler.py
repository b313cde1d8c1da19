"""Commits the results of many visits together: one transaction for all that ended within a moment."""

import asyncio
import logging
from collections.abc import Callable

from headwater.errors import StoreError
from headwater.store.database import Store
from headwater.store.queue import Settlement, settle

log = logging.getLogger(__name__)

GROUP_SIZE = 100
GROUP_SECONDS = 0.05
RETRY_SECONDS = (0.2, 0.5, 1, 2, 5, 10, 10)


class Settler:
    """Takes settlements as visits end. `put` waits when commits fall behind, and so do the visits.

    `expecting` tells whether more can still come soon; when nothing can, a group does not wait to fill.
    `on_refused` makes, of a settlement the database will not take, one that records the failure.
    """

    def __init__(
        self,
        store: Store,
        *,
        expecting: Callable[[], bool],
        on_settled: Callable[[Settlement], None],
        on_refused: Callable[[Settlement, StoreError], Settlement],
    ) -> None:
        self._store = store
        self._expecting = expecting
        self._on_settled = on_settled
        self._on_refused = on_refused
        self._queue: asyncio.Queue[Settlement | None] = asyncio.Queue(2 * GROUP_SIZE)

    async def put(self, settlement: Settlement) -> None:
        await self._queue.put(settlement)

    async def finish(self) -> None:
        """No more will come: `run` ends when everything is committed."""
        await self._queue.put(None)

    async def run(self) -> None:
        """Commit groups until `finish`."""
        open_ = True
        while open_:
            first = await self._queue.get()
            if first is None:
                return
            group = [first]
            deadline = asyncio.get_running_loop().time() + GROUP_SECONDS
            while len(group) < GROUP_SIZE and open_:
                try:
                    settlement = self._queue.get_nowait()
                except asyncio.QueueEmpty:
                    wait = deadline - asyncio.get_running_loop().time()
                    if wait <= 0 or not self._expecting():
                        break
                    try:
                        settlement = await asyncio.wait_for(self._queue.get(), wait)
                    except TimeoutError:
                        break
                if settlement is None:
                    open_ = False
                else:
                    group.append(settlement)
            await self._commit(group)

    async def _commit(self, group: list[Settlement]) -> None:
        try:
            settled = await self._write(group)
        except StoreError as error:
            if len(group) > 1:
                # One of them may be what the database refuses: the others must not pay for it.
                for settlement in group:
                    await self._commit([settlement])
                return
            log.warning("source %s: its visit cannot be stored: %s", group[0].before.id, error)
            group = [self._on_refused(group[0], error)]
            settled = await self._write(group)
        for settlement in group:
            if settlement.before.id in settled:
                self._on_settled(settlement)
            else:
                log.warning("source %s: the visit came after its lease had passed on", settlement.before.id)

    async def _write(self, group: list[Settlement]) -> set[int]:
        """Commit, waiting out a database that is away for a moment."""
        for pause in RETRY_SECONDS:
            try:
                return await self._store.write(settle, group)
            except StoreError as error:
                if not error.passing:
                    raise
                log.warning("%s; trying again in %g s", error, pause)
                await asyncio.sleep(pause)
        return await self._store.write(settle, group)
