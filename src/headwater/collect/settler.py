"""Commits the results of many visits together: one transaction for all that ended within a moment."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from headwater.errors import StoreError
from headwater.store.collecting.queue import Settlement, settle_batch, with_words
from headwater.store.core.database import Store
from headwater.store.core.retry import retry_on_disconnect
from headwater.threads import read_aside

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
        self._news = asyncio.Event()  # there may be a group to commit
        self._room = asyncio.Event()  # there may be room for results again

    async def put(self, settlement: Settlement) -> None:
        """Hand a result over. Once the settler has broken down, results are dropped: their leases expire."""
        while not self._has_room() and not self._broken:
            self._room.clear()
            await self._room.wait()
        if self._broken:
            return
        if settlement.visit.items_updated:
            settlement = await read_aside(settlement.visit.bytes_received, with_words, settlement)
        self._waiting.append(settlement)
        self._waiting_items += len(settlement.changes)
        # Woken for the first of a group and when it is full, not for every one: there are thousands a second.
        if len(self._waiting) in (1, GROUP_SIZE):
            self._news.set()

    def _has_room(self) -> bool:
        return len(self._waiting) < MOST_WAITING and self._waiting_items < MOST_WAITING_ITEMS

    async def finish(self) -> None:
        """No more will come: `run` ends when everything is committed."""
        self._finishing = True
        self._news.set()

    async def run(self) -> None:
        """Commit groups until `finish`. Raises when the database is gone for good."""
        try:
            while group := await self._next_group():
                await self._commit(group)
        finally:
            self._broken = not self._finishing or bool(self._waiting)
            self._room.set()

    async def _next_group(self) -> list[Settlement]:
        while not self._waiting and not self._finishing:
            await self._next_news()
        await asyncio.sleep(0)  # so that the visit whose result woke us is no longer expected
        try:
            async with asyncio.timeout(GROUP_SECONDS):
                while len(self._waiting) < GROUP_SIZE and self._expecting() and not self._finishing:
                    await self._next_news()
        except TimeoutError:
            pass  # the moment is over
        group = [self._waiting.popleft() for _ in range(min(GROUP_SIZE, len(self._waiting)))]
        self._waiting_items -= sum(len(settlement.changes) for settlement in group)
        self._room.set()
        return group

    async def _next_news(self) -> None:
        self._news.clear()
        await self._news.wait()

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
        return await retry_on_disconnect(
            lambda: self._store.write(settle_batch, group), give_up=self._give_up
        )
