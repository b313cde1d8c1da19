"""Waits for new messages by IMAP IDLE: the source is visited at once, besides its usual visits."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from headwater.collectors.base import read_config
from headwater.collectors.mailbox import MailboxConfig, mailbox_address
from headwater.collectors.secrets import fill_references
from headwater.config import Settings
from headwater.errors import HeadwaterError, StoreError
from headwater.fetch.client import Fetcher
from headwater.fetch.imap import open_mailbox
from headwater.model import Source
from headwater.store.collecting.sources import enabled_of_type, request_refresh
from headwater.store.core.database import Store

log = logging.getLogger(__name__)

MOST_MAILBOXES = 50  # each takes a connection
LOOK_SECONDS = 15.0
WAIT_SECONDS = 25 * 60.0  # servers end what is silent for half an hour
AFTER_FAILURE_SECONDS = 15 * 60.0

_Key = tuple[int, str, str]


class MailWatcher:
    """Keeps a connection to each mailbox that is to tell of new letters. `run` works until it is cancelled."""

    def __init__(
        self, store: Store, settings: Settings, fetcher: Fetcher, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._secrets: Mapping[str, str] = settings.secrets
        self._fetcher = fetcher
        self._clock = clock
        self._waiting: dict[_Key, asyncio.Task[None]] = {}

    async def run(self) -> None:
        try:
            while True:
                try:
                    self._keep(await self._store.read(_mailboxes))
                except StoreError as error:
                    log.warning("mailboxes: %s", error)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for task in self._waiting.values():
                task.cancel()

    def _keep(self, sources: list[Source]) -> None:
        """Wait for the mailboxes of these sources, as they are configured now, and for no others."""
        wanted = {(source.id, source.url, repr(source.config)): source for source in sources}
        for key in [key for key in self._waiting if key not in wanted]:
            self._waiting.pop(key).cancel()
        for key, source in wanted.items():
            if key not in self._waiting or self._waiting[key].done():
                self._waiting[key] = asyncio.create_task(self._wait(source))

    async def _wait(self, source: Source) -> None:
        try:
            config = read_config(MailboxConfig, source.config, source.type)
            if not isinstance(config, MailboxConfig) or not config.idle:
                await asyncio.Event().wait()  # until the config changes
            else:
                await self._listen(source, fill_references(config, self._secrets))
        except HeadwaterError as error:
            log.info("source %s: its mailbox does not tell of new letters: %s", source.id, error)
            await asyncio.sleep(AFTER_FAILURE_SECONDS)
        except Exception:
            log.exception("source %s: unexpected error while waiting for letters", source.id)
            await asyncio.sleep(AFTER_FAILURE_SECONDS)

    async def _listen(self, source: Source, config: MailboxConfig) -> None:
        async with open_mailbox(self._fetcher, mailbox_address(source.url, config)) as mailbox:
            await mailbox.open(config.folder)
            if not mailbox.can_wait:
                await asyncio.Event().wait()
            while True:
                if await mailbox.wait_for_news(WAIT_SECONDS):
                    await self._store.write(request_refresh, [source.id], self._clock())


def _mailboxes(connection: Connection) -> list[Source]:
    return enabled_of_type(connection, "mail.imap", MOST_MAILBOXES)
