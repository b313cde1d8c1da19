"""The statistics of all sources and of one, from the table that visits keep."""

import pytest

from headwater.model import Plan
from headwater.schedule.cadence import FREQUENCY_CADENCE_MAP, RSS_CADENCE_INTERVALS
from headwater.smart_scheduler import get_scheduler_stats, update_source_stats
from headwater.store.collecting.queue import settle_batch
from headwater.store.collecting.sources import remove_source, set_schedule_enabled
from headwater.store.core.database import Store
from headwater.store.reports.statistics import (
    CADENCES,
    FREQUENCIES,
    read_scheduler_statistics,
    read_source_statistics,
)
from headwater.views.statistics import scheduler_statistics_json
from tests.clock import NOON
from tests.store.collecting.test_queue import claim, done, make


def test_names_are_those_of_the_schedule() -> None:
    assert list(RSS_CADENCE_INTERVALS) == list(CADENCES)
    assert list(FREQUENCY_CADENCE_MAP) == list(FREQUENCIES)


@pytest.fixture
def filled(store: Store) -> Store:
    """A source that is due, one that fails, one that is paused while it fails, one that was removed."""
    with store.writing() as connection:
        made = [make(connection, name) for name in ("good", "bad", "paused", "removed")]
        settle_batch(
            connection, [done(each, NOON + 2, Plan(NOON + 9)) for each in claim(connection, NOON + 1, 10)]
        )
        for source in made:
            for number in range(4):
                error = "429" if source.name in ("bad", "paused") and number == 3 else ""
                update_source_stats(
                    connection,
                    str(source.id),
                    has_new_entries=number == 0,
                    error_message=error,
                    now=NOON,
                    commit=False,
                )
        connection.exec_driver_sql(
            "UPDATE source_stats SET frequency_type = 'weekly', cadence = 'P4'"
            f" WHERE source_id = '{made[0].id}'"
        )
        connection.exec_driver_sql(f"UPDATE sources SET due_at = {NOON + 9e4} WHERE id = {made[1].id}")
        set_schedule_enabled(connection, made[2].id, False, NOON + 3)
        remove_source(connection, made[3].id, NOON + 3)
    return store


def test_statistics_of_all_sources_leave_out_the_removed(filled: Store) -> None:
    with filled.reading() as connection:
        seen = read_scheduler_statistics(connection, NOON + 60)
        told = get_scheduler_stats(connection, now=NOON + 60)
    assert {name: count for name, count in seen.by_cadence.items() if count} == {"P2": 2, "P4": 1}
    assert {name: count for name, count in seen.by_frequency.items() if count} == {"daily": 2, "weekly": 1}
    assert (seen.total_sources, seen.total_checks, seen.total_hits) == (3, 12, 3)
    assert seen.hit_rate == 0.25
    assert (seen.due_sources, seen.failing_sources, seen.backoff_sources) == (1, 2, 1)
    assert told == scheduler_statistics_json(seen) | {"due_sources": told["due_sources"]}, (
        "as the scheduler's own function"
    )


def test_statistics_without_visits_have_no_hit_rate(store: Store) -> None:
    with store.reading() as connection:
        seen = read_scheduler_statistics(connection, NOON)
        assert read_source_statistics(connection, 1, NOON) is None
    assert (seen.total_sources, seen.hit_rate, seen.due_sources) == (0, None, 0)
    assert set(seen.by_cadence.values()) == set(seen.by_frequency.values()) == {0}


def test_statistics_of_one_source(filled: Store) -> None:
    with filled.reading() as connection:
        good = read_source_statistics(connection, 1, NOON + 60)
        bad = read_source_statistics(connection, 2, NOON + 60)
        paused = read_source_statistics(connection, 3, NOON + 60)
    assert good is not None and bad is not None and paused is not None
    assert (good.frequency_type, good.cadence, good.hit_rate, good.backoff_until) == (
        "weekly",
        "P4",
        0.25,
        None,
    )
    assert bad.backoff_until == NOON + 6 * 3600
    assert bad.hit_rate == 0.25
    assert paused.backoff_until is None, "no visit is planned that could wait"
