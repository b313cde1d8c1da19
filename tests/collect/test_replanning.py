"""What changes a plan changes it at once: on a source, on a type, in the environment, on every worker."""

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from headwater.collect.context import make_planner, read_planner
from headwater.collect.engine import Engine
from headwater.collect.planning import Planner
from headwater.collect.replanning import Replanner, replan_sources
from headwater.collect.steering import read_price
from headwater.config import Settings
from headwater.errors import FailureKind, FetchError
from headwater.model import Observation, Source, Visit
from headwater.schedule.compose import Limits
from headwater.sources.editing import Edit, act_on_source, edit_source, edit_sources
from headwater.sources.intervals import set_type_interval
from headwater.store.collecting.plans import has_outdated
from headwater.store.collecting.queue import Settlement, claim_sources, next_due_at, settle_batch
from headwater.store.collecting.sources import get_source
from headwater.store.core.database import Store
from headwater.store.core.settings import get_setting
from headwater.store.core.tables import sources
from tests.clock import NOON, FakeClock
from tests.collect.test_engine import add, collect, reread, rss, settings
from tests.databases import empty_tables
from tests.origin import Answer, Origin

__all__ = ["settings"]

MINUTE, HOUR = 60.0, 3600.0


def planner(**changes: Any) -> Planner:
    made = Planner(
        {"rss.feed": 240.0}, frozenset(), "interval", 800.0, Limits(), Random(1), goal=(6.0, None, None)
    )
    return replace(made, **changes)


def visited(planner: Planner, **fields: Any) -> Source:
    source = Source(1, "one", "rss.feed", "https://one.example/", **fields)
    times = tuple(NOON - HOUR * number for number in range(30))
    seen = Observation(NOON, "new", times, 30, first=True)
    return planner.after_success(source, seen, last_fetched_at=NOON, last_entry_at=NOON, fetch_count=1)


def test_plan_of_unchanged_settings_is_not_outdated() -> None:
    for policy in ("interval", "adaptive", "cadence"):
        assert not planner(policy=policy).is_outdated(visited(planner(policy=policy)))


@given(st.floats(0.1, 10_000), st.floats(0.1, 10_000))
def test_replanned_interval_counts_from_the_last_visit(before: float, after: float) -> None:
    old = visited(planner(interval_minutes={"rss.feed": before}))
    now = planner(interval_minutes={"rss.feed": after})
    assert now.is_outdated(old) is (before != after)
    new = now.replan(old)
    assert new.next_fetch_at == pytest.approx(max(NOON + 60 * after, NOON + 1))
    assert not now.is_outdated(new)


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "interval"},
        {"policy": "cadence"},
        {"limits": Limits(max_interval_seconds=600.0, min_interval_seconds=300.0)},
        {"goal": (24.0, None, None)},
        {"goal": (6.0, 10.0, None)},
    ],
)
def test_plan_is_outdated_by_what_it_was_made_of(changes: dict[str, Any]) -> None:
    source = visited(planner(policy="adaptive"))
    now = planner(**{"policy": "adaptive", **changes})
    assert now.is_outdated(source)
    new = now.replan(source)
    assert not now.is_outdated(new)
    assert new.next_fetch_at is not None and new.next_fetch_at <= NOON + now.limits.max_interval_seconds


def test_interval_of_the_type_leaves_plans_of_other_policies_alone() -> None:
    source = visited(planner(policy="adaptive"))
    assert not planner(policy="adaptive", interval_minutes={"rss.feed": 1.0}).is_outdated(source)


def test_replanning_shortens_neither_backoff_nor_what_the_publisher_asks_for() -> None:
    slow, quick = planner(), planner(interval_minutes={"rss.feed": 1.0})
    failed = slow.after_failure(visited(slow), FetchError(FailureKind.RATE_LIMITED, "429"), NOON)
    assert quick.replan(failed).next_fetch_at == failed.next_fetch_at == NOON + 6 * HOUR
    asked = visited(slow)
    asked = replace(asked, plan_reason={**asked.plan_reason, "decided_by": "publisher", "hint": "max-age"})
    again = quick.replan(asked)
    assert (again.next_fetch_at, again.plan_reason["decided_by"]) == (asked.next_fetch_at, "publisher")
    pushed = replace(asked, plan_reason={**asked.plan_reason, "decided_by": "pushed"})
    assert quick.replan(pushed).next_fetch_at == pushed.next_fetch_at


def test_refused_credentials_follow_the_interval_of_their_type() -> None:
    slow, quick = planner(policy="adaptive"), planner(policy="adaptive", interval_minutes={"rss.feed": 7.0})
    refused = slow.after_failure(visited(slow), FetchError(FailureKind.UNAUTHORIZED, "401"), NOON)
    again = quick.replan(refused)
    assert quick.is_outdated(refused) and again.next_fetch_at == NOON + 7 * MINUTE
    assert again.plan_reason["needs_attention"] is True


async def due_at(store: Store, source: Source) -> float | None:
    with store.reading() as connection:
        place: float | None = connection.execute(
            select(sources.c.due_at).where(sources.c.id == source.id)
        ).scalar_one()
    return place


async def test_environment_and_restart_make_new_plans(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    source = add(store, origin.route("/feed", body=rss(1)), clock)
    await collect(store, settings, clock)
    began = clock()
    assert await due_at(store, source) == began + 4 * HOUR
    quick = replace(settings, fetch_intervals={"rss": 1.0})
    assert (await collect(store, quick, clock)).tally.visits == 0
    assert await due_at(store, source) == began + MINUTE
    clock.advance(MINUTE)
    assert (await collect(store, quick, clock)).tally.visits == 1
    assert (await collect(store, settings, clock)).tally.visits == 0, "and back"
    assert await due_at(store, source) == clock() + 4 * HOUR


async def test_restart_without_changes_reads_no_source_again(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, origin.route("/feed", body=rss(1)), clock)
    await collect(store, settings, clock)

    async def walk(*args: object) -> bool:
        raise AssertionError

    monkeypatch.setattr(Replanner, "_walk", walk)
    await collect(store, settings, clock)
    with pytest.raises(AssertionError):
        await collect(store, replace(settings, max_interval_seconds=HOUR), clock)


async def test_changes_while_the_loop_runs_take_effect_at_once(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    """A type's interval, an own interval, an own policy: none waits for the tick, however long that is."""
    one = add(store, origin.route("/one", body=rss(1)), clock)
    two = add(store, origin.route("/two", body=rss(2)), clock)
    async with Engine(store, replace(settings, collector_tick=3600.0), clock=clock) as engine:
        running = asyncio.create_task(engine.run())

        async def until(source: Source, wanted: float) -> None:
            async with asyncio.timeout(60):
                while await due_at(store, source) != wanted:
                    await asyncio.sleep(0.02)

        await until(one, clock() + 4 * HOUR)
        with store.writing() as connection:
            set_type_interval(connection, "rss", 30.0, clock())
        await until(one, clock() + 30 * MINUTE)
        await until(two, clock() + 30 * MINUTE)
        with store.writing() as connection:
            edit_sources(connection, [two.id], Edit(interval_minutes=5), clock())
        await until(two, clock() + 5 * MINUTE)
        with store.writing() as connection:
            edit_sources(connection, [two.id], Edit(interval_minutes=0), clock())
        await until(two, clock() + 30 * MINUTE)
        with store.writing() as connection:
            set_type_interval(connection, "rss", None, clock())
        await until(one, clock() + 4 * HOUR)
        engine.stop()
        assert await running


async def test_edit_with_a_planner_answers_with_the_new_plan(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    source = add(store, origin.route("/feed", body=rss(1)), clock)
    await collect(store, settings, clock)
    planner = await read_planner(store, settings)
    with store.writing() as connection:
        edited = edit_source(connection, source.id, Edit(interval_minutes=1), clock() + 9, planner)
        assert edited.next_fetch_at == clock() + MINUTE
        assert not has_outdated(connection)
        renamed = edit_source(connection, source.id, Edit(name="Another"), clock() + 9, planner)
        assert renamed.next_fetch_at == clock() + MINUTE
        assert next_due_at(connection, clock()) == clock() + MINUTE


@pytest.mark.parametrize(
    "edit", [{"config": {"user": "me", "password": "new"}}, {"url": "http://127.0.0.1:1/"}]
)
async def test_edit_of_credentials_or_address_is_visited_at_once(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock, edit: dict[str, Any]
) -> None:
    source = add(store, origin.route("/feed", Answer(status=401)), clock)
    await collect(store, settings, clock)
    assert reread(store, source).status == "needs_attention"
    assert await due_at(store, source) == clock() + 4 * HOUR
    with store.writing() as connection:
        edit_source(connection, source.id, Edit(**edit), clock() + 1)
        assert (next_due_at(connection, clock()) or 0.0) < 0, "first in line"


async def test_plan_made_during_an_edit_is_made_again(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    source = add(store, origin.route("/feed", body=rss(1)), clock)
    await collect(store, settings, clock)
    made = await read_planner(store, settings)
    with store.writing() as connection:
        (claimed,) = claim_sources(connection, [source.id], now=clock(), lease_until=clock() + 99)
    with store.writing() as connection:
        edit_source(connection, source.id, Edit(interval_minutes=1), clock(), made)
    after = made.after_success(claimed, Observation(clock(), "unchanged"), last_fetched_at=clock())
    settlement = replace(_settlement(claimed), after=after)
    with store.writing() as connection:
        settle_batch(connection, [settlement])
        assert has_outdated(connection)
    await collect(store, settings, clock)
    assert await due_at(store, source) == clock() + MINUTE


def _settlement(claimed: Source) -> Settlement:
    return Settlement(claimed, claimed, Visit(claimed.id, NOON, NOON, "unchanged"))


async def test_another_budget_changes_price_and_plans_at_once(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    settings = replace(settings, policy="adaptive", min_interval_seconds=1.0)
    source = add(store, origin.route("/feed", body=rss(*range(20), at=clock() - HOUR)), clock)
    await collect(store, settings, clock)
    with store.reading() as connection:
        before = read_price(connection)
    planned = await due_at(store, source)
    await collect(store, replace(settings, budget_visits_per_day=60.0), clock)
    with store.reading() as connection:
        after = read_price(connection)
        stored = get_setting(connection, "plans")
        assert stored is not None and stored["goal"] == [60.0, None, None]
    assert before is not None and after is not None and planned is not None
    assert after.seconds == pytest.approx(before.seconds / 100)
    assert (await due_at(store, source) or 0.0) < planned


async def test_replanning_keeps_paused_sources_out_and_refreshed_ones_first(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    one = add(store, origin.route("/one", body=rss(1)), clock)
    two = add(store, origin.route("/two", body=rss(2)), clock)
    await collect(store, settings, clock)
    quick = make_planner(replace(settings, fetch_intervals={"rss": 1.0}), {}, None, Random(1))
    with store.writing() as connection:
        act_on_source(connection, "pause", one.id, clock())
        act_on_source(connection, "refresh", two.id, clock())
        assert replan_sources(connection, [one.id, two.id], quick) == 2
        assert get_source(connection, one.id).next_fetch_at == clock() + MINUTE
    assert await due_at(store, one) is None
    assert (await due_at(store, two) or 0.0) < 0
    with store.writing() as connection:
        act_on_source(connection, "resume", one.id, clock())
    assert await due_at(store, one) == clock() + MINUTE


async def test_workers_with_different_settings_do_not_undo_each_other_for_ever(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    add(store, origin.route("/feed", body=rss(1)), clock)
    await collect(store, settings, clock)
    walks = []

    def worker(minutes: float) -> Replanner:
        own = replace(settings, fetch_intervals={"rss": minutes})
        made = Replanner(store, own, clock, Random(1), again_after_seconds=60.0, give_up=lambda: False)
        walk = made._walk

        async def counted(planner: Planner) -> bool:
            walks.append(minutes)
            return await walk(planner)

        made._walk = counted  # type: ignore[method-assign]
        return made

    first, second = worker(1.0), worker(2.0)
    for _ in range(4):
        await first.keep()
        await second.keep()
    assert walks == [1.0, 2.0]
    clock.advance(60.0)
    await second.keep()
    assert walks == [1.0, 2.0, 2.0], "once more, when no worker plans by the old settings"


async def test_source_that_another_transaction_holds_stops_no_worker(
    postgres_store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    empty_tables(postgres_store)
    one = add(postgres_store, origin.route("/one", body=rss(1)), clock)
    two = add(postgres_store, origin.route("/two", body=rss(2)), clock)
    await collect(postgres_store, settings, clock)
    with postgres_store.writing() as connection:
        edit_sources(connection, [one.id, two.id], Edit(interval_minutes=1), clock())
    with postgres_store.writing() as frozen:
        frozen.execute(select(sources.c.id).where(sources.c.id == one.id).with_for_update())
        async with asyncio.timeout(60):
            await collect(postgres_store, settings, clock)
        assert await due_at(postgres_store, two) == clock() + MINUTE
    await collect(postgres_store, settings, clock)
    assert await due_at(postgres_store, one) == clock() + MINUTE
