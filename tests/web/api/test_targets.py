"""Targets, previews and deliveries over the API; templates and outlets tried before they are saved."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from headwater.model import Item, Result
from headwater.store.core.database import Store
from headwater.store.publishing.outbox import DeliveryEnd, claim_deliveries, settle_deliveries
from headwater.store.reading.results import NewResult, write_results
from tests.clock import NOON, FakeClock
from tests.publish.test_outlets import store_items
from tests.web.api.conftest import MakeCaller

MAIL: dict[str, Any] = {"name": "ann", "kind": "email", "config": {"recipients": ["ann@example.org"]}}
HOOK: dict[str, Any] = {
    "name": "hook",
    "kind": "webhook",
    "config": {"url": "https://a.example/s3cret", "secret": "x"},
}


@pytest.fixture
def filled(store: Store) -> None:
    with store.writing() as connection:
        store_items(
            connection, Item("a", title="The river", content="<p>rose</p>", url="https://a.example/1")
        )
        write_results(
            connection, [NewResult(1, 1, Result("summary", body="It rose."), NOON, run_id=3, step_index=1)]
        )


def test_targets_are_kept_with_their_secrets_hidden(caller: MakeCaller) -> None:
    admin, reader = caller("admin"), caller("read")
    assert admin.post("/api/targets", json=HOOK).status_code == 201
    shown = reader.get("/api/targets/hook").json()
    assert (shown["config"]["url"], shown["config"]["secret"]) == ("***", "***")
    changed = admin.patch(
        "/api/targets/hook",
        json={"config": {**shown["config"], "title": "New: {{ title }}"}, "batch_minutes": 5},
    ).json()
    assert (changed["config"]["url"], changed["config"]["title"]) == ("***", "New: {{ title }}")
    assert (changed["batch_minutes"], changed["batch_items"]) == (5.0, 20)
    assert admin.patch("/api/targets/hook", json={"batch_minutes": None}).json()["batch_minutes"] is None
    assert [each["name"] for each in reader.get("/api/targets").json()["targets"]] == ["hook"]
    assert admin.delete("/api/targets/hook").status_code == 204
    assert admin.delete("/api/targets/hook").status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**MAIL, "name": "a b"}, 400),
        ({**MAIL, "kind": "pigeon"}, 422),
        ({**MAIL, "config": {}}, 400),
        ({**MAIL, "config": {"recipients": ["unknown"]}}, 400),
        ({**MAIL, "config": {"recipients": ["ann@example.org"], "feather": 1}}, 400),
        ({**MAIL, "config": {"recipients": ["ann@example.org"], "title": "{{"}}, 400),
        ({**HOOK, "config": {"url": "***"}}, 400),
        ({**MAIL, "batch_minutes": 0}, 422),
    ],
)
def test_what_is_wrong_with_a_target_is_said(caller: MakeCaller, body: dict[str, Any], status: int) -> None:
    admin = caller("admin")
    assert admin.post("/api/targets", json=body).status_code == status


@pytest.mark.usefixtures("filled")
def test_message_is_previewed_on_a_real_item(caller: MakeCaller) -> None:
    admin = caller("admin")
    admin.post("/api/targets", json=MAIL)
    shown = admin.post("/api/targets/ann/preview", json={"item_id": 1}).json()
    assert (shown["title"], shown["text"]) == ("The river", "It rose.\n\nhttps://a.example/1")
    assert "<p>It rose.</p>" in shown["html"]
    config = {
        **MAIL["config"],
        "title": "[{{ item.source_name }}] {{ title }}",
        "html": "<b>{{ text }}</b><script>",
    }
    shown = admin.post("/api/targets/ann/preview", json={"item_id": 1, "config": config}).json()
    assert shown["title"] == "[one] The river"
    assert shown["html"].startswith("<b>It rose.")
    assert "script" not in shown["html"]
    assert admin.post("/api/targets/ann/preview", json={"item_id": 9}).status_code == 404


def deliveries(client: TestClient, query: str = "") -> list[tuple[str, str]]:
    return [
        (each["kind"], each["status"]) for each in client.get(f"/api/deliveries{query}").json()["deliveries"]
    ]


def test_deliveries_are_listed_and_sent_again(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    admin = caller("admin")
    admin.post("/api/targets", json=MAIL)
    assert admin.post("/api/targets/ann/test").status_code == 202
    assert deliveries(admin) == [("test", "pending")]
    with store.writing() as connection:
        [claimed] = claim_deliveries(connection, 1, now=clock(), lease_until=clock() + 9)
        settle_deliveries(connection, [DeliveryEnd(claimed, "failed", clock(), error_message="no")])
    assert deliveries(admin, "?status=failed&target=ann") == [("test", "failed")]
    assert admin.post("/api/deliveries/1/retry").json()["status"] == "pending"
    assert admin.post("/api/deliveries/1/retry").status_code == 409
    assert admin.post("/api/deliveries/9/retry").status_code == 404
    assert admin.get("/api/deliveries?target=unknown").status_code == 404


@pytest.mark.usefixtures("filled")
def test_template_trial_on_an_item_stores_nothing(caller: MakeCaller, store: Store) -> None:
    admin = caller("admin")
    admin.post("/api/targets", json=MAIL)
    steps: list[dict[str, Any]] = [
        {"step_type": "filter_content", "config": {"include_keywords": ["rose"]}},
        {
            "step_type": "analyze_content",
            "is_critical": False,
            "config": {"base_url": "http://127.0.0.1:9/v1", "model": "m"},
        },
        {"step_type": "publish_content", "config": {"to": "ann", "title": "{{ item.title }}!"}},
    ]
    tried = admin.post(
        "/api/templates/try", json={"item_id": 1, "template": {"name": "x", "steps": steps}}
    ).json()
    assert [each["status"] for each in tried["steps"]] == ["completed", "failed", "completed"]
    assert tried["steps"][0]["output_data"] == {"kept": True}
    assert "HEADWATER_ALLOW_HOSTS" in tried["steps"][1]["error_message"]
    assert tried["steps"][2]["output_data"]["message"]["title"] == "The river!"
    steps[0]["config"] = {"include_keywords": ["nothing"]}
    tried = admin.post(
        "/api/templates/try", json={"item_id": 1, "template": {"name": "x", "steps": steps}}
    ).json()
    assert [each["status"] for each in tried["steps"]] == ["skipped", "skipped", "skipped"]
    assert deliveries(admin) == []
    assert admin.get("/api/runs").json()["runs"] == []


@pytest.mark.usefixtures("filled")
def test_outlet_is_previewed_before_it_is_added(caller: MakeCaller) -> None:
    admin = caller("admin")
    wanted = {"name": "x", "content": ["summary"], "shows": {"has": ["summary"]}}
    [entry] = admin.post("/api/outlets/preview", json=wanted).json()["entries"]
    assert (entry["title"], entry["content"]) == ("The river", "<p>It rose.</p>")
    wanted = {"name": "x", "content": ["template"], "template": "<h1>{{ item.title }}</h1><script>"}
    [entry] = admin.post("/api/outlets/preview", json=wanted).json()["entries"]
    assert entry["content"] == "<h1>The river</h1>"
    assert admin.post("/api/outlets/preview", json={"name": "x", "content": ["poem"]}).status_code == 400
    assert admin.get("/api/outlets").json()["outlets"] == []
