"""What may go: items that are too old or too many for their source's rule.

What a source has shown stays in `seen_ids`, so that nothing that went comes back as new. An item that a pipeline
still works on stays until that is done; one that a person has starred, tagged or put aside stays. Everything here
takes few rows at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, and_, exists, not_, select, tuple_

from headwater.store.core.bulk import is_sqlite, padding, run_by, select_by
from headwater.store.core.tables import (
    collection_records,
    entry_marks,
    entry_tags,
    items,
    pipeline_executions,
    sources,
)
from headwater.store.people.reading import note_deleted


@dataclass(frozen=True, slots=True)
class Rule:
    """How long and how many; 0 is for ever and all."""

    days: float = 0.0
    items: int = 0

    def cutoff(self, now: float) -> float | None:
        """What was seen before then is too old."""
        return now - 86_400 * self.days if self.days else None


@dataclass(frozen=True, slots=True)
class OldItem:
    id: int
    source_id: int
    item_at: float
    first_seen_at: float


def own_rules(connection: Connection, default: Rule) -> dict[int, Rule]:
    """The rules that sources set themselves; what such a rule leaves open is as by default."""
    rows = connection.execute(
        select(sources.c.id, sources.c.config).where(sources.c.config.like('%"retention\\_%', escape="\\"))
    )
    return {row.id: _own_rule(orjson.loads(row.config), default) for row in rows}


def _own_rule(config: Mapping[str, Any], default: Rule) -> Rule:
    days, count = config.get("retention_days"), config.get("retention_items")
    return Rule(default.days if days is None else float(days), default.items if count is None else int(count))


def old_items(
    connection: Connection,
    before: float,
    *,
    after: OldItem | None = None,
    source_id: int | None = None,
    limit: int,
) -> list[OldItem]:
    """Items dated before then (of one source, or of all), oldest first, that come after `after`.

    Who deletes by age looks at when they were first seen, too: what a new source brings along is old by its date.
    """
    query = select(items.c.id, items.c.source_id, items.c.item_at, items.c.first_seen_at)
    query = query.where(items.c.item_at < before, _is_idle()).order_by(items.c.item_at, items.c.id)
    if source_id is not None:
        query = query.where(items.c.source_id == source_id)
    if after is not None:
        query = query.where(tuple_(items.c.item_at, items.c.id) > (after.item_at, after.id))
    return [OldItem(*row) for row in connection.execute(query.limit(limit))]


def surplus_items(connection: Connection, source_id: int, keep: int, limit: int) -> list[int]:
    """Up to `limit` of a source's items beyond the newest `keep`."""
    query = (
        select(items.c.id)
        .where(items.c.source_id == source_id, _is_idle())
        .order_by(items.c.item_at.desc(), items.c.id.desc())
        .limit(limit)
        .offset(keep)
    )
    return list(connection.execute(query).scalars())


def _is_idle() -> Any:
    """No pipeline is at work on it, and no user has starred or tagged it or put it aside."""
    return and_(
        not_(
            exists().where(
                pipeline_executions.c.item_id == items.c.id,
                pipeline_executions.c.status.in_(("pending", "running")),
            )
        ),
        not_(exists().where(entry_marks.c.item_id == items.c.id)),
        not_(exists().where(entry_tags.c.item_id == items.c.id)),
    )


def delete_idle_items(connection: Connection, item_ids: Sequence[int]) -> int:
    """Delete items with their versions and runs; what was seen stays known. Returns how many there were.

    One for which a run has been started since they were looked up stays, as it would have if it had been there then.
    """
    ids = list(item_ids)
    chosen = items.c.id.in_(ids + ids[-1:] * padding(len(ids)))
    if not is_sqlite(connection):  # the starter of a run holds on to its item: wait, then look what there is
        connection.execute(select(items.c.id).where(chosen).order_by(items.c.id).with_for_update())
    doomed = list(connection.execute(select(items.c.id).where(chosen, _is_idle())).scalars())
    note_deleted(connection, doomed)
    run_by(connection, "DELETE FROM items WHERE id {values}", doomed, "bigint")
    return len(doomed)


def sources_with_news(connection: Connection, since: float) -> list[int]:
    """The sources that have brought something new since then: only those can have too much."""
    records = collection_records.c
    # Made different here: for a DISTINCT, SQLite reads all records by source instead of the newest by time.
    query = select(records.source_id).where(records.started_at >= since, records.items_new > 0)
    return sorted(set(connection.execute(query).scalars()))


def all_source_ids(connection: Connection) -> list[int]:
    return list(connection.execute(select(sources.c.id).order_by(sources.c.id)).scalars())


def count_by_source(connection: Connection, source_ids: Iterable[int]) -> dict[int, int]:
    """How many items each of the sources has."""
    sql = "SELECT source_id, count(*) FROM items WHERE source_id {values} GROUP BY source_id"
    rows = select_by(connection, sql, source_ids, "bigint")
    return {row[0]: row[1] for row in rows}
