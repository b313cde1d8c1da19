"""What the overview draws adds up, whether hours are rolled up already or still on record."""

from headwater.model import Item
from headwater.store.collecting.sources import add_source, change_source, remove_source
from headwater.store.core.database import Store
from headwater.store.core.settings import set_setting
from headwater.store.core.tables import collection_records
from headwater.store.reports.hours import HOUR, add_up, hour_of, write_hours
from headwater.store.reports.trends import DELAY_CLASSES, classify, count_delays, failing_sources, read_hours
from tests.clock import NOON
from tests.publish.test_outlets import store_items


def test_hours_are_the_same_from_records_and_rolled_up(store: Store) -> None:
    with store.writing() as connection:
        source = add_source(connection, name="a", type="rss.feed", url="https://a.example/", now=NOON)
        for number, (hours_ago, status, new) in enumerate(
            [(0, "new", 2), (1, "unchanged", 0), (1, "new", 3), (5, "failed", 0), (60, "new", 9)]
        ):
            at = NOON - hours_ago * HOUR
            connection.execute(
                collection_records.insert().values(
                    source_id=source.id,
                    lease_no=number,
                    status=status,
                    started_at=at,
                    finished_at=at,
                    items_new=new,
                )
            )
        before = read_hours(connection, NOON, 48)
        assert [(hour.visits, hour.items_new) for hour in before[-2:]] == [(2, 3), (1, 2)]
        assert before[-6].failed == 1
        assert sum(hour.visits for hour in before) == 4
        until = hour_of(NOON)
        write_hours(connection, add_up(connection, until - 100 * HOUR, until))
        set_setting(connection, "collection_hours", {"rolled_until": until, "final_until": 0.0}, NOON)
        assert read_hours(connection, NOON, 48) == before


def test_delays_are_counted_for_what_came_out_since_the_source_was_added(store: Store) -> None:
    with store.writing() as connection:
        store_items(
            connection,
            Item("old", title="was there", published_at=NOON - 5_000),
            Item("new", title="came out", published_at=NOON),
        )
        counts = count_delays(connection)
    assert sum(counts) == 1
    assert counts[0] == 1
    assert classify([5, 59, 90_000]) == [1, 1, *[0] * (len(DELAY_CLASSES) - 2), 1]


def test_what_fails_is_named_worst_first(store: Store) -> None:
    with store.writing() as connection:
        for number in range(3):
            source = add_source(
                connection, name=f"s{number}", type="rss.feed", url=f"https://{number}.example/", now=NOON
            )
            if number:
                change_source(
                    connection,
                    source.id,
                    NOON,
                    last_error="gone",
                    last_error_kind="timeout",
                    consecutive_failures=number,
                )
        assert [each.source_name for each in failing_sources(connection, limit=5)] == ["s2", "s1"]
        assert len(failing_sources(connection, limit=1)) == 1
        remove_source(connection, 3, NOON)
        change_source(connection, 1, NOON, schedule_enabled=False)
        assert [each.source_name for each in failing_sources(connection, limit=5)] == ["s1"]
