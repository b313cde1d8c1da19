"""Sources that need a person, or may soon: what is asked of their owners first, then what is gone, then what fails."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy import ColumnElement, Connection, TextClause, select, text

from headwater.model import Json
from headwater.store.collecting.states import IS_UNUSUAL, NEEDS_ATTENTION, in_state
from headwater.store.core.tables import LIVE, sources


@dataclass(frozen=True, slots=True)
class TroubledSource:
    id: int
    name: str
    url: str
    status: str
    schedule_enabled: bool
    is_deleted: bool
    is_late: bool
    consecutive_failures: int
    last_error: str | None
    last_error_kind: str | None
    failing_since_at: float | None
    last_fetched_at: float | None
    next_fetch_at: float | None
    plan_reason: Json


def troubled_sources(connection: Connection, *, limit: int) -> list[TroubledSource]:
    """Each kind is found by an index that holds only sources that are out of the ordinary."""
    asking: list[ColumnElement[bool] | TextClause] = [text(LIVE), IS_UNUSUAL, NEEDS_ATTENTION]
    kinds = (asking, in_state("gone"), in_state("failing"))
    found: dict[int, TroubledSource] = {}
    for conditions in kinds:
        if len(found) < limit:
            for source in _read(connection, conditions, limit):
                found.setdefault(source.id, source)
    return list(found.values())[:limit]


def _read(
    connection: Connection, conditions: Sequence[ColumnElement[bool] | TextClause], limit: int
) -> Iterator[TroubledSource]:
    query = (
        select(*(sources.c[name] for name in TroubledSource.__dataclass_fields__))
        .where(*conditions)
        .order_by(sources.c.consecutive_failures.desc(), sources.c.id)
        .limit(limit)
    )
    for row in connection.execute(query):
        values = row._asdict()
        yield TroubledSource(**{**values, "plan_reason": orjson.loads(values["plan_reason"])})
