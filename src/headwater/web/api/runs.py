"""`/api/runs…`: what pipelines have done, are doing, and are to do again."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.pipeline.showing import run_values
from headwater.store.runs import Status
from headwater.store.starting import (
    RunQuery,
    cancel,
    find_item_ids,
    get_run,
    list_runs,
    rerun,
    retry,
    start_runs,
)
from headwater.store.templates import get_template
from headwater.web.api.auth import needs
from headwater.web.api.json import JsonObject
from headwater.web.api.paging import Cursor, Limit, decode_cursor, split_page
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Since, Time, seconds_of
from headwater.web.context import InContext

router = APIRouter(prefix="/runs", tags=["pipelines"])

MOST_AT_ONCE = 1_000
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
RunId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The run's number.")]
_EXAMPLE: dict[str, Any] = {
    "id": 1,
    "status": "running",
    "template_id": 1,
    "template_name": "Read and send",
    "item_id": 7,
    "item_version": 1,
    "item_title": "A title",
    "trigger": "scheduled",
    "current_step_index": 0,
    "next_step_type": "enrich_content",
    "runtime_config": {},
    "error_message": None,
    "created_at": "2026-02-25T10:30:00.000Z",
    "started_at": "2026-02-25T10:30:00.300Z",
    "completed_at": None,
    "due_at": "2026-02-25T10:35:00.000Z",
}


class RunStepEntry(BaseModel):
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


class RunEntry(BaseModel):
    """One execution of a template for one version of one item."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    id: int
    status: Status
    template_id: int | None = Field(description="null: it was removed.")
    template_name: str | None
    item_id: int
    item_version: int
    item_title: str
    trigger: str = Field(description="scheduled: by a visit; manual: by somebody.")
    current_step_index: int = Field(description="The step it is at, from 0.")
    next_step_type: str | None
    runtime_config: dict[str, Any] = Field(description="Secrets are starred out.")
    error_message: str | None
    created_at: Time
    started_at: Time | None
    completed_at: Time | None
    due_at: Time | None = Field(description="When it goes on; null: it has ended.")


class WholeRun(RunEntry):
    """A run with its steps."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                **_EXAMPLE,
                "steps": [
                    {
                        "step_index": 0,
                        "step_type": "enrich_content",
                        "is_critical": False,
                        "status": "running",
                        "attempts": 1,
                        "output_data": None,
                        "error_message": None,
                        "started_at": "2026-02-25T10:30:00.300Z",
                        "completed_at": None,
                    }
                ],
            }
        }
    )

    steps: list[RunStepEntry]


class RunPage(BaseModel):
    runs: list[RunEntry]
    next: str | None = Field(description="The cursor of the next page; null: there are no more.")


class Start(BaseModel):
    """A template to run for some items."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"template_id": 1, "item_ids": [7, 8]}}
    )

    template_id: Number
    item_ids: list[Number] = Field(min_length=1, max_length=MOST_AT_ONCE)
    runtime_config: JsonObject = Field(default_factory=dict, description="What its steps are told besides.")
    force: bool = Field(default=False, description="Also where this version of an item had a run already.")


class Started(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"example": {"run_ids": [1, 2]}})

    run_ids: list[int]


class Again(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"from_step": 2}}
    )

    from_step: int = Field(default=0, ge=0, le=1_000, description="The step to begin with, from 0.")


@router.get("", dependencies=[needs("read")], responses=problem_responses(400), summary="List runs")
async def list_(
    context: InContext,
    cursor: Cursor = None,
    limit: Limit = 50,
    status: Annotated[Status | None, Query(description="Only those in this state.")] = None,
    template_id: Annotated[
        int | None, Query(ge=1, le=2**63 - 1, description="Only those of this template.")
    ] = None,
    source_id: Annotated[
        int | None, Query(ge=1, le=2**63 - 1, description="Only those of items of this source.")
    ] = None,
    since: Since = None,
) -> RunPage:
    """Runs without their steps, newest first."""
    place = decode_cursor(cursor, int)
    wanted = RunQuery(status=status, template_id=template_id, source_id=source_id, since_at=seconds_of(since))
    found = await context.store.read(
        list_runs, wanted, limit=limit + 1, before_id=place[0] if place else None
    )
    page, following = split_page(found, limit, lambda run: (run.id,))
    return RunPage(runs=[RunEntry(**run_values(run)) for run in page], next=following)


@router.post(
    "",
    status_code=202,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404),
    summary="Start runs",
)
async def start(context: InContext, wanted: Start) -> Started:
    """Start a template for items; each version of an item once, unless forced."""
    return Started(run_ids=await context.store.write(_start, wanted, context.clock()))


@router.get("/{run_id}", dependencies=[needs("read")], responses=problem_responses(404), summary="One run")
async def one(context: InContext, run_id: RunId) -> WholeRun:
    """A run with its steps, their outputs and errors."""
    return WholeRun(**run_values(await context.store.read(get_run, run_id)))


@router.post(
    "/{run_id}/rerun",
    status_code=202,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404, 409),
    summary="Run it again",
)
async def rerun_(context: InContext, run_id: RunId, again: Again) -> WholeRun:
    """Run a run's steps again from one of them on; the outputs of those before are kept."""
    await context.store.write(rerun, run_id, again.from_step, context.clock())
    return WholeRun(**run_values(await context.store.read(get_run, run_id)))


@router.post(
    "/{run_id}/retry",
    status_code=202,
    dependencies=[needs("admin")],
    responses=problem_responses(404, 409),
    summary="Let it go on",
)
async def retry_(context: InContext, run_id: RunId) -> WholeRun:
    """Let a run that failed or was cancelled go on with the step it ended in."""
    await context.store.write(retry, run_id, context.clock())
    return WholeRun(**run_values(await context.store.read(get_run, run_id)))


@router.post(
    "/{run_id}/cancel",
    status_code=202,
    dependencies=[needs("admin")],
    responses=problem_responses(404, 409),
    summary="End it",
)
async def cancel_(context: InContext, run_id: RunId) -> WholeRun:
    """End a run: at once, or as soon as its worker has stopped the step that is running."""
    await context.store.write(cancel, run_id, context.clock())
    return WholeRun(**run_values(await context.store.read(get_run, run_id)))


def _start(connection: Connection, wanted: Start, now: float) -> list[int]:
    template = get_template(connection, wanted.template_id)
    items = find_item_ids(connection, wanted.item_ids)
    return start_runs(
        connection, template, items, now, runtime_config=wanted.runtime_config, forced=wanted.force
    )
