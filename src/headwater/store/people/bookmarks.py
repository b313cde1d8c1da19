"""Bookmarks: items and any addresses that a person keeps, each with its own copy of the text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Row, null, or_, select

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.model import url_key
from headwater.store.core.bulk import is_sqlite, storable
from headwater.store.core.paging import one_page
from headwater.store.core.tables import bookmarks
from headwater.store.people.entries import get_entry
from headwater.store.people.marks import read_tag

MOST_ATTEMPTS = 5
RETRY_SECONDS = 600.0
LONGEST_NOTE = 100_000
MOST_WORDS = 20  # of a search: each is looked for in every text


@dataclass(frozen=True, slots=True)
class Bookmark:
    id: int
    item_id: int | None
    url: str
    title: str | None
    excerpt: str | None
    image_url: str | None
    content: str | None
    note: str | None
    tags: tuple[str, ...]
    fetch_at: float | None
    error: str | None
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class FoundPage:
    """What a page says of itself."""

    title: str | None
    excerpt: str | None
    image_url: str | None
    content: str | None


_COLUMNS = [bookmarks.c[name] for name in Bookmark.__dataclass_fields__]
_LISTED = [null().label(column.name) if column.name == "content" else column for column in _COLUMNS]


def _bookmark(row: Row[Any]) -> Bookmark:
    return Bookmark(**{**row._asdict(), "tags": tuple(orjson.loads(row.tags))})


def add_bookmark(
    connection: Connection,
    user_id: int,
    url: str,
    now: float,
    *,
    title: str | None = None,
    note: str | None = None,
    tags: Iterable[str] = (),
) -> Bookmark:
    """Keep an address; its page is fetched in the background. ConflictError if the person keeps it already."""
    values = {"url": url, "title": storable(title), "fetch_at": now}
    return _insert(connection, user_id, values, now, note, tags)


def bookmark_item(
    connection: Connection,
    user_id: int,
    item_id: int,
    now: float,
    *,
    title: str | None = None,
    note: str | None = None,
    tags: Iterable[str] = (),
) -> Bookmark:
    """Keep an item that the person may see, with a copy of its text."""
    item = get_entry(connection, user_id, item_id).item
    if not item.url:
        raise InputError("item {id} has no address, so it cannot be kept as a bookmark", id=item_id)
    values = {
        "item_id": item_id,
        "url": item.url,
        "title": storable(title) or item.title or None,
        "image_url": item.image_url,
        "content": item.content or item.summary,
        # The page is fetched for an excerpt only where the item itself says too little.
        "fetch_at": None if item.content or item.summary else now,
    }
    return _insert(connection, user_id, values, now, note, tags)


def _insert(
    connection: Connection,
    user_id: int,
    values: dict[str, Any],
    now: float,
    note: str | None,
    tags: Iterable[str],
) -> Bookmark:
    key = url_key(values["url"])
    column = bookmarks.c
    there = select(column.id).where(column.user_id == user_id, column.url_key == key)
    if (row := connection.execute(there).first()) is not None:
        raise ConflictError("{url} is bookmarked already: bookmark {id}", url=values["url"], id=row.id)
    row = connection.execute(
        bookmarks.insert()
        .values(
            **values,
            user_id=user_id,
            url_key=key,
            note=_read_note(note),
            tags=_tags_json(tags),
            created_at=now,
            updated_at=now,
        )
        .returning(*_COLUMNS)
    ).one()
    return _bookmark(row)


def list_bookmarks(
    connection: Connection,
    user_id: int,
    *,
    tag: str | None = None,
    search: str | None = None,
    before_id: int | None = None,
    limit: int,
) -> list[Bookmark]:
    """Up to `limit` bookmarks and one more without their texts, newest first, from after the one `before_id`."""
    column = bookmarks.c
    query = select(*_LISTED).where(column.user_id == user_id)
    if tag is not None:
        query = query.where(column.tags.contains(orjson.dumps(tag).decode(), autoescape=True))
    for word in (search or "").split()[:MOST_WORDS]:
        query = query.where(
            or_(
                *(
                    column[name].icontains(word, autoescape=True)
                    for name in ("title", "url", "excerpt", "note", "content")
                )
            )
        )
    after = None if before_id is None else (before_id,)
    page = one_page(query, [column.id], after=after, limit=limit, newest_first=True)
    return [_bookmark(row) for row in connection.execute(page)]


def get_bookmark(connection: Connection, user_id: int, bookmark_id: int) -> Bookmark:
    column = bookmarks.c
    query = select(*_COLUMNS).where(column.id == bookmark_id, column.user_id == user_id)
    row = connection.execute(query).first()
    if row is None:
        raise NotFoundError("there is no bookmark {id}", id=bookmark_id)
    return _bookmark(row)


def change_bookmark(
    connection: Connection, /, user_id: int, bookmark_id: int, now: float, **values: Any
) -> Bookmark:
    """Write a bookmark's title, note or tags."""
    get_bookmark(connection, user_id, bookmark_id)
    if "tags" in values:
        values["tags"] = _tags_json(values["tags"] or ())
    if "note" in values:
        values["note"] = _read_note(values["note"])
    if "title" in values:
        values["title"] = (storable(values["title"]) or "").strip() or None
    connection.execute(
        bookmarks.update().where(bookmarks.c.id == bookmark_id).values(**values, updated_at=now)
    )
    return get_bookmark(connection, user_id, bookmark_id)


def remove_bookmark(connection: Connection, user_id: int, bookmark_id: int) -> None:
    get_bookmark(connection, user_id, bookmark_id)
    connection.execute(bookmarks.delete().where(bookmarks.c.id == bookmark_id))


def is_bookmark_due(connection: Connection, now: float) -> bool:
    """Whether the page of any bookmark is to be fetched."""
    column = bookmarks.c
    due = select(column.id).where(column.fetch_at.is_not(None), column.fetch_at <= now).limit(1)
    return connection.execute(due).first() is not None


def claim_bookmarks(connection: Connection, limit: int, now: float) -> Sequence[tuple[int, str]]:
    """Up to `limit` bookmarks whose pages are due: number and address. Others leave them alone for a while."""
    column = bookmarks.c
    query = (
        select(column.id, column.url)
        .where(column.fetch_at.is_not(None), column.fetch_at <= now)
        .order_by(column.fetch_at)
        .limit(limit)
    )
    if not is_sqlite(connection):
        query = query.with_for_update(skip_locked=True)
    found = [(row.id, row.url) for row in connection.execute(query)]
    if found:
        connection.execute(
            bookmarks.update()
            .where(column.id.in_([number for number, _ in found]))
            .values(fetch_at=now + RETRY_SECONDS, attempts=column.attempts + 1)
        )
    return found


def note_page(connection: Connection, bookmark_id: int, page: FoundPage, now: float) -> None:
    """Write what the page of a bookmark says; a title that the person gave stays."""
    column = bookmarks.c
    row = connection.execute(select(column.title).where(column.id == bookmark_id)).first()
    if row is None:
        return  # it was deleted meanwhile
    connection.execute(
        bookmarks.update()
        .where(column.id == bookmark_id)
        .values(
            title=row.title or storable(page.title),
            excerpt=storable(page.excerpt),
            image_url=storable(page.image_url),
            content=storable(page.content),
            fetch_at=None,
            error=None,
            updated_at=now,
        )
    )


def note_page_error(
    connection: Connection, bookmark_id: int, error: str, is_passing: bool, now: float
) -> None:
    """Write why the page could not be read; it is fetched again later unless that is of no use."""
    column = bookmarks.c
    values: dict[str, Any] = {"error": storable(error), "updated_at": now}
    if not is_passing:
        values["fetch_at"] = None
    connection.execute(bookmarks.update().where(column.id == bookmark_id).values(**values))
    connection.execute(
        bookmarks.update()
        .where(column.id == bookmark_id, column.attempts >= MOST_ATTEMPTS)
        .values(fetch_at=None)
    )


def _read_note(note: str | None) -> str | None:
    note = (storable(note) or "").strip()
    if len(note) > LONGEST_NOTE:
        raise InputError("a note has at most {limit} characters", limit=LONGEST_NOTE)
    return note or None


def _tags_json(tags: Iterable[str]) -> str:
    return orjson.dumps(list(dict.fromkeys(map(read_tag, tags)))).decode()
