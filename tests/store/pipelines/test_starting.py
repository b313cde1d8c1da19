"""Runs start with their items, once for each version, and do what people ask of them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import event, select

from headwater.errors import InputError, NotFoundError
from headwater.model import Item, Plan
from headwater.store.collecting.queue import settle_batch
from headwater.store.core.database import Store
from headwater.store.core.tables import pipeline_executions
from headwater.store.pipelines.attaching import attach, remove_template
from headwater.store.pipelines.starting import (
    RunQuery,
    cancel,
    find_item_ids,
    find_run_ids,
    get_run,
    list_runs,
    rerun,
    retry,
    start_runs,
)
from headwater.store.pipelines.templates import Template
from headwater.store.reading.items import ItemChange
from headwater.store.reading.selection import Selection
from tests.clock import NOON
from tests.pipeline.making import make_items, make_template, step
from tests.store.collecting.test_queue import claim, done, make

pytestmark = pytest.mark.usefixtures("step_plugin")


def change(number: int, content: bytes = b"a", kind: str = "new") -> ItemChange:
    key = f"{number}".encode()
    return ItemChange(kind, Item(f"{number}", title=f"Item {number}"), key, key, (), content, NOON)  # type: ignore[arg-type]


def visit(store: Store, at: float, *changes: ItemChange) -> None:
    with store.writing() as connection:
        (source,) = claim(connection, at)
        assert settle_batch(connection, [done(source, at, Plan(at + 1), changes)])


def versions(store: Store) -> list[tuple[int, int, str]]:
    with store.reading() as connection:
        return [
            (run.item_id, run.item_version, run.trigger)
            for run in reversed(list_runs(connection, RunQuery(), limit=None))
        ]


def attached(store: Store, *, run_on_change: bool = False) -> Template:
    template = make_template(store, step("note_test"), step("fail_test"), run_on_change=run_on_change)
    with store.writing() as connection:
        source = make(connection, "one")
        attach(connection, template.id, "source", [source.id], 0.0)
    return template


def test_a_new_item_starts_a_run_in_the_transaction_that_stores_it(store: Store) -> None:
    attached(store)
    visit(store, NOON, change(1), change(2))
    assert versions(store) == [(1, 1, "scheduled"), (2, 1, "scheduled")]
    with store.reading() as connection:
        run = get_run(connection, 1)
    assert (run.status, run.current_step_index, run.next_step_type) == ("pending", 0, "note_test")
    assert [(each.step_type, each.status) for each in run.steps] == [
        ("note_test", "pending"),
        ("fail_test", "pending"),
    ]
    if not store.is_sqlite:
        with store.reading() as connection:
            jobs = connection.exec_driver_sql(
                "SELECT queue_name, task_name, lock, args FROM procrastinate.procrastinate_jobs ORDER BY id"
            ).all()
        assert [tuple(job) for job in jobs] == [
            ("note_test", "headwater.advance", f"run-{n}", {"run_id": n}) for n in (1, 2)
        ]


def test_a_changed_item_starts_one_only_if_the_template_says_so(store: Store) -> None:
    attached(store, run_on_change=True)
    visit(store, NOON, change(1))
    visit(store, NOON + 2, change(1, b"b", "changed"))
    visit(store, NOON + 4, change(1, b"b", "changed"))  # the same again
    assert versions(store) == [(1, 1, "scheduled"), (1, 2, "scheduled")]


def test_by_default_it_does_not(store: Store) -> None:
    attached(store)
    visit(store, NOON, change(1))
    visit(store, NOON + 2, change(1, b"b", "changed"))
    assert versions(store) == [(1, 1, "scheduled")]


def test_a_source_without_a_template_costs_nothing(store: Store) -> None:
    make_template(store, step("note_test"))
    with store.writing() as connection:
        make(connection, "one")
    statements: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    visit(store, NOON, change(1))
    assert versions(store) == []
    assert not [statement for statement in statements[:-1] if "INSERT INTO pipeline" in statement]
    assert not [statement for statement in statements if "pipeline_templates WHERE" in statement]


def test_a_template_removed_during_the_visit_starts_nothing(store: Store) -> None:
    template = attached(store)
    with store.writing() as connection:
        (source,) = claim(connection)
        remove_template(connection, template.id)
        settle_batch(connection, [done(replace(source), NOON, Plan(NOON + 1), [change(1)])])
    assert versions(store) == []


def test_one_run_for_a_version_unless_forced(store: Store) -> None:
    template = make_template(store, step("note_test"))
    item_ids = make_items(store, 2)
    with store.writing() as connection:
        assert len(start_runs(connection, template, item_ids, NOON)) == 2
        assert start_runs(connection, template, item_ids, NOON) == []
        assert len(start_runs(connection, template, item_ids[:1], NOON, forced=True)) == 1
        assert len(start_runs(connection, template, item_ids[:1], NOON, forced=True)) == 1
        numbers = connection.execute(
            select(pipeline_executions.c.item_id, pipeline_executions.c.forced_no).order_by("id")
        ).all()
    assert [tuple(row) for row in numbers] == [(1, 0), (2, 0), (1, 1), (1, 2)]


def test_runs_are_found_by_every_condition(store: Store) -> None:
    template = make_template(store, step("note_test"))
    other = make_template(store, step("note_test"), name="other")
    item_ids = make_items(store, 2)
    elsewhere = make_items(store, 1, source_id=2)
    with store.writing() as connection:
        start_runs(connection, template, item_ids, NOON)
        start_runs(connection, other, elsewhere, NOON + 10)
        cancel(connection, 2, NOON)
        assert find_run_ids(connection, RunQuery(status="pending")) == [1, 3]
        assert find_run_ids(connection, RunQuery(template_id=other.id)) == [3]
        assert find_run_ids(connection, RunQuery(source_id=1)) == [1, 2]
        assert find_run_ids(connection, RunQuery(since_at=NOON + 5)) == [3]
        assert find_run_ids(connection, RunQuery(run_ids=[2, 3], status="skipped")) == [2]
        assert [run.id for run in list_runs(connection, RunQuery(), limit=2)] == [3, 2]
        assert [run.id for run in list_runs(connection, RunQuery(), after_id=1)] == [2, 3]
        assert find_item_ids(connection, None, Selection(source_ids=(2,))) == elsewhere
        with pytest.raises(NotFoundError, match="99"):
            find_item_ids(connection, [1, 99])


def test_what_cannot_be_asked_of_a_run(store: Store) -> None:
    template = make_template(store, step("note_test"), step("note_test"))
    item_ids = make_items(store, 1)
    with store.writing() as connection:
        [run_id] = start_runs(connection, template, item_ids, NOON)
        with pytest.raises(InputError, match="cancel it first"):
            rerun(connection, run_id, 0, NOON)
        with pytest.raises(InputError, match="cancel it first"):
            retry(connection, run_id, NOON)
        assert cancel(connection, run_id, NOON) is True
        with pytest.raises(InputError, match="has ended already"):
            cancel(connection, run_id, NOON)
        with pytest.raises(InputError, match="has no step 3"):
            rerun(connection, run_id, 2, NOON)
        with pytest.raises(NotFoundError):
            cancel(connection, 99, NOON)
        retry(connection, run_id, NOON)
        assert get_run(connection, run_id).status == "pending"


def test_of_two_who_retry_at_once_one_is_told(store: Store) -> None:
    """Or the second would take the run out of the hands of a worker that has begun on it."""
    template, item_ids = make_template(store, step("fail_test")), make_items(store, 1)
    with store.writing() as connection:
        [run_id] = start_runs(connection, template, item_ids, NOON)
        cancel(connection, run_id, NOON)

    def retry_it() -> None:
        with store.writing() as connection:
            retry(connection, run_id, NOON)

    with ThreadPoolExecutor(1) as others:
        with store.writing() as connection:
            retry(connection, run_id, NOON)
            second = others.submit(retry_it)
            with pytest.raises(TimeoutError):
                second.result(timeout=1)
        with pytest.raises(InputError, match="pending"):
            second.result(timeout=60)


def test_a_removed_template_leaves_its_runs(store: Store) -> None:
    template = make_template(store, step("note_test"))
    item_ids = make_items(store, 1)
    with store.writing() as connection:
        [run_id] = start_runs(connection, template, item_ids, NOON)
        remove_template(connection, template.id)
        run = get_run(connection, run_id)
    assert (run.template_id, run.template_name, len(run.steps)) == (None, None, 1)
