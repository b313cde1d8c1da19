"""Sources: the table, one source's page with its story, the list to take away."""

import asyncio
from typing import Annotated, Any, Literal, cast, get_args
from urllib.parse import parse_qsl, urlsplit

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from headwater.collect.context import read_planner, read_visit_context
from headwater.collect.planning import POLICIES
from headwater.collectors.base import shown_config
from headwater.collectors.inbox import mail_address
from headwater.collectors.types import config_model_of
from headwater.errors import ChangedError, InputError, VisitError
from headwater.fetch.client import make_fetcher
from headwater.model import Source
from headwater.schedule.explain import explain_next, explain_source
from headwater.simulate.trace import Conditions
from headwater.simulate.what_if import what_if
from headwater.sources.editing import (
    INTERVAL,
    Edit,
    SourceAction,
    act_on_source,
    act_on_sources,
    edit_checked,
    edit_source,
    edit_sources,
)
from headwater.sources.lists import export_opml
from headwater.states import tell_state
from headwater.store.collecting.push import read_subscription, subscription_states
from headwater.store.collecting.sources import get_source, request_refresh
from headwater.store.core.versions import version_of
from headwater.store.pipelines.attaching import detach, templates_for
from headwater.store.pipelines.templates import list_templates
from headwater.store.reading.listing import list_folders, newest_items
from headwater.store.reading.selection import Selection
from headwater.store.reports.catalog import (
    MOST_COUNTED,
    STATES,
    Sort,
    SourceFilter,
    State,
    count_sources,
    daily_counts,
    find_sources,
    last_visits,
    matching_ids,
    publication_history,
    used_types,
)
from headwater.store.reports.overview import count_sources as count_states
from headwater.store.reports.statistics import read_source_statistics
from headwater.web.masking import for_holder, found_openly
from headwater.web.pages.frame import Action, InAction, InPage, Page
from headwater.web.pages.pipelines import attach_to
from headwater.web.pages.story import POLICY_LOOKS, draw_story, draw_what_if

router = APIRouter()

SOURCES_ON_A_PAGE = 50
LISTED_ITEMS = 12
LISTED_VISITS = 12
FEWEST_VISITS = 5  # from which on a what-if says something
NONE = "-"  # in a form for many: take it away

LONGEST_SEARCH = 500  # characters


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
    wanted = _read_filter(search, type, folder, state)
    found = await store.read(
        find_sources,
        wanted,
        now=now,
        sort=sort,
        offset=(number - 1) * SOURCES_ON_A_PAGE,
        limit=SOURCES_ON_A_PAGE,
    )
    if not page.visitor.allows("admin"):
        found = found_openly(found, wanted.search)
    is_all = number == 1 and len(found) < SOURCES_ON_A_PAGE
    total = len(found) if is_all else await store.read(count_sources, wanted, now=now)
    return await page.show(
        "sources.html",
        sources=found,
        total=total,
        is_more=bool(wanted.search) and total > MOST_COUNTED,
        number_of_page=number,
        counts=await store.read(count_states),
        host_of=_host_of,
        last=max(1, -(-total // SOURCES_ON_A_PAGE)),
        rhythm=await store.read(daily_counts, [source.id for source in found], now),
        pushed=await store.read(subscription_states, [source.id for source in found]),
        wanted=wanted,
        sort=sort,
        states=STATES,
        types=await store.read(used_types),
        folders=await store.read(list_folders),
        policies=POLICIES,
        templates=await store.read(list_templates),
        query=page.request.url.query,
        why=lambda source: _first_large(explain_next(source, page.language, page.zone, page.tell_soon)),
        tell_filter=lambda state: _tell_filter(state, page),
    )


def _host_of(url: str) -> str:
    """The host of an address, for people: without the www. of many."""
    return (urlsplit(url).hostname or "").removeprefix("www.")


def _read_filter(search: str, type: str, folder: str, state: str) -> SourceFilter:
    return SourceFilter(
        search.strip()[:LONGEST_SEARCH], type, folder, next((each for each in STATES if each == state), None)
    )


@router.post("/sources/refresh-all")
async def refresh_all(action: InAction) -> Response:
    """Visit every source now, whatever its plan says; the page after it shows how far that has come."""
    action.page.require("refresh")
    store, now = action.page.context.store, action.page.context.clock()
    count = await store.write(request_refresh, None, now)
    told = action.page.t("{count} {count:source is|sources are} visited now", count=count)
    return action.back("/progress", told)


@router.post("/sources/bulk")
async def bulk(action: InAction) -> Response:
    """One action, or the same changes, for all the sources that were ticked, or for all that the filter found."""
    page = action.page
    what = action.text("what")
    page.require("refresh" if what == "refresh" else "admin")
    store, now = page.context.store, page.context.clock()
    back = "/sources" + (f"?{action.text('query')}" if action.text("query") else "")
    chosen = action.numbers("source")
    if action.text("all"):
        query = dict(parse_qsl(action.text("query")))
        wanted = _read_filter(
            query.get("search", ""), query.get("type", ""), query.get("folder", ""), query.get("state", "")
        )
        chosen = await store.read(matching_ids, wanted, now)
    if not chosen:
        return action.back(back, page.t("no source was ticked"), bad=True)
    try:
        if what == "edit":
            acted = await store.write(edit_sources, chosen, _read_common_edit(action), now)
        else:
            acted = await store.write(act_on_sources, _action_named(what), chosen, now)
    except InputError as error:
        return action.back(back, error.render(page.language), bad=True)
    if acted.problems:
        return action.back(back, acted.problems[0][1].render(page.language), bad=True)
    return action.back(back, page.t("done for {count} {count:source|sources}", count=len(acted.done)))


def _read_common_edit(action: Action) -> Edit:
    """What the form for many says: an empty field changes nothing, a dash takes away."""
    folder, is_new = action.folder()
    template = action.text("template")
    return Edit(
        folder=folder if is_new else _given(folder),
        new_folder=is_new,
        policy=_given(action.text("policy")),
        interval_minutes=0 if action.text("interval") == NONE else action.decimal("interval"),
        template_id=0 if template == NONE else next(iter(action.numbers("template")), None),
    )


def _given(text: str) -> str | None:
    """A choice from a list in which the first changes nothing and the second takes away."""
    return "" if text == NONE else text.removeprefix("=") or None


@router.get("/sources/export")
async def export(page: InPage, with_secrets: bool = False) -> Response:
    if with_secrets:
        page.require("admin")
    return StreamingResponse(
        export_opml(page.context.store, page.context.clock(), with_secrets=with_secrets),
        media_type="text/x-opml",
        headers={"Content-Disposition": 'attachment; filename="headwater.opml"'},
    )


@router.get("/sources/{source_id}")
async def source_page(page: InPage, source_id: int) -> HTMLResponse:
    return await _show_source(page, source_id)


@router.get("/sources/{source_id}/live/{part}")
async def source_part(page: InPage, source_id: int, part: Literal["facts", "lists"]) -> HTMLResponse:
    """The changing parts of a source's page, which it fetches again and again."""
    source = for_holder(await page.context.store.read(get_source, source_id), page.visitor.allows)
    read = _facts if part == "facts" else _lists
    return await page.show(f"source_{part}.html", source=source, **await read(page, source))


@router.get("/sources/{source_id}/what-if")
async def what_if_part(page: InPage, source_id: int) -> HTMLResponse:
    """The source's own history under each policy: worked out when the page is opened."""
    context = page.context
    source = await context.store.read(get_source, source_id)
    times = await context.store.read(publication_history, source_id)
    async with make_fetcher(context.settings) as fetcher:
        planner = (await read_visit_context(context.store, context.settings, fetcher)).planner
    conditions = Conditions(
        20,
        context.settings.min_interval_seconds,
        context.settings.max_interval_seconds,
        context.settings.dormant_interval_seconds or 0.0,
    )
    # What was found by a first visit is what a feed still showed, not all that there was.
    answer = await asyncio.to_thread(
        what_if,
        times if source.fetch_count >= FEWEST_VISITS else [],
        price_seconds=planner.price_seconds,
        interval_seconds=planner.interval_seconds(source),
        conditions=conditions,
        now=context.clock(),
    )
    return await page.show(
        "what_if.html",
        answer=answer,
        policy=planner.policy_of(source).name,
        curves=draw_what_if(answer, page),
        looks=POLICY_LOOKS,
    )


@router.post("/sources/{source_id}/edit")
async def edit(action: InAction, source_id: int) -> Response:
    page = action.page
    page.require("admin")
    context = page.context
    try:
        edit = _read_edit(action)
        if action.text("check"):
            async with make_fetcher(context.settings) as fetcher:
                visit_context = await read_visit_context(context.store, context.settings, fetcher)
                await edit_checked(source_id, edit, visit_context)
        else:
            planner = await read_planner(context.store, context.settings)
            await context.store.write(edit_source, source_id, edit, context.clock(), planner)
    except ChangedError:
        return await _show_source(page, source_id, problem=page.stale_form(), status=412)
    except (InputError, VisitError) as error:
        return await _show_source(
            page,
            source_id,
            problem=error.render(page.language),
            config=action.text("config"),
            status=400,
            version=action.version,
        )
    return action.back(f"/sources/{source_id}", page.t("saved"))


def _read_edit(action: Action) -> Edit:
    folder, is_new = action.folder()
    return Edit(
        name=action.text("name"),
        url=action.text("url") or None,
        folder=folder,
        new_folder=is_new,
        policy=action.text("policy"),
        interval_minutes=action.decimal("interval"),
        config=read_config_text(action.text("config")),
        version=action.version,
    )


@router.post("/sources/{source_id}/pipeline")
async def attach_pipeline(action: InAction, source_id: int) -> Response:
    """Attach a pipeline to the source besides those it has, or detach one."""
    page = action.page
    page.require("admin")
    for template_id in action.numbers("template"):
        await page.context.store.write(attach_to, [source_id], template_id, page.context.clock())
    for template_id in action.numbers("detached"):
        await page.context.store.write(detach, template_id, "source", [source_id])
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
        "pause": page.t("paused"),
        "resume": page.t("resumed"),
        "restore": page.t("brought back"),
    }[what]
    return action.back(f"/sources/{source_id}", notice)


def _action_named(text: str) -> SourceAction:
    for known in get_args(SourceAction):
        if text == known:
            return cast("SourceAction", known)
    raise InputError("there is no action {name} for sources", name=text)


async def _show_source(
    page: Page,
    source_id: int,
    *,
    problem: str | None = None,
    config: str | None = None,
    status: int = 200,
    version: str | None = None,
) -> HTMLResponse:
    store = page.context.store
    source = for_holder(await store.read(get_source, source_id), page.visitor.allows)
    history = await store.read(publication_history, source_id)
    shown = shown_config(source.config, config_model_of(source.type))
    interval = shown.pop(INTERVAL, None)  # which has its own field
    return await page.show(
        "source.html",
        status=status,
        source=source,
        **await draw_story(page, source, history),
        **await _facts(page, source),
        **await _lists(page, source),
        pipelines=await store.read(templates_for, source),
        templates=await store.read(list_templates),
        policies=POLICIES,
        version=version or version_of(source),
        interval=interval,
        folders=await store.read(list_folders),
        config=orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode() if config is None else config,
        problem=problem,
    )


async def _facts(page: Page, source: Source) -> dict[str, Any]:
    subscription = await page.context.store.read(read_subscription, source.id)
    statistics = await page.context.store.read(read_source_statistics, source.id, page.context.clock())
    why, *more = explain_source(source, page.language, page.zone, page.tell_soon)
    return {
        "why": _first_large(why),
        "more": more,
        "subscription": subscription,
        "statistics": statistics,
        "mail_address": mail_address(source.url, page.context.settings.mail_domain),
    }


def _first_large(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _tell_filter(state: State, page: Page) -> str:
    if state == "due":
        return page.t("due now")
    if state == "needs_attention":
        return page.t("needs attention")
    return tell_state(state, page.language)


async def _lists(page: Page, source: Source) -> dict[str, Any]:
    store = page.context.store
    visits = await store.read(last_visits, source.id, limit=LISTED_VISITS)
    items = await store.read(newest_items, Selection(source_ids=(source.id,)), limit=LISTED_ITEMS)
    return {"visits": visits[:LISTED_VISITS], "items": items[:LISTED_ITEMS]}


def read_config_text(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        config = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError("the config is not JSON: {problem}", problem=str(error)) from None
    if not isinstance(config, dict):
        raise InputError('the config is not a JSON object; write {{"key": "value"}}')
    return config
