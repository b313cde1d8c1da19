"""What the collector's status tells: every source's state, and the numbers of the last 24 hours."""

from dataclasses import dataclass

import orjson
from sqlalchemy import Connection, func, select

from headwater.model import Json
from headwater.store.paging import one_page
from headwater.store.tables import collection_records, sources

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class FleetSource:
    id: int
    name: str
    type: str
    config: Json
    schedule_enabled: bool
    status: str
    last_fetched_at: float | None
    next_fetch_at: float | None
    fetch_count: int
    fetch_error_count: int
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Fleet:
    total_sources: int
    active_sources: int
    paused_by_error: int  # failing for long, or gone
    fetches_24h: int
    errors_24h: int
    items_24h: int


def fleet_sources(connection: Connection, *, after: int | None, limit: int) -> list[FleetSource]:
    """Up to `limit` sources and one more, by number, from after the one numbered `after`."""
    columns = [sources.c[name] for name in FleetSource.__dataclass_fields__]
    query = one_page(
        select(*columns).where(~sources.c.is_deleted),
        [sources.c.id],
        after=None if after is None else (after,),
        limit=limit,
    )
    found = []
    for row in connection.execute(query):
        values = row._asdict()
        found.append(FleetSource(**{**values, "config": orjson.loads(values["config"])}))
    return found


def read_fleet(connection: Connection, now: float) -> Fleet:
    total, active, failing = connection.execute(
        select(
            func.count(),
            func.count().filter(sources.c.schedule_enabled, sources.c.is_active),
            func.count().filter(~sources.c.is_active),
        )
        .select_from(sources)
        .where(~sources.c.is_deleted)
    ).one()
    record = collection_records.c
    fetches, errors, items_new = connection.execute(
        select(
            func.count().filter(record.status != "skipped"),
            func.count().filter(record.status == "failed"),
            func.coalesce(func.sum(record.items_new), 0),
        ).where(record.started_at > now - DAY_SECONDS)
    ).one()
    return Fleet(total, active, failing, fetches, errors, items_new)
