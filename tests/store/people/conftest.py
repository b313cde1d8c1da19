"""A person, a source, and items that arrive."""

from collections.abc import Callable

import pytest

from headwater.model import Item
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.people.subscriptions import subscribe
from headwater.store.people.users import add_user
from headwater.store.reading.items import ItemChange, write_items
from tests.clock import FakeClock

Arrive = Callable[..., list[int]]


@pytest.fixture
def source_id(store: Store, clock: FakeClock) -> int:
    with store.writing() as connection:
        return add_source(connection, name="S", type="rss.feed", url="https://s.example/", now=clock()).id


@pytest.fixture
def ann(store: Store, clock: FakeClock, source_id: int) -> int:
    """A person who subscribes to the source; their number."""
    with store.writing() as connection:
        user = add_user(connection, name="ann", now=clock())
        subscribe(connection, user.id, source_id, clock())
        return user.id


@pytest.fixture
def arrive(store: Store, clock: FakeClock, source_id: int) -> Arrive:
    """Stores items with these names; returns the numbers of all items, oldest first."""

    def write(*names: str) -> list[int]:
        changes = tuple(
            ItemChange(
                "new",
                Item(name, url=f"https://s.example/{name}", title=name, content=f"About {name}"),
                *(name.encode(), name.encode(), (), b"hash"),
                clock() - 10,
            )
            for name in names
        )
        with store.writing() as connection:
            write_items(connection, [(source_id, changes, clock())])
            rows = connection.exec_driver_sql("SELECT id FROM items ORDER BY position")
            return list(rows.scalars())

    return write
