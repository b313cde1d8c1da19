"""What the collector's status tells: every source's state, and the numbers of the last 24 hours."""

from dataclasses import dataclass

import orjson
from sqlalchemy import Connection

from headwater.model import Json
from headwater.store.core.bulk import is_sqlite
from headwater.store.reports.hours import visits_since
from headwater.store.reports.overview import count_sources

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class FleetSource:
    id: int
    name: str
    type: str
    config: Json
    schedule_enabled: bool
    is_deleted: bool
    is_late: bool
    status: str
    consecutive_failures: int
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
    # By hand and by position: it is a thousand at a time, and each of SQLAlchemy's rows costs as much as its source.
    mark = "?" if is_sqlite(connection) else "%s"
    found = connection.exec_driver_sql(
        f"SELECT {', '.join(FleetSource.__dataclass_fields__)} FROM sources"
        f" WHERE NOT is_deleted AND id > {mark} ORDER BY id LIMIT {mark}",
        (0 if after is None else after, limit + 1),
    )
    return [
        FleetSource(number, name, kind, {} if config == "{}" else orjson.loads(config), *others)
        for number, name, kind, config, *others in found
    ]


def read_fleet(connection: Connection, now: float) -> Fleet:
    counts = count_sources(connection)
    visits = visits_since(connection, now - DAY_SECONDS)
    return Fleet(
        total_sources=counts.total,
        active_sources=counts.active,
        paused_by_error=counts.paused_by_error + counts.states["gone"],
        fetches_24h=visits.total - visits.visits.get("skipped", 0),
        errors_24h=visits.failed,
        items_24h=visits.items_new,
    )
