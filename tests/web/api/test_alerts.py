"""Alerts over the API."""

from headwater.store.core.database import Store
from headwater.store.publishing.alerts import QUIET_SECONDS, Problem, note_problems
from tests.clock import NOON
from tests.web.api.conftest import MakeCaller


def test_alerts_are_listed_in_the_language_asked_for(caller: MakeCaller, store: Store) -> None:
    gone = Problem("gone", "1", {"id": 1, "name": "River", "error": "410"})
    disk = Problem("disk", "", {"free": "0.1", "place": "/data"})
    with store.writing() as connection:
        note_problems(connection, [gone, disk], NOON)
        note_problems(connection, [gone], NOON + QUIET_SECONDS)
    reader = caller("read")
    listed = reader.get("/api/alerts?limit=1").json()
    assert (listed["alerts"][0]["kind"], listed["alerts"][0]["ended_at"] is None) == ("disk", False)
    [rest] = reader.get(f"/api/alerts?cursor={listed['next']}").json()["alerts"]
    assert rest["text"] == "River is gone: 410"
    [holding] = reader.get("/api/alerts?open=true", headers={"Accept-Language": "zh-CN"}).json()["alerts"]
    assert holding["text"] == "River 已消失：410"


def test_rules_are_changed_and_checked(caller: MakeCaller) -> None:
    admin, reader = caller("admin"), caller("read")
    hook = {"name": "hook", "kind": "webhook", "config": {"url": "https://a.example/s3cret"}}
    admin.post("/api/targets", json=hook)
    changes = {"targets": ["hook"], "off": ["lag"], "quiet_from": "22:00", "quiet_until": "07:00"}
    assert admin.patch("/api/alerts/rules", json=changes).status_code == 200
    shown = reader.get("/api/alerts/rules").json()
    assert {**shown, **changes} == shown
    assert admin.patch("/api/alerts/rules", json={"off": ["weather"]}).status_code == 400
    assert admin.patch("/api/alerts/rules", json={"targets": ["unknown"]}).status_code == 400
    assert reader.patch("/api/alerts/rules", json={}).status_code == 403
