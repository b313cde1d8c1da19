"""Outlets: feeds that Headwater publishes, each a selection of items under a name."""

import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import orjson
from sqlalchemy import Connection, Row, func, select
from sqlalchemy.exc import IntegrityError

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.markup import LONGEST_TEXT
from headwater.model import StoredItem, read_result_key
from headwater.store.core.bulk import insert_rows, select_by, storable
from headwater.store.core.tables import (
    digest_issues,
    digests,
    item_versions,
    items,
    outlet_items,
    outlets,
    sources,
)
from headwater.store.reading.items import select_items, stored_item, with_results
from headwater.store.reading.listing import newest_rows
from headwater.store.reading.selection import (
    EVERYTHING,
    Selection,
    conditions,
    from_json,
    refuse_unknown_sources,
    to_json,
)

MOST_ITEMS = 1_000
READ_AT_ONCE = 20  # items of an outlet: each may be a book
ORIGINAL = "original"  # what the source delivered
TEMPLATE = "template"  # what the outlet's template makes of the item and its results
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
    content: tuple[str, ...] = (ORIGINAL,)  # what it publishes of an item: the first of these that there is
    template: str | None = None  # of the body, where the content says TEMPLATE
    own_media: bool = False  # images and files that were archived are read from us
    digest: str | None = None  # the digest whose issues it publishes, instead of items
    updated_at: float = 0.0
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Edition:
    """What an outlet shows right now, without its contents."""

    outlet: Outlet
    item_ids: tuple[int, ...]
    changed_at: float
    tag: str  # another one whenever anything in it is different
    issue_ids: tuple[int, ...] = ()  # of the digest that it publishes


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
        raise NotFoundError(
            "there is no outlet {name}", hint="`headwater outlet list` shows them all", name=name
        )
    return _outlet(row)


def outlets_missing(connection: Connection, names: Sequence[str]) -> list[str]:
    """Which of these outlets there are none of."""
    known = connection.execute(select(outlets.c.name).where(outlets.c.name.in_(names))).scalars()
    return sorted(set(names) - set(known))


def list_outlets(connection: Connection) -> list[Outlet]:
    return [_outlet(row) for row in connection.execute(select(outlets).order_by(outlets.c.name))]


def read_edition(connection: Connection, name: str) -> Edition:
    """Which items an outlet shows, newest first: enough to tell whether a reader has them all."""
    return edition_of(connection, get_outlet(connection, name))


def edition_of(connection: Connection, outlet: Outlet) -> Edition:
    """The same for an outlet that need not be stored."""
    if outlet.digest is not None:
        return _edition_of_issues(connection, outlet, outlet.digest)
    query = select(items.c.id, items.c.version, items.c.first_seen_at).join_from(items, sources)
    selection = outlet.selection
    if not {ORIGINAL, TEMPLATE}.intersection(outlet.content):  # only items that have one of the results
        if selection.has:
            query = query.where(*conditions(connection, Selection(has=outlet.content), item_by_item=True))
        else:
            selection = replace(selection, has=outlet.content)
    rows = newest_rows(connection, query, selection, limit=outlet.item_limit - 1)
    item_ids = tuple(row.id for row in rows)
    is_plain = outlet.content == (ORIGINAL,) and not outlet.own_media
    made = [] if is_plain else _newest_results(connection, item_ids)
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
    shown = (outlet, [(row.id, row.version) for row in rows], made)
    digest = blake2b(repr(shown).encode(), digest_size=12)
    return Edition(
        outlet,
        item_ids,
        max(
            [
                outlet.updated_at,
                rewritten_at or 0.0,
                published_at or 0.0,
                *(made_at for _, made_at in made),
                *(row.first_seen_at for row in rows),
            ]
        ),
        digest.hexdigest(),
    )


def _edition_of_issues(connection: Connection, outlet: Outlet, digest: str) -> Edition:
    column = digest_issues.c
    query = select(column.id, column.revision, column.made_at).join_from(digest_issues, digests)
    query = query.where(digests.c.name == digest).order_by(column.id.desc()).limit(outlet.item_limit)
    rows = connection.execute(query).all()
    shown = (outlet, [(row.id, row.revision) for row in rows])
    return Edition(
        outlet,
        (),
        max([outlet.updated_at, *(row.made_at for row in rows)]),
        blake2b(repr(shown).encode(), digest_size=12).hexdigest(),
        tuple(row.id for row in rows),
    )


def _newest_results(connection: Connection, item_ids: Sequence[int]) -> list[tuple[int, float]]:
    """Number and time of the current results of these items: others when anything in them is different."""
    rows = select_by(
        connection,
        "SELECT id, made_at FROM item_results WHERE item_id {values} AND replaced_at IS NULL",
        item_ids,
        "bigint",
    )
    return sorted((row[0], row[1]) for row in rows)


@dataclass(frozen=True, slots=True)
class ItemSource:
    """What publishing an item needs of its source."""

    url: str
    added_at: float


def read_items(
    connection: Connection, edition: Edition, most_characters: int
) -> Iterator[tuple[StoredItem, ItemSource]]:
    """The items of an edition in its order, each with its source.

    Their texts together are no longer than `most_characters`: what comes after that is cut, and says so.
    """
    left = most_characters
    for start in range(0, len(edition.item_ids), READ_AT_ONCE):
        part = edition.item_ids[start : start + READ_AT_ONCE]
        for item, source in _read_items(connection, part, min(left + 1, LONGEST_TEXT)):
            fitting, left = _fit(item, left)
            yield fitting, source


def _fit(item: StoredItem, left: int) -> tuple[StoredItem, int]:
    """As much of an item as there is room for, and the room that is left."""
    fitting: dict[str, Any] = {}
    if item.extras or item.enclosures or item.categories:
        size = len(orjson.dumps([item.extras, item.enclosures, item.categories]))
        if size > left:
            fitting = {"extras": None, "enclosures": (), "categories": (), "cut": True}
        else:
            left -= size
    for name in ("summary", "content"):
        text: str = getattr(item, name) or ""
        if len(text) > left:
            fitting |= {name: text[:left] or None, "cut": True}
        left -= min(len(text), left)
    return replace(item, **fitting), left


def _read_items(
    connection: Connection, item_ids: Sequence[int], longest_text: int
) -> list[tuple[StoredItem, ItemSource]]:
    more = (sources.c.url.label("source_url"), sources.c.created_at.label("source_added_at"))
    query = select_items(*more, longest_text=longest_text).where(items.c.id.in_(item_ids))
    rows = {row.id: row for row in connection.execute(query)}
    found = [rows[item_id] for item_id in item_ids if item_id in rows]
    whole = with_results(connection, [stored_item(row) for row in found])
    return [
        (item, ItemSource(row.source_url, row.source_added_at))
        for item, row in zip(whole, found, strict=True)
    ]


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
            "{name} cannot be an outlet's name; use lower-case letters, digits and hyphens, 63 at most",
            name=outlet.name or "''",
        )
    if not 1 <= outlet.item_limit <= MOST_ITEMS:
        raise InputError(
            "an outlet shows 1 to {most} items, not {limit}", most=MOST_ITEMS, limit=outlet.item_limit
        )
    if outlet.hub_url and not outlet.hub_url.startswith(("http://", "https://")):
        raise InputError("{url} is not the address of a hub; it starts with https://", url=outlet.hub_url)
    check_content(connection, outlet)


def check_content(connection: Connection, outlet: Outlet) -> None:
    """InputError for what an outlet cannot publish or show."""
    if not outlet.content:
        raise InputError("an outlet publishes something: {original}, or a result", original=ORIGINAL)
    for key in outlet.content:
        if key not in (ORIGINAL, TEMPLATE):
            read_result_key(key)
    if (TEMPLATE in outlet.content) != bool(outlet.template):
        raise InputError(
            "an outlet that publishes `template` needs a template, and no other outlet takes one"
        )
    if outlet.digest is not None:
        _check_digest(connection, outlet)
    conditions(connection, outlet.selection)  # complains of a search for nothing
    refuse_unknown_sources(connection, outlet.selection)


def _check_digest(connection: Connection, outlet: Outlet) -> None:
    if connection.execute(select(digests.c.id).where(digests.c.name == outlet.digest)).first() is None:
        raise NotFoundError(
            "there is no digest {name}",
            hint="`headwater digest list` shows them all",
            name=outlet.digest or "",
        )
    if outlet.selection != EVERYTHING or outlet.content != (ORIGINAL,) or outlet.own_media:
        raise InputError("an outlet of a digest publishes its issues as they are; it chooses no items")


def _row(outlet: Outlet) -> dict[str, Any]:
    return {
        "name": outlet.name,
        "title": storable(outlet.title),
        "description": storable(outlet.description),
        "selection": orjson.dumps(to_json(outlet.selection)).decode(),
        "item_limit": outlet.item_limit,
        "hub_url": outlet.hub_url,
        "token": outlet.token,
        "content": orjson.dumps(outlet.content).decode(),
        "template": storable(outlet.template),
        "own_media": outlet.own_media,
        "digest": outlet.digest,
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
        content=tuple(orjson.loads(row.content)),
        template=row.template,
        own_media=bool(row.own_media),
        digest=row.digest,
        updated_at=row.updated_at,
        created_at=row.created_at,
    )
