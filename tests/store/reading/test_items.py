"""Items are stored once, keep their versions, and are remembered after they are gone."""

import orjson
from sqlalchemy import Connection, delete, select

from headwater.model import Enclosure, Item
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.tables import item_versions, items
from headwater.store.reading.items import (
    ItemChange,
    Known,
    count_items,
    known_keys,
    list_items,
    recent_times,
    write_items,
)
from headwater.store.reading.selection import Selection
from tests.clock import NOON


def make_source(connection: Connection) -> int:
    return add_source(connection, name="one", type="rss.feed", url="https://one.example/", now=NOON).id


def new(number: int, **fields: object) -> ItemChange:
    item = Item(f"id-{number}", title=f"Title {number}", **fields)  # type: ignore[arg-type]
    return ItemChange("new", item, key(number), key(number), (key(100 + number),), b"hash-1", NOON + number)


def key(number: int) -> bytes:
    return bytes([number]) * 16


def test_a_written_item_is_listed_with_all_its_fields(store: Store) -> None:
    full = new(
        1,
        url="https://one.example/1",
        author="Ann",
        summary="<p>s</p>",
        content="<p>c</p>",
        published_at=NOON + 1,
        updated_at=NOON + 2,
        language="en",
        image_url="https://one.example/i.png",
        comments_url="https://one.example/1#c",
        categories=("a", "b"),
        enclosures=(Enclosure("https://one.example/a.mp3", "audio/mpeg", 9),),
        score=0,
        comments_count=3,
        cut=True,
        extras={"season": 2},
    )
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(connection, [(source_id, (full,), NOON)])
        (item,) = list_items(connection)
    assert (item.external_id, item.title, item.author, item.content) == ("id-1", "Title 1", "Ann", "<p>c</p>")
    assert (item.published_at, item.updated_at, item.first_seen_at) == (NOON + 1, NOON + 2, NOON)
    assert {name: getattr(item, name) for name in Item.__dataclass_fields__} == {
        name: getattr(full.item, name) for name in Item.__dataclass_fields__
    }, "their own columns and packed fields alike"


def test_packed_fields_of_another_type_are_left_out(store: Store) -> None:
    """Another program may have written them."""
    packed = {
        "image_url": 7,
        "categories": ["a", 1],
        "enclosures": [{"url": "https://e/1", "length": "9", "odd": 1}, {"title": "x"}, "no"],
        "score": 0,
        "season": 2,
    }
    with store.writing() as connection:
        write_items(connection, [(make_source(connection), (new(1),), NOON)])
        connection.execute(items.update().values(extra=orjson.dumps(packed).decode()))
        (item,) = list_items(connection)
    assert (item.image_url, item.categories, item.score) == (None, ("a",), 0)
    assert (item.enclosures, item.extras) == ((Enclosure("https://e/1"),), {"season": 2})


def test_written_twice_is_stored_once(store: Store) -> None:
    with store.writing() as connection:
        source_id = make_source(connection)
        for _ in range(2):
            write_items(connection, [(source_id, (new(1), new(2)), NOON)])
        assert count_items(connection) == 2


def test_newest_first_and_by_source(store: Store) -> None:
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(connection, [(source_id, (new(1), new(3), new(2)), NOON)])
        assert [item.external_id for item in list_items(connection)] == ["id-3", "id-2", "id-1"]
        assert list_items(connection, selection=Selection(source_ids=(source_id + 1,))) == []
        assert len(list_items(connection, limit=2)) == 2


def test_a_change_keeps_the_old_version(store: Store) -> None:
    changed = ItemChange("changed", Item("id-1", title="Better"), key(1), key(1), (), b"hash-2", NOON)
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(connection, [(source_id, (new(1),), NOON)])
        for _ in range(2):  # a repeated settlement must not make a second version
            write_items(connection, [(source_id, (changed,), NOON + 5)])
        (item,) = list_items(connection)
        (old,) = connection.execute(select(item_versions)).all()
        assert known_keys(connection, source_id, [key(1)]) == {key(1): Known(key(1), b"hash-2")}
    assert (item.title, item.version) == ("Better", 2)
    assert (old.title, old.version, old.replaced_at) == ("Title 1", 1, NOON + 5)


def test_a_renamed_item_keeps_its_row(store: Store) -> None:
    """Also when other items look the same: the row that changes is the one whose id it was."""
    renamed = ItemChange(
        "renamed", Item("new-id", "https://new.example/1", "Title 1"), key(9), key(1), (), b"hash-1", NOON
    )
    changed = ItemChange("changed", Item("id-1", title="Later"), key(1), key(9), (), b"hash-2", NOON)
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(connection, [(source_id, (new(1), new(2, url="https://old.example/1")), NOON)])
        write_items(connection, [(source_id, (renamed,), NOON)])
        stored = {item.id: (item.external_id, item.title, item.url) for item in list_items(connection)}
        assert stored == {
            1: ("new-id", "Title 1", "https://new.example/1"),
            2: ("id-2", "Title 2", "https://old.example/1"),
        }
        known = known_keys(connection, source_id, [key(1), key(9), key(101)])
        assert {known_key: memory.item_key for known_key, memory in known.items()} == dict.fromkeys(
            (key(1), key(9), key(101)), key(9)
        ), "its old id and its likeness are other names for it now"
        write_items(connection, [(source_id, (changed,), NOON)])
        assert {item.id: item.title for item in list_items(connection)}[1] == "Later"


def test_what_was_seen_outlives_the_item(store: Store) -> None:
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(connection, [(source_id, (new(1),), NOON)])
        connection.execute(delete(items))
        assert known_keys(connection, source_id, [key(1)]) == {key(1): Known(key(1), b"hash-1")}


def test_text_no_database_takes_is_mended(store: Store) -> None:
    hostile = Item("a\x00b", title="nul\x00 and \ud800", categories=("\ud800",))
    evil = ItemChange("new", hostile, key(1), key(1), (), b"h", NOON)
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(connection, [(source_id, (evil,), NOON)])
        (item,) = list_items(connection)
    assert item.external_id == "ab"
    assert item.title == "nul and ?"


def test_more_keys_than_a_statement_takes(store: Store) -> None:
    keys = [number.to_bytes(16, "big") for number in range(40_000)]
    with store.writing() as connection:
        source_id = make_source(connection)
        change = ItemChange("new", Item("x"), keys[-1], keys[-1], (), b"h", NOON)
        write_items(connection, [(source_id, (change,), NOON)])
        assert known_keys(connection, source_id, keys) == {keys[-1]: Known(keys[-1], b"h")}


def test_an_id_too_long_for_an_index_is_stored(store: Store) -> None:
    long = Item("".join(str(number) for number in range(5_000)))
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(
            connection, [(source_id, (ItemChange("new", long, key(1), key(1), (), b"h", NOON),), NOON)]
        )
        assert list_items(connection)[0].external_id == long.external_id


def test_recent_times(store: Store) -> None:
    with store.writing() as connection:
        source_id = make_source(connection)
        changes = (new(1, published_at=NOON + 1), new(2), new(3, published_at=NOON + 3))
        write_items(connection, [(source_id, changes, NOON)])
        assert recent_times(connection, source_id, 10) == [NOON + 1, NOON + 3]
        assert recent_times(connection, source_id, 1) == [NOON + 3]
