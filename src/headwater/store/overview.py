"""The numbers the dashboard opens with.

Counting the sources reads them all; what is of the last hour is found by an index and costs as much as happened.
How many items there are is not among them: that reads every one (`items.count_items`), so ask seldom.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, Integer, cast, func, select

from headwater.store.tables import collection_records, items, sources

RECENT_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Overview:
    sources: int
    failing: int
    due: int
    visits: int  # in the last hour, as the next three
    visits_failed: int
    visits_unchanged: int
    items_new: int
    activity: tuple[int, ...]  # items published a minute, oldest first


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
    visits, failed, unchanged, new = connection.execute(
        select(
            func.count(),
            func.count().filter(records.status == "failed"),
            func.count().filter(records.status == "unchanged"),
            func.coalesce(func.sum(records.items_new), 0),
        ).where(records.started_at > now - RECENT_SECONDS)
    ).one()
    minute = cast(func.floor((now - items.c.item_at) / 60), Integer)
    activity = [0] * minutes
    for age, count in connection.execute(
        select(minute, func.count()).where(items.c.item_at > now - 60 * minutes).group_by(minute)
    ):
        if 0 <= age < minutes:
            activity[minutes - 1 - age] = count
    return Overview(
        sources=total,
        failing=failing,
        due=due,
        visits=visits,
        visits_failed=failed,
        visits_unchanged=unchanged,
        items_new=new,
        activity=tuple(activity),
    )
