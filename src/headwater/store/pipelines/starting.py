"""What people do with runs: start, run again, retry, cancel and list them. Each in one transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from sqlalchemy import Connection, Select, func, select, update

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.store.core.bulk import is_sqlite
from headwater.store.core.tables import (
    items,
    pipeline_executions,
    pipeline_steps,
    pipeline_templates,
    sources,
)
from headwater.store.pipelines.jobs import defer_jobs
from headwater.store.pipelines.runs import RunStep, Status, read_steps
from headwater.store.pipelines.step_results import EarlierResult, keep_results, read_results
from headwater.store.pipelines.templates import Template
from headwater.store.pipelines.triggering import Start, Trigger, insert_runs, wake_waiting
from headwater.store.reading.selection import EVERYTHING, Selection, conditions

ENDED: tuple[Status, ...] = ("completed", "failed", "skipped")


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a template for one version of one item."""

    id: int
    item_id: int
    item_version: int
    item_title: str
    template_id: int | None
    template_name: str | None
    status: Status
    current_step_index: int
    next_step_type: str | None
    trigger: Trigger
    runtime_config: dict[str, Any]
    error_message: str | None
    created_at: float
    started_at: float | None
    completed_at: float | None
    due_at: float | None
    steps: tuple[RunStep, ...] = ()
    earlier: tuple[EarlierResult, ...] = ()  # what its steps gave before they were run again


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs: all conditions given must hold."""

    run_ids: Sequence[int] | None = None
    status: Status | None = None
    template_id: int | None = None
    source_id: int | None = None
    item_id: int | None = None
    since_at: float | None = None  # created at or after


def start_runs(
    connection: Connection,
    template: Template,
    item_ids: Iterable[int],
    now: float,
    *,
    runtime_config: dict[str, Any] | None = None,
    forced: bool = False,
) -> list[int]:
    """Start a run by hand for the newest version of each item; answers their numbers.

    A version that the template has a run for is left out, unless `forced`.
    """
    start = Start("manual", now, orjson.dumps(runtime_config or {}).decode(), forced)
    return insert_runs(connection, template, start, "i.id {values}", item_ids, "bigint")


def rerun(connection: Connection, run_id: int, from_index: int, now: float) -> None:
    """Run a run's steps again from `from_index` on. The steps before keep their outputs; those of the others are kept
    as earlier results.
    """
    run = _ended(connection, run_id)
    if not 0 <= from_index < len(run.steps):
        raise InputError(
            "run {id} has no step {number}; it has {count}",
            id=run_id,
            number=from_index + 1,
            count=len(run.steps),
        )
    for step in run.steps[:from_index]:
        if step.status not in ("completed", "skipped"):
            raise ConflictError(
                "run {id} cannot begin at step {number}: step {before} before it is {status}",
                id=run_id,
                number=from_index + 1,
                before=step.index + 1,
                status=step.status,
            )
    _begin_again(connection, run, from_index, now, again=True)


def retry(connection: Connection, run_id: int, now: float) -> None:
    """Let a run that failed or was cancelled go on with the step it ended in."""
    run = _ended(connection, run_id)
    if run.status == "completed":
        raise ConflictError(
            "run {id} has completed", hint="run it again with `headwater runs rerun {id}`", id=run_id
        )
    _begin_again(connection, run, run.current_step_index, now, again=False)


def _begin_again(connection: Connection, run: Run, index: int, now: float, *, again: bool) -> None:
    keep_results(connection, run.id, index, now)
    connection.execute(
        update(pipeline_steps)
        .where(pipeline_steps.c.execution_id == run.id, pipeline_steps.c.step_index >= index)
        .values(
            status="pending",
            attempts=0,
            crashes=0,
            output_data=None,
            error_message=None,
            started_at=None,
            completed_at=None,
        )
    )
    connection.execute(
        update(pipeline_executions)
        .where(pipeline_executions.c.id == run.id)
        .values(
            status="pending",
            current_step_index=index,
            next_step_type=run.steps[index].step_type,
            due_at=now,
            slot_at=None,
            error_message=None,
            completed_at=None,
            cancel_requested_at=None,
            rerun_no=pipeline_executions.c.rerun_no + (1 if again else 0),
        )
    )
    defer_jobs(connection, [run.id])


def cancel(connection: Connection, run_id: int, now: float) -> bool:
    """End a run. True when it has ended now, False when its worker will stop its step in a moment."""
    query = select(pipeline_executions).where(pipeline_executions.c.id == run_id)
    row = connection.execute(query if is_sqlite(connection) else query.with_for_update()).first()
    if row is None:
        raise _no_run(run_id)
    if row.status in ENDED:
        raise ConflictError("run {id} has ended already: it is {status}", id=run_id, status=row.status)
    leased = row.lease_until is not None and row.lease_until > now
    values: dict[str, Any] = {"cancel_requested_at": now}
    if not leased:
        # Raised, so that a worker that lost its lease and comes back changes nothing.
        values |= {
            "status": "skipped",
            "error_message": "cancelled",
            "completed_at": now,
            "due_at": None,
            "lease_until": None,
            "lease_no": row.lease_no + 1,
            "next_step_type": None,
        }
        connection.execute(
            update(pipeline_steps)
            .where(
                pipeline_steps.c.execution_id == run_id, pipeline_steps.c.status.in_(("pending", "running"))
            )
            .values(status="skipped")
        )
    connection.execute(update(pipeline_executions).where(pipeline_executions.c.id == run_id).values(**values))
    if not leased:
        wake_waiting(connection, [row.item_id], now)
    return not leased


def get_run(connection: Connection, run_id: int) -> Run:
    """A run with its steps."""
    row = connection.execute(_run_query().where(pipeline_executions.c.id == run_id)).first()
    if row is None:
        raise _no_run(run_id)
    run = _run(row, tuple(read_steps(connection, [run_id])[run_id]))
    return replace(run, earlier=read_results(connection, run_id))


def list_runs(
    connection: Connection,
    wanted: RunQuery,
    *,
    limit: int | None = 50,
    after_id: int | None = None,
    before_id: int | None = None,
) -> list[Run]:
    """Runs without their steps, newest first, all or those before `before_id`; with `after_id`, those after that one,
    oldest first.
    """
    query = _narrowed(_run_query(), wanted)
    if before_id is not None:
        query = query.where(pipeline_executions.c.id < before_id)
    if after_id is None:
        query = query.order_by(pipeline_executions.c.id.desc())
    else:
        query = query.where(pipeline_executions.c.id > after_id).order_by(pipeline_executions.c.id)
    return [_run(row) for row in connection.execute(query.limit(limit))]


def find_item_ids(
    connection: Connection, item_ids: Sequence[int] | None, selection: Selection = EVERYTHING
) -> list[int]:
    """These items, or all that are selected, newest first."""
    query = (
        select(items.c.id)
        .join_from(items, sources)
        .where(*conditions(connection, selection))
        .order_by(items.c.item_at.desc(), items.c.id.desc())
    )
    if item_ids is not None:
        query = query.where(items.c.id.in_(item_ids))
    found = list(connection.execute(query).scalars())
    for missing in sorted(set(item_ids or ()) - set(found)):
        raise NotFoundError("there is no item {id}", hint="`headwater items` shows the newest", id=missing)
    return found


def find_run_ids(connection: Connection, wanted: RunQuery) -> list[int]:
    query = _narrowed(select(pipeline_executions.c.id).join(items), wanted)
    return list(connection.execute(query.order_by(pipeline_executions.c.id)).scalars())


def count_unfinished_runs(connection: Connection) -> dict[str, int]:
    """How many runs wait, and how many are worked on: by index, however many have ended."""
    run = pipeline_executions.c
    return {
        status: connection.execute(select(func.count()).where(run.status == status)).scalar_one()
        for status in ("pending", "running")
    }


def run_durations(connection: Connection, limit: int) -> list[float]:
    """How long the newest completed runs took, shortest first."""
    run = pipeline_executions.c
    query = (
        select(run.completed_at - run.started_at)
        .where(run.status == "completed", run.started_at.is_not(None), run.completed_at.is_not(None))
        .order_by(run.id.desc())
        .limit(limit)
    )
    return sorted(connection.execute(query).scalars())


def _run_query() -> Select[Any]:
    return (
        select(
            pipeline_executions,
            items.c.title.label("item_title"),
            pipeline_templates.c.name.label("template_name"),
        )
        .join_from(pipeline_executions, items)
        .outerjoin(pipeline_templates, pipeline_templates.c.id == pipeline_executions.c.template_id)
    )


def _narrowed(query: Select[Any], wanted: RunQuery) -> Select[Any]:
    run = pipeline_executions.c
    if wanted.run_ids is not None:
        query = query.where(run.id.in_(wanted.run_ids))
    if wanted.status is not None:
        query = query.where(run.status == wanted.status)
    if wanted.template_id is not None:
        query = query.where(run.template_id == wanted.template_id)
    if wanted.source_id is not None:
        query = query.where(items.c.source_id == wanted.source_id)
    if wanted.item_id is not None:
        query = query.where(run.item_id == wanted.item_id)
    if wanted.since_at is not None:
        query = query.where(run.created_at >= wanted.since_at)
    return query


def _ended(connection: Connection, run_id: int) -> Run:
    """The run, held until this transaction ends: of two who want it to begin again, the second finds that it has."""
    if not is_sqlite(connection):
        mine = select(pipeline_executions.c.id).where(pipeline_executions.c.id == run_id)
        connection.execute(mine.with_for_update())
    run = get_run(connection, run_id)
    if run.status not in ENDED:
        raise ConflictError("run {id} is {status}; cancel it first", id=run_id, status=run.status)
    return run


def _no_run(run_id: int) -> NotFoundError:
    return NotFoundError("there is no run {id}", hint="`headwater runs list` shows the newest", id=run_id)


def _run(row: Any, steps: tuple[RunStep, ...] = ()) -> Run:
    return Run(
        id=row.id,
        item_id=row.item_id,
        item_version=row.item_version,
        item_title=row.item_title,
        template_id=row.template_id,
        template_name=row.template_name,
        status=row.status,
        current_step_index=row.current_step_index,
        next_step_type=row.next_step_type,
        trigger=row.trigger,
        runtime_config=orjson.loads(row.runtime_config),
        error_message=row.error_message,
        created_at=row.created_at,
        started_at=row.started_at,
        completed_at=row.completed_at,
        due_at=row.due_at,
        steps=steps,
    )
