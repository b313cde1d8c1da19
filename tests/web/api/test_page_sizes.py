"""Pages of whole items are as long as there is room for, however long publishers make their texts."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.model import Item
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.people.keys import add_key
from headwater.store.people.subscriptions import OWNER, subscribe
from headwater.store.reading import page_sizes
from headwater.store.reading.cursors import create_cursor
from headwater.store.reading.items import ItemChange, write_items
from tests.clock import FakeClock
from tests.web.api.conftest import ADDRESS, app

__all__ = ["app"]

COUNT, TEXT = 30, 100_000


@pytest.fixture
def reader(
    app: FastAPI, store: Store, settings: Settings, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    monkeypatch.setattr(page_sizes, "PAGE_BYTES", 8 * TEXT + 10_000)
    now = clock()
    with store.writing() as connection:
        source = add_source(connection, name="one", type="rss.feed", url="http://one.example/", now=now)
        subscribe(connection, OWNER, source.id, now)
        keys = [b"%d" % number for number in range(COUNT)]
        changes = tuple(
            ItemChange("new", Item(key.decode(), title="t", content="x" * TEXT), key, key, (), key, now)
            for key in keys
        )
        write_items(connection, [(source.id, changes, now)])
        create_cursor(connection, "all", now=now)
        _, secret = add_key(connection, name="k", scopes=("read", "refresh"), now=now)
    with TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {secret}"}) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "name", "most"),
    [
        ("/api/items?full=true&limit=1000", "items", 8),
        ("/api/raw-items?limit=500", "items", 8),
        ("/api/raw-items/for-digest?limit=500", "items", 8),
        ("/api/entries?full=true&limit=1000", "entries", 8),
        ("/api/items?limit=1000", "items", COUNT),
        ("/api/entries?limit=1000", "entries", COUNT),
    ],
)
def test_page_of_long_texts_is_short_and_the_next_one_goes_on(
    reader: TestClient, path: str, name: str, most: int
) -> None:
    found: list[int] = []
    cursor = ""
    while True:
        page = reader.get(path + cursor).json()
        assert len(page[name]) <= most
        found += [each["id"] for each in page[name]]
        if page["next"] is None:
            break
        assert len(page[name]) == most
        cursor = f"&cursor={page['next']}"
    assert sorted(found) == list(range(1, COUNT + 1))


def test_page_of_a_cursor_is_short_and_acknowledging_goes_on(reader: TestClient) -> None:
    found: list[int] = []
    for _ in range(10):
        page = reader.get("/api/cursors/all/items?limit=1000").json()
        assert len(page["items"]) <= 8
        found += [each["id"] for each in page["items"]]
        reader.post("/api/cursors/all/acknowledge", json={"position": page["position"]})
        if page["is_last"]:
            break
    assert found == list(range(1, COUNT + 1))
