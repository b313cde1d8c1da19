"""The time by the database, which is the time all workers agree on.

Leases, "due now" and plans are compared across machines, whose own clocks may be wrong by any amount. On PostgreSQL
the server's clock decides; a SQLite file is one machine's, and so is its clock.
"""

import time

from sqlalchemy import Connection

from headwater.store.core.bulk import is_sqlite
from headwater.store.core.database import Store

MEASURE_EVERY_SECONDS = 10.0


def database_time(connection: Connection) -> float:
    """What the database's clock shows now."""
    if is_sqlite(connection):
        return time.time()
    return float(
        connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())::float8").scalar_one()
    )


class DatabaseClock:
    """Tells the database's time without asking it each time: it goes by this machine's steady clock in between.

    Must be measured before it is read, and again now and then: `is_stale` says when.
    """

    def __init__(self, store: Store) -> None:
        self._is_local = store.is_sqlite
        self._ahead: float | None = None  # of the steady clock
        self._measured_at = 0.0

    def __call__(self) -> float:
        if self._is_local:
            return time.time()
        if self._ahead is None:
            raise RuntimeError("a DatabaseClock is measured before it is read")
        return self._ahead + _steady()

    @property
    def is_stale(self) -> bool:
        if self._is_local:
            return False
        return self._ahead is None or _steady() - self._measured_at >= MEASURE_EVERY_SECONDS

    def measure(self, connection: Connection) -> None:
        """Set this clock by the database's."""
        if self._is_local:
            return
        before = _steady()
        shown = database_time(connection)
        after = _steady()
        ahead = shown - (before + after) / 2
        # A difference that the way there and back explains is none: the time must not jump to and fro.
        if self._ahead is None or abs(ahead - self._ahead) > (after - before) / 2:
            self._ahead = ahead
        self._measured_at = after


def measured_clock(store: Store) -> DatabaseClock:
    """A clock ready to be read, for short uses."""
    clock = DatabaseClock(store)
    with store.reading() as connection:
        clock.measure(connection)
    return clock


def _steady() -> float:
    """Seconds that no one can set; where the system can, those asleep are counted too."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
