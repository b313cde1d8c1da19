"""Items are stored once, keep their versions, and are remembered after they are gone."""

from sqlalchemy import Connection, delete, select

from headwater.model import Enclosure, Item
from headwater.store.database import Store
from headwater.store.items import ItemChange, count_items, known_keys, list_items, write_items
from headwater.store.sources import add_source
from headwater.store.tables import item_versions, items
from tests.clock import NOON


def make_source(connection: Connection) -> int:
    return add_source(connection, name="one", type="rss.feed", url="https://one.example/", now=NOON).id


def new(number: int, **fields: object) -> ItemChange:
    item = Item(f"id-{number}", title=f"Title {number}", **fields)  # type: ignore[arg-type]
    return ItemChange("new", item, (bytes([number]) * 16,), b"hash-1", NOON + number)


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
    )
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(connection, [(source_id, (full,), NOON)])
        (item,) = list_items(connection)
    assert (item.external_id, item.title, item.author, item.content) == ("id-1", "Title 1", "Ann", "<p>c</p>")
    assert (item.published_at, item.updated_at, item.first_seen_at) == (NOON + 1, NOON + 2, NOON)
    assert item.extra == {
        "image_url": "https://one.example/i.png",
        "comments_url": "https://one.example/1#c",
        "categories": ["a", "b"],
        "enclosures": [{"url": "https://one.example/a.mp3", "media_type": "audio/mpeg", "length": 9}],
    }


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
        assert list_items(connection, source_id=source_id + 1) == []
        assert len(list_items(connection, limit=2)) == 2


def test_a_change_keeps_the_old_version(store: Store) -> None:
    changed = ItemChange("changed", Item("id-1", title="Better"), (b"\x01" * 16,), b"hash-2", NOON)
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(connection, [(source_id, (new(1),), NOON)])
        for _ in range(2):  # a repeated settlement must not make a second version
            write_items(connection, [(source_id, (changed,), NOON + 5)])
        (item,) = list_items(connection)
        (old,) = connection.execute(select(item_versions)).all()
        assert known_keys(connection, source_id, [b"\x01" * 16]) == {b"\x01" * 16: b"hash-2"}
    assert (item.title, item.version) == ("Better", 2)
    assert (old.title, old.version, old.replaced_at) == ("Title 1", 1, NOON + 5)


def test_a_renamed_item_keeps_its_row(store: Store) -> None:
    renamed = ItemChange(
        "renamed", Item("new-id", title="Title 1", published_at=NOON + 1), (b"\x09" * 16,), b"hash-1", NOON
    )
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(connection, [(source_id, (new(1, published_at=NOON + 1),), NOON)])
        write_items(connection, [(source_id, (renamed,), NOON)])
        (item,) = list_items(connection)
        assert item.external_id == "new-id"
        assert set(known_keys(connection, source_id, [b"\x01" * 16, b"\x09" * 16])) == {
            b"\x01" * 16,
            b"\x09" * 16,
        }


def test_what_was_seen_outlives_the_item(store: Store) -> None:
    with store.writing() as connection:
        source_id = make_source(connection)
        write_items(connection, [(source_id, (new(1),), NOON)])
        connection.execute(delete(items))
        assert known_keys(connection, source_id, [b"\x01" * 16]) == {b"\x01" * 16: b"hash-1"}


def test_text_no_database_takes_is_mended(store: Store) -> None:
    evil = ItemChange(
        "new", Item("a\x00b", title="nul\x00 and \ud800", categories=("\ud800",)), (b"\x01" * 16,), b"h", NOON
    )
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
        change = ItemChange("new", Item("x"), (keys[-1],), b"h", NOON)
        write_items(connection, [(source_id, (change,), NOON)])
        assert known_keys(connection, source_id, keys) == {keys[-1]: b"h"}
