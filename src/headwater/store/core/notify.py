"""Waking collectors at once when a source is added or a refresh is asked for.

On PostgreSQL the word goes out with the commit of the change itself (NOTIFY). On SQLite there is nothing to carry it:
collectors look for themselves.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from headwater.store.core.bulk import is_sqlite
from headwater.store.core.database import Store, first_line

if TYPE_CHECKING:
    from psycopg import AsyncConnection

log = logging.getLogger(__name__)

CHANNEL = "headwater_due"
CONNECT_SECONDS = 10
PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0


def announce(connection: Connection) -> None:
    """Tell every collector, once this transaction is committed, that something may be due."""
    if not is_sqlite(connection):
        connection.exec_driver_sql(f"NOTIFY {CHANNEL}")


class Listener:
    """Hears announcements on its own connection, which it makes again whenever it is lost.

    `is_listening` tells whether they can be relied on just now; on SQLite they never can.
    """

    def __init__(self, store: Store, on_announced: Callable[[], None]) -> None:
        self.is_listening = False
        self._store = store
        self._on_announced = on_announced

    async def run(self) -> None:
        """Listen until cancelled."""
        if self._store.is_sqlite:
            return
        from psycopg import Error

        pause = PAUSE_SECONDS
        while True:
            try:
                async with await self._connect() as connection:
                    await connection.execute(f"LISTEN {CHANNEL}".encode())
                    self.is_listening, pause = True, PAUSE_SECONDS
                    self._on_announced()  # what was said while the connection was lost
                    async for _ in connection.notifies():
                        self._on_announced()
            except (Error, OSError) as error:
                log.info("not listening for announcements, again in %g s: %s", pause, first_line(error))
            finally:
                self.is_listening = False
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _connect(self) -> "AsyncConnection[Any]":
        from psycopg import AsyncConnection

        _, parameters = self._store.engine.dialect.create_connect_args(self._store.url)
        return await AsyncConnection.connect(
            **{"connect_timeout": CONNECT_SECONDS, **parameters}, autocommit=True
        )
