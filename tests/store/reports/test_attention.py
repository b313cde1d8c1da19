"""What needs a person comes first: refused credentials, then what is gone, then what fails most."""

from typing import Any

from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.tables import sources
from headwater.store.reports.attention import troubled_sources
from tests.clock import NOON


def test_troubled_sources_are_sorted_by_what_they_need(store: Store) -> None:
    states: dict[str, dict[str, Any]] = {
        "well": {},
        "fails": {"consecutive_failures": 2, "last_error_kind": "timeout"},
        "fails more": {"consecutive_failures": 9, "last_error_kind": "timeout"},
        "gone": {"status": "retired"},
        "refused": {"consecutive_failures": 1, "last_error_kind": "unauthorized"},
        "paused": {"consecutive_failures": 5, "schedule_enabled": False},
    }
    with store.writing() as connection:
        for name, values in states.items():
            added = add_source(
                connection, name=name, type="rss.feed", url=f"https://{len(name)}.example/{name}", now=NOON
            )
            values = {"last_fetched_at": NOON, "schedule_enabled": True, **values}
            connection.execute(sources.update().where(sources.c.id == added.id).values(**values))
    with store.reading() as connection:
        found = troubled_sources(connection, limit=10)
        assert [each.name for each in found] == ["refused", "gone", "fails more", "fails"]
        assert len(troubled_sources(connection, limit=2)) == 2
