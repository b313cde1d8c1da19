"""Setting the interval of a type for every worker: it is kept in the database and takes effect at once."""

from sqlalchemy import Connection

from headwater.collectors.types import find_type, is_type
from headwater.config import INTERVAL_NAME
from headwater.errors import InputError
from headwater.store.settings import interval_settings, remove_setting, set_setting

SHORTEST_INTERVAL_MINUTES = 0.01
LONGEST_INTERVAL_MINUTES = 525_600.0


def set_type_interval(connection: Connection, type_name: str, minutes: float | None, now: float) -> str:
    """Set the minutes between visits for a type, or with None take back what was set. Answers the type's name."""
    name = find_type(type_name).name
    if minutes is None:
        for spelling in interval_settings(connection):
            if is_type(spelling) and find_type(spelling).name == name:
                remove_setting(connection, INTERVAL_NAME + spelling)
        return name
    if not SHORTEST_INTERVAL_MINUTES <= minutes <= LONGEST_INTERVAL_MINUTES:
        raise InputError(
            "{text} is no interval; give minutes, from 0.01 to {most:g}",
            text=f"{minutes:g}",
            most=LONGEST_INTERVAL_MINUTES,
        )
    set_setting(connection, INTERVAL_NAME + name, minutes, now)
    return name
