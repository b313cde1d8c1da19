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
from headwater.store.database import Store

log = logging.getLogger(__name__)


class WorkerBeside:
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
        self._fetcher = make_fetcher(settings)
        self._worker: Worker | None = None
        if wanted and store.is_sqlite and settings.pipeline_concurrency and STEP_HANDLERS:
            self._worker = Worker(store, settings, self._fetcher)
        self._working: asyncio.Task[bool] | None = None

    def stop(self) -> None:
        if self._worker is not None:
            self._worker.stop()

    async def __aenter__(self) -> Self:
        if self._worker is not None:
            await self._fetcher.__aenter__()
            self._working = asyncio.create_task(self._worker.run())
            self._working.add_done_callback(_complain)
        return self

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


def _complain(working: "asyncio.Task[bool]") -> None:
    if not working.cancelled() and (error := working.exception()):
        log.error("pipelines are not worked on any more", exc_info=error)
