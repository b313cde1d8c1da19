"""Marks that a worker leaves when its own network is down, so that every process sees why visits fail."""

from dataclasses import dataclass

import orjson
from sqlalchemy import Connection, delete, select

from headwater.store.core.settings import set_setting
from headwater.store.core.tables import settings

PREFIX = "outage."
TOLD_EVERY_SECONDS = 60.0
VALID_SECONDS = 5 * TOLD_EVERY_SECONDS  # after which the worker that left a mark must have gone away


@dataclass(frozen=True, slots=True)
class Outage:
    machine: str
    since_at: float


def mark_outage(connection: Connection, machine: str, since_at: float, now: float) -> None:
    set_setting(connection, PREFIX + machine, since_at, now)


def clear_outage(connection: Connection, machine: str) -> None:
    connection.execute(delete(settings).where(settings.c.key == PREFIX + machine))


def read_outages(connection: Connection, now: float) -> list[Outage]:
    """The machines whose network is down, as far as they can tell."""
    rows = connection.execute(
        select(settings.c.key, settings.c.value)
        .where(settings.c.key.startswith(PREFIX), settings.c.updated_at > now - VALID_SECONDS)
        .order_by(settings.c.key)
    )
    return [Outage(row.key.removeprefix(PREFIX), float(orjson.loads(row.value))) for row in rows]
