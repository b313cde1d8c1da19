"""Stars, read later with an expiry, tags."""

from headwater.store.core.database import Store
from headwater.store.people.entries import EntryFilter, get_entry, list_places
from headwater.store.people.marks import (
    DAY,
    add_tags,
    cleanup_read_later,
    list_tags,
    rename_tag,
    set_read_later,
    set_starred,
)
from tests.clock import FakeClock
from tests.store.people.conftest import Arrive

LATER = EntryFilter(read_later=True)


def test_read_later_expires_and_star_stays(store: Store, ann: int, arrive: Arrive, clock: FakeClock) -> None:
    one, two, three = arrive("one", "two", "three")
    with store.writing() as connection:
        set_read_later(connection, ann, [one, two], 7, clock())
        set_read_later(connection, ann, [three], None, clock())
        set_starred(connection, ann, [one], True, clock())
        assert cleanup_read_later(connection, clock() + 7 * DAY - 1) == 0
        assert len(list_places(connection, ann, LATER, limit=10)) == 3
        assert cleanup_read_later(connection, clock() + 7 * DAY) == 2
        assert [place.id for place in list_places(connection, ann, LATER, limit=10)] == [three]
        assert get_entry(connection, ann, one).state.starred_at == clock()


def test_star_again_keeps_first_time(store: Store, ann: int, arrive: Arrive) -> None:
    (one,) = arrive("one")
    with store.writing() as connection:
        assert set_starred(connection, ann, [one, 999], True, 1.0) == {one}
        set_starred(connection, ann, [one], True, 2.0)
        assert get_entry(connection, ann, one).state.starred_at == 1.0
        assert set_starred(connection, 1, [one], True, 2.0) == {one}  # the first user reads every source


def test_renamed_tag_takes_over_another(store: Store, ann: int, arrive: Arrive) -> None:
    one, two = arrive("one", "two")
    with store.writing() as connection:
        add_tags(connection, ann, [one, two], ["a"], 1.0)
        add_tags(connection, ann, [two], ["b"], 1.0)
        rename_tag(connection, ann, "a", "b")
        assert list_tags(connection, ann) == [("b", 2)]
        assert list_tags(connection, 1) == []
