"""How long after their publication items were found: over a span of time, and for one source.

What was there already when its source was first visited tells nothing, nor does a date we had to invent.
"""

from sqlalchemy import Connection, select

from headwater.store.core.tables import items, sources

SAMPLED = 40  # items of each part of a span: however much is stored, each costs the same
NEWEST_OF_SOURCE = 300


def sample_delays(connection: Connection, begin: float, end: float, parts: int) -> list[list[float]]:
    """The delays of some items of each of `parts` equal parts of a span, by when they were found; oldest part first."""
    width = (end - begin) / parts
    return [
        _delays(connection, begin + number * width, begin + (number + 1) * width) for number in range(parts)
    ]


def _delays(connection: Connection, begin: float, end: float) -> list[float]:
    item = items.c
    found = (
        select(item.source_id, item.first_seen_at, item.published_at, item.date_invented)
        .where(item.first_seen_at >= begin, item.first_seen_at < end)
        .order_by(item.first_seen_at.desc(), item.id.desc())
        .limit(SAMPLED)
        .subquery()
    )
    created = select(sources.c.created_at).where(sources.c.id == found.c.source_id).scalar_subquery()
    query = select(found.c.first_seen_at - found.c.published_at).where(
        ~found.c.date_invented, found.c.published_at >= created
    )
    return [max(0.0, float(each)) for each in connection.execute(query).scalars()]


def source_delays(connection: Connection, source_id: int) -> list[float]:
    """The delays of a source's newest items, shortest first."""
    item = items.c
    created = select(sources.c.created_at).where(sources.c.id == source_id).scalar_subquery()
    query = (
        select(item.first_seen_at - item.published_at)
        .where(item.source_id == source_id, ~item.date_invented, item.published_at >= created)
        .order_by(item.item_at.desc())
        .limit(NEWEST_OF_SOURCE)
    )
    return sorted(max(0.0, float(each)) for each in connection.execute(query).scalars())


def quantile(values: list[float], share: float) -> float | None:
    """The value below which a share of sorted values lies; None without any."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else None
