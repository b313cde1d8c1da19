"""Outlets as feed readers find them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.outlets import Outlet, add_outlet
from headwater.web.app import create_app
from tests.clock import NOON
from tests.publish.test_outlets import read_back, store_items


@pytest.fixture
def reader(store: Store, settings: Settings) -> Iterator[TestClient]:
    with store.writing() as connection:
        store_items(connection, Item("a", title="first"))
        add_outlet(connection, Outlet("all", "All", hub_url="https://hub.example/"), NOON)
    with TestClient(create_app(store, settings), base_url="http://127.0.0.1:8626") as client:
        yield client


@pytest.mark.parametrize(
    ("path", "format", "media_type"),
    [
        ("/outlets/all.xml", "rss", "application/rss+xml; charset=utf-8"),
        ("/outlets/all.atom", "atom", "application/atom+xml; charset=utf-8"),
        ("/outlets/all.json", "json", "application/feed+json"),
    ],
)
def test_each_format_names_itself_its_hub_and_costs_nothing_the_second_time(
    reader: TestClient, store: Store, path: str, format: str, media_type: str
) -> None:
    first = reader.get(path)
    assert first.headers["content-type"] == media_type
    assert len(read_back(first.content, format)) == 1
    assert f"http://127.0.0.1:8626{path}" in first.text
    assert "https://hub.example/" in first.text
    for validators in (
        {"If-None-Match": first.headers["etag"]},
        {"If-None-Match": f'"other", W/{first.headers["etag"]}'},
        {"If-Modified-Since": first.headers["last-modified"]},
    ):
        again = reader.get(path, headers=validators)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
    with store.writing() as connection:
        new = ItemChange("new", Item("b", title="second"), b"b", b"b", (), b"h", NOON + 1)
        write_items(connection, [(1, (new,), NOON + 1)])
    fresh = reader.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert fresh.status_code == 200
    assert len(read_back(fresh.content, format)) == 2
    assert reader.head(path).headers["etag"] == fresh.headers["etag"]


def test_the_public_address_is_what_a_feed_says_of_itself(
    store: Store, settings: Settings, reader: TestClient
) -> None:
    with TestClient(
        create_app(store, replace(settings, public_url="https://mine.example/hw/")),
        base_url="http://127.0.0.1",
    ) as client:
        assert "https://mine.example/hw/outlets/all.xml" in client.get("/outlets/all.xml").text


def test_a_private_outlet_is_not_there_without_its_secret(store: Store, reader: TestClient) -> None:
    with store.writing() as connection:
        token = add_outlet(connection, Outlet("mine", "Mine"), NOON, private=True).token
    nothing = reader.get("/outlets/nothing.xml")
    for path in (
        "/outlets/mine.xml",
        "/outlets/mine.xml?token=",
        "/outlets/mine.xml?token=é",
        "/outlets/mine.zip",
    ):
        answer = reader.get(path)
        assert (answer.status_code, answer.text) == (nothing.status_code, nothing.text) == (404, "Not Found")
        assert "etag" not in answer.headers
    answer = reader.get(f"/outlets/mine.xml?token={token}")
    assert answer.status_code == 200
    assert answer.headers["cache-control"].startswith("private")
