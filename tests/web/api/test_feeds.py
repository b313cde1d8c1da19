"""Asking for a visit now."""

from headwater.model import Plan
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.collecting.queue import claim_due, count_due, settle_batch
from headwater.store.collecting.sources import remove_source, set_schedule_enabled
from headwater.store.core.database import Store
from tests.clock import FakeClock
from tests.store.collecting.test_queue import claim, done
from tests.web.api.conftest import MakeCaller


def visited(store: Store, clock: FakeClock, count: int) -> None:
    """So many sources, all visited just now and not due for a while."""
    with store.writing() as connection:
        for number in range(count):
            add_unvisited(connection, read_new_source(f"https://{number}.example/"), clock())
        settle_batch(
            connection, [done(source, clock(), Plan(clock() + 3600)) for source in claim(connection)]
        )
        assert count_due(connection, clock()) == 0


def test_one_source_is_queued_first_in_line(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    visited(store, clock, 3)
    answer = caller("refresh").post("/api/feeds/2/refresh")
    assert (answer.status_code, answer.json()) == (202, {"status": "queued", "feed_id": 2})
    with store.writing() as connection:
        first, *others = claim_due(connection, 10, now=clock(), lease_until=clock() + 60)
    assert (first.id, others) == (2, [])


def test_all_sources_are_queued_and_counted(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    visited(store, clock, 4)
    with store.writing() as connection:
        set_schedule_enabled(connection, 1, False, clock())
        remove_source(connection, 2, clock())
    answer = caller("refresh").post("/api/feeds/refresh-all")
    assert (answer.status_code, answer.json()) == (202, {"status": "queued", "queued_count": 2})
    with store.reading() as connection:
        assert count_due(connection, clock()) == 2


def test_what_cannot_be_refreshed_says_why(caller: MakeCaller, store: Store, clock: FakeClock) -> None:
    visited(store, clock, 1)
    with store.writing() as connection:
        set_schedule_enabled(connection, 1, False, clock())
    refresher = caller("refresh")
    assert refresher.post("/api/feeds/7/refresh").status_code == 404
    answer = refresher.post("/api/feeds/1/refresh")
    assert answer.status_code == 409
    assert answer.json()["detail"].endswith("is paused")
    for wrong in ("0", "x", str(2**63)):
        assert refresher.post(f"/api/feeds/{wrong}/refresh").status_code == 422
