"""What is no longer needed of what was published: sent deliveries, unused answers and files. One process at a time."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from headwater.pipeline.steps.archive_media import MEDIA, file_path
from headwater.store.core.database import Store
from headwater.store.core.periodic import end_turn, take_turn
from headwater.store.pipelines.models import forget_answers
from headwater.store.publishing.alerts import forget_alerts
from headwater.store.publishing.outbox import forget_deliveries
from headwater.store.reading.media import forget_media, known_media, unused_media

log = logging.getLogger(__name__)

KEY = "publish.tidying"
HOUR = 3_600.0
DAY = 24 * HOUR
DELIVERY_DAYS = 90
ANSWER_DAYS = 60
UNUSED_SECONDS = DAY  # for which a file may wait for the item that uses it
BATCH = 500


class Cleaner:
    """Tidies up once an hour, and looks through the directory of files once a day."""

    def __init__(self, store: Store, data_dir: Path, clock: Callable[[], float]) -> None:
        self._store = store
        self._media = data_dir / MEDIA
        self._clock = clock
        self._holder = uuid4().hex
        self._look_at = 0.0
        self._swept_at = 0.0

    async def run_if_due(self) -> bool:
        """Do it, if it is time and no other process does."""
        now = self._clock()
        if 0 < self._look_at - now <= HOUR:
            return False
        self._look_at = now + HOUR / 4
        turn = await self._store.write(
            take_turn, KEY, self._holder, every_seconds=HOUR, now=now, lease_until=now + HOUR / 2
        )
        if turn is None:
            return False
        completed = False
        try:
            await self._store.write(forget_deliveries, now - DELIVERY_DAYS * DAY)
            await self._store.write(forget_answers, now - ANSWER_DAYS * DAY)
            await self._store.write(forget_alerts, now - DELIVERY_DAYS * DAY)
            await self._delete_unused(now)
            if now - self._swept_at > DAY:
                self._swept_at = now
                await self._sweep()
            completed = True
        finally:
            await self._store.write(
                end_turn, KEY, self._holder, completed=completed, note="", now=self._clock()
            )
        return True

    async def _delete_unused(self, now: float) -> None:
        """Delete files that no item uses any more: first their rows, so that none is served that is not there."""
        while found := await self._store.read(unused_media, now - UNUSED_SECONDS, BATCH):
            gone = await self._store.write(forget_media, found)
            await asyncio.to_thread(self._unlink, gone)
            if not gone:
                return

    def _unlink(self, hashes: list[str]) -> None:
        for sha256 in hashes:
            with contextlib.suppress(OSError):
                file_path(self._media, sha256).unlink()

    async def _sweep(self) -> None:
        """Delete files that a worker left behind when it died before it could store that they are there."""
        for folder in await asyncio.to_thread(lambda: sorted(self._media.glob("??"))):
            names = await asyncio.to_thread(self._old_files, folder)
            known = await self._store.read(known_media, names)
            await asyncio.to_thread(self._unlink, [name for name in names if name not in known])

    def _old_files(self, folder: Path) -> list[str]:
        old = time.time() - UNUSED_SECONDS
        return sorted(path.name for path in folder.iterdir() if path.stat().st_mtime < old)
