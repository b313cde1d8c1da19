"""Templates, runs and cursors over the API."""

from typing import Any

import pytest

from headwater.model import Item
from headwater.store.core.database import Store
from tests.publish.test_outlets import store_items
from tests.web.api.conftest import MakeCaller


@pytest.fixture
def filled(store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="Alpha"), Item("b", title="Beta"))


def step(caller: MakeCaller) -> dict[str, Any]:
    """A step that needs nothing in its config."""
    for each in caller("read").get("/api/steps").json()["steps"]:
        if each["installed"] and not each["config_schema"].get("required"):
            answer = caller("admin").post(
                "/api/templates/validate", json={"name": "x", "steps": [{"step_type": each["step_type"]}]}
            )
            if answer.status_code == 204:
                return {"step_type": each["step_type"]}
    raise AssertionError("every step type wants something")


def test_a_template_is_checked_kept_and_replaced(caller: MakeCaller) -> None:
    admin, simple = caller("admin"), step(caller)
    made = admin.post("/api/templates", json={"name": "one", "steps": [simple]})
    assert (made.status_code, made.headers["location"]) == (201, "/api/templates/1")
    assert made.json()["steps"][0]["is_critical"] is True
    changed = admin.put("/api/templates/1", json={"name": "1", "run_on_change": True, "steps": [simple] * 2})
    assert (changed.json()["name"], len(changed.json()["steps"])) == ("1", 2)
    assert admin.get("/api/templates").json()["templates"] == [changed.json()]
    assert admin.get("/api/templates/1").json() == changed.json()
    for body, status in (
        ({"name": "1", "steps": [simple]}, 409),
        ({"name": "x", "steps": [{"step_type": "nonsense"}]}, 400),
        ({"name": "x", "steps": [{**simple, "config": {"nonsense": 1}}]}, 400),
        ({"name": "x", "steps": []}, 422),
        ({"name": "x", "steps": [{**simple, "retries": -1}]}, 422),
    ):
        assert admin.post("/api/templates", json=body).status_code == status, body
    assert admin.delete("/api/templates/1").status_code == 204
    assert admin.delete("/api/templates/1").status_code == 404
    assert admin.get("/api/templates/1").status_code == 404
    assert admin.put("/api/templates/1", json={"name": "x", "steps": [simple]}).status_code == 404
    assert caller("read").post("/api/templates", json={"name": "x", "steps": [simple]}).status_code == 403


@pytest.mark.usefixtures("filled")
def test_runs_are_started_listed_ended_and_begun_again(caller: MakeCaller) -> None:
    admin = caller("admin")
    admin.post("/api/templates", json={"name": "one", "steps": [step(caller)]})
    start = {"template_id": 1, "item_ids": [1, 2], "runtime_config": {"api_key": "hush", "n": 1}}
    assert admin.post("/api/runs", json=start).json() == {"run_ids": [1, 2]}
    assert admin.post("/api/runs", json=start).json() == {"run_ids": []}, "each version once"
    forced = admin.post("/api/runs", json={**start, "force": True}).json()["run_ids"]
    page = admin.get("/api/runs?limit=3").json()
    assert [run["id"] for run in page["runs"]] == [*sorted(forced, reverse=True), 2]
    rest = admin.get("/api/runs", params={"cursor": page["next"]}).json()
    assert ([run["id"] for run in rest["runs"]], rest["next"]) == ([1], None)
    assert admin.get("/api/runs?status=failed").json()["runs"] == []
    whole = admin.get("/api/runs/1").json()
    assert (whole["status"], whole["runtime_config"]) == ("pending", {"api_key": "***", "n": 1})
    assert [each["status"] for each in whole["steps"]] == ["pending"]
    assert admin.post("/api/runs/1/retry").status_code == 409, "it has not ended"
    assert admin.post("/api/runs/1/cancel").json()["status"] == "skipped"
    assert admin.post("/api/runs/1/cancel").status_code == 409
    assert admin.post("/api/runs/1/rerun", json={"from_step": 7}).status_code == 400
    assert admin.post("/api/runs/1/rerun", json={}).json()["status"] == "pending"
    admin.post("/api/runs/1/cancel")
    assert admin.post("/api/runs/1/retry").json()["status"] == "pending"
    for body, status in (
        ({"template_id": 9, "item_ids": [1]}, 404),
        ({"template_id": 1, "item_ids": [9]}, 404),
        ({"template_id": 1, "item_ids": []}, 422),
        ({"template_id": 1, "item_ids": [1], "runtime_config": {"n": 2**70}}, 422),
    ):
        assert admin.post("/api/runs", json=body).status_code == status, body
    for path in ("/api/runs/9/retry", "/api/runs/9/cancel"):
        assert admin.post(path).status_code == 404
    assert admin.get("/api/runs/9").status_code == 404
    assert caller("read").post("/api/runs", json=start).status_code == 403


@pytest.mark.usefixtures("filled")
def test_a_cursor_gives_everything_until_it_is_acknowledged(caller: MakeCaller) -> None:
    admin, reader, refresher = caller("admin"), caller("read"), caller("refresh")
    made = admin.post("/api/cursors", json={"name": "mine", "types": ["rss"]})
    assert (made.status_code, made.json()["types"]) == (201, ["rss.feed"])
    page = reader.get("/api/cursors/mine/items?limit=1").json()
    assert ([each["title"] for each in page["items"]], page["is_last"]) == (["Alpha"], False)
    assert reader.get("/api/cursors/mine/items?limit=1").json() == page, "reading moves nothing"
    told = refresher.post("/api/cursors/mine/acknowledge", json={"position": page["position"]})
    assert told.json()["position"] == page["position"]
    rest = reader.get("/api/cursors/mine/items").json()
    assert ([each["title"] for each in rest["items"]], rest["is_last"]) == (["Beta"], True)
    assert refresher.post("/api/cursors/mine/acknowledge", json={"position": 10**9}).status_code == 400
    assert admin.post("/api/cursors/mine/reset", json={}).json()["position"] == 0
    assert [cursor["name"] for cursor in reader.get("/api/cursors").json()["cursors"]] == ["mine"]
    for body, status in (
        ({"name": "mine"}, 409),
        ({"name": "/"}, 422),
        ({"name": "x", "types": ["nonsense"]}, 400),
        ({"name": "x", "source_ids": [9]}, 404),
        ({"name": "x", "folders": ["Nowhere"]}, 404),
    ):
        assert admin.post("/api/cursors", json=body).status_code == status, body
    assert admin.delete("/api/cursors/mine").status_code == 204
    for path in ("/api/cursors/mine", "/api/cursors/mine/items"):
        assert reader.get(path).status_code == 404
    assert reader.post("/api/cursors", json={"name": "x"}).status_code == 403


def test_templates_are_attached_ordered_and_detached(caller: MakeCaller, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="one"), folder="News")
    admin, reader = caller("admin"), caller("read")
    for name in ("first", "second"):
        step = {"step_type": "filter_content", "config": {"languages": ["en"]}}
        assert admin.post("/api/templates", json={"name": name, "steps": [step]}).status_code == 201
    wanted = [{"scope": "folder", "value": "News"}, {"scope": "type", "value": "rss"}]
    attached = admin.post("/api/templates/1/attach", json={"attachments": wanted}).json()["attachments"]
    assert attached == [{"scope": "folder", "value": "News"}, {"scope": "type", "value": "rss.feed"}]
    own = {"attachments": [{"scope": "source", "value": "1"}]}
    assert admin.post("/api/templates/2/attach", json=own).status_code == 200
    assert reader.get("/api/sources/1").json()["pipeline_template_id"] == 2
    names = [each["template_name"] for each in reader.get("/api/sources/1/pipelines").json()["pipelines"]]
    assert names == ["first", "second"]
    ordered = admin.post("/api/templates/order", json={"template_ids": [2]}).json()["templates"]
    assert [each["name"] for each in ordered] == ["second", "first"]
    first, second = reader.get("/api/sources/1/pipelines").json()["pipelines"]
    assert (first["template_name"], first["by"]) == ("second", [{"scope": "source", "value": "1"}])
    assert [by["scope"] for by in second["by"]] == ["folder", "type"]
    kept = admin.post("/api/templates/1/detach", json={"attachments": wanted[:1]}).json()["attachments"]
    assert kept == [{"scope": "type", "value": "rss.feed"}]
    # A source's own field attaches besides what is there, and null detaches what is attached to the source itself.
    admin.patch("/api/sources/1", json={"pipeline_template_id": 1})
    assert len(reader.get("/api/sources/1/pipelines").json()["pipelines"]) == 2
    assert (
        admin.patch("/api/sources/1", json={"pipeline_template_id": None}).json()["pipeline_template_id"]
        is None
    )
    assert [each["template_id"] for each in reader.get("/api/sources/1/pipelines").json()["pipelines"]] == [1]
    for path, body, status in (
        ("/api/templates/9/attach", own, 404),
        ("/api/templates/1/attach", {"attachments": [{"scope": "source", "value": "9"}]}, 404),
        ("/api/templates/1/attach", {"attachments": [{"scope": "source", "value": "x"}]}, 400),
        ("/api/templates/1/attach", {"attachments": [{"scope": "type", "value": "x"}]}, 400),
        ("/api/templates/1/attach", {"attachments": [{"scope": "folder", "value": ""}]}, 400),
        ("/api/templates/1/attach", {"attachments": [{"scope": "planet"}]}, 422),
        ("/api/templates/order", {"template_ids": [9]}, 404),
    ):
        assert admin.post(path, json=body).status_code == status, body
    assert reader.post("/api/templates/1/attach", json=own).status_code == 403
