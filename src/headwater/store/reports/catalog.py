"""Sources as a table for people: searched, filtered, sorted, a page at a time; and one source's story."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    TextClause,
    and_,
    cast,
    func,
    not_,
    or_,
    select,
    text,
)

from headwater.model import Json, Source
from headwater.states import SOURCE_STATES, SourceState
from headwater.store.collecting.addresses import values_in_use
from headwater.store.collecting.counting import count_live_sources
from headwater.store.collecting.queue import is_leased
from headwater.store.collecting.rows import source_from_row
from headwater.store.collecting.sources import PAGE
from headwater.store.collecting.states import IS_UNUSUAL, NEEDS_ATTENTION, in_state
from headwater.store.core.bulk import is_sqlite
from headwater.store.core.paging import one_page
from headwater.store.core.tables import LIVE, collection_records, items, source_names, sources

DAY_SECONDS = 86_400.0
RHYTHM_DAYS = 14
MOST_COUNTED = 10_000  # of what a search finds

State = SourceState | Literal["needs_attention", "due"]
STATES: Final[tuple[State, ...]] = (*SOURCE_STATES, "needs_attention", "due")
Sort = Literal["name", "-name", "next", "-next", "last", "-last", "errors", "new"]
SORTS: Final[tuple[Sort, ...]] = ("name", "-name", "next", "-next", "last", "-last", "errors", "new")


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """Which sources are wanted; what is empty does not count."""

    search: str = ""
    type: str = ""
    folder: str = ""
    state: State | None = None


@dataclass(frozen=True, slots=True)
class CatalogSource:
    id: int
    name: str
    type: str
    url: str
    folder: str | None
    status: str
    schedule_enabled: bool
    is_deleted: bool
    is_late: bool
    fetch_count: int
    hit_count: int
    consecutive_failures: int
    last_error: str | None
    last_error_kind: str | None
    failing_since_at: float | None
    last_fetched_at: float | None
    last_entry_at: float | None
    next_fetch_at: float | None
    plan_reason: Json


@dataclass(frozen=True, slots=True)
class VisitRecord:
    """One visit as the log tells it. The claim it was made under numbers a source's visits."""

    lease_no: int
    started_at: float
    finished_at: float
    status: str
    items_found: int
    items_new: int
    items_updated: int
    overflow: bool
    http_status: int | None
    requests: int
    bytes_received: int
    error_kind: str | None
    error_message: str | None


_COLUMNS = [sources.c[name] for name in CatalogSource.__dataclass_fields__]
_Order = tuple[ColumnElement[Any], ...]
_ORDERS: dict[Sort, _Order] = {
    "name": (func.lower(sources.c.name),),
    "-name": (func.lower(sources.c.name).desc(),),
    "next": (sources.c.next_fetch_at.asc().nulls_first(),),
    "-next": (sources.c.next_fetch_at.desc().nulls_last(),),
    "last": (sources.c.last_fetched_at.asc().nulls_first(),),
    "-last": (sources.c.last_fetched_at.desc().nulls_last(),),
    "errors": (sources.c.consecutive_failures.desc(), sources.c.fetch_error_count.desc()),
}


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of all sources, in an order in which an index has them."""

    those: Any
    order: _Order


_IN_LINE = sources.c.due_at.is_not(None)  # which none is that was removed
_FAILING = and_(IS_UNUSUAL, sources.c.consecutive_failures > 0)
_OUT_OF_LINE = _Part(and_(text(LIVE), ~_IN_LINE), (sources.c.id,))
# To sort them all takes reading them all, for the sake of those that are alike. So all come part by part.
_PARTS: dict[Sort, tuple[_Part, _Part]] = {
    "next": (_Part(_IN_LINE, (sources.c.due_at, sources.c.id)), _OUT_OF_LINE),
    "-next": (_Part(_IN_LINE, (sources.c.due_at.desc(), sources.c.id)), _OUT_OF_LINE),
    "errors": (
        _Part(and_(text(LIVE), _FAILING), (*_ORDERS["errors"], sources.c.id)),
        _Part(and_(text(LIVE), sources.c.consecutive_failures == 0), (sources.c.id,)),
    ),
}


def find_sources(
    connection: Connection,
    wanted: SourceFilter,
    *,
    now: float,
    sort: Sort = "new",
    offset: int = 0,
    limit: int = 50,
) -> list[CatalogSource]:
    ids: list[int] | None = None
    if wanted == SourceFilter(search=wanted.search) and wanted.search and sort == "new":
        name = source_names.c.source_id
        query = select(name).where(_says(connection, wanted.search)).order_by(name.desc())
        ids = list(connection.execute(query.offset(offset).limit(limit)).scalars())
    elif wanted == SourceFilter() and sort in ("name", "-name"):
        ids = _ids_by_name(connection, sort == "-name", offset, limit)
    elif wanted == SourceFilter() and sort in ("last", "-last"):
        ids = _ids_by_last_visit(connection, sort, offset, limit)
    elif wanted == SourceFilter() and sort in _PARTS:
        ids = _ids_by_parts(connection, _PARTS[sort], offset, limit)
    if ids is not None:
        place = {source_id: number for number, source_id in enumerate(ids)}
        found = _read(connection, select(*_COLUMNS).where(sources.c.id.in_(ids)))
        return sorted(found, key=lambda source: place[source.id])
    order = (_by_id(wanted).desc(),) if sort == "new" else (*_ORDERS[sort], sources.c.id)
    whole = select(*_COLUMNS).where(*_conditions(connection, wanted, now)).order_by(*order)
    return _read(connection, whole.offset(offset).limit(limit))


def _ids_by_name(connection: Connection, last_first: bool, offset: int, limit: int) -> list[int]:
    name = source_names.c
    order = (name.name_key.desc(), name.source_id.desc()) if last_first else (name.name_key, name.source_id)
    query = select(name.source_id).order_by(*order).offset(offset).limit(limit)
    return list(connection.execute(query).scalars())


def _ids_by_last_visit(connection: Connection, sort: Sort, offset: int, limit: int) -> list[int]:
    """SQLite reads of those in line from the index of the line, of the few others from their rows. PostgreSQL has an
    index of the visited alone.
    """
    last, sign = sources.c.last_fetched_at, -1 if sort == "-last" else 1
    if is_sqlite(connection):
        groups = [_IN_LINE, and_(text(LIVE), ~_IN_LINE)]
    else:
        groups = [and_(text(LIVE), last.is_(None)), and_(text(LIVE), last.is_not(None))]

    def read(*bound: ColumnElement[bool]) -> list[int]:
        found: list[tuple[float, int]] = []
        for those in groups:
            query = select(last, sources.c.id).where(those, *bound)
            query = query.order_by(last if sign > 0 else last.desc(), sources.c.id).limit(offset + limit)
            found += [(row[0] or 0.0, row[1]) for row in connection.execute(query)]
        found.sort(key=lambda each: (sign * each[0], each[1]))
        return [source_id for _, source_id in found[offset : offset + limit]]

    if sort == "-last":  # among those of the newest visits there are enough, most likely
        started = collection_records.c.started_at
        newest = select(started).order_by(started.desc()).offset(4 * (offset + limit)).limit(1)
        if (bound := connection.execute(newest).scalar()) is not None:
            ids = read(last >= bound)
            if len(ids) == limit:
                return ids
    return read()


def _ids_by_parts(connection: Connection, of_sort: tuple[_Part, _Part], offset: int, limit: int) -> list[int]:
    found: list[int] = []
    for part in of_sort:
        query = select(sources.c.id).where(part.those).order_by(*part.order)
        found += connection.execute(query.offset(offset).limit(limit - len(found))).scalars()
        if len(found) == limit:
            break
        if found:
            offset = 0
        elif part is not of_sort[-1]:
            counted = select(func.count()).select_from(sources).where(part.those)
            offset = max(0, offset - connection.execute(counted).scalar_one())
    return found


def _read(connection: Connection, query: Select[Any]) -> list[CatalogSource]:
    found = []
    for row in connection.execute(query):
        values = row._asdict()
        found.append(CatalogSource(**{**values, "plan_reason": orjson.loads(values["plan_reason"])}))
    return found


def _by_id(wanted: SourceFilter) -> ColumnElement[int]:
    """What sources are sorted by. Where few are wanted, these are sorted; not all are looked through in order."""
    return sources.c.id if wanted.state in (None, "on_time") else sources.c.id + 0


def sources_page(
    connection: Connection, wanted: SourceFilter, *, now: float, after: int | None, limit: int
) -> list[Source]:
    """Up to `limit` sources and one more, by number, from after the one numbered `after`."""
    start = None if after is None else (after,)
    query = select(sources)
    if wanted.search and wanted == SourceFilter(search=wanted.search):
        name = source_names.c.source_id
        named = select(name).where(_says(connection, wanted.search))
        ids = connection.execute(one_page(named, [name], after=start, limit=limit)).scalars()
        query = query.where(sources.c.id.in_(list(ids))).order_by(sources.c.id)
    else:
        query = query.where(*_conditions(connection, wanted, now))
        query = one_page(query, [_by_id(wanted)], after=start, limit=limit)
    return [source_from_row(row) for row in connection.execute(query)]


def iterate_matching(connection: Connection, wanted: SourceFilter, *, now: float) -> Iterator[Source]:
    """All sources that are wanted, by number, with a page in memory at a time."""
    query = select(sources).where(*_conditions(connection, wanted, now)).order_by(_by_id(wanted))
    with connection.execute(query, execution_options={"yield_per": PAGE}) as rows:
        yield from map(source_from_row, rows)


def matching_ids(connection: Connection, wanted: SourceFilter, now: float) -> list[int]:
    """The numbers of all sources that are wanted."""
    query = select(sources.c.id).where(*_conditions(connection, wanted, now)).order_by(sources.c.id)
    return list(connection.execute(query).scalars())


def count_sources(connection: Connection, wanted: SourceFilter, *, now: float) -> int:
    """How many they are; of what is searched for, not more than MOST_COUNTED and one."""
    if wanted == SourceFilter():
        return count_live_sources(connection)
    if wanted == SourceFilter(state="on_time"):  # nearly all: the others are quicker to count
        others = select(sources.c.id).where(text(LIVE), IS_UNUSUAL, not_(and_(*in_state("on_time"))))
        return count_sources(connection, SourceFilter(), now=now) - _count(connection, others)
    if wanted.search and wanted == SourceFilter(search=wanted.search):
        matching = select(source_names.c.source_id).where(_says(connection, wanted.search))
    else:
        matching = select(sources.c.id).where(*_conditions(connection, wanted, now))
    return _count(connection, matching.limit(MOST_COUNTED + 1) if wanted.search else matching)


def _count(connection: Connection, matching: Select[Any]) -> int:
    return int(connection.execute(select(func.count()).select_from(matching.subquery())).scalar_one())


def _conditions(
    connection: Connection, wanted: SourceFilter, now: float
) -> list[ColumnElement[bool] | TextClause]:
    column = sources.c
    conditions: list[ColumnElement[bool] | TextClause]
    match wanted.state:
        case None:
            conditions = [text(LIVE)]
        case "due":
            conditions = [text(LIVE), column.due_at <= now, ~is_leased(now)]
        case "needs_attention":
            conditions = [text(LIVE), IS_UNUSUAL, NEEDS_ATTENTION]
        case state:
            conditions = in_state(state)
    if wanted.search and wanted.state == "removed":  # which have no names to look through any more
        conditions.append(
            or_(
                column.name.icontains(wanted.search, autoescape=True),
                column.url.icontains(wanted.search, autoescape=True),
            )
        )
    elif wanted.search:
        named = select(source_names.c.source_id).where(_says(connection, wanted.search))
        conditions.append(column.id.in_(named))
    if wanted.type:
        conditions.append(column.type == wanted.type)
    if wanted.folder:
        conditions.append(column.folder == wanted.folder)
    return conditions


def _says(connection: Connection, words: str) -> ColumnElement[bool]:
    """That a source's name or address has these words in it, whether in small letters or capitals."""
    # Each database has its own idea of small letters; asked beforehand, so that it plans for what is looked for.
    small = connection.execute(select(func.lower(words))).scalar_one()
    if is_sqlite(connection):  # whose GLOB compares letter by letter and is twice as quick as its LIKE
        return source_names.c.search_text.op("GLOB")("*" + re.sub(r"([*?\[])", r"[\1]", small) + "*")
    return source_names.c.search_text.like("%" + re.sub(r"([\\%_])", r"\\\1", small) + "%")


def daily_counts(connection: Connection, source_ids: Sequence[int], now: float) -> dict[int, list[int]]:
    """How many items each source published on each of the last days, oldest first."""
    day = cast(func.floor((now - items.c.item_at) / DAY_SECONDS), Integer)
    query = (
        select(items.c.source_id, day, func.count())
        .where(items.c.source_id.in_(source_ids), items.c.item_at > now - RHYTHM_DAYS * DAY_SECONDS)
        .group_by(items.c.source_id, day)
    )
    counts = {source_id: [0] * RHYTHM_DAYS for source_id in source_ids}
    for source_id, age, count in connection.execute(query):
        if 0 <= age < RHYTHM_DAYS:
            counts[source_id][RHYTHM_DAYS - 1 - age] = count
    return counts


def publication_history(connection: Connection, source_id: int, *, limit: int = 2_000) -> list[float]:
    """When a source's newest items were published, by its own word, oldest first."""
    query = (
        select(items.c.published_at)
        .where(items.c.source_id == source_id, items.c.published_at.is_not(None), ~items.c.date_invented)
        .order_by(items.c.item_at.desc())
        .limit(limit)
    )
    return sorted(connection.execute(query).scalars())


def last_visits(
    connection: Connection, source_id: int, *, after: int | None = None, limit: int = 50
) -> list[VisitRecord]:
    """Up to `limit` visits to a source and one more, newest first, from before the one numbered `after`."""
    columns = [collection_records.c[name] for name in VisitRecord.__dataclass_fields__]
    query = one_page(
        select(*columns).where(collection_records.c.source_id == source_id),
        [collection_records.c.lease_no],
        after=None if after is None else (after,),
        limit=limit,
        newest_first=True,
    )
    return [VisitRecord(*row) for row in connection.execute(query)]


def source_names_by_name(
    connection: Connection, always: Sequence[int], *, limit: int
) -> list[tuple[int, str]]:
    """Number and name of the first sources by name, and of those that are `always` wanted."""
    ids = {*_ids_by_name(connection, False, 0, limit), *always}
    query = select(sources.c.id, sources.c.name).where(sources.c.id.in_(ids))
    found = [(row.id, row.name) for row in connection.execute(query)]
    return sorted(found, key=lambda each: (each[0] not in always, each[1].lower(), each[0]))


def used_types(connection: Connection) -> list[str]:
    return values_in_use(connection, "type")


def existing(connection: Connection, source_ids: Iterable[int]) -> list[int]:
    """Those of the numbers that are sources, removed ones too."""
    query = select(sources.c.id).where(sources.c.id.in_(list(source_ids))).order_by(sources.c.id)
    return list(connection.execute(query).scalars())
