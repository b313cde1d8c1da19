"""Settings, intervals of types, and keys over the API."""

from dataclasses import replace

from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.web.app import create_app
from tests.clock import FakeClock
from tests.web.api.conftest import ADDRESS, MakeCaller


def test_settings_are_told_without_their_secrets(
    caller: MakeCaller, store: Store, settings: Settings, clock: FakeClock
) -> None:
    app = create_app(store, replace(settings, password="hush"), clock=clock)
    with TestClient(app, base_url=ADDRESS, headers=dict(caller("admin").headers)) as admin:
        answer = admin.get("/api/settings")
    told = {each["name"]: each for each in answer.json()["settings"]}
    assert (told["port"]["value"], told["port"]["origin"]) == (8626, "default")
    assert told["password"]["value"] == "***"
    assert "hush" not in answer.text
    assert caller("read").get("/api/settings").status_code == 403


def test_the_interval_of_a_type_is_set_and_taken_back(caller: MakeCaller) -> None:
    admin = caller("admin")
    assert len(admin.get("/api/types").json()["types"]) >= 13
    changed = admin.put("/api/types/rss/interval", json={"minutes": 30}).json()
    assert (changed["name"], changed["interval_minutes"], changed["set_minutes"]) == ("rss.feed", 30, 30)
    assert admin.get("/api/types/rss.feed").json() == changed
    back = admin.delete("/api/types/rss.feed/interval").json()
    assert (back["interval_minutes"], back["set_minutes"]) == (240, None)
    assert admin.put("/api/types/rss/interval", json={"minutes": 0}).status_code == 422
    assert admin.put("/api/types/nonsense/interval", json={"minutes": 5}).status_code == 400
    assert admin.get("/api/types/nonsense").status_code == 400
    assert caller("read").put("/api/types/rss/interval", json={"minutes": 5}).status_code == 403


def test_a_key_is_told_once_and_worthless_once_revoked(caller: MakeCaller, stranger: TestClient) -> None:
    admin = caller("admin")
    made = admin.post("/api/keys", json={"name": "reader", "scopes": ["read"]})
    assert made.status_code == 201
    secret, number = made.json()["key"], made.json()["id"]
    header = {"Authorization": f"Bearer {secret}"}
    assert stranger.get("/api/types", headers=header).status_code == 200
    assert stranger.get("/api/keys", headers=header).status_code == 403
    listed = admin.get("/api/keys")
    assert secret not in listed.text
    assert [key["name"] for key in listed.json()["keys"]] == ["admin", "reader"]
    assert admin.delete(f"/api/keys/{number}").json()["revoked_at"] is not None
    assert stranger.get("/api/types", headers=header).status_code == 401
    assert admin.delete("/api/keys/99").status_code == 404
    for body, status in (
        ({"name": " "}, 400),
        ({"name": "x", "scopes": ["nonsense"]}, 422),
        ({"name": "x", "scopes": []}, 422),
        ({}, 422),
    ):
        assert admin.post("/api/keys", json=body).status_code == status, body
