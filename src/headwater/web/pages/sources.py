"""Sources: the table, adding by pasting an address, one source's page with its story, lists in and out."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast, get_args

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import UploadFile

from headwater.collect.adding import add_and_visit, read_new_source, read_url
from headwater.collect.discovery import discover, preview
from headwater.collect.editing import Edit, SourceAction, act_on_source, act_on_sources, edit_source
from headwater.collect.lists import export_opml, import_opml
from headwater.collect.planning import POLICIES
from headwater.collect.surroundings import make_fetcher, read_surroundings
from headwater.collectors.base import shown_config
from headwater.collectors.types import config_model_of, source_types
from headwater.errors import HeadwaterError, InputError
from headwater.model import Plan, Source
from headwater.schedule.explain import explain_plan
from headwater.simulate.engine import Conditions
from headwater.simulate.what_if import what_if
from headwater.store.catalog import (
    MOST_COUNTED,
    STATES,
    Sort,
    SourceFilter,
    State,
    count_sources,
    daily_counts,
    find_sources,
    last_visits,
    publication_history,
    used_types,
)
from headwater.store.listing import list_folders, newest_items
from headwater.store.push import read_subscription, subscription_states
from headwater.store.selection import Selection
from headwater.store.sources import (
    get_source,
    list_sources,
)
from headwater.store.templates import list_templates
from headwater.web.chart import heat
from headwater.web.pages.frame import InAction, InPage, Page
from headwater.web.pages.pipelines import attach_to

router = APIRouter()

SOURCES_ON_A_PAGE = 50
LISTED_ITEMS = 20
LISTED_VISITS = 50
PREVIEWED_ITEMS = 5
LARGEST_LIST_BYTES = 10_000_000
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@router.get("/sources")
async def sources_page(
    page: InPage,
    search: str = "",
    type: str = "",
    folder: str = "",
    state: State | Annotated[str, Query(max_length=0)] = "",
    sort: Sort = "new",
    number: Annotated[int, Query(alias="page", ge=1, le=1_000_000)] = 1,
) -> HTMLResponse:
    store, now = page.context.store, page.context.clock()
    wanted = SourceFilter(
        search.strip(), type, folder, next((each for each in STATES if each == state), None)
    )
    found = await store.read(
        find_sources,
        wanted,
        now=now,
        sort=sort,
        offset=(number - 1) * SOURCES_ON_A_PAGE,
        limit=SOURCES_ON_A_PAGE,
    )
    is_all = number == 1 and len(found) < SOURCES_ON_A_PAGE
    total = len(found) if is_all else await store.read(count_sources, wanted, now=now)
    return await page.show(
        "sources.html",
        sources=found,
        total=total,
        is_more=bool(wanted.search) and total > MOST_COUNTED,
        number=number,
        last=max(1, -(-total // SOURCES_ON_A_PAGE)),
        rhythm=await store.read(daily_counts, [source.id for source in found], now),
        pushed=await store.read(subscription_states, [source.id for source in found]),
        wanted=wanted,
        sort=sort,
        states=STATES,
        types=await store.read(used_types),
        folders=await store.read(list_folders),
        why=lambda source: _why(source, page),
    )


@router.get("/sources/add")
async def add_page(page: InPage, url: str = "", type: str = "") -> HTMLResponse:
    """Paste any address: its feeds are found and shown with some of their items before anything is stored."""
    page.require("admin")
    found: list[Any] = []
    problem = None
    if url:
        try:
            async with make_fetcher(page.context.settings) as fetcher:
                found = await discover(read_url(url), fetcher)
        except HeadwaterError as error:
            problem = error.render(page.language)
    return await _show_adding(page, url=url, type=type, found=found, problem=problem)


@router.get("/sources/preview")
async def preview_part(page: InPage, url: str) -> HTMLResponse:
    """What is in a feed that was found, before it is added."""
    page.require("admin")
    feed, problem = None, None
    try:
        async with make_fetcher(page.context.settings) as fetcher:
            feed = await preview(read_url(url), fetcher)
    except HeadwaterError as error:
        problem = error.render(page.language)
    items = feed.entries[:PREVIEWED_ITEMS] if feed else ()
    return await page.show("preview.html", items=items, problem=problem)


@router.post("/sources/add")
async def add(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    context = page.context
    url, type_name = action.text("url"), action.text("type")
    try:
        wanted = read_new_source(
            url or None,
            type_name or None,
            _read_config(action.text("config")),
            action.text("name") or None,
            action.text("folder") or None,
        )
        async with make_fetcher(context.settings) as fetcher:
            world = await read_surroundings(context.store, context.settings, fetcher)
            added = await add_and_visit(wanted, world)
    except HeadwaterError as error:
        return await _show_adding(
            page, url=url, type=type_name, found=[], problem=error.render(page.language), status=400
        )
    return action.back(f"/sources/{added.id}", page.t("added source {name}", name=added.name))


@router.post("/sources/bulk")
async def bulk(action: InAction) -> Response:
    """One action on all the sources that were ticked."""
    page = action.page
    chosen = action.numbers("source")
    what = action.text("what")
    page.require("refresh" if what == "refresh" else "admin")
    store, now = page.context.store, page.context.clock()
    if not chosen:
        return action.back("/sources", page.t("no source was ticked"), bad=True)
    acted = await store.write(act_on_sources, _action_named(what), chosen, now)
    if acted.problems:
        return action.back("/sources", acted.problems[0][1].render(page.language), bad=True)
    return action.back("/sources", page.t("done for {count} {count:source|sources}", count=len(chosen)))


@router.get("/sources/export")
async def export(page: InPage) -> Response:
    found = await page.context.store.read(list_sources)
    document = await asyncio.to_thread(export_opml, found, page.context.clock())
    return Response(
        document,
        media_type="text/x-opml",
        headers={"Content-Disposition": 'attachment; filename="headwater.opml"'},
    )


@router.post("/sources/import")
async def import_(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    upload = action.form.get("file")
    if not isinstance(upload, UploadFile):
        raise InputError("choose an OPML file first")
    data = await upload.read(LARGEST_LIST_BYTES + 1)
    if len(data) > LARGEST_LIST_BYTES:
        raise InputError("the file is larger than {limit} bytes", limit=LARGEST_LIST_BYTES)
    report = await asyncio.to_thread(import_opml, page.context.store, data, page.context.clock())
    return await page.show("imported.html", report=report)


@router.get("/sources/{source_id}")
async def source_page(page: InPage, source_id: int) -> HTMLResponse:
    return await _show_source(page, source_id)


@router.get("/sources/{source_id}/live/{part}")
async def source_part(page: InPage, source_id: int, part: Literal["facts", "lists"]) -> HTMLResponse:
    """The changing parts of a source's page, which it fetches again and again."""
    source = await page.context.store.read(get_source, source_id)
    read = _facts if part == "facts" else _lists
    return await page.show(f"source_{part}.html", source=source, **await read(page, source))


@router.get("/sources/{source_id}/what-if")
async def what_if_part(page: InPage, source_id: int) -> HTMLResponse:
    """The source's own history under each policy: worked out when somebody opens it."""
    context = page.context
    source = await context.store.read(get_source, source_id)
    times = await context.store.read(publication_history, source_id)
    async with make_fetcher(context.settings) as fetcher:
        planner = (await read_surroundings(context.store, context.settings, fetcher)).planner
    conditions = Conditions(20, context.settings.min_interval_seconds, context.settings.max_interval_seconds)
    answers = await asyncio.to_thread(
        what_if,
        times,
        price_seconds=planner.price_seconds,
        interval_seconds=planner.interval_seconds(source),
        conditions=conditions,
        now=context.clock(),
    )
    return await page.show("what_if.html", answers=answers, policy=planner.policy_of(source).name)


@router.post("/sources/{source_id}/edit")
async def edit(action: InAction, source_id: int) -> Response:
    page = action.page
    page.require("admin")
    try:
        changes = Edit(
            name=action.text("name"),
            folder=action.text("folder"),
            policy=action.text("policy"),
            config=_read_config(action.text("config")),
        )
        await page.context.store.write(edit_source, source_id, changes, page.context.clock())
    except InputError as error:
        return await _show_source(
            page, source_id, problem=error.render(page.language), config=action.text("config"), status=400
        )
    return action.back(f"/sources/{source_id}", page.t("saved"))


@router.post("/sources/{source_id}/pipeline")
async def attach_pipeline(action: InAction, source_id: int) -> Response:
    """Which template the source's new items start; none when none is chosen."""
    page = action.page
    page.require("admin")
    chosen = action.numbers("template")
    await page.context.store.write(attach_to, [source_id], chosen[0] if chosen else None)
    return action.back(f"/sources/{source_id}", page.t("saved"))


@router.post("/sources/{source_id}/{what}")
async def act(action: InAction, source_id: int, what: str) -> Response:
    page = action.page
    page.require("refresh" if what == "refresh" else "admin")
    store, now = page.context.store, page.context.clock()
    await store.write(act_on_source, _action_named(what), source_id, now)
    if what == "remove":
        return action.back("/sources", page.t("removed; its items stay, and it can be brought back"))
    notice = {
        "refresh": page.t("it is visited at once"),
        "pause": page.t("switched off"),
        "resume": page.t("switched on"),
        "restore": page.t("brought back"),
    }[what]
    return action.back(f"/sources/{source_id}", notice)


def _action_named(text: str) -> SourceAction:
    for known in get_args(SourceAction):
        if text == known:
            return cast("SourceAction", known)
    raise InputError("there is no action {name} for sources", name=text)


async def _show_source(
    page: Page, source_id: int, *, problem: str | None = None, config: str | None = None, status: int = 200
) -> HTMLResponse:
    store = page.context.store
    source = await store.read(get_source, source_id)
    history = await store.read(publication_history, source_id)
    shown = shown_config(source.config, config_model_of(source.type))
    return await page.show(
        "source.html",
        status=status,
        source=source,
        heat=page_heat(history, page) if history else None,
        **await _facts(page, source),
        **await _lists(page, source),
        templates=await store.read(list_templates),
        policies=POLICIES,
        folders=await store.read(list_folders),
        config=orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode() if config is None else config,
        problem=problem,
    )


async def _facts(page: Page, source: Source) -> dict[str, Any]:
    subscription = await page.context.store.read(read_subscription, source.id)
    return {"why": _why(source, page), "subscription": subscription}


async def _lists(page: Page, source: Source) -> dict[str, Any]:
    store = page.context.store
    visits = await store.read(last_visits, source.id, limit=LISTED_VISITS)
    items = await store.read(newest_items, Selection(source_ids=(source.id,)), limit=LISTED_ITEMS)
    return {"visits": visits[:LISTED_VISITS], "items": items[:LISTED_ITEMS]}


async def _show_adding(
    page: Page, *, url: str, type: str, found: list[Any], problem: str | None, status: int = 200
) -> HTMLResponse:
    return await page.show(
        "add.html",
        status=status,
        url=url,
        type=type,
        types=[each.name for each in source_types()],
        found=found,
        problem=problem,
        folders=await page.context.store.read(list_folders),
    )


def page_heat(history: list[float], page: Page) -> Any:
    counts = [[0] * 24 for _ in DAYS]
    for at in history:
        moment = datetime.fromtimestamp(at, UTC)
        counts[moment.weekday()][moment.hour] += 1

    return heat(
        counts,
        days=[page.t(day) for day in DAYS],
        title=page.t("When it publishes, by hour (UTC) and weekday"),
    )


def _why(source: Any, page: Page) -> str:
    if source.next_fetch_at is None:
        return page.t("it has not been visited yet and is first in line")
    state = source.policy_state if isinstance(source, Source) else None
    return explain_plan(Plan(source.next_fetch_at, source.plan_reason), page.language, state=state)


def _read_config(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        config = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError("the config is not JSON: {problem}", problem=str(error)) from None
    if not isinstance(config, dict):
        raise InputError('the config is not a JSON object; write {{"key": "value"}}')
    return config
