"""Subscriptions to hubs: one row a source at most. Nothing here decides; `collect.push` and `collect.hub_trust` do."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Row, select

from headwater.store.core.bulk import batches, insert_rows, is_sqlite, storable
from headwater.store.core.tables import push_subscriptions as table
from headwater.store.core.tables import sources

# wanted: to be asked for; pending: asked for, not confirmed yet; active: confirmed; refused: by the hub;
# leaving: to be given up
State = Literal["wanted", "pending", "active", "refused", "leaving"]


@dataclass(frozen=True, slots=True)
class Subscription:
    source_id: int
    hub: str
    topic: str
    token: str = field(repr=False)
    secret: str = field(repr=False)
    state: State
    act_at: float | None
    attempts: int
    verified_at: float | None
    lease_ends_at: float | None
    last_pushed_at: float | None
    missed_at: float | None
    pushes: int
    forged: int
    missed: int
    last_error: str | None
    created_at: float
    enabled: bool = True  # whether its source is there and not paused


@dataclass(frozen=True, slots=True)
class FoundHub:
    """A visit has found a (new) hub: a subscription is wanted there, under a new token and secret."""

    hub: str
    topic: str
    token: str = field(repr=False)
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LostHub:
    """The source names no hub any more."""


@dataclass(frozen=True, slots=True)
class MissedItems:
    """A visit has found what the hub should have pushed."""


SubscriptionChange = FoundHub | LostHub | MissedItems

_ENABLED = (sources.c.schedule_enabled & ~sources.c.is_deleted).label("enabled")


def read_subscription(connection: Connection, source_id: int) -> Subscription | None:
    row = connection.execute(_query().where(table.c.source_id == source_id)).first()
    return None if row is None else _from_row(row)


def subscription_states(connection: Connection, source_ids: Sequence[int]) -> dict[int, State]:
    """The state of the subscriptions of those of the sources that have one."""
    query = select(table.c.source_id, table.c.state).where(table.c.source_id.in_(source_ids))
    return {row.source_id: row.state for row in connection.execute(query)}


def find_subscription(connection: Connection, token: str) -> Subscription | None:
    """The subscription whose callback address ends in `token`."""
    row = connection.execute(_query().where(table.c.token == token)).first()
    return None if row is None else _from_row(row)


def lock_subscription(connection: Connection, token: str) -> Subscription | None:
    """As `find_subscription`, for a transaction that goes on to change it."""
    query = _query().where(table.c.token == token)
    row = connection.execute(query if is_sqlite(connection) else query.with_for_update(of=table)).first()
    return None if row is None else _from_row(row)


def is_any_due(connection: Connection, now: float) -> bool:
    """Whether there is something to do: a look that locks nothing."""
    return (
        connection.execute(select(table.c.source_id).where(table.c.act_at <= now).limit(1)).first()
        is not None
    )


def due_subscriptions(connection: Connection, limit: int, now: float) -> list[Subscription]:
    """Those about which something is to be done, locked until the transaction ends."""
    query = _query().where(table.c.act_at <= now).order_by(table.c.act_at).limit(limit)
    if not is_sqlite(connection):
        query = query.with_for_update(of=table, skip_locked=True)
    return [_from_row(row) for row in connection.execute(query)]


def change_subscription(connection: Connection, source_id: int, **values: Any) -> None:
    if "last_error" in values:
        values["last_error"] = storable(values["last_error"])
    connection.execute(table.update().where(table.c.source_id == source_id).values(**values))


def delete_subscription(connection: Connection, source_id: int) -> None:
    connection.execute(table.delete().where(table.c.source_id == source_id))


def wake_subscriptions(connection: Connection, source_ids: Sequence[int], now: float) -> None:
    """Something about the sources has changed that their subscriptions may depend on."""
    for those in batches(source_ids):
        connection.execute(table.update().where(table.c.source_id.in_(those)).values(act_at=now))


def count_push(connection: Connection, source_id: int, now: float) -> None:
    connection.execute(
        table.update()
        .where(table.c.source_id == source_id)
        .values(pushes=table.c.pushes + 1, last_pushed_at=now)
    )


def count_forgery(connection: Connection, source_id: int) -> None:
    connection.execute(table.update().where(table.c.source_id == source_id).values(forged=table.c.forged + 1))


def suspend_subscriptions(connection: Connection, now: float) -> list[int]:
    """No hub can reach us any more: every subscription is to be asked for again. Answers whose were in force."""
    pushed = [
        row.source_id
        for row in connection.execute(select(table.c.source_id).where(table.c.state == "active"))
    ]
    connection.execute(
        table.update().where(table.c.state.in_(("active", "pending"))).values(state="wanted", act_at=now)
    )
    return pushed


def write_subscription_changes(
    connection: Connection, changes: Sequence[tuple[int, SubscriptionChange, float]]
) -> None:
    """What visits found out, given as (source id, change, when)."""
    found = [
        (source_id, change.hub, change.topic, change.token, change.secret, "wanted", now, now)
        for source_id, change, now in changes
        if isinstance(change, FoundHub)
    ]
    columns = ("source_id", "hub", "topic", "token", "secret", "state", "act_at", "created_at")
    fresh = ("attempts = 0", "verified_at = NULL", "lease_ends_at = NULL", "missed_at = NULL", "missed = 0")
    taken = ", ".join((*(f"{name} = excluded.{name}" for name in columns[1:]), *fresh, "last_error = NULL"))
    insert_rows(connection, table, columns, found, f"ON CONFLICT (source_id) DO UPDATE SET {taken}")
    for source_id, change, now in changes:
        if isinstance(change, LostHub):
            change_subscription(connection, source_id, state="leaving", act_at=now, attempts=0)
        elif isinstance(change, MissedItems):
            change_subscription(connection, source_id, missed_at=now, missed=table.c.missed + 1)


def _query() -> Any:
    return select(table, _ENABLED).join_from(table, sources)


def _from_row(row: Row[Any]) -> Subscription:
    return Subscription(**row._asdict() | {"enabled": bool(row.enabled)})
