"""Heavy steps, each in a separate process that is killed with all it has started when its time is over."""

from pathlib import Path
from typing import Any

from headwater.model import Result
from headwater.pipeline.steps.base import HeavyStep, Outgoing, StepContext, StepResult
from headwater.processes.pool import ChildPool
from headwater.services.targets import Message

_children = ChildPool(__name__, tasks_per_child=1, most_idle=0)


async def work_in_child_process(step: HeavyStep, context: StepContext, config: dict[str, Any]) -> StepResult:
    """What `step.work` returns in a separate process. Cancelled, it leaves no process behind."""
    told = await _children.call(
        {
            "step_type": step.step_type,
            "config": config,
            "content_item": context.content_item,
            "previous_steps": context.previous_steps,
            "runtime_config": context.runtime_config,
            "idempotency_key": context.idempotency_key,
            "files": str(context.files),
        }
    )
    results = tuple(Result(**each) for each in told["results"])
    messages = tuple(Outgoing(each["target"], Message(**each["message"])) for each in told["messages"])
    return StepResult(told["output"], told["end_run"], told["outlet"], results, messages)


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """Do a step's work. Blocking, in a separate process."""
    from dataclasses import asdict

    from headwater.pipeline.registry import find_step

    step = find_step(task["step_type"])
    if not isinstance(step, HeavyStep):
        raise TypeError(f"{task['step_type']} is not a heavy step")
    context = StepContext(
        content_item=task["content_item"],
        previous_steps=task["previous_steps"],
        runtime_config=task["runtime_config"],
        idempotency_key=task["idempotency_key"],
        files=Path(task["files"]),
    )
    return asdict(step.work(context, step.config_model.model_validate(task["config"])))
