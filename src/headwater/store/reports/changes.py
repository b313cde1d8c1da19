"""Whether anything has happened that pages show: marks that differ once it has. Cheap however much is stored."""

from dataclasses import dataclass

from sqlalchemy import Column, Connection, func, select

from headwater.store.core.tables import collection_records, items, pipeline_executions, source_leases

COUNTED = 1_000  # leases and open runs that are looked at


@dataclass(frozen=True, slots=True)
class Marks:
    visits: tuple[int, int]
    items: int
    runs: tuple[int, int, int]


def read_marks(connection: Connection, now: float) -> Marks:
    return Marks(
        visits=(_last(connection, collection_records.c.id), _leased(connection, now)),
        items=_last(connection, items.c.changed_position),
        runs=(_last(connection, pipeline_executions.c.id), *_open_runs(connection)),
    )


def _last(connection: Connection, column: Column[int]) -> int:
    return connection.execute(select(func.max(column))).scalar() or 0


def _leased(connection: Connection, now: float) -> int:
    some = select(source_leases.c.source_id).where(source_leases.c.lease_until > now).limit(COUNTED)
    return connection.execute(select(func.count()).select_from(some.subquery())).scalar_one()


def _open_runs(connection: Connection) -> tuple[int, int]:
    """How many runs have not ended, and how far they have come together."""
    run = pipeline_executions.c
    some = (
        select(run.current_step_index).where(run.status.in_(("pending", "running"))).limit(COUNTED).subquery()
    )
    count, steps = connection.execute(
        select(func.count(), func.coalesce(func.sum(some.c.current_step_index), 0))
    ).one()
    return count, steps
