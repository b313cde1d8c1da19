"""Outlets over the API."""

from starlette.testclient import TestClient

from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.reading.search import index_all
from tests.clock import NOON
from tests.publish.test_outlets import store_items
from tests.web.api.conftest import MakeCaller


def test_an_outlet_is_made_read_changed_and_removed(
    caller: MakeCaller, stranger: TestClient, store: Store
) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="Alpha"), folder="News")
    admin = caller("admin")
    made = admin.post("/api/outlets", json={"name": "news", "private": True, "shows": {"folders": ["News"]}})
    assert (made.status_code, made.headers["location"]) == (201, "/api/outlets/news")
    outlet = made.json()
    assert (outlet["title"], outlet["private"], outlet["shows"]["folders"]) == ("news", True, ["News"])
    assert "Alpha" in stranger.get(outlet["paths"]["rss"]).text, "its path carries the token"
    (seen,) = caller("read").get("/api/outlets").json()["outlets"]
    assert (seen["token"], seen["paths"]["rss"]) == ("***", "/outlets/news.xml")
    changed = admin.patch(
        "/api/outlets/news",
        json={"title": "All", "item_limit": 5, "shows": {"types": ["rss"], "by_pipelines": True}},
    ).json()
    assert (changed["title"], changed["item_limit"], changed["shows"]["types"]) == ("All", 5, ["rss.feed"])
    assert changed["shows"]["by_pipelines"] is True
    assert admin.get("/api/outlets/news").json() == changed
    assert admin.delete("/api/outlets/news").status_code == 204
    assert admin.get("/api/outlets/news").status_code == 404


def test_an_outlet_can_leave_out_a_word(caller: MakeCaller, stranger: TestClient, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="Alpha"), Item("b", title="Poker night"))
    index_all(store, NOON)
    made = caller("admin").post("/api/outlets", json={"name": "calm", "shows": {"search": "-poker"}})
    assert made.status_code == 201
    served = stranger.get("/outlets/calm.xml").text
    assert ("Alpha" in served, "Poker" in served) == (True, False)


def test_what_is_wrong_with_an_outlet_is_said(caller: MakeCaller) -> None:
    admin = caller("admin")
    assert admin.post("/api/outlets", json={"name": "news"}).status_code == 201
    for body, status in (
        ({"name": "news"}, 409),
        ({"name": "Not This"}, 400),
        ({"name": "x", "hub_url": "ftp://x"}, 400),
        ({"name": "x", "shows": {"types": ["nonsense"]}}, 400),
        ({"name": "x", "shows": {"search": "-!"}}, 400),
        ({"name": "x", "shows": {"source_ids": [9]}}, 404),
        ({"name": "x", "shows": {"folders": ["Nowhere"]}}, 404),
        ({"name": "x", "item_limit": 0}, 422),
        ({"name": "x", "nonsense": 1}, 422),
    ):
        assert admin.post("/api/outlets", json=body).status_code == status, body
    refused = admin.patch("/api/outlets/news", json={"shows": {"folders": ["Nowhere"]}})
    assert (refused.status_code, "there is no folder Nowhere" in refused.json()["detail"]) == (404, True)
    assert admin.get("/api/outlets/news").json()["shows"]["folders"] == []
    assert admin.patch("/api/outlets/none", json={}).status_code == 404
    assert admin.delete("/api/outlets/none").status_code == 404
    reader = caller("read")
    assert reader.post("/api/outlets", json={"name": "x"}).status_code == 403
    assert reader.delete("/api/outlets/news").status_code == 403
