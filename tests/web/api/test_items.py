"""Items over the API: listed, searched, read; and in the order in which they were found."""

import pytest
from starlette.testclient import TestClient

from headwater.model import Enclosure, Item, Result
from headwater.store.collecting.sources import set_schedule_enabled
from headwater.store.core.database import Store
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.results import NewResult, write_results
from headwater.views.items import EnclosureView
from headwater.views.raw_items import RawItemView
from tests.clock import NOON, FakeClock
from tests.publish.test_outlets import store_items
from tests.web.api.conftest import MakeCaller

DAY = 86_400.0


@pytest.fixture
def filled(store: Store) -> None:
    """Two sources; the second source's items are newer, and one of its items was changed."""
    with store.writing() as connection:
        store_items(
            connection,
            Item("a", title="Alpha", content="<p>the <b>quick</b> fox</p>", published_at=NOON - 2 * DAY),
            Item("b", title="Beta", published_at=NOON - DAY, enclosures=(Enclosure("https://x/y.mp3"),)),
            folder="News",
        )
        second = store_items(
            connection, Item("c", title="Gamma 新闻", summary="old", published_at=NOON), name="two"
        )
        change = ItemChange(
            "changed",
            Item("c", title="Gamma 新闻", summary="new", published_at=NOON),
            b"c",
            b"c",
            (),
            b"h2",
            NOON,
        )
        write_items(connection, [(second, (change,), NOON + 60)])


def titles(client: TestClient, query: str = "") -> list[str]:
    answer = client.get(f"/api/items{query}")
    assert answer.status_code == 200, answer.text
    return [item["title"] for item in answer.json()["items"]]


@pytest.mark.usefixtures("filled")
def test_items_are_filtered_and_searched(caller: MakeCaller) -> None:
    reader = caller("read")
    for query, expected in (
        ("", ["Gamma 新闻", "Beta", "Alpha"]),
        ("?source_id=1", ["Beta", "Alpha"]),
        ("?source_id=1&source_id=2", ["Gamma 新闻", "Beta", "Alpha"]),
        ("?folder=News", ["Beta", "Alpha"]),
        ("?folder=Unknown", []),
        ("?type=rss", ["Gamma 新闻", "Beta", "Alpha"]),
        ("?type=sitemap", []),
        ("?search=QUICK", ["Alpha"]),
        ("?search=新闻", ["Gamma 新闻"]),
        ("?search=old", []),
        ("?search=-quick", ["Gamma 新闻", "Beta"]),
        ("?status=ANALYZED", []),
        ("?status=NEW&since=2023-11-14T00:00:00Z", ["Gamma 新闻"]),
        ("?until=2023-11-13T00:00:00", ["Alpha"]),
        ("?outlet=none", []),
    ):
        assert titles(reader, query) == expected, query
    for query, status in (
        ("?search=-!", 400),
        ("?type=nonsense", 400),
        ("?cursor=x", 400),
        ("?limit=0", 422),
        ("?since=nonsense", 422),
        ("?source_id=0", 422),
    ):
        assert reader.get(f"/api/items{query}").status_code == status, query


@pytest.mark.usefixtures("filled")
def test_results_are_listed_filtered_sorted_and_read_with_their_history(
    caller: MakeCaller, store: Store
) -> None:
    with store.writing() as connection:
        for item_id, score in ((1, 9.5), (2, 3)):
            data = {"score": score, "reason": "it matters"}
            write_results(connection, [NewResult(item_id, 1, Result("score", data=data), NOON)])
        write_results(connection, [NewResult(1, 1, Result("summary", body="Old."), NOON, run_id=5)])
        write_results(connection, [NewResult(1, 1, Result("summary", body="A heron."), NOON + 1, run_id=6)])
        write_results(connection, [NewResult(2, 1, Result("tags", data=["Birds"]), NOON)])
        write_results(connection, [NewResult(2, 1, Result("translation", "zh", "苍鹭"), NOON)])
    reader = caller("read")
    for query, expected in (
        ("?sort=score", ["Alpha", "Beta"]),
        ("?min_score=5", ["Alpha"]),
        ("?has=translation", ["Beta"]),
        ("?has=translation:de", []),
        ("?has=summary&has=translation:zh", ["Beta", "Alpha"]),
        ("?tag=birds", ["Beta"]),
        ("?search=heron", ["Alpha"]),
    ):
        assert titles(reader, query) == expected, query
    first = reader.get("/api/items?sort=score&limit=1").json()
    assert first["items"][0]["result_keys"] == ["score", "summary"]
    assert (first["items"][0]["pipeline_score"], first["items"][0]["tags"]) == (9.5, [])
    second = reader.get("/api/items", params={"sort": "score", "limit": 1, "cursor": first["next"]}).json()
    assert [(each["title"], each["tags"]) for each in second["items"]] == [("Beta", ["birds"])]
    results = reader.get("/api/items/1").json()["results"]
    assert results["score"]["data"] == {"score": 9.5, "reason": "it matters"}
    assert (results["summary"]["body"], results["summary"]["run_id"]) == ("A heron.", 6)
    assert reader.get("/api/items?full=true&min_score=5").json()["items"][0]["results"] == results
    whole = reader.get("/api/items/1/results").json()
    assert whole["results"] == results
    [replaced] = whole["replaced"]
    assert (replaced["body"], replaced["run_id"], replaced["replaced_at"]) == (
        "Old.",
        5,
        "2023-11-14T22:13:21.000Z",
    )
    assert reader.get("/api/items?has=poem").status_code == 400
    assert reader.get("/api/items/99/results").status_code == 404


@pytest.mark.usefixtures("filled")
def test_pages_and_bodies(caller: MakeCaller) -> None:
    reader = caller("read")
    first = reader.get("/api/items?limit=2&full=true").json()
    assert [item["summary"] for item in first["items"]] == ["new", None]
    (file,) = first["items"][1]["enclosures"]
    assert file == dict.fromkeys(EnclosureView.model_fields) | {"url": "https://x/y.mp3"}
    rest = reader.get("/api/items", params={"cursor": first["next"]}).json()
    assert ([item["title"] for item in rest["items"]], rest["next"]) == (["Alpha"], None)


@pytest.mark.usefixtures("filled")
def test_one_item_and_what_it_said_before(caller: MakeCaller) -> None:
    reader = caller("read")
    item = reader.get("/api/items/3").json()
    assert (item["summary"], item["version"], item["external_id"]) == ("new", 2, "c")
    assert item["published_at"] == "2023-11-14T22:13:20.000Z"
    (before,) = reader.get("/api/items/3/versions").json()["versions"]
    assert (before["version"], before["summary"]) == (1, "old")
    for path in (
        "/api/items",
        "/api/items/3",
        "/api/items/3/versions",
        "/api/raw-items",
        "/api/raw-items/stats",
    ):
        tag = reader.get(path).headers["etag"]
        assert reader.get(path, headers={"If-None-Match": tag}).status_code == 304, path
    assert reader.get("/api/items/9").status_code == 404
    assert reader.get("/api/items/9/versions").status_code == 404


@pytest.mark.usefixtures("filled")
def test_raw_items_come_as_they_were_found(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    reader = caller("read")
    first = reader.get("/api/raw-items?limit=1").json()
    assert first["items"] == [
        {
            "id": 3,
            "source_id": 2,
            "source_name": "two",
            "source_type": "rss",
            "title": "Gamma 新闻",
            "url": None,
            "author": None,
            "content": "new",
            "published_at": "2023-11-14T22:13:20.000Z",
            "fetched_at": "2023-11-14T22:13:20.000Z",
            "dedup_key": "c",
            "metadata": {},
        }
    ]
    assert first["items"][0].keys() == RawItemView.model_fields.keys()  # which the schema is made of
    rest = reader.get("/api/raw-items", params={"cursor": first["next"]}).json()
    assert [item["id"] for item in rest["items"]] == [2, 1]
    found = reader.get("/api/raw-items?source_id=1&since=2023-11-14T22:13:20Z").json()["items"]
    assert [item["id"] for item in found] == [2, 1]
    assert reader.get("/api/raw-items?since=2023-11-14T22:13:21Z").json()["items"] == []
    counts = reader.get("/api/raw-items/stats").json()["sources"]
    assert [(each["total_items"], each["items_24h"], each["last_item_at"]) for each in counts] == [
        (2, 2, "2023-11-13T22:13:20.000Z"),
        (1, 1, "2023-11-14T22:13:20.000Z"),
    ]
    with store.writing() as connection:
        set_schedule_enabled(connection, 2, False, clock())
    digest = reader.get("/api/raw-items/for-digest").json()["items"]
    assert [item["id"] for item in digest] == [2, 1], "of sources that are visited"


@pytest.mark.parametrize(
    "path",
    ["/api/items", "/api/items/1", "/api/raw-items", "/api/raw-items/stats", "/api/raw-items/for-digest"],
)
def test_items_need_a_key_that_may_read(stranger: TestClient, caller: MakeCaller, path: str) -> None:
    assert stranger.get(path).status_code == 401
    assert caller("refresh").get(path).status_code == 403
