"""The source row is the queue: claiming due sources and settling their visits, both in batches.

`sources.due_at` is a source's place in line, so a claim is one range of one index. What is claimed keeps its place
and gets a row in `source_leases`, by which others pass it over: when a worker dies, its leases expire and its
sources become due again. Each lease of a source has a higher number than the one before; settling
checks it, so a worker that comes back from the dead changes nothing. A lease ends only together with a note of its
number in `sources.lease_no`, so that no number is ever given twice.

Code that touches a lease holds the lock of its source's row.

Nothing here decides anything about a visit: what to write arrives ready-made in a Settlement.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import orjson
from sqlalchemy import Column, ColumnElement, Connection, ScalarSelect, func, select

from headwater.model import Source, Validators, Visit
from headwater.records import dataclass
from headwater.store.collecting.memory import write_memories
from headwater.store.collecting.push import SubscriptionChange, write_subscription_changes
from headwater.store.collecting.rows import (
    details_to_json,
    hints_to_json,
    repairs_to_json,
    source_from_row,
)
from headwater.store.collecting.sources import PAGE, move_source, place_in_line
from headwater.store.collecting.stats import read_stats, write_stats
from headwater.store.core.bulk import (
    insert_returning,
    insert_rows,
    is_sqlite,
    run_by,
    select_by,
    storable,
    update_rows,
)
from headwater.store.core.notify import announce
from headwater.store.core.tables import collection_records, source_leases, sources
from headwater.store.pipelines.triggering import StoredItems, start_for_visits
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.search import words_of_item

T = TypeVar("T")

# Few are planned for later than that, and no lease lasts as long: what is was done by a clock that was ahead.
FUTURE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Settlement:
    """All that one visit changes, committed together or not at all."""

    before: Source
    after: Source
    visit: Visit
    changes: tuple[ItemChange, ...] = ()
    memory: bytes | None = None  # what its collector wants to be told at the next visit; None: as it was
    push: SubscriptionChange | None = None  # what it says of the source's subscription to a hub
    pushed: bool = False  # found by a hub and not by a visit: a visit that was asked for is still made
    read_back: bool = False  # read from an archive on demand: likewise, and no runs start for what is old

    @property
    def lease(self) -> tuple[int, int]:
        """Under which claim of which source this was found."""
        return self.before.id, self.before.lease_no


def claim_due(
    connection: Connection, limit: int, *, now: float, lease_until: float, due_by: float | None = None
) -> list[Source]:
    """Take up to `limit` sources due by now (or by `due_by`), first in line first, leased until `lease_until`."""
    due = sources.c.due_at <= (now if due_by is None else due_by)
    return _lease(connection, due, now, lease_until, limit)


def claim_sources(
    connection: Connection, source_ids: Sequence[int], *, now: float, lease_until: float
) -> list[Source]:
    """Take exactly these sources, due or not, except those that are being visited right now."""
    chosen = sources.c.id.in_(source_ids) & ~sources.c.is_deleted
    return _lease(connection, chosen, now, lease_until)


def is_leased(now: float) -> ColumnElement[bool]:
    """That a worker is visiting a source."""
    lease = source_leases.c
    return select(lease.source_id).where(lease.source_id == sources.c.id, lease.lease_until > now).exists()


def _of_lease(column: Column[T]) -> ScalarSelect[T]:
    """This of a source's lease, or NULL. Looked up for each: PostgreSQL misjudges a join and sorts all that are due."""
    return select(column).where(source_leases.c.source_id == sources.c.id).scalar_subquery()


def _lease(
    connection: Connection,
    chosen: ColumnElement[bool],
    now: float,
    lease_until: float,
    limit: int | None = None,
) -> list[Source]:
    query = (
        select(sources, _of_lease(source_leases.c.lease_no).label("run_out"))
        .where(chosen, ~is_leased(now))
        .order_by(sources.c.due_at)
        .limit(limit)
    )
    if not is_sqlite(connection):
        query = query.with_for_update(skip_locked=True)
    rows = connection.execute(query).all()
    numbers = {row[0]: max(row.lease_no, row.run_out or 0) + 1 for row in rows}
    # Another worker may have leased one, and let go of its row, since this statement's view of the leases was taken.
    taken = insert_returning(
        connection,
        source_leases,
        ("source_id", "lease_no", "lease_until"),
        [(source_id, number, lease_until) for source_id, number in numbers.items()],
        "ON CONFLICT (source_id) DO UPDATE SET lease_no = excluded.lease_no, lease_until = excluded.lease_until"
        " WHERE source_leases.lease_no < excluded.lease_no",
        "source_id",
    )
    if rows and not taken:
        # "None" would be taken for "nothing is due"; a new look passes over what others took.
        return _lease(connection, chosen, now, lease_until, limit)
    if len(taken) < len(rows):
        mine = {row[0] for row in taken}
        rows = [row for row in rows if row[0] in mine]
    stats = read_stats(connection, [row[0] for row in rows])
    read_elsewhere = _read_elsewhere(
        connection, [row[0] for row in rows if row.fetch_count == row.fetch_error_count]
    )
    return [
        source_from_row(
            row,
            lease_no=numbers[row[0]],
            lease_until=lease_until,
            stats=stats.get(row[0]),
            read_elsewhere=row[0] in read_elsewhere,
        )
        for row in rows
    ]


def _read_elsewhere(connection: Connection, unread: Sequence[int]) -> set[int]:
    """Those of the sources that were never read here of which something is known all the same."""
    rows = select_by(
        connection,
        "SELECT id FROM sources WHERE id {values}"
        " AND EXISTS (SELECT 1 FROM seen_ids WHERE source_id = sources.id)",
        unread,
        "bigint",
    )
    return {row[0] for row in rows}


def release_leases(
    connection: Connection, claimed: Sequence[Source], due_at: Mapping[int, float] | None = None
) -> None:
    """Give leases back unused: each source keeps its place in line, or is due at the time given for it."""
    held = _still_held(connection, [(source.id, source.lease_no) for source in claimed])
    later = due_at or {}
    rows = []
    for (source_id, lease_no), row in held.items():
        is_in_line = row.due_at is not None
        rows.append((lease_no, later.get(source_id, row.due_at) if is_in_line else None, source_id))
    update_rows(connection, sources, ("id",), ("lease_no", "due_at"), rows)
    _end_leases(connection, [source_id for source_id, _ in held])
    if due_at is None:
        announce(connection)  # they may be due at once, and who gives them back may be going away


def reset_future_plans(connection: Connection, now: float) -> int:
    """Make due what was visited or claimed while the clock was wrong: by a clock that was ahead, its time never comes.

    Returns how many there were. What is planned that far ahead by a right clock was not visited in the future.
    """
    future = now + FUTURE_SECONDS
    plan, lease = sources.c, source_leases.c
    planned = select(plan.id).where(plan.due_at > future, plan.last_fetched_at > future)
    leased = select(lease.source_id).where(lease.lease_until > future)
    planned_ids = connection.execute(planned).scalars().all()
    leased_ids = connection.execute(leased).scalars().all()
    if not is_sqlite(connection):  # in the order in which settling locks
        select_by(
            connection,
            "SELECT id FROM sources WHERE id {values} ORDER BY id FOR UPDATE",
            sorted({*planned_ids, *leased_ids}),
            "bigint",
        )
    plans = "UPDATE sources SET due_at = ?, next_fetch_at = ? WHERE last_fetched_at > ? AND id {values}"
    run_by(connection, plans, planned_ids, "bigint", now, now, future)
    leases = "UPDATE source_leases SET lease_until = ? WHERE lease_until > ? AND source_id {values}"
    run_by(connection, leases, leased_ids, "bigint", now, future)
    return len(planned_ids) + len(leased_ids)


def next_due_at(connection: Connection, now: float) -> float | None:
    """When the first source in line can be had, by its place; at or before now means that something is due."""
    place, lease = sources.c.due_at, source_leases.c
    free = select(place).where(place.is_not(None), ~is_leased(now)).order_by(place).limit(1)
    # One that is being visited can be had when its lease expires, unless its worker settles it.
    leased = select(func.min(lease.lease_until)).where(
        lease.lease_until > now, _place_of_leased().is_not(None)
    )
    found = (connection.execute(free).scalar(), connection.execute(leased).scalar())
    return min((float(each) for each in found if each is not None), default=None)


def _place_of_leased() -> ScalarSelect[float | None]:
    """Looked up for each lease, for they are few: in a join, either database may read all sources for them."""
    return select(sources.c.due_at).where(sources.c.id == source_leases.c.source_id).scalar_subquery()


def count_due(connection: Connection, now: float) -> int:
    lease = source_leases.c
    due = select(func.count()).where(sources.c.due_at <= now)
    # So, and not one by one: this is counted by an index alone, however many are due.
    leased = select(func.count()).where(lease.lease_until > now, _place_of_leased() <= now)
    return int(connection.execute(select(due.scalar_subquery() - leased.scalar_subquery())).scalar_one())


@dataclass(frozen=True, slots=True)
class Due:
    """A source that is due, and where it stands in line."""

    source: Source
    place: float
    requested_at: float | None


def iterate_due(connection: Connection, now: float, limit: int | None = None) -> Iterator[Due]:
    """What a claim would take now, first in line first, with a page in memory at a time. Takes nothing."""
    query = (
        select(sources, _of_lease(source_leases.c.lease_until).label("lease_until"))
        .where(sources.c.due_at <= now, ~is_leased(now))
        .order_by(sources.c.due_at)
        .limit(limit)
    )
    with connection.execute(query, execution_options={"yield_per": PAGE}) as rows:
        for row in rows:
            source = source_from_row(row, lease_until=row.lease_until)
            yield Due(source, row.due_at, row.refresh_requested_at)


_USUAL = (  # what every visit changes
    "next_fetch_at",
    "plan_reason",
    "planned_from",
    "policy_state",
    "last_fetched_at",
    "last_entry_at",
    "fetch_count",
    "hit_count",
    "due_at",
    "refresh_requested_at",
    "lease_no",
    "updated_at",
)
_UNUSUAL = (  # what few change; several are in indexes, which an UPDATE writes again for any value
    "etag",
    "last_modified",
    "body_hash",
    "moved_to",
    "moved_count",
    "status",
    "is_active",
    "fetch_error_count",
    "consecutive_failures",
    "last_error",
    "last_error_kind",
    "failing_since_at",
    "is_late",
)
_COLD = ("hints", "title", "description", "site_url", "language", "icon_url", "details", "repairs")
_RECORD = (
    "source_id",
    "lease_no",
    "status",
    "started_at",
    "finished_at",
    "items_found",
    "items_new",
    "items_updated",
    "overflow",
    "http_status",
    "requests",
    "bytes_received",
    "error_kind",
    "error_message",
    "planned_by",
    "since_at",
)


def with_words(settlement: Settlement) -> Settlement:
    """The settlement with the words that its changed items are to be found by: made before it is written."""
    changes = (
        replace(change, words=tuple(words_of_item(change.item))) if change.kind == "changed" else change
        for change in settlement.changes
    )
    return replace(settlement, changes=tuple(changes))


def settle_batch(connection: Connection, settlements: Sequence[Settlement]) -> set[tuple[int, int]]:
    """Write what the visits found, planned and recorded. Returns the leases that are settled now.

    A settlement whose lease has passed to another worker is left out whole. One that was settled before, because
    the answer to an earlier commit was lost, is not written again and counts as settled.
    """
    held = _still_held(connection, [settlement.lease for settlement in settlements])
    valid = [
        s if held[s.lease].url == s.before.url else _elsewhere(s) for s in settlements if s.lease in held
    ]
    write_items(connection, [(s.before.id, s.changes, s.visit.finished_at) for s in valid])
    start_for_visits(connection, [_stored_items(s) for s in valid if s.changes and not s.read_back])
    usual, unusual = [], []
    for settlement in valid:
        row, news = _usual_row(settlement, held[settlement.lease]), _unusual_row(settlement.after)
        if news == _unusual_row(settlement.before):
            usual.append((*row, settlement.after.id))
        else:
            unusual.append((*row, *news, settlement.after.id))
    update_rows(connection, sources, ("id",), _USUAL, usual)
    update_rows(connection, sources, ("id",), _USUAL + _UNUSUAL, unusual)
    update_rows(
        connection,
        sources,
        ("id",),
        _COLD,
        [_cold_row(s.after) for s in valid if _has_cold_news(s)],
    )
    for settlement in valid:
        if settlement.after.url != settlement.before.url:
            move_source(connection, settlement.after)
        if settlement.after.name != settlement.before.name:
            _rename(connection, settlement.before, settlement.after.name)
    write_stats(connection, [(s.after, s.before.stats) for s in valid])
    write_memories(connection, [(s.before.id, s.memory) for s in valid if s.memory is not None])
    write_subscription_changes(
        connection, [(s.before.id, s.push, s.visit.finished_at) for s in valid if s.push is not None]
    )
    insert_rows(connection, collection_records, _RECORD, [_record_row(s, held[s.lease]) for s in valid])
    _end_leases(connection, [s.before.id for s in valid])
    done = set(held)
    if len(valid) < len(settlements):
        done |= _settled_before(connection, [s.lease for s in settlements if s.lease not in held])
    return done


def _elsewhere(settlement: Settlement) -> Settlement:
    """What holds of a visit when the user has given its source another address meanwhile: nothing of the old one."""
    after = replace(
        settlement.after, url=settlement.before.url, validators=Validators(), moved_to=None, moved_count=0
    )
    return replace(settlement, after=after)


def _stored_items(settlement: Settlement) -> StoredItems:
    source, changes = settlement.before, settlement.changes
    new = {change.id_key: change.item.categories for change in changes if change.kind == "new"}
    # A renamed item is stored under its new id by now, and may have changed as well.
    changed = {
        change.id_key if change.kind == "renamed" else change.item_key: change.item.categories
        for change in changes
        if change.kind != "new"
    }
    at = settlement.visit.finished_at
    return StoredItems(source.id, source.type, source.folder, new, changed, at)


@dataclass(frozen=True, slots=True)
class _Held:
    """What the user may have changed while the visit was under way."""

    enabled: bool
    refresh_requested_at: float | None
    url: str
    due_at: float | None
    planned_from: int | None


def _still_held(connection: Connection, leases: Sequence[tuple[int, int]]) -> dict[tuple[int, int], _Held]:
    """Those of the leases that are still in force, locked in one order so that there are no deadlocks."""
    mine = set(leases)
    rows = select_by(
        connection,
        "SELECT id, source_leases.lease_no, schedule_enabled AND NOT is_deleted, refresh_requested_at, url, due_at,"
        " planned_from"
        " FROM sources JOIN source_leases ON source_id = id WHERE id {values} ORDER BY id"
        + ("" if is_sqlite(connection) else " FOR UPDATE"),
        sorted({source_id for source_id, _ in leases}),
        "bigint",
    )
    return {
        (source_id, lease_no): _Held(bool(enabled), *more)
        for source_id, lease_no, enabled, *more in rows
        if (source_id, lease_no) in mine
    }


def _end_leases(connection: Connection, source_ids: Sequence[int]) -> None:
    run_by(connection, "DELETE FROM source_leases WHERE source_id {values}", source_ids, "bigint")


def _settled_before(connection: Connection, leases: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    rows = select_by(
        connection,
        "SELECT source_id, lease_no FROM collection_records WHERE source_id {values}",
        {source_id for source_id, _ in leases},
        "bigint",
    )
    return {(source_id, lease_no) for source_id, lease_no in rows} & set(leases)


def _usual_row(settlement: Settlement, held: _Held) -> tuple[Any, ...]:
    after = settlement.after
    requested_at = held.refresh_requested_at
    is_visit = not (settlement.pushed or settlement.read_back)
    if requested_at is not None and requested_at <= settlement.visit.started_at and is_visit:
        requested_at = None  # this visit was the answer to it
    due_at = place_in_line(
        enabled=held.enabled,
        status=after.status,
        next_fetch_at=after.next_fetch_at,
        created_at=after.created_at,
        requested_at=requested_at,
    )
    return (
        after.next_fetch_at,
        orjson.dumps(after.plan_reason).decode(),
        # Planned again meanwhile, by an edit or by another worker: this plan is of what was before.
        after.planned_from if held.planned_from == settlement.before.planned_from else None,
        after.policy_state,
        after.last_fetched_at,
        after.last_entry_at,
        after.fetch_count,
        after.hit_count,
        due_at,
        requested_at,
        settlement.before.lease_no,
        settlement.visit.finished_at,
    )


def _rename(connection: Connection, before: Source, name: str) -> None:
    """Let a name follow the source's title, unless a person has changed it meanwhile."""
    unchanged = (sources.c.id == before.id) & (sources.c.name == before.name)
    connection.execute(sources.update().where(unchanged).values(name=name))


def _unusual_row(source: Source) -> tuple[Any, ...]:
    validators = source.validators
    return (
        validators.etag,
        validators.last_modified,
        validators.body_hash,
        source.moved_to,
        source.moved_count,
        source.status,
        source.is_active,
        source.fetch_error_count,
        source.consecutive_failures,
        storable(source.last_error),
        source.last_error_kind,
        source.failing_since_at,
        source.is_late,
    )


def _has_cold_news(settlement: Settlement) -> bool:
    before, after = settlement.before, settlement.after
    if before.hints is after.hints and before.metadata is after.metadata:
        return False  # as after most visits
    return _cold_row(before) != _cold_row(after)


def _cold_row(source: Source) -> tuple[Any, ...]:
    metadata = source.metadata
    texts = (
        metadata.title,
        metadata.description,
        metadata.site_url,
        metadata.language,
        metadata.icon_url,
        details_to_json(metadata.details),
        repairs_to_json(metadata.repairs),
    )
    return (hints_to_json(source.hints), *map(storable, texts), source.id)


def _planned_by(settlement: Settlement, held: _Held) -> str:
    """Why the visit was made: the name of the policy that planned it, or "asked", "pushed" or "first"."""
    started_at, requested_at = settlement.visit.started_at, held.refresh_requested_at
    if settlement.pushed:
        return "pushed"
    if settlement.read_back:
        return "asked"
    if requested_at is not None and requested_at <= started_at:
        return "asked"
    if settlement.before.next_fetch_at is not None and (held.due_at is None or held.due_at > started_at):
        return "asked"  # before its time
    if settlement.before.last_fetched_at is None:
        return "first"
    return str(settlement.after.plan_reason.get("policy", "adaptive"))


def _record_row(settlement: Settlement, held: _Held) -> tuple[Any, ...]:
    visit, before = settlement.visit, settlement.before
    return (
        visit.source_id,
        settlement.before.lease_no,
        visit.outcome,
        visit.started_at,
        visit.finished_at,
        visit.items_found,
        visit.items_new,
        visit.items_updated,
        visit.overflow,
        visit.http_status,
        visit.requests,
        visit.bytes_received,
        visit.error_kind,
        storable(visit.error_message),
        _planned_by(settlement, held),
        before.last_fetched_at if before.consecutive_failures == 0 else None,
    )
