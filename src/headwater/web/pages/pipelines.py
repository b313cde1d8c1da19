"""Pipelines: templates made from an example, edited with their mistakes named, attached to sources."""

from typing import Any

import orjson
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import Connection

from headwater.collectors.base import is_secret
from headwater.errors import InputError
from headwater.pipeline.examples import EXAMPLES, find_example
from headwater.pipeline.registry import STEP_HANDLERS, is_installed
from headwater.pipeline.templates import STARS, read_template, shown_steps, with_secrets
from headwater.store.listing import first_sources, newest_items
from headwater.store.selection import Selection
from headwater.store.sources import get_source
from headwater.store.starting import RunQuery, list_runs, start_runs
from headwater.store.templates import (
    NewTemplate,
    Template,
    add_template,
    attach_template,
    change_template,
    get_template,
    list_templates,
    remove_template,
    sources_by_template,
    sources_with_template,
)
from headwater.web.pages.frame import Action, InAction, InPage, Number, Page

router = APIRouter()

LISTED_SOURCES = 200
LISTED_RUNS = 10
FEWEST_ROWS, MOST_ROWS = 8, 30  # of the field for steps


@router.get("/pipelines")
async def pipelines_page(page: InPage, source: Number = "") -> HTMLResponse:
    """All pipelines; with `source`, on the way to one for that source."""
    store = page.context.store
    return await page.show(
        "pipelines.html",
        source=await store.read(get_source, int(source)) if source else None,
        templates=await store.read(list_templates),
        attached=await store.read(sources_by_template),
        examples=EXAMPLES,
    )


@router.get("/pipelines/new")
async def new_page(page: InPage, example: str = "", source: Number = "") -> HTMLResponse:
    """The editor with an example in it: nothing is stored before it is saved."""
    page.require("admin")
    chosen = find_example(example)
    written = {
        "name": page.t(chosen.name),
        "description": page.t(chosen.description),
        "run_on_change": False,
        "steps": _as_text(chosen.steps),
    }
    return await _show_editor(page, None, written, source_ids=[int(source)] if source else [])


@router.post("/pipelines")
async def add(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    source_ids = action.numbers("source")
    try:
        added = await page.context.store.write(
            _add, read_template(_read(action)), source_ids, page.context.clock()
        )
    except InputError as error:
        return await _show_editor(
            page, None, _written(action), problem=error.render(page.language), source_ids=source_ids
        )
    if source_ids:
        notice = page.t("added pipeline {name}: it runs for each new item from now on", name=added.name)
    else:
        notice = page.t(
            "added pipeline {name}; attach it to a source below, and it runs for each new item",
            name=added.name,
        )
    return action.back(f"/pipelines/{added.id}", notice)


def _add(connection: Connection, template: NewTemplate, source_ids: list[int], now: float) -> Template:
    added = add_template(connection, template, now)
    if source_ids:
        attach_to(connection, source_ids, added.id)
    return added


@router.get("/pipelines/{template_id}")
async def pipeline_page(page: InPage, template_id: int) -> HTMLResponse:
    template = await page.context.store.read(get_template, template_id)
    return await _show_editor(page, template, _as_written(template))


@router.post("/pipelines/{template_id}")
async def change(action: InAction, template_id: int) -> Response:
    page = action.page
    page.require("admin")
    store = page.context.store
    template = await store.read(get_template, template_id)
    try:
        data = _read(action)
        data["steps"] = with_secrets(data["steps"], template)
        await store.write(change_template, template_id, read_template(data), page.context.clock())
    except InputError as error:
        return await _show_editor(page, template, _written(action), problem=error.render(page.language))
    return action.back(f"/pipelines/{template_id}", page.t("saved"))


@router.post("/pipelines/{template_id}/try")
async def try_it(action: InAction, template_id: int) -> Response:
    """Run it now, for the newest item of the sources it is attached to."""
    page = action.page
    page.require("admin")
    store = page.context.store
    template = await store.read(get_template, template_id)
    attached = await store.read(sources_with_template, template_id, limit=LISTED_SOURCES)
    chosen = Selection(source_ids=tuple(number for number, _ in attached))
    found = await store.read(newest_items, chosen, limit=1) if attached else []
    if not found:
        return action.back(
            f"/pipelines/{template_id}", page.t("its sources have no item yet to try it with"), bad=True
        )
    (run_id,) = await store.write(start_runs, template, [found[0].id], page.context.clock(), forced=True)
    return action.back(f"/runs/{run_id}", page.t("started"))


@router.post("/pipelines/{template_id}/remove")
async def remove(action: InAction, template_id: int) -> Response:
    page = action.page
    page.require("admin")
    removed = await page.context.store.write(remove_template, template_id)
    return action.back("/pipelines", page.t("removed template {name}; its runs stay", name=removed.name))


@router.post("/pipelines/{template_id}/attach")
async def attach(action: InAction, template_id: int) -> Response:
    return await _attach(
        action,
        template_id,
        "attached to {count} {count:source: its|sources: their} new items are run from now on",
    )


@router.post("/pipelines/{template_id}/detach")
async def detach(action: InAction, template_id: int) -> Response:
    return await _attach(
        action, None, "detached from {count} {count:source|sources}", path=f"/pipelines/{template_id}"
    )


async def _attach(action: Action, template_id: int | None, told: str, path: str | None = None) -> Response:
    page = action.page
    page.require("admin")
    path = path or f"/pipelines/{template_id}"
    numbers = action.text("sources").replace(",", " ").split()
    if not all(number.isdecimal() and len(number) < 19 for number in numbers):
        problem = InputError(
            "{text} is not a list of source numbers; write 1, 2, 3", text=action.text("sources")
        )
        return action.back(path, problem.render(page.language), bad=True)
    chosen = [*map(int, numbers), *action.numbers("source")]
    if not chosen:
        return action.back(path, page.t("no source was ticked"), bad=True)
    try:
        await page.context.store.write(attach_to, chosen, template_id)
    except InputError as error:
        return action.back(path, error.render(page.language), bad=True)
    return action.back(path, page.t(told, count=len(set(chosen))))


def attach_to(connection: Connection, source_ids: list[int], template_id: int | None) -> None:
    """Attach a template, or none, to sources that are all there."""
    if template_id is not None:
        get_template(connection, template_id)
    for source_id in source_ids:
        get_source(connection, source_id)
    attach_template(connection, source_ids, template_id)


async def _show_editor(
    page: Page,
    template: Template | None,
    written: dict[str, Any],
    *,
    problem: str | None = None,
    source_ids: list[int] | None = None,
) -> HTMLResponse:
    store = page.context.store
    its_sources: list[tuple[int, str]] = []
    its_runs: list[Any] = []
    if template is not None:
        its_sources = await store.read(sources_with_template, template.id, limit=LISTED_SOURCES)
        its_runs = await store.read(list_runs, RunQuery(template_id=template.id), limit=LISTED_RUNS)
    return await page.show(
        "pipeline.html",
        status=400 if problem else 200,
        pipeline=template,
        written=written,
        rows=min(MOST_ROWS, max(FEWEST_ROWS, written["steps"].count("\n") + 2)),
        has_stars=STARS in written["steps"],
        problem=problem,
        to_attach=[await store.read(get_source, number) for number in source_ids or ()],
        attached=its_sources,
        others=await store.read(first_sources, limit=LISTED_SOURCES),
        runs=its_runs,
        step_types=step_reference(page),
    )


def step_reference(page: Page) -> list[dict[str, Any]]:
    """The step types with the keys of their configs, as somebody needs them who writes a template."""
    found = []
    for name, step in STEP_HANDLERS.items():
        model = step.config_model
        schema = model.model_json_schema()["properties"] if model.model_fields else {}
        found.append(
            {
                "name": name,
                "extra": None if is_installed(step) else step.extra,
                "timeout_seconds": step.timeout_seconds,
                "retries": step.retries,
                "keys": [
                    {
                        "name": key,
                        "default": orjson.dumps(schema[key].get("default")).decode()[:60],
                        "required": field.is_required(),
                        "secret": is_secret(key, model),
                        "meaning": page.t(field.description or ""),
                    }
                    for key, field in model.model_fields.items()
                ],
            }
        )
    return found


def _read(action: Action) -> dict[str, Any]:
    try:
        steps = orjson.loads(action.text("steps") or "[]")
    except orjson.JSONDecodeError as error:
        raise InputError("the steps are not JSON: {problem}", problem=str(error)) from None
    return {
        "name": action.text("name"),
        "description": action.text("description") or None,
        "run_on_change": bool(action.text("run_on_change")),
        "steps": steps,
    }


def _written(action: Action) -> dict[str, Any]:
    """What was typed, as it was typed."""
    return {
        "name": action.text("name"),
        "description": action.text("description"),
        "run_on_change": bool(action.text("run_on_change")),
        "steps": action.text("steps"),
    }


def _as_written(template: Template) -> dict[str, Any]:
    return {
        "name": template.name,
        "description": template.description or "",
        "run_on_change": template.run_on_change,
        "steps": _as_text(shown_steps(template)),
    }


def _as_text(steps: Any) -> str:
    return orjson.dumps(steps, option=orjson.OPT_INDENT_2).decode()
