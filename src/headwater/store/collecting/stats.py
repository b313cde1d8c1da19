"""`source_stats`: one row for every source, whatever policy plans it."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection

from headwater.model import Source, SourceStats
from headwater.store.core.bulk import insert_rows, select_by, storable, update_rows
from headwater.store.core.tables import source_stats

_STATS = tuple(field.name for field in fields(SourceStats))
_DEFAULTS: tuple[Any, ...] = tuple(field.default for field in fields(SourceStats))
_COLUMNS = ("source_id", "source_type", *_STATS)
_ON_CONFLICT = "ON CONFLICT (source_id) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in _COLUMNS[1:]
)


def read_stats(connection: Connection, source_ids: Sequence[int]) -> dict[int, SourceStats]:
    """The statistics of those of the sources that have any. Values may be damaged; who uses them checks."""
    rows = select_by(
        connection,
        f"SELECT source_id, {', '.join(_STATS)} FROM source_stats WHERE source_id {{values}}",
        [str(source_id) for source_id in source_ids],
        "text",
    )
    return {int(row[0]): _stats_from(row[1:]) for row in rows}


def _stats_from(values: Sequence[Any]) -> SourceStats:
    return SourceStats(*[_DEFAULTS[place] if value is None else value for place, value in enumerate(values)])


def write_stats(connection: Connection, sources: Sequence[tuple[Source, SourceStats | None]]) -> None:
    """Store the statistics that the sources carry, each given with what is stored of them, if anything is."""
    usual, unusual = [], []
    for source, before in sources:
        stats = source.stats
        if stats is None:
            continue
        if before is not None and _others(before) == _others(stats):
            usual.append((*_usual(stats), str(source.id)))
        else:
            unusual.append(_row(source, stats))
    update_rows(connection, source_stats, ("source_id",), _USUAL, usual)
    insert_rows(connection, source_stats, _COLUMNS, unusual, _ON_CONFLICT)


# What every check changes. Of the rest some is in indexes, which an UPDATE writes again for any value.
_USUAL = ("next_due_at", "last_check_at", "check_count", "updated_at")
_usual = attrgetter(*_USUAL)
_others = attrgetter(*(name for name in _STATS if name not in _USUAL))
_values = attrgetter(*_STATS)
_LAST_ERROR = _STATS.index("last_error")


def _row(source: Source, stats: SourceStats) -> tuple[Any, ...]:
    kind = "rss" if source.type.startswith("rss.") else "custom"
    values = list(_values(stats))
    values[_LAST_ERROR] = storable(stats.last_error)
    return (str(source.id), kind, *values)
