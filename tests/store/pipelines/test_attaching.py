"""Templates attach to sources, folders, types, tags and everything; all that match run, one after the other."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from headwater.errors import InputError, NotFoundError
from headwater.model import Item, Plan, Source
from headwater.pipeline.worker import Worker
from headwater.store.collecting.queue import settle_batch
from headwater.store.collecting.sources import add_source, get_source
from headwater.store.core.database import Store
from headwater.store.core.tables import pipeline_executions
from headwater.store.pipelines.attaching import (
    Attachment,
    attach,
    attachments_of,
    detach,
    detach_all,
    name_attachments,
    order_templates,
    remove_template,
    templates_for,
)
from headwater.store.pipelines.runs import take_back_waits
from headwater.store.pipelines.starting import RunQuery, cancel, list_runs
from headwater.store.pipelines.templates import Template, list_templates
from headwater.store.reading.items import ItemChange
from tests.clock import NOON
from tests.pipeline.making import make_settings, make_template, step, until_ended, working
from tests.store.collecting.test_queue import claim, done

pytestmark = pytest.mark.usefixtures("step_plugin")


def make_source(
    connection: Connection, name: str, folder: str | None = None, type_: str = "rss.feed"
) -> Source:
    return add_source(
        connection, name=name, type=type_, url=f"https://{name}.example/", folder=folder, now=NOON
    )


def make(store: Store, *names: str, **more: Any) -> list[Template]:
    return [make_template(store, step("note_test", text=name), name=name, **more) for name in names]


def find(number: int, *categories: str) -> ItemChange:
    key = bytes([number]) * 16
    item = Item(f"id-{number}", title=f"Item {number}", categories=categories)
    return ItemChange("new", item, key, key, (), b"h", NOON)


def visit(store: Store, *changes: ItemChange, at: float = NOON) -> None:
    """Let every source find these items."""
    with store.writing() as connection:
        for source in claim(connection, at):
            settle_batch(connection, [done(source, at, Plan(at + 1), changes)])


def started(store: Store) -> list[tuple[str, str | None]]:
    """Item and template of every run, in the order of starting."""
    with store.reading() as connection:
        runs = list_runs(connection, RunQuery(), limit=None)
        return [(run.item_title, run.template_name) for run in reversed(runs)]


def test_all_templates_that_concern_an_item_run_in_their_order(store: Store) -> None:
    everything, by_folder, by_type, by_source, elsewhere = make(
        store, "all", "folder", "type", "own", "elsewhere"
    )
    with store.writing() as connection:
        source = make_source(connection, "one", "News")
        attach(connection, by_source.id, "source", [source.id], NOON)
        attach(connection, everything.id, "everything", [], NOON)
        attach(connection, by_type.id, "type", ["rss.feed"], NOON)
        attach(connection, by_folder.id, "folder", ["News", "Other"], NOON)
        attach(connection, by_folder.id, "source", [source.id], NOON)  # twice over is once
        attach(connection, elsewhere.id, "folder", ["Other"], NOON)
        order_templates(connection, [by_source.id, by_type.id])
        applied = templates_for(connection, get_source(connection, source.id))
    assert [each.template.name for each in applied] == ["own", "type", "all", "folder"]
    assert {by.scope for by in applied[3].by} == {"source", "folder"}
    visit(store, find(1))
    assert started(store) == [("Item 1", name) for name in ("own", "type", "all", "folder")]


def test_source_added_later_is_covered_by_its_folder(store: Store) -> None:
    [template] = make(store, "folder")
    with store.writing() as connection:
        attach(connection, template.id, "folder", ["News"], NOON)
        make_source(connection, "late", "News")
        make_source(connection, "other", "Else")
    visit(store, find(1))
    assert started(store) == [("Item 1", "folder")]


def test_template_attached_to_a_tag_runs_for_items_with_that_category(store: Store) -> None:
    [template] = make(store, "tagged")
    with store.writing() as connection:
        make_source(connection, "one")
        attach(connection, template.id, "tag", ["Climate  Change"], NOON)
    visit(store, find(1, "Sport"), find(2, "climate change", "Sport"), find(3))
    assert started(store) == [("Item 2", "tagged")]


async def test_tag_given_by_a_pipeline_starts_the_template_attached_to_it(
    store: Store, tmp_path: Path
) -> None:
    tagging = make_template(
        store, step("make_test", results=[{"kind": "tags", "data": ["Urgent"]}]), name="tag"
    )
    [alert, other] = make(store, "alert", "other")
    with store.writing() as connection:
        source = make_source(connection, "one")
        attach(connection, tagging.id, "source", [source.id], NOON)
        attach(connection, alert.id, "tag", ["urgent"], NOON)
        attach(connection, other.id, "tag", ["calm"], NOON)
    visit(store, find(1))
    async with working(Worker(store, make_settings(tmp_path), None)):
        await until_ended(store, 1, 2)
    assert started(store) == [("Item 1", "tag"), ("Item 1", "alert")]


async def test_runs_of_an_item_happen_one_after_the_other(store: Store, tmp_path: Path) -> None:
    first = make_template(store, step("note_test", seconds=0.2), step("fail_test"), name="first")
    second = make_template(
        store, step("make_test", results=[{"kind": "full_text", "body": "whole"}]), name="second"
    )
    third = make_template(
        store, step("where_test", where="content_item.results.full_text.body"), name="third"
    )
    with store.writing() as connection:
        make_source(connection, "one")
        for template in (third, first, second):
            attach(connection, template.id, "everything", [], NOON)
    visit(store, find(1), find(2))
    with store.reading() as connection:
        waiting = connection.execute(select(pipeline_executions.c.due_at.is_(None))).scalars().all()
        assert sorted(map(bool, waiting)) == [False, False, True, True, True, True]
    async with working(Worker(store, make_settings(tmp_path), None)):
        runs = await until_ended(store, 1, 2, 3, 4, 5, 6)
    by_name = {
        name: [run for run in runs if run.template_name == name] for name in ("first", "second", "third")
    }
    assert {run.status for run in by_name["first"]} == {"failed"}
    assert {run.status for run in by_name["second"] + by_name["third"]} == {"completed"}
    assert [run.steps[0].output for run in by_name["third"]] == [{"found": "whole"}] * 2
    for item_id in (1, 2):
        its = [next(run for run in runs if run.item_id == item_id) for runs in by_name.values()]
        for before, after in pairwise(its):
            assert (before.completed_at or 0.0) <= (after.started_at or 0.0)


def test_cancelling_a_run_lets_the_next_begin(store: Store) -> None:
    for template in make(store, "first", "second"):
        with store.writing() as connection:
            attach(connection, template.id, "everything", [], NOON)
    with store.writing() as connection:
        make_source(connection, "one")
    visit(store, find(1))
    with store.writing() as connection:
        assert cancel(connection, 1, NOON + 5)
        (second,) = list_runs(connection, RunQuery(status="pending"))
        assert (second.id, second.due_at) == (2, NOON + 5)


def test_upkeep_wakes_a_run_that_waits_for_nothing(store: Store) -> None:
    for template in make(store, "first", "second"):
        with store.writing() as connection:
            attach(connection, template.id, "everything", [], NOON)
    with store.writing() as connection:
        make_source(connection, "one")
    visit(store, find(1))
    with store.writing() as connection:
        take_back_waits(connection, NOON)
        assert list_runs(connection, RunQuery(run_ids=[2]))[0].due_at is None, "it waits for the first"
        connection.execute(
            pipeline_executions.update()
            .where(pipeline_executions.c.id == 1)
            .values(status="completed", completed_at=NOON, due_at=None)
        )
        take_back_waits(connection, NOON + 9)
        assert list_runs(connection, RunQuery(run_ids=[2]))[0].due_at == NOON + 9


def test_attaching_one_keeps_the_others_and_the_first_is_told_in_the_source(store: Store) -> None:
    one, two = make(store, "one", "two")
    with store.writing() as connection:
        source = make_source(connection, "s")
        attach(connection, two.id, "source", [source.id], NOON)
        attach(connection, one.id, "source", [source.id], NOON)
        assert get_source(connection, source.id).pipeline_template_id == one.id
        assert [each.template.name for each in templates_for(connection, source)] == ["one", "two"]
        order_templates(connection, [two.id])
        assert get_source(connection, source.id).pipeline_template_id == two.id
        remove_template(connection, two.id)
        assert get_source(connection, source.id).pipeline_template_id == one.id
        attach(connection, one.id, "everything", [], NOON)
        detach_all(connection, [source.id])
        assert get_source(connection, source.id).pipeline_template_id is None
        assert attachments_of(connection, one.id) == [Attachment(one.id, "everything")]


def test_detach_takes_away_what_was_named_and_counts_it(store: Store) -> None:
    one, two = make(store, "one", "two")
    with store.writing() as connection:
        source = make_source(connection, "s")
        for template in (one, two):
            attach(connection, template.id, "folder", ["A", "B"], NOON)
        attach(connection, one.id, "source", [source.id], NOON)
        assert detach(connection, one.id, "folder", ["A", "C"]) == 1
        assert len(attachments_of(connection, two.id)) == 2
        named = name_attachments(connection, attachments_of(connection, one.id))
        assert list(named.values()) == ["B", "s"]


def test_attaching_what_is_not_there_is_refused(store: Store) -> None:
    [template] = make(store, "one")
    with store.writing() as connection:
        with pytest.raises(NotFoundError):
            attach(connection, 99, "everything", [], NOON)
        with pytest.raises(InputError, match="has no name"):
            attach(connection, template.id, "folder", [" "], NOON)
        with pytest.raises(InputError, match="cannot be attached to a planet"):
            attach(connection, template.id, "planet", ["x"], NOON)  # type: ignore[arg-type]
        with pytest.raises(NotFoundError):
            order_templates(connection, [99])


def test_new_templates_come_last_and_order_is_kept(store: Store) -> None:
    one, two = make(store, "one", "two")
    with store.writing() as connection:
        order_templates(connection, [two.id, one.id])
    make(store, "three")
    with store.reading() as connection:
        assert [template.name for template in list_templates(connection)] == ["two", "one", "three"]
