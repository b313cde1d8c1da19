"""The eighteen acceptance rows of the collector's design document, each under its number.

The document knows one way to plan: the type's fixed interval. Here that is the policy `interval`, and the rows about
intervals run under it; where a row holds under the default policy (`adaptive`) too, it runs under both, and says so.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from headwater.collect.context import make_planner
from headwater.collect.engine import Engine
from headwater.collectors.types import TYPES, intervals_by_type
from headwater.config import Settings, load_settings
from headwater.model import Observation, Source, Visit
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.sources.editing import Edit, edit_source
from headwater.sources.intervals import set_type_interval
from headwater.store.collecting.queue import Settlement, claim_due, settle_batch
from headwater.store.collecting.sources import get_source
from headwater.store.core.database import Store
from headwater.store.core.tables import collection_records
from headwater.store.people.keys import add_key
from headwater.web.app import create_app
from tests.clock import FakeClock
from tests.collect.test_engine import rss
from tests.command import Headwater
from tests.leases import leases
from tests.origin import Answer, Origin

MINUTE = 60.0
HOUR = 3600.0
STATUS = "/api/collector/status"
TICK_SECONDS, NEW_INTERVAL_SECONDS = 1.0, 3.0
BUSY_SECONDS = 8.0  # for a process to start and requests to pass, on a machine with much else to do

# The document's table: minutes between visits by type.
DOCUMENT_INTERVALS = {
    "twitter_feed": 30,
    "twitter_list": 30,
    "twitter_bookmarks": 60,
    "hackernews": 60,
    "reddit": 60,
    "rss": 240,
    "digest_feed": 240,
    "github_trending": 240,
    "website": 240,
    "custom_api": 120,
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """As if nothing were configured, but that loopback may be visited, and the fixed intervals of the document."""
    plain = load_settings(directory=tmp_path, environment={})
    return replace(
        plain,
        policy="interval",
        allow_hosts=("127.0.0.1",),
        host_spacing_seconds=0.0,
        host_concurrency=20,
    )


@pytest.fixture
def command(tmp_path: Path, database_url: str) -> Headwater:
    """The command with no setting that the document knows."""
    return Headwater(tmp_path, database_url)


def add(store: Store, url: str, kind: str = "rss", at: float | None = None) -> Source:
    with store.writing() as connection:
        return add_unvisited(connection, read_new_source(url, kind), time.time() if at is None else at)


def reread(store: Store, source: Source) -> Source:
    with store.reading() as connection:
        return get_source(connection, source.id)


async def collect(store: Store, settings: Settings, clock: FakeClock) -> int:
    """Visit what is due; how many were."""
    async with Engine(store, settings, clock=clock) as engine:
        await engine.collect_due()
    return engine.tally.visits


@contextmanager
def looping(command: Headwater, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = command.start("collect", "--loop", **environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(what: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


# -- scheduling ------------------------------------------------------------------------------------------


def test_row_01_a_source_never_visited_is_visited_at_once(
    database_url: str, command: Headwater, origin: Origin
) -> None:
    """With the real loop and nothing configured."""
    origin.route("/feed", body=rss(1))
    with Store.open(database_url) as store:
        source = add(store, origin.url("/feed"))
        with looping(command):
            wait_for(lambda: reread(store, source).last_fetched_at)


async def test_row_01_the_never_visited_go_before_the_overdue(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.otherwise(Answer(body=rss(1)))
    add(store, origin.url("/overdue"), at=clock())
    await collect(store, settings, clock)
    clock.advance(100 * HOUR)
    add(store, origin.url("/new"), at=clock())
    await collect(store, replace(settings, collector_concurrency=1), clock)
    assert [request.path for request in origin.requests] == ["/overdue", "/new", "/overdue"]


async def test_row_02_rss_three_hours_after_its_visit_is_not_due(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    add(store, origin.route("/feed", body=rss(1)), at=clock())
    await collect(store, settings, clock)
    clock.advance(3 * HOUR)
    assert await collect(store, settings, clock) == 0


async def test_row_03_rss_five_hours_after_its_visit_is_visited(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    add(store, origin.route("/feed", body=rss(1)), at=clock())
    await collect(store, settings, clock)
    clock.advance(5 * HOUR)
    assert await collect(store, settings, clock) == 1


def due_after(store: Store, settings: Settings, kind: str, minutes: float, clock: FakeClock) -> bool:
    """Whether a source of this kind is claimed so many minutes after a visit that worked.

    This is what decides whether a collector gets to see it, so it holds for any collector.
    """
    source = add(store, "https://news.ycombinator.com/", kind, clock())
    planner = make_planner(settings, {}, None, Random(1))

    def visit(claimed: Source) -> Settlement:
        after = planner.after_success(claimed, Observation(clock(), "unchanged", first=True))
        after = replace(after, last_fetched_at=clock(), fetch_count=1)
        return Settlement(claimed, after, Visit(source.id, clock(), clock(), "unchanged"))

    with store.writing() as connection:
        (claimed,) = claim_due(connection, 10, now=clock(), lease_until=clock() + 60)
        settle_batch(connection, [visit(claimed)])
        clock.advance(minutes * MINUTE)
        return bool(claim_due(connection, 10, now=clock(), lease_until=clock() + 60))


def test_row_04_hacker_news_fifty_minutes_after_its_visit_is_not_due(
    store: Store, settings: Settings, clock: FakeClock
) -> None:
    assert not due_after(store, settings, "hackernews", 50, clock)


def test_row_05_hacker_news_seventy_minutes_after_its_visit_is_due(
    store: Store, settings: Settings, clock: FakeClock
) -> None:
    assert due_after(store, settings, "hackernews", 70, clock)


@pytest.mark.parametrize("policy", ["interval", "adaptive"])
async def test_row_06_an_interval_from_the_environment_counts(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, tmp_path: Path, policy: str
) -> None:
    """Under the default policy too: it keeps to an interval set by hand while it knows little of the source."""
    hourly = load_settings(directory=tmp_path, environment={"FETCH_INTERVAL_RSS": "60"})
    settings = replace(settings, policy=policy, fetch_intervals=hourly.fetch_intervals)
    add(store, origin.route("/feed", body=rss(1)), at=clock())
    await collect(store, settings, clock)
    clock.advance(59 * MINUTE)
    assert await collect(store, settings, clock) == 0
    clock.advance(1 * MINUTE)
    assert await collect(store, settings, clock) == 1


async def test_row_06_an_interval_changed_after_the_first_visit_counts_after_a_restart(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, tmp_path: Path
) -> None:
    add(store, origin.route("/feed", body=rss(1)), at=clock())
    await collect(store, settings, clock)
    quick = load_settings(directory=tmp_path, environment={"FETCH_INTERVAL_RSS": "1"})
    settings = replace(settings, fetch_intervals=quick.fetch_intervals)
    assert await collect(store, settings, clock) == 0
    clock.advance(1 * MINUTE)
    assert await collect(store, settings, clock) == 1


@pytest.mark.parametrize("where", ["environment", "type", "source"])
def test_row_06_a_changed_interval_brings_the_next_request_within_a_tick_and_the_interval(
    database_url: str, command: Headwater, origin: Origin, settings: Settings, where: str
) -> None:
    """With the real loop, a tick of 1 s and a new interval of 3 s: by environment and restart, by PUT on the type, by
    PATCH on the source.
    """
    origin.route("/feed", body=rss(1))
    environment = {
        "HEADWATER_POLICY": "interval",
        "COLLECTOR_TICK": f"{TICK_SECONDS:g}",
        "HEADWATER_ALLOW_HOSTS": "127.0.0.1",
    }
    minutes = NEW_INTERVAL_SECONDS / MINUTE
    with Store.open(database_url) as store:
        add(store, origin.url("/feed"))
        with looping(command, **environment) as process:
            wait_for(lambda: _visits(store) == 1, 90)
            if where == "environment":
                process.terminate()
                process.wait(60)
            else:
                changed_at = time.monotonic()
                with store.writing() as connection:
                    _, secret = add_key(connection, name="owner", scopes=["admin"], now=time.time())
                client = TestClient(create_app(store, settings), base_url="http://127.0.0.1:8626")
                client.headers["Authorization"] = f"Bearer {secret}"
                if where == "type":
                    answer = client.put("/api/types/rss/interval", json={"minutes": minutes})
                else:
                    answer = client.patch(
                        "/api/sources/1", json={"config": {"fetch_interval_minutes": minutes}}
                    )
                assert answer.status_code == 200, answer.text
                wait_for(lambda: len(origin.requests) >= 2, 60)
        if where == "environment":
            changed_at = time.monotonic()
            with looping(command, **environment, FETCH_INTERVAL_RSS=f"{minutes:g}"):
                wait_for(lambda: len(origin.requests) >= 2, 90)
    waited = time.monotonic() - changed_at
    print(f"{where}: the next request came after {waited:.1f} s")
    assert waited <= TICK_SECONDS + NEW_INTERVAL_SECONDS + BUSY_SECONDS


def _visits(store: Store) -> int:
    with store.reading() as connection:
        return len(connection.execute(select(collection_records.c.source_id)).all())


def test_row_07_a_new_source_is_found_without_a_restart(
    database_url: str, command: Headwater, origin: Origin
) -> None:
    """With the real loop and nothing configured; it must be there within a tick of 60 s, and is within seconds."""
    origin.otherwise(Answer(body=rss(1)))
    with Store.open(database_url) as store:
        add(store, origin.url("/first"))
        with looping(command):
            wait_for(lambda: origin.received("/first"))
            command.ok("source", "add", origin.url("/second"), "--no-check")
            wait_for(lambda: origin.received("/second"), 15)


def test_row_08_a_type_without_a_collector_is_skipped_and_no_error(
    database_url: str, command: Headwater
) -> None:
    with Store.open(database_url) as store:
        source = add(store, "https://twitter.example/someone", "twitter_feed")
        code, out, _ = command.run("collect", "--json")
        assert code == 0
        assert '"skipped": 1' in out and '"failed": 0' in out
        stored = reread(store, source)
        assert (stored.fetch_error_count, stored.last_error, stored.status) == (0, None, "ok")
        with store.reading() as connection:
            statuses = connection.execute(select(collection_records.c.status)).scalars().all()
        assert statuses == ["skipped"]


# -- visits ----------------------------------------------------------------------------------------------


def test_row_09_no_more_at_once_than_allowed(database_url: str, command: Headwater, origin: Origin) -> None:
    origin.otherwise(Answer(body=rss(1), delay=0.2))
    with Store.open(database_url) as store:
        for number in range(10):
            add(store, origin.url(f"/{number}"))
    done = command.json("collect", COLLECTOR_CONCURRENCY="3", HEADWATER_HOST_CONCURRENCY="20")
    assert (done["visits"], origin.most_at_once) == (10, 3)


async def test_row_10_a_failure_is_recorded_and_touches_no_other(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    bad = add(store, origin.route("/bad", status=500), at=clock())
    good = add(store, origin.route("/good", body=rss(1)), at=clock())
    assert await collect(store, settings, clock) == 2
    failed = reread(store, bad)
    assert (failed.fetch_error_count, failed.consecutive_failures) == (1, 1)
    assert "500" in (failed.last_error or "")
    fine = reread(store, good)
    assert (fine.fetch_count, fine.fetch_error_count, fine.last_error) == (1, 0, None)


async def test_row_11_five_failures_in_a_row_pause_a_source(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    source = add(store, origin.route("/bad", status=500), at=clock())
    states = []
    for _ in range(5):
        assert await collect(store, settings, clock) == 1
        stored = reread(store, source)
        states.append((stored.is_active, stored.status))
        clock.now = stored.next_fetch_at or 0.0
    assert states == [(True, "ok")] * 4 + [(False, "paused")]


def test_row_12_on_sigterm_what_runs_is_finished(
    database_url: str, command: Headwater, origin: Origin
) -> None:
    origin.route("/slow", body=rss(1), delay=2.0)
    with Store.open(database_url) as store:
        source = add(store, origin.url("/slow"))
        process = command.start("collect", "--loop")
        wait_for(lambda: origin.received("/slow"))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=40)
        assert process.returncode == 0
        stored = reread(store, source)
        assert (stored.fetch_count, stored.fetch_error_count, leases(store)) == (1, 0, {})


# -- the status ------------------------------------------------------------------------------------------


@pytest.fixture
def ask(store: Store, settings: Settings) -> Callable[..., Any]:
    """The status as a holder of a key sees it."""
    with store.writing() as connection:
        _, secret = add_key(connection, name="operator", scopes=["read"], now=time.time())

    def get(**headers: str) -> Any:
        client = TestClient(create_app(store, settings), base_url="http://127.0.0.1:8626")
        return client.get(STATUS, headers=headers or {"Authorization": f"Bearer {secret}"})

    return get


def test_row_13_without_a_key_the_status_is_401(ask: Callable[..., Any]) -> None:
    assert ask(Accept="application/json").status_code == 401


async def test_row_14_with_a_key_the_status_tells_all_sources_and_numbers(
    store: Store, settings: Settings, origin: Origin, ask: Callable[..., Any]
) -> None:
    """Field by field, the union of the two answers that the document shows, and the state that pages show."""
    now = FakeClock(time.time())
    good = add(store, origin.route("/good", body=rss(1, 2, 3)), at=now())
    bad = add(store, origin.route("/bad", status=500), at=now())
    await collect(store, settings, now)
    answer = ask()
    assert answer.status_code == 200
    shown = {source["id"]: source for source in answer.json()["sources"]}
    assert set(shown) == {good.id, bad.id}
    for source in shown.values():
        assert set(source) == {
            "id",
            "name",
            "type",
            "interval_minutes",
            "last_fetched_at",
            "next_fetch_at",
            "fetch_count",
            "fetch_error_count",
            "last_error",
            "status",
            "state",
        }
        assert (source["type"], source["interval_minutes"]) == ("rss", 240)
    assert [shown[each.id]["fetch_error_count"] for each in (good, bad)] == [0, 1]
    assert shown[good.id]["last_error"] is None
    assert "500" in shown[bad.id]["last_error"]
    assert [shown[each.id]["state"] for each in (good, bad)] == ["on_time", "failing"]
    assert answer.json()["stats"] == {
        "total_sources": 2,
        "active_sources": 2,
        "paused_sources": 0,
        "paused_by_error": 0,
        "fetches_24h": 2,
        "errors_24h": 1,
        "raw_items_24h": 3,
        "items_24h": 3,
    }


async def test_row_15_the_next_visit_is_the_last_and_the_interval(
    store: Store, settings: Settings, origin: Origin, ask: Callable[..., Any]
) -> None:
    """Under the policy `interval`. The default policy plans by what it has learnt: there, it is the plan."""
    now = FakeClock(time.time())
    add(store, origin.route("/feed", body=rss(1)), at=now())
    sitemap = b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>http://a.example/</loc></url></urlset>"
    add(store, origin.route("/sitemap", body=sitemap), "sitemap", at=now())
    await collect(store, settings, now)
    waits = {}
    for source in ask().json()["sources"]:
        last, following = (
            datetime.fromisoformat(source[name]) for name in ("last_fetched_at", "next_fetch_at")
        )
        waits[source["type"]] = (following - last).total_seconds() / MINUTE
        assert waits[source["type"]] == source["interval_minutes"]
    assert waits == {"rss": 240, "sitemap": 120}


async def test_row_15_the_next_visit_follows_a_changed_interval(
    store: Store, settings: Settings, origin: Origin, ask: Callable[..., Any]
) -> None:
    """Changed after the first visit, on the type and on the source; the status tells it."""
    now = FakeClock(time.time())
    add(store, origin.route("/feed", body=rss(1)), at=now())
    await collect(store, settings, now)

    def wait() -> tuple[float, float]:
        (source,) = ask().json()["sources"]
        last, following = (
            datetime.fromisoformat(source[name]) for name in ("last_fetched_at", "next_fetch_at")
        )
        return source["interval_minutes"], (following - last).total_seconds() / MINUTE

    assert wait() == (240, 240)
    with store.writing() as connection:
        set_type_interval(connection, "rss", 30, now())
    assert await collect(store, settings, now) == 0
    assert wait() == (30, 30)
    with store.writing() as connection:
        edit_source(connection, 1, Edit(interval_minutes=5), now())
    assert await collect(store, settings, now) == 0
    assert wait() == (5, 5)


# -- what was before -------------------------------------------------------------------------------------


def test_row_16_nothing_configured_is_the_documents_defaults(
    command: Headwater, database_url: str, origin: Origin
) -> None:
    """The same table of intervals and a tick of a minute. Two things differ by decision: 20 visits at once instead of
    5, and the default policy learns when to come; the table is for the policy `interval`, and for when learning fails.
    """
    shown = {entry["name"]: entry["value"] for entry in command.json("config")}
    assert shown["collector_tick"] == 60
    assert (shown["collector_concurrency"], shown["policy"]) == (20, "adaptive")
    defaults = intervals_by_type({}, {})
    by_alias = {kind.alias: defaults[kind.name] for kind in TYPES}
    assert {name: by_alias[name] for name in DOCUMENT_INTERVALS} == DOCUMENT_INTERVALS
    origin.route("/feed", body=rss(1))
    with Store.open(database_url) as store:
        add(store, origin.url("/feed"))
        assert command.json("collect")["visits"] == 1
        assert command.json("collect")["visits"] == 0, "and then it is not due"


def test_row_17_a_single_source_is_visited_whatever_its_plan(
    command: Headwater, database_url: str, origin: Origin
) -> None:
    with Store.open(database_url) as store:
        source = add(store, origin.route("/feed", body=rss(1)))
    for _ in range(2):
        assert command.json("collect", "--source", str(source.id))["visits"] == 1
    assert len(origin.requests) == 2


def test_row_18_the_old_name_of_the_tick_still_works(tmp_path: Path) -> None:
    command = Headwater(tmp_path, None)

    def tick(**environment: str) -> float:
        (value,) = (
            entry["value"]
            for entry in command.json("config", **environment)
            if entry["name"] == "collector_tick"
        )
        return float(value)

    assert tick(COLLECTOR_INTERVAL="300") == 300
    assert tick(COLLECTOR_INTERVAL="300", COLLECTOR_TICK="30") == 30


def test_every_row_has_its_test() -> None:
    rows = {int(name[9:11]) for name in globals() if name.startswith("test_row_")}
    assert rows == set(range(1, 19))
