"""A pipeline run, with its steps and what they gave before they were run again."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.collectors.base import shown_config
from headwater.store.pipelines.runs import RunStep, Status
from headwater.store.pipelines.starting import Run
from headwater.store.pipelines.step_results import EarlierResult
from headwater.views.shape import Json, Shape, Time, with_example


class EarlierResultView(BaseModel):
    """How a step ended before it was run again."""

    status: Status
    attempts: int
    output_data: dict[str, Any] | None
    error_message: str | None
    started_at: Time | None
    completed_at: Time | None
    replaced_at: Time = Field(description="When it was run again.")


class RunStepView(BaseModel):
    """One stage of a run."""

    step_index: int
    step_type: str
    is_critical: bool
    status: Status
    attempts: int
    output_data: dict[str, Any] | None
    error_message: str | None
    started_at: Time | None
    completed_at: Time | None
    earlier: list[EarlierResultView] = Field(
        description="What it gave before it was run again, the newest first."
    )


class RunView(BaseModel):
    """One execution of a template for one version of one item."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: run_json(_EXAMPLE))

    id: int
    status: Status
    template_id: int | None = Field(description="null: it was removed.")
    template_name: str | None
    item_id: int
    item_version: int
    item_title: str
    trigger: str = Field(description="scheduled: by a visit; manual: by a person or a program.")
    current_step_index: int = Field(description="The step it is at, from 0.")
    next_step_type: str | None
    runtime_config: dict[str, Any] = Field(description="Secrets are shown as ***.")
    error_message: str | None
    created_at: Time
    started_at: Time | None
    completed_at: Time | None
    due_at: Time | None = Field(description="When it goes on; null: it has ended.")


class WholeRunView(RunView):
    """A run with its steps."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: whole_run_json(_EXAMPLE))

    steps: list[RunStepView]


_earlier_json: Shape[EarlierResult] = Shape(EarlierResultView, output_data=lambda result: result.output)
_step_json: Shape[RunStep] = Shape(
    RunStepView, ("earlier",), step_index=lambda step: step.index, output_data=lambda step: step.output
)
run_json: Shape[Run] = Shape(RunView, runtime_config=lambda run: shown_config(run.runtime_config))


def whole_run_json(run: Run) -> Json:
    earlier: dict[int, list[Json]] = {}
    for result in run.earlier:
        earlier.setdefault(result.step_index, []).append(_earlier_json(result))
    steps = [_step_json(step, earlier=earlier.get(step.index, [])) for step in run.steps]
    return {**run_json(run), "steps": steps}


_EXAMPLE: Run = Run(
    id=1,
    item_id=7,
    item_version=1,
    item_title="A title",
    template_id=1,
    template_name="Read and send",
    status="running",
    current_step_index=0,
    next_step_type="enrich_content",
    trigger="scheduled",
    runtime_config={},
    error_message=None,
    created_at=1_772_015_400.0,
    started_at=1_772_015_400.3,
    completed_at=None,
    due_at=1_772_015_700.0,
    steps=(
        RunStep(
            index=0,
            step_type="enrich_content",
            is_critical=False,
            config={},
            timeout_seconds=None,
            retries=2,
            status="running",
            attempts=1,
            started_at=1_772_015_400.3,
        ),
    ),
)
