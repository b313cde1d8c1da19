"""The dashboard's numbers are the database's."""

from headwater.model import Item, Plan
from headwater.store.database import Store
from headwater.store.items import ItemChange
from headwater.store.overview import read_overview
from headwater.store.queue import settle
from tests.clock import NOON
from tests.store.test_queue import claim, done, make


def test_overview(store: Store) -> None:
    with store.writing() as connection:
        for name in ("a", "b", "c"):
            make(connection, name)
        first, second, _ = claim(connection)
        changes = [
            ItemChange("new", Item(str(age)), bytes([age]), bytes([age]), (), b"h", NOON - 60 * age - 1)
            for age in (0, 0, 59, 61)
        ]
        settle(
            connection,
            [
                done(first, NOON - 10, Plan(NOON + 60), changes[1:]),
                done(second, NOON - 4000, Plan(NOON - 1), consecutive_failures=1),
            ],
        )
        seen = read_overview(connection, NOON)
    assert (seen.sources, seen.failing, seen.due) == (3, 1, 1)
    assert (seen.visits, seen.visits_unchanged, seen.visits_failed) == (1, 1, 0)
    assert (seen.activity[0], seen.activity[-1], sum(seen.activity)) == (1, 1, 2)
