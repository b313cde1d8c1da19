"""Rules and notifications in the API, and the page of rules."""

import re

from fastapi import FastAPI
from starlette.testclient import TestClient

from headwater.store.core.database import Store
from tests.clock import FakeClock
from tests.people.test_rules import follow as apply_rules
from tests.web.api.conftest import ADDRESS
from tests.web.api.test_reading import MakeReader, app, arrive, reader, sources
from tests.web.api.test_reading import follow as subscribe_to

__all__ = ["app", "reader", "sources"]


def user_id(client: TestClient) -> int:
    return int(client.get("/api/auth/me").json()["id"])


def test_rule_is_tried_made_changed_and_deleted(
    reader: MakeReader, store: Store, clock: FakeClock, sources: list[int]
) -> None:
    li, ann = reader("li"), reader("ann")
    subscribe_to(store, user_id(li), sources, clock())
    arrive(store, sources[0], clock(), "bridge one", "road")
    wanted = {"filter": {"include_keywords": ["bridge"]}, "source_ids": [sources[0]]}
    trial = li.post("/api/rules/try", json=wanted).json()
    assert (trial["matched"], trial["considered"]) == (1, 2)
    assert [each["title"] for each in trial["examples"]] == ["bridge one"]
    assert ann.post("/api/rules/try", json=wanted).status_code == 404

    made = li.post(
        "/api/rules", json={**wanted, "name": "Bridges", "actions": {"star": True, "notify": True}}
    )
    assert made.status_code == 201
    path = f"/api/rules/{made.json()['id']}"
    apply_rules(store, clock)
    arrive(store, sources[0], clock(), "bridge two")
    apply_rules(store, clock)
    assert [each["title"] for each in li.get("/api/entries?is_starred=true").json()["entries"]] == [
        "bridge two"
    ]
    told = li.get("/api/notifications").json()["notifications"]
    assert [(each["title"], each["rule_name"], each["seen_at"]) for each in told] == [
        ("bridge two", "Bridges", None)
    ]
    assert li.post("/api/notifications/seen", json={"up_to_id": told[0]["id"]}).json() == {"marked": 1}
    assert ann.get("/api/notifications").json()["notifications"] == []

    for answer in (ann.get(path), ann.patch(path, json={"name": "Mine"}), ann.delete(path)):
        assert answer.status_code == 404
    assert li.patch(path, json={"is_active": False}).json()["is_active"] is False
    arrive(store, sources[0], clock(), "bridge three")
    apply_rules(store, clock)
    assert li.get(path).json()["matched"] == 1
    assert li.delete(path).status_code == 204
    assert li.get("/api/rules").json() == {"rules": []}


def test_rule_of_a_reader_tells_no_target(reader: MakeReader) -> None:
    li = reader("li")
    wanted = {"name": "x", "filter": {"include_keywords": ["x"]}, "actions": {"target": "team"}}
    answer = li.post("/api/rules", json=wanted)
    assert answer.status_code == 400
    assert "only an admin" in answer.json()["detail"]


def test_page_tries_a_rule_then_keeps_it(app: FastAPI, store: Store, clock: FakeClock) -> None:
    with TestClient(app, base_url=ADDRESS) as browser:
        page = browser.get("/rules").text
        token = re.search(r'name="form_token" value="([^"]+)"', page)
        assert token
        form = {
            "form_token": token[1],
            "name": "Bridges",
            "include_keywords": "bridge\ntunnel",
            "star": "1",
            "do": "try",
        }
        tried = browser.post("/rules", data=form)
        assert "would have matched 0 of 0 entries" in tried.text
        assert "bridge\ntunnel" in tried.text
        kept = browser.post("/rules", data={**form, "do": "save"})
        assert "rule Bridges is saved" in kept.text
        assert "bridge, tunnel" in kept.text
        again = browser.post("/rules", data={**form, "do": "save"})
        assert again.status_code == 400
        paused = browser.post("/rules/1/active", data={"form_token": token[1]})
        assert "Resume" in paused.text
        assert "Bridges" not in browser.post("/rules/1/remove", data={"form_token": token[1]}).text
