"""Copies of a story among new items: found, shown once, read together, off per folder; at the same cost at any size."""

import random

import pytest
from sqlalchemy import func, select

from headwater.model import Item
from headwater.people.stories import marks_of, telling_of
from headwater.store.core.database import Store
from headwater.store.core.tables import items, story_items, story_keys
from headwater.store.people.entries import EntryFilter, Place, list_places, read_entries
from headwater.store.people.folders import add_folder
from headwater.store.people.preferences import change_preferences
from headwater.store.people.reading import mark_read, unread_counts
from headwater.store.people.stories import (
    WINDOW_SECONDS,
    NewKeys,
    copies_of,
    delete_old_keys,
    find_key_owners,
    mark_read_together,
    write_keys,
)
from headwater.store.people.story_copies import show_once, with_copies
from headwater.store.people.subscriptions import change_subscription, list_subscriptions
from headwater.store.reading.retention import delete_idle_items
from tests.clock import FakeClock
from tests.people.test_rules import arrive, follow, reader, source

TEXT = (
    "The council of Northport voted on Tuesday to build a second bridge across the harbour, ending nine years of"
    " debate. The crossing will cost 240 million crowns and carry trams as well as cars."
)
ALL = EntryFilter()
BRIDGE = Item("bridge", title="Northport approves harbour bridge", content=f"<p>{TEXT}</p>")
COPY = Item(
    "copy", title="Second bridge for Northport - Coast Daily", summary=f"NORTHPORT (Wire) - {TEXT[:110]}"
)
OTHER = Item(
    "other",
    title="Rain on Monday",
    content="It will rain on Monday in the north and be dry elsewhere, they say.",
)


def numbers(store: Store) -> dict[tuple[int, str], int]:
    with store.reading() as connection:
        query = select(items.c.source_id, items.c.external_id, items.c.id)
        return {(row[0], row[1]): row[2] for row in connection.execute(query)}


def listed(store: Store, user_id: int, wanted: EntryFilter = ALL) -> list[Place]:
    with store.reading() as connection:
        found = list_places(connection, user_id, wanted, limit=50)
        return show_once(connection, user_id, found, wanted, "newest")


@pytest.fixture
def told(store: Store, clock: FakeClock) -> tuple[int, int, int]:
    """A person with two sources that tell one story, the second an hour later."""
    first, second = source(store, "first", clock()), source(store, "second", clock())
    li = reader(store, "li", clock(), first, second)
    follow(store, clock)
    arrive(store, first, clock(), BRIDGE, OTHER)
    follow(store, clock)
    clock.now += 3_600
    arrive(store, second, clock(), COPY)
    follow(store, clock)
    return li, first, second


def test_story_is_shown_once_with_where_else_it_is_told(
    store: Store, clock: FakeClock, told: tuple[int, int, int]
) -> None:
    li, first, second = told
    number = numbers(store)
    shown = [place.id for place in listed(store, li)]
    assert shown == [number[second, "copy"], number[first, "other"]]
    with store.reading() as connection:
        entry = with_copies(connection, li, read_entries(connection, li, shown[:1]))[0]
        assert [(each.id, each.feed_title) for each in entry.also_in] == [(number[first, "bridge"], "first")]
    one_source = listed(store, li, EntryFilter(source_ids=(first,)))
    assert {place.id for place in one_source} == {number[first, "bridge"], number[first, "other"]}


def test_story_is_read_together(store: Store, told: tuple[int, int, int]) -> None:
    li, _, second = told
    copy = numbers(store)[second, "copy"]
    with store.writing() as connection:
        assert len(mark_read_together(connection, li, [copy])) == 2
        assert sum(each.count for each in unread_counts(connection, li)) == 1
    assert len(listed(store, li, EntryFilter(is_read=False))) == 1


def test_copy_of_what_was_read_arrives_read(
    store: Store, clock: FakeClock, told: tuple[int, int, int]
) -> None:
    li, first, _ = told
    third = source(store, "third", clock())
    ann = reader(store, "ann", clock(), first, third)
    with store.writing() as connection:
        bridge = numbers(store)[first, "bridge"]
        mark_read(connection, ann, [bridge], True)
    arrive(store, third, clock(), COPY)
    follow(store, clock)
    with store.reading() as connection:
        copy = numbers(store)[third, "copy"]
        assert read_entries(connection, ann, [copy])[0].state.is_read
        assert {place.id for place in listed(store, li)}.isdisjoint({copy})  # not a source of theirs


def test_folder_can_show_every_copy(store: Store, told: tuple[int, int, int]) -> None:
    li, _, second = told
    with store.writing() as connection:
        folder = add_folder(connection, li, "All of it")
        subscription = next(each for each in list_subscriptions(connection, li) if each.source_id == second)
        change_subscription(connection, li, subscription.id, folder_id=folder.id)
        change_preferences(connection, li, {}, {folder.id: {"same_story_once": False}})
    assert len(listed(store, li)) == 3
    with store.writing() as connection:
        change_preferences(connection, li, {"same_story_once": False}, {folder.id: {"same_story_once": True}})
        assert copies_of(connection, li, numbers(store).values()) == {}


def test_items_of_one_source_are_not_copies(store: Store, clock: FakeClock) -> None:
    news = source(store, "news", clock())
    li = reader(store, "li", clock(), news)
    follow(store, clock)
    arrive(store, news, clock(), BRIDGE, COPY)
    follow(store, clock)
    assert len(listed(store, li)) == 2
    with store.reading() as connection:
        assert connection.execute(select(func.count()).select_from(story_items)).scalar_one() == 0


def test_copies_in_one_batch_and_stories_that_meet_are_joined(store: Store, clock: FakeClock) -> None:
    sources = [source(store, f"s{number}", clock()) for number in range(4)]
    li = reader(store, "li", clock(), *sources)
    follow(store, clock)
    for source_id in sources:
        arrive(store, source_id, clock(), BRIDGE if source_id % 2 else COPY)
    follow(store, clock)
    with store.reading() as connection:
        copies = copies_of(connection, li, numbers(store).values())
    assert all(len(those) == 3 for those in copies.values())
    assert len(copies) == 4
    assert len(listed(store, li)) == 1


def test_story_outlives_the_deletion_of_its_first_item(store: Store, told: tuple[int, int, int]) -> None:
    li, first, second = told
    with store.writing() as connection:
        delete_idle_items(connection, [numbers(store)[first, "bridge"]])
        assert copies_of(connection, li, [numbers(store)[second, "copy"]]) == {}
    assert len(listed(store, li)) == 2


def test_keys_are_forgotten_after_some_days(
    store: Store, clock: FakeClock, told: tuple[int, int, int]
) -> None:
    clock.now += WINDOW_SECONDS + 1
    with store.writing() as connection:
        keys = list(connection.execute(select(story_keys.c.key)).scalars())
        assert find_key_owners(connection, keys, clock()) == {}
        assert delete_old_keys(connection, clock(), 5) == 5
        while delete_old_keys(connection, clock(), 1_000):
            pass
        assert connection.execute(select(func.count()).select_from(story_keys)).scalar_one() == 0


def test_item_looks_up_its_own_keys_alone_however_many_there_are(store: Store, clock: FakeClock) -> None:
    """Of a thousand items that share a key, one is looked at."""
    rng = random.Random(7)
    marks = marks_of(telling_of(BRIDGE.title, BRIDGE.content, None))
    many = [
        NewKeys(number, number, (*marks.keys, rng.getrandbits(62)), marks.sketch, clock())
        for number in range(1, 1_001)
    ]
    with store.writing() as connection:
        for each in many:
            write_keys(connection, [each])
        owners = find_key_owners(connection, marks.keys, clock())
    assert {owner.item_id for owner in owners.values()} == {1_000}
    assert len(marks.keys) <= 12
