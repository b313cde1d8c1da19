"""Pipelines from elsewhere: arrangements of the gallery, and files that another Headwater has written."""

from typing import Any

import orjson
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import UploadFile

from headwater.errors import ConflictError, InputError
from headwater.pipeline.templates import shown_steps
from headwater.publish.gallery import Made, find_entry, use_entry
from headwater.publish.missing import missing_services
from headwater.store.pipelines.templates import get_template
from headwater.web.pages.frame import InAction, InPage
from headwater.web.pages.pipelines import as_text, as_written, show_editor, show_pipelines

router = APIRouter()

LARGEST_FILE_BYTES = 200_000


@router.post("/pipelines/gallery/{key}")
async def set_up(action: InAction, key: str) -> Response:
    """Make all that an entry of the gallery needs."""
    page = action.page
    page.require("admin")
    entry = find_entry(key)
    values = {field.key: action.text(field.key) for field in entry.fields}
    name = action.text("name") or None
    try:
        made = await page.context.store.write(
            use_entry, key, values, page.context.clock(), name, page.language
        )
    except (InputError, ConflictError) as error:
        return await show_pipelines(
            page, problem=error.render(page.language), opened=key, written=values, status=400
        )
    hints = [hint.render(page.language) for hint in missing_services(page.context.settings, made)]
    told = page.t("{entry} is ready", entry=page.t(entry.name))
    return action.back(_place(made), "; ".join([told, *hints]), bad=bool(hints))


def _place(made: Made) -> str:
    """Where there is the most to see of what was made."""
    if made.digests:
        return f"/digests/{made.digests[0]}"
    return "/outlets" if made.outlets else "/pipelines"


@router.get("/pipelines/{template_id}/export")
async def export(page: InPage, template_id: int) -> Response:
    """The pipeline as a file that can be opened elsewhere. Secrets are not in it."""
    template = await page.context.store.read(get_template, template_id)
    shown = {**as_written(template), "steps": shown_steps(template)}
    return Response(
        orjson.dumps(shown, option=orjson.OPT_INDENT_2),
        media_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="pipeline-{template_id}.json"'},
    )


@router.post("/pipelines/open")
async def open_file(action: InAction) -> HTMLResponse:
    """The editor with a pipeline from a file in it: nothing is stored before it is saved."""
    page = action.page
    page.require("admin")
    upload = action.form.get("file")
    if not isinstance(upload, UploadFile):
        raise InputError("choose a file first")
    try:
        written = _read_file(await upload.read(LARGEST_FILE_BYTES + 1))
    except InputError as error:
        return await show_pipelines(page, problem=error.render(page.language), status=400)
    return await show_editor(page, None, written)


def _read_file(data: bytes) -> dict[str, Any]:
    """A pipeline as `export` writes it, or the bare list of its steps."""
    if len(data) > LARGEST_FILE_BYTES:
        raise InputError("the file is larger than {limit} bytes", limit=LARGEST_FILE_BYTES)
    try:
        read = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InputError("the steps are not JSON: {problem}", problem=str(error)) from None
    whole = read if isinstance(read, dict) else {"steps": read}
    if not isinstance(whole.get("steps"), list):
        raise InputError("the file has no list of steps")
    return {
        "name": str(whole.get("name") or ""),
        "description": str(whole.get("description") or ""),
        "run_on_change": whole.get("run_on_change") is True,
        "steps": as_text(whole["steps"]),
    }
