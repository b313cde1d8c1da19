"""The fleet's price: begun once, steered once an hour, read by all."""

from pathlib import Path

from sqlalchemy import Connection

from headwater.collect.engine import Engine
from headwater.collect.steering import PRICE_KEY, read_price, steer_price
from headwater.config import load_settings
from headwater.model import Item, Plan, Source
from headwater.schedule.price import STEER_EVERY_SECONDS, begin_price
from headwater.store.database import Store
from headwater.store.items import ItemChange
from headwater.store.queue import settle
from headwater.store.settings import set_setting
from tests.clock import NOON, FakeClock
from tests.store.test_queue import claim, done, make


def test_the_price_begins_and_is_steered_once_an_hour(store: Store) -> None:
    with store.writing() as connection:
        assert read_price(connection) is None
        first = steer_price(connection, visits_per_day=6, target_seconds=None, now=NOON)
        assert read_price(connection) == first
        soon = steer_price(connection, visits_per_day=6, target_seconds=None, now=NOON + 60)
        assert soon == first, "another worker asks a minute later"


def test_too_many_visits_raise_the_price_and_too_few_lower_it(store: Store) -> None:
    later = NOON + STEER_EVERY_SECONDS
    with store.writing() as connection:
        for number in range(60):
            make(connection, f"s{number}")
        settle(connection, [done(s, NOON + 9, Plan(NOON + 9e9)) for s in claim(connection, NOON + 1, 100)])
        moved = {}
        for allowed in (0.5, 24.0, 200.0):  # one visit of each source in an hour is 24 a day
            connection.exec_driver_sql("DELETE FROM settings")
            first = steer_price(connection, visits_per_day=allowed, target_seconds=None, now=NOON)
            after = steer_price(connection, visits_per_day=allowed, target_seconds=None, now=later)
            moved[allowed] = after.seconds / first.seconds
    assert moved[0.5] > 1.001
    assert 0.999 < moved[24.0] < 1.001
    assert moved[200.0] < 0.999


def test_a_price_of_a_clock_that_was_ahead_is_not_waited_for(store: Store) -> None:
    with store.writing() as connection:
        steer_price(connection, visits_per_day=6, target_seconds=None, now=NOON + 9e8)
        assert steer_price(connection, visits_per_day=6, target_seconds=None, now=NOON).at == NOON


def test_a_freshness_target_moves_the_price_without_a_budget(store: Store) -> None:
    with store.writing() as connection:
        first = steer_price(connection, visits_per_day=6, target_seconds=600.0, now=NOON)
        later = steer_price(connection, visits_per_day=6, target_seconds=600.0, now=NOON + 7200)
        assert later.seconds == first.seconds, "no items, no evidence"
        (source,) = claim_one(connection)
        item = Item("late", published_at=NOON + 8000)
        change = ItemChange("new", item, b"k", b"k", (), b"h", NOON + 8000)
        settle(connection, [done(source, NOON + 12_000, Plan(NOON + 9e9), [change])])
        after = steer_price(connection, visits_per_day=6, target_seconds=600.0, now=NOON + 14_400)
        assert after.seconds < later.seconds, (
            "an hour late where ten minutes are wished for: visits get cheaper"
        )


def claim_one(connection: Connection) -> list[Source]:
    make(connection, "one")
    return claim(connection, NOON + 7300, 1)


def test_a_slip_in_the_table_begins_the_price_anew(store: Store) -> None:
    for nonsense in ("x", [1], {"seconds": "many"}, {"colour": 1}):
        with store.writing() as connection:
            set_setting(connection, PRICE_KEY, nonsense, NOON)
            assert read_price(connection) is None
            assert steer_price(connection, visits_per_day=6, target_seconds=None, now=NOON).seconds > 0


async def test_one_run_of_the_collector_steers_too(store: Store, tmp_path: Path, clock: FakeClock) -> None:
    """Who collects from cron never runs the loop."""
    settings = load_settings(directory=tmp_path, environment={"HEADWATER_BUDGET_VISITS_PER_DAY": "12"})
    async with Engine(store, settings, clock=clock) as engine:
        await engine.collect_due()
    with store.reading() as connection:
        price = read_price(connection)
    assert price is not None
    assert price.at == clock()
    assert price.seconds < begin_price(6.0, 0.0).seconds, "more visits are allowed, so each costs less"
