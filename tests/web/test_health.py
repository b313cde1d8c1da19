"""Alive, ready, and measured."""

import json
import re
import resource
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import event
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.errors import StoreError
from headwater.model import Item, Plan
from headwater.store.collecting.queue import settle_batch
from headwater.store.core.database import Store
from headwater.store.people.keys import add_key
from headwater.web.app import create_app
from tests.clock import NOON, FakeClock
from tests.databases import copy_sqlite
from tests.publish.test_outlets import store_items
from tests.store.collecting.test_queue import claim, done

ADDRESS = "http://127.0.0.1:8626"
DASHBOARD = Path(__file__).resolve().parents[2] / "examples" / "grafana" / "headwater.json"


def visitor(app: FastAPI) -> TestClient:
    return TestClient(app, base_url=ADDRESS)


def numbers(text: str) -> dict[str, float]:
    """The samples, read as strictly as Prometheus does."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) [a-z0-9_]+ .+", line)
        else:
            name, value = re.fullmatch(r'([a-z0-9_]+(?:\{[a-z]+="[^"]*"\})?) (\S+)', line).groups()  # type: ignore[union-attr]
            assert name not in found
            found[name] = float(value)
    return found


def test_ready_when_the_database_and_the_collector_are(
    store: Store, settings: Settings, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = True
    beside = create_app(store, settings, clock=clock, is_collecting=lambda: alive)
    with store.writing() as connection:
        store_items(connection)
    clock.advance(5)
    assert visitor(create_app(store, settings, clock=clock)).get("/readyz").json() == {
        "status": "ready",
        "database": "ok",
        "due": 1,
        "lag_seconds": 5.0,
        "collector": "not run here",
    }
    assert visitor(beside).get("/readyz").json()["collector"] == "ok"
    alive = False
    stopped = visitor(beside).get("/readyz")
    assert (stopped.status_code, stopped.json()["collector"]) == (503, "stopped")
    alive = True

    async def fail(*args: object, **kwargs: object) -> None:
        raise StoreError("hush")

    monkeypatch.setattr(Store, "read", fail)
    away = visitor(beside).get("/readyz")
    assert (away.status_code, away.json()["database"]) == (503, "away")
    assert visitor(beside).get("/healthz").json() == {"status": "ok"}, "the process itself is well"


def test_not_ready_when_nothing_can_be_written(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.web.health.PROBE_SECONDS", 0.0)
    client = visitor(create_app(store, settings))
    assert client.get("/readyz").status_code == 200
    read_only = "PRAGMA query_only = ON" if store.is_sqlite else "SET default_transaction_read_only = on"
    store.engine.dispose()

    @event.listens_for(store.engine, "connect")
    def freeze(connection: Any, record: object) -> None:
        connection.execute(read_only)
        connection.commit()

    frozen = client.get("/readyz")
    assert (frozen.status_code, frozen.json()["database"]) == (503, "cannot be written")


def test_not_ready_when_the_database_may_not_grow(
    sqlite_template: Path, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.web.health.PROBE_SECONDS", 0.0)
    with Store.open(copy_sqlite(sqlite_template, tmp_path / "headwater.db")) as store:
        client = visitor(create_app(store, settings))
        assert client.get("/readyz").status_code == 200
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (4096, before[1])
            )  # as a full disk: no write gets through
            full = client.get("/readyz")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        assert (full.status_code, full.json()["database"]) == (503, "cannot be written")
        assert client.get("/readyz").status_code == 200, "there is room again"


def test_readiness_writes_now_and_then_only(store: Store, settings: Settings) -> None:
    client = visitor(create_app(store, settings))
    writes = 0

    @event.listens_for(store.engine, "commit")
    def count(connection: Any) -> None:
        nonlocal writes
        writes += bool(connection.get_execution_options().get("headwater_writes"))

    for _ in range(5):
        client.get("/readyz")
    assert writes == 1


def test_metrics_count_and_only_grow(store: Store, settings: Settings, clock: FakeClock) -> None:
    client = visitor(create_app(store, settings, clock=clock))
    before = numbers(client.get("/metrics").text)
    assert before["headwater_discovery_delay_seconds_count"] == 0
    with store.writing() as connection:
        store_items(
            connection,
            Item("1", published_at=NOON),  # found in the same second
            Item("2", published_at=NOON - 86_400),  # from before the source was added
            Item("3"),
        )
        (source,) = claim(connection)
        settle_batch(connection, [done(source, clock(), Plan(clock() + 3600))])
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    after = numbers(answer.text)
    assert after['headwater_sources{state="on_time"}'] == 1
    assert after['headwater_visits_total{outcome="unchanged"}'] == 1
    assert after['headwater_discovery_delay_seconds_bucket{le="60"}'] == 1
    assert after['headwater_discovery_delay_seconds_bucket{le="+Inf"}'] == 1
    clock.advance(3600)
    again = numbers(client.get("/metrics").text)
    assert again["headwater_discovery_delay_seconds_count"] == 1, "nothing is counted twice"
    assert numbers(client.get("/metrics").text)["headwater_discovery_delay_seconds_count"] == 1
    assert again["headwater_due"] == 1


def test_beyond_this_machine_metrics_need_a_key(store: Store, settings: Settings, clock: FakeClock) -> None:
    client = visitor(create_app(store, replace(settings, host="0.0.0.0"), clock=clock))
    refused = client.get("/metrics")
    assert (refused.status_code, refused.headers["content-type"]) == (401, "application/problem+json")
    with store.writing() as connection:
        _, secret = add_key(connection, name="prometheus", scopes=["read"], now=clock())
    assert client.get("/metrics", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert client.get("/readyz").status_code == 200


def test_the_dashboard_for_grafana_shows_what_is_there(
    store: Store, settings: Settings, clock: FakeClock
) -> None:
    known = set(
        re.findall(
            r"^# TYPE (\S+)", visitor(create_app(store, settings, clock=clock)).get("/metrics").text, re.M
        )
    )
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = {
        re.sub(r"_(bucket|sum|count)$", "", name)
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"headwater_\w+", target["expr"])
    }
    assert asked <= known, asked - known
    assert len(board["panels"]) >= 8
