"""Finding sources by their address, and what is in use among them, by indexes alone.

The index of addresses begins with the type, so a search for an address goes through the types in use, which are few.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import orjson
from sqlalchemy import Connection, select

from headwater.model import Json, url_key
from headwater.store.core.bulk import batches
from headwater.store.core.tables import LIVE, sources


@dataclass(frozen=True, slots=True)
class Living:
    """A source that is not deleted, found by its address."""

    id: int
    name: str
    type: str
    url_key: str
    last_fetched_at: float | None


def find_living(
    connection: Connection, url_keys: Iterable[str], types: Iterable[str] | None = None
) -> list[Living]:
    """The sources at these addresses, of these types or of any."""
    kinds = values_in_use(connection, "type") if types is None else sorted(set(types))
    columns = [sources.c[name] for name in Living.__dataclass_fields__]
    found: list[Living] = []
    for those in batches(sorted(set(url_keys))):
        query = select(*columns).where(
            sources.c.type.in_(kinds), sources.c.url_key.in_(those), ~sources.c.is_deleted
        )
        found += (Living(*row) for row in connection.execute(query))
    return found


def find_by_addresses(connection: Connection, urls: Iterable[str]) -> dict[str, int]:
    """Which sources have these addresses, by the key of the address. Deleted sources are left out."""
    return {each.url_key: each.id for each in find_living(connection, map(url_key, urls))}


@dataclass(frozen=True, slots=True)
class SourceKey:
    """The columns that an action on many sources needs."""

    id: int
    name: str
    type: str
    url: str
    url_key: str
    is_deleted: bool
    schedule_enabled: bool
    config: Json


def source_keys(connection: Connection, source_ids: Iterable[int]) -> dict[int, SourceKey]:
    """Those of the sources that exist, deleted ones too."""
    columns = [sources.c[name] for name in SourceKey.__dataclass_fields__]
    found: dict[int, SourceKey] = {}
    for those in batches(sorted(set(source_ids))):
        for row in connection.execute(select(*columns).where(sources.c.id.in_(those))):
            values = row._asdict()
            found[row.id] = SourceKey(**{**values, "config": orjson.loads(values["config"])})
    return found


def taken_addresses(connection: Connection, keys: Iterable[SourceKey]) -> dict[tuple[str, str], int]:
    """Which of these sources' addresses belong to another source, and to which."""
    keys = list(keys)
    found = find_living(connection, (key.url_key for key in keys), (key.type for key in keys))
    return {(each.type, each.url_key): each.id for each in found}


def values_in_use(connection: Connection, name: Literal["folder", "type"]) -> list[str]:
    """The different values of a column that sources have: from one to the next by its index, not source by source."""
    found = connection.exec_driver_sql(
        f"WITH RECURSIVE found(value) AS (SELECT min({name}) FROM sources WHERE {LIVE} UNION ALL"
        f" SELECT (SELECT min({name}) FROM sources WHERE {LIVE} AND {name} > found.value)"
        " FROM found WHERE found.value IS NOT NULL) SELECT value FROM found WHERE value IS NOT NULL"
    )
    return sorted(found.scalars())
