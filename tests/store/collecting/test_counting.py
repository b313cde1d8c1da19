"""Counts of sources that do not read all of them."""

import pytest

from headwater.store.collecting import counting
from headwater.store.collecting.counting import (
    count_all_sources,
    count_enabled_sources,
    count_live_sources,
    count_old_sources,
    count_visited_sources,
    note_source_count,
)
from headwater.store.collecting.sources import Addition, add_sources, change_sources
from headwater.store.core.database import Store
from tests.clock import NOON


def test_counts_after_an_upkeep_include_newer_and_leave_out_deleted_sources(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "UNSETTLED", 3)

    def add(*numbers: int) -> None:
        additions = [Addition(str(each), "rss.feed", f"https://{each}.example/") for each in numbers]
        add_sources(connection, additions, NOON)

    with store.writing() as connection:
        add(*range(10))
        assert count_all_sources(connection) == 10
        counted = count_old_sources(connection)
        assert (counted.count, counted.up_to) == (7, 7)
        note_source_count(connection, counted, NOON)
        add(10, 11)
        change_sources(connection, [1, 11], NOON, is_deleted=True)
        change_sources(connection, [2], NOON, schedule_enabled=False)
        change_sources(connection, [3], NOON, is_active=False)
        assert count_all_sources(connection) == 12
        assert count_live_sources(connection) == 10
        assert count_enabled_sources(connection) == 9
        assert count_visited_sources(connection) == 8
