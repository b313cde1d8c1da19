"""Settings in force, types with their intervals, plugins, API keys, sessions."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from headwater.collect.context import read_intervals
from headwater.collectors.types import source_types
from headwater.config import Settings, shown_value, tell_value
from headwater.errors import ChangedError, InputError
from headwater.pipeline.plugins import list_plugins
from headwater.settings import GROUPS, SETTINGS, Setting
from headwater.sources.intervals import LONGEST_INTERVAL_MINUTES, set_type_interval
from headwater.store.core.settings import interval_settings
from headwater.store.core.versions import version_of_interval
from headwater.store.people.keys import SCOPES, add_key, list_keys, revoke_key
from headwater.store.people.sessions import end_session, list_sessions
from headwater.web.pages.frame import InAction, InPage, Page
from headwater.wording import duration

router = APIRouter()

SHORT_SECONDS = 2.0  # shorter times are told with their fraction


@router.get("/settings")
async def settings_page(page: InPage, search: Annotated[str, Query(max_length=200)] = "") -> HTMLResponse:
    return await _show(page, search=search.strip())


@router.post("/settings/intervals")
async def set_interval(action: InAction) -> Response:
    """Set, or with nothing given take back, the interval of a type. It takes effect at once, for every worker."""
    page = action.page
    page.require("admin")
    given = action.text("minutes")
    try:
        name = await page.context.store.write(
            set_type_interval,
            action.text("type"),
            _minutes(given) if given else None,
            page.context.clock(),
            action.version,
        )
    except ChangedError:
        return await _show(page, problem=page.stale_form(given), status=412)
    return action.back("/settings#types", page.t("the interval of {type} is set", type=name))


@router.post("/settings/keys")
async def make_key(action: InAction) -> Response:
    """The new key is on the answer itself, this once: nothing else ever shows it."""
    page = action.page
    page.require("admin")
    try:
        key, secret = await page.context.store.write(
            add_key, name=action.text("name"), scopes=action.texts("scope"), now=page.context.clock()
        )
    except InputError as error:
        return await _show(page, problem=error.render(page.language), status=400)
    return await _show(page, new_key=(key.name, secret))


@router.post("/settings/sessions/{session_id}/end")
async def end(action: InAction, session_id: int) -> Response:
    page = action.page
    page.require("admin")
    await page.context.store.write(end_session, session_id)
    return action.back("/settings#sessions", page.t("the session has ended"))


@router.post("/settings/keys/{key_id}/revoke")
async def revoke(action: InAction, key_id: int) -> Response:
    page = action.page
    page.require("admin")
    key = await page.context.store.write(revoke_key, key_id, page.context.clock())
    return action.back("/settings#keys", page.t("key {name} is revoked", name=key.name))


async def _show(
    page: Page,
    *,
    new_key: tuple[str, str] | None = None,
    problem: str | None = None,
    status: int = 200,
    search: str = "",
) -> HTMLResponse:
    store, settings = page.context.store, page.context.settings
    return await page.show(
        "settings.html",
        status=status,
        groups=_group(page, search.lower()),
        search=search,
        types=source_types(),
        intervals=await read_intervals(store, settings),
        set_here=await store.read(interval_settings),
        version_of=version_of_interval,
        keys=await store.read(list_keys) if page.visitor.allows("admin") else [],
        sessions=await store.read(list_sessions, page.context.clock())
        if page.visitor.allows("admin")
        else [],
        scopes=SCOPES,
        plugins=list_plugins(),
        new_key=new_key,
        problem=problem,
    )


def _group(page: Page, search: str) -> list[tuple[str, list[tuple[Setting, str, str]]]]:
    """The settings in which the words stand, by what belongs together: each with its value and where that is from."""
    settings = page.context.settings
    by_name = {setting.name: setting for setting in SETTINGS}
    groups = []
    for title, names in GROUPS:
        rows = [
            (setting, _tell(setting, settings, page), settings.origins[setting.name])
            for setting in map(by_name.__getitem__, names)
            if search in f"{setting.name} {page.t(setting.help)}".lower()
        ]
        if rows:
            groups.append((title.render(page.language), rows))
    return groups


def _tell(setting: Setting, settings: Settings, page: Page) -> str:
    """A value with its unit."""
    value = shown_value(setting, getattr(settings, setting.name))
    told = tell_value(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return told
    name = setting.name
    if name.endswith("_seconds") or name == "collector_tick":
        return duration(value, page.language) if value >= SHORT_SECONDS else f"{told} s"
    if name.endswith("_minutes"):
        return duration(value * 60, page.language)
    if name.endswith("_days"):
        return duration(value * 86_400, page.language) if value else told
    return f"{told} MB" if name.endswith("_megabytes") else told


def _minutes(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(
            "{text} is not an interval; give minutes, from 0.01 to {most:g}",
            text=text,
            most=LONGEST_INTERVAL_MINUTES,
        ) from None
