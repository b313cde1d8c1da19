"""Commits the results of many visits together: one transaction for all that ended within a moment."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from headwater.errors import StoreError
from headwater.store.database import Store
from headwater.store.patience import patiently
from headwater.store.queue import Settlement, settle

log = logging.getLogger(__name__)

GROUP_SIZE = 100
GROUP_SECONDS = 0.05
MOST_WAITING = 2 * GROUP_SIZE
MOST_WAITING_ITEMS = 20_000  # results are bounded by what is in them too, not only by how many there are


class Settler:
    """Takes settlements as visits end. `put` waits when commits fall behind, and so do the visits.

    `expecting` tells whether more can still come soon; when nothing can, a group does not wait to fill.
    `on_refused` makes, of a settlement the database will not take, one that records the failure.
    `give_up` tells when it is too late to wait for a database that is away.
    """

    def __init__(
        self,
        store: Store,
        *,
        expecting: Callable[[], bool],
        on_settled: Callable[[Settlement], None],
        on_refused: Callable[[Settlement, StoreError], Settlement],
        give_up: Callable[[], bool],
    ) -> None:
        self._store = store
        self._expecting = expecting
        self._on_settled = on_settled
        self._on_refused = on_refused
        self._give_up = give_up
        self._waiting: deque[Settlement] = deque()
        self._waiting_items = 0
        self._finishing = False
        self._broken = False
        self._changed = asyncio.Condition()

    async def put(self, settlement: Settlement) -> None:
        """Hand a result over. Once the settler has broken down, results go nowhere: their leases run out."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._has_room() or self._broken)
            if not self._broken:
                self._waiting.append(settlement)
                self._waiting_items += len(settlement.changes)
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._waiting) < MOST_WAITING and self._waiting_items < MOST_WAITING_ITEMS

    async def finish(self) -> None:
        """No more will come: `run` ends when everything is committed."""
        async with self._changed:
            self._finishing = True
            self._changed.notify_all()

    async def run(self) -> None:
        """Commit groups until `finish`. Raises when the database is gone for good."""
        try:
            while group := await self._next_group():
                await self._commit(group)
        finally:
            async with self._changed:
                self._broken = not self._finishing or bool(self._waiting)
                self._changed.notify_all()

    async def _next_group(self) -> list[Settlement]:
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._waiting) or self._finishing)
            try:
                async with asyncio.timeout(GROUP_SECONDS):
                    await self._changed.wait_for(
                        lambda: len(self._waiting) >= GROUP_SIZE or self._finishing or not self._expecting()
                    )
            except TimeoutError:
                pass  # the moment is over
            group = [self._waiting.popleft() for _ in range(min(GROUP_SIZE, len(self._waiting)))]
            self._waiting_items -= sum(len(settlement.changes) for settlement in group)
            self._changed.notify_all()
            return group

    async def _commit(self, group: list[Settlement]) -> None:
        try:
            settled = await self._write(group)
        except StoreError as error:
            if error.passing:
                raise
            if len(group) > 1:
                # One of them may be what the database refuses: the others must not pay for it.
                for settlement in group:
                    await self._commit([settlement])
                return
            log.warning("source %s: its visit cannot be stored: %s", group[0].before.id, error)
            group = [self._on_refused(group[0], error)]
            settled = await self._write(group)
        for settlement in group:
            if settlement.lease in settled:
                self._on_settled(settlement)
            else:
                log.warning("source %s: the visit came after its lease had passed on", settlement.before.id)

    async def _write(self, group: list[Settlement]) -> set[tuple[int, int]]:
        return await patiently(lambda: self._store.write(settle, group), give_up=self._give_up)
