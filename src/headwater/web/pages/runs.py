"""Runs: what pipelines have done and are doing, step by step; run again from a step, retried, cancelled."""

from typing import Annotated, Any, get_args

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import Connection

from headwater.errors import InputError, NotFoundError
from headwater.store.collecting.sources import find_source
from headwater.store.pipelines.runs import Status
from headwater.store.pipelines.starting import (
    ENDED,
    Run,
    RunQuery,
    cancel,
    find_item_ids,
    get_run,
    list_runs,
    rerun,
    retry,
    start_runs,
)
from headwater.store.pipelines.templates import get_template, list_templates
from headwater.web.chart import Span, timeline
from headwater.web.pages.frame import InAction, InPage, Number, Page
from headwater.web.step_titles import step_title

router = APIRouter()

RUNS_ON_A_PAGE = 50
SHOWN_OUTPUT_CHARACTERS = 20_000
STATUSES: tuple[Status, ...] = get_args(Status)
State = Status | Annotated[str, Query(max_length=0)]
SourceName = Annotated[str, Query(max_length=2_000)]


@router.get("/runs")
async def runs_page(
    page: InPage, status: State = "", template: Number = "", source: SourceName = "", before: Number = ""
) -> HTMLResponse:
    return await page.show("runs.html", **await _listed(page, status, template, source, before))


@router.get("/runs/live")
async def runs_part(
    page: InPage, status: State = "", template: Number = "", source: SourceName = "", before: Number = ""
) -> HTMLResponse:
    """The list alone, which the page fetches again and again."""
    return await page.show("runs_live.html", **await _listed(page, status, template, source, before))


@router.get("/runs/{run_id}")
async def run_page(page: InPage, run_id: int) -> HTMLResponse:
    return await page.show("run.html", **_shown(await page.context.store.read(get_run, run_id), page))


@router.get("/runs/{run_id}/live")
async def run_part(page: InPage, run_id: int) -> HTMLResponse:
    return await page.show("run_live.html", **_shown(await page.context.store.read(get_run, run_id), page))


@router.post("/runs/{run_id}/{what}")
async def act(action: InAction, run_id: int, what: str) -> Response:
    page = action.page
    page.require("admin")
    store, now = page.context.store, page.context.clock()
    path = f"/runs/{run_id}"
    try:
        match what:
            case "rerun":
                number = action.numbers("step")
                first = number[0] if number else 1
                await store.write(rerun, run_id, first - 1, now)
                notice = page.t("it begins again at step {number}", number=first)
            case "retry":
                await store.write(retry, run_id, now)
                notice = page.t("it continues from the step it ended in")
            case "cancel":
                ended = await store.write(cancel, run_id, now)
                notice = page.t("cancelled") if ended else page.t("its step is stopped in a moment")
            case _:
                return action.back(path, page.t("there is no action {name} for runs", name=what), bad=True)
    except InputError as error:
        return action.back(path, error.render(page.language), bad=True)
    return action.back(path, notice)


@router.post("/items/{item_id}/run")
async def start(action: InAction, item_id: int) -> Response:
    """Run a template for one item, by hand."""
    page = action.page
    page.require("admin")
    store = page.context.store
    chosen = action.numbers("template")
    if not chosen:
        return action.back(f"/items/{item_id}", page.t("choose a pipeline first"), bad=True)
    template = await store.read(get_template, chosen[0])
    await store.read(find_item_ids, [item_id])
    started = await store.write(
        start_runs, template, [item_id], page.context.clock(), forced=bool(action.text("again"))
    )
    if not started:
        return action.back(
            f"/items/{item_id}",
            page.t("it has run for this item already; tick the box to run it again"),
            bad=True,
        )
    return action.back(f"/runs/{started[0]}", page.t("started"))


async def _listed(page: Page, status: str, template: str, source: str, before: str) -> dict[str, Any]:
    store = page.context.store
    source_id, problem = None, None
    try:
        source_id = await store.read(_find_source_id, source)
    except NotFoundError:
        problem = page.t("There is no source {name}.", name=source)
    except InputError as error:
        problem = error.render(page.language)
    wanted = RunQuery(
        status=next((each for each in STATUSES if each == status), None),
        template_id=int(template) if template else None,
        source_id=source_id,
    )
    found = (
        []
        if problem
        else await store.read(
            list_runs, wanted, limit=RUNS_ON_A_PAGE + 1, before_id=int(before) if before else None
        )
    )
    return {
        "runs": found[:RUNS_ON_A_PAGE],
        "following": found[RUNS_ON_A_PAGE - 1].id if len(found) > RUNS_ON_A_PAGE else None,
        "wanted": wanted,
        "source": source,
        "problem": problem,
        "statuses": STATUSES,
        "templates": await store.read(list_templates),
        "query": page.request.url.query,
        "took": _took,
    }


def _find_source_id(connection: Connection, name: str) -> int | None:
    return find_source(connection, name.strip(), removed=True).id if name.strip() else None


def _shown(run: Run, page: Page) -> dict[str, Any]:
    now = page.context.clock()
    begun = [step for step in run.steps if step.started_at is not None]
    spans = [
        Span(
            step_title(step.step_type, page.language),
            step.started_at or now,
            step.completed_at if step.completed_at is not None else now,
            step.status,
        )
        for step in begun
    ]
    return {
        "run": run,
        "ended": run.status in ENDED,
        "line": timeline(spans, title=page.t("The steps on a time line")) if spans else None,
        "output": _output,
        "took": _took,
        # A later step can be begun with when all before it are done.
        "can_begin": [
            run.status in ENDED
            and all(before.status in ("completed", "skipped") for before in run.steps[: step.index])
            for step in run.steps
        ],
    }


def _output(output: dict[str, Any] | None) -> str:
    text = "" if output is None else orjson.dumps(output, option=orjson.OPT_INDENT_2).decode()
    return text if len(text) <= SHOWN_OUTPUT_CHARACTERS else text[:SHOWN_OUTPUT_CHARACTERS] + "…"


def _took(part: Any) -> str | None:
    """How long a step or a run has taken."""
    if part.started_at is None or part.completed_at is None:
        return None
    seconds = part.completed_at - part.started_at
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
