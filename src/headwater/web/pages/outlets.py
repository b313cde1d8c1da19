"""Outlets: the feeds we publish, made, edited and removed by hand."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import Connection

from headwater.collectors.types import find_type
from headwater.errors import InputError
from headwater.formats.html import plain_text
from headwater.language import Language
from headwater.publish.outlets import check_outlet, read_content
from headwater.store.reading.listing import list_folders, newest_items, refuse_unknown_folders
from headwater.store.reading.outlets import (
    ORIGINAL,
    TEMPLATE,
    Outlet,
    add_outlet,
    change_outlet,
    get_outlet,
    list_outlets,
    remove_outlet,
)
from headwater.store.reading.selection import Selection, tell_selections
from headwater.store.reports.catalog import used_types
from headwater.views.outlets import FORMATS, path_of
from headwater.web.pages.frame import Action, InAction, InPage, Page
from headwater.web.pages.picking import picked, read_picks
from headwater.web.previewing import preview_outlet

router = APIRouter()

EMPTY = Outlet("", "")
PREVIEWED = 8
LOOKED_AT = 30  # items of an outlet, for the card that stands for it
SHOWN_SOURCES = 3
EXCERPT_CHARACTERS = 240


@router.get("/outlets")
async def outlets_page(page: InPage) -> HTMLResponse:
    return await _show(page)


@router.post("/outlets")
async def add(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    try:
        outlet = await _read(action, action.text("name"))
        await page.context.store.write(
            add_outlet, outlet, page.context.clock(), private=bool(action.text("private"))
        )
    except InputError as error:
        problem = error.render(page.language)
        written = replace(EMPTY, name=action.text("name"), title=action.text("title"))
        return await _show_editor(page, written, problem=problem, status=400, is_new=True)
    return action.back("/outlets", page.t("added outlet {name}", name=outlet.name))


@router.get("/outlets/new")
async def new_page(page: InPage, name: str = "") -> HTMLResponse:
    page.require("admin")
    return await _show_editor(page, replace(EMPTY, name=name[:63]), is_new=True)


@router.post("/outlets/preview")
async def preview_part(action: InAction) -> HTMLResponse:
    """What the outlet of the form would publish. Nothing is stored."""
    page = action.page
    page.require("admin")
    entries, problem = [], None
    try:
        outlet = await _read(action, action.text("name") or "preview")
        entries = await preview_outlet(page.context, outlet, PREVIEWED)
    except InputError as error:
        problem = error.render(page.language)
    return await page.show(
        "outlet_preview.html",
        entries=entries,
        problem=problem,
        excerpt=lambda entry: plain_text(entry.content or entry.summary or "")[:EXCERPT_CHARACTERS],
    )


@router.get("/outlets/{name}/edit")
async def edit_page(page: InPage, name: str) -> HTMLResponse:
    page.require("admin")
    return await _show_editor(page, await page.context.store.read(get_outlet, name))


@router.post("/outlets/{name}/edit")
async def edit(action: InAction, name: str) -> Response:
    page = action.page
    page.require("admin")
    try:
        outlet = await _read(action, name)
        await page.context.store.write(_change, outlet, page.context.clock())
    except InputError as error:
        stored = await page.context.store.read(get_outlet, name)
        return await _show_editor(page, stored, problem=error.render(page.language), status=400)
    return action.back("/outlets", page.t("changed outlet {name}", name=name))


def _change(connection: Connection, outlet: Outlet, now: float) -> None:
    change_outlet(
        connection,
        outlet.name,
        now,
        title=outlet.title,
        description=outlet.description,
        selection=outlet.selection,
        item_limit=outlet.item_limit,
        hub_url=outlet.hub_url,
        content=outlet.content,
        template=outlet.template,
        own_media=outlet.own_media,
    )


@router.post("/outlets/{name}/remove")
async def remove(action: InAction, name: str) -> Response:
    action.page.require("admin")
    await action.page.context.store.write(remove_outlet, name)
    return action.back("/outlets", action.page.t("removed outlet {name}", name=name))


async def _show(page: Page) -> HTMLResponse:
    store = page.context.store
    outlets = await store.read(list_outlets)
    return await page.show(
        "outlets.html",
        outlets=outlets,
        formats=FORMATS,
        path_of=path_of,
        shows=await store.read(_shows, outlets, page.language),
        newest=await store.read(_newest, outlets),
    )


def _newest(connection: Connection, outlets: list[Outlet]) -> dict[str, tuple[float | None, list[str]]]:
    """Of each outlet, when its newest item was found, and some sources of its newest items."""
    found = {}
    for outlet in outlets:
        listed = newest_items(connection, outlet.selection, limit=LOOKED_AT)
        names = list(dict.fromkeys(item.source_name for item in listed))[:SHOWN_SOURCES]
        found[outlet.name] = (listed[0].first_seen_at if listed else None, names)
    return found


async def _show_editor(
    page: Page, outlet: Outlet, problem: str | None = None, status: int = 200, *, is_new: bool = False
) -> HTMLResponse:
    return await page.show(
        "outlet.html", status=status, problem=problem, is_new=is_new, **await _choices(page, outlet)
    )


async def _choices(page: Page, outlet: Outlet) -> dict[str, Any]:
    """What a form for an outlet offers, and what is chosen in it."""
    store = page.context.store
    return {
        "edited": outlet,
        "picks": await store.read(read_picks, outlet.selection.source_ids),
        "folders": await store.read(list_folders),
        "types": await store.read(used_types),
    }


def _shows(connection: Connection, outlets: list[Outlet], language: Language) -> dict[str, str]:
    told = tell_selections(connection, [outlet.selection for outlet in outlets], language)
    return {outlet.name: each for outlet, each in zip(outlets, told, strict=True)}


async def _read(action: Action, name: str) -> Outlet:
    folders = tuple(filter(None, action.texts("folder")))
    await action.page.context.store.read(refuse_unknown_folders, folders)
    limit = action.decimal("item_limit")
    template = action.text("template") or None
    outlet = Outlet(
        name,
        action.text("title") or name,
        Selection(
            source_ids=tuple(await picked(action)),
            folders=folders,
            types=tuple(find_type(each).name for each in action.texts("type") if each),
            search=action.text("search") or None,
            outlet=name if action.text("by_pipelines") else None,
            has=read_content(action.text("has")),
            tags=read_content(action.text("tags")),
            min_score=action.decimal("min_score"),
        ),
        action.text("description") or None,
        item_limit=EMPTY.item_limit if limit is None else int(limit),
        hub_url=action.text("hub_url") or None,
        content=read_content(action.text("content")) or ((TEMPLATE,) if template else (ORIGINAL,)),
        template=template,
        own_media=bool(action.text("own_media")),
    )
    check_outlet(outlet)
    return outlet
