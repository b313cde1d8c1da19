"""Sources: adding, finding, changing. What a visit does to a source is in `store.queue`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from operator import itemgetter
from typing import Any

import orjson
from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import IntegrityError

from headwater.errors import ConflictError, FailureKind, InputError, NotFoundError
from headwater.model import NO_HINTS, Hints, Source, SourceMetadata, Validators, url_key
from headwater.store.bulk import is_sqlite
from headwater.store.notify import announce
from headwater.store.push import wake_subscription
from headwater.store.tables import sources

# Places in the line of due sources, before every planned time (see `place_in_line`).
MANUAL_LANE = -2.0e10
NEW_LANE = -1.0e10


def place_in_line(
    *,
    enabled: bool,
    status: str,
    next_fetch_at: float | None,
    created_at: float,
    requested_at: float | None = None,
) -> float | None:
    """Where a source stands in the queue: the asked-for first, then the never visited, then by planned time.

    None is out of the line: switched off, deleted, or retired by its publisher.
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
) -> Source:
    """Store a new source, due at once. InputError when there is one with this type and URL already."""
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
        # Somebody else was a moment faster; the transaction is over, so there is no looking who.
        raise ConflictError("{url} is there already", url=url) from None
    announce(connection)
    return source_from_row(row)


def refuse_duplicate(connection: Connection, type: str, url: str) -> None:
    """InputError when there is a source with this type and address already."""
    existing = connection.execute(
        select(sources.c.id, sources.c.name).where(
            sources.c.type == type, sources.c.url_key == url_key(url), ~sources.c.is_deleted
        )
    ).first()
    if existing is not None:
        raise ConflictError(
            "{url} is there already: source {id}, {name}", url=url, id=existing.id, name=existing.name
        )


def get_source(connection: Connection, source_id: int) -> Source:
    row = connection.execute(select(sources).where(sources.c.id == source_id, ~sources.c.is_deleted)).first()
    if row is None:
        raise NotFoundError("there is no source {id}; `headwater source list` shows them all", id=source_id)
    return source_from_row(row)


def find_source(connection: Connection, text: str) -> Source:
    """The source somebody means by its number, its name or its address."""
    if text.isascii() and text.isdigit() and len(text) < 19:
        return get_source(connection, int(text))
    wanted = (sources.c.name == text) | (sources.c.url_key == url_key(text))
    rows = connection.execute(
        select(sources).where(wanted, ~sources.c.is_deleted).order_by(sources.c.id).limit(2)
    ).all()
    if not rows:
        raise NotFoundError("there is no source {id}; `headwater source list` shows them all", id=text)
    if len(rows) > 1:
        raise InputError("more than one source is called {name}; say which by its number", name=text)
    return source_from_row(rows[0])


def list_sources(connection: Connection, *, limit: int | None = None) -> list[Source]:
    query = select(sources).where(~sources.c.is_deleted).order_by(sources.c.id).limit(limit)
    return [source_from_row(row) for row in connection.execute(query)]


def set_schedule_enabled(connection: Connection, source_id: int, enabled: bool, now: float) -> Source:
    """Pause or resume. A resumed source is due when its plan says, at once if that has passed."""
    source = _lock(connection, source_id)
    _change(connection, source, now, schedule_enabled=enabled)
    announce(connection)
    return get_source(connection, source_id)


def change_source(connection: Connection, source_id: int, now: float, **values: Any) -> Source:
    """Write checked values of a source's own columns; `config` as a mapping."""
    source = _lock(connection, source_id)
    _change(connection, source, now, **values)
    return get_source(connection, source_id)


def change_address(connection: Connection, source: Source, url: str, now: float) -> None:
    """Let a source live at another address; what its old one said is forgotten. ConflictError if it is taken."""
    if url_key(url) != url_key(source.url):
        refuse_duplicate(connection, source.type, url)
    connection.execute(
        sources.update()
        .where(sources.c.id == source.id)
        .values(
            url=url,
            url_key=url_key(url),
            **dict.fromkeys(("etag", "last_modified", "body_hash", "moved_to")),
            moved_count=0,
            updated_at=now,
        )
    )


def restore_source(connection: Connection, source_id: int, now: float) -> Source:
    """Bring a removed source back, with all it has seen. InputError if another lives at its address by now."""
    row = connection.execute(select(sources).where(sources.c.id == source_id)).first()
    if row is None or not row.is_deleted:
        return get_source(connection, source_id)
    refuse_duplicate(connection, row.type, row.url)
    _change(connection, source_from_row(row), now, is_deleted=False)
    return get_source(connection, source_id)


def get_source_or_removed(connection: Connection, source_id: int) -> Source:
    """A source by its number, even one that was taken out."""
    row = connection.execute(select(sources).where(sources.c.id == source_id)).first()
    if row is None:
        raise NotFoundError("there is no source {id}; `headwater source list` shows them all", id=source_id)
    return source_from_row(row)


def remove_source(connection: Connection, source_id: int, now: float) -> Source:
    """Take a source out of everything. Its items and what it has seen stay."""
    source = _lock(connection, source_id)
    _change(connection, source, now, is_deleted=True)
    return source


def request_refresh(connection: Connection, source_ids: Iterable[int] | None, now: float) -> int:
    """Put sources (None: all that are switched on) at the head of the line; answers how many.

    One that is being visited right now is visited again when that visit has settled.
    """
    chosen = select(sources.c.id).where(~sources.c.is_deleted, sources.c.schedule_enabled)
    if source_ids is not None:
        chosen = chosen.where(sources.c.id.in_(list(source_ids)))
    if not is_sqlite(connection):
        chosen = chosen.order_by(sources.c.id).with_for_update()  # in the order in which settling locks
    result = connection.execute(
        sources.update()
        .where(sources.c.id.in_(chosen))
        .values(refresh_requested_at=now, due_at=MANUAL_LANE + now)
    )
    announce(connection)
    return result.rowcount


def move_source(connection: Connection, source: Source) -> None:
    """Store the new address of a source, unless another source lives there already."""
    key = url_key(source.url)
    taken = select(sources.c.id).where(
        sources.c.type == source.type,
        sources.c.url_key == key,
        ~sources.c.is_deleted,
        sources.c.id != source.id,
    )
    if connection.execute(taken).first() is None:
        connection.execute(
            sources.update().where(sources.c.id == source.id).values(url=source.url, url_key=key)
        )


def _lock(connection: Connection, source_id: int) -> Source:
    query = select(sources).where(sources.c.id == source_id, ~sources.c.is_deleted)
    row = connection.execute(query if is_sqlite(connection) else query.with_for_update()).first()
    if row is None:
        raise NotFoundError("there is no source {id}; `headwater source list` shows them all", id=source_id)
    return source_from_row(row)


def _change(connection: Connection, source: Source, now: float, **values: Any) -> None:
    """Write `values` and move the source to the place in line that they mean."""
    changed = replace(source, **values)
    requested_at = select(sources.c.refresh_requested_at).where(sources.c.id == source.id)
    due_at = place_in_line(
        enabled=changed.schedule_enabled and not changed.is_deleted,
        status=changed.status,
        next_fetch_at=changed.next_fetch_at,
        created_at=changed.created_at,
        requested_at=connection.execute(requested_at).scalar(),
    )
    if "config" in values:
        values["config"] = orjson.dumps(values["config"]).decode()
    connection.execute(
        sources.update().where(sources.c.id == source.id).values(**values, due_at=due_at, updated_at=now)
    )
    wake_subscription(connection, source.id, now)


def hints_to_json(hints: Hints) -> str:
    if hints is NO_HINTS or hints == NO_HINTS:
        return "{}"
    return orjson.dumps({name: value for name, value in asdict(hints).items() if value}).decode()


def _hints_from_json(text: str) -> Hints:
    if text == "{}":
        return NO_HINTS
    values: dict[str, Any] = orjson.loads(text)
    for name in ("skip_hours", "skip_days"):
        values[name] = tuple(values.get(name, ()))
    return Hints(**values)


def _picking(*names: str) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Takes these columns out of a row of `sources` at one stroke: one by one by name is three times as slow."""
    places = {column.name: place for place, column in enumerate(sources.c)}
    return itemgetter(*(places[name] for name in names))


_SAME = (  # fields of a Source that are columns as they are
    *("id", "name", "type", "url", "policy", "pipeline_template_id", "folder", "moved_to", "moved_count"),
    *("status", "created_at", "next_fetch_at", "policy_state", "last_fetched_at", "last_entry_at"),
    *("fetch_count", "hit_count", "fetch_error_count", "consecutive_failures", "last_error"),
    "lease_no",
)
_same = _picking(*_SAME)
_metadata = _picking("title", "description", "site_url", "language", "icon_url")
_validators = _picking("etag", "last_modified", "body_hash")
_converted = _picking(
    *("config", "is_active", "schedule_enabled", "is_deleted", "plan_reason", "hints", "last_error_kind")
)


def source_from_row(row: Row[Any], **instead: Any) -> Source:
    """A row of `sources` as the rest of Headwater knows it, but for the fields given `instead`."""
    values = tuple(row)
    config, is_active, schedule_enabled, is_deleted, reason, hints, error_kind = _converted(values)
    fields = dict(zip(_SAME, _same(values), strict=True))
    fields.update(instead)
    return Source(
        **fields,
        config=orjson.loads(config) if config != "{}" else {},
        is_active=bool(is_active),
        schedule_enabled=bool(schedule_enabled),
        is_deleted=bool(is_deleted),
        metadata=SourceMetadata(*_metadata(values)),
        validators=Validators(*_validators(values)),
        plan_reason=orjson.loads(reason),
        hints=_hints_from_json(hints),
        last_error_kind=FailureKind(error_kind) if error_kind else None,
    )
