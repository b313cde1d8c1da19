"""Setting the interval of a type for every worker: it is kept in the database, and plans follow at once."""

from sqlalchemy import Connection

from headwater.collectors.types import find_type, is_type
from headwater.config import INTERVAL_NAME
from headwater.errors import InputError
from headwater.store.core.notify import announce
from headwater.store.core.settings import interval_settings, remove_setting, set_setting
from headwater.store.core.versions import check_interval_version

SHORTEST_INTERVAL_MINUTES = 0.01
LONGEST_INTERVAL_MINUTES = 525_600.0


def set_type_interval(
    connection: Connection, type_name: str, minutes: float | None, now: float, version: str | None = None
) -> str:
    """Set the minutes between visits for a type, or with None take back what was set. Returns the type's name.

    `version`: of what the editor saw; ChangedError if it is another by now.
    """
    name = find_type(type_name).name
    check_interval_version(connection, name, version)
    if minutes is None:
        for spelling in interval_settings(connection):
            if is_type(spelling) and find_type(spelling).name == name:
                remove_setting(connection, INTERVAL_NAME + spelling)
        announce(connection)
        return name
    if not SHORTEST_INTERVAL_MINUTES <= minutes <= LONGEST_INTERVAL_MINUTES:
        raise InputError(
            "{text} is not an interval; give minutes, from 0.01 to {most:g}",
            text=f"{minutes:g}",
            most=LONGEST_INTERVAL_MINUTES,
        )
    set_setting(connection, INTERVAL_NAME + name, minutes, now)
    announce(connection)
    return name
