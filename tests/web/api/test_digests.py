"""Digests over the API."""

from typing import Any

import pytest

from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.publishing.digests import NewIssue, claim_digest, settle_digest
from headwater.store.publishing.outbox import list_deliveries
from tests.clock import FakeClock
from tests.publish.test_outlets import store_items
from tests.web.api.conftest import MakeCaller

DIGEST: dict[str, Any] = {"name": "morning", "schedule": "daily 07:30", "selects": {"folders": ["News"]}}
HOOK: dict[str, Any] = {"name": "hook", "kind": "webhook", "config": {"url": "https://a.example/s3cret"}}


def make_issue(store: Store, clock: FakeClock) -> None:
    with store.writing() as connection:
        claimed = claim_digest(connection, now=clock() + 90_000, lease_until=clock() + 90_001)
        assert claimed is not None
        issue = NewIssue("News", "# News", "<h1>News</h1>", (1,))
        settle_digest(connection, claimed, [issue], [], position=1, next_at=clock() + 99_000, now=clock())


def test_digest_is_added_changed_and_removed(caller: MakeCaller, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, folder="News")
    admin, reader = caller("admin"), caller("read")
    assert reader.post("/api/digests", json=DIGEST).status_code == 403
    added = admin.post("/api/digests", json={**DIGEST, "config": {"api_key": "s3cret"}})
    assert added.status_code == 201
    assert added.headers["location"] == "/api/digests/morning"
    shown = reader.get("/api/digests/morning").json()
    assert (shown["config"], shown["selects"]["folders"], shown["when"]) == (
        {"api_key": "***"},
        ["News"],
        "stored",
    )
    changes = {"schedule": "every 2 hours", "config": {"api_key": "***", "write": "text"}}
    changed = admin.patch("/api/digests/morning", json=changes).json()
    assert changed["due_at"] != shown["due_at"]
    assert changed["config"] == {"api_key": "***", "write": "text"}
    assert admin.post("/api/digests", json=DIGEST).status_code == 409
    assert admin.delete("/api/digests/morning").status_code == 204
    assert reader.get("/api/digests").json() == {"digests": []}


@pytest.mark.parametrize(
    "change",
    [{"schedule": "now and then"}, {"zone": "Moon"}, {"config": {"x": 1}}, {"targets": ["unknown"]}],
)
def test_digest_that_cannot_work_is_refused(caller: MakeCaller, change: dict[str, Any]) -> None:
    answer = caller("admin").post("/api/digests", json={"name": "a", "schedule": "daily 07:30", **change})
    assert answer.status_code == 400


def test_digest_with_results_waits_until_items_are_processed(caller: MakeCaller) -> None:
    body = {"name": "best", "schedule": "daily 07:30", "selects": {"min_score": 7}}
    assert caller("admin").post("/api/digests", json=body).json()["when"] == "processed"


def test_issues_are_listed_read_and_sent_again(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    admin = caller("admin")
    admin.post("/api/targets", json=HOOK)
    admin.post("/api/digests", json={"name": "all", "schedule": "daily 07:30", "targets": ["hook"]})
    with store.writing() as connection:
        store_items(connection, Item("a", title="The river"))
    previewed = admin.post("/api/digests/all/preview").json()["issues"]
    assert [each["item_ids"] for each in previewed] == [[1]]
    assert "The river" in previewed[0]["html"]
    make_issue(store, clock)
    [listed] = admin.get("/api/digest-issues?digest=all").json()["issues"]
    assert (listed["title"], listed["item_count"]) == ("News", 1)
    assert admin.get(f"/api/digest-issues/{listed['id']}").json()["html"] == "<h1>News</h1>"
    assert admin.post(f"/api/digest-issues/{listed['id']}/send", json={}).status_code == 202
    with store.reading() as connection:
        [delivery] = list_deliveries(connection)
    assert (delivery.kind, delivery.title) == ("digest", "News")
    remade = admin.post(f"/api/digest-issues/{listed['id']}/remake").json()
    assert (remade["revision"], "The river" in remade["text"]) == (2, True)
    assert admin.post("/api/digests/all/make").status_code == 202
    assert admin.get("/api/digest-issues/99").status_code == 404


def test_outlet_publishes_a_digest(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    admin = caller("admin")
    admin.post("/api/digests", json={"name": "all", "schedule": "daily 07:30"})
    outlet = admin.post("/api/outlets", json={"name": "digest", "digest": "all"})
    assert outlet.json()["digest"] == "all"
    make_issue(store, clock)
    assert "&lt;h1&gt;News" in admin.get("/outlets/digest.xml").text
    assert admin.delete("/api/digests/all").status_code == 409
