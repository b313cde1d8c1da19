"""One step of one run: perform it within its time, and decide what its end means. `advance` does both and commits.

    claimed run → context → the step's own work, under its timeout → StepEnd → commit, and the next step

`decide` is pure. Nothing here claims in bulk, waits for work or knows a queue: that is the worker's.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import orjson

from headwater.collectors.secrets import hide_secrets
from headwater.errors import HeadwaterError
from headwater.fetch.client import Fetcher
from headwater.model import RESULT_KINDS
from headwater.pipeline.heavy import work_in_child_process
from headwater.pipeline.ledger import Ledger
from headwater.pipeline.registry import find_step
from headwater.pipeline.steps.base import (
    HeavyStep,
    Outgoing,
    PassingStepError,
    Step,
    StepContext,
    StepError,
    StepResult,
    short_name,
)
from headwater.processes.pool import MOST_OUTPUT_BYTES, too_large
from headwater.services.requests import TOLD_VARIABLES
from headwater.services.targets import MailDefaults
from headwater.store.core.database import Store
from headwater.store.pipelines.runs import (
    ClaimedRun,
    Later,
    RunStep,
    StepEnd,
    begun,
    claim_named,
    commit_steps,
)
from headwater.store.publishing.outbox import NewDelivery
from headwater.views.items import item_json

log = logging.getLogger(__name__)

LEASE_SECONDS = 12.0
FIRST_RETRY_SECONDS = 2.0
LONGEST_RETRY_SECONDS = 600.0
LONGEST_ASKED_SECONDS = 7 * 86_400.0  # as far as a service's own word on when to try again is taken
MOST_CRASHES = 3
STUBBORN_SECONDS = 5.0  # how long a step may take to notice that it was stopped


@dataclass(slots=True)
class Workbench:
    """What steps are given besides their context."""

    files: Path  # under which each item has a directory
    fetcher: Fetcher | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mail: MailDefaults = MailDefaults()
    ledger: Ledger | None = None  # of what models are asked
    clock: Callable[[], float] = time.time
    rng: Random = field(default_factory=Random)


async def advance(store: Store, run_id: int, bench: Workbench) -> StepEnd | None:
    """Run one step of a run that is due, commit its end, and hand the run on to the worker that takes the next.

    None when there is nothing to do: the run has ended, is not due, or passed to another worker meanwhile.
    """
    now = bench.clock()
    claimed = (await store.write(claim_named, [run_id], now=now, lease_until=now + 60.0)).get(run_id)
    if claimed is None or isinstance(claimed, Later):
        return None
    end = handed_on(await perform(claimed, bench), bench.clock())
    return end if await store.write(commit_steps, [end]) else None


async def perform(run: ClaimedRun, bench: Workbench) -> StepEnd:
    """Do the work of the run's current step. Whatever the step does wrong becomes part of the end."""
    outcome: StepResult | StepError
    if run.cancelled:
        return cancelled(run, bench.clock())
    try:
        if run.step.crashes >= MOST_CRASHES:
            raise StepError(  # noqa: TRY301 - it ends as the step's own failures do
                "its worker died {count} {count:time|times} while it ran", count=run.step.crashes
            )
        outcome = await _work(run, bench)
        _check(outcome)
    except StepError as error:
        outcome = error
    except HeadwaterError as error:
        outcome = StepError("{problem}", problem=str(error))
    except Exception as error:
        log.exception("run %s, step %s (%s)", run.id, run.index + 1, run.step.step_type)
        outcome = StepError(
            "unexpected {kind}: {problem}", kind=type(error).__name__, problem=" ".join(str(error).split())
        )
    if isinstance(outcome, StepError):
        secrets = {name: value for name, value in bench.secrets.items() if name not in TOLD_VARIABLES}
        outcome.values = {
            name: hide_secrets(value, secrets) if isinstance(value, str) else value
            for name, value in outcome.values.items()
        }
    return decide(run, outcome, bench.clock(), bench.rng)


def _check(outcome: StepResult) -> None:
    """Refuse what cannot be stored: a plugin's step may answer anything."""
    if len(orjson.dumps((outcome.output, outcome.results))) > MOST_OUTPUT_BYTES:
        raise too_large()
    for result in outcome.results:
        if result.kind not in RESULT_KINDS:
            raise StepError("there is no kind of result {kind}", kind=result.kind)
        if result.kind == "score" and not isinstance((result.data or {}).get("score"), int | float):
            raise StepError("a score's data must have a number `score`")


async def _work(run: ClaimedRun, bench: Workbench) -> StepResult:
    step = find_step(run.step.step_type)
    config = step.config_model.model_validate(run.step.config)
    seconds = run.step.timeout_seconds or step.timeout_seconds
    files = bench.files / f"item-{run.item.id}"
    context = StepContext(
        content_item=item_json(run.item),
        previous_steps=previous_outputs(run),
        runtime_config=run.runtime_config,
        idempotency_key=idempotency_key(run),
        files=files,
        fetcher=None if step.heavy else bench.fetcher,
        secrets=bench.secrets,
        mail=bench.mail,
        run_id=run.id,
        earlier_item=run.earlier,
        models=bench.ledger and replace(bench.ledger, owner=f"template:{run.template_id or 0}"),
    )
    if isinstance(step, HeavyStep):
        working = asyncio.create_task(work_in_child_process(step, context, run.step.config))
    else:
        working = asyncio.create_task(_run(step, context, config))
    return await _within(working, seconds)


async def _run(step: Step, context: StepContext, config: object) -> StepResult:
    return await step.run(context, config)


async def _within(working: "asyncio.Task[StepResult]", seconds: float) -> StepResult:
    """The task's result, or its end: a step that does not heed being stopped is left behind."""
    try:
        done, _ = await asyncio.wait((working,), timeout=seconds)
    except asyncio.CancelledError:
        await _stop(working)
        raise
    if done:
        if working.cancelled():
            raise StepError("it stopped itself")
        return working.result()
    await _stop(working)
    raise PassingStepError("it did not end within {seconds:g} s", seconds=seconds)


async def _stop(working: "asyncio.Task[StepResult]") -> None:
    working.cancel()
    done, _ = await asyncio.wait((working,), timeout=STUBBORN_SECONDS)
    if not done:
        log.error("a step does not heed being stopped: %r", working)
    elif not working.cancelled() and (error := working.exception()):
        log.debug("a step that was stopped ended with %r", error)


def previous_outputs(run: ClaimedRun) -> dict[str, dict[str, object]]:
    """The outputs of the steps before the current one, by name: `step_1_enrich`, `step_2_transcribe`, …"""
    return {
        f"step_{step.index + 1}_{short_name(step.step_type)}": step.output
        for step in run.steps[: run.index]
        if step.output is not None
    }


def idempotency_key(run: ClaimedRun) -> str:
    """The same for every attempt at this step for this version of the item; another when it is run again."""
    key = f"item-{run.item.id}-version-{run.item_version}-template-{run.template_id or 0}"
    if run.forced_no or run.rerun_no:
        key += f"-again-{run.forced_no}.{run.rerun_no}"
    return f"{key}-step-{run.index + 1}"


def decide(run: ClaimedRun, outcome: StepResult | StepError, now: float, rng: Random) -> StepEnd:
    """What the end of the current step means for the run."""
    step = run.step
    if isinstance(outcome, StepResult):
        done = replace(
            step, status="completed", output=outcome.output, error_message=None, completed_at=now, crashes=0
        )
        end = _ended_as_skipped(run, done, now) if outcome.end_run else _next(run, done, now)
        return replace(
            end,
            outlet=outcome.outlet,
            results=outcome.results,
            messages=tuple(_delivery(run, outgoing) for outgoing in outcome.messages),
            ended_at=now,
        )
    message = str(outcome)
    does_not_count = isinstance(outcome, PassingStepError) and not outcome.counts
    if outcome.passing and (step.attempts <= step.retries or does_not_count):
        waiting = replace(step, status="pending", error_message=message, started_at=None, crashes=0)
        asked = None
        if isinstance(outcome, PassingStepError):
            asked = outcome.retry_after_seconds
            if not outcome.counts:
                waiting = replace(waiting, attempts=step.attempts - 1)
        due_at = now + max(retry_seconds(step.attempts, rng), min(asked or 0.0, LONGEST_ASKED_SECONDS))
        return StepEnd(run, (waiting,), "running", run.index, due_at=due_at, error_message=message)
    if step.is_critical:
        failed = replace(step, status="failed", error_message=message, completed_at=now)
        return StepEnd(
            run,
            (failed,),
            "failed",
            run.index,
            error_message=f"step {step.index + 1} ({step.step_type}): {message}",
            completed_at=now,
        )
    return _next(run, replace(step, status="skipped", error_message=message, completed_at=now), now)


def _delivery(run: ClaimedRun, outgoing: Outgoing) -> NewDelivery:
    message = outgoing.message
    return NewDelivery(
        outgoing.target, idempotency_key(run), message.title, message.text, message.html, message.data or {}
    )


def retry_seconds(attempts: int, rng: Random) -> float:
    """How long to wait after so many attempts: twice as long each time, spread by chance."""
    longest = min(FIRST_RETRY_SECONDS * 2.0 ** min(attempts - 1, 30), LONGEST_RETRY_SECONDS)
    return longest * rng.uniform(0.75, 1.25)


def _next(run: ClaimedRun, done: RunStep, now: float) -> StepEnd:
    if run.index + 1 == len(run.steps):
        return StepEnd(run, (done,), "completed", run.index, completed_at=now)
    return StepEnd(run, (done, begun(run.steps[run.index + 1], now)), "running", run.index + 1)


def _ended_as_skipped(run: ClaimedRun, done: RunStep, now: float) -> StepEnd:
    rest = [replace(step, status="skipped", completed_at=now) for step in run.steps[run.index + 1 :]]
    return StepEnd(run, (done, *rest), "skipped", run.index, completed_at=now)


def handed_on(end: StepEnd, now: float) -> StepEnd:
    """The same end, but the next step waits in line for any worker."""
    if not end.keeps_lease:
        return end
    changed = tuple(
        replace(step, status="pending", attempts=step.attempts - 1, started_at=None)
        if step.index == end.index
        else step
        for step in end.changed
    )
    return replace(end, changed=changed, due_at=now)


def interrupted(run: ClaimedRun, now: float) -> StepEnd:
    """The worker has to go: the step begins again elsewhere, as if it had never begun."""
    waiting = replace(run.step, status="pending", attempts=run.step.attempts - 1, started_at=None)
    return StepEnd(run, (waiting,), "running", run.index, due_at=now)


def cancelled(run: ClaimedRun, now: float) -> StepEnd:
    """A user wants the run to end."""
    rest = [replace(step, status="skipped", completed_at=now) for step in run.steps[run.index :]]
    rest[0] = replace(rest[0], error_message="cancelled")
    return StepEnd(run, tuple(rest), "skipped", run.index, error_message="cancelled", completed_at=now)
