"""The fleet's price: begun once, steered once an hour, read by all."""

from pathlib import Path

import pytest
from sqlalchemy import Connection

from headwater.collect.engine import Engine
from headwater.collect.steering import PRICE_KEY, read_price, steer_price
from headwater.config import load_settings
from headwater.model import Item, Plan
from headwater.schedule.compose import Limits
from headwater.schedule.price import STEER_EVERY_SECONDS, Goal, begin_price
from headwater.store.collecting.queue import claim_sources, settle_batch
from headwater.store.collecting.sources import request_refresh
from headwater.store.collecting.spending import count_visits, read_spent
from headwater.store.core.database import Store
from headwater.store.core.settings import set_setting
from headwater.store.reading.items import ItemChange
from tests.clock import NOON, FakeClock
from tests.fleet import Publisher, mean_of, run_fleet, share_within
from tests.histories import DAY, MONDAY, at_hour, even, merged
from tests.store.collecting.test_queue import claim, done, make


def test_the_price_begins_and_is_steered_once_an_hour(store: Store) -> None:
    with store.writing() as connection:
        assert read_price(connection) is None
        first = steer_price(connection, Goal(6.0), Limits(), NOON)
        assert read_price(connection) == first
        soon = steer_price(connection, Goal(6.0), Limits(), NOON + 60)
        assert soon == first, "another worker asks a minute later"


def visit_all(connection: Connection, at: float, next_at: float) -> None:
    due = claim(connection, at, 100)
    settle_batch(connection, [done(source, at, Plan(next_at)) for source in due])


def test_too_many_visits_raise_the_price_and_too_few_lower_it(store: Store) -> None:
    later = NOON + STEER_EVERY_SECONDS
    with store.writing() as connection:
        for number in range(60):
            make(connection, f"s{number}", NOON - 9)
        visit_all(connection, NOON - 9, next_at=NOON + 9)
        visit_all(connection, NOON + 9, next_at=NOON + 9e9)
        moved = {}
        for allowed in (2.0, 24.0, 200.0):  # one visit of each source in an hour is 24 a day
            connection.exec_driver_sql("DELETE FROM settings")
            first = steer_price(connection, Goal(allowed), Limits(), NOON)
            after = steer_price(connection, Goal(allowed), Limits(), later)
            moved[allowed] = after.seconds / first.seconds
    assert moved[2.0] > 1.001
    assert 0.999 < moved[24.0] < 1.001
    assert moved[200.0] < 0.999


def test_a_price_of_a_clock_that_was_ahead_is_not_waited_for(store: Store) -> None:
    with store.writing() as connection:
        steer_price(connection, Goal(6.0), Limits(), NOON + 9e8)
        assert steer_price(connection, Goal(6.0), Limits(), NOON).at == NOON


def test_a_freshness_target_moves_the_price_without_a_budget(store: Store) -> None:
    with store.writing() as connection:
        first = steer_price(connection, Goal(6.0, 600.0), Limits(), NOON)
        later = steer_price(connection, Goal(6.0, 600.0), Limits(), NOON + 7200)
        assert later.seconds == first.seconds, "no items, no evidence"
        make(connection, "one")
        visit_all(connection, NOON + 7200, next_at=NOON + 7300)
        (source,) = claim(connection, NOON + 7300, 1)
        item = Item("late", published_at=NOON + 8000)
        change = ItemChange("new", item, b"k", b"k", (), b"h", NOON + 8000)
        settle_batch(connection, [done(source, NOON + 12_000, Plan(NOON + 9e9), [change])])
        after = steer_price(connection, Goal(6.0, 600.0), Limits(), NOON + 14_400)
        assert after.seconds < later.seconds, (
            "an hour late where ten minutes are wished for: visits get cheaper"
        )


def test_damaged_price_in_the_table_starts_again(store: Store) -> None:
    for nonsense in ("x", [1], {"seconds": "many"}, {"colour": 1}):
        with store.writing() as connection:
            set_setting(connection, PRICE_KEY, nonsense, NOON)
            assert read_price(connection) is None
            assert steer_price(connection, Goal(6.0), Limits(), NOON).seconds > 0


async def test_one_run_of_the_collector_steers_too(store: Store, tmp_path: Path, clock: FakeClock) -> None:
    """Who collects from cron never runs the loop."""
    settings = load_settings(directory=tmp_path, environment={"HEADWATER_BUDGET_VISITS_PER_DAY": "12"})
    async with Engine(store, settings, clock=clock) as engine:
        await engine.collect_due()
    with store.reading() as connection:
        price = read_price(connection)
    assert price is not None
    assert price.at == clock()
    assert price.seconds < begin_price(Goal(6.0), 0.0).seconds, "more visits are allowed, so each costs less"


def make_publishers(count: int, days: int, joins: float = MONDAY) -> list[Publisher]:
    """Sources with and without habits, from one item in two days to some twenty a day."""
    made = []
    for number in range(count):
        per_day = (20.0, 3.0, 8.0, 0.5)[number % 4]
        begin = MONDAY - 20 * DAY
        times = even(per_day, days + 20, seed=number + 1, start=begin)
        if number % 3 == 2:
            times = merged(*[at_hour(hour, days + 20, 40, start=begin) for hour in (7, 9.5, 12, 16, 18)])
        made.append(Publisher(times, joins))
    return made


@pytest.mark.parametrize(("minutes", "count"), [(30.0, 1), (120.0, 4)])
def test_freshness_target_fleet_from_a_cold_start_reaches_it_and_stays(
    store: Store, minutes: float, count: int
) -> None:
    history = run_fleet(store, make_publishers(count, 12), MONDAY, 12, Goal(6.0, 60 * minutes))
    assert mean_of(history[5:]) == pytest.approx(60 * minutes, rel=0.15)


def test_freshness_target_of_a_share_is_reached(store: Store) -> None:
    history = run_fleet(store, make_publishers(3, 12), MONDAY, 12, Goal(6.0, 2400.0, 0.9))
    assert share_within(history[5:], 2400.0 * 1.15) > 0.9 > share_within(history[5:], 2400.0 * 0.85)


def test_freshness_target_fleet_that_doubles_is_back_within_three_days(store: Store) -> None:
    publishers = [*make_publishers(3, 14), *make_publishers(3, 14, MONDAY + 4 * DAY)]
    history = run_fleet(store, publishers, MONDAY, 12, Goal(6.0, 3600.0))
    assert mean_of(history[7:]) == pytest.approx(3600.0, rel=0.15)


def test_budget_with_a_pinned_source_is_left_to_the_others(store: Store) -> None:
    publishers = make_publishers(10, 10)
    publishers[0].pinned = 900.0
    history = run_fleet(store, publishers, MONDAY, 8)
    pinned = publishers[0].source_id
    visits = [sum(n for source, n in day.visits.items() if source != pinned) for day in history]
    assert history[-1].visits[pinned] == 96
    assert sum(visits[1:8]) / (7 * 9) == pytest.approx(6.0, rel=0.05)
    with store.reading() as connection:
        spent = read_spent(connection, MONDAY + 7 * DAY)
    assert spent["interval"] > spent["adaptive"] > 30, "counted apart"


@pytest.mark.parametrize("per_day", [0.3, 50.0])
def test_budget_of_a_single_source_is_kept_from_the_first_day_on(store: Store, per_day: float) -> None:
    times = even(per_day, 50, start=MONDAY - 40 * DAY)
    history = run_fleet(store, [Publisher(times, MONDAY)], MONDAY, 8)
    visits = [sum(day.visits.values()) for day in history]
    assert all(4.8 <= count <= 7.2 for count in visits[1:]), visits
    assert sum(visits[1:]) / 7 == pytest.approx(6.0, rel=0.05)


def test_visits_asked_for_do_not_count_towards_the_budget(store: Store) -> None:
    with store.writing() as connection:
        steer_price(connection, Goal(6.0), Limits(), NOON)
        source = make(connection, "one")
        settle_batch(
            connection, [done(each, NOON + 9, Plan(NOON + 9e4)) for each in claim(connection, NOON + 1)]
        )
        request_refresh(connection, [source.id], NOON + 20)
        settle_batch(
            connection, [done(each, NOON + 40, Plan(NOON + 9e4)) for each in claim(connection, NOON + 30)]
        )
        (early,) = claim_sources(connection, [source.id], now=NOON + 50, lease_until=NOON + 90)
        settle_batch(connection, [done(early, NOON + 60, Plan(NOON + 9e4))])
        assert count_visits(connection, NOON, NOON + 100) == {"first": 1, "asked": 2}
