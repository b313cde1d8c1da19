"""Subscriptions: which sources a person reads, under which title and in which folder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, func, or_, select

from headwater.errors import InputError, NotFoundError
from headwater.model import FOLDER_SEPARATOR
from headwater.store.core.bulk import is_sqlite, run_by, storable
from headwater.store.core.tables import items, read_exceptions, source_counts, sources, subscriptions, users
from headwater.store.people.folders import get_folder, lock_user, make_folder_path

OWNER: Final = 1  # the first user: sources added by an admin's tools are their subscriptions
UNREAD_AT_FIRST = 50  # of the items that a source has when a person subscribes; older ones count as read
LONGEST_TITLE = 1_000


@dataclass(frozen=True, slots=True)
class Subscription:
    """A source that a person reads, with what lists show of it."""

    id: int
    source_id: int
    own_title: str | None
    folder_id: int | None
    position: int
    is_muted: bool
    created_at: float
    source_name: str
    type: str
    url: str
    site_url: str | None
    icon_url: str | None
    source_status: str
    last_error: str | None
    last_fetched_at: float | None
    last_stored_at: float | None
    unread_count: int

    @property
    def title(self) -> str:
        return self.own_title or self.source_name


def _select() -> Select[Any]:
    own, source, count = subscriptions.c, sources.c, source_counts.c
    return (
        select(
            own.id,
            own.source_id,
            own.title,
            own.folder_id,
            own.position,
            own.is_muted,
            own.created_at,
            source.name,
            source.type,
            source.url,
            source.site_url,
            source.icon_url,
            source.status,
            source.last_error,
            source.last_fetched_at,
            count.last_stored_at,
            func.coalesce(count.stored, 0) - own.settled,
        )
        .join_from(subscriptions, sources, own.source_id == source.id)
        .outerjoin(source_counts, count.source_id == own.source_id)
        .where(~source.is_deleted)
    )


def _subscription(row: Row[Any]) -> Subscription:
    values: dict[str, Any] = dict(zip(Subscription.__dataclass_fields__, row, strict=True))
    return Subscription(**values | {"unread_count": max(values["unread_count"], 0)})


def list_subscriptions(connection: Connection, user_id: int) -> list[Subscription]:
    """A person's subscriptions, by position and title."""
    found = [
        _subscription(row) for row in connection.execute(_select().where(subscriptions.c.user_id == user_id))
    ]
    return sorted(found, key=lambda each: (each.position, each.title.casefold(), each.id))


def find_subscriptions(
    connection: Connection,
    user_id: int,
    *,
    search: str = "",
    folder_ids: Sequence[int | None] | None = None,
    limit: int,
    offset: int = 0,
) -> list[Subscription]:
    """Up to `limit` of a person's subscriptions by title: those whose title has `search`, in one of these folders."""
    own = subscriptions.c
    title = func.lower(func.coalesce(own.title, sources.c.name))
    query = _select().where(own.user_id == user_id)
    if search:
        query = query.where(title.contains(search.lower(), autoescape=True))
    if folder_ids is not None:
        named = [each for each in folder_ids if each is not None]
        inside = own.folder_id.in_(named)
        query = query.where(or_(inside, own.folder_id.is_(None)) if None in folder_ids else inside)
    page = query.order_by(own.position, title, own.id).limit(limit).offset(offset)
    return [_subscription(row) for row in connection.execute(page)]


def heard_sources(
    connection: Connection, user_id: int, folder_ids: Sequence[int] | None = None
) -> tuple[int, ...]:
    """The sources that a person reads together: of all subscriptions or those in these folders, without muted ones."""
    own = subscriptions.c
    is_there = select(~sources.c.is_deleted).where(sources.c.id == own.source_id).scalar_subquery()
    query = select(own.source_id).where(own.user_id == user_id, ~own.is_muted, is_there)
    if folder_ids is not None:
        query = query.where(own.folder_id.in_(folder_ids))
    return tuple(connection.execute(query).scalars())


def icon_addresses(connection: Connection, subscription_ids: Iterable[int]) -> dict[int, str | None]:
    """Where the icons of these subscriptions are."""
    query = (
        select(subscriptions.c.id, sources.c.icon_url)
        .join(sources, sources.c.id == subscriptions.c.source_id)
        .where(subscriptions.c.id.in_(list(subscription_ids)))
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def get_subscription(connection: Connection, user_id: int, subscription_id: int) -> Subscription:
    return _one(connection, user_id, subscriptions.c.id == subscription_id, subscription_id)


def get_subscription_of(connection: Connection, user_id: int, source_id: int) -> Subscription:
    """A person's subscription to a source."""
    return _one(connection, user_id, subscriptions.c.source_id == source_id, source_id)


def _one(connection: Connection, user_id: int, condition: Any, number: int) -> Subscription:
    row = connection.execute(_select().where(subscriptions.c.user_id == user_id, condition)).first()
    if row is None:
        raise NotFoundError("there is no subscription {id}", id=number)
    return _subscription(row)


def subscribe(
    connection: Connection,
    user_id: int,
    source_id: int,
    now: float,
    *,
    title: str | None = None,
    folder_id: int | None = None,
) -> tuple[Subscription, bool]:
    """Subscribe a person to a source; the second value is False if they were subscribed already.

    Of the items that are stored, the newest are unread, and older ones count as read.
    """
    # In the order in which settling and editing lock: the source, its counts, the user.
    source = select(sources.c.id).where(sources.c.id == source_id, ~sources.c.is_deleted)
    if not is_sqlite(connection):
        source = source.with_for_update(read=True, key_share=True)
    if connection.execute(source).first() is None:
        raise NotFoundError("there is no source {id}", id=source_id)
    level, settled = _first_level(connection, source_id)
    lock_user(connection, user_id)
    if folder_id is not None:
        get_folder(connection, user_id, folder_id)
    there = select(subscriptions.c.id).where(
        subscriptions.c.user_id == user_id, subscriptions.c.source_id == source_id
    )
    if connection.execute(there).first() is not None:
        return get_subscription_of(connection, user_id, source_id), False
    connection.execute(
        subscriptions.insert().values(
            user_id=user_id,
            source_id=source_id,
            title=read_title(title),
            folder_id=folder_id,
            level=level,
            settled=settled,
            created_at=now,
        )
    )
    return get_subscription_of(connection, user_id, source_id), True


def _first_level(connection: Connection, source_id: int) -> tuple[int, int]:
    """The level of a new subscription, and how many items it settles."""
    # Held until the end, so that no visit adds items between the two queries.
    counts = select(source_counts.c.stored).where(source_counts.c.source_id == source_id)
    stored = connection.execute(
        counts if is_sqlite(connection) else counts.with_for_update(read=True)
    ).scalar()
    newest = (
        select(items.c.position)
        .where(items.c.source_id == source_id)
        .order_by((items.c.position + 0).desc())  # by the index of the source, never by that of all positions
        .limit(UNREAD_AT_FIRST + 1)
    )
    positions = list(connection.execute(newest).scalars())
    level = positions[UNREAD_AT_FIRST] if len(positions) > UNREAD_AT_FIRST else 0
    return level, (stored or 0) - min(len(positions), UNREAD_AT_FIRST)


def subscribe_owner(connection: Connection, folders_by_source: Mapping[int, str | None], now: float) -> None:
    """Subscribe the first user to new sources, in the folders that these are in. All their items will be unread."""
    sql = (
        "INSERT INTO subscriptions (user_id, source_id, created_at)"
        " SELECT users.id, sources.id, ? FROM sources JOIN users ON users.id = ? WHERE sources.id {values}"
        " ON CONFLICT (user_id, source_id) DO NOTHING"
    )
    run_by(connection, sql, folders_by_source, "bigint", now, OWNER)
    by_folder: dict[str | None, list[int]] = {}
    for source_id, folder in folders_by_source.items():
        by_folder.setdefault(folder, []).append(source_id)
    for folder, source_ids in by_folder.items():
        if folder is not None:
            place_owners(connection, source_ids, folder)


def place_owners(connection: Connection, source_ids: Iterable[int], folder: str | None) -> None:
    """Move the first user's subscriptions to the folder that their sources were moved to."""
    if connection.execute(select(users.c.id).where(users.c.id == OWNER)).first() is None:
        return
    folder_id = make_folder_path(connection, OWNER, (folder or "").split(FOLDER_SEPARATOR))
    sql = "UPDATE subscriptions SET folder_id = ? WHERE user_id = ? AND source_id {values}"
    run_by(connection, sql, source_ids, "bigint", folder_id, OWNER)


def change_subscription(
    connection: Connection, /, user_id: int, subscription_id: int, **values: Any
) -> Subscription:
    """Write a subscription's own title, folder (None: none), position or muting."""
    lock_user(connection, user_id)
    get_subscription(connection, user_id, subscription_id)
    if values.get("folder_id") is not None:
        get_folder(connection, user_id, values["folder_id"])
    if "title" in values:
        values["title"] = read_title(values["title"])
    if values:
        connection.execute(
            subscriptions.update()
            .where(subscriptions.c.id == subscription_id, subscriptions.c.user_id == user_id)
            .values(**values)
        )
    return get_subscription(connection, user_id, subscription_id)


def unsubscribe(connection: Connection, user_id: int, subscription_id: int) -> int:
    """End a subscription with its reading state; stars and tags stay. Returns the number of its source."""
    lock_user(connection, user_id)
    subscription = get_subscription(connection, user_id, subscription_id)
    connection.execute(
        read_exceptions.delete().where(
            read_exceptions.c.user_id == user_id, read_exceptions.c.source_id == subscription.source_id
        )
    )
    connection.execute(subscriptions.delete().where(subscriptions.c.id == subscription_id))
    return subscription.source_id


def subscribed_sources(connection: Connection, user_id: int) -> list[int]:
    """The numbers of the sources that a person reads."""
    query = select(subscriptions.c.source_id).where(subscriptions.c.user_id == user_id)
    return list(connection.execute(query.order_by(subscriptions.c.source_id)).scalars())


def read_title(title: str | None) -> str | None:
    title = " ".join((storable(title) or "").split())
    if len(title) > LONGEST_TITLE:
        raise InputError("a title has at most {limit} characters", limit=LONGEST_TITLE)
    return title or None
