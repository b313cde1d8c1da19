"""Outlets: feeds that Headwater publishes, each a selection of items under a name."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import orjson
from sqlalchemy import Connection, Row, func, select
from sqlalchemy.exc import IntegrityError

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.store.bulk import insert_rows, storable
from headwater.store.items import StoredItem, stored_item
from headwater.store.listing import newest_rows
from headwater.store.selection import (
    EVERYTHING,
    Selection,
    conditions,
    from_json,
    refuse_unknown_sources,
    to_json,
)
from headwater.store.tables import item_versions, items, outlet_items, outlets, sources

MOST_ITEMS = 1_000
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Outlet:
    name: str
    title: str
    selection: Selection = EVERYTHING
    description: str | None = None
    item_limit: int = 50
    hub_url: str | None = None
    token: str | None = None
    updated_at: float = 0.0
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Edition:
    """What an outlet shows right now, without its contents."""

    outlet: Outlet
    item_ids: tuple[int, ...]
    changed_at: float
    tag: str  # another one whenever anything in it is different


def add_outlet(connection: Connection, outlet: Outlet, now: float, *, private: bool = False) -> Outlet:
    """Store a new outlet; a private one gets a token that its address must carry."""
    _check(connection, outlet)
    token = secrets.token_urlsafe(24) if private else None
    outlet = replace(outlet, token=token, created_at=now, updated_at=now)
    try:
        with connection.begin_nested():
            connection.execute(outlets.insert().values(**_row(outlet), created_at=now))
    except IntegrityError:
        raise ConflictError(
            "there is an outlet {name} already; choose another name", name=outlet.name
        ) from None
    return outlet


def change_outlet(connection: Connection, name: str, now: float, **changes: Any) -> Outlet:
    outlet = replace(get_outlet(connection, name), **changes, updated_at=now)
    _check(connection, outlet)
    connection.execute(outlets.update().where(outlets.c.name == name).values(**_row(outlet)))
    return outlet


def remove_outlet(connection: Connection, name: str) -> None:
    """Stop publishing it. What pipelines have published to it goes with it; the items stay."""
    get_outlet(connection, name)
    connection.execute(outlet_items.delete().where(outlet_items.c.outlet_name == name))
    connection.execute(outlets.delete().where(outlets.c.name == name))


def get_outlet(connection: Connection, name: str) -> Outlet:
    row = connection.execute(select(outlets).where(outlets.c.name == name)).first()
    if row is None:
        raise NotFoundError("there is no outlet {name}; `headwater outlet list` shows all", name=name)
    return _outlet(row)


def outlets_missing(connection: Connection, names: Sequence[str]) -> list[str]:
    """Which of these outlets there are none of."""
    known = connection.execute(select(outlets.c.name).where(outlets.c.name.in_(names))).scalars()
    return sorted(set(names) - set(known))


def list_outlets(connection: Connection) -> list[Outlet]:
    return [_outlet(row) for row in connection.execute(select(outlets).order_by(outlets.c.name))]


def read_edition(connection: Connection, name: str) -> Edition:
    """Which items an outlet shows, newest first: enough to tell whether a reader has them all."""
    outlet = get_outlet(connection, name)
    query = select(items.c.id, items.c.version, items.c.first_seen_at).join_from(items, sources)
    rows = newest_rows(connection, query, outlet.selection, limit=outlet.item_limit - 1)
    item_ids = tuple(row.id for row in rows)
    rewritten_at = connection.execute(
        select(func.max(item_versions.c.replaced_at)).where(item_versions.c.item_id.in_(item_ids))
    ).scalar()
    published_at = None
    if outlet.selection.outlet is not None:
        published_at = connection.execute(
            select(func.max(outlet_items.c.published_at)).where(
                outlet_items.c.outlet_name == outlet.selection.outlet, outlet_items.c.item_id.in_(item_ids)
            )
        ).scalar()
    digest = blake2b(repr((outlet, [(row.id, row.version) for row in rows])).encode(), digest_size=12)
    return Edition(
        outlet,
        item_ids,
        max(
            [
                outlet.updated_at,
                rewritten_at or 0.0,
                published_at or 0.0,
                *(row.first_seen_at for row in rows),
            ]
        ),
        digest.hexdigest(),
    )


def read_items(connection: Connection, edition: Edition) -> list[tuple[StoredItem, float]]:
    """The items of an edition in its order, each with when the source it is from was added."""
    query = (
        select(items, sources.c.name.label("source_name"), sources.c.created_at.label("source_added_at"))
        .join_from(items, sources)
        .where(items.c.id.in_(edition.item_ids))
    )
    found = {row.id: (stored_item(row), row.source_added_at) for row in connection.execute(query)}
    return [found[item_id] for item_id in edition.item_ids if item_id in found]


def publish_items(connection: Connection, published: Sequence[tuple[str, int, float]]) -> None:
    """Put items into outlets by hand of a pipeline: (outlet, item, when). One that is there already stays as it is."""
    insert_rows(
        connection,
        outlet_items,
        ("outlet_name", "item_id", "published_at"),
        published,
        "ON CONFLICT (outlet_name, item_id) DO NOTHING",
    )


def _check(connection: Connection, outlet: Outlet) -> None:
    if not _NAME.fullmatch(outlet.name):
        raise InputError(
            "{name} is no name for an outlet: it takes small letters, digits and hyphens, 63 at most",
            name=outlet.name or "''",
        )
    if not 1 <= outlet.item_limit <= MOST_ITEMS:
        raise InputError(
            "an outlet shows 1 to {most} items, not {limit}", most=MOST_ITEMS, limit=outlet.item_limit
        )
    if outlet.hub_url and not outlet.hub_url.startswith(("http://", "https://")):
        raise InputError("{url} is not the address of a hub; it starts with https://", url=outlet.hub_url)
    conditions(connection, outlet.selection)  # complains of a search for nothing
    refuse_unknown_sources(connection, outlet.selection)


def _row(outlet: Outlet) -> dict[str, Any]:
    return {
        "name": outlet.name,
        "title": storable(outlet.title),
        "description": storable(outlet.description),
        "selection": orjson.dumps(to_json(outlet.selection)).decode(),
        "item_limit": outlet.item_limit,
        "hub_url": outlet.hub_url,
        "token": outlet.token,
        "updated_at": outlet.updated_at,
    }


def _outlet(row: Row[Any]) -> Outlet:
    return Outlet(
        name=row.name,
        title=row.title,
        selection=from_json(orjson.loads(row.selection)),
        description=row.description,
        item_limit=row.item_limit,
        hub_url=row.hub_url,
        token=row.token,
        updated_at=row.updated_at,
        created_at=row.created_at,
    )
