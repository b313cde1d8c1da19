"""Waiting out a database that is away for a moment: a restart, a failover, a lock held too long."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from typing import TypeVar

from headwater.errors import StoreError

T = TypeVar("T")

log = logging.getLogger(__name__)

PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
LONGEST_PAUSE = 5.0
# What PostgreSQL says to a user it does not know, for which there is no code: waiting does not mend it.
_FOR_GOOD = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied")


async def retry_on_disconnect(work: Callable[[], Awaitable[T]], *, give_up: Callable[[], bool]) -> T:
    """Do `work`, and again while the database is away, until `give_up` says that it is too late."""
    for pause in chain(PAUSES, repeat(LONGEST_PAUSE)):
        try:
            return await work()
        except StoreError as error:
            if not error.passing or give_up():
                raise
            log.warning("%s; trying again in %g s", error, pause)
            await asyncio.sleep(pause)
    raise AssertionError("unreachable")


def wait_for(work: Callable[[], T]) -> T:
    """Do `work` when a service starts, and again while the database is away, as it is after a power cut."""
    for pause in chain(PAUSES, repeat(LONGEST_PAUSE)):
        try:
            return work()
        except StoreError as error:
            if not error.passing or any(words in str(error) for words in _FOR_GOOD):
                raise
            log.warning("%s; trying again in %g s", error, pause)
            time.sleep(pause)
    raise AssertionError("unreachable")
