"""Minutes between visits by type, as they are in force: the defaults, the settings', the database's."""

import logging
from collections.abc import Mapping

from sqlalchemy import Connection

from headwater.collectors.types import find_type, intervals_by_type
from headwater.config import Settings
from headwater.errors import InputError
from headwater.store.core.settings import interval_settings

log = logging.getLogger(__name__)


def intervals_in_force(connection: Connection, settings: Settings) -> dict[str, float]:
    """Minutes between visits by type, in force now."""
    return intervals_by_type(settings.fetch_intervals, of_known_types(interval_settings(connection)))


def of_known_types(rows: Mapping[str, float]) -> dict[str, float]:
    """The intervals of a settings table, by the types' own names; those of unknown types are left out."""
    intervals = {}
    for name, minutes in rows.items():
        try:
            intervals[find_type(name).name] = minutes
        except InputError as error:  # a slip in a table must not stop every worker
            log.warning("an interval in the settings table is ignored: %s", error)
    return intervals
