"""Settings kept in the database, so that every worker sees them: JSON values by name."""

from typing import Any

import orjson
from sqlalchemy import Connection, select

from headwater.config import INTERVAL_NAME
from headwater.store.core.bulk import insert_rows, is_sqlite
from headwater.store.core.tables import settings


def get_setting(connection: Connection, key: str) -> Any | None:
    value = connection.execute(select(settings.c.value).where(settings.c.key == key)).scalar()
    return None if value is None else orjson.loads(value)


def set_setting(connection: Connection, key: str, value: Any, now: float) -> None:
    insert_rows(
        connection,
        settings,
        ("key", "value", "updated_at"),
        [(key, orjson.dumps(value).decode(), now)],
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
    )


def lock_setting(connection: Connection, key: str) -> None:
    """Let no other transaction read it under lock, or write it, until this one ends. On SQLite no other can."""
    if not is_sqlite(connection):
        connection.execute(select(settings.c.key).where(settings.c.key == key).with_for_update())


def remove_setting(connection: Connection, key: str) -> None:
    connection.execute(settings.delete().where(settings.c.key == key))


def interval_settings(connection: Connection) -> dict[str, float]:
    """Minutes between visits by type, as set in the database."""
    rows = connection.execute(
        select(settings.c.key, settings.c.value).where(settings.c.key.startswith(INTERVAL_NAME))
    )
    return {row.key.removeprefix(INTERVAL_NAME): float(orjson.loads(row.value)) for row in rows}
