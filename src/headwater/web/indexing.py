"""Search sees what was collected within seconds: the server puts new items into the index, a few at a time.

It does so for every collector. A collector alone spends nothing on an index that may never be used;
what is left undone is done by the next server, or by the next search.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from headwater.errors import StoreError
from headwater.store.core.database import Store
from headwater.store.reading.search import has_outdated, index_new_items, newest_item_id

log = logging.getLogger(__name__)

BATCH = 100
LOOK_SECONDS = 2.0
LOOK_BACK_SECONDS = 60.0  # for what was committed with a lower number than something that was indexed before
REST = 4.0  # times as long as a batch took: others want to write too


class Indexer:
    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._done_up_to = 0
        self._looked_back_at = float("-inf")

    async def run(self) -> None:
        """Index whatever is new, until cancelled."""
        while True:
            try:
                await self.catch_up()
            except StoreError as error:
                log.warning("the search index: %s; it goes on another time", error)
            await asyncio.sleep(LOOK_SECONDS)

    async def catch_up(self) -> None:
        """Index what is new now."""
        newest = await self._store.read(newest_item_id)
        looks_back = time.monotonic() - self._looked_back_at >= LOOK_BACK_SECONDS
        outdated = await self._store.read(has_outdated)
        if newest <= self._done_up_to and not looks_back and not outdated:
            return
        if looks_back:
            self._looked_back_at = time.monotonic()
        after = None if looks_back else self._done_up_to
        while True:
            begun = time.monotonic()
            found = await index_new_items(self._store, self._clock(), BATCH, after)
            if len(found) < BATCH and not await self._store.read(has_outdated):
                self._done_up_to = max(newest, *found) if found else newest
                return
            after = found[-1] if found else after
            await asyncio.sleep(REST * (time.monotonic() - begun))
