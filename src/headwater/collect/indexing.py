"""Search sees what was collected within seconds: new items go into the index beside the visits, a few at a time.

Any worker does it for the items it finds, whoever stored them. What is left undone when it ends is done by the next,
or by whoever searches.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from headwater.errors import StoreError
from headwater.store.database import Store
from headwater.store.search import Front, index_new_items

log = logging.getLogger(__name__)

BATCH = 100
GATHER_SECONDS = 0.5  # for what is stored together to go into the same batch
LAST_SECONDS = 2.0  # for what is left at the end


class Indexer:
    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._news = asyncio.Event()
        self._front = Front()

    def note_news(self) -> None:
        """There are new items."""
        self._news.set()

    async def run(self) -> None:
        """Index whenever there is news, until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(GATHER_SECONDS)
            while self._news.is_set():
                begun = time.monotonic()
                await self._index_some()
                await asyncio.sleep(4 * (time.monotonic() - begun))

    async def finish(self) -> None:
        """Index what the last visits brought, if that does not take long."""
        deadline = time.monotonic() + LAST_SECONDS
        while self._news.is_set() and time.monotonic() < deadline:
            await self._index_some()

    async def _index_some(self) -> None:
        """One batch. There is still news when there may be more."""
        self._news.clear()
        try:
            await self._store.write(index_new_items, self._clock(), BATCH, self._front)
            if not self._front.is_done:
                self._news.set()
        except StoreError as error:
            self._front = Front()
            log.warning("the search index: %s; it goes on another time", error)
