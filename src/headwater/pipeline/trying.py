"""Trying steps on one item, for a person who writes a template: each step's output, and nothing is stored or sent."""

import asyncio
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headwater.errors import HeadwaterError
from headwater.model import Result, StoredItem
from headwater.pipeline.advance import Workbench
from headwater.pipeline.registry import find_step
from headwater.pipeline.steps.base import HeavyStep, StepContext, StepResult, short_name
from headwater.store.reading.results import NewResult
from headwater.views.items import item_json

STEP_SECONDS = 120.0  # of one step, for a person waits
_RUN = 0  # the number of a run that is none


@dataclass(frozen=True, slots=True)
class TriedStep:
    """What a step did, or why it did not work. A step after one that ended the run is not run."""

    step_type: str
    status: str  # completed, failed, skipped
    output: dict[str, Any] | None = None
    results: tuple[Result, ...] = ()
    error_message: str | None = None


async def try_steps(
    steps: tuple[dict[str, Any], ...],
    item: StoredItem,
    bench: Workbench,
    runtime_config: dict[str, Any] | None = None,
) -> list[TriedStep]:
    """Run steps that were found good on an item; what publishes only shows what it would publish."""
    tried: list[TriedStep] = []
    previous: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="headwater-try-") as folder:
        for index, written in enumerate(steps):
            if tried and tried[-1].status != "completed" and _ends_run(tried[-1], steps[index - 1]):
                tried.append(TriedStep(written["step_type"], "skipped"))
                continue
            context = StepContext(
                content_item=item_json(item),
                previous_steps=dict(previous),
                runtime_config=runtime_config or {},
                idempotency_key=f"try-{index + 1}",
                files=Path(folder),
                fetcher=bench.fetcher,
                secrets=bench.secrets,
                mail=bench.mail,
                run_id=_RUN,
                models=bench.ledger and replace(bench.ledger, owner="tries"),
            )
            outcome = await _try(written, context)
            tried.append(outcome)
            if outcome.output is not None:
                previous[f"step_{index + 1}_{short_name(written['step_type'])}"] = outcome.output
            made = (
                NewResult(
                    item.id, item.version, result, bench.clock(), _RUN, None, index, written["step_type"]
                )
                for result in outcome.results
            )
            results = {each.result.key: each.as_stored() for each in made}
            item = replace(item, results={**item.results, **results})
    return tried


def _ends_run(tried: TriedStep, written: dict[str, Any]) -> bool:
    return tried.status == "skipped" or written["is_critical"]


async def _try(written: dict[str, Any], context: StepContext) -> TriedStep:
    name = written["step_type"]
    seconds = min(written["timeout_seconds"] or STEP_SECONDS, STEP_SECONDS)
    try:
        step = find_step(name)
        config = step.config_model.model_validate(written["config"])
        async with asyncio.timeout(seconds):
            if isinstance(step, HeavyStep):
                from headwater.pipeline.heavy import work_in_child_process

                result: StepResult = await work_in_child_process(step, context, written["config"])
            else:
                result = await step.preview(context, config)
    except TimeoutError:
        return TriedStep(name, "failed", error_message=f"it did not end within {seconds:g} s")
    except HeadwaterError as error:
        return TriedStep(name, "failed", error_message=str(error))
    status = "skipped" if result.end_run else "completed"
    return TriedStep(name, status, result.output, result.results)
