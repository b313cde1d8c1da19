"""How many sources there are, without reading them all.

No row of `sources` is ever deleted by Headwater, so a count stays true for the rows it counted. The upkeep counts all
of them once an hour; in between only the newer rows are counted, and those out of the ordinary by their own index.
"""

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, func, select

from headwater.store.collecting.states import IS_UNUSUAL
from headwater.store.core.settings import get_setting, set_setting
from headwater.store.core.tables import sources

COUNTED_KEY = "counted_sources"
UNSETTLED = 10_000  # of the newest numbers: some may belong to transactions that are not committed yet


@dataclass(frozen=True, slots=True)
class Counted:
    count: int = 0
    up_to: int = 0  # the number of the last source that was counted


def count_all_sources(connection: Connection) -> int:
    """The rows of `sources`, deleted sources included."""
    counted = Counted(**(get_setting(connection, COUNTED_KEY) or {}))
    newer = select(func.count()).where(sources.c.id > counted.up_to)
    return counted.count + int(connection.execute(newer).scalar_one())


def count_live_sources(connection: Connection) -> int:
    deleted = select(func.count()).where(IS_UNUSUAL, sources.c.is_deleted)
    return count_all_sources(connection) - int(connection.execute(deleted).scalar_one())


def count_enabled_sources(connection: Connection) -> int:
    """Those that are neither deleted nor paused."""
    others = select(func.count()).where(IS_UNUSUAL, sources.c.is_deleted | ~sources.c.schedule_enabled)
    return count_all_sources(connection) - int(connection.execute(others).scalar_one())


def count_visited_sources(connection: Connection) -> int:
    """Those that are visited by plan: not deleted, paused, gone or failing for long."""
    column = sources.c
    others = select(func.count()).where(
        IS_UNUSUAL, column.is_deleted | ~column.schedule_enabled | ~column.is_active
    )
    return count_all_sources(connection) - int(connection.execute(others).scalar_one())


def count_old_sources(connection: Connection) -> Counted:
    """Count all rows but the newest, for the next hour to begin with."""
    last = connection.execute(select(func.max(sources.c.id))).scalar() or 0
    up_to = max(0, last - UNSETTLED)
    count = connection.execute(select(func.count()).where(sources.c.id <= up_to)).scalar_one()
    return Counted(count, up_to)


def note_source_count(connection: Connection, counted: Counted, now: float) -> None:
    set_setting(connection, COUNTED_KEY, asdict(counted), now)
