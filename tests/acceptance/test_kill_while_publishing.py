"""Workers killed at random while they make digests, write results, tell alerts and send: nothing lost or doubled."""

import json
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from headwater.model import Item
from headwater.publish.alerts import KEY as ALERTS_KEY
from headwater.publish.digests import read_digest
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.tables import deliveries, digests, pipeline_executions, settings, sources
from headwater.store.pipelines.attaching import attach
from headwater.store.pipelines.starting import RunQuery, list_runs, start_runs
from headwater.store.publishing.alerts import AlertRules, list_alerts, set_rules
from headwater.store.publishing.digests import Digest, add_digest, list_issues, make_due
from headwater.store.publishing.outbox import list_deliveries
from headwater.store.publishing.targets import Target, add_target
from headwater.store.reading.items import ItemChange, list_items, write_items
from headwater.store.reading.results import result_history
from tests.command import Headwater
from tests.origin import Answer, Origin
from tests.pipeline.making import make_template, step

pytestmark = pytest.mark.slow

ROUNDS = 5
ITEMS = 4  # in each round
SEEN = 100  # rounds that the last worker may take


def test_killed_workers_lose_and_double_no_digest_result_or_alert(
    store: Store, database_url: str, origin: Origin, tmp_path: Path
) -> None:
    rng = Random(database_url.startswith("sqlite"))
    command = Headwater(tmp_path, database_url)
    command.environment |= {
        "HEADWATER_ALLOW_HOSTS": "127.0.0.1",
        "HEADWATER_DATA_DIR": str(tmp_path / "data"),
    }
    hook = origin.route("/hook", lambda request: Answer(body="ok", delay=0.1))
    text = "".join(
        f"<p>On day {n} the river rose by {n} feet, and harbour {n} is closed.</p>" for n in range(40)
    )
    page = f"<html><head><title>A flood</title></head><body><article><h1>A flood</h1>{text}</article></body></html>"
    origin.route("/a", body=page, content_type="text/html")
    template = make_template(store, step("enrich_content"))
    with store.writing() as connection:
        add_target(connection, Target("hook", "webhook", {"url": hook}), time.time())
        source = add_source(connection, name="One", type="rss.feed", url="https://one.example/", now=1.0)
        gone = add_source(connection, name="Gone", type="rss.feed", url="https://two.example/", now=1.0)
        connection.execute(sources.update().where(sources.c.id == gone.id).values(status="retired"))
        attach(connection, template.id, "everything", [""], time.time())
        digest = Digest("all", "All", "every 1 hours", targets=("hook",))
        add_digest(connection, read_digest(digest, time.time()), time.time())
        set_rules(connection, AlertRules(("hook",), every_minutes=1.0), time.time())
    for round_number in range(ROUNDS):
        _collect(store, source.id, origin, round_number, template)
        process = command.start("worker")
        time.sleep(rng.uniform(0.5, 4.0))
        process.kill()
        process.communicate()
        _expire_leases(store)
    worker = command.start("worker")
    try:
        for _ in range(SEEN):
            time.sleep(0.5)
            if _is_quiet(store):
                break
            _expire_leases(store, only_digests=True)
    finally:
        worker.terminate()
        worker.communicate(timeout=60)
    with store.reading() as connection:
        shown = Counter(item_id for issue in list_issues(connection) for item_id in issue.item_ids)
        found = list_items(connection, limit=None)
        sent = list_deliveries(connection, limit=1_000)
        runs = list_runs(connection, RunQuery(), limit=1_000)
        alerts = list_alerts(connection)
        replaced = [each for item in found for each in result_history(connection, item.id)]
    assert shown == {item.id: 1 for item in found}, "every item is in one issue"
    assert len(found) == ROUNDS * ITEMS
    completed = {run.item_id for run in runs if run.status == "completed"}
    others = {run.error_message for run in runs if run.status != "completed"}
    assert others <= {"step 1 (enrich_content): its worker died 3 times while it ran"}
    assert {item.id for item in found if "full_text" in item.results} == completed, (
        "results come with their runs"
    )
    assert replaced == [], "no result was written twice"
    assert [alert.kind for alert in alerts].count("gone") == 1
    assert {each.status for each in sent} == {"sent"}
    keys = [each.key for each in sent]
    assert len(keys) == len(set(keys))
    arrived = [json.loads(request.body) for request in origin.requests if request.path == "/hook"]
    assert {each["idempotency_key"] for each in arrived} == set(keys), "each arrived"
    by_key = {(each["idempotency_key"], each["title"], each["text"]) for each in arrived}
    assert len(by_key) == len(set(keys)), "what arrived twice was the same message under the same key"


def _collect(store: Store, source_id: int, origin: Origin, round_number: int, template: object) -> None:
    numbers = range(round_number * ITEMS, (round_number + 1) * ITEMS)
    now = time.time()
    changes = tuple(
        ItemChange(
            "new",
            Item(f"{n}", url=origin.url("/a"), title=f"Item {n}"),
            f"{n}".encode(),
            f"{n}".encode(),
            (),
            b"h",
            now,
        )
        for n in numbers
    )
    with store.writing() as connection:
        write_items(connection, [(source_id, changes, now)])
        item_ids = [item.id for item in list_items(connection, limit=ITEMS)]
        start_runs(connection, template, item_ids, now)  # type: ignore[arg-type]
        make_due(connection, "all", now)


def _expire_leases(store: Store, *, only_digests: bool = False) -> None:
    """As if their time had passed."""
    now = time.time()
    with store.writing() as connection:
        connection.execute(digests.update().where(digests.c.attempts > 0).values(claim_at=now))
        if only_digests:
            return
        connection.execute(deliveries.update().where(deliveries.c.due_at.is_not(None)).values(due_at=now))
        connection.execute(settings.delete().where(settings.c.key == ALERTS_KEY))
        open_runs = pipeline_executions.c.completed_at.is_(None)
        connection.execute(
            pipeline_executions.update()
            .where(open_runs, pipeline_executions.c.due_at.is_not(None))
            .values(due_at=now - 1, lease_until=None)
        )


def _is_quiet(store: Store) -> bool:
    """Whether all is done: no run, no message and no digest is left."""
    with store.reading() as connection:
        runs = connection.execute(
            pipeline_executions.select().where(pipeline_executions.c.completed_at.is_(None)).limit(1)
        ).first()
        waiting = connection.execute(
            deliveries.select().where(deliveries.c.due_at.is_not(None)).limit(1)
        ).first()
        due = connection.execute(digests.select().where(digests.c.claim_at <= time.time())).first()
        told = [each.told_at for each in list_alerts(connection) if each.kind == "gone"]
    return runs is None and waiting is None and due is None and bool(told) and None not in told
