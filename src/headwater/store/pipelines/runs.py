"""The run row is the queue: claiming pipeline runs, committing what their steps did, both in batches.

As in `store.collecting.queue`, `due_at` is a run's place in line and each claim raises `lease_no`, which every commit
checks; but the lease is in the row itself, and a claim moves `due_at` to its end. Nothing here decides what a
step's end means: it arrives ready-made in a StepEnd.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson
from sqlalchemy import Connection, select, update

from headwater.model import Result, StoredItem, read_tags
from headwater.store.core.bulk import (
    is_sqlite,
    run_by,
    select_by,
    select_rows,
    sent_together,
    storable,
    update_rows,
)
from headwater.store.core.tables import item_versions, items, pipeline_executions, pipeline_steps
from headwater.store.pipelines.jobs import defer_jobs
from headwater.store.pipelines.triggering import start_for_tags, wake_forgotten, wake_waiting
from headwater.store.publishing.outbox import NewDelivery, put_in_outbox
from headwater.store.reading.listing import read_items
from headwater.store.reading.outlets import publish_items
from headwater.store.reading.positions import take_positions
from headwater.store.reading.results import NewResult, write_results

_LONGEST_WAIT_SECONDS = 86_400.0
COMPARING = "compare_content"  # the step that wants to know what the item said before

Status = Literal["pending", "running", "completed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class RunStep:
    """One stage of one run."""

    index: int
    step_type: str
    is_critical: bool
    config: dict[str, Any]
    timeout_seconds: float | None
    retries: int
    status: Status = "pending"
    attempts: int = 0
    crashes: int = 0
    output: dict[str, Any] | None = None
    error_message: str | None = None
    started_at: float | None = None
    completed_at: float | None = None


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run in this worker's hands, with all that its step at `index` needs. That step is marked running."""

    id: int
    lease_no: int
    item_version: int
    template_id: int | None
    forced_no: int
    rerun_no: int
    runtime_config: dict[str, Any]
    item: StoredItem  # as it was in the version that the run is about
    steps: tuple[RunStep, ...]
    index: int
    cancelled: bool = False
    earlier: dict[str, Any] | None = None  # for a run that compares: what the item said in its version before

    @property
    def step(self) -> RunStep:
        return self.steps[self.index]

    @property
    def lease(self) -> tuple[int, int]:
        return self.id, self.lease_no


@dataclass(frozen=True, slots=True)
class StepEnd:
    """What the end of a step changes: the steps that are different now, and where the run stands.

    `due_at` is when the run is to go on; None with a status that is not an end means that its worker goes on with it
    at once and keeps the lease.
    """

    run: ClaimedRun
    changed: tuple[RunStep, ...]
    status: Status
    index: int
    due_at: float | None = None
    error_message: str | None = None
    completed_at: float | None = None
    ended_at: float = 0.0
    outlet: str | None = None  # where the step has published the item
    results: tuple[Result, ...] = ()  # what the step has made of the item
    messages: tuple[NewDelivery, ...] = ()  # what it wants to be sent

    @property
    def keeps_lease(self) -> bool:
        return self.due_at is None and self.completed_at is None

    def next_run(self) -> ClaimedRun:
        """The run as it stands after this end is committed."""
        by_index = {step.index: step for step in self.changed}
        run = replace(
            self.run,
            steps=tuple(by_index.get(step.index, step) for step in self.run.steps),
            index=self.index,
        )
        if not self.results:
            return run
        made = {result.key: self.new_result(result).as_stored() for result in self.results}
        return replace(run, item=replace(run.item, results={**run.item.results, **made}))

    def new_result(self, result: Result) -> NewResult:
        """A result of this step, with who made it."""
        return NewResult(
            item_id=self.run.item.id,
            item_version=self.run.item_version,
            result=result,
            made_at=self.ended_at,
            run_id=self.run.id,
            template_id=self.run.template_id,
            step_index=self.run.index,
            step_type=self.run.step.step_type,
        )


@dataclass(frozen=True, slots=True)
class Later:
    """A run that is not to be worked on before `due_at`: it is leased, waits for a retry or for its turn."""

    due_at: float


def claim_runs(
    connection: Connection,
    limit: int,
    *,
    now: float,
    lease_until: float,
    step_types: Collection[str] | None = None,
    in_hand: Collection[int] = (),
    rates: Mapping[str, float] | None = None,
) -> list[ClaimedRun]:
    """Take up to `limit` runs whose next step is due and of one of these types, first in line first.

    For SQLite, where one transaction writes at a time; on PostgreSQL the queue says which run is due.
    `in_hand`: what the caller is working on. It is due, too, if the caller was frozen until its leases expired.
    `rates`: for types of which only so many may start in a time, the seconds between two starts.
    """
    run = pipeline_executions.c
    query = select(pipeline_executions).where(run.due_at <= now).order_by(run.due_at, run.id).limit(limit)
    if step_types is not None:
        query = query.where(run.next_step_type.in_(step_types))
    if in_hand:
        query = query.where(run.id.not_in(in_hand))
    return _lease(connection, connection.execute(query).all(), now, lease_until, rates or {})


def claim_named(
    connection: Connection,
    run_ids: Sequence[int],
    *,
    now: float,
    lease_until: float,
    rates: Mapping[str, float] | None = None,
) -> dict[int, ClaimedRun | Later]:
    """Take these runs if they are due. A run that has ended is left out of the answer."""
    run = pipeline_executions.c
    query = select(pipeline_executions).where(run.id.in_(run_ids), run.due_at.is_not(None)).order_by(run.id)
    if not is_sqlite(connection):
        query = query.with_for_update()
    rows = connection.execute(query).all()
    claimed = _lease(connection, [row for row in rows if row.due_at <= now], now, lease_until, rates or {})
    found: dict[int, ClaimedRun | Later] = {row.id: Later(row.due_at) for row in rows if row.due_at > now}
    return found | {each.id: each for each in claimed}


def _lease(
    connection: Connection,
    rows: Sequence[Any],
    now: float,
    lease_until: float,
    rates: Mapping[str, float],
) -> list[ClaimedRun]:
    rows = _take_turns(connection, rows, now, rates) if rates else rows
    if not rows:
        return []
    steps = read_steps(connection, [row.id for row in rows])
    found = _read_items(connection, {row.id: (row.item_id, row.item_version) for row in rows})
    comparing = [row for row in rows if any(each.step_type == COMPARING for each in steps[row.id])]
    earlier = _read_earlier(connection, [(row.item_id, row.item_version - 1) for row in comparing])
    claimed = []
    for row in rows:
        its_steps = steps[row.id]
        index = row.current_step_index
        before = its_steps[index]
        crashes = before.crashes + (before.status == "running")  # it began and never ended
        its_steps[index] = begun(before, now, crashes=crashes)
        claimed.append(
            ClaimedRun(
                id=row.id,
                lease_no=row.lease_no + 1,
                item_version=row.item_version,
                template_id=row.template_id,
                forced_no=row.forced_no,
                rerun_no=row.rerun_no,
                runtime_config=orjson.loads(row.runtime_config),
                item=found[row.id],
                steps=tuple(its_steps),
                index=index,
                cancelled=row.cancel_requested_at is not None,
                earlier=earlier.get((row.item_id, row.item_version - 1)),
            )
        )
    with sent_together(connection):
        update_rows(
            connection,
            pipeline_executions,
            ("id",),
            ("lease_no", "lease_until", "due_at", "status", "started_at", "slot_at"),
            [
                (row.lease_no + 1, lease_until, lease_until, "running", row.started_at or now, None, row.id)
                for row in rows
            ],
        )
        _write_steps(connection, [(run.id, run.step) for run in claimed])
    return claimed


def begun(step: RunStep, now: float, crashes: int | None = None) -> RunStep:
    return replace(
        step,
        status="running",
        attempts=step.attempts + 1,
        crashes=step.crashes if crashes is None else crashes,
        started_at=now,
        completed_at=None,
    )


def _take_turns(
    connection: Connection, rows: Sequence[Any], now: float, rates: Mapping[str, float]
) -> list[Any]:
    """Those of the rows whose step may start now; the others are given the time at which theirs may."""
    waiting: dict[str, list[Any]] = {}
    for row in rows:
        if row.next_step_type in rates and row.slot_at is None:
            waiting.setdefault(row.next_step_type, []).append(row)
    later: list[tuple[Any, ...]] = []
    for step_type, its_rows in sorted(waiting.items()):
        slot = _reserve(connection, step_type, len(its_rows) * rates[step_type], now)
        for row in its_rows:
            if slot > now:
                later.append((slot, slot, row.id))
            slot += rates[step_type]
    update_rows(connection, pipeline_executions, ("id",), ("due_at", "slot_at"), later)
    postponed = [row_id for _, _, row_id in later]
    defer_jobs(connection, postponed)
    return [row for row in rows if row.id not in set(postponed)]


def _reserve(connection: Connection, step_type: str, seconds: float, now: float) -> float:
    """The first free start of a type, after which `seconds` are taken."""
    mark = "?" if is_sqlite(connection) else "%s"
    next_at: float = connection.exec_driver_sql(
        f"INSERT INTO step_rates (step_type, next_at) VALUES ({mark}, {mark}) ON CONFLICT (step_type)"
        f" DO UPDATE SET next_at = CASE WHEN step_rates.next_at > {mark} THEN step_rates.next_at ELSE {mark} END"
        f" + {mark} RETURNING next_at",
        (step_type, now + seconds, now, now, seconds),
    ).scalar_one()
    return next_at - seconds


def commit_steps(connection: Connection, ends: Sequence[StepEnd]) -> set[tuple[int, int]]:
    """Write the ends of steps. Returns the leases under which they count; the others have passed to other workers."""
    held = _still_held(connection, [end.run.lease for end in ends])
    valid = [end for end in ends if end.run.lease in held]
    with sent_together(connection):
        _write_steps(connection, [(end.run.id, step) for end in valid for step in end.changed])
        _write_runs(connection, valid)
        _hold_items(connection, [end for end in valid if end.results or end.completed_at is not None])
    write_results(connection, [end.new_result(result) for end in valid for result in end.results])
    for end in valid:
        put_in_outbox(connection, end.messages, "item", end.ended_at)
    ended = [end for end in valid if end.completed_at is not None]
    _start_by_tags(connection, valid)
    wake_waiting(
        connection,
        [end.run.item.id for end in ended],
        max((end.completed_at or 0.0 for end in ended), default=0.0),
    )
    _mark_processed(connection, ended)
    publish_items(
        connection,
        sorted((end.outlet, end.run.item.id, end.ended_at) for end in valid if end.outlet),
    )
    defer_jobs(connection, [end.run.id for end in valid if end.due_at is not None])
    return {end.run.lease for end in valid}


def _write_runs(connection: Connection, ends: Sequence[StepEnd]) -> None:
    """Write where runs stand. One that its worker goes on with keeps its lease, which may be renewed meanwhile."""
    stand = ("status", "current_step_index", "next_step_type", "error_message", "completed_at")
    going_on = [(*_stand(end), end.run.id) for end in ends if end.keeps_lease]
    update_rows(connection, pipeline_executions, ("id",), stand, going_on)
    let_go = [(*_stand(end), None, end.due_at, end.run.id) for end in ends if not end.keeps_lease]
    update_rows(connection, pipeline_executions, ("id",), (*stand, "lease_until", "due_at"), let_go)


def _stand(end: StepEnd) -> tuple[Any, ...]:
    next_step_type = end.run.steps[end.index].step_type if end.completed_at is None else None
    return end.status, end.index, next_step_type, storable(end.error_message), end.completed_at


def _hold_items(connection: Connection, ends: Sequence[StepEnd]) -> None:
    """Have the items of these ends to ourselves until the commit: another run of theirs may be ending, too."""
    if ends and not is_sqlite(connection):
        run_by(
            connection,
            "SELECT id FROM items WHERE id {values} ORDER BY id FOR NO KEY UPDATE",
            sorted({end.run.item.id for end in ends}),
            "bigint",
        )


def _start_by_tags(connection: Connection, ends: Sequence[StepEnd]) -> None:
    """Start what is attached to the tags that steps have given."""
    for end in ends:
        for result in end.results:
            if result.kind == "tags":
                tags = {end.run.item.id: read_tags(result.data)}
                start_for_tags(connection, tags, end.ended_at)


def _mark_processed(connection: Connection, ends: Sequence[StepEnd]) -> None:
    """Mark the items of runs that have ended: ANALYZED by a completed run, processed when no run is left."""
    completed = {end.run.item.id for end in ends if end.status == "completed"}
    rows = select_by(
        connection,
        "SELECT item_id FROM pipeline_executions WHERE item_id {values} GROUP BY item_id"
        " HAVING count(*) = count(completed_at)"
        " AND sum(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) > 0 ORDER BY item_id",
        sorted({end.run.item.id for end in ends}),
        "bigint",
    )
    processed = [row[0] for row in rows]
    positions = take_positions(connection, len(processed))
    update_rows(
        connection,
        items,
        ("id",),
        ("status", "processed_position"),
        [("ANALYZED", position, item_id) for item_id, position in zip(processed, positions, strict=True)],
    )
    update_rows(
        connection,
        items,
        ("id",),
        ("status",),
        [("ANALYZED", item_id) for item_id in sorted(completed.difference(processed))],
    )


def renew_leases(
    connection: Connection, leases: Collection[tuple[int, int]], lease_until: float
) -> set[tuple[int, int]]:
    """Extend the leases that are still held; answers them."""
    held = _still_held(connection, leases)
    update_rows(
        connection,
        pipeline_executions,
        ("id",),
        ("lease_until", "due_at"),
        [(lease_until, lease_until, run_id) for run_id, _ in sorted(held)],
    )
    return held


def cancelled_among(connection: Connection, run_ids: Iterable[int]) -> set[int]:
    """Which of these runs a user wants to end."""
    rows = select_by(
        connection,
        "SELECT id FROM pipeline_executions WHERE cancel_requested_at IS NOT NULL AND id {values}",
        run_ids,
        "bigint",
    )
    return {row[0] for row in rows}


def take_back_waits(connection: Connection, now: float) -> int:
    """Make due the runs that wait longer than any lease or retry does: a clock was ahead. Returns how many.

    A run with a slot may have to wait for long: so many others are before it.
    """
    run = pipeline_executions.c
    query = update(pipeline_executions).where(run.due_at > now + _LONGEST_WAIT_SECONDS, run.slot_at.is_(None))
    run_ids = list(connection.execute(query.values(due_at=now).returning(run.id)).scalars())
    defer_jobs(connection, run_ids)
    wake_forgotten(connection, now)
    return len(run_ids)


def next_run_due_at(connection: Connection) -> float | None:
    row = connection.exec_driver_sql(
        "SELECT due_at FROM pipeline_executions WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1"
    ).first()
    return None if row is None else float(row[0])


def _still_held(connection: Connection, leases: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    rows = select_by(
        connection,
        "SELECT id, lease_no FROM pipeline_executions WHERE id {values} AND lease_until IS NOT NULL ORDER BY id"
        + ("" if is_sqlite(connection) else " FOR UPDATE"),
        sorted(run_id for run_id, _ in leases),
        "bigint",
    )
    return {(run_id, lease_no) for run_id, lease_no in rows} & set(leases)


_STEP = (
    "status",
    "attempts",
    "crashes",
    "output_data",
    "error_message",
    "started_at",
    "completed_at",
)


def _write_steps(connection: Connection, steps: Sequence[tuple[int, RunStep]]) -> None:
    update_rows(
        connection,
        pipeline_steps,
        ("execution_id", "step_index"),
        _STEP,
        [
            (
                step.status,
                step.attempts,
                step.crashes,
                None if step.output is None else storable(orjson.dumps(step.output).decode()),
                storable(step.error_message),
                step.started_at,
                step.completed_at,
                run_id,
                step.index,
            )
            for run_id, step in steps
        ],
    )


def read_steps(connection: Connection, run_ids: Sequence[int]) -> dict[int, list[RunStep]]:
    """The steps of each of these runs, in order."""
    rows = select_by(
        connection,
        "SELECT execution_id, step_index, step_type, is_critical, config, timeout_seconds, retries, status,"
        " attempts, crashes, output_data, error_message, started_at, completed_at"
        " FROM pipeline_steps WHERE execution_id {values} ORDER BY execution_id, step_index",
        run_ids,
        "bigint",
    )
    found: dict[int, list[RunStep]] = {run_id: [] for run_id in run_ids}
    for run_id, index, step_type, is_critical, config, timeout, retries, status, *rest in rows:
        attempts, crashes, output, error, started_at, completed_at = rest
        found[run_id].append(
            RunStep(
                index=index,
                step_type=step_type,
                is_critical=bool(is_critical),
                config=orjson.loads(config),
                timeout_seconds=timeout,
                retries=retries,
                status=status,
                attempts=attempts,
                crashes=crashes,
                output=None if output is None else orjson.loads(output),
                error_message=error,
                started_at=started_at,
                completed_at=completed_at,
            )
        )
    return found


def _read_items(connection: Connection, wanted: Mapping[int, tuple[int, int]]) -> dict[int, StoredItem]:
    """For each run, its item as it was in the version the run is about."""
    stored = {item.id: item for item in read_items(connection, [item_id for item_id, _ in wanted.values()])}
    old = {
        (item_id, version): content
        for item_id, version, *content in select_by(
            connection,
            "SELECT item_id, version, title, summary, content, updated_at FROM item_versions"
            " WHERE item_id {values}",
            {item_id for item_id, version in wanted.values() if stored[item_id].version != version},
            "bigint",
        )
    }
    return {
        run_id: _in_version(stored[item_id], version, old.get((item_id, version)))
        for run_id, (item_id, version) in wanted.items()
    }


def _read_earlier(
    connection: Connection, wanted: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], dict[str, Any]]:
    """What items said in these versions."""
    rows = select_rows(
        connection, item_versions, ("item_id", "version"), ("title", "summary", "content"), wanted
    )
    return {
        (item_id, version): {"title": title, "summary": summary, "content": content}
        for item_id, version, title, summary, content in rows
    }


def _in_version(item: StoredItem, version: int, old: list[Any] | None) -> StoredItem:
    if old is None:
        return item if item.version == version else replace(item, version=version)
    title, summary, content, updated_at = old
    return replace(
        item, version=version, title=title, summary=summary, content=content, updated_at=updated_at
    )
