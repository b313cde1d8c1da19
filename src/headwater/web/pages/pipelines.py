"""Pipelines: templates made from an example, edited with their mistakes named, attached to sources."""

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import Connection

from headwater.collectors.base import is_secret
from headwater.errors import ChangedError, InputError
from headwater.pipeline.examples import EXAMPLES, find_example
from headwater.pipeline.registry import STEP_HANDLERS, is_installed
from headwater.pipeline.templates import STARS, shown_steps
from headwater.publish.gallery import GALLERY
from headwater.store.collecting.addresses import values_in_use
from headwater.store.collecting.sources import get_source
from headwater.store.core.versions import version_of
from headwater.store.pipelines.attaching import (
    Attachment,
    Scope,
    attach,
    attachments_of,
    detach,
    name_attachments,
    remove_template,
)
from headwater.store.pipelines.starting import RunQuery, list_runs, start_runs
from headwater.store.pipelines.templates import (
    NewTemplate,
    Template,
    add_template,
    get_template,
    list_templates,
)
from headwater.store.reading.listing import first_sources, list_folders, newest_items
from headwater.store.reading.selection import Selection
from headwater.web.pages.frame import Action, InAction, InPage, Number, Page
from headwater.web.pages.picking import picked
from headwater.web.saving import check_written, save_template
from headwater.web.step_titles import key_title, step_title

router = APIRouter()

LISTED_SOURCES = 200
SHOWN_ATTACHMENTS = 5
LISTED_RUNS = 10
FEWEST_ROWS, MOST_ROWS = 8, 30  # of the field for steps


@router.get("/pipelines")
async def pipelines_page(page: InPage, source: Number = "") -> HTMLResponse:
    """All pipelines; with `source`, on the way to one for that source."""
    return await show_pipelines(page, source=source)


async def show_pipelines(
    page: Page,
    *,
    source: str = "",
    problem: str | None = None,
    opened: str = "",
    written: Mapping[str, str] | None = None,
    status: int = 200,
) -> HTMLResponse:
    """`opened`: the entry of the gallery whose form was sent back, with what was `written` in it."""
    store = page.context.store
    return await page.show(
        "pipelines.html",
        status=status,
        source=await store.read(get_source, int(source)) if source else None,
        templates=await store.read(list_templates),
        attached=await store.read(_first_attachments),
        folders=await store.read(list_folders),
        examples=EXAMPLES,
        gallery=GALLERY,
        opened=opened,
        written=written or {},
        problem=problem,
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
        "steps": as_text(chosen.steps),
    }
    return await show_editor(page, None, written, source_ids=[int(source)] if source else [])


@router.post("/pipelines")
async def add(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    source_ids = action.numbers("source")
    try:
        template = await check_written(read_written(action))
        added = await page.context.store.write(_add, template, source_ids, page.context.clock())
    except InputError as error:
        return await show_editor(
            page,
            None,
            _written(action),
            problem=error.render(page.language),
            status=400,
            source_ids=source_ids,
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
        attach_to(connection, source_ids, added.id, now)
    return added


@router.get("/pipelines/{template_id}")
async def pipeline_page(page: InPage, template_id: int) -> HTMLResponse:
    template = await page.context.store.read(get_template, template_id)
    return await show_editor(page, template, as_written(template))


@router.post("/pipelines/{template_id}")
async def change(action: InAction, template_id: int) -> Response:
    page = action.page
    page.require("admin")
    store = page.context.store
    template = await store.read(get_template, template_id)
    try:
        await save_template(store, template_id, read_written(action), action.version, page.context.clock())
    except ChangedError:
        problem = page.t(
            "Someone else has changed this pipeline since you opened the page. What you wrote is below and not saved;"
            " save it again to replace what is stored."
        )
        return await show_editor(
            page, template, _written(action), problem=problem, status=412, stored=as_written(template)
        )
    except InputError as error:
        return await show_editor(
            page,
            template,
            _written(action),
            problem=error.render(page.language),
            status=400,
            version=action.version,
        )
    return action.back(f"/pipelines/{template_id}", page.t("saved"))


@router.post("/pipelines/{template_id}/try")
async def try_it(action: InAction, template_id: int) -> Response:
    """Run it now, for the newest item of the sources it is attached to."""
    page = action.page
    page.require("admin")
    store = page.context.store
    template = await store.read(get_template, template_id)
    attached = await store.read(attachments_of, template_id)
    found = await store.read(newest_items, newest_of(attached), limit=1)
    if not found:
        return action.back(
            f"/pipelines/{template_id}", page.t("its sources have no item yet to try it with"), bad=True
        )
    (run_id,) = await store.write(start_runs, template, [found[0].id], page.context.clock(), forced=True)
    return action.back(f"/runs/{run_id}", page.t("started"))


def newest_of(attached: list[Attachment]) -> Selection:
    """The items of the first kind of thing that a template is attached to; of all, if it is attached to nothing."""
    scope = attached[0].scope if attached else "everything"
    values = tuple(each.value for each in attached if each.scope == scope)
    if scope == "source":
        return Selection(source_ids=tuple(map(int, values[:LISTED_SOURCES])))
    return Selection(
        folders=values if scope == "folder" else (),
        types=values if scope == "type" else (),
        tags=values if scope == "tag" else (),
    )


@router.post("/pipelines/{template_id}/remove")
async def remove(action: InAction, template_id: int) -> Response:
    page = action.page
    page.require("admin")
    removed = await page.context.store.write(remove_template, template_id)
    return action.back("/pipelines", page.t("removed template {name}; its runs stay", name=removed.name))


@router.post("/pipelines/{template_id}/attach")
async def attach_(action: InAction, template_id: int) -> Response:
    page = action.page
    page.require("admin")
    path = f"/pipelines/{template_id}"
    try:
        wanted: dict[Scope, list[Any]] = {
            "source": await picked(action),
            "folder": [action.text("folder")],
            "type": [action.text("type")],
            "tag": [action.text("tag")],
            "everything": [action.text("everything")],
        }
        chosen = {scope: values for scope, values in wanted.items() if any(values)}
        if not chosen:
            return action.back(path, page.t("nothing was chosen to attach it to"), bad=True)
        await page.context.store.write(_attach, template_id, chosen, page.context.clock())
    except InputError as error:
        return action.back(path, error.render(page.language), bad=True)
    return action.back(path, page.t("attached: it runs for each new item from now on"))


@router.post("/pipelines/{template_id}/detach")
async def detach_(action: InAction, template_id: int) -> Response:
    page = action.page
    page.require("admin")
    chosen = [each.partition(":")[::2] for each in action.texts("attachment")]
    if not chosen:
        return action.back(f"/pipelines/{template_id}", page.t("nothing was ticked"), bad=True)
    await page.context.store.write(_detach, template_id, chosen)
    return action.back(f"/pipelines/{template_id}", page.t("detached"))


def _attach(connection: Connection, template_id: int, wanted: dict[Scope, list[Any]], now: float) -> None:
    for scope, values in wanted.items():
        if scope == "source":
            attach_to(connection, values, template_id, now)
        else:
            attach(connection, template_id, scope, values, now)


def _detach(connection: Connection, template_id: int, chosen: list[tuple[Any, str]]) -> None:
    for scope, value in chosen:
        detach(connection, template_id, scope, [value])


def attach_to(connection: Connection, source_ids: list[int], template_id: int, now: float) -> None:
    """Attach a template to sources that are all there."""
    for source_id in source_ids:
        get_source(connection, source_id)
    attach(connection, template_id, "source", source_ids, now)


async def show_editor(
    page: Page,
    template: Template | None,
    written: dict[str, Any],
    *,
    problem: str | None = None,
    status: int = 200,
    source_ids: list[int] | None = None,
    stored: dict[str, Any] | None = None,
    version: str | None = None,
) -> HTMLResponse:
    """The editor, for what is stored or for what was written; `stored`: what is there instead, to compare."""
    store = page.context.store
    attached: dict[Attachment, str] = {}
    its_runs: list[Any] = []
    if template is not None:
        attached = await store.read(_named_attachments, template.id)
        its_runs = await store.read(list_runs, RunQuery(template_id=template.id), limit=LISTED_RUNS)
    return await page.show(
        "pipeline.html",
        status=status,
        pipeline=template,
        version=version or (version_of(template) if template else ""),
        stored=stored,
        written=written,
        rows=min(MOST_ROWS, max(FEWEST_ROWS, written["steps"].count("\n") + 2)),
        has_stars=STARS in written["steps"],
        problem=problem,
        to_attach=[await store.read(get_source, number) for number in source_ids or ()],
        attached=attached,
        folders=await store.read(list_folders),
        types=await store.read(values_in_use, "type"),
        others=await store.read(first_sources, limit=LISTED_SOURCES),
        runs=its_runs,
        step_types=(step_types := step_reference(page)),
        step_types_json=orjson.dumps(step_types).decode(),
    )


def _first_attachments(connection: Connection) -> dict[int, list[tuple[Attachment, str]]]:
    """Of every template, the first few of what it is attached to, with their names."""
    found = {
        template.id: attachments_of(connection, template.id, limit=SHOWN_ATTACHMENTS + 1)
        for template in list_templates(connection)
    }
    names = name_attachments(connection, [each for its in found.values() for each in its])
    return {number: [(each, names[each]) for each in its] for number, its in found.items()}


def _named_attachments(connection: Connection, template_id: int) -> dict[Attachment, str]:
    return name_attachments(connection, attachments_of(connection, template_id, limit=LISTED_SOURCES))


def step_reference(page: Page) -> list[dict[str, Any]]:
    """The step types with the keys of their configs, as the author of a template needs them."""
    found = []
    for name, step in STEP_HANDLERS.items():
        model = step.config_model
        schema = model.model_json_schema()["properties"] if model.model_fields else {}
        found.append(
            {
                "name": name,
                "title": step_title(name, page.language),
                "extra": None if is_installed(step) else step.extra,
                "timeout_seconds": step.timeout_seconds,
                "retries": step.retries,
                "keys": [
                    {
                        "name": key,
                        "title": key_title(key, page.language),
                        "default": orjson.dumps(schema[key].get("default")).decode()[:60],
                        "kind": kind_of_field(schema[key]),
                        "choices": schema[key].get("enum", []),
                        "required": field.is_required(),
                        "secret": is_secret(key, model),
                        "meaning": page.t(field.description or ""),
                    }
                    for key, field in model.model_fields.items()
                ],
            }
        )
    return found


def read_written(action: Action) -> dict[str, Any]:
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


def as_written(template: Template) -> dict[str, Any]:
    return {
        "name": template.name,
        "description": template.description or "",
        "run_on_change": template.run_on_change,
        "steps": as_text(shown_steps(template)),
    }


def as_text(steps: Any) -> str:
    return orjson.dumps(steps, option=orjson.OPT_INDENT_2).decode()


def kind_of_field(schema: dict[str, Any]) -> str:
    """Which field of a form fits a key of a config: text, number, yes or no, a choice, lines, or else JSON."""
    options = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    if len(options) != 1:
        return "json"
    (only,) = options
    if "enum" in only and "enum" in schema:
        return "choice"
    if only.get("type") == "array" and only.get("items", {}).get("type") == "string":
        return "lines"
    simple = {"string": "text", "integer": "number", "number": "number", "boolean": "yes_no"}
    return simple.get(only.get("type", ""), "json") if "enum" not in only else "text"
