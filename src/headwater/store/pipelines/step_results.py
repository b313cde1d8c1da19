"""What the steps of a run gave before they were run again: nothing that a run has made is lost by repeating it."""

from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, delete, func, insert, literal, select

from headwater.store.core.tables import pipeline_step_results, pipeline_steps
from headwater.store.pipelines.runs import Status

MOST_OF_A_STEP = 20  # the newest; a script that repeats a run for ever fills no disk
_COPIED = ("execution_id", "step_index", "status", "attempts", "output_data", "error_message")
_TIMES = ("started_at", "completed_at")


@dataclass(frozen=True, slots=True)
class EarlierResult:
    """How a step ended before it was run again."""

    step_index: int
    status: Status
    attempts: int
    output: dict[str, Any] | None
    error_message: str | None
    started_at: float | None
    completed_at: float | None
    replaced_at: float


def keep_results(connection: Connection, run_id: int, from_index: int, now: float) -> None:
    """Keep what the steps from `from_index` on have given, for they are about to be run again."""
    step, result = pipeline_steps.c, pipeline_step_results.c
    columns = (*_COPIED, *_TIMES)
    begun = select(*(step[name] for name in columns), literal(now)).where(
        step.execution_id == run_id, step.step_index >= from_index, step.started_at.is_not(None)
    )
    connection.execute(insert(pipeline_step_results).from_select([*columns, "replaced_at"], begun))
    place = func.row_number().over(partition_by=result.step_index, order_by=result.id.desc())
    ranked = select(result.id, place.label("place")).where(result.execution_id == run_id).subquery()
    old = select(ranked.c.id).where(ranked.c.place > MOST_OF_A_STEP)
    connection.execute(delete(pipeline_step_results).where(result.id.in_(old)))


def read_results(connection: Connection, run_id: int) -> tuple[EarlierResult, ...]:
    """The earlier results of a run's steps, step by step, the newest first."""
    result = pipeline_step_results.c
    query = (
        select(
            result.step_index,
            result.status,
            result.attempts,
            result.output_data,
            result.error_message,
            result.started_at,
            result.completed_at,
            result.replaced_at,
        )
        .where(result.execution_id == run_id)
        .order_by(result.step_index, result.id.desc())
    )
    return tuple(
        EarlierResult(index, status, attempts, None if output is None else orjson.loads(output), *rest)
        for index, status, attempts, output, *rest in connection.execute(query)
    )
