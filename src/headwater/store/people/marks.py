"""What a person marks items with: stars, "read later" with an expiry, tags."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, func, select

from headwater.errors import InputError
from headwater.store.core.bulk import insert_rows, run_by, storable
from headwater.store.core.tables import entry_marks, entry_tags
from headwater.store.people.entries import visible_ids
from headwater.store.people.reading import lock_items

LONGEST_TAG = 200
DAY = 86_400.0


def set_starred(
    connection: Connection, user_id: int, item_ids: Iterable[int], is_starred: bool, now: float
) -> set[int]:
    """Star items, or take the star away. Returns those of them that the person may see."""
    return _mark(connection, user_id, item_ids, ("starred_at",), (now,) if is_starred else None)


def set_read_later(
    connection: Connection,
    user_id: int,
    item_ids: Iterable[int],
    days: float | None,
    now: float,
    *,
    is_later: bool = True,
) -> set[int]:
    """Put items on the list of what to read later, for so many days (None: until it is read or removed), or remove."""
    until = None if days is None else now + DAY * days
    return _mark(
        connection, user_id, item_ids, ("later_at", "later_until"), (now, until) if is_later else None
    )


def _mark(
    connection: Connection,
    user_id: int,
    item_ids: Iterable[int],
    columns: tuple[str, ...],
    values: tuple[Any, ...] | None,
) -> set[int]:
    found = _lock_visible(connection, user_id, item_ids)
    if values is not None:
        rows = [(user_id, *row, *values) for row in found]
        setting = ", ".join(f"{name} = excluded.{name}" for name in columns)
        # One that is marked already keeps its time, unless it may get another expiry.
        condition = "" if len(columns) > 1 else f" WHERE entry_marks.{columns[0]} IS NULL"
        insert_rows(
            connection,
            entry_marks,
            ("user_id", "item_id", "source_id", "position", *columns),
            rows,
            f"ON CONFLICT (user_id, item_id) DO UPDATE SET {setting}{condition}",
        )
    else:
        setting = ", ".join(f"{name} = NULL" for name in columns)
        run_by(
            connection,
            f"UPDATE entry_marks SET {setting} WHERE user_id = ? AND item_id {{values}}",
            [row[0] for row in found],
            "bigint",
            user_id,
        )
        sql = (
            "DELETE FROM entry_marks WHERE user_id = ? AND starred_at IS NULL AND later_at IS NULL"
            " AND item_id {values}"
        )
        run_by(connection, sql, [row[0] for row in found], "bigint", user_id)
    return {row[0] for row in found}


def add_tags(
    connection: Connection, user_id: int, item_ids: Iterable[int], tags: Iterable[str], now: float
) -> set[int]:
    """Tag items. Returns those of them that the person may see."""
    names = list(dict.fromkeys(map(read_tag, tags)))
    found = _lock_visible(connection, user_id, item_ids)
    insert_rows(
        connection,
        entry_tags,
        ("user_id", "tag", "item_id", "source_id", "position", "tagged_at"),
        [(user_id, name, *row, now) for name in names for row in found],
        "ON CONFLICT (user_id, tag, item_id) DO NOTHING",
    )
    return {row[0] for row in found}


def remove_tags(connection: Connection, user_id: int, item_ids: Iterable[int], tags: Iterable[str]) -> None:
    numbers = list(item_ids)
    for tag in dict.fromkeys(map(read_tag, tags)):
        sql = "DELETE FROM entry_tags WHERE user_id = ? AND tag = ? AND item_id {values}"
        run_by(connection, sql, numbers, "bigint", user_id, tag)


def list_tags(connection: Connection, user_id: int) -> list[tuple[str, int]]:
    """A person's tags, with how many items each is on."""
    column = entry_tags.c
    query = select(column.tag, func.count()).where(column.user_id == user_id).group_by(column.tag)
    return [(row[0], row[1]) for row in connection.execute(query.order_by(column.tag))]


def rename_tag(connection: Connection, user_id: int, tag: str, name: str) -> None:
    """Give a tag another name; one that is there already takes its items over."""
    old, new = read_tag(tag), read_tag(name)
    if old != new:
        column = entry_tags.c
        rows = connection.execute(
            select(column.item_id, column.source_id, column.position, column.tagged_at).where(
                column.user_id == user_id, column.tag == old
            )
        ).all()
        delete_tag(connection, user_id, old)
        insert_rows(
            connection,
            entry_tags,
            ("user_id", "tag", "item_id", "source_id", "position", "tagged_at"),
            [(user_id, new, *row) for row in rows],
            "ON CONFLICT (user_id, tag, item_id) DO NOTHING",
        )


def delete_tag(connection: Connection, user_id: int, tag: str) -> None:
    column = entry_tags.c
    connection.execute(entry_tags.delete().where(column.user_id == user_id, column.tag == tag))


def cleanup_read_later(connection: Connection, now: float) -> int:
    """Take items whose time is over off the lists of what to read later, for every user. Returns how many."""
    column = entry_marks.c
    over = column.later_until.is_not(None) & (column.later_until <= now)
    starred = connection.execute(
        entry_marks.update()
        .where(over, column.starred_at.is_not(None))
        .values(later_at=None, later_until=None)
    ).rowcount
    return starred + connection.execute(entry_marks.delete().where(over)).rowcount


def read_tag(text: str) -> str:
    tag = " ".join((storable(text) or "").split())
    if not tag:
        raise InputError("a tag needs a name")
    if len(tag) > LONGEST_TAG:
        raise InputError("a tag has at most {limit} characters", limit=LONGEST_TAG)
    return tag


def _lock_visible(
    connection: Connection, user_id: int, item_ids: Iterable[int]
) -> list[tuple[int, int, int]]:
    found = lock_items(connection, item_ids)
    visible = visible_ids(connection, user_id, [row[0] for row in found])
    return [row for row in found if row[0] in visible]
