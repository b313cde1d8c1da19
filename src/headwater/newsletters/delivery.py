"""Delivers a received message: finds its source by the recipient address and stores the message as an item."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from headwater.collect.delivery import PATIENCE_SECONDS, Delivered, prepare_delivery, store_delivery
from headwater.collect.planning import Planner
from headwater.collectors.base import FetchResult, read_config
from headwater.collectors.inbox import InboxConfig
from headwater.collectors.mailbox import is_from
from headwater.formats.mail.read import MOST_BYTES, read_letter
from headwater.model import SourceMetadata, url_key
from headwater.store.collecting.addresses import find_living, source_keys
from headwater.store.core.database import Store
from headwater.threads import read_aside

INBOX = "mail.inbox"


@dataclass(frozen=True, slots=True)
class Inbox:
    """A source that takes letters."""

    source_id: int
    config: InboxConfig
    is_paused: bool


class NotWantedError(Exception):
    """The source takes letters from others only."""


class BusyError(Exception):
    """The source is being worked on; the letter may come again in a moment."""


def find_inbox(connection: Connection, local_part: str) -> Inbox | None:
    """The source whose address begins with `local_part`; what follows a + in it is the sender's own mark."""
    name = local_part.lower().partition("+")[0]
    found = find_living(connection, [url_key(f"inbox://{name}")], [INBOX]) if name else []
    if not found:
        return None
    key = source_keys(connection, [found[0].id])[found[0].id]
    config = read_config(InboxConfig, key.config, INBOX)
    assert isinstance(config, InboxConfig)  # noqa: S101 - what the model makes
    return Inbox(key.id, config, not key.schedule_enabled)


async def take_letter(
    data: bytes, inbox: Inbox, store: Store, planner: Planner, clock: Callable[[], float]
) -> None:
    """Store a letter. It is safe with us once this has returned; the same letter again changes nothing.

    NotWantedError when it is from someone else than the source wants, BusyError when it has to come again.
    """
    now = clock()
    delivered = await read_aside(min(len(data), MOST_BYTES), _prepare, data, inbox.config, now)
    waited = 0.0
    while await store.write(store_delivery, inbox.source_id, delivered, planner, now) is None:
        if waited >= PATIENCE_SECONDS:
            raise BusyError
        await asyncio.sleep(0.05)
        waited += 0.05


def _prepare(data: bytes, config: InboxConfig, now: float) -> Delivered:
    letter = read_letter(data, keep_trackers=config.keep_trackers)
    if not is_from(letter.sender, config.senders):
        raise NotWantedError
    result = FetchResult(
        items=(letter.item,),
        metadata=SourceMetadata(letter.from_name or None),
        requests=0,
        bytes_received=len(data),
    )
    return prepare_delivery(result, 1, now)
