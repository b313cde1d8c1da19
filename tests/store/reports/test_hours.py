"""Visits added up say the same as the records, whatever span is asked for and whenever they were added up."""

from random import Random

import pytest
from sqlalchemy import Connection, func, select

from headwater.store.collecting.sources import add_source
from headwater.store.core.bulk import insert_rows
from headwater.store.core.database import Store
from headwater.store.core.tables import collection_minutes, collection_records
from headwater.store.reports.hours import (
    HOUR,
    MINUTES_KEPT_SECONDS,
    SLOT,
    VISIT_SECONDS,
    Rolled,
    add_up,
    delete_records,
    hour_of,
    read_rolled_minutes,
    roll_minutes,
    set_rolled,
    slot_of,
    visits_ever,
    visits_since,
    write_hours,
)
from headwater.store.reports.trends import read_hours
from tests.clock import NOON

COLUMNS = (
    "source_id",
    "lease_no",
    "status",
    "started_at",
    "finished_at",
    "items_new",
    "error_kind",
    "http_status",
)
SPANS = (1.0, SLOT, 3_599.0, HOUR, 5_000.0, 24 * HOUR, 24 * HOUR + 1, 40 * HOUR)


def visits(connection: Connection, rng: Random, count: int, *, between: tuple[float, float]) -> None:
    """So many visits of one source, on record."""
    known = connection.execute(select(func.count()).select_from(collection_records)).scalar_one()
    rows = []
    for number in range(known, known + count):
        at = rng.uniform(*between)
        kind = rng.choice((None, None, "timeout"))
        rows.append(
            (
                1,
                number,
                "failed" if kind else "new",
                at,
                at + 1,
                rng.randrange(5),
                kind,
                rng.choice((200, 304)),
            )
        )
    insert_rows(connection, collection_records, COLUMNS, rows)


@pytest.fixture
def recorded(store: Store, rng: Random) -> Store:
    with store.writing() as connection:
        add_source(connection, name="a", type="rss.feed", url="https://a.example/", now=NOON)
        visits(connection, rng, 1_500, between=(NOON - 60 * HOUR, NOON))
    return store


def told(connection: Connection, now: float) -> list[object]:
    return [*(visits_since(connection, now - span) for span in SPANS), read_hours(connection, now, 48)]


def test_minutes_say_the_same_as_the_records(recorded: Store, rng: Random) -> None:
    with recorded.writing() as connection:
        now = NOON
        for _ in range(20):
            before = told(connection, now)
            roll_minutes(connection, now)
            assert told(connection, now) == before
            later = now + rng.choice((30.0, SLOT, 1_000.0, 3 * HOUR))
            visits(connection, rng, 30, between=(now, later))
            now = later
        roll_minutes(connection, now)
        rolled = read_rolled_minutes(connection)
        assert now - VISIT_SECONDS - SLOT < rolled.until <= now - VISIT_SECONDS
        # They are read, not the records: nothing else is left of the middle of a span.
        whole = visits_since(connection, now - 2 * HOUR)
        connection.execute(
            collection_records.delete().where(
                collection_records.c.started_at >= slot_of(now - 2 * HOUR) + SLOT,
                collection_records.c.started_at < rolled.until,
            )
        )
        assert visits_since(connection, now - 2 * HOUR) == whole


def test_minutes_are_kept_for_days_not_for_ever(recorded: Store) -> None:
    with recorded.writing() as connection:
        for hours in (0, 1, 60):
            roll_minutes(connection, NOON + hours * HOUR)
            # A collector.
            connection.execute(
                collection_records.insert().values(
                    source_id=1,
                    lease_no=10_000 + hours,
                    status="new",
                    started_at=NOON + (hours + 1) * HOUR - VISIT_SECONDS - 2 * SLOT,
                    finished_at=NOON,
                )
            )
        roll_minutes(connection, NOON + 61 * HOUR)
        oldest = connection.execute(select(func.min(collection_minutes.c.slot_at))).scalar_one()
        assert oldest >= NOON + 61 * HOUR - VISIT_SECONDS - SLOT - MINUTES_KEPT_SECONDS


def test_a_visit_that_ends_late_is_added(recorded: Store, rng: Random) -> None:
    with recorded.writing() as connection:
        roll_minutes(connection, NOON)
        visits(connection, rng, 1, between=(NOON - VISIT_SECONDS - SLOT, NOON - VISIT_SECONDS - 1))
        roll_minutes(connection, NOON + SLOT)
        assert (
            visits_since(connection, NOON - 40 * HOUR).total
            == connection.execute(
                select(func.count())
                .select_from(collection_records)
                .where(collection_records.c.started_at >= NOON - 40 * HOUR)
            ).scalar_one()
        )


def test_a_clock_that_was_ahead_hides_no_visit_for_long(recorded: Store, rng: Random) -> None:
    with recorded.writing() as connection:
        roll_minutes(connection, NOON)
        visits(connection, rng, 1, between=(NOON + 100 * HOUR, NOON + 100 * HOUR + 1))
        roll_minutes(connection, NOON + 101 * HOUR)
        connection.execute(
            collection_records.delete().where(collection_records.c.started_at > NOON + 99 * HOUR)
        )
        visits(connection, rng, 20, between=(NOON - 60, NOON))
        roll_minutes(connection, NOON + SLOT)
        assert visits_since(connection, NOON - 60).total >= 20


def test_what_never_changes_again_is_one_sum(recorded: Store) -> None:
    with recorded.writing() as connection:
        everything = visits_since(connection, 0.0)
        assert visits_ever(connection) == everything
        until = hour_of(NOON)
        write_hours(connection, add_up(connection, until - 100 * HOUR, until))
        for final in (50, 30, 30, 2, 40):  # the last: by a clock that was ahead
            set_rolled(connection, Rolled(rolled_until=until, final_until=until - final * HOUR), NOON)
            assert visits_ever(connection) == everything
        delete_records(connection, until - 40 * HOUR, 10_000)
        assert visits_ever(connection) == everything
        assert 0 < everything.not_modified < everything.total
