"""Runs steps one after the other the way the engine does, without its rows and its queue."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.config import SECRET_PREFIX
from headwater.errors import HeadwaterError
from headwater.fetch.client import Fetcher
from headwater.pipeline.steps.base import Step, StepContext, StepResult, short_name
from headwater.services.requests import secrets_for_steps


def make_context(
    files: Path,
    fetcher: Fetcher | None = None,
    *,
    item: dict[str, Any] | None = None,
    previous: dict[str, dict[str, Any]] | None = None,
    runtime: dict[str, Any] | None = None,
    key: str = "item-1-v1-step-1",
    **more: Any,
) -> StepContext:
    files.mkdir(parents=True, exist_ok=True)
    known = {
        name.removeprefix(SECRET_PREFIX): value
        for name, value in os.environ.items()
        if name.startswith(SECRET_PREFIX)
    }
    return StepContext(
        item or {}, previous or {}, runtime or {}, key, files, fetcher, secrets_for_steps(known), **more
    )


async def run_step(step: Step, context: StepContext, config: dict[str, Any] | None = None) -> StepResult:
    """One step with its config checked first, as it is when a template is saved."""
    read = step.config_model.model_validate(config or {})
    step.check(read)
    return await step.run(context, read)


@dataclass
class FinishedRun:
    """What the engine's rows would say."""

    status: str = "pending"
    steps: list[dict[str, Any]] = field(default_factory=list)

    def output(self, index: int) -> dict[str, Any]:
        return dict(self.steps[index]["output_data"] or {})


async def run_template(
    template: list[dict[str, Any]],
    handlers: dict[str, type[Step]],
    item: dict[str, Any],
    files: Path,
    fetcher: Fetcher,
    runtime: dict[str, Any] | None = None,
) -> FinishedRun:
    """A template's steps in order: a critical failure ends the run, an optional one is skipped."""
    run = FinishedRun(status="running")
    outputs: dict[str, dict[str, Any]] = {}
    for number, entry in enumerate(template, start=1):
        kind = entry["step_type"]
        row: dict[str, Any] = {"step_type": kind, "status": "running", "output_data": None, "error": None}
        run.steps.append(row)
        context = make_context(
            files / kind, fetcher, item=item, previous=dict(outputs), runtime=runtime, key=f"item-1-v1-{kind}"
        )
        try:
            result = await run_step(handlers[kind](), context, entry.get("config"))
        except HeadwaterError as error:
            row["error"] = str(error)
            row["status"] = "failed" if entry["is_critical"] else "skipped"
            if entry["is_critical"]:
                run.status = "failed"
                return run
            continue
        row.update(status="completed", output_data=result.output)
        outputs[f"step_{number}_{short_name(kind)}"] = result.output
        if result.end_run:
            run.status = "skipped"
            return run
    run.status = "completed"
    return run
