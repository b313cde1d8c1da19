"""Sources over the API: found, added, changed, steered one by one and in bulk; what is wrong is said."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import event
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.model import Plan
from headwater.store.collecting.queue import count_due, settle_batch
from headwater.store.collecting.sources import change_source, get_source
from headwater.store.core.database import Store
from headwater.store.core.tables import sources
from headwater.store.people.keys import add_key
from headwater.store.pipelines.templates import NewTemplate, add_template
from headwater.web.app import create_app
from tests.clock import FakeClock
from tests.origin import Origin
from tests.store.collecting.test_queue import claim, done
from tests.web.api.conftest import ADDRESS, MakeCaller
from tests.web.api.test_collector import add

FEED = (
    "<rss version='2.0'><channel><title>Its own title</title>"
    "<item><guid>1</guid><title>one</title></item></channel></rss>"
)
PAGE = "<html><head><link rel='alternate' type='application/rss+xml' href='/feed.xml'></head></html>"


@pytest.fixture
def local(store: Store, settings: Settings, clock: FakeClock) -> Iterator[TestClient]:
    """An admin of a Headwater that may visit this machine."""
    app = create_app(
        store, replace(settings, allow_hosts=("127.0.0.1",), host_spacing_seconds=0.0), clock=clock
    )
    with store.writing() as connection:
        _, secret = add_key(connection, name="admin", scopes=["admin"], now=clock())
    with TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {secret}"}) as client:
        yield client


def ids(answer: Any) -> list[int]:
    return [source["id"] for source in answer.json()["sources"]]


def test_plans_are_for_those_with_a_key(
    stranger: TestClient, caller: MakeCaller, store: Store, clock: FakeClock, settings: Settings
) -> None:
    add(store, clock, "https://one.example/", password="hush", user="me")  # type: ignore[arg-type]
    with store.writing() as connection:
        settle_batch(connection, [done(source, clock(), Plan(clock() + 60)) for source in claim(connection)])
    (told,) = caller("read").get("/api/sources").json()["sources"]
    assert (told["fetch_interval_minutes"], told["next_fetch_at"]) == (240, "2023-11-14T22:14:20.000Z")
    assert told["config"] == {"user": "me", "password": "***"}
    (seen,) = stranger.get("/api/sources").json()["sources"]
    assert set(seen) == {"id", "name", "type", "url", "folder", "title", "site_url"}
    assert stranger.get("/api/sources", headers={"Authorization": "Bearer hw_x"}).status_code == 401
    assert stranger.get("/api/sources/1").status_code == 401
    for shut in (replace(settings, host="0.0.0.0"), replace(settings, password="secret")):
        with TestClient(create_app(store, shut, clock=clock), base_url=ADDRESS) as outsider:
            assert outsider.get("/api/sources").status_code == 401


def test_the_list_is_filtered_and_paged(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    for number in range(5):
        add(store, clock, f"https://{number}.example/", "sitemap" if number == 4 else "rss")
    admin = caller("admin")
    admin.patch("/api/sources/2", json={"folder": "News", "new_folder": True, "name": "A name"})
    admin.post("/api/sources/3/pause")
    admin.delete("/api/sources/5")
    for query, expected in (
        ("", [1, 2, 3, 4]),
        ("?search=a%20NAME", [2]),
        ("?search=3.example", [4]),
        ("?folder=News", [2]),
        ("?type=rss", [1, 2, 3, 4]),
        ("?type=web.sitemap", []),
        ("?state=paused", [3]),
        ("?state=removed", [5]),
        ("?state=due", [1, 2, 4]),
        ("?search=%00", [1, 2, 3, 4]),
    ):
        assert ids(admin.get(f"/api/sources{query}")) == expected, query
    first = admin.get("/api/sources?limit=3")
    assert ids(first) == [1, 2, 3]
    second = admin.get("/api/sources", params={"limit": 3, "cursor": first.json()["next"]})
    assert (ids(second), second.json()["next"]) == ([4], None)
    assert admin.get("/api/sources?type=nonsense").status_code == 400
    assert admin.get("/api/sources?state=nonsense").status_code == 422
    assert admin.get("/api/sources?cursor=nonsense").status_code == 400


def test_who_has_a_list_already_is_sent_nothing(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    add(store, clock, "https://one.example/")
    admin = caller("admin")
    for path in ("/api/sources", "/api/sources/1"):
        tag = admin.get(path).headers["etag"]
        again = admin.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    admin.patch("/api/sources/1", json={"name": "Another"})
    assert admin.get("/api/sources/1", headers={"If-None-Match": tag}).status_code == 200


def test_a_page_is_added_as_its_feed_and_collected_at_once(
    local: TestClient, origin: Origin, store: Store
) -> None:
    origin.route("/", body=PAGE, content_type="text/html")
    origin.route("/feed.xml", body=FEED, content_type="application/rss+xml")
    answer = local.post("/api/sources", json={"url": origin.url("/"), "folder": "News"})
    assert answer.status_code == 201, answer.text
    added = answer.json()
    assert answer.headers["location"] == f"/api/sources/{added['id']}"
    assert (added["url"], added["name"], added["folder"]) == (
        origin.url("/feed.xml"),
        "Its own title",
        "News",
    )
    assert added["fetch_count"] == 1
    assert [item["title"] for item in local.get("/api/items").json()["items"]] == ["one"]
    again = local.post("/api/sources", json={"url": origin.url("/feed.xml")})
    assert again.status_code == 409


def test_what_cannot_be_added_says_why(local: TestClient, origin: Origin) -> None:
    origin.route("/nothing", body="<html></html>", content_type="text/html")
    for body, status in (
        ({"url": origin.url("/nothing")}, 422),
        ({"url": "ftp://x"}, 400),
        ({"url": "https://x.example/", "type": "nonsense"}, 400),
        ({"url": "https://x.example/", "config": {"nonsense": 1}}, 400),
        ({"url": "https://x.example/", "config": {"user": 2**70}}, 422),
        ({"url": "https://x.example/", "nonsense": 1}, 422),
        ({}, 400),
    ):
        answer = local.post("/api/sources", json=body)
        assert answer.status_code == status, (body, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"]
    assert local.get("/api/sources").json()["sources"] == []


def test_a_source_may_be_added_unvisited(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    answer = caller("admin").post("/api/sources", json={"url": "https://me:pw@x.example/", "check": False})
    assert answer.status_code == 201
    assert answer.json()["config"] == {"user": "me", "password": "***"}
    assert "pw" not in answer.text
    with store.reading() as connection:
        assert count_due(connection, clock()) == 1


def test_a_source_is_changed_as_it_is_added(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    add(store, clock, "https://one.example/", user="me", password="hush")  # type: ignore[arg-type]
    add(store, clock, "https://two.example/")
    with store.writing() as connection:
        step = {"step_type": "x", "is_critical": True, "config": {}, "timeout_seconds": None, "retries": 0}
        add_template(connection, NewTemplate("one", (step,)), clock())
    admin = caller("admin")
    changed = admin.patch(
        "/api/sources/1",
        json={
            "name": "N\u0000ame",
            "folder": "F",
            "new_folder": True,
            "policy": "interval",
            "url": "https://moved.example/",
            "check": False,
            "pipeline_template_id": 1,
            "config": {"user": "you", "password": "***"},
        },
    ).json()
    assert [changed[name] for name in ("name", "folder", "policy", "url", "pipeline_template_id")] == [
        "Name",
        "F",
        "interval",
        "https://moved.example/",
        1,
    ]
    with store.reading() as connection:
        assert get_source(connection, 1).config == {"user": "you", "password": "hush"}
    cleared = admin.patch(
        "/api/sources/1", json={"folder": None, "policy": None, "pipeline_template_id": None}
    ).json()
    assert [cleared[name] for name in ("folder", "policy", "pipeline_template_id", "name")] == [
        None,
        None,
        None,
        "Name",
    ]
    for body, status in (
        ({"url": "https://two.example/"}, 409),
        ({"url": "nonsense://"}, 400),
        ({"policy": "nonsense"}, 400),
        ({"config": {"nonsense": 1}}, 400),
        ({"pipeline_template_id": 9}, 404),
        ({"name": " "}, 400),
        ({"nonsense": 1}, 422),
    ):
        assert admin.patch("/api/sources/1", json=body).status_code == status, body
    assert admin.get("/api/sources/1").json() == cleared, "what is wrong changes nothing"
    assert admin.patch("/api/sources/9", json={"name": "x"}).status_code == 404


def test_change_of_address_is_checked_answered_and_visited_next(
    local: TestClient, origin: Origin, store: Store, clock: FakeClock
) -> None:
    origin.route("/old", body=FEED, content_type="application/rss+xml")
    origin.route("/feed.xml", body=FEED, content_type="application/rss+xml")
    origin.route("/", body=PAGE, content_type="text/html")
    added = local.post("/api/sources", json={"url": origin.url("/old")}).json()
    path = f"/api/sources/{added['id']}"
    refused = local.patch(path, json={"url": origin.url("/missing")})
    assert refused.status_code == 422
    assert origin.url("/missing") in refused.json()["detail"]
    assert "404" in refused.json()["detail"]
    assert local.get(path).json() == added, "an address that does not work changes nothing"
    with store.reading() as connection:
        assert count_due(connection, added_at := clock()) == 0
    changed = local.patch(path, json={"url": origin.url("/feed.xml"), "name": "Moved"})
    assert (changed.status_code, changed.json()["url"]) == (200, origin.url("/feed.xml"))
    assert changed.json()["name"] == "Moved"
    with store.reading() as connection:
        assert count_due(connection, added_at) == 1, "it is visited at once"
        assert get_source(connection, added["id"]).validators.etag is None
    assert local.patch(path, json={"url": origin.url("/")}).json()["url"] == origin.url("/feed.xml")
    unchecked = local.patch(path, json={"url": origin.url("/missing"), "check": False})
    assert unchecked.json()["url"] == origin.url("/missing")


def test_change_of_address_forgets_the_failures_of_the_old_one(
    local: TestClient, origin: Origin, store: Store, clock: FakeClock
) -> None:
    origin.route("/feed.xml", body=FEED, content_type="application/rss+xml")
    add(store, clock, origin.url("/old"))
    with store.writing() as connection:
        failing = sources.update().values(
            status="retired", is_active=False, consecutive_failures=7, last_error="gone", due_at=None
        )
        connection.execute(failing)
    changed = local.patch("/api/sources/1", json={"url": origin.url("/feed.xml")}).json()
    told = [changed[name] for name in ("status", "is_active", "consecutive_failures", "last_error")]
    assert told == ["ok", True, 0, None]
    with store.reading() as connection:
        assert count_due(connection, clock()) == 1


def test_change_of_interval_is_answered_and_cleared(
    caller: MakeCaller, store: Store, clock: FakeClock
) -> None:
    add(store, clock, "https://one.example/", user="me")  # type: ignore[arg-type]
    admin = caller("admin")
    changed = admin.patch("/api/sources/1", json={"fetch_interval_minutes": 15}).json()
    assert changed["fetch_interval_minutes"] == 15
    assert changed["config"] == {"user": "me", "fetch_interval_minutes": 15}
    cleared = admin.patch("/api/sources/1", json={"fetch_interval_minutes": None}).json()
    assert (cleared["fetch_interval_minutes"], cleared["config"]) == (240, {"user": "me"})


def test_change_to_an_unknown_folder_is_refused_unless_new(
    caller: MakeCaller, store: Store, clock: FakeClock
) -> None:
    add(store, clock, "https://one.example/")
    add(store, clock, "https://two.example/")
    admin = caller("admin")
    refused = admin.patch("/api/sources/1", json={"folder": "News"})
    assert refused.status_code == 400
    assert "there is no folder News" in refused.json()["detail"]
    made = admin.patch("/api/sources/1", json={"folder": "News", "new_folder": True})
    assert made.json()["folder"] == "News"
    assert admin.patch("/api/sources/2", json={"folder": "News"}).json()["folder"] == "News"


def test_bulk_edit_changes_all_that_a_filter_finds_in_few_statements(
    caller: MakeCaller, store: Store, clock: FakeClock
) -> None:
    for number in range(40):
        add(store, clock, f"https://{number}.example/", "sitemap" if number % 2 else "rss")
    admin = caller("admin")
    body = {
        "action": "edit",
        "filter": {"type": "rss"},
        "changes": {
            "folder": "News",
            "new_folder": True,
            "policy": "interval",
            "fetch_interval_minutes": 30,
        },
    }
    counts = []
    for wanted in ({**body, "filter": {"search": "//0.example"}}, body):
        statements = 0

        def count(*_: object) -> None:
            nonlocal statements
            statements += 1

        event.listen(store.engine, "before_cursor_execute", count)
        report = admin.post("/api/sources/bulk", json=wanted).json()
        event.remove(store.engine, "before_cursor_execute", count)
        counts.append(statements)
    assert len(report["done"]) == 20 and report["problems"] == []
    assert counts[1] <= counts[0], "no more statements for twenty than for one"
    moved = admin.get("/api/sources?folder=News").json()["sources"]
    assert {each["type"] for each in moved} == {"rss.feed"}
    assert {(each["policy"], each["fetch_interval_minutes"]) for each in moved} == {("interval", 30)}
    for wrong, status in (
        ({"action": "edit", "source_ids": [1]}, 400),
        ({"action": "pause"}, 400),
        ({"action": "pause", "source_ids": [1], "filter": {}}, 400),
        ({"action": "pause", "source_ids": [1], "changes": {}}, 400),
        ({"action": "edit", "source_ids": [1], "changes": {"folder": "Nowhere"}}, 400),
        ({"action": "edit", "source_ids": [1], "changes": {"name": "All alike"}}, 422),
    ):
        assert admin.post("/api/sources/bulk", json=wrong).status_code == status, wrong


def test_bulk_restore_refuses_what_was_replaced(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    add(store, clock, "https://one.example/")
    admin = caller("admin")
    admin.delete("/api/sources/1")
    add(store, clock, "https://one.example/")
    admin.delete("/api/sources/2")
    report = admin.post("/api/sources/bulk", json={"action": "restore", "source_ids": [1, 2]}).json()
    assert (report["done"], [each["id"] for each in report["problems"]]) == ([1], [2])


def test_a_source_is_switched_refreshed_removed_and_brought_back(
    caller: MakeCaller, store: Store, clock: FakeClock
) -> None:
    add(store, clock, "https://one.example/")
    admin = caller("admin")
    assert admin.post("/api/sources/1/pause").json()["schedule_enabled"] is False
    assert admin.post("/api/sources/1/refresh").status_code == 409
    assert admin.get("/api/sources/1/plan").json()["why"] == "paused; no visit is planned"
    assert admin.post("/api/sources/1/resume").json()["schedule_enabled"] is True
    assert admin.post("/api/sources/1/refresh").status_code == 202
    assert admin.delete("/api/sources/1").status_code == 204
    assert admin.delete("/api/sources/1").status_code == 404
    assert admin.get("/api/sources/1").json()["is_deleted"] is True
    assert admin.post("/api/sources/1/pause").status_code == 404
    assert admin.post("/api/sources/1/restore").json()["is_deleted"] is False
    admin.delete("/api/sources/1")
    add(store, clock, "https://one.example/")
    assert admin.post("/api/sources/1/restore").status_code == 409
    assert admin.post("/api/sources/9/restore").status_code == 404


def test_many_at_once_and_one_that_cannot_stops_no_other(
    caller: MakeCaller, store: Store, clock: FakeClock
) -> None:
    for number in range(3):
        add(store, clock, f"https://{number}.example/")
    admin, refresher = caller("admin"), caller("refresh")
    report = admin.post("/api/sources/bulk", json={"action": "pause", "source_ids": [1, 9, 1, 2]}).json()
    assert report["done"] == [1, 2]
    (problem,) = report["problems"]
    assert (problem["id"], problem["status"]) == (9, 404)
    told = refresher.post("/api/sources/bulk", json={"action": "refresh", "source_ids": [1, 3]}).json()
    assert (told["done"], [each["status"] for each in told["problems"]]) == ([3], [409])
    refused = refresher.post("/api/sources/bulk", json={"action": "remove", "source_ids": [1]})
    assert refused.status_code == 403
    for body in (
        {"action": "nonsense", "source_ids": [1]},
        {"action": "pause", "source_ids": []},
        {"action": "pause", "source_ids": list(range(1, 1002))},
        {"action": "pause", "source_ids": [2**63]},
    ):
        assert admin.post("/api/sources/bulk", json=body).status_code == 422


def test_visits_and_the_plan_are_told(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    add(store, clock, "https://one.example/")
    reader = caller("read")
    first = reader.get("/api/sources/1/plan", headers={"Accept-Language": "zh"}).json()
    assert (first["next_fetch_at"], first["why"]) == (None, "尚未访问；排在最前")
    for number in range(3):
        with store.writing() as connection:
            plan = Plan(clock() + 60, {"policy": "interval", "interval": 3600.0})
            settle_batch(connection, [done(source, clock(), plan) for source in claim(connection, clock())])
            clock.advance(60 + number)
    plan_told = reader.get("/api/sources/1/plan").json()
    assert "fixed interval of 60 min" in plan_told["why"]
    assert plan_told["reason"]["interval"] == 3600.0
    page = reader.get("/api/sources/1/visits?limit=2").json()
    assert [visit["number"] for visit in page["visits"]] == [3, 2]
    rest = reader.get("/api/sources/1/visits", params={"cursor": page["next"]}).json()
    assert [visit["number"] for visit in rest["visits"]] == [1]
    assert rest["visits"][0]["outcome"] in ("new", "unchanged")
    with store.writing() as connection:
        change_source(connection, 1, clock(), status="retired", consecutive_failures=1)
    gone = reader.get("/api/sources/1/plan").json()
    assert (gone["state"], gone["next_fetch_at"], gone["why"]) == ("gone", None, "gone; no visit is planned")
    assert gone["advice"] == "give it another address, or remove it"
    assert reader.get("/api/sources/1").json()["next_fetch_at"] is None
    for path in ("/api/sources/9/visits", "/api/sources/9/plan", "/api/sources/9"):
        assert reader.get(path).status_code == 404


def test_lists_in_and_out(caller: MakeCaller, app: FastAPI, store: Store, clock: FakeClock) -> None:
    opml = (
        "<opml version='2.0'><body><outline text='News'>"
        "<outline type='rss' text='One' xmlUrl='https://one.example/'/>"
        "<outline type='rss' text='Bad' xmlUrl='ftp://bad'/></outline></body></opml>"
    )
    admin = caller("admin")
    report = admin.post("/api/sources/import", content=opml, headers={"Content-Type": "text/x-opml"}).json()
    assert (report["added"], report["known"], report["rejected"]) == (1, 0, 1)
    assert {entry["outcome"] for entry in report["entries"]} == {"added", "rejected"}
    with store.reading() as connection:
        assert count_due(connection, clock()) == 1, "it is collected at once"
    again = admin.post("/api/sources/import", content=opml).json()
    assert (again["added"], again["known"]) == (0, 1)
    exported = caller("read").get("/api/sources/export")
    assert exported.headers["content-type"].startswith("text/x-opml")
    assert "https://one.example/" in exported.text and 'text="News"' in exported.text
    assert admin.post("/api/sources/import", content=b"\xff nonsense").status_code == 422
    assert caller("read").post("/api/sources/import", content=opml).status_code == 403


def test_discovery_tells_and_stores_nothing(local: TestClient, origin: Origin) -> None:
    origin.route("/", body=PAGE, content_type="text/html")
    origin.route("/nothing", body="<html></html>", content_type="text/html")
    (feed,) = local.post("/api/sources/discover", json={"url": origin.url("/")}).json()["feeds"]
    assert (feed["url"], feed["checked"], feed["source_id"]) == (origin.url("/feed.xml"), True, None)
    (watched,) = local.post("/api/sources/discover", json={"url": origin.url("/nothing")}).json()["feeds"]
    assert (watched["how"], watched["type"]) == ("watch", "web.scraper")
    assert local.post("/api/sources/discover", json={"url": origin.url("/404")}).status_code == 422
    assert local.post("/api/sources/discover", json={"url": "ftp://x"}).status_code == 400
    assert local.get("/api/sources").json()["sources"] == []


def test_scopes(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    add(store, clock, "https://one.example/")
    reader, refresher = caller("read"), caller("refresh")
    for method, path, body in (
        ("POST", "/api/sources", {"url": "https://x.example/"}),
        ("PATCH", "/api/sources/1", {"name": "x"}),
        ("DELETE", "/api/sources/1", None),
        ("POST", "/api/sources/1/pause", None),
        ("POST", "/api/sources/1/resume", None),
        ("POST", "/api/sources/1/restore", None),
        ("POST", "/api/sources/discover", {"url": "https://x.example/"}),
    ):
        for who in (reader, refresher):
            assert who.request(method, path, json=body).status_code == 403, (method, path)
    assert reader.post("/api/sources/1/refresh").status_code == 403
    assert refresher.get("/api/sources/1").status_code == 403
    assert refresher.post("/api/sources/1/refresh").status_code == 202


def test_a_body_too_large_or_of_no_length_is_refused_unread(caller: MakeCaller) -> None:
    admin = caller("admin")
    large = admin.post("/api/sources/import", content=b"x", headers={"Content-Length": "12000001"})
    assert (large.status_code, large.headers["content-type"]) == (413, "application/problem+json")
    assert "default-src 'none'" in large.headers["content-security-policy"]
    endless = admin.post("/api/sources/import", content=iter([b"x"]))
    assert endless.status_code == 411
