"""The numbers the dashboard opens with, each from an indexed read."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from headwater.store.tables import collection_records, items, sources

RECENT_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Overview:
    sources: int
    failing: int
    due: int
    items: int
    visits: int  # in the last hour, as the next three
    visits_failed: int
    visits_unchanged: int
    items_new: int
    activity: tuple[int, ...]  # new items a minute, oldest first


def read_overview(connection: Connection, now: float, minutes: int = 60) -> Overview:
    live = ~sources.c.is_deleted
    total, failing, due = connection.execute(
        select(
            func.count(),
            func.count().filter(sources.c.consecutive_failures > 0),
            func.count().filter(sources.c.due_at <= now),
        )
        .select_from(sources)
        .where(live)
    ).one()
    records = collection_records.c
    recent = connection.execute(
        select(records.started_at, records.status, records.items_new).where(
            records.started_at > now - RECENT_SECONDS
        )
    ).all()
    activity = [0] * minutes
    for record in recent:
        minute = int((now - record.started_at) // 60)
        if 0 <= minute < minutes:
            activity[minutes - 1 - minute] += record.items_new
    return Overview(
        sources=total,
        failing=failing,
        due=due,
        items=connection.execute(select(func.count()).select_from(items)).scalar_one(),
        visits=len(recent),
        visits_failed=sum(record.status == "failed" for record in recent),
        visits_unchanged=sum(record.status == "unchanged" for record in recent),
        items_new=sum(record.items_new for record in recent),
        activity=tuple(activity),
    )
