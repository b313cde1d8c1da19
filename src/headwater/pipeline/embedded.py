"""A worker beside the collector in one process: on SQLite, where there is nothing else to start.

On PostgreSQL pipelines are the work of `headwater worker`, on as many machines as one likes.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Self

from headwater.config import Settings
from headwater.fetch.client import Fetcher
from headwater.pipeline.registry import STEP_HANDLERS
from headwater.pipeline.worker import Worker
from headwater.store.core.database import Store

log = logging.getLogger(__name__)

AGAIN_SECONDS = 30.0


class EmbeddedWorker:
    """An async context manager: works on pipelines inside, if this process is to; then lets what runs end."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        make_fetcher: Callable[[Settings], Fetcher],
        *,
        wanted: bool = True,
    ) -> None:
        self.finished = True  # False when steps had to be cut short
        self._store = store
        self._settings = settings
        self._fetcher = make_fetcher(settings)
        self._worker: Worker | None = None
        if wanted and store.is_sqlite and settings.pipeline_concurrency and STEP_HANDLERS:
            self._worker = Worker(store, settings, self._fetcher)
        self._stopped = asyncio.Event()
        self._working: asyncio.Task[bool] | None = None

    def stop(self) -> None:
        self._stopped.set()
        if self._worker is not None:
            self._worker.stop()

    async def __aenter__(self) -> Self:
        if self._worker is not None:
            await self._fetcher.__aenter__()
            self._working = asyncio.create_task(self._work(self._worker))
        return self

    async def _work(self, worker: Worker) -> bool:
        """Until it is stopped: who collects for years must not go without pipelines after one bad moment."""
        while True:
            try:
                return await worker.run()
            except Exception:
                if self._stopped.is_set():
                    raise
                log.exception("pipelines are not worked on; again in %g s", AGAIN_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    await self._stopped.wait()
                    return True
            self._worker = worker = Worker(self._store, self._settings, self._fetcher)

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        if self._working is None:
            return
        self.stop()
        if error is not None:
            self._working.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                self.finished = await self._working
        finally:
            await self._fetcher.__aexit__(None, None, None)
