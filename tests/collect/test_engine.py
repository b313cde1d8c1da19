"""Whole visits through the engine: a real origin, a real database, a clock of our own."""

import asyncio
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest
from sqlalchemy import event, select

from headwater.collect.engine import HELD_SECONDS, Engine
from headwater.config import Settings, load_settings
from headwater.errors import StoreError
from headwater.model import Source
from headwater.smart_scheduler import get_source_stats
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.collecting.outages import Outage, read_outages
from headwater.store.collecting.queue import claim_sources, count_due
from headwater.store.collecting.sources import get_source, list_sources, request_refresh, set_schedule_enabled
from headwater.store.core.clock import measured_clock
from headwater.store.core.database import Store
from headwater.store.core.settings import set_setting
from headwater.store.core.tables import collection_records, sources
from headwater.store.reading.items import list_items
from tests.clock import FakeClock
from tests.databases import empty_tables
from tests.leases import leases
from tests.origin import Answer, Origin, Received


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(
        load_settings(directory=tmp_path, environment={}),
        policy="interval",
        allow_hosts=("127.0.0.1",),
        host_spacing_seconds=0.0,
        host_concurrency=20,
        collector_tick=0.2,
    )


def rss(*numbers: int, at: float = 1_699_999_000.0, title: str = "Post {}") -> bytes:
    items = "".join(
        f"<item><title>{title.format(n)}</title><guid>{n}</guid><link>http://one.example/{n}</link>"
        f"<pubDate>{formatdate(at + n)}</pubDate><description>text {n}</description></item>"
        for n in numbers
    )
    return f'<rss version="2.0"><channel><title>One</title><link>http://one.example/</link>{items}</channel></rss>'.encode()


def add(store: Store, url: str, clock: FakeClock, **config: object) -> Source:
    with store.writing() as connection:
        return add_unvisited(connection, read_new_source(url, config=config), clock())


async def collect(store: Store, settings: Settings, clock: FakeClock, *source_ids: int) -> Engine:
    async with Engine(store, settings, clock=clock) as engine:
        await (engine.collect_sources(source_ids) if source_ids else engine.collect_due())
    return engine


def reread(store: Store, source: Source) -> Source:
    with store.reading() as connection:
        return get_source(connection, source.id)


def titles(store: Store) -> list[str]:
    with store.reading() as connection:
        return [item.title for item in list_items(connection)]


async def test_a_visit_stores_items_plan_validators_and_record(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", body=rss(1, 2), etag='W/"one"')
    source = add(store, origin.url("/feed"), clock)
    engine = await collect(store, settings, clock)
    assert (engine.tally.visits, engine.tally.items_new) == (1, 2)
    assert titles(store) == ["Post 2", "Post 1"]
    stored = reread(store, source)
    assert stored.next_fetch_at == clock() + 4 * 3600
    assert stored.plan_reason["policy"] == "interval"
    assert stored.validators.etag == b'W/"one"'
    assert (stored.metadata.title, stored.metadata.site_url) == ("One", "http://one.example/")
    assert stored.last_entry_at == 1_699_999_002.0
    with store.reading() as connection:
        (record,) = connection.execute(select(collection_records)).all()
    assert (record.status, record.items_found, record.items_new, record.http_status) == ("new", 2, 2, 200)


async def test_collect_all_visits_every_source_once_that_is_not_paused(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.collect.engine.IDS_AT_ONCE", 3)
    origin.otherwise(rss(1))
    made = [add(store, origin.url(f"/{number}"), clock) for number in range(8)]
    with store.writing() as connection:
        set_schedule_enabled(connection, made[4].id, False, clock())
    for _ in range(2):  # also when nothing is due
        async with Engine(store, settings, clock=clock) as engine:
            assert await engine.collect_all()
        assert engine.tally.visits == 7
    assert len(origin.requests) == 14


async def test_visit_to_damaged_feed_stores_repairs_until_it_is_mended(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", body=rss(1, 2).replace(b"</title><guid>", b"<guid>", 1))
    source = add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    assert titles(store) == ["Post 2", "Post 1"]
    (repair,) = reread(store, source).metadata.repairs or ()
    assert (repair.kind, repair.line) == ("ill_formed", 1)
    origin.route("/feed", body=rss(1, 2, 3))
    clock.advance(86_400.0)
    await collect(store, settings, clock)
    assert reread(store, source).metadata.repairs is None


async def test_a_visit_updates_what_the_feed_says_of_itself_and_keeps_what_it_does_not_say(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    first = rss(1).replace(
        b"<link>http://one.example/</link>",
        b"<link>http://one.example/</link><description>Of one</description><language>en</language>"
        b"<image><url>http://one.example/icon.png</url><title>One</title></image>",
        1,
    )
    origin.route("/feed", body=first)
    source = add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    before = reread(store, source).metadata
    assert (before.title, before.description, before.language) == ("One", "Of one", "en")
    assert (before.site_url, before.icon_url) == ("http://one.example/", "http://one.example/icon.png")
    origin.route("/feed", body=rss(1, 2).replace(b"<title>One</title>", b"<title>Another</title>"))
    clock.advance(4 * 3600)
    await collect(store, settings, clock)
    assert reread(store, source).metadata == replace(before, title="Another")


async def test_the_second_visit_is_conditional_and_stores_nothing(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", body=rss(1), etag='"one"', last_modified="not a date at all")
    source = add(store, origin.url("/feed"), clock)
    for _ in range(2):
        await collect(store, settings, clock)
        clock.advance(4 * 3600)
    first, second = origin.requests
    assert "if-none-match" not in first.headers
    assert second.headers["if-none-match"] == '"one"'
    assert second.headers["if-modified-since"] == "not a date at all"
    assert titles(store) == ["Post 1"]
    assert (reread(store, source).fetch_count, reread(store, source).hit_count) == (2, 1)


async def test_only_what_is_due_is_visited(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", body=rss(1))
    source = add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    clock.advance(4 * 3600 - 1)
    assert (await collect(store, settings, clock)).tally.visits == 0
    assert (await collect(store, settings, clock, source.id)).tally.visits == 1, "asked for by name"
    with store.writing() as connection:
        request_refresh(connection, None, clock())
    assert (await collect(store, settings, clock)).tally.visits == 1, "a refresh is due at once"


async def test_intervals_own_then_database_then_environment_then_table(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", body=rss(1))
    origin.route("/own", body=rss(1))
    plain, own = (
        add(store, origin.url("/feed"), clock),
        add(store, origin.url("/own"), clock, fetch_interval_minutes=5),
    )

    async def waits(settings: Settings) -> tuple[float, float]:
        await collect(store, settings, clock, plain.id, own.id)
        planned = [reread(store, source).next_fetch_at for source in (plain, own)]
        return tuple((at or 0) - clock() for at in planned)  # type: ignore[return-value]

    assert await waits(settings) == (240 * 60, 5 * 60)
    configured = replace(settings, fetch_intervals={"rss": 60})
    assert await waits(configured) == (60 * 60, 5 * 60)
    with store.writing() as connection:
        set_setting(connection, "fetch_interval.rss.feed", 30, clock())
    assert await waits(configured) == (30 * 60, 5 * 60)


async def test_one_sources_failure_touches_no_other(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/good", body=rss(1))
    origin.route("/bad", status=500)
    origin.route("/html", body="<!doctype html><title>hello</title>", content_type="text/html")
    origin.route("/cut", body=rss(2), fault="cut-body")
    sources = {name: add(store, origin.url(f"/{name}"), clock) for name in ("bad", "html", "cut", "good")}
    engine = await collect(store, settings, clock)
    assert (engine.tally.visits, engine.tally.failed) == (4, 3)
    kinds = {name: reread(store, source).last_error_kind for name, source in sources.items()}
    assert kinds == {"bad": "server_error", "html": "not_a_feed", "cut": "broken", "good": None}
    for name in ("bad", "html", "cut"):
        failed = reread(store, sources[name])
        assert failed.consecutive_failures == failed.fetch_error_count == 1
        assert failed.last_error
        assert failed.next_fetch_at == clock() + 15 * 60
    assert titles(store) == ["Post 1"]


async def test_a_host_that_rests_postpones_its_other_sources_without_blame(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/busy", status=429, headers={"Retry-After": "600"})
    origin.route("/innocent", body=rss(1))
    busy, innocent = (add(store, origin.url(path), clock) for path in ("/busy", "/innocent"))
    async with Engine(store, settings, clock=clock) as engine:
        await engine.collect_sources([busy.id])
        await engine.collect_sources([innocent.id])
    assert len(origin.requests) == 1, "a host that asked for rest gets it"
    assert reread(store, busy).consecutive_failures == 1
    stored = reread(store, innocent)
    assert (stored.consecutive_failures, stored.last_error, stored.last_fetched_at) == (0, None, None)
    assert 590 < (stored.next_fetch_at or 0) - clock() <= 600


async def test_success_heals(store: Store, settings: Settings, origin: Origin, clock: FakeClock) -> None:
    origin.route("/feed", [Answer(status=500), Answer(status=500), Answer(body=rss(1))])
    source = add(store, origin.url("/feed"), clock)
    for _ in range(2):
        await collect(store, settings, clock, source.id)
    assert reread(store, source).consecutive_failures == 2
    await collect(store, settings, clock, source.id)
    healed = reread(store, source)
    assert (healed.consecutive_failures, healed.last_error, healed.fetch_error_count) == (0, None, 2)


async def test_an_unexpected_error_is_recorded_on_the_source_alone(
    store: Store,
    settings: Settings,
    origin: Origin,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def explode(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("a bug")

    origin.route("/feed", body=rss(1))
    source = add(store, origin.url("/feed"), clock)
    monkeypatch.setattr("headwater.collectors.feed.parse", explode)
    await collect(store, settings, clock)
    assert reread(store, source).last_error_kind == "internal"
    assert "a bug" in (reread(store, source).last_error or "")
    assert "ZeroDivisionError" in caplog.text


async def test_what_the_database_refuses_becomes_that_sources_failure(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A settlement that cannot be written must neither stop the engine nor take its group with it."""
    origin.route("/good", body=rss(1))
    origin.route("/poison", body=rss(2, title="poison {}"))
    good, poison = (add(store, origin.url(path), clock) for path in ("/good", "/poison"))
    with store.writing() as connection:
        if store.is_sqlite:
            connection.exec_driver_sql(
                "CREATE TRIGGER refuse BEFORE INSERT ON items WHEN NEW.title LIKE 'poison%'"
                " BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        else:
            connection.exec_driver_sql(
                "ALTER TABLE items ADD CONSTRAINT refuse CHECK (title NOT LIKE 'poison%%')"
            )
    try:
        await collect(store, settings, clock)
    finally:
        if not store.is_sqlite:
            with store.writing() as connection:
                connection.exec_driver_sql("ALTER TABLE items DROP CONSTRAINT refuse")
    assert titles(store) == ["Post 1"]
    assert reread(store, good).consecutive_failures == 0
    assert reread(store, poison).last_error_kind == "internal"
    assert reread(store, poison).validators.etag is None


async def test_concurrency_is_bounded(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    at_once, most = 0, 0

    def slow(request: Received) -> Answer:
        return Answer(body=rss(1), delay=0.1)

    for number in range(10):
        origin.route(f"/{number}", slow)
        add(store, origin.url(f"/{number}"), clock)
    async with Engine(store, replace(settings, collector_concurrency=3), clock=clock) as engine:
        collecting = asyncio.create_task(engine.collect_due())
        while not collecting.done():
            at_once = engine.in_flight
            most = max(most, at_once)
            await asyncio.sleep(0.01)
        await collecting
    assert engine.tally.visits == 10
    assert most == 3


async def test_a_slow_host_delays_no_other_host(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    """A hundred sources on a host that takes its time are due before one on another host."""
    origin.otherwise(Answer(body=rss(1), delay=1.5))
    for number in range(100):
        add(store, origin.url(f"/{number}"), clock)
    polite = replace(settings, host_concurrency=2, collector_concurrency=5, allow_hosts=("127.0.0.0/8",))
    settled: dict[str, float] = {}
    with Origin(host="127.0.0.2") as fast:
        fast.route("/feed", body=rss(2))
        clock.advance(1)
        add(store, fast.url("/feed"), clock)
        async with Engine(
            store,
            polite,
            clock=clock,
            on_settled=lambda s: settled.update({s.before.url: time.monotonic()}),
        ) as engine:
            began = time.monotonic()
            running = asyncio.create_task(engine.run())
            async with asyncio.timeout(20):
                while fast.url("/feed") not in settled:
                    await asyncio.sleep(0.02)
            engine.stop()
            assert await running is True
    assert settled[fast.url("/feed")] - began < 1.5, "it was not behind the slow host"
    assert origin.most_at_once <= 2


async def test_one_run_visits_all_even_where_the_line_is_long(
    store: Store, settings: Settings, origin: Origin
) -> None:
    origin.otherwise(Answer(body=rss(1)))
    real = FakeClock(time.time())
    for number in range(12):
        add(store, origin.url(f"/{number}"), real)
    async with Engine(store, replace(settings, host_concurrency=1)) as engine:
        await engine.collect_due()
    assert (engine.tally.visits, engine.tally.failed, engine.tally.skipped) == (12, 0, 0)


async def test_no_transaction_is_open_during_a_request(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    open_transactions = 0
    seen: list[int] = []

    def count(step: int) -> Callable[..., None]:
        def change(*args: object) -> None:
            nonlocal open_transactions
            open_transactions += step

        return change

    event.listen(store.engine, "begin", count(1))
    event.listen(store.engine, "commit", count(-1))
    event.listen(store.engine, "rollback", count(-1))

    def answer(request: Received) -> bytes:
        # The engine may look for more work meanwhile; only a transaction that waits for us stays open.
        deadline = time.monotonic() + 2
        while open_transactions and time.monotonic() < deadline:
            time.sleep(0.01)
        seen.append(open_transactions)
        return rss(1)

    origin.route("/feed", answer)
    add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    assert seen == [0]


async def test_the_loop_finds_a_new_source_without_a_restart(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", body=rss(1))
    async with Engine(store, settings, clock=clock) as engine:
        running = asyncio.create_task(engine.run())
        await asyncio.sleep(0.1)
        add(store, origin.url("/feed"), clock)
        async with asyncio.timeout(10):
            while not engine.tally.visits:
                await asyncio.sleep(0.02)
        engine.stop()
        assert await running is True


async def test_a_stop_gives_back_what_was_not_begun(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/slow", lambda request: Answer(body=rss(1), delay=0.3))
    for number in range(8):
        add(store, origin.url(f"/slow?{number}"), clock)
    async with Engine(store, replace(settings, collector_concurrency=2), clock=clock) as engine:
        running = asyncio.create_task(engine.run())
        async with asyncio.timeout(10):
            while not engine.in_flight:
                await asyncio.sleep(0.01)
        engine.stop()
        assert await running is True
    assert leases(store) == {}
    assert 0 < sum(source.fetch_count for source in list_all(store)) < 8
    assert (await collect(store, settings, clock)).tally.visits == 8 - engine.tally.visits


async def test_visits_that_outlast_the_grace_are_cut_and_given_back(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.collect.engine.STOP_SECONDS", 0.2)
    origin.route("/hang", fault="hang")
    source = add(store, origin.url("/hang"), clock)
    async with Engine(store, settings, clock=clock) as engine:
        running = asyncio.create_task(engine.run())
        async with asyncio.timeout(10):
            while not origin.requests:
                await asyncio.sleep(0.01)
        engine.stop()
        assert await running is False
    assert (leases(store), reread(store, source).fetch_count) == ({}, 0)


async def test_a_visit_has_a_limit_in_all(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/hang", fault="hang")
    source = add(store, origin.url("/hang"), clock)
    await collect(store, replace(settings, visit_timeout_seconds=0.3), clock)
    assert reread(store, source).last_error_kind == "timeout"


async def test_a_type_without_a_collector_is_skipped_with_one_warning(
    store: Store,
    settings: Settings,
    clock: FakeClock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headwater.collect.visit._warned_types", set())
    with store.writing() as connection:
        for number in range(3):
            wanted = read_new_source(f"https://twitter.example/{number}", "twitter_list")
            add_unvisited(connection, wanted, clock())
    engine = await collect(store, settings, clock)
    assert (engine.tally.skipped, engine.tally.failed) == (3, 0)
    assert len([record for record in caplog.records if "twitter.list" in record.message]) == 1


async def test_a_permanent_move_is_followed_for_good_after_three_visits(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/old", status=301, location="/new")
    origin.route("/new", body=rss(1))
    source = add(store, origin.url("/old"), clock)
    for _ in range(2):
        await collect(store, settings, clock, source.id)
        assert reread(store, source).url == origin.url("/old")
    await collect(store, settings, clock, source.id)
    assert reread(store, source).url == origin.url("/new")


async def test_gone_retires_the_source(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", status=410)
    source = add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    assert reread(store, source).status == "retired"
    clock.advance(30 * 86_400)
    assert (await collect(store, settings, clock)).tally.visits == 0


async def test_a_stop_while_the_database_is_busy_is_polite(
    store: Store, settings: Settings, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def busy(*args: object, **more: object) -> None:
        loop.call_soon_threadsafe(asked.set)
        error = StoreError("the database {url} failed: {problem}", url="x", problem="it is locked")
        error.passing = True
        raise error

    monkeypatch.setattr("headwater.collect.engine.claim_due", busy)
    async with Engine(store, settings, clock=clock) as engine, asyncio.timeout(20):
        running = asyncio.create_task(engine.run())
        await asked.wait()
        engine.stop()
        assert await running is True


async def test_a_stop_is_bounded_even_when_every_slot_is_taken(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.collect.engine.STOP_SECONDS", 0.3)
    origin.otherwise(Answer(fault="hang"))
    ids = [add(store, origin.url(f"/{number}"), clock).id for number in range(6)]
    for begin in ("run", "collect_sources"):
        async with Engine(store, replace(settings, collector_concurrency=1), clock=clock) as engine:
            seen = len(origin.requests)
            running = asyncio.create_task(engine.run() if begin == "run" else engine.collect_sources(ids))
            async with asyncio.timeout(10):
                while len(origin.requests) == seen:
                    await asyncio.sleep(0.01)
            engine.stop()
            async with asyncio.timeout(3):
                assert await running is False
        assert leases(store) == {}
        with store.reading() as connection:
            assert count_due(connection, clock()) == 6


async def test_sources_asked_for_by_name_are_all_visited_however_long_the_line(
    store: Store, settings: Settings, origin: Origin
) -> None:
    """Also when most of them wait longer than a lease lasts."""
    real = FakeClock(time.time())
    origin.otherwise(Answer(body=rss(1), delay=0.3))
    ids = [add(store, origin.url(f"/{number}"), real).id for number in range(12)]
    slow = replace(settings, collector_concurrency=1, visit_timeout_seconds=0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headwater.collect.engine.MIN_LEASE_MARGIN_SECONDS", 0.1)
        async with Engine(store, slow) as engine, asyncio.timeout(30):
            await engine.collect_sources(ids)
    assert {source.fetch_count for source in list_all(store)} == {1}
    assert (engine.tally.visits, engine.tally.failed, engine.tally.elsewhere) == (12, 0, 0)


def list_all(store: Store) -> list[Source]:
    with store.reading() as connection:
        return list_sources(connection)


async def test_a_source_that_another_collector_visits_is_counted_as_such(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    source = add(store, origin.url("/feed"), clock)
    with store.writing() as connection:
        claim_sources(connection, [source.id], now=clock(), lease_until=clock() + 60)
    engine = await collect(store, settings, clock, source.id)
    assert (engine.tally.visits, engine.tally.elsewhere) == (0, 1)
    assert not origin.requests


async def test_trouble_with_the_database_is_not_the_sources_fault(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise StoreError("the database {url} failed: {problem}", url="x", problem="a test")

    origin.route("/feed", body=rss(1))
    source = add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    origin.route("/feed", body=rss(2))
    origin.requests.clear()
    clock.advance(48 * 3600)
    with monkeypatch.context() as patch:
        patch.setattr("headwater.collect.known_items.known_keys_of", fail)
        async with Engine(store, settings, clock=clock) as engine:
            running = asyncio.create_task(engine.run())
            async with asyncio.timeout(10):
                while not origin.requests:
                    await asyncio.sleep(0.01)
            engine.stop()
            assert await running is True
    stored = reread(store, source)
    assert (stored.consecutive_failures, stored.fetch_count, leases(store)) == (0, 1, {})
    await collect(store, settings, clock)
    assert sorted(titles(store)) == ["Post 1", "Post 2"]


async def test_when_the_database_is_gone_the_engine_says_so_and_ends(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise StoreError("the database {url} failed: {problem}", url="x", problem="a test")

    origin.otherwise(Answer(body=rss(1)))
    for number in range(20):
        add(store, origin.url(f"/{number}"), clock)
    monkeypatch.setattr("headwater.collect.settler.settle_batch", fail)
    async with Engine(store, replace(settings, collector_concurrency=4), clock=clock) as engine:
        with pytest.raises(StoreError, match="a test"):
            async with asyncio.timeout(10):
                await engine.run()


async def test_what_the_document_asks_for_holds_while_it_is_unchanged(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    """A 304 says nothing of the feed's ttl; it still counts."""
    body = rss(1).replace(b"<title>One</title>", b"<title>One</title><ttl>600</ttl>")
    origin.route("/feed", body=body, etag='"1"')
    source = add(store, origin.url("/feed"), clock)
    for _ in range(2):
        await collect(store, settings, clock, source.id)
        stored = reread(store, source)
        assert stored.next_fetch_at == clock() + 600 * 60
        assert stored.plan_reason["hint"] == "ttl"
        clock.advance(60)
    assert origin.requests[1].headers["if-none-match"] == '"1"'


async def test_never_sooner_than_the_publisher_allows(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", body=rss(1), headers={"Cache-Control": "max-age=36000"})
    source = add(store, origin.url("/feed"), clock)
    await collect(store, replace(settings, policy="adaptive"), clock)
    assert (reread(store, source).next_fetch_at or 0) >= clock() + 36_000


async def test_a_statistics_row_is_kept_for_every_source(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route(
        "/feed", [Answer(body=rss(*range(10), at=clock() - 90_000)), Answer(status=500), Answer(body=rss(1))]
    )
    source = add(store, origin.url("/feed"), clock)
    rows = []
    for _ in range(3):
        await collect(store, replace(settings, policy="adaptive"), clock, source.id)
        with store.reading() as connection:
            rows.append(get_source_stats(connection, str(source.id)) or {})
        clock.advance(60)
    assert [row["check_count"] for row in rows] == [1, 2, 3]
    assert [row["hit_count"] for row in rows] == [1, 1, 1]
    assert [row["fail_count"] for row in rows] == [0, 1, 0]
    assert [row["source_type"] for row in rows] == ["rss"] * 3
    assert rows[1]["last_error"]
    assert rows[1]["backoff_until"] == rows[1]["next_due_at"] == int(clock() - 120 + 15 * 60)
    assert rows[0]["cadence"] == "P0"


async def test_one_run_ends_even_where_sources_come_due_again_at_once(
    store: Store, settings: Settings, origin: Origin
) -> None:
    origin.otherwise(Answer(body=rss(1), delay=0.1))
    for number in range(10):
        add(store, origin.url(f"/{number}"), FakeClock(time.time()), fetch_interval_minutes=0.01)
    async with Engine(store, replace(settings, collector_concurrency=1)) as engine, asyncio.timeout(20):
        await engine.collect_due()
    assert engine.tally.visits == 10


async def test_what_another_holds_on_to_is_not_tried_all_the_time(
    postgres_store: Store, settings: Settings, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_tables(postgres_store)
    origin.route("/feed", body=rss(1))
    source = add(postgres_store, origin.url("/feed"), FakeClock(time.time()))
    tries: list[float] = []
    claim = Engine._claim

    async def counted(engine: Engine, *which: object, **more: object) -> list[Source]:
        tries.append(time.monotonic())
        return await claim(engine, *which, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "_claim", counted)
    async with Engine(postgres_store, settings) as engine:
        with postgres_store.writing() as frozen:
            frozen.execute(select(sources.c.id).where(sources.c.id == source.id).with_for_update())
            running = asyncio.create_task(engine.run())
            while len(tries) < 12:  # some of them at once: it is woken when it begins to listen
                await asyncio.sleep(0.01)
            assert tries[-1] - tries[0] > 5 * HELD_SECONDS
        async with asyncio.timeout(30):
            while reread(postgres_store, source).last_fetched_at is None:
                await asyncio.sleep(0.01)
        engine.stop()
        assert await running


@pytest.mark.parametrize("wrong_by", [-3 * 365 * 86_400.0, 3 * 365 * 86_400.0], ids=["behind", "ahead"])
async def test_a_machine_whose_clock_is_years_off_parks_nothing_and_steals_no_lease(
    postgres_store: Store,
    settings: Settings,
    origin: Origin,
    wrong_by: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On PostgreSQL, where machines share the work: the server's clock decides."""
    store = postgres_store
    empty_tables(store)
    origin.otherwise(Answer(body=rss(1)))
    now = measured_clock(store)()
    right = FakeClock(now)
    due, leased, later = (add(store, origin.url(path), right) for path in ("/due", "/leased", "/later"))
    with store.writing() as connection:
        claim_sources(connection, [leased.id], now=now, lease_until=now + 360)
    async with Engine(store, settings) as engine:
        await engine.collect_sources([later.id])  # planned for in four hours
    monkeypatch.setattr(time, "time", lambda: now + wrong_by)
    async with Engine(store, settings) as engine:
        await engine.collect_due()
        await engine.collect_sources([leased.id])
    assert (engine.tally.visits, engine.tally.elsewhere) == (1, 1)
    visited = reread(store, due)
    assert visited.next_fetch_at == pytest.approx(now + 4 * 3600, abs=60), "neither parked nor due at once"
    assert visited.last_fetched_at == pytest.approx(now, abs=60)
    assert leases(store) == {leased.id: now + 360}


async def test_the_loop_starts_at_once_on_a_new_source_and_on_a_refresh(
    store: Store, settings: Settings, origin: Origin
) -> None:
    """Told of it on PostgreSQL, however long the tick; on SQLite by looking every second."""
    origin.otherwise(Answer(body=rss(1)))
    real = measured_clock(store)
    async with Engine(store, replace(settings, collector_tick=3600.0)) as engine, asyncio.timeout(30):
        running = asyncio.create_task(engine.run())
        while not (engine._listener.is_listening or store.is_sqlite):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # by now it sleeps
        begun = time.monotonic()
        source = add(store, origin.url("/feed"), FakeClock(real()))
        while engine.tally.visits < 1:
            await asyncio.sleep(0.01)
        with store.writing() as connection:
            request_refresh(connection, [source.id], real())
        while engine.tally.visits < 2:
            await asyncio.sleep(0.01)
        took = time.monotonic() - begun
        engine.stop()
        assert await running is True
    assert took < (10 if store.is_sqlite else 5)


async def test_when_our_network_is_down_the_status_says_so_until_it_is_back(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    for number in range(8):
        add(store, f"http://127.0.0.{number + 10}:{port}/feed", clock)
    origin.otherwise(Answer(body=rss(1)))

    def outages() -> list[Outage]:
        with store.reading() as connection:
            return read_outages(connection, clock())

    open_settings = replace(settings, allow_hosts=("127.0.0.0/8",))
    async with Engine(store, open_settings, clock=clock) as engine, asyncio.timeout(30):
        running = asyncio.create_task(engine.run())
        while not outages():
            await asyncio.sleep(0.02)
        assert {source.consecutive_failures for source in list_all(store)} <= {0, 1}, "few were blamed before"
        clock.advance(400)  # the failures are old news now
        add(store, origin.url("/feed"), clock)
        while outages():
            await asyncio.sleep(0.02)
        engine.stop()
        assert await running is True


async def test_a_start_after_a_long_stop_stampedes_no_host_and_spreads_what_comes_after(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.otherwise(Answer(body=rss(1), delay=0.02))
    for number in range(100):
        add(store, origin.url(f"/{number}"), clock)
    polite = replace(settings, policy="adaptive", host_concurrency=2, collector_concurrency=50)
    await collect(store, polite, clock)
    clock.advance(30 * 86_400)  # it was off for a month
    with store.reading() as connection:
        assert count_due(connection, clock()) == 100
    most = 0
    async with Engine(store, polite, clock=clock) as engine, asyncio.timeout(60):
        working = asyncio.create_task(engine.collect_due())
        while not working.done():
            most = max(most, origin.open_connections)
            await asyncio.sleep(0.002)
    assert engine.tally.visits == 100
    assert 1 <= most <= 2, "its host gets no more at once than on any other day"
    planned = sorted((source.next_fetch_at or 0) - clock() for source in list_all(store))
    assert planned[-1] - planned[0] > 60, "what was visited together is not due together again"


async def test_failed_visit_records_the_requests_and_bytes_it_has_cost(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/moved", status=302, location=origin.url("/broken"))
    origin.route("/broken", status=500, body=b"x" * 3000)
    origin.route("/page", body=b"<p>" + b"no feed " * 500)
    for url in (origin.url("/moved"), origin.url("/page"), "http://127.0.0.1:1/closed"):
        add(store, url, clock)
    await collect(store, settings, clock)
    with store.reading() as connection:
        record = collection_records.c
        columns = (record.source_id, record.status, record.requests, record.bytes_received)
        rows = connection.execute(select(*columns).order_by(record.source_id)).all()
    assert [(row.status, row.requests) for row in rows] == [("failed", 2), ("failed", 1), ("failed", 0)]
    assert rows[1].bytes_received > 4000
    assert rows[0].bytes_received > 100 and rows[2].bytes_received == 0


async def test_source_planned_sooner_than_the_tick_is_visited_in_time(
    store: Store, settings: Settings, origin: Origin
) -> None:
    """Its visit was under way when the loop looked at what comes next."""
    settings = replace(settings, collector_tick=3600.0)
    add(
        store,
        origin.route("/feed", Answer(rss(1), delay=0.3)),
        FakeClock(time.time()),
        fetch_interval_minutes=0.01,
    )
    async with Engine(store, settings) as engine:
        running = asyncio.create_task(engine.run())
        async with asyncio.timeout(30):
            while engine.tally.visits < 3:
                await asyncio.sleep(0.05)
        engine.stop()
        assert await running
