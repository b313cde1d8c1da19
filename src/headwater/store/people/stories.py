"""Items of different sources that tell the same story: how copies are found, and which of them a person sees.

Of each key only the newest item is kept, so finding the copies of an item takes as many look-ups as it has keys,
however many items there are. Keys are deleted after a few days: news is copied soon, or not at all.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from headwater.store.core.bulk import insert_rows, is_sqlite, run_by, select_by
from headwater.store.core.tables import items, story_items, story_keys
from headwater.store.people.preferences import known_preferences, list_folder_views
from headwater.store.people.reading import mark_read
from headwater.store.people.users import get_user

WINDOW_SECONDS = 4 * 86_400.0
MOST_COPIES = 50  # of one story
TEXT_CHARACTERS = 3_000  # of an item that are read to compare it


@dataclass(frozen=True, slots=True)
class StoryText:
    """What is compared of an item."""

    id: int
    source_id: int
    position: int
    title: str
    text: str
    url: str | None
    first_seen_at: float


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The newest item that has a key."""

    item_id: int
    source_id: int
    sketch: bytes


@dataclass(frozen=True, slots=True)
class NewKeys:
    """The keys of an item, which is from now on the newest that has them."""

    item_id: int
    source_id: int
    keys: tuple[int, ...]
    sketch: bytes
    seen_at: float


_TEXT = func.substr(
    func.coalesce(func.nullif(items.c.content, ""), items.c.summary, ""), 1, TEXT_CHARACTERS
).label("text")


def read_story_texts(connection: Connection, item_ids: Iterable[int]) -> dict[int, StoryText]:
    """What is compared of these items, by their numbers."""
    column = items.c
    query = select(
        column.id, column.source_id, column.position, column.title, _TEXT, column.url, column.first_seen_at
    ).where(column.id.in_(list(item_ids)))
    return {row.id: StoryText(*row) for row in connection.execute(query)}


def subscribed_among(connection: Connection, source_ids: Iterable[int]) -> set[int]:
    """Those of the sources that anyone subscribes to."""
    sql = "SELECT DISTINCT source_id FROM subscriptions WHERE source_id {values}"
    return {row[0] for row in select_by(connection, sql, source_ids, "bigint")}


def find_key_owners(connection: Connection, keys: Iterable[int], now: float) -> dict[int, KeyOwner]:
    """The newest items that have these keys."""
    rows = select_by(
        connection,
        "SELECT key, item_id, source_id, sketch FROM story_keys WHERE seen_at >= ? AND key {values}",
        keys,
        "bigint",
        now - WINDOW_SECONDS,
    )
    return {row[0]: KeyOwner(row[1], row[2], bytes(row[3])) for row in rows}


def write_keys(connection: Connection, found: Iterable[NewKeys]) -> None:
    """Note the keys of items; each takes them over from the item that had them before."""
    rows = {
        key: (key, each.item_id, each.source_id, bytearray(each.sketch), each.seen_at)
        for each in found
        for key in each.keys
    }
    insert_rows(
        connection,
        story_keys,
        ("key", "item_id", "source_id", "sketch", "seen_at"),
        [rows[key] for key in sorted(rows)],
        "ON CONFLICT (key) DO UPDATE SET item_id = excluded.item_id, source_id = excluded.source_id,"
        " sketch = excluded.sketch, seen_at = excluded.seen_at",
    )


def delete_old_keys(connection: Connection, now: float, limit: int) -> int:
    """Delete keys whose time is over, up to so many. Returns how many."""
    old = (
        select(story_keys.c.key)
        .where(story_keys.c.seen_at < now - WINDOW_SECONDS)
        .order_by(story_keys.c.seen_at)
        .limit(limit)
    )
    keys = list(connection.execute(old).scalars())
    run_by(connection, "DELETE FROM story_keys WHERE key {values}", keys, "bigint")
    return len(keys)


def join_stories(connection: Connection, pairs: Sequence[tuple[int, int]]) -> None:
    """Note that items tell the same story, each pair an earlier and a new one. Who has read it has read the new one."""
    numbers = {number for pair in pairs for number in pair}
    places = {
        row[0]: (row[1], row[2])
        for row in select_by(
            connection,
            "SELECT id, source_id, position FROM items WHERE id {values} ORDER BY id"
            + ("" if is_sqlite(connection) else " FOR KEY SHARE"),
            sorted(numbers),
            "bigint",
        )
    }
    for earlier, new in pairs:
        if earlier in places and new in places:
            _join(connection, earlier, new, places)
    for new in dict.fromkeys(new for _, new in pairs if new in places):
        _read_with_copies(connection, new, places[new][0])


def _join(connection: Connection, earlier: int, new: int, places: Mapping[int, tuple[int, int]]) -> None:
    known = {
        row[0]: row[1]
        for row in select_by(
            connection,
            "SELECT item_id, story_id FROM story_items WHERE item_id {values}",
            (earlier, new),
            "bigint",
        )
    }
    story_id = known.get(earlier, known.get(new, earlier))
    column = story_items.c
    size = connection.execute(select(func.count()).where(column.story_id == story_id)).scalar_one()
    if size >= MOST_COPIES:
        return
    rows = [(each, story_id, *places[each]) for each in (earlier, new) if each not in known]
    insert_rows(connection, story_items, ("item_id", "story_id", "source_id", "position"), rows)
    if known.get(new, story_id) != story_id:  # it told another story, which turns out to be this one
        connection.execute(
            story_items.update().where(column.story_id == known[new]).values(story_id=story_id)
        )


def _read_with_copies(connection: Connection, item_id: int, source_id: int) -> None:
    """Mark a new copy as read for readers of another."""
    mark = "?" if is_sqlite(connection) else "%s"
    rows = connection.exec_driver_sql(
        "SELECT DISTINCT own.user_id, other.source_id FROM story_items mine"
        " JOIN story_items copy ON copy.story_id = mine.story_id AND copy.item_id <> mine.item_id"
        " JOIN subscriptions own ON own.source_id = mine.source_id"
        " JOIN subscriptions other ON other.user_id = own.user_id AND other.source_id = copy.source_id"
        " LEFT JOIN read_exceptions e ON e.user_id = other.user_id AND e.source_id = other.source_id"
        " AND e.position = copy.position"
        f" WHERE mine.item_id = {mark} AND copy.source_id <> mine.source_id"
        " AND CASE WHEN e.user_id IS NULL THEN copy.position <= other.level ELSE e.is_read END",
        (item_id,),
    ).all()
    readers: dict[int, set[int]] = defaultdict(set)
    for user_id, copied in rows:
        readers[user_id].add(copied)
    for user_id, others in sorted(readers.items()):
        taking_part = grouped_sources(connection, user_id, {source_id, *others})
        if source_id in taking_part and taking_part & others:
            mark_read(connection, user_id, [item_id], True)


def grouped_sources(connection: Connection, user_id: int, source_ids: Iterable[int]) -> set[int]:
    """Those of a person's sources whose stories are shown once, as the person and the folders say."""
    wanted = known_preferences(get_user(connection, user_id).preferences).same_story_once
    folders = list_folder_views(connection, user_id)
    rows = select_by(
        connection,
        "SELECT source_id, folder_id FROM subscriptions WHERE user_id = ? AND source_id {values}",
        source_ids,
        "bigint",
        user_id,
    )
    return {
        source_id
        for source_id, folder_id in rows
        if folders.get(folder_id, {}).get("same_story_once", wanted)
    }


def copies_of(connection: Connection, user_id: int, item_ids: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """The other items of a person's subscriptions that tell the same story, of those items that have any."""
    rows = select_by(
        connection,
        "SELECT a.item_id, a.source_id, b.item_id, b.source_id FROM story_items a"
        " JOIN story_items b ON b.story_id = a.story_id AND b.item_id <> a.item_id"
        " AND b.source_id <> a.source_id WHERE a.item_id {values}",
        set(item_ids),
        "bigint",
    )
    if not rows:
        return {}
    taking_part = grouped_sources(connection, user_id, {row[1] for row in rows} | {row[3] for row in rows})
    found: dict[int, list[int]] = defaultdict(list)
    for item_id, source_id, copy_id, copy_source_id in rows:
        if source_id in taking_part and copy_source_id in taking_part:
            found[item_id].append(copy_id)
    return {item_id: tuple(sorted(those)) for item_id, those in found.items()}


def mark_read_together(connection: Connection, user_id: int, item_ids: Iterable[int]) -> set[int]:
    """Mark items as read, and with them their copies. Returns those that are items of the person's subscriptions."""
    numbers = set(item_ids)
    for copies in copies_of(connection, user_id, numbers).values():
        numbers |= set(copies)
    return mark_read(connection, user_id, numbers, True)
