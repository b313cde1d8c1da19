"""Trying what the editor of pipelines shows on an item, saved or not: what each step gives stands beside it."""

from dataclasses import asdict, dataclass
from typing import Any

import orjson
from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from sqlalchemy import Connection

from headwater.errors import HeadwaterError, InputError
from headwater.model import ListedItem, StoredItem
from headwater.pipeline.trying import TriedStep
from headwater.store.pipelines.attaching import attachments_of
from headwater.store.pipelines.templates import get_template
from headwater.store.reading.items import get_item
from headwater.store.reading.listing import newest_items
from headwater.store.reading.selection import Selection
from headwater.web.pages.frame import Action, InAction
from headwater.web.pages.pipelines import newest_of, read_written
from headwater.web.saving import check_written
from headwater.web.trying import try_template

router = APIRouter()

OFFERED_ITEMS = 20
SHOWN_CHARACTERS = 4_000  # of what a step gives


@dataclass(frozen=True, slots=True)
class Trial:
    """What the steps did with an item."""

    item: StoredItem
    steps: list[TriedStep]


@router.post("/pipelines/try")
async def try_part(action: InAction) -> HTMLResponse:
    """What each step gives for an item, as a part of the editor's page."""
    page = action.page
    page.require("admin")
    trial, problem = None, None
    offered = await page.context.store.read(items_to_try, _template_id(action))
    try:
        trial = await _try(action, offered)
    except HeadwaterError as error:
        problem = error.render(page.language)
    return await page.show(
        "tried.html", trial=trial, offered=offered, problem=problem, shown_output=shown_output
    )


async def _try(action: Action, offered: list[ListedItem]) -> Trial:
    context = action.page.context
    template_id = _template_id(action)
    before = await context.store.read(get_template, template_id) if template_id else None
    written = read_written(action)
    template = await check_written({**written, "name": written["name"] or "…"}, before)
    item_id = next(iter(action.numbers("item")), None) or (offered[0].id if offered else None)
    if item_id is None:
        raise InputError("there is no item yet to try it with")
    item = await context.store.read(get_item, item_id)
    return Trial(item, await try_template(context, template, item))


def _template_id(action: Action) -> int | None:
    return next(iter(action.numbers("pipeline")), None)


def items_to_try(connection: Connection, template_id: int | None) -> list[ListedItem]:
    """The newest items of what a template is attached to; where there are none, the newest of all."""
    found: list[ListedItem] = []
    if template_id is not None and (attached := attachments_of(connection, template_id)):
        found = newest_items(connection, newest_of(attached), limit=OFFERED_ITEMS)
    return (found or newest_items(connection, Selection(), limit=OFFERED_ITEMS))[:OFFERED_ITEMS]


def shown_output(step: TriedStep) -> str:
    """What a step gives, for people: its results as text, else its output."""
    results: list[Any] = [asdict(result) for result in step.results]
    for result in results:
        if isinstance(text := result.get("text"), str) and text.strip():
            return text[:SHOWN_CHARACTERS]
    if step.output is None:
        return ""
    return orjson.dumps(step.output, option=orjson.OPT_INDENT_2).decode()[:SHOWN_CHARACTERS]
