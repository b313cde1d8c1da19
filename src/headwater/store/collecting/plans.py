"""The plans of sources, apart from visits: which are outdated, and writing new ones. Nothing here plans."""

from collections.abc import Sequence

import orjson
from sqlalchemy import Connection, select, text

from headwater.model import Source
from headwater.store.collecting.rows import source_from_row
from headwater.store.collecting.sources import place_in_line
from headwater.store.core.bulk import batches, is_sqlite, update_rows
from headwater.store.core.tables import LIVE, OUTDATED, source_stats, sources


def has_outdated(connection: Connection) -> bool:
    """Whether an edit has left a plan to be made again: one look at an index that is empty otherwise."""
    return connection.execute(select(sources.c.id).where(text(OUTDATED)).limit(1)).first() is not None


def outdated_ids(connection: Connection, limit: int) -> list[int]:
    """Sources whose plan is to be made again because of an edit."""
    return list(connection.execute(select(sources.c.id).where(text(OUTDATED)).limit(limit)).scalars())


def sources_after(connection: Connection, after: int, limit: int) -> list[Source]:
    """The next sources by number."""
    query = select(sources).where(text(LIVE), sources.c.id > after).order_by(sources.c.id).limit(limit)
    return [source_from_row(row) for row in connection.execute(query)]


def lock_planned(connection: Connection, source_ids: Sequence[int]) -> list[tuple[Source, float | None]]:
    """These sources, which no one else changes until the transaction ends, and when a refresh of each was asked for.

    What another transaction holds is left out: it may hold it for long.
    """
    found = []
    for those in batches(sorted(source_ids)):
        query = select(sources).where(sources.c.id.in_(those)).order_by(sources.c.id)
        if not is_sqlite(connection):
            query = query.with_for_update(skip_locked=True)
        found += [(source_from_row(row), row.refresh_requested_at) for row in connection.execute(query)]
    return found


def write_plans(connection: Connection, planned: Sequence[tuple[Source, float | None]]) -> None:
    """Write the plans of sources, each given with when a refresh was asked for, and move them in the line."""
    rows = [
        (
            source.next_fetch_at,
            orjson.dumps(source.plan_reason).decode(),
            source.planned_from,
            place_in_line(
                enabled=source.schedule_enabled and not source.is_deleted,
                status=source.status,
                next_fetch_at=source.next_fetch_at,
                created_at=source.created_at,
                requested_at=requested_at,
            ),
            source.id,
        )
        for source, requested_at in planned
    ]
    update_rows(
        connection, sources, ("id",), ("next_fetch_at", "plan_reason", "planned_from", "due_at"), rows
    )
    due = [(int(s.next_fetch_at), str(s.id)) for s, _ in planned if s.next_fetch_at is not None]
    update_rows(connection, source_stats, ("source_id",), ("next_due_at",), due)
