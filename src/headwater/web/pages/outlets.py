"""Outlets: the feeds we publish, made and removed by hand."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from headwater.collectors.types import find_type
from headwater.errors import InputError
from headwater.outlets import FORMATS, path_of
from headwater.store.listing import list_folders
from headwater.store.outlets import Outlet, add_outlet, list_outlets, remove_outlet
from headwater.store.selection import Selection, to_json
from headwater.web.pages.frame import Action, InAction, InPage, Page

router = APIRouter()


@router.get("/outlets")
async def outlets_page(page: InPage) -> HTMLResponse:
    return await _show(page)


@router.post("/outlets")
async def add(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    try:
        outlet = _read(action)
        await page.context.store.write(
            add_outlet, outlet, page.context.clock(), private=bool(action.text("private"))
        )
    except InputError as error:
        return await _show(page, problem=error.render(page.language), status=400)
    return action.back("/outlets", page.t("added outlet {name}", name=outlet.name))


@router.post("/outlets/{name}/remove")
async def remove(action: InAction, name: str) -> Response:
    action.page.require("admin")
    await action.page.context.store.write(remove_outlet, name)
    return action.back("/outlets", action.page.t("removed outlet {name}", name=name))


async def _show(page: Page, problem: str | None = None, status: int = 200) -> HTMLResponse:
    store = page.context.store
    return await page.show(
        "outlets.html",
        status=status,
        outlets=await store.read(list_outlets),
        folders=await store.read(list_folders),
        formats=FORMATS,
        path_of=path_of,
        shows=lambda outlet: to_json(outlet.selection),
        problem=problem,
    )


def _read(action: Action) -> Outlet:
    name = action.text("name")
    numbers = action.text("sources").replace(",", " ").split()
    if not all(number.isdecimal() for number in numbers):
        raise InputError("{text} is not a list of source numbers; write 1, 2, 3", text=action.text("sources"))
    return Outlet(
        name,
        action.text("title") or name,
        Selection(
            source_ids=tuple(map(int, numbers)),
            folders=tuple(filter(None, action.texts("folder"))),
            types=tuple(find_type(each).name for each in action.text("type").replace(",", " ").split()),
            search=action.text("search") or None,
            outlet=name if action.text("by_pipelines") else None,
        ),
        action.text("description") or None,
        hub_url=action.text("hub_url") or None,
    )
