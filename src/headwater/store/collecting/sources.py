"""Sources: adding, finding, changing. What a visit does to a source is in `store.collecting.queue`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    case,
    func,
    literal,
    not_,
    null,
    or_,
    select,
)
from sqlalchemy.exc import IntegrityError

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.model import Source, url_key
from headwater.store.collecting.addresses import Living, find_living
from headwater.store.collecting.push import wake_subscriptions
from headwater.store.collecting.rows import source_from_row
from headwater.store.collecting.states import IS_UNUSUAL
from headwater.store.core.bulk import batches, insert_returning, is_sqlite, select_by, update_rows
from headwater.store.core.notify import announce
from headwater.store.core.tables import source_names, sources
from headwater.store.people.subscriptions import place_owners, subscribe_owner

# Places in the line of due sources, before every planned time (see `place_in_line`).
MANUAL_LANE = -2.0e10
NEW_LANE = -1.0e10
LISTED_NAMESAKES = 5
PAGE = 500  # sources in memory at a time, where all are read


def place_in_line(
    *,
    enabled: bool,
    status: str,
    next_fetch_at: float | None,
    created_at: float,
    requested_at: float | None = None,
) -> float | None:
    """Where a source stands in the queue: the asked-for first, then the never visited, then by planned time.

    None is out of the line: paused, deleted, or gone.
    """
    if not enabled:
        return None
    if requested_at is not None:
        return MANUAL_LANE + requested_at
    if status == "retired":
        return None
    if next_fetch_at is None:
        return NEW_LANE + created_at
    return next_fetch_at


def due_since(place: float) -> float:
    """Since when, or from when on, a source at this place in line is due."""
    if place < NEW_LANE:
        return place - MANUAL_LANE
    return place - NEW_LANE if place < 0 else place


def add_source(
    connection: Connection,
    *,
    name: str,
    type: str,
    url: str,
    now: float,
    config: Mapping[str, Any] | None = None,
    policy: str | None = None,
    folder: str | None = None,
    for_owner: bool = True,
) -> Source:
    """Store a new source, due at once. InputError when there is one with this type and URL already.

    With `for_owner`, the first user subscribes to it.
    """
    values = {
        "name": name,
        "type": type,
        "url": url,
        "url_key": url_key(url),
        "config": orjson.dumps(config or {}).decode(),
        "policy": policy,
        "folder": folder,
        "due_at": NEW_LANE + now,
        "created_at": now,
        "updated_at": now,
    }
    refuse_duplicate(connection, type, url)
    try:
        row = connection.execute(sources.insert().values(values).returning(*sources.c)).one()
    except IntegrityError:
        # Another writer was a moment faster; the transaction is over, so there is no looking who.
        raise ConflictError("{url} is there already", url=url) from None
    if for_owner:
        subscribe_owner(connection, {row.id: folder}, now)
    announce(connection)
    return source_from_row(row)


def refuse_duplicate(connection: Connection, type: str, url: str) -> None:
    """ConflictError when there is a source with this type and address already."""
    for existing in find_living(connection, [url_key(url)], [type]):
        raise duplicate_of(existing, url)


def duplicate_of(existing: Living, url: str) -> ConflictError:
    return ConflictError(
        "{url} is there already: source {id}, {name}", url=url, id=existing.id, name=existing.name
    )


@dataclass(frozen=True, slots=True)
class Addition:
    """A source to add."""

    name: str
    type: str
    url: str
    config: Mapping[str, Any] = field(default_factory=dict)
    policy: str | None = None
    folder: str | None = None
    enabled: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """What no two sources share."""
        return self.type, url_key(self.url)


def add_sources(
    connection: Connection, additions: Sequence[Addition], now: float, *, for_owner: bool = True
) -> dict[tuple[str, str], int]:
    """Store new sources in one statement, due at once. Returns the numbers of those that were not there already.

    With `for_owner`, the first user subscribes to them.
    """
    rows = [
        (
            each.name,
            each.type,
            each.url,
            each.key[1],
            orjson.dumps(each.config).decode(),
            each.policy,
            each.folder,
            each.enabled,
            NEW_LANE + now if each.enabled else None,
            now,
            now,
        )
        for each in additions
    ]
    added = insert_returning(
        connection,
        sources,
        (
            *("name", "type", "url", "url_key", "config", "policy", "folder", "schedule_enabled"),
            *("due_at", "created_at", "updated_at"),
        ),
        rows,
        "ON CONFLICT (type, url_key) WHERE NOT is_deleted DO NOTHING",
        "type, url_key, id",
    )
    if for_owner:
        folders = {each.key: each.folder for each in additions}
        subscribe_owner(connection, {number: folders[type_, key] for type_, key, number in added}, now)
    announce(connection)
    return {(type_, key): source_id for type_, key, source_id in added}


def get_source(connection: Connection, source_id: int) -> Source:
    row = connection.execute(select(sources).where(sources.c.id == source_id, ~sources.c.is_deleted)).first()
    if row is None:
        raise NotFoundError(
            "there is no source {id}", hint="`headwater source list` shows them all", id=source_id
        )
    return source_from_row(row)


def find_source(connection: Connection, text: str, *, removed: bool = False) -> Source:
    """The source with this number, its name or its address; with `removed`, one that was removed too."""
    column = sources.c
    if text.isascii() and text.isdigit() and len(text) < 19:
        row = connection.execute(select(sources).where(column.id == int(text))).first()
        if row is not None and (removed or not row.is_deleted):
            return source_from_row(row)
    rows = _named(connection, text, removed=removed)
    if not rows:
        raise NotFoundError("there is no source {id}", hint="`headwater source list` shows them all", id=text)
    if len(rows) > 1 and not (rows[1].is_deleted and not rows[0].is_deleted):
        raise InputError(
            "{text} can be {candidates}; say which by its number",
            text=text,
            candidates=_listed([f"{row.id} ({row.name}, {row.url})" for row in rows]),
        )
    return source_from_row(rows[0])


def _named(connection: Connection, text: str, *, removed: bool) -> list[Row[Any]]:
    """The sources with this name or address; without any, those whose name differs in capitals only."""
    column, key = sources.c, url_key(text)
    named = select(source_names.c.source_id).where(source_names.c.name_key == func.lower(text))
    ids = {each.id for each in find_living(connection, [key])} | set(connection.execute(named).scalars())
    rows = list(connection.execute(select(sources).where(column.id.in_(ids)).order_by(column.id)))
    if removed:
        meant = or_(column.url_key == key, func.lower(column.name) == func.lower(text))
        deleted = select(sources).where(IS_UNUSUAL, column.is_deleted, meant)
        rows += sorted(connection.execute(deleted), key=lambda row: row.id)
    exact = [row for row in rows if row.name == text or row.url_key == key]
    return (exact or rows)[: LISTED_NAMESAKES + 1]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:LISTED_NAMESAKES])
    return f"{shown}, …" if len(names) > LISTED_NAMESAKES else shown


def list_sources(connection: Connection, *, limit: int | None = None) -> list[Source]:
    """The first sources by number, all in memory. `iterate_sources` reads any number of them."""
    query = select(sources).where(~sources.c.is_deleted).order_by(sources.c.id).limit(limit)
    return list(map(source_from_row, connection.execute(query)))


def iterate_sources(connection: Connection, *, by_folder: bool = False) -> Iterator[Source]:
    """Every source by number, or folder by folder (first those in none), with a page in memory at a time."""
    column = sources.c
    order = (column.folder.nulls_first(), column.is_deleted, column.id) if by_folder else (column.id,)
    query = select(sources).where(~column.is_deleted).order_by(*order)
    with connection.execute(query, execution_options={"yield_per": PAGE}) as rows:
        yield from map(source_from_row, rows)


def next_enabled_ids(connection: Connection, after: int, limit: int) -> list[int]:
    """Up to `limit` numbers of sources that are not paused, from after the one numbered `after`."""
    column = sources.c
    query = select(column.id).where(column.schedule_enabled, ~column.is_deleted, column.id > after)
    return list(connection.execute(query.order_by(column.id).limit(limit)).scalars())


def enabled_of_type(connection: Connection, type: str, limit: int) -> list[Source]:
    """The first sources of a type that are not paused, by number."""
    column = sources.c
    query = select(sources).where(column.type == type, column.schedule_enabled, ~column.is_deleted)
    return list(map(source_from_row, connection.execute(query.order_by(column.id).limit(limit))))


def set_schedule_enabled(connection: Connection, source_id: int, enabled: bool, now: float) -> Source:
    """Pause or resume. A resumed source is due when its plan says, at once if that has passed."""
    return change_source(connection, source_id, now, schedule_enabled=enabled)


def remove_unsubscribed(
    connection: Connection, after: int, limit: int, *, made_before: float, now: float
) -> int:
    """Of the next sources from after the one numbered `after`, remove those without a subscriber and a pipeline.

    Returns the number of the last one that was looked at, 0 at the end.
    """
    column = sources.c
    query = select(column.id, column.created_at, column.pipeline_template_id).where(
        ~column.is_deleted, column.id > after
    )
    found = connection.execute(query.order_by(column.id).limit(limit)).all()
    old = [row[0] for row in found if row[1] < made_before and row[2] is None]
    read = select_by(
        connection, "SELECT source_id FROM subscriptions WHERE source_id {values}", old, "bigint"
    )
    unread = set(old) - {row[0] for row in read}
    change_sources(connection, sorted(unread), now, is_deleted=True)
    return found[-1][0] if found else 0


def change_source(connection: Connection, source_id: int, now: float, **values: Any) -> Source:
    """Write checked values of a source's own columns; `config` as a mapping."""
    get_source(connection, source_id)
    change_sources(connection, [source_id], now, **values)
    return get_source(connection, source_id)


def change_sources(connection: Connection, source_ids: Sequence[int], now: float, **values: Any) -> None:
    """Write the same values to all of these sources, and move each to the place in line that they mean."""
    lock_sources(connection, source_ids)
    if "config" in values:
        values["config"] = orjson.dumps(values["config"]).decode()
    if "config" in values or "policy" in values:
        values["planned_from"] = None  # its plan is to be made again
    for those in batches(source_ids):
        connection.execute(
            sources.update()
            .where(sources.c.id.in_(those))
            .values(**values, due_at=_place_after(values), updated_at=now)
        )
    if "folder" in values:
        place_owners(connection, source_ids, values["folder"])
    if values.keys() & {"schedule_enabled", "is_deleted", "config", "policy"}:
        _visit_pushed(connection, source_ids, now)
    wake_subscriptions(connection, source_ids, now)
    announce(connection)


def _visit_pushed(connection: Connection, source_ids: Sequence[int], now: float) -> None:
    """Visit those of the sources at once that a hub has pushed: it may not do so any more.

    The visit reads the whole document again, for it says which hub to subscribe to.
    """
    column = sources.c
    for those in batches(source_ids):
        connection.execute(
            sources.update()
            .where(column.id.in_(those), column.schedule_enabled, ~column.is_deleted)
            .where(column.plan_reason.contains('"decided_by":"pushed"'))
            .values(
                refresh_requested_at=now,
                due_at=MANUAL_LANE + now,
                **dict.fromkeys(("etag", "last_modified", "body_hash")),
            )
        )


def change_configs(connection: Connection, configs: Mapping[int, Mapping[str, Any]], now: float) -> None:
    """Write each source's own config, many at once."""
    lock_sources(connection, sorted(configs))
    rows = [(orjson.dumps(config).decode(), None, now, source_id) for source_id, config in configs.items()]
    update_rows(connection, sources, ("id",), ("config", "planned_from", "updated_at"), rows)
    announce(connection)


def lock_sources(connection: Connection, source_ids: Sequence[int]) -> None:
    """Keep others from writing to these sources, in the order in which settling locks."""
    if not is_sqlite(connection):
        query = "SELECT id FROM sources WHERE id {values} ORDER BY id FOR UPDATE"
        select_by(connection, query, sorted(source_ids), "bigint")


def _place_after(values: Mapping[str, Any]) -> ColumnElement[float | None]:
    """`place_in_line` for the database to work out, of each source with these values."""
    old = sources.c

    def new(name: str) -> ColumnElement[Any]:
        column: ColumnElement[Any] = old[name]
        return literal(values[name], old[name].type) if name in values else column

    requested_at = new("refresh_requested_at")
    return case(
        (or_(not_(new("schedule_enabled")), new("is_deleted")), null()),
        (requested_at.is_not(None), MANUAL_LANE + requested_at),
        (new("status") == "retired", null()),
        else_=func.coalesce(new("next_fetch_at"), NEW_LANE + old.created_at),
    )


def change_address(connection: Connection, source: Source, url: str, now: float) -> None:
    """Let a source live at another address, visited next. What the old one said, and how it failed, is forgotten.

    ConflictError when another source lives there.
    """
    if url_key(url) != url_key(source.url):
        refuse_duplicate(connection, source.type, url)
    forgotten = (
        *("etag", "last_modified", "body_hash", "moved_to"),
        *("last_error", "last_error_kind", "failing_since_at"),
    )
    change_sources(
        connection,
        [source.id],
        now,
        url=url,
        url_key=url_key(url),
        **dict.fromkeys(forgotten),
        moved_count=0,
        status="ok",
        is_active=True,
        consecutive_failures=0,
        refresh_requested_at=now,
    )


def restore_source(connection: Connection, source_id: int, now: float) -> Source:
    """Bring a removed source back, with all it has seen. InputError if another lives at its address by now."""
    row = connection.execute(select(sources).where(sources.c.id == source_id)).first()
    if row is None or not row.is_deleted:
        return get_source(connection, source_id)
    refuse_duplicate(connection, row.type, row.url)
    change_sources(connection, [source_id], now, is_deleted=False)
    return get_source(connection, source_id)


def get_source_or_removed(connection: Connection, source_id: int) -> Source:
    """A source by its number, even one that was taken out."""
    row = connection.execute(select(sources).where(sources.c.id == source_id)).first()
    if row is None:
        raise NotFoundError(
            "there is no source {id}", hint="`headwater source list` shows them all", id=source_id
        )
    return source_from_row(row)


def remove_source(connection: Connection, source_id: int, now: float) -> Source:
    """Take a source out of everything. Its items and what it has seen stay."""
    source = get_source(connection, source_id)
    change_sources(connection, [source_id], now, is_deleted=True)
    return replace(source, is_deleted=True)


def request_refresh(connection: Connection, source_ids: Iterable[int] | None, now: float) -> int:
    """Put sources (None: all that are not paused) at the head of the line; returns how many.

    One that is being visited right now is visited again when that visit has settled.
    """
    enabled = select(sources.c.id).where(~sources.c.is_deleted, sources.c.schedule_enabled)
    if source_ids is None:
        count = _put_first(connection, enabled, now)
    else:
        parts = [enabled.where(sources.c.id.in_(those)) for those in batches(sorted(set(source_ids)))]
        count = sum(_put_first(connection, part, now) for part in parts)
    announce(connection)
    return count


def _put_first(connection: Connection, chosen: Select[Any], now: float) -> int:
    if not is_sqlite(connection):
        chosen = chosen.order_by(sources.c.id).with_for_update()  # in the order in which settling locks
    result = connection.execute(
        sources.update()
        .where(sources.c.id.in_(chosen))
        .values(refresh_requested_at=now, due_at=MANUAL_LANE + now)
    )
    return result.rowcount


def move_source(connection: Connection, source: Source) -> None:
    """Store the new address of a source, unless another source lives there already."""
    key = url_key(source.url)
    if all(each.id == source.id for each in find_living(connection, [key], [source.type])):
        connection.execute(
            sources.update().where(sources.c.id == source.id).values(url=source.url, url_key=key)
        )
