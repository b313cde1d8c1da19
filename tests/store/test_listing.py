"""Lists show the same rows as the full reads, with fewer columns."""

from headwater.model import Item
from headwater.store.database import Store
from headwater.store.items import ItemChange, list_items, write_items
from headwater.store.listing import first_sources, newest_items
from headwater.store.sources import add_source, list_sources, remove_source
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
