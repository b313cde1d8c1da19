"""The outbox: what is to be sent is written in the transaction that decides it, and sent until that has worked.

A delivery has an idempotency key that never changes, so that a receiver can drop what a crash made us send twice. A
claim raises `lease_no`, which settling checks, as for runs. Targets that take several items in one message have theirs
gathered in `waiting_messages` until a message is due.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from sqlalchemy import Connection, Row, Select, delete, func, select, update

from headwater.errors import ConflictError, NotFoundError
from headwater.store.core.bulk import insert_rows, is_sqlite, run_by, storable, update_rows
from headwater.store.core.tables import deliveries, targets, waiting_messages
from headwater.store.publishing.targets import Target, get_target, read_target

DeliveryKind = Literal["item", "batch", "digest", "alert", "test"]
Status = Literal["pending", "sent", "failed"]


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """Something to tell a target."""

    target: str
    key: str
    title: str
    text: str
    html: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Delivery:
    id: int
    target: str
    kind: DeliveryKind
    key: str
    title: str
    text: str
    html: str | None
    data: dict[str, Any] = field(hash=False)
    status: Status
    attempts: int
    error_message: str | None
    due_at: float | None
    created_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A claimed delivery, and its target."""

    delivery: Delivery
    target: Target
    lease_no: int


@dataclass(frozen=True, slots=True)
class DeliveryEnd:
    """How an attempt ended: sent, failed for good, or to be tried again at `due_at`."""

    claimed: ClaimedDelivery
    status: Status
    at: float
    due_at: float | None = None
    error_message: str | None = None


_MESSAGE = ("target_id", "idempotency_key", "title", "text", "html", "data", "created_at")
_ONCE = "ON CONFLICT (target_id, idempotency_key) DO NOTHING"


def put_in_outbox(
    connection: Connection, messages: Iterable[NewDelivery], kind: DeliveryKind, now: float
) -> None:
    """Have these sent, each once for its key; items for a target with batches wait for the next one.

    A target that has been removed meanwhile gets nothing.
    """
    given = list(messages)
    known = {row.name: row for row in connection.execute(select(targets))} if given else {}
    at_once: list[tuple[Any, ...]] = []
    batched: list[tuple[Any, ...]] = []
    for message in given:
        target = known.get(message.target)
        if target is None:
            continue
        row = (target.id, *_message_row(message), now)
        if kind == "item" and target.batch_minutes is not None:
            batched.append(row)
        else:
            at_once.append((*row, kind, now))
    insert_rows(connection, deliveries, (*_MESSAGE, "kind", "due_at"), at_once, _ONCE)
    insert_rows(connection, waiting_messages, _MESSAGE, batched, _ONCE)


def _message_row(message: NewDelivery) -> tuple[Any, ...]:
    return (
        message.key,
        storable(message.title),
        storable(message.text),
        storable(message.html),
        storable(orjson.dumps(message.data).decode()),
    )


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    id: int
    key: str
    title: str
    text: str
    html: str | None
    data: dict[str, Any] = field(hash=False)
    created_at: float


def due_batches(connection: Connection, now: float) -> list[str]:
    """The targets for which a message with several items is due."""
    waits = select(waiting_messages.c.id).where(waiting_messages.c.target_id == targets.c.id).exists()
    query = select(targets.c.name).where(
        waits,
        targets.c.batch_minutes.is_(None)
        | targets.c.batched_at.is_(None)
        | (targets.c.batched_at <= now - 60 * targets.c.batch_minutes)
        | (targets.c.batched_at > now),  # by a clock that was ahead
    )
    return sorted(connection.execute(query).scalars())


def take_batch(connection: Connection, name: str, now: float) -> list[WaitingMessage]:
    """What goes into a target's next message, if it is due: the oldest, as many as the target takes.

    The target is held until the commit, so that the batch is put into the outbox once.
    """
    query = select(targets).where(targets.c.name == name)
    row = connection.execute(query if is_sqlite(connection) else query.with_for_update()).first()
    if row is None or name not in due_batches(connection, now):
        return []
    column = waiting_messages.c
    waiting = select(waiting_messages).where(column.target_id == row.id).order_by(column.id)
    found = connection.execute(waiting.limit(row.batch_items)).all()
    run_by(
        connection, "DELETE FROM waiting_messages WHERE id {values}", [each.id for each in found], "bigint"
    )
    connection.execute(update(targets).where(targets.c.id == row.id).values(batched_at=now))
    return [
        WaitingMessage(
            each.id,
            each.idempotency_key,
            each.title,
            each.text,
            each.html,
            orjson.loads(each.data),
            each.created_at,
        )
        for each in found
    ]


def claim_deliveries(
    connection: Connection, limit: int, *, now: float, lease_until: float
) -> list[ClaimedDelivery]:
    """Take deliveries that are due, first in line first."""
    query = (
        _query().where(deliveries.c.due_at <= now).order_by(deliveries.c.due_at, deliveries.c.id).limit(limit)
    )
    if not is_sqlite(connection):
        query = query.with_for_update(skip_locked=True, of=deliveries)
    rows = connection.execute(query).all()
    update_rows(
        connection,
        deliveries,
        ("id",),
        ("lease_no", "due_at", "attempts"),
        [(row.lease_no + 1, lease_until, row.attempts + 1, row.id) for row in rows],
    )
    if not rows:
        return []
    by_id = {
        row.id: read_target(row)
        for row in connection.execute(
            select(targets).where(targets.c.id.in_({row.target_id for row in rows}))
        )
    }
    return [ClaimedDelivery(_delivery(row), by_id[row.target_id], row.lease_no + 1) for row in rows]


def settle_deliveries(connection: Connection, ends: Sequence[DeliveryEnd]) -> None:
    """Write how attempts ended; those whose lease has passed on are left out."""
    column = deliveries.c
    for end in ends:
        query = update(deliveries).where(
            column.id == end.claimed.delivery.id, column.lease_no == end.claimed.lease_no
        )
        connection.execute(
            query.values(
                status=end.status,
                due_at=end.due_at,
                error_message=storable(end.error_message),
                ended_at=None if end.status == "pending" else end.at,
            )
        )


def next_delivery_at(connection: Connection) -> float | None:
    """When the first delivery is due."""
    found: float | None = connection.execute(
        select(func.min(deliveries.c.due_at)).where(deliveries.c.due_at.is_not(None))
    ).scalar()
    return found


def list_deliveries(
    connection: Connection,
    *,
    status: Status | None = None,
    target: str | None = None,
    key_start: str | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> list[Delivery]:
    """Deliveries, newest first. `key_start`: those whose keys begin so."""
    query = _query().order_by(deliveries.c.id.desc()).limit(limit)
    if status is not None:
        query = query.where(deliveries.c.status == status)
    if target is not None:
        query = query.where(deliveries.c.target_id == get_target(connection, target).id)
    if key_start is not None:
        query = query.where(deliveries.c.idempotency_key.startswith(key_start, autoescape=True))
    if before_id is not None:
        query = query.where(deliveries.c.id < before_id)
    return [_delivery(row) for row in connection.execute(query)]


def get_delivery(connection: Connection, delivery_id: int) -> Delivery:
    row = connection.execute(_query().where(deliveries.c.id == delivery_id)).first()
    if row is None:
        raise NotFoundError(
            "there is no delivery {id}", hint="`headwater target deliveries` shows the newest", id=delivery_id
        )
    return _delivery(row)


def retry_delivery(connection: Connection, delivery_id: int, now: float) -> None:
    """Send a delivery again that failed, under the same key."""
    found = get_delivery(connection, delivery_id)
    if found.status != "failed":
        raise ConflictError(
            "delivery {id} is {status}; only one that failed is sent again",
            id=delivery_id,
            status=found.status,
        )
    query = update(deliveries).where(deliveries.c.id == delivery_id)
    connection.execute(query.values(status="pending", due_at=now, attempts=0, ended_at=None))


def forget_deliveries(connection: Connection, before: float) -> int:
    """Delete what was sent, or failed for good, before then."""
    column = deliveries.c
    return connection.execute(delete(deliveries).where(column.ended_at < before)).rowcount


def _query() -> Select[Any]:
    return select(deliveries, targets.c.name.label("target_name")).join_from(deliveries, targets)


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        id=row.id,
        target=row.target_name,
        kind=row.kind,
        key=row.idempotency_key,
        title=row.title,
        text=row.text,
        html=row.html,
        data=orjson.loads(row.data),
        status=row.status,
        attempts=row.attempts,
        error_message=row.error_message,
        due_at=row.due_at,
        created_at=row.created_at,
        ended_at=row.ended_at,
    )
