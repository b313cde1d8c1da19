"""Tells open pages that something has happened: one look at the database a second, however many are watching."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

from headwater.errors import StoreError
from headwater.store.core.database import Store
from headwater.store.reports.changes import Marks, read_marks

EVERY_SECONDS: Final = 1.0
QUIET_SECONDS: Final = 15.0  # then a comment is sent, so that proxies keep the connection
LONGEST_SECONDS: Final = 300.0  # then the browser connects again, and its right to look is checked again
MOST_WATCHERS: Final = 100


class Changes:
    """What has changed since the last look, for all who wait for it."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._marks: Marks | None = None
        self._happened = asyncio.Condition()
        self._looking: asyncio.Task[None] | None = None
        self._watchers = 0
        self._is_closed = False

    @property
    def is_full(self) -> bool:
        return self._is_closed or self._watchers >= MOST_WATCHERS

    async def close(self) -> None:
        """End all streams: the process is about to end."""
        self._is_closed = True
        async with self._happened:
            self._happened.notify_all()

    async def stream(self) -> AsyncIterator[str]:
        """Server-sent events: `changed` with the names of what has changed."""
        self._watchers += 1
        try:
            if self._looking is None:
                self._looking = asyncio.create_task(self._look())
            yield "retry: 2000\n\n"
            seen: Marks | None = None  # the first look is told too: the page may be older than it
            end = asyncio.get_running_loop().time() + LONGEST_SECONDS
            while not self._is_closed and asyncio.get_running_loop().time() < end:
                if what := _differing(seen, self._marks):
                    yield f"event: changed\ndata: {' '.join(what)}\n\n"
                    seen = self._marks
                elif not await self._has_happened():
                    yield ": \n\n"
        finally:
            self._watchers -= 1
            if not self._watchers and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _has_happened(self) -> bool:
        """Wait for the next change, but not for ever."""
        try:
            async with asyncio.timeout(QUIET_SECONDS), self._happened:
                return await self._happened.wait()
        except TimeoutError:
            return False

    async def _look(self) -> None:
        while True:
            with suppress(StoreError):
                await self._compare(await self._store.read(read_marks, self._clock()))
            await asyncio.sleep(EVERY_SECONDS)

    async def _compare(self, marks: Marks) -> None:
        if marks != self._marks:
            self._marks = marks
            async with self._happened:
                self._happened.notify_all()


def _differing(before: Marks | None, now: Marks | None) -> list[str]:
    if now is None or before == now:
        return []
    return [name for name in Marks.__slots__ if before is None or getattr(before, name) != getattr(now, name)]
