"""How long after their publication items were found: counted as they come in, so that nothing is read twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, case, func, select

from headwater.store.core.tables import items, sources

SETTLED_SECONDS = 60.0  # by which another worker's commit may come after one with a higher number


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays by how long they were: one count for each bound, and one for those beyond the last."""

    counts: tuple[int, ...]
    total_seconds: float

    def __add__(self, other: "Delays") -> "Delays":
        return Delays(
            tuple(map(sum, zip(self.counts, other.counts, strict=True))),
            self.total_seconds + other.total_seconds,
        )


def last_item_id(connection: Connection) -> int:
    return int(connection.execute(select(func.max(items.c.id))).scalar() or 0)


def count_delays(
    connection: Connection, after_id: int, bounds: Sequence[float], now: float
) -> tuple[Delays, Delays, int]:
    """The delays of the items stored after that one: of those to which nothing is added any more, of the others, and
    the number of the last of the former.

    An item counts that has its own date and was published since its source was added: the others tell nothing of
    how soon we come.
    """
    item = items.c
    settled_id = connection.execute(
        select(func.max(item.id)).where(item.id > after_id, item.first_seen_at < now - SETTLED_SECONDS)
    ).scalar()
    settled_id = after_id if settled_id is None else int(settled_id)
    delay = case((item.first_seen_at > item.published_at, item.first_seen_at - item.published_at), else_=0.0)
    bucket: Any = case(*((delay <= bound, number) for number, bound in enumerate(bounds)), else_=len(bounds))
    settled = case((item.id <= settled_id, 1), else_=0)
    query = (
        select(settled, bucket, func.count(), func.sum(delay))
        .join_from(items, sources)
        .where(item.id > after_id, item.published_at >= sources.c.created_at, ~item.date_invented)
        .group_by(settled, bucket)
    )
    counts = ([0] * (len(bounds) + 1), [0] * (len(bounds) + 1))
    sums = [0.0, 0.0]
    for is_settled, number, count, seconds in connection.execute(query):
        counts[is_settled][number] += count
        sums[is_settled] += float(seconds)
    return Delays(tuple(counts[1]), sums[1]), Delays(tuple(counts[0]), sums[0]), settled_id
