"""A worker takes runs from their first step to their end, on both databases."""

import asyncio
import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from headwater.pipeline import advance as advance_module
from headwater.pipeline import runner as runner_module
from headwater.pipeline import worker as worker_module
from headwater.pipeline.advance import Workbench, advance
from headwater.pipeline.worker import Worker
from headwater.store.core import clock as clock_module
from headwater.store.core.database import Store
from headwater.store.core.tables import items, pipeline_executions
from headwater.store.pipelines.starting import cancel, rerun, retry, start_runs
from headwater.store.reading.items import get_item
from tests.pipeline.making import (
    make_items,
    make_runs,
    make_settings,
    make_template,
    read_run,
    step,
    until,
    until_ended,
    working,
)

pytestmark = pytest.mark.usefixtures("step_plugin")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advance_module, "FIRST_RETRY_SECONDS", 0.05)


@pytest.fixture
def worker(store: Store, tmp_path: Path) -> Worker:
    return Worker(store, make_settings(tmp_path), None)


async def test_a_run_from_start_to_end(store: Store, worker: Worker) -> None:
    [run_id] = make_runs(
        store, 1, step("note_test", text="a"), step("note_test", text="b"), runtime_config={"depth": 2}
    )
    async with working(worker):
        [run] = await until_ended(store, run_id)
    assert (run.status, run.current_step_index, run.error_message) == ("completed", 1, None)
    assert [each.status for each in run.steps] == ["completed", "completed"]
    first, second = (each.output for each in run.steps)
    assert first is not None and second is not None
    assert first["title"] == "Item 1"
    assert first["previous"] == []
    assert second["previous"] == ["step_1_note"]
    assert second["runtime"] == {"depth": 2}
    assert first["key"] == f"item-1-version-1-template-{run.template_id}-step-1"
    assert all(each.started_at and each.completed_at and each.attempts == 1 for each in run.steps)
    with store.reading() as connection:
        assert connection.execute(select(items.c.status)).scalar_one() == "ANALYZED"


async def test_results_of_steps_stay_with_the_item_and_say_who_made_them(
    store: Store, worker: Worker
) -> None:
    [run_id] = make_runs(
        store,
        1,
        step("note_test"),
        step("make_test", results=[{"kind": "summary", "body": "of {n}"}, {"kind": "tags", "data": ["a"]}]),
    )
    async with working(worker):
        [run] = await until_ended(store, run_id)
    assert run.status == "completed"
    with store.reading() as connection:
        item = get_item(connection, run.item_id)
        assert {key: each.result.body for key, each in item.results.items()} == {
            "summary": f"of {run.item_id}",
            "tags": None,
        }
        made = item.results["summary"]
        assert (made.run_id, made.template_id, made.step_index, made.step_type, made.item_version) == (
            run_id,
            run.template_id,
            1,
            "make_test",
            1,
        )


async def test_steps_of_a_later_run_are_given_the_results_of_an_earlier_one(
    store: Store, worker: Worker
) -> None:
    [first] = make_runs(store, 1, step("make_test", results=[{"kind": "full_text", "body": "the whole"}]))
    second = make_template(
        store, step("where_test", where="content_item.results.full_text.body"), name="second"
    )
    async with working(worker):
        [run] = await until_ended(store, first)
        with store.writing() as connection:
            [later] = start_runs(connection, second, [run.item_id], time.time())
        [run] = await until_ended(store, later)
    assert run.steps[0].output == {"found": "the whole"}


async def test_item_is_processed_once_no_run_of_it_is_left(store: Store, worker: Worker) -> None:
    quick_one = make_template(store, step("note_test"), name="quick")
    slow = make_template(store, step("note_test", seconds=0.5), step("fail_test"), name="slow")
    [item_id, other] = make_items(store, 2)
    with store.writing() as connection:
        [first] = start_runs(connection, quick_one, [item_id], time.time())
        [second] = start_runs(connection, slow, [item_id], time.time())
        [third] = start_runs(connection, slow, [other], time.time())

    def positions() -> list[int]:
        with store.reading() as connection:
            return list(connection.execute(select(items.c.processed_position).order_by(items.c.id)).scalars())

    async with working(worker):
        await until_ended(store, first)
        assert positions() == [0, 0]
        await until_ended(store, second, third)
    assert positions()[0] > 0
    assert positions()[1] == 0, "none of its runs has completed"


async def test_result_of_an_unknown_kind_fails_the_step(store: Store, worker: Worker) -> None:
    [run_id] = make_runs(store, 1, step("make_test", results=[{"kind": "poem", "body": "x"}]))
    async with working(worker):
        [run] = await until_ended(store, run_id)
    assert (run.status, run.steps[0].error_message) == ("failed", "there is no kind of result poem")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_worker_without_runs_only_reads(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims: list[None] = []

    def claim(*args: Any, **more: Any) -> list[Any]:
        claims.append(None)
        return []

    monkeypatch.setattr(runner_module, "claim_runs", claim)
    monkeypatch.setattr(runner_module, "LOOK_SECONDS", 0.01)
    async with working(worker):
        await asyncio.sleep(0.3)
    assert len(claims) <= sum(bool(pool.step_types) for pool in worker.pools), (
        "one each, to see where they stand"
    )


async def test_many_runs_at_once(store: Store, worker: Worker) -> None:
    run_ids = make_runs(store, 150, *[step("note_test")] * 4)
    async with working(worker):
        runs = await until_ended(store, *run_ids)
    assert {run.status for run in runs} == {"completed"}
    assert {each.attempts for run in runs for each in run.steps} == {1}
    assert worker.tally.completed == 150


async def test_a_critical_failure_ends_the_run(store: Store, worker: Worker) -> None:
    [run_id] = make_runs(store, 1, step("note_test"), step("fail_test"), step("note_test"))
    async with working(worker):
        [run] = await until_ended(store, run_id)
    assert (run.status, run.current_step_index) == ("failed", 1)
    assert run.error_message == "step 2 (fail_test): it did not work"
    assert [each.status for each in run.steps] == ["completed", "failed", "pending"]
    with store.reading() as connection:
        assert connection.execute(select(items.c.status)).scalar_one() == "NEW"


async def test_an_optional_failure_is_skipped(store: Store, worker: Worker) -> None:
    [run_id] = make_runs(store, 1, step("fail_test", critical=False), step("note_test"))
    async with working(worker):
        [run] = await until_ended(store, run_id)
    assert run.status == "completed"
    assert [each.status for each in run.steps] == ["skipped", "completed"]
    assert run.steps[0].error_message == "it did not work"


async def test_a_filter_ends_the_run_as_skipped(store: Store, worker: Worker) -> None:
    [run_id] = make_runs(store, 1, step("note_test", end_run=True), step("note_test"))
    async with working(worker):
        [run] = await until_ended(store, run_id)
    assert run.status == "skipped"
    assert [each.status for each in run.steps] == ["completed", "skipped"]


async def test_passing_error_is_retried(store: Store, worker: Worker, tmp_path: Path) -> None:
    run_ids = make_runs(
        store,
        1,
        step("fail_test", passing=True, retries=50, until=str(tmp_path / "there")),
        step("note_test"),
    )
    async with working(worker):
        await until(lambda: read_run(store, run_ids[0]).steps[0].attempts >= 3)
        (tmp_path / "there").touch()
        [run] = await until_ended(store, *run_ids)
    assert run.status == "completed"
    assert run.steps[0].attempts >= 3


async def test_retries_end_and_what_will_not_pass_has_none(store: Store, worker: Worker) -> None:
    template = make_template(store, step("fail_test", passing=True, retries=2), name="passing")
    lasting = make_template(store, step("fail_test", retries=2), name="lasting")
    buggy = make_template(store, step("bug_test", retries=2), name="buggy")
    item_ids = make_items(store, 1)
    with store.writing() as connection:
        run_ids = [
            start_runs(connection, each, item_ids, time.time())[0] for each in (template, lasting, buggy)
        ]
    async with working(worker):
        runs = await until_ended(store, *run_ids)
    assert [(run.status, run.steps[0].attempts) for run in runs] == [
        ("failed", 3),
        ("failed", 1),
        ("failed", 1),
    ]
    assert runs[2].steps[0].error_message == "unexpected ValueError: a bug"


async def test_a_timeout_is_enforced(store: Store, worker: Worker) -> None:
    [run_id] = make_runs(store, 1, step("note_test", seconds=600, timeout=0.2, retries=1))
    async with working(worker):
        [run] = await until_ended(store, run_id)
    assert (run.status, run.steps[0].attempts) == ("failed", 2)
    assert run.steps[0].error_message == "it did not end within 0.2 s"


async def test_a_cancelled_run_stops_its_step(store: Store, worker: Worker) -> None:
    running, waiting = make_runs(store, 2, step("note_test", seconds=600), step("note_test"))
    with store.writing() as connection:
        assert cancel(connection, waiting, time.time()) is True
    async with working(worker):
        await until(lambda: read_run(store, running).status == "running")
        with store.writing() as connection:
            assert cancel(connection, running, time.time()) is False
        runs = await until_ended(store, running, waiting, seconds=10)
    for run in runs:
        assert (run.status, run.error_message) == ("skipped", "cancelled")
        assert [each.status for each in run.steps] == ["skipped", "skipped"]


async def test_run_again_from_a_step_keeps_the_outputs_before(store: Store, worker: Worker) -> None:
    [run_id] = make_runs(store, 1, step("note_test"), step("note_test"), step("note_test"))
    async with working(worker):
        [before] = await until_ended(store, run_id)
        with store.writing() as connection:
            rerun(connection, run_id, 1, time.time())
        [after] = await until_ended(store, run_id)
    assert after.status == "completed"
    assert after.steps[0] == before.steps[0]
    assert after.steps[1].output is not None and before.steps[1].output is not None
    assert after.steps[1].output["key"] != before.steps[1].output["key"], "it is meant to happen again"
    assert after.steps[2].completed_at != before.steps[2].completed_at


async def test_retry_goes_on_with_the_step_that_failed(store: Store, worker: Worker, tmp_path: Path) -> None:
    [run_id] = make_runs(store, 1, step("note_test"), step("fail_test", until=str(tmp_path / "there")))
    async with working(worker):
        [failed] = await until_ended(store, run_id)
        (tmp_path / "there").touch()
        with store.writing() as connection:
            retry(connection, run_id, time.time())
        [run] = await until_ended(store, run_id)
    assert (failed.status, run.status, run.error_message) == ("failed", "completed", None)
    assert run.steps[0] == failed.steps[0]


async def test_stopping_lets_the_step_end_and_hands_the_run_on(store: Store, worker: Worker) -> None:
    [run_id] = make_runs(store, 1, step("note_test", seconds=1.0), step("note_test"))
    task = asyncio.create_task(worker.run())
    await until(lambda: read_run(store, run_id).status == "running")
    worker.stop()
    assert await task is True
    run = read_run(store, run_id)
    assert [each.status for each in run.steps] == ["completed", "pending"]
    assert (run.status, run.current_step_index, run.steps[1].attempts) == ("running", 1, 0)


async def test_what_is_cut_short_begins_again_uncounted(
    store: Store, worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "STOP_SECONDS", 0.3)
    [run_id] = make_runs(store, 1, step("note_test", seconds=2.0))
    task = asyncio.create_task(worker.run())
    await until(lambda: read_run(store, run_id).status == "running")
    worker.stop()
    assert await task is False
    run = read_run(store, run_id)
    assert (run.steps[0].status, run.steps[0].attempts, run.steps[0].crashes) == ("pending", 0, 0)
    monkeypatch.undo()
    async with working(Worker(store, make_settings(tmp_path), None)):
        [run] = await until_ended(store, run_id)
    assert (run.status, run.steps[0].attempts) == ("completed", 1)


async def test_limits_of_a_type(store: Store, tmp_path: Path) -> None:
    run_ids = make_runs(store, 4, step("note_test", seconds=0.2), step("heavy_test"))
    worker = Worker(store, make_settings(tmp_path, step_limits="note_test=1"), None)
    async with working(worker):
        runs = await until_ended(store, *run_ids)
    spans = sorted((run.steps[0].started_at or 0, run.steps[0].completed_at or 0) for run in runs)
    for (_, ended), (started, _) in pairwise(spans):
        assert started >= ended - 0.001


async def test_rates_of_a_type_hold_for_all_workers(store: Store, tmp_path: Path) -> None:
    run_ids = make_runs(store, 6, step("heavy_test", critical=False, timeout=60), step("note_test"))
    settings = make_settings(tmp_path, step_limits="note_test=4/s")
    async with working(Worker(store, settings, None)), working(Worker(store, settings, None)):
        runs = await until_ended(store, *run_ids)
    starts = sorted(run.steps[1].started_at or 0 for run in runs)
    assert {run.status for run in runs} == {"completed"}
    assert starts[-1] - starts[0] >= 5 * 0.25 - 0.05


async def test_workers_for_some_types_alone(store: Store, tmp_path: Path) -> None:
    [run_id] = make_runs(store, 1, step("note_test"), step("heavy_test"), step("note_test"))
    settings = make_settings(tmp_path)
    general = Worker(store, settings, None, without=["heavy_test"])
    async with working(general):
        await until(lambda: read_run(store, run_id).steps[0].status == "completed")
        await asyncio.sleep(0.5)
        assert read_run(store, run_id).steps[1].status == "pending"
        async with working(Worker(store, settings, None, only=["heavy_test"])):
            [run] = await until_ended(store, run_id)
    assert [each.status for each in run.steps] == ["completed"] * 3
    assert general.tally.steps == 2


async def test_a_heavy_step_runs_in_a_separate_process(store: Store, worker: Worker) -> None:
    run_ids = make_runs(store, 1, step("heavy_test"), step("dying_test", critical=False))
    async with working(worker):
        [run] = await until_ended(store, *run_ids)
    output = run.steps[0].output
    assert output is not None
    assert output["title"] == "Item 1"
    assert output["pid"] != os.getpid()
    assert "SIGSEGV" in (run.steps[1].error_message or "")


async def test_advance_is_one_step(store: Store, tmp_path: Path) -> None:
    [run_id] = make_runs(store, 1, step("note_test"), step("note_test"))
    bench = Workbench(tmp_path)
    end = await advance(store, run_id, bench)
    assert end is not None
    assert [each.status for each in read_run(store, run_id).steps] == ["completed", "pending"]
    assert await advance(store, run_id, bench) is not None
    assert read_run(store, run_id).status == "completed"
    assert await advance(store, run_id, bench) is None


async def test_a_worker_whose_lease_has_passed_on_changes_nothing(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    [run_id] = make_runs(store, 1, step("note_test", seconds=1.0))
    async with working(worker):
        await until(lambda: read_run(store, run_id).status == "running")
        with store.writing() as connection:
            connection.execute(
                pipeline_executions.update().values(lease_no=pipeline_executions.c.lease_no + 1)
            )
        await until(lambda: not worker.in_hand)
    assert read_run(store, run_id).steps[0].status == "running", "it is another worker's now"


async def test_the_databases_clock_decides_how_long_a_lease_lasts(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a worker whose own clock is ahead would take every run out of the hands of the others."""
    ahead = 0.0 if store.is_sqlite else 3_600.0
    monkeypatch.setattr(clock_module, "database_time", lambda connection: time.time() + ahead)
    [run_id] = make_runs(store, 1, step("note_test", seconds=600))
    async with working(worker):
        await until(lambda: read_run(store, run_id).status == "running")
        with store.writing() as connection:
            lease_until = connection.execute(select(pipeline_executions.c.lease_until)).scalar_one()
            cancel(connection, run_id, time.time() + ahead)
        await until_ended(store, run_id)
    assert lease_until == pytest.approx(time.time() + ahead, abs=60)
