"""The numbers are the database's, and are found without reading all of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event

from headwater.model import Plan
from headwater.store.collecting.outages import clear_outage, mark_outage
from headwater.store.collecting.queue import claim_sources, settle_batch
from headwater.store.collecting.sources import remove_source, request_refresh, set_schedule_enabled
from headwater.store.core.database import Store
from headwater.store.core.tables import sources as sources_table
from headwater.store.reports.overview import LastVisit, NextVisit, read_status
from tests.clock import NOON
from tests.store.collecting.test_queue import done, make


def test_status_counts_every_kind_of_source(store: Store) -> None:
    with store.writing() as connection:
        made = {name: make(connection, name).id for name in "abcdefgh"}
        set_schedule_enabled(connection, made["b"], False, NOON)
        remove_source(connection, made["c"], NOON)
        for name, status, kind in (
            ("d", "paused", "dns"),
            ("e", "error", "dns"),
            ("f", "retired", None),
            ("g", "needs_attention", "unauthorized"),
            ("h", "ok", "timeout"),
        ):
            connection.execute(
                sources_table.update()
                .where(sources_table.c.id == made[name])
                .values(
                    status=status,
                    last_error_kind=kind,
                    consecutive_failures=1 if kind else 0,
                    is_active=status in ("ok", "needs_attention"),
                )
            )
        counts = read_status(connection, NOON).sources
    assert (counts.total, counts.active) == (7, 3)
    assert counts.states == {"on_time": 0, "late": 0, "failing": 4, "pending": 1, "paused": 1, "gone": 1}
    assert (counts.paused_by_error, counts.needs_attention) == (2, 1)
    assert counts.failing == {"dns": 2, "unauthorized": 1, "timeout": 1}


def test_status_of_an_empty_database(store: Store) -> None:
    with store.reading() as connection:
        status = read_status(connection, NOON)
    assert (status.sources.total, status.due, status.lag_seconds, status.in_flight) == (0, 0, 0, 0)
    assert (status.next_due_at, status.last_visits, status.next_visits, status.outages) == (None, [], [], [])
    assert (status.last_24h.total, status.last_24h.success_rate) == (0, None)


def test_status_tells_lag_leases_and_visits(store: Store) -> None:
    with store.writing() as connection:
        first, second, _ = (make(connection, name, NOON - 50) for name in "abc")
        claimed = claim_sources(connection, [first.id, second.id], now=NOON, lease_until=NOON + 300)
        claimed.sort(key=lambda source: source.id)
        assert read_status(connection, NOON).in_flight == 2
        assert read_status(connection, NOON).lag_seconds == 50, "the third is new and waits"
        settle_batch(
            connection,
            [
                done(claimed[0], NOON - 20, Plan(NOON + 60)),
                done(claimed[1], NOON - 10, Plan(NOON - 100)),
            ],
        )
        status = read_status(connection, NOON)
        assert (status.due, status.lag_seconds, status.in_flight) == (2, 100, 0)
        assert [visit.source_id for visit in status.last_visits] == [second.id, first.id]
        assert status.last_visits[0] == LastVisit(second.id, "b", NOON - 10, "unchanged", 0, None)
        assert [visit.source_name for visit in status.next_visits] == ["c", "b", "a"]
        assert status.next_visits[2] == NextVisit(first.id, "a", NOON + 60)
        request_refresh(connection, [first.id], NOON - 500)
        status = read_status(connection, NOON)
        assert (status.due, status.lag_seconds, status.next_due_at) == (3, 500, NOON - 500)
        assert read_status(connection, NOON + 86_400).last_24h.total == 0
        assert status.last_24h.total == status.today.total == 2
        assert status.last_24h.success_rate == 1.0


def test_an_outage_of_ours_is_told_until_it_is_over_or_the_teller_is_gone(store: Store) -> None:
    with store.writing() as connection:
        mark_outage(connection, "one", NOON - 30, NOON)
        mark_outage(connection, "two", NOON - 40, NOON - 10_000)
        (outage,) = read_status(connection, NOON).outages
        assert (outage.machine, outage.since_at) == ("one", NOON - 30)
        clear_outage(connection, "one")
        assert read_status(connection, NOON).outages == []


@contextmanager
def statements(store: Store) -> Iterator[list[tuple[str, Any]]]:
    seen: list[tuple[str, Any]] = []

    def note(conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        seen.append((statement, parameters))

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(store.engine, "before_cursor_execute", note)


BIG = ("items", "collection_records")


def whole_scans(connection: Connection, statement: str, parameters: Any) -> list[str]:
    """The steps of a statement's plan that read all of a big table."""
    if connection.dialect.name == "sqlite":
        steps = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
        # In the order of an index, a few are all that is read.
        few = (
            "collection_records USING INDEX ix_collection_records_started_at" if "LIMIT" in statement else "-"
        )
        return [
            step
            for step in steps
            if step.startswith("SCAN") and any(name in step for name in BIG) and few not in step
        ]
    connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
    (plan,) = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
    found, steps = [], [plan["Plan"]]
    while steps:
        step = steps.pop()
        steps += [{**child, "limited": step["Node Type"] == "Limit"} for child in step.get("Plans", ())]
        by_index = step.get("limited") or {"Index Cond", "Recheck Cond"} & step.keys()
        if step.get("Relation Name") in BIG and not by_index:
            found.append(str(step))
    return found


def test_no_number_reads_all_items_or_all_records(store: Store) -> None:
    with store.reading() as connection, statements(store) as seen:
        read_status(connection, NOON)
    with store.reading() as connection:
        assert sum(any(name in statement for name in BIG) for statement, _ in seen) >= 2
        for statement, parameters in seen:
            assert whole_scans(connection, statement, parameters) == [], statement


def test_unusual_sources_are_counted_by_their_own_index(store: Store) -> None:
    with store.reading() as connection, statements(store) as seen:
        read_status(connection, NOON)
    (counting,) = [each for each in seen if "sources.schedule_enabled" in each[0] and "GROUP BY" in each[0]]
    explain = "EXPLAIN QUERY PLAN" if store.is_sqlite else "EXPLAIN"
    with store.reading() as connection:
        if not store.is_sqlite:
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        plan = connection.exec_driver_sql(f"{explain} {counting[0]}", counting[1]).all()
    assert "ix_sources_unusual" in str(plan)
