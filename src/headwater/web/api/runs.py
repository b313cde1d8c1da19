"""`/api/runs…`: what pipelines have done, are doing, and are to do again."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.store.pipelines.runs import Status
from headwater.store.pipelines.starting import (
    RunQuery,
    cancel,
    find_item_ids,
    get_run,
    list_runs,
    rerun,
    retry,
    start_runs,
)
from headwater.store.pipelines.templates import get_template
from headwater.views.runs import RunView, WholeRunView, run_json, whole_run_json
from headwater.views.shape import Json
from headwater.web.api.auth import needs
from headwater.web.api.json import JsonObject
from headwater.web.api.paging import Cursor, Limit, Next, answer_page, decode_number
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Since, seconds_of
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch

router = APIRouter(prefix="/runs", tags=["pipelines"])

MOST_AT_ONCE = 1_000
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
RunId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The run's number.")]


class RunPage(BaseModel):
    runs: list[RunView]
    next: Next


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


@router.get(
    "",
    response_model=RunPage,
    dependencies=[needs("read")],
    responses={**problem_responses(400), **NOT_MODIFIED},
    summary="List runs",
)
async def list_(
    request: Request,
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
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Runs without their steps, newest first."""
    wanted = RunQuery(status=status, template_id=template_id, source_id=source_id, since_at=seconds_of(since))
    found = await context.store.read(list_runs, wanted, limit=limit + 1, before_id=decode_number(cursor))
    return answer_page(request, "runs", found, limit, lambda run: (run.id,), run_json)


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


@router.get(
    "/{run_id}",
    response_model=WholeRunView,
    dependencies=[needs("read")],
    responses=problem_responses(404),
    summary="One run",
)
async def one(context: InContext, run_id: RunId) -> Json:
    """A run with its steps, their outputs and errors."""
    return whole_run_json(await context.store.read(get_run, run_id))


@router.post(
    "/{run_id}/rerun",
    status_code=202,
    response_model=WholeRunView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404, 409),
    summary="Run it again",
)
async def rerun_(context: InContext, run_id: RunId, again: Again) -> Json:
    """Run a run's steps again from one of them on. What they gave stays in `earlier`."""
    await context.store.write(rerun, run_id, again.from_step, context.clock())
    return await one(context, run_id)


@router.post(
    "/{run_id}/retry",
    status_code=202,
    response_model=WholeRunView,
    dependencies=[needs("admin")],
    responses=problem_responses(404, 409),
    summary="Let it go on",
)
async def retry_(context: InContext, run_id: RunId) -> Json:
    """Let a run that failed or was cancelled go on with the step it ended in."""
    await context.store.write(retry, run_id, context.clock())
    return await one(context, run_id)


@router.post(
    "/{run_id}/cancel",
    status_code=202,
    response_model=WholeRunView,
    dependencies=[needs("admin")],
    responses=problem_responses(404, 409),
    summary="End it",
)
async def cancel_(context: InContext, run_id: RunId) -> Json:
    """End a run: at once, or as soon as its worker has stopped the step that is running."""
    await context.store.write(cancel, run_id, context.clock())
    return await one(context, run_id)


def _start(connection: Connection, wanted: Start, now: float) -> list[int]:
    template = get_template(connection, wanted.template_id)
    items = find_item_ids(connection, wanted.item_ids)
    return start_runs(
        connection, template, items, now, runtime_config=wanted.runtime_config, forced=wanted.force
    )
