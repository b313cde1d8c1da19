"""The fleet's price: begun once, steered once an hour, read by all."""

from headwater.collect.steering import PRICE_KEY, read_price, steer_price
from headwater.model import Plan
from headwater.schedule.price import STEER_EVERY_SECONDS
from headwater.store.database import Store
from headwater.store.queue import settle
from headwater.store.settings import set_setting
from tests.clock import NOON
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

    def steered(visits: int) -> float:
        with store.writing() as connection:
            connection.exec_driver_sql("DELETE FROM settings")
            first = steer_price(connection, visits_per_day=24, target_seconds=None, now=NOON)
            for number in range(visits):
                make(connection, f"s{visits}-{number}")
            settle(
                connection, [done(s, NOON + 9, Plan(NOON + 9e9)) for s in claim(connection, NOON + 1, 1000)]
            )
            after = steer_price(connection, visits_per_day=0.5, target_seconds=None, now=later)
            return after.seconds / first.seconds

    assert steered(60) > 1


def test_a_freshness_target_moves_the_price_without_a_budget(store: Store) -> None:
    with store.writing() as connection:
        first = steer_price(connection, visits_per_day=6, target_seconds=600.0, now=NOON)
        later = steer_price(connection, visits_per_day=6, target_seconds=600.0, now=NOON + 7200)
    assert later.seconds == first.seconds, "no items, no evidence"


def test_a_slip_in_the_table_begins_the_price_anew(store: Store) -> None:
    for nonsense in ("x", [1], {"seconds": "many"}, {"colour": 1}):
        with store.writing() as connection:
            set_setting(connection, PRICE_KEY, nonsense, NOON)
            assert read_price(connection) is None
            assert steer_price(connection, visits_per_day=6, target_seconds=None, now=NOON).seconds > 0
