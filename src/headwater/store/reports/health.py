"""What tells whether all is well with a database and with the processes that work on it. Reads only."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from headwater.store.collecting.queue import FUTURE_SECONDS
from headwater.store.core.bulk import is_sqlite
from headwater.store.core.clock import database_time
from headwater.store.core.tables import collection_records, items, pipeline_executions, source_leases, sources
from headwater.store.reports.overview import count_sources, read_status

LATE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Health:
    at: float  # by the database's clock
    newest_at: float  # the latest time that anything stored says it happened
    due: int
    lag_seconds: float
    in_flight: int
    endless_leases: int  # taken by a clock that was ahead: no other worker can have their sources
    last_visit_at: float | None
    late_runs: int
    oldest_run_seconds: float
    unindexed: int
    needs_attention: int
    failing: int
    sources: int
    outages: list[str]


def read_health(connection: Connection) -> Health:
    now = database_time(connection)
    status = read_status(connection, now)
    counts = count_sources(connection)
    last_visit = connection.execute(select(func.max(collection_records.c.started_at))).scalar()
    newest_item = connection.execute(select(func.max(items.c.first_seen_at))).scalar()
    late = connection.execute(
        select(func.count(), func.min(pipeline_executions.c.due_at)).where(
            pipeline_executions.c.due_at < now - LATE_SECONDS
        )
    ).one()
    endless = connection.execute(
        select(func.count()).where(source_leases.c.lease_until > now + FUTURE_SECONDS)
    ).scalar_one()
    words = "SELECT count(*) FROM item_words" + ("_docsize" if is_sqlite(connection) else "")
    indexed = connection.exec_driver_sql(words).scalar_one()
    stored = connection.execute(select(func.count()).select_from(items)).scalar_one()
    return Health(
        at=now,
        newest_at=max(last_visit or 0.0, newest_item or 0.0),
        due=status.due,
        lag_seconds=status.lag_seconds,
        in_flight=status.in_flight,
        endless_leases=endless,
        last_visit_at=last_visit,
        late_runs=late[0],
        oldest_run_seconds=now - late[1] if late[1] is not None else 0.0,
        unindexed=max(0, stored - indexed),
        needs_attention=counts.needs_attention,
        failing=sum(counts.failing.values()),
        sources=counts.total,
        outages=[outage.machine for outage in status.outages],
    )


def some_addresses(connection: Connection, limit: int) -> list[str]:
    """Addresses of sources that were well when they were last visited, the latest first."""
    query = (
        select(sources.c.url)
        .where(~sources.c.is_deleted, sources.c.schedule_enabled, sources.c.consecutive_failures == 0)
        .order_by(sources.c.last_fetched_at.desc().nulls_last())
        .limit(limit)
    )
    return list(connection.execute(query).scalars())
