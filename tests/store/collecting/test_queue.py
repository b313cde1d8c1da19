"""The queue: who is due first, what a lease means, and that a late settlement changes nothing."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event, insert, select

from headwater.model import Item, Plan, Source, SourceMetadata, Validators, Visit
from headwater.store.collecting import queue
from headwater.store.collecting.push import FoundHub, read_subscription
from headwater.store.collecting.queue import (
    Settlement,
    claim_due,
    claim_sources,
    count_due,
    next_due_at,
    release_leases,
    reset_future_plans,
    settle_batch,
    with_words,
)
from headwater.store.collecting.sources import (
    add_source,
    change_address,
    change_source,
    get_source,
    remove_source,
    request_refresh,
    set_schedule_enabled,
)
from headwater.store.core.bulk import insert_returning
from headwater.store.core.database import Store
from headwater.store.core.tables import collection_records, source_leases, sources
from headwater.store.reading.items import ItemChange, list_items
from tests.clock import NOON
from tests.examples import examples


def make(connection: Connection, name: str, now: float = NOON) -> Source:
    return add_source(connection, name=name, type="rss.feed", url=f"https://{name}.example/", now=now)


def claim(connection: Connection, now: float = NOON, limit: int = 10) -> list[Source]:
    return claim_due(connection, limit, now=now, lease_until=now + 100)


def done(
    source: Source, at: float, plan: Plan, changes: Sequence[ItemChange] = (), **fields: object
) -> Settlement:
    after = replace(
        source,
        next_fetch_at=plan.next_at,
        plan_reason=plan.reason,
        last_fetched_at=at,
        fetch_count=source.fetch_count + 1,
        **fields,  # type: ignore[arg-type]
    )
    return Settlement(source, after, Visit(source.id, at, at, "unchanged"), tuple(changes))


def names(sources: Sequence[Source]) -> list[str]:
    return [source.name for source in sources]


def test_manual_first_then_new_then_the_longest_overdue(store: Store) -> None:
    with store.writing() as connection:
        waits = {"late": 20, "later": 10, "asked": 5000}
        made = {name: make(connection, name) for name in waits}
        settle_batch(
            connection,
            [done(source, NOON, Plan(NOON + waits[source.name])) for source in claim(connection)],
        )
        make(connection, "new")
        assert request_refresh(connection, [made["asked"].id], NOON + 30) == 1
        assert names(claim(connection, NOON + 30)) == ["asked", "new", "later", "late"]


def test_a_claimed_source_is_not_claimed_again_until_its_lease_ends(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (first,) = claim(connection)
        assert claim(connection, NOON + 99) == []
        (second,) = claim(connection, NOON + 100)
        assert (first.lease_no, second.lease_no) == (1, 2)


def test_a_settlement_after_the_lease_passed_on_changes_nothing(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (dead,) = claim(connection)
        (alive,) = claim(connection, NOON + 100)
        item = ItemChange("new", Item("ghost"), b"k" * 16, b"k" * 16, (), b"h", NOON)
        assert settle_batch(connection, [done(dead, NOON, Plan(NOON + 1), [item])]) == set()
        assert list_items(connection) == []
        assert settle_batch(connection, [done(alive, NOON + 101, Plan(NOON + 200))]) == {(alive.id, 2)}
        again = settle_batch(connection, [done(alive, NOON + 101, Plan(NOON + 200))])
        assert again == {(alive.id, 2)}, "its answer was lost, say: it is settled, and not written twice"
        assert get_source(connection, alive.id).fetch_count == 1


def test_settling_renames_unless_a_person_did_meanwhile(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        make(connection, "two")
        first, second = claim(connection)
        change_source(connection, second.id, NOON, name="Mine")
        settle_batch(
            connection, [done(each, NOON, Plan(NOON + 60), name="Its title") for each in (first, second)]
        )
        assert get_source(connection, first.id).name == "Its title"
        assert get_source(connection, second.id).name == "Mine"


def test_settling_stores_plan_validators_and_record(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (source,) = claim(connection)
        plan = Plan(NOON + 60, {"policy": "interval", "interval": 60.0})
        validators = Validators(b'W/"\xff odd"', b"not a date", b"\x00\x01")
        settle_batch(connection, [done(source, NOON, plan, validators=validators)])
        stored = get_source(connection, source.id)
        assert stored.validators == validators
        assert (stored.next_fetch_at, stored.plan_reason) == (plan.next_at, plan.reason)
        (record,) = connection.execute(select(collection_records)).all()
        assert (record.source_id, record.lease_no, record.status) == (source.id, 1, "unchanged")
        assert next_due_at(connection, NOON) == NOON + 60
        assert (count_due(connection, NOON + 59), count_due(connection, NOON + 60)) == (0, 1)


def test_released_sources_are_due_at_once(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        claimed = claim(connection)
        release_leases(connection, claimed)
        (again,) = claim(connection)
        assert again.lease_no == 2
        release_leases(connection, claimed)
        assert claim(connection, NOON + 1) == [], "a lease that passed on is not ours to give back"


def test_released_sources_keep_their_place_in_line(store: Store) -> None:
    with store.writing() as connection:
        for name in ("planned", "retired", "asked"):
            make(connection, name)
        claimed = sorted(claim(connection), key=lambda source: source.id)
        settle_batch(
            connection,
            [
                done(claimed[0], NOON, Plan(NOON + 9000)),
                done(claimed[1], NOON, Plan(NOON + 9000), status="retired"),
                done(claimed[2], NOON, Plan(NOON + 9000)),
            ],
        )
        make(connection, "new")
        request_refresh(connection, [claimed[2].id], NOON + 1)
        ids = [source.id for source in claimed] + [claimed[2].id + 1]
        release_leases(connection, claim_sources(connection, ids, now=NOON + 2, lease_until=NOON + 50))
        assert names(claim(connection, NOON + 3)) == ["asked", "new"]


def test_a_source_that_must_wait_is_due_when_it_is_told(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        claimed = claim(connection)
        release_leases(connection, claimed, {claimed[0].id: NOON + 7})
        assert claim(connection, NOON + 6) == []
        assert names(claim(connection, NOON + 7)) == ["one"]


def test_a_refresh_outlives_a_lease_that_ran_out(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (slow,) = claim(connection)
        request_refresh(connection, None, NOON + 200)
        settle_batch(connection, [done(slow, NOON, Plan(NOON + 9000))])
        assert names(claim(connection, NOON + 202)) == ["one"], (
            "that visit had begun before the refresh was asked for"
        )


def test_two_claims_of_one_source_in_one_group(store: Store) -> None:
    """A worker that slept through its lease may claim its own source again and settle both visits together."""
    for order in ((0, 1), (1, 0)):
        with store.writing() as connection:
            source = make(connection, f"one{order[0]}")
            (stale,) = claim_sources(connection, [source.id], now=NOON, lease_until=NOON + 1)
            (fresh,) = claim_sources(connection, [source.id], now=NOON + 2, lease_until=NOON + 9)
            both = [done(stale, NOON, Plan(NOON + 50)), done(fresh, NOON + 3, Plan(NOON + 60))]
            assert settle_batch(connection, [both[position] for position in order]) == {(source.id, 2)}
            assert get_source(connection, source.id).next_fetch_at == NOON + 60


def test_paused_and_removed_sources_leave_the_line(store: Store) -> None:
    with store.writing() as connection:
        kept, gone = make(connection, "kept"), make(connection, "gone")
        set_schedule_enabled(connection, kept.id, False, NOON)
        remove_source(connection, gone.id, NOON)
        assert claim(connection) == []
        set_schedule_enabled(connection, kept.id, True, NOON)
        assert names(claim(connection)) == ["kept"]


def test_what_was_asked_for_is_still_first_in_line_when_it_was_edited_during_a_visit_that_came_to_nothing(
    store: Store,
) -> None:
    with store.writing() as connection:
        make(connection, "one")
        settle_batch(connection, [done(source, NOON, Plan(NOON + 9000)) for source in claim(connection)])
        request_refresh(connection, None, NOON + 10)
        claimed = claim(connection, NOON + 10)
        change_source(connection, claimed[0].id, NOON + 11, folder="new")
        release_leases(connection, claimed)
        again = claim(connection, NOON + 12)
        change_source(connection, again[0].id, NOON + 13, folder="newer")
        assert [source.lease_no for source in claim(connection, NOON + 112)] == [4], "its holder was killed"


def test_pausing_during_a_visit_holds_after_it(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (source,) = claim(connection)
        set_schedule_enabled(connection, source.id, False, NOON)
        settle_batch(connection, [done(source, NOON, Plan(NOON + 1))])
        assert claim(connection, NOON + 1000) == []


def test_an_address_given_during_a_visit_is_not_taken_for_the_one_visited(store: Store) -> None:
    """Neither its validators nor where it moved to: the next visit goes to the new address, and asks for all of it."""
    with store.writing() as connection:
        make(connection, "one")
        (source,) = claim(connection)
        change_address(connection, source, "https://edited.example/", NOON)
        settlement = done(
            source,
            NOON,
            Plan(NOON + 10),
            validators=Validators(etag=b'"old"', last_modified=b"then", body_hash=b"x" * 16),
            url="https://moved.example/",
            moved_to="https://moving.example/",
            moved_count=2,
        )
        lease = settle_batch(connection, [settlement])
        assert lease == {(source.id, source.lease_no)}
        after = get_source(connection, source.id)
        assert (after.url, after.validators) == ("https://edited.example/", Validators())
        assert (after.moved_to, after.moved_count, after.fetch_count) == (None, 0, 1)
        assert names(claim(connection, NOON + 10)) == ["one"]


def test_a_refresh_asked_for_during_a_visit_comes_after_it(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (source,) = claim(connection)
        assert request_refresh(connection, None, NOON + 1) == 1
        assert claim(connection, NOON + 2) == [], "one visit at a time"
        settle_batch(connection, [done(source, NOON, Plan(NOON + 5000))])
        assert names(claim(connection, NOON + 3)) == ["one"]


def test_gone_source_is_visited_only_when_asked_for(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (source,) = claim(connection)
        settle_batch(connection, [done(source, NOON, Plan(NOON + 1), status="retired")])
        assert claim(connection, NOON + 1000) == []
        request_refresh(connection, None, NOON + 1000)
        assert names(claim(connection, NOON + 1000)) == ["one"]


def test_claiming_by_id_ignores_plans_but_not_leases(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (source,) = claim(connection)
        assert claim_sources(connection, [source.id], now=NOON + 1, lease_until=NOON + 50) == []
        settle_batch(connection, [done(source, NOON, Plan(NOON + 5000))])
        assert len(claim_sources(connection, [source.id], now=NOON + 1, lease_until=NOON + 50)) == 1


def test_two_workers_share_the_line(store: Store) -> None:
    """On PostgreSQL a second worker passes by what the first is just claiming; on SQLite it waits its turn."""
    with store.writing() as connection:
        for number in range(10):
            make(connection, f"s{number}")
    if store.is_sqlite:
        with store.writing() as connection:
            first = claim(connection, limit=5)
        with store.writing() as connection:
            second = claim(connection, limit=5)
    else:
        with store.writing() as one, store.writing() as two:
            first = claim(one, limit=5)
            second = claim(two, limit=5)
    assert len({source.id for source in first + second}) == 10


def test_claim_skips_source_leased_concurrently(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a claim may find on PostgreSQL, whose view of the leases is older than its locks."""
    with store.writing() as connection:
        his, mine = make(connection, "his"), make(connection, "mine")

        def a_moment_too_late(*args: Any) -> list[Any]:
            connection.execute(insert(source_leases).values((his.id, 1, NOON + 50)))
            return insert_returning(*args)

        monkeypatch.setattr(queue, "insert_returning", a_moment_too_late)
        assert names(claim(connection)) == ["mine"]
        monkeypatch.undo()
        assert dict(
            connection.execute(select(source_leases.c.source_id, source_leases.c.lease_until)).all()
        ) == {
            his.id: NOON + 50,
            mine.id: NOON + 100,
        }


def test_who_comes_too_late_for_all_he_found_looks_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or he would take it that nothing is due, and a run that visits what is due would end too early."""
    with store.writing() as connection:
        his, _ = make(connection, "his", NOON - 1), make(connection, "mine")

        def a_moment_too_late(*args: Any) -> list[Any]:
            monkeypatch.undo()
            connection.execute(insert(source_leases).values((his.id, 1, NOON + 50)))
            return insert_returning(*args)

        monkeypatch.setattr(queue, "insert_returning", a_moment_too_late)
        assert names(claim(connection, limit=1)) == ["mine"]


def test_a_claim_and_a_look_read_no_more_than_they_need_however_many_are_due(store: Store) -> None:
    """PostgreSQL must not sort all that are due for the first few, nor read every source for a few leases."""
    count, seen = 20_000, list[tuple[str, Any]]()
    numbers = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT {{}} FROM n"

    def note(conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if statement.startswith("SELECT") and "source_leases" in statement:
            seen.append((statement, parameters))

    with store.writing() as connection:
        values = f"'s', 'rss.feed', 'https://s.example/' || i, 's' || i, {NOON} - i, {NOON}, {NOON}"
        connection.exec_driver_sql(
            "INSERT INTO sources (name, type, url, url_key, due_at, created_at, updated_at) "
            + numbers.format(values)
        )
        connection.exec_driver_sql(
            f"INSERT INTO source_leases SELECT id, 1, {NOON + 50} FROM sources ORDER BY due_at LIMIT 500"
        )
        connection.exec_driver_sql("ANALYZE")
        event.listen(store.engine, "before_cursor_execute", note)
        try:
            assert len(claim(connection)) == 10
            assert next_due_at(connection, NOON) is not None
            assert count_due(connection, NOON) == count - 510
        finally:
            event.remove(store.engine, "before_cursor_execute", note)
        assert len(seen) == 4
        explain = "EXPLAIN QUERY PLAN" if store.is_sqlite else "EXPLAIN"
        for statement, parameters in seen:
            plan = str(connection.exec_driver_sql(f"{explain} {statement}", parameters).all())
            assert not any(word in plan for word in ("TEMP B-TREE", "Sort", "Hash", "Merge")), plan


class UndoneError(Exception):
    """Ends an example, so that the next begins with an empty database."""


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40)
)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("claim"), st.integers(1, 3)),
            st.tuples(st.sampled_from(["settle", "release", "send away"]), st.integers(0, 9)),
            st.tuples(st.just("wait"), st.sampled_from([1, 60, 100])),
            st.tuples(st.just("refresh"), st.integers(0, 2)),
        ),
        max_size=25,
    )
)
def test_one_lease_at_a_time_and_no_number_twice(store: Store, steps: list[tuple[str, int]]) -> None:
    """Against a model: whatever happens to leases, one visit counts, and a source in line comes up again."""
    with suppress(UndoneError), store.writing() as connection:
        made = [make(connection, f"s{number}", NOON - 3 + number) for number in range(3)]
        due = {source.id: NOON for source in made}
        held: dict[int, tuple[int, float]] = {}
        settled: set[tuple[int, int]] = set()
        given: list[Source] = []
        now = NOON
        for step, number in steps:
            free = {each for each, at in due.items() if at <= now and held.get(each, (0, 0.0))[1] <= now}
            assert count_due(connection, now) == len(free)
            if step == "claim":
                claimed = claim(connection, now, limit=number)
                assert {source.id for source in claimed} <= free
                assert len(claimed) == min(number, len(free))
                for source in claimed:
                    earlier = [each.lease_no for each in given if each.id == source.id]
                    assert source.lease_no > max(earlier, default=0)
                    held[source.id] = (source.lease_no, now + 100)
                given += claimed
            elif step == "wait":
                now += number
            elif step == "refresh":
                request_refresh(connection, [made[number].id], now)
                due[made[number].id] = now
            elif given:
                source = given[number % len(given)]
                lease = source.id, source.lease_no
                is_held = held.get(source.id, (0, 0.0))[0] == source.lease_no
                if step == "settle":
                    # Begun now, so that it answers what was asked for before.
                    done_now = settle_batch(connection, [done(source, now, Plan(now + 30))])
                    assert done_now == ({lease} if is_held or lease in settled else set())
                    settled |= done_now
                    due[source.id] = now + 30 if is_held else due[source.id]
                else:
                    later = {source.id: now + 7} if step == "send away" else None
                    release_leases(connection, [source], later)
                    due[source.id] = now + 7 if is_held and later else due[source.id]
                if is_held:
                    del held[source.id]
            at_last = [held[each][1] if held.get(each, (0, 0.0))[1] > now else at for each, at in due.items()]
            first = next_due_at(connection, now)
            assert first is not None
            assert (first <= now) == (min(at_last) <= now)
            assert first <= now or first == min(at_last)
        raise UndoneError


def test_a_moved_source_does_not_move_in_with_another(store: Store) -> None:
    with store.writing() as connection:
        mover, other = make(connection, "mover"), make(connection, "other")
        claimed = {source.id: source for source in claim(connection)}
        settle_batch(connection, [done(claimed[mover.id], NOON, Plan(NOON + 1), url=other.url)])
        assert get_source(connection, mover.id).url == mover.url
        (again,) = claim_sources(connection, [mover.id], now=NOON + 1, lease_until=NOON + 9)
        settle_batch(connection, [done(again, NOON, Plan(NOON + 1), url="https://new.example/feed")])
        assert get_source(connection, mover.id).url == "https://new.example/feed"


def test_source_is_free_at_the_moment_its_lease_ends(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        claim(connection)
        assert (count_due(connection, NOON + 99), next_due_at(connection, NOON + 99)) == (0, NOON + 100)
        assert count_due(connection, NOON + 100) == 1
        free = next_due_at(connection, NOON + 100)
        assert free is not None and free < NOON + 100, "its place in line, not the end of its lease"


def test_plans_made_by_a_clock_that_was_ahead_are_due_and_no_others(store: Store) -> None:
    wrong = NOON + 30 * 3600
    with store.writing() as connection:
        for name in ("ahead", "due", "far"):
            make(connection, name)
        ahead, due, far = sorted(claim(connection), key=lambda source: source.id)
        settle_batch(
            connection,
            [
                done(ahead, wrong, Plan(wrong + 60)),
                done(due, wrong, Plan(NOON + 60)),  # visited by that clock too, and due soon all the same
                done(far, NOON, Plan(wrong + 60)),  # planned that far ahead by a right clock
            ],
        )
        leased = make(connection, "leased")
        claim_sources(connection, [leased.id], now=wrong, lease_until=wrong + 100)
        before = get_source(connection, due.id).next_fetch_at
        assert reset_future_plans(connection, NOON) == 2, "one plan, one lease"
        assert get_source(connection, ahead.id).next_fetch_at == NOON
        assert get_source(connection, due.id).next_fetch_at == before
        assert get_source(connection, far.id).next_fetch_at == wrong + 60
        assert names(claim(connection, NOON)) == ["leased", "ahead"]


def test_visit_is_recorded_with_what_it_was_planned_by(store: Store) -> None:
    plan = Plan(NOON + 3600, {"policy": "cadence"})

    def visited(at: float, asked_at: float | None = None, **fields: Any) -> str:
        with store.writing() as connection:
            if asked_at is not None:
                request_refresh(connection, [source_id], asked_at)
            [source] = claim_sources(connection, [source_id], now=at, lease_until=at + 100)
            settlement = replace(done(source, at, Plan(at + 3600, plan.reason)), **fields)
            settle_batch(connection, [settlement])
            record = select(collection_records.c.planned_by).order_by(collection_records.c.id.desc())
            return str(connection.execute(record.limit(1)).scalar_one())

    with store.writing() as connection:
        source_id = make(connection, "one").id
    assert visited(NOON) == "first"
    assert visited(NOON + 3600) == "cadence"
    assert visited(NOON + 3700) == "asked", "before its time"
    assert visited(NOON + 9000, asked_at=NOON + 8000) == "asked"
    assert visited(NOON + 9100, pushed=True) == "pushed"


def test_first_visit_that_fails_leaves_the_next_one_to_be_the_first(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (source,) = claim(connection)
        failed = done(source, NOON, Plan(NOON + 60, {"policy": "interval"}))
        after = replace(failed.after, last_fetched_at=None)
        settle_batch(connection, [replace(failed, after=after)])
        (source,) = claim(connection, NOON + 60)
        settle_batch(connection, [done(source, NOON + 60, Plan(NOON + 120, {"policy": "interval"}))])
        query = select(collection_records.c.planned_by).order_by(collection_records.c.id)
        assert connection.execute(query).scalars().all() == ["first", "first"]


def test_plan_of_a_source_that_was_edited_meanwhile_is_marked_as_outdated(store: Store) -> None:
    with store.writing() as connection:
        for name in ("edited", "left"):
            make(connection, name)
        edited, left = sorted(claim(connection), key=lambda source: source.id)
        connection.execute(sources.update().where(sources.c.id == edited.id).values(planned_from=2))
        settle_batch(
            connection, [done(each, NOON, Plan(NOON + 60), planned_from=1) for each in (edited, left)]
        )
        query = select(sources.c.planned_from).order_by(sources.c.id)
        assert connection.execute(query).scalars().all() == [None, 1]


def test_settling_stores_what_the_feed_says_of_itself(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (source,) = claim(connection)
        said = SourceMetadata("Its title", site_url="https://one.example/home")
        settle_batch(connection, [done(source, NOON, Plan(NOON + 60), metadata=said)])
        assert get_source(connection, source.id).metadata == said


def test_words_are_made_of_changed_items_alone() -> None:
    source = Source(1, "one", "rss.feed", "https://one.example/")
    items = {
        kind: ItemChange(kind, Item(kind, title="River"), b"k", b"k", (), b"h", NOON)
        for kind in ("new", "changed")
    }
    settlement = with_words(done(source, NOON, Plan(NOON + 60), list(items.values())))
    assert {
        change.kind: change.words is not None and "river" in change.words for change in settlement.changes
    } == {
        "new": False,
        "changed": True,
    }
    assert settlement.before == source


def test_settling_stores_the_subscription_that_a_visit_asks_for(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        (source,) = claim(connection)
        hub = FoundHub("https://hub.example/", "https://one.example/feed", "token", "secret")
        settle_batch(connection, [replace(done(source, NOON, Plan(NOON + 60)), push=hub)])
        subscription = read_subscription(connection, source.id)
        assert subscription is not None
        assert (subscription.hub, subscription.topic) == (hub.hub, hub.topic)


def test_record_says_since_when_items_could_be_found_unless_visits_failed(store: Store) -> None:
    with store.writing() as connection:
        make(connection, "one")
        for at, failures in ((NOON, 0), (NOON + 60, 1), (NOON + 120, 0)):
            (source,) = claim(connection, at)
            settle_batch(connection, [done(source, at, Plan(at + 60), consecutive_failures=failures)])
        query = select(collection_records.c.since_at).order_by(collection_records.c.id)
        assert connection.execute(query).scalars().all() == [None, NOON, None]
