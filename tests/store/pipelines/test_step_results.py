"""What steps gave before they were run again."""

import pytest
from sqlalchemy import Connection, update

from headwater.store.core.database import Store
from headwater.store.core.tables import pipeline_executions, pipeline_steps
from headwater.store.pipelines.starting import get_run, rerun, retry, start_runs
from headwater.store.pipelines.step_results import MOST_OF_A_STEP
from headwater.views.runs import whole_run_json
from tests.clock import NOON
from tests.pipeline.making import make_items, make_template, step

pytestmark = pytest.mark.usefixtures("step_plugin")


def end(connection: Connection, run_id: int, status: str, **outputs: str) -> None:
    """Let a run end, its steps with these outputs, as JSON."""
    for index, output in enumerate(outputs.values()):
        connection.execute(
            update(pipeline_steps)
            .where(pipeline_steps.c.execution_id == run_id, pipeline_steps.c.step_index == index)
            .values(
                status=status,
                attempts=1,
                output_data=output,
                error_message="it broke" if status == "failed" else None,
                started_at=NOON,
                completed_at=NOON + 1,
            )
        )
    connection.execute(
        update(pipeline_executions)
        .where(pipeline_executions.c.id == run_id)
        .values(status=status, due_at=None)
    )


def test_rerun_keeps_what_its_steps_gave_before(store: Store) -> None:
    template = make_template(store, step("note_test"), step("note_test"))
    item_ids = make_items(store, 1)
    with store.writing() as connection:
        [run_id] = start_runs(connection, template, item_ids, NOON)
        end(connection, run_id, "completed", first='{"n": 1}', second='{"n": 2}')
        rerun(connection, run_id, 1, NOON + 10)
        again = get_run(connection, run_id)
        assert [(each.status, each.output) for each in again.steps] == [
            ("completed", {"n": 1}),
            ("pending", None),
        ]
        (kept,) = again.earlier
        assert (kept.step_index, kept.status, kept.output, kept.replaced_at) == (
            1,
            "completed",
            {"n": 2},
            NOON + 10,
        )
        end(connection, run_id, "completed", first='{"n": 3}', second='{"n": 4}')
        rerun(connection, run_id, 0, NOON + 20)
        values = whole_run_json(get_run(connection, run_id))
    outputs = [[each["output_data"] for each in one["earlier"]] for one in values["steps"]]
    assert outputs == [[{"n": 3}], [{"n": 4}, {"n": 2}]], "the newest first"


def test_retry_keeps_the_error_of_the_attempt_before_and_what_never_ran_leaves_nothing(store: Store) -> None:
    template = make_template(store, step("note_test"), step("note_test"))
    item_ids = make_items(store, 1)
    with store.writing() as connection:
        [run_id] = start_runs(connection, template, item_ids, NOON)
        end(connection, run_id, "failed", first="null")
        retry(connection, run_id, NOON + 10)
        (kept,) = get_run(connection, run_id).earlier
    assert (kept.step_index, kept.status, kept.error_message) == (0, "failed", "it broke")


def test_results_of_many_reruns_are_kept_up_to_a_number(store: Store) -> None:
    template = make_template(store, step("note_test"))
    item_ids = make_items(store, 1)
    with store.writing() as connection:
        [run_id] = start_runs(connection, template, item_ids, NOON)
        for number in range(MOST_OF_A_STEP + 3):
            end(connection, run_id, "completed", only=f'{{"n": {number}}}')
            rerun(connection, run_id, 0, NOON + number)
        kept = [each.output for each in get_run(connection, run_id).earlier]
    assert kept == [{"n": number} for number in range(MOST_OF_A_STEP + 2, 2, -1)]
