"""The publisher: sends messages, digests and alerts, in every long-running process. Rules run beside it.

Several processes may have one: rows are claimed under leases, so each thing is done once.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Self

from headwater.config import Settings
from headwater.errors import StoreError
from headwater.fetch.client import Fetcher
from headwater.people.follower import Follower
from headwater.pipeline.ledger import make_ledger
from headwater.publish.alerts import Watcher
from headwater.publish.cleanup import Cleaner
from headwater.publish.digest_context import DigestContext
from headwater.publish.digests import DigestMaker
from headwater.publish.outbox import OutboxSender, SendingContext
from headwater.services.requests import secrets_for_steps
from headwater.services.targets import mail_defaults
from headwater.store.core.clock import DatabaseClock
from headwater.store.core.database import Store

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
AGAIN_SECONDS = 10.0  # after an error of our own


class Publisher:
    """An async context manager: sends and publishes inside, then lets what it is sending end.

    Without a `clock` of the caller's, the database's decides what is due.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        make_fetcher: Callable[[Settings], Fetcher],
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._store = store
        self._fetcher = make_fetcher(settings)
        self._database_clock = DatabaseClock(store)
        self._clock = clock or self._database_clock
        sending = SendingContext(self._fetcher, secrets_for_steps(settings.secrets), mail_defaults(settings))
        self.outbox = OutboxSender(store, sending, self._clock)
        self._cleaner = Cleaner(store, settings.data_dir, self._clock)
        digest_context = DigestContext(
            self._fetcher, sending.secrets, make_ledger(store, settings, self._clock)
        )
        self.digests = DigestMaker(store, digest_context, self._clock)
        self.watcher = Watcher(store, settings, self._clock)
        self.follower = Follower(store, self._clock)
        self._stopped = asyncio.Event()
        self._working: list[asyncio.Task[None]] = []

    def stop(self) -> None:
        self._stopped.set()

    async def __aenter__(self) -> Self:
        await self._fetcher.__aenter__()
        # A digest may wait minutes for a model; messages do not wait for it.
        self._working = [
            asyncio.create_task(self._work(each))
            for each in (self.run_once, self.digests.run_once, self.follower.run_once)
        ]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.stop()
        try:
            await asyncio.gather(*self._working)
        finally:
            await self._fetcher.__aexit__(None, None, None)

    async def _work(self, do_due: Callable[[], Awaitable[bool]]) -> None:
        while not self._stopped.is_set():
            try:
                await self._set_clock()
                pause = 0.0 if await do_due() else LOOK_SECONDS
            except StoreError as error:
                log.warning("publishing waits for the database: %s", error)
                pause = LOOK_SECONDS
            except Exception:
                log.exception("publishing goes on in %g s", AGAIN_SECONDS)
                pause = AGAIN_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopped.wait()

    async def _set_clock(self) -> None:
        if self._clock is self._database_clock and self._database_clock.is_stale:
            await self._store.read(self._database_clock.measure)

    async def run_once(self) -> bool:
        """Send what is due now; whether there was anything."""
        sent = await self.outbox.run_once()
        await self._cleaner.run_if_due()
        await self.watcher.run_if_due()
        return bool(sent)
