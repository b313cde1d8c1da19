"""Lists show the same rows as the full reads, with fewer columns."""

import pytest

from headwater.model import Item, ListedItem
from headwater.store.collecting.sources import add_source, list_sources, remove_source
from headwater.store.core.database import Store
from headwater.store.reading import cursors, listing, selection
from headwater.store.reading.items import (
    ItemChange,
    ItemCount,
    count_all_items,
    count_items,
    list_items,
    note_item_count,
    write_items,
)
from headwater.store.reading.listing import first_sources, newest_items
from headwater.store.reading.positions import last_settled_position
from headwater.store.reading.selection import Selection
from tests.clock import NOON


def test_the_same_rows_in_the_same_order(store: Store) -> None:
    with store.writing() as connection:
        for number in range(4):
            source = add_source(
                connection, name=f"{number}", type="rss.feed", url=f"https://{number}.example/", now=NOON
            )
            changes = tuple(
                ItemChange("new", Item(f"{n}", title=f"T{n}"), bytes([n]), bytes([n]), (), b"h", NOON - n % 2)
                for n in range(3)
            )
            write_items(connection, [(source.id, changes, NOON)])
        remove_source(connection, 2, NOON)
        full_items, full_sources = list_items(connection, limit=5), list_sources(connection, limit=2)
        items, sources = newest_items(connection, limit=5)[:5], first_sources(connection, limit=2)
    for item, full_item in zip(items, full_items, strict=True):
        assert all(
            getattr(full_item, name) == getattr(item, name) for name in item.__slots__ if name != "item_at"
        )
    for listed, full in zip(sources, full_sources, strict=True):
        assert all(getattr(full, name) == getattr(listed, name) for name in listed.__slots__)
    assert [listed.id for listed in sources] == [1, 3]


@pytest.mark.parametrize("walked", [1, 3, 1_000])
@pytest.mark.parametrize("few", [0, 200])
def test_items_of_many_sources_are_all_found(
    store: Store, monkeypatch: pytest.MonkeyPatch, walked: int, few: int
) -> None:
    """Whether a page is full before the walk ends, and whether the sources are looked up first."""
    monkeypatch.setattr(selection, "FEW_SOURCES", few)
    monkeypatch.setattr(listing, "WALKED_ITEMS", walked)
    monkeypatch.setattr(cursors, "WALKED_ITEMS", walked)
    with store.writing() as connection:
        for number in range(6):
            source = add_source(
                connection,
                name=f"{number}",
                type="rss.feed",
                url=f"https://{number}.example/",
                folder="even" if number % 2 == 0 else "odd",
                now=NOON,
            )
            changes = tuple(
                ItemChange("new", Item(f"{n}"), bytes([n]), bytes([n]), (), b"h", NOON - n) for n in range(3)
            )
            write_items(connection, [(source.id, changes, NOON)])
        remove_source(connection, 3, NOON)
    with store.writing() as connection:  # what is read must be committed on PostgreSQL
        for folder, ids in (("even", {1, 3, 5}), ("odd", {2, 4, 6}), ("none", set())):
            wanted = Selection(folders=(folder,), types=("rss.feed",))
            pages: list[ListedItem] = []
            while True:
                after = (pages[-1].item_at, pages[-1].id) if pages else None
                page = newest_items(connection, wanted, after=after, limit=2)
                pages += page[:2]
                if len(page) < 3:
                    break
            assert {item.source_id for item in pages} == ids
            assert len({item.id for item in pages}) == len(pages) == 3 * len(ids)
            cursors.create_cursor(connection, folder, now=NOON, selection=wanted)
            read = []
            while not (placed := cursors.read_cursor(connection, folder, limit=2)).is_last:
                read += [each.item.id for each in placed.items]
                cursors.acknowledge(connection, folder, placed.position, now=NOON)
            read += [each.item.id for each in placed.items]
            assert sorted(read) == sorted(item.id for item in pages)


def test_counting_goes_on_from_the_last_count(store: Store) -> None:
    with store.writing() as connection:
        source = add_source(connection, name="a", type="rss.feed", url="https://a.example/", now=NOON)

        def add(number: int) -> None:
            key = bytes([number])
            change = ItemChange("new", Item(f"{number}"), key, key, (), b"h", NOON)
            write_items(connection, [(source.id, (change,), NOON)])

        add(1)
        assert count_items(connection) == 1
        note_item_count(connection, ItemCount(41, last_settled_position(connection)), NOON)
        add(2)
        if store.is_sqlite:  # on PostgreSQL nothing is settled before its writer has committed
            assert count_items(connection) == 42
    with store.writing() as connection:
        note_item_count(connection, count_all_items(connection), NOON)
        add(3)
        assert count_items(connection) == 3
