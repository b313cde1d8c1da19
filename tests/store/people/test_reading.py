"""Reading state: few rows, right counts, nothing lost between people who work at once."""

import threading
from contextlib import suppress
from typing import Any

from sqlalchemy import event

from headwater.errors import StoreError
from headwater.store.collecting.sources import remove_source, restore_source
from headwater.store.core.database import Store
from headwater.store.people.entries import EntryFilter, list_places
from headwater.store.people.marks import set_starred
from headwater.store.people.reading import TIDY_EXCEPTIONS, count_state_rows, mark_read, unread_counts
from headwater.store.people.users import remove_user
from headwater.store.reading.retention import delete_idle_items
from tests.store.people.conftest import Arrive


def test_state_of_long_feed_read_one_by_one_stays_small(store: Store, ann: int, arrive: Arrive) -> None:
    items = arrive(*(str(number) for number in range(3 * TIDY_EXCEPTIONS)))
    # All but one in a hundred, in no order; the new subscription counts all but the newest 50 as read.
    chosen = [item for place, item in enumerate(items) if place % 100]
    with store.writing() as connection:
        mark_read(connection, ann, items, False)
        for item in reversed(chosen):
            mark_read(connection, ann, [item], True)
        assert count_state_rows(connection, ann) <= TIDY_EXCEPTIONS
        (counted,) = unread_counts(connection, ann)
        assert counted.count == 3
        unread = list_places(connection, ann, EntryFilter(is_read=False), limit=10)
        assert sorted(place.id for place in unread) == items[::100]


def test_marks_and_deletions_at_once_leave_right_count(store: Store, ann: int, arrive: Arrive) -> None:
    items = arrive(*(str(number) for number in range(40)))
    failures: list[Exception] = []

    def attempt(work: object) -> None:
        try:
            with suppress(StoreError), store.writing() as connection:
                work(connection)  # type: ignore[operator]
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [
        *(
            threading.Thread(
                target=attempt, args=(lambda c, n=n: mark_read(c, ann, items[n : n + 10], True),)
            )
            for n in range(0, 30, 3)
        ),
        *(
            threading.Thread(target=attempt, args=(lambda c, n=n: delete_idle_items(c, items[n : n + 7]),))
            for n in range(0, 21, 7)
        ),
        *(
            threading.Thread(target=attempt, args=(lambda c, n=n: mark_read(c, ann, items[n::4], False),))
            for n in range(4)
        ),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with store.reading() as connection:
        (counted,) = unread_counts(connection, ann)
        assert counted.count == len(list_places(connection, ann, EntryFilter(is_read=False), limit=100))


def test_search_for_rare_word_reads_its_items_only(store: Store, ann: int, arrive: Arrive) -> None:
    """SQLite would go through all items of every subscription, which of a large fleet takes seconds."""
    arrive(*(f"common {number}" for number in range(300)), "rare")
    statements: list[tuple[str, Any]] = []

    def note(connection: object, cursor: object, statement: str, parameters: Any, *_: object) -> None:
        statements.append((statement, parameters))

    with store.reading() as connection:
        event.listen(store.engine, "before_cursor_execute", note)
        found = list_places(connection, ann, EntryFilter(search="rare"), limit=10)
        event.remove(store.engine, "before_cursor_execute", note)
        if store.is_sqlite:
            statement, parameters = next(each for each in statements if "subscriptions" in each[0])
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            steps = [row[3] for row in plan if row[3].startswith(("SEARCH items", "SEARCH subscriptions"))]
            assert steps[0] == "SEARCH items USING INTEGER PRIMARY KEY (rowid=?)"
    assert found == []  # what was stored is not indexed yet


def test_retention_keeps_starred_items(store: Store, ann: int, arrive: Arrive, clock: object) -> None:
    items = arrive("a", "b")
    with store.writing() as connection:
        set_starred(connection, ann, items[:1], True, 1.0)
        assert delete_idle_items(connection, items) == 1
        (kept,) = list_places(connection, ann, EntryFilter(), limit=10)
        assert kept.id == items[0]
        set_starred(connection, ann, items, False, 1.0)
        assert delete_idle_items(connection, items) == 1


def test_removed_user_takes_all_reading_state_along(store: Store, ann: int, arrive: Arrive) -> None:
    items = arrive("a", "b")
    with store.writing() as connection:
        mark_read(connection, ann, items[:1], True)
        set_starred(connection, ann, items, True, 1.0)
        remove_user(connection, ann)
        for table in ("subscriptions", "read_exceptions", "entry_marks"):
            query = f"SELECT count(*) FROM {table} WHERE user_id = {ann}"
            assert connection.exec_driver_sql(query).scalar_one() == 0


def test_removed_source_is_neither_counted_nor_listed(
    store: Store, ann: int, arrive: Arrive, source_id: int
) -> None:
    arrive("a", "b")
    with store.writing() as connection:
        remove_source(connection, source_id, 1.0)
        assert unread_counts(connection, ann) == []
        assert list_places(connection, ann, EntryFilter(), limit=10) == []
        restore_source(connection, source_id, 2.0)
        assert [each.count for each in unread_counts(connection, ann)] == [2]
        assert len(list_places(connection, ann, EntryFilter(is_read=False), limit=10)) == 2
