"""Whatever people and the collector do in whatever order, the unread items are those of a naive model."""

from dataclasses import dataclass, field
from random import Random

import pytest

from headwater.model import Item
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.tables import items, subscriptions, users
from headwater.store.people import reading
from headwater.store.people.entries import EntryFilter, entry_states, list_places
from headwater.store.people.reading import mark_all_read, mark_read, unread_counts, unread_positions
from headwater.store.people.subscriptions import UNREAD_AT_FIRST, subscribe, unsubscribe
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.retention import delete_idle_items
from tests.rows import value_for

NOW = 1_700_000_000.0
PEOPLE = (1, 2, 3)


@dataclass
class Naive:
    """Every item of every user, one by one."""

    unread: dict[int, set[int]] = field(default_factory=lambda: {user_id: set() for user_id in PEOPLE})
    items: dict[int, tuple[int, float]] = field(default_factory=dict)  # source and time, by number
    subscribed: dict[int, set[int]] = field(default_factory=lambda: {user_id: set() for user_id in PEOPLE})

    def of_source(self, source_id: int) -> list[int]:
        return [item_id for item_id, (its, _) in self.items.items() if its == source_id]


class Machine:
    """Does the same to the store and to the model."""

    def __init__(self, store: Store, rng: Random) -> None:
        self.store, self.rng, self.naive = store, rng, Naive()
        self.now = NOW
        self.arrived = 0
        with store.writing() as connection:
            connection.execute(users.delete())
            for user_id in PEOPLE:
                row = {column.name: value_for(column, user_id) for column in users.c}
                connection.execute(users.insert().values(row | {"id": user_id}))
            self.sources = [
                add_source(
                    connection, name=f"S{n}", type="rss.feed", url=f"https://s{n}.example/", now=NOW
                ).id
                for n in range(3)
            ]
        self.naive.subscribed[1] = set(self.sources)

    def arrive(self) -> None:
        source_id = self.rng.choice(self.sources)
        # Some clocks are behind: an item stored later may claim to have been seen earlier.
        self.now += self.rng.choice((-5.0, 1.0, 60.0, 60.0))
        fresh = list(range(self.arrived, self.arrived + self.rng.randrange(1, 8)))
        self.arrived += len(fresh)
        again = self.rng.sample(range(self.arrived), min(self.arrived, 2))
        changes = tuple(self._change(number) for number in (*fresh, *again))
        with self.store.writing() as connection:
            before = set(connection.execute(items.select().with_only_columns(items.c.id)).scalars())
            write_items(connection, [(source_id, changes, self.now)])
            rows = connection.execute(
                items.select().with_only_columns(items.c.id, items.c.source_id, items.c.first_seen_at)
            ).all()
        for item_id, its, first_seen_at in rows:
            if item_id not in before:
                self.naive.items[item_id] = its, first_seen_at
                for user_id in PEOPLE:
                    if its in self.naive.subscribed[user_id]:
                        self.naive.unread[user_id].add(item_id)

    def _change(self, number: int) -> ItemChange:
        key = f"id {number}".encode()
        item = Item(f"id {number}", title=str(number))
        return ItemChange("new", item, key, key, (), b"hash", self.now - self.rng.random() * 10_000)

    def mark(self) -> None:
        user_id = self.rng.choice(PEOPLE)
        is_read = self.rng.random() < 0.6
        some = self.rng.sample(
            sorted(self.naive.items), min(len(self.naive.items), self.rng.randrange(1, 12))
        )
        with self.store.writing() as connection:
            done = mark_read(connection, user_id, some, is_read)
        mine = {each for each in some if self.naive.items[each][0] in self.naive.subscribed[user_id]}
        assert done == mine
        if is_read:
            self.naive.unread[user_id] -= mine
        else:
            self.naive.unread[user_id] |= mine

    def mark_all(self) -> None:
        user_id = self.rng.choice(PEOPLE)
        some = self.rng.sample(self.sources, self.rng.randrange(1, 4))
        until = None if self.rng.random() < 0.4 else self.now - self.rng.random() * 300
        with self.store.writing() as connection:
            count = mark_all_read(connection, user_id, some, until=until)
        old = {
            item_id
            for item_id in self.naive.unread[user_id]
            if self.naive.items[item_id][0] in some
            and (until is None or self.naive.items[item_id][1] <= until)
        }
        assert count == len(old)
        self.naive.unread[user_id] -= old

    def delete(self) -> None:
        some = self.rng.sample(
            sorted(self.naive.items), min(len(self.naive.items), self.rng.randrange(1, 10))
        )
        with self.store.writing() as connection:
            if some:
                assert delete_idle_items(connection, some) == len(some)
        for item_id in some:
            del self.naive.items[item_id]
        for unread in self.naive.unread.values():
            unread.difference_update(some)

    def resubscribe(self) -> None:
        user_id, source_id = self.rng.choice(PEOPLE), self.rng.choice(self.sources)
        with self.store.writing() as connection:
            if source_id in self.naive.subscribed[user_id]:
                query = subscriptions.select().where(
                    subscriptions.c.user_id == user_id, subscriptions.c.source_id == source_id
                )
                unsubscribe(connection, user_id, connection.execute(query).one().id)
                self.naive.subscribed[user_id].discard(source_id)
                self.naive.unread[user_id].difference_update(self.naive.of_source(source_id))
            else:
                subscribe(connection, user_id, source_id, self.now)
                self.naive.subscribed[user_id].add(source_id)
                rows = connection.execute(
                    items.select()
                    .with_only_columns(items.c.id)
                    .where(items.c.source_id == source_id)
                    .order_by(items.c.position.desc())
                    .limit(UNREAD_AT_FIRST)
                )
                self.naive.unread[user_id] |= set(rows.scalars())

    def check(self) -> None:
        with self.store.reading() as connection:
            places = {
                (row.source_id, row.position): row.id
                for row in connection.execute(
                    items.select().with_only_columns(items.c.id, items.c.source_id, items.c.position)
                )
            }
            for user_id in PEOPLE:
                expected = self.naive.unread[user_id]
                found = unread_positions(connection, user_id, self.sources)
                assert {places[source_id, position] for source_id, position, _ in found} == expected
                counts = {each.source_id: each.count for each in unread_counts(connection, user_id)}
                naive_counts = {
                    source_id: len(expected & set(self.naive.of_source(source_id)))
                    for source_id in self.naive.subscribed[user_id]
                }
                assert counts == naive_counts
                mine = {
                    item_id
                    for item_id, (its, _) in self.naive.items.items()
                    if its in self.naive.subscribed[user_id]
                }
                for is_read, wanted in ((False, expected), (True, mine - expected), (None, mine)):
                    page = list_places(connection, user_id, EntryFilter(is_read=is_read), limit=10_000)
                    assert [place.id for place in page] == [
                        place.id for place in sorted(page, key=lambda each: (-each.item_at, -each.id))
                    ]
                    assert {place.id for place in page} == wanted
                states = entry_states(
                    connection,
                    user_id,
                    [(item_id, *place) for place, item_id in places.items() if item_id in mine],
                )
                assert {item_id for item_id, state in states.items() if not state.is_read} == expected


@pytest.mark.parametrize("seed", range(4))
def test_reading_state_in_any_order_equals_naive_model(
    store: Store, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TIDY_EXCEPTIONS", 3 if seed % 2 else 100)
    machine = Machine(store, Random(seed))
    actions = (machine.arrive, machine.mark, machine.mark_all, machine.delete, machine.resubscribe)
    weights = (6, 10, 3, 2, 1)
    for _ in range(12):
        for action in machine.rng.choices(actions, weights, k=5):
            action()
        machine.check()
