"""The hourly upkeep: what the rules do not keep goes, nothing comes back, no visit is lost from the sums."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Literal

import pytest
from sqlalchemy import func, select

from headwater.collect import upkeep
from headwater.collect.engine import Engine
from headwater.collect.upkeep import Done, Upkeep
from headwater.config import Settings, load_settings
from headwater.model import Item
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.collecting.queue import claim_due, claim_sources
from headwater.store.collecting.sources import add_source, change_source, list_sources
from headwater.store.core.bulk import insert_rows
from headwater.store.core.database import Store
from headwater.store.core.tables import (
    collection_hours,
    collection_records,
    item_versions,
    items,
    pipeline_executions,
    seen_ids,
)
from headwater.store.people.entries import EntryFilter, list_places
from headwater.store.people.marks import set_read_later
from headwater.store.people.subscriptions import get_subscription_of, subscribe, unsubscribe
from headwater.store.people.users import add_user, remove_user
from headwater.store.pipelines.starting import start_runs
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.retention import count_by_source, delete_idle_items, surplus_items
from headwater.store.reports.hours import visits_since
from tests.clock import FakeClock
from tests.collect.test_engine import collect, rss, titles
from tests.origin import Answer, Origin
from tests.pipeline.making import make_template

HOUR, DAY = 3_600.0, 86_400.0


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(
        load_settings(directory=tmp_path, environment={}),
        policy="interval",
        allow_hosts=("127.0.0.1",),
        host_spacing_seconds=0.0,
    )


async def keep_up(store: Store, settings: Settings, clock: FakeClock) -> Done | None:
    return await Upkeep(store, settings, clock, give_up=lambda: False).run_if_due()


def add(store: Store, url: str, clock: FakeClock, **config: object) -> int:
    with store.writing() as connection:
        return add_unvisited(connection, read_new_source(url, config=config), clock()).id


def count(store: Store, table: object) -> int:
    with store.reading() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()  # type: ignore[arg-type]


async def test_what_was_purged_does_not_come_back_as_new(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    first, changed = rss(*range(20)), rss(*range(20), title="Changed {}")
    origin.route("/feed", [Answer(first), Answer(changed), Answer(changed + b"\n"), Answer(rss(*range(22)))])
    add(store, origin.url("/feed"), clock)
    month = replace(settings, retention_days=30)
    for _ in range(2):
        await collect(store, settings, clock)
        clock.advance(DAY)
    assert count(store, item_versions) == 20
    clock.advance(27 * DAY)
    assert (await keep_up(store, month, clock)) == Done(0, 0), "a month is not over"
    clock.advance(2 * DAY)
    assert (await keep_up(store, month, clock)) == Done(items=20, records=1)
    assert (count(store, items), count(store, item_versions)) == (0, 0)
    assert count(store, seen_ids) >= 20
    again = await collect(store, month, clock)
    assert (again.tally.visits, again.tally.items_new, again.tally.items_updated) == (1, 0, 0)
    clock.advance(DAY)
    more = await collect(store, month, clock)
    assert more.tally.items_new == 2
    assert titles(store) == ["Post 21", "Post 20"]


async def test_old_items_of_a_new_source_stay_as_long_as_any(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", body=rss(1, 2, at=clock() - 900 * DAY))
    add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    assert (await keep_up(store, replace(settings, retention_days=1), clock)) == Done()
    assert count(store, items) == 2


async def test_a_sources_own_rule_wins(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.otherwise(Answer(rss(*range(10))))
    kept = {
        add(store, origin.url("/plain"), clock): 0,
        add(store, origin.url("/ever"), clock, retention_days=0): 10,
        add(store, origin.url("/longer"), clock, retention_days=60): 10,
        add(store, origin.url("/three"), clock, retention_days=0, retention_items=3): 3,
    }
    await collect(store, settings, clock)
    clock.advance(31 * DAY)
    done = await keep_up(store, replace(settings, retention_days=30), clock)
    assert done is not None
    assert done.items == 10 + 7
    with store.reading() as connection:
        left = count_by_source(connection, kept)
    assert {source_id: left.get(source_id, 0) for source_id in kept} == kept


async def test_the_newest_are_kept_and_the_count_is_looked_at_where_something_came(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", [Answer(rss(*range(10))), Answer(rss(*range(5, 15)))])
    add(store, origin.url("/feed"), clock)
    five = replace(settings, retention_items=5)
    await collect(store, settings, clock)
    assert (await keep_up(store, five, clock)) == Done(items=5)
    assert titles(store) == [f"Post {number}" for number in (9, 8, 7, 6, 5)]
    clock.advance(DAY)
    await collect(store, settings, clock)
    assert (await keep_up(store, five, clock)) == Done(items=5)
    assert titles(store) == [f"Post {number}" for number in (14, 13, 12, 11, 10)]
    clock.advance(DAY)
    assert (await keep_up(store, replace(settings, retention_items=2), clock)) == Done(items=3), (
        "another rule concerns every source, also those without news"
    )


async def test_an_item_stays_while_a_pipeline_works_on_it(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", body=rss(1, 2))
    add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    with store.writing() as connection:
        item_id = connection.execute(select(func.min(items.c.id))).scalar_one()
        insert_rows(
            connection,
            pipeline_executions,
            ("item_id", "item_version", "next_step_type", "created_at"),
            [(item_id, 1, "filter_content", clock())],
        )
    clock.advance(3 * DAY)
    day = replace(settings, retention_days=1)
    assert (await keep_up(store, day, clock)) == Done(items=1)
    with store.writing() as connection:
        connection.execute(pipeline_executions.update().values(status="completed"))
    clock.advance(DAY)
    assert (await keep_up(store, day, clock)) == Done(items=1)
    assert count(store, pipeline_executions) == 0


def test_an_item_for_which_a_run_was_started_meanwhile_stays(store: Store, clock: FakeClock) -> None:
    with store.writing() as connection:
        source = add_source(connection, name="one", type="rss.feed", url="https://x.example/", now=clock())
        new = [
            ItemChange("new", Item(name), name.encode(), name.encode(), (), b"h", clock()) for name in "ab"
        ]
        write_items(connection, [(source.id, tuple(new), clock())])
    with store.reading() as connection:
        first, second = surplus_items(connection, source.id, 0, 10)
    with store.writing() as connection:
        insert_rows(
            connection, pipeline_executions, ("item_id", "item_version", "created_at"), [(first, 1, clock())]
        )
    with store.writing() as connection:
        assert delete_idle_items(connection, [first, second]) == 1
    with store.reading() as connection:
        assert connection.execute(select(items.c.id)).scalars().all() == [first]


async def test_it_happens_once_an_hour_by_one_worker_at_a_time(
    store: Store, settings: Settings, clock: FakeClock
) -> None:
    results = await asyncio.gather(*(keep_up(store, settings, clock) for _ in range(6)))
    assert [result for result in results if result is not None] == [Done()]
    clock.advance(3_599)
    assert await keep_up(store, settings, clock) is None
    clock.advance(1)
    assert await keep_up(store, settings, clock) == Done()


async def test_abandoned_turn_is_taken_over(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker dies in the middle: another does the rest once the turn has expired."""
    origin.route("/feed", body=rss(*range(30)))
    add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    clock.advance(3 * DAY)
    day = replace(settings, retention_days=1)

    async def never(*args: object, **kwargs: object) -> None:
        raise asyncio.CancelledError

    dying = Upkeep(store, day, clock, give_up=lambda: False)
    monkeypatch.setattr(upkeep, "end_turn", lambda *args, **kwargs: None)
    monkeypatch.setattr(dying, "_purge", never)
    with pytest.raises(asyncio.CancelledError):
        await dying.run_if_due()
    monkeypatch.undo()
    assert await keep_up(store, day, clock) is None
    clock.advance(upkeep.LEASE_SECONDS)
    assert await keep_up(store, day, clock) == Done(items=30)


async def test_a_clock_that_was_years_ahead_leaves_nothing_waiting_for_years(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin.route("/feed", body=rss(1))
    visited, claimed = (add(store, origin.url(path), clock) for path in ("/feed", "/feed?2"))
    template = make_template(store, {"step_type": "filter_content"})
    always = Upkeep(store, settings, clock, give_up=lambda: False)
    clock.advance(3_650 * DAY)
    await collect(store, settings, clock)
    await always.run_if_due()
    with store.writing() as connection:
        [item_id] = connection.execute(select(items.c.id).where(items.c.source_id == visited)).scalars()
        start_runs(connection, template, [item_id], clock())
        claim_sources(connection, [claimed], now=clock(), lease_until=clock() + 300)
        monkeypatch.setattr(upkeep, "end_turn", lambda *args, **kwargs: None)
    clock.advance(upkeep.EVERY_SECONDS)
    await always.run_if_due()  # and it dies before it can give its turn back
    monkeypatch.undo()

    clock.advance(-3_650 * DAY)
    assert always.may_be_due
    assert await always.run_if_due() is not None
    with store.writing() as connection:
        due = claim_due(connection, 10, now=clock(), lease_until=clock() + 300)
        assert {source.id for source in due} == {visited, claimed}
        assert connection.execute(select(pipeline_executions.c.due_at)).scalar_one() == clock()


async def test_a_stop_cuts_it_short_and_the_rest_is_done_the_next_time(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "MOST_ROWS", 10)
    origin.route("/feed", body=rss(*range(100)))
    add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    clock.advance(3 * DAY)
    day = replace(settings, retention_days=1)
    looks = iter([False] * 8)
    assert await Upkeep(store, day, clock, give_up=lambda: next(looks, True)).run_if_due() is None
    assert 0 < count(store, items) < 100
    assert await keep_up(store, day, clock) is not None, "its turn was given back"
    assert count(store, items) == 0


def record(source_id: int, number: int, at: float, rng: Random) -> tuple[object, ...]:
    kind = rng.choice(("timeout", "dns", None, None, None, None))
    status = "failed" if kind else rng.choice(("new", "unchanged", "skipped"))
    return source_id, number, status, at, at + 1, 20, 3, 1, 2, 1_000, kind


RECORD = (
    *("source_id", "lease_no", "status", "started_at", "finished_at", "items_found", "items_new"),
    *("items_updated", "requests", "bytes_received", "error_kind"),
)


async def test_records_become_sums_by_the_hour_that_say_the_same(
    store: Store, settings: Settings, clock: FakeClock, rng: Random
) -> None:
    source_id = add(store, "http://one.example/feed", clock)
    times = [clock() - rng.uniform(0, 5 * DAY) for _ in range(2_000)]
    with store.writing() as connection:
        insert_rows(
            connection,
            collection_records,
            RECORD,
            [record(source_id, number, at, rng) for number, at in enumerate(times)],
        )
    spans = (60.0, 3_600.0, DAY, 1.7 * DAY)

    def sums() -> list[object]:
        with store.reading() as connection:
            return [visits_since(connection, clock() - span) for span in spans]

    before = sums()
    with store.reading() as connection:
        everything = visits_since(connection, 0.0)
    assert [each.total for each in before] == [  # type: ignore[attr-defined]
        sum(at >= clock() - span for at in times) for span in spans
    ]
    two_days = replace(settings, retention_visit_days=2)
    done = await keep_up(store, two_days, clock)
    old = sum(at < (clock() - 2 * DAY) // 3600 * 3600 for at in times)
    assert done == Done(records=old)
    assert count(store, collection_records) == 2_000 - old
    assert sums() == before
    with store.reading() as connection:
        assert visits_since(connection, 0.0) == everything
    # A visit that ends late is counted when the hours are added up again.
    with store.writing() as connection:
        insert_rows(connection, collection_records, RECORD, [record(source_id, 9_999, clock() - 3_000, rng)])
    clock.advance(3_600)
    assert await keep_up(store, two_days, clock) is not None
    with store.reading() as connection:
        assert visits_since(connection, 0.0).total == everything.total + 1
    clock.advance(100 * DAY)
    assert await keep_up(store, two_days, clock) is not None
    assert count(store, collection_records) == 0
    with store.reading() as connection:
        assert visits_since(connection, 0.0).total == everything.total + 1, "nothing is lost with the records"
    assert count(store, collection_hours) < 1_000


async def test_batch_makes_no_writer_wait_long(store: Store, settings: Settings, clock: FakeClock) -> None:
    """While thousands of records are deleted, other writers get in between."""
    source_id = add(store, "http://one.example/feed", clock)
    rng = Random(1)
    with store.writing() as connection:
        rows = [record(source_id, number, clock() - 10 * DAY, rng) for number in range(20_000)]
        insert_rows(connection, collection_records, RECORD, rows)
    going = asyncio.create_task(keep_up(store, replace(settings, retention_visit_days=2), clock))
    waits = []
    while not going.done():
        begun = time.monotonic()
        await store.write(lambda connection: connection.exec_driver_sql("UPDATE sources SET folder = 'x'"))
        waits.append(time.monotonic() - begun)
        await asyncio.sleep(0.01)
    assert await going == Done(records=20_000)
    assert len(waits) > 5
    assert max(waits) < 2.0, "generous: a batch is to take a thirtieth of a second"


async def test_the_loop_does_it_beside_its_visits(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/feed", body=rss(*range(10)))
    add(store, origin.url("/feed"), clock)
    await collect(store, settings, clock)
    clock.advance(3 * DAY)
    day = replace(settings, retention_days=1, collector_tick=0.1)
    async with Engine(store, day, clock=clock) as engine, asyncio.timeout(20):
        running = asyncio.create_task(engine.run())
        while count(store, items):
            await asyncio.sleep(0.02)
        engine.stop()
        assert await running is True
    assert engine.tally.items_new == 0


async def test_upkeep_at_once_does_not_wait_for_its_hour(store: Store, clock: FakeClock) -> None:
    settings = load_settings(environment={})
    keeper = Upkeep(store, settings, clock, lambda: False)
    assert await keeper.run_if_due() is not None
    assert await keeper.run_if_due() is None
    assert await keeper.run_if_due(at_once=True) is not None


async def test_upkeep_ends_read_later_when_its_time_is_over(
    store: Store, settings: Settings, clock: FakeClock
) -> None:
    source_id = add(store, "https://later.example/", clock)
    change = ItemChange("new", Item("1", title="1"), b"1", b"1", (), b"hash", clock())
    with store.writing() as connection:
        write_items(connection, [(source_id, (change,), clock())])
        set_read_later(connection, 1, [1], 7, clock())
    for days, left in ((6, 1), (1, 0)):
        clock.advance(days * DAY)
        await keep_up(store, settings, clock)
        with store.reading() as connection:
            assert len(list_places(connection, 1, EntryFilter(read_later=True), limit=9)) == left


@pytest.mark.parametrize("what", ["keep", "remove"])
async def test_upkeep_removes_sources_without_a_subscriber_where_settings_say_so(
    store: Store, settings: Settings, clock: FakeClock, what: Literal["keep", "remove"]
) -> None:
    read, left, used = (add(store, f"https://{name}.example/", clock) for name in ("read", "left", "used"))
    template = make_template(store, {"step_type": "filter_content"})
    with store.writing() as connection:
        change_source(connection, used, clock(), pipeline_template_id=template.id)
        user = add_user(connection, name="ann", now=clock())
        for source_id in (read, left, used):
            unsubscribe(connection, 1, get_subscription_of(connection, 1, source_id).id)
        subscribe(connection, user.id, left, clock())
        subscribe(connection, 1, read, clock())
    settings = replace(settings, unsubscribed_sources=what)

    def kept() -> set[int]:
        with store.reading() as connection:
            return {source.id for source in list_sources(connection)}

    clock.advance(2 * DAY)
    await keep_up(store, settings, clock)
    assert kept() == {read, left, used}
    with store.writing() as connection:
        remove_user(connection, user.id)
    young = add(store, "https://young.example/", clock)
    with store.writing() as connection:
        unsubscribe(connection, 1, get_subscription_of(connection, 1, young).id)
    clock.advance(2 * HOUR)
    await keep_up(store, settings, clock)
    assert kept() == {read, used, young} | ({left} if what == "keep" else set())
