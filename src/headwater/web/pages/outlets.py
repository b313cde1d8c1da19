"""Outlets: the feeds we publish, made, edited and removed by hand."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import Connection

from headwater.collectors.types import find_type
from headwater.errors import InputError
from headwater.language import Language
from headwater.publish.outlets import check_outlet, read_content
from headwater.store.reading.listing import list_folders, refuse_unknown_folders
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

router = APIRouter()

EMPTY = Outlet("", "")


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
        return await _show(page, problem=error.render(page.language), status=400)
    return action.back("/outlets", page.t("added outlet {name}", name=outlet.name))


@router.get("/outlets/{name}/edit")
async def edit_page(page: InPage, name: str) -> HTMLResponse:
    page.require("admin")
    return await _show_editor(page, name)


@router.post("/outlets/{name}/edit")
async def edit(action: InAction, name: str) -> Response:
    page = action.page
    page.require("admin")
    try:
        outlet = await _read(action, name)
        await page.context.store.write(_change, outlet, page.context.clock())
    except InputError as error:
        return await _show_editor(page, name, problem=error.render(page.language), status=400)
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


async def _show(page: Page, problem: str | None = None, status: int = 200) -> HTMLResponse:
    store = page.context.store
    outlets = await store.read(list_outlets)
    return await page.show(
        "outlets.html",
        status=status,
        outlets=outlets,
        formats=FORMATS,
        path_of=path_of,
        shows=await store.read(_shows, outlets, page.language),
        problem=problem,
        **await _choices(page, EMPTY),
    )


async def _show_editor(page: Page, name: str, problem: str | None = None, status: int = 200) -> HTMLResponse:
    outlet = await page.context.store.read(get_outlet, name)
    return await page.show("outlet.html", status=status, problem=problem, **await _choices(page, outlet))


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
