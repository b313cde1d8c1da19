"""Targets: where messages are sent, each under a name that pipelines, digests and alerts use."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import IntegrityError

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.store.core.bulk import storable
from headwater.store.core.tables import targets

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Target:
    """A webhook, a mailbox or a chat. With `batch_minutes` it gets one message in that time, with several items."""

    name: str
    kind: str
    config: Mapping[str, Any] = field(default_factory=dict, hash=False)
    batch_minutes: float | None = None
    batch_items: int = 20
    id: int = 0
    batched_at: float | None = None
    created_at: float = 0.0
    updated_at: float = 0.0


def add_target(connection: Connection, target: Target, now: float) -> Target:
    if not _NAME.fullmatch(target.name):
        raise InputError(
            "{name} cannot be a target's name; use letters, digits, dots, hyphens and underscores",
            name=target.name or "''",
        )
    try:
        with connection.begin_nested():
            connection.execute(targets.insert().values(**_values(target), created_at=now, updated_at=now))
    except IntegrityError:
        raise ConflictError(
            "there is a target {name} already; choose another name", name=target.name
        ) from None
    return get_target(connection, target.name)


def change_target(connection: Connection, name: str, now: float, **changes: Any) -> Target:
    changed = replace(get_target(connection, name), **changes)
    query = targets.update().where(targets.c.name == name)
    connection.execute(query.values(**_values(changed), updated_at=now))
    return get_target(connection, name)


def remove_target(connection: Connection, name: str) -> None:
    """Remove a target and its unsent messages."""
    get_target(connection, name)
    connection.execute(targets.delete().where(targets.c.name == name))


def get_target(connection: Connection, name: str) -> Target:
    row = connection.execute(select(targets).where(targets.c.name == name)).first()
    if row is None:
        raise NotFoundError(
            "there is no target {name}", hint="`headwater target list` shows them all", name=name
        )
    return read_target(row)


def list_targets(connection: Connection) -> list[Target]:
    return [read_target(row) for row in connection.execute(select(targets).order_by(targets.c.name))]


def refuse_unknown_targets(connection: Connection, names: Iterable[str]) -> None:
    """InputError for the first target that is not there."""
    wanted = [storable(name) or "" for name in names]
    known = set(connection.execute(select(targets.c.name).where(targets.c.name.in_(wanted))).scalars())
    for missing in (name for name in wanted if name not in known):
        raise InputError(
            "there is no target {name}",
            hint="add it first: headwater target add {name} --email ann@example.org",
            name=missing,
        )


def read_target(row: Row[Any]) -> Target:
    return Target(
        name=row.name,
        kind=row.kind,
        config=orjson.loads(row.config),
        batch_minutes=row.batch_minutes,
        batch_items=row.batch_items,
        id=row.id,
        batched_at=row.batched_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _values(target: Target) -> dict[str, Any]:
    return {
        "name": target.name,
        "kind": target.kind,
        "config": storable(orjson.dumps(target.config).decode()),
        "batch_minutes": target.batch_minutes,
        "batch_items": target.batch_items,
    }
