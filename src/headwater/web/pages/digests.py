"""Digests: what is gathered on a schedule, and the issues that were made."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup
from sqlalchemy import Connection

from headwater.errors import ConflictError, HeadwaterError, InputError
from headwater.formats.html import sanitize_html
from headwater.language import Language
from headwater.publish.digest_context import open_digest_context
from headwater.publish.digests import issue_key, read_digest, remake_issue, send_issue
from headwater.publish.outlets import read_content
from headwater.publish.previews import Preview, digest_hints, preview_issues
from headwater.store.publishing.digests import (
    Digest,
    add_digest,
    change_digest,
    get_digest,
    get_issue,
    list_digests,
    list_issues,
    make_due,
    remove_digest,
)
from headwater.store.publishing.outbox import list_deliveries
from headwater.store.publishing.targets import list_targets
from headwater.store.reading.listing import list_folders, refuse_unknown_folders
from headwater.store.reading.outlets import list_outlets
from headwater.store.reading.selection import tell_selections
from headwater.threads import showing
from headwater.web.pages.frame import Action, InAction, InPage, Page

router = APIRouter()

LISTED_ISSUES = 50
LISTED_DELIVERIES = 50
NEW = Digest("", "", "daily 07:30")
_NUMBERS = ("max_items", "item_characters")


@router.get("/digests")
async def digests_page(page: InPage) -> HTMLResponse:
    return await _show(page)


@router.post("/digests")
async def add(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    now = page.context.clock()
    wanted = None
    try:
        wanted = await _read(action, replace(NEW, name=action.text("name")))
        digest = read_digest(wanted, now)
        await page.context.store.write(add_digest, digest, now)
    except (InputError, ConflictError) as error:
        return await _show(page, wanted, problem=error.render(page.language), status=400)
    return action.back(f"/digests/{digest.name}", page.t("added digest {name}", name=digest.name))


@router.get("/digests/{name}")
async def digest_page(page: InPage, name: str) -> HTMLResponse:
    store = page.context.store
    digest = await store.read(get_digest, name)
    return await page.show(
        "digest.html",
        digest=digest,
        shows=(await store.read(_tell, [digest], page.language))[0],
        hints=await _hints(page, digest),
        outlets=[each.name for each in await store.read(list_outlets) if each.digest == name],
        issues=await store.read(list_issues, name, limit=LISTED_ISSUES),
    )


@router.get("/digests/{name}/edit")
async def edit_page(page: InPage, name: str) -> HTMLResponse:
    page.require("admin")
    return await _show_editor(page, await page.context.store.read(get_digest, name))


@router.post("/digests/{name}/edit")
async def edit(action: InAction, name: str) -> Response:
    page = action.page
    page.require("admin")
    now = page.context.clock()
    wanted = before = await page.context.store.read(get_digest, name)
    try:
        wanted = await _read(action, before)
        await page.context.store.write(_change, before, read_digest(wanted, now), now)
    except InputError as error:
        return await _show_editor(page, wanted, problem=error.render(page.language), status=400)
    return action.back(f"/digests/{name}", page.t("changed digest {name}", name=name))


@router.get("/digests/{name}/preview")
async def preview_page(page: InPage, name: str) -> HTMLResponse:
    """The next issue as it would be made now. It may ask a model, so only pages of ours lead here."""
    page.require("admin")
    context = page.context
    digest = await context.store.read(get_digest, name)
    made, problem = Preview(), None
    if page.is_own:
        try:
            async with open_digest_context(context.store, context.settings, context.clock) as digest_context:
                made = await preview_issues(context.store, digest_context, name, context.clock())
        except HeadwaterError as error:
            problem = error.render(page.language)
    return await page.show(
        "digest_preview.html",
        digest=digest,
        issues=[(each, await _body(each.html)) for each in made.issues],
        is_sample=made.is_sample,
        hints=await _hints(page, digest),
        problem=problem,
    )


@router.get("/digest-issues/{issue_id}")
async def issue_page(page: InPage, issue_id: int) -> HTMLResponse:
    return await _show_issue(page, issue_id)


@router.post("/digest-issues/{issue_id}/send")
async def send(action: InAction, issue_id: int) -> Response:
    page = action.page
    page.require("admin")
    names = list(filter(None, action.texts("target")))
    try:
        count = await page.context.store.write(send_issue, issue_id, page.context.clock(), names)
    except InputError as error:
        return await _show_issue(page, issue_id, problem=error.render(page.language), status=400)
    told = page.t("{count} {count:message is|messages are} on {count:its|their} way", count=count)
    return action.back(f"/digest-issues/{issue_id}", told)


@router.post("/digest-issues/{issue_id}/remake")
async def remake(action: InAction, issue_id: int) -> Response:
    page = action.page
    page.require("admin")
    context = page.context
    try:
        async with open_digest_context(context.store, context.settings, context.clock) as digest_context:
            await remake_issue(context.store, digest_context, issue_id, context.clock())
    except HeadwaterError as error:
        return await _show_issue(page, issue_id, problem=error.render(page.language), status=400)
    return action.back(f"/digest-issues/{issue_id}", page.t("made again; it was not sent"))


@router.post("/digests/{name}/make")
async def make(action: InAction, name: str) -> Response:
    action.page.require("admin")
    await action.page.context.store.write(make_due, name, action.page.context.clock())
    return action.back(f"/digests/{name}", action.page.t("the next issue of {name} is due now", name=name))


@router.post("/digests/{name}/switch")
async def switch(action: InAction, name: str) -> Response:
    page = action.page
    page.require("admin")
    await page.context.store.write(_switch, name, page.context.clock())
    return action.back(f"/digests/{name}", page.t("changed digest {name}", name=name))


@router.post("/digests/{name}/remove")
async def remove(action: InAction, name: str) -> Response:
    action.page.require("admin")
    await action.page.context.store.write(remove_digest, name)
    return action.back("/digests", action.page.t("removed digest {name}", name=name))


async def _show(
    page: Page, edited: Digest | None = None, problem: str | None = None, status: int = 200
) -> HTMLResponse:
    store = page.context.store
    digests = await store.read(list_digests)
    return await page.show(
        "digests.html",
        status=status,
        digests=list(zip(digests, await store.read(_tell, digests, page.language), strict=True)),
        problem=problem,
        **await _choices(page, edited or replace(NEW, zone=page.display.zone_name)),
    )


async def _show_editor(
    page: Page, edited: Digest, problem: str | None = None, status: int = 200
) -> HTMLResponse:
    choices = await _choices(page, edited)
    return await page.show("digest_edit.html", status=status, problem=problem, **choices)


async def _show_issue(
    page: Page, issue_id: int, problem: str | None = None, status: int = 200
) -> HTMLResponse:
    store = page.context.store
    issue = await store.read(get_issue, issue_id)
    digest = await store.read(get_digest, issue.digest)
    key = issue_key(digest.id, issue.due_at, issue.language)
    return await page.show(
        "issue.html",
        status=status,
        issue=issue,
        body=await _body(issue.html),
        targets=await store.read(list_targets),
        chosen=digest.targets,
        deliveries=await store.read(list_deliveries, key_start=key, limit=LISTED_DELIVERIES),
        problem=problem,
    )


async def _choices(page: Page, edited: Digest) -> dict[str, Any]:
    """What a form for a digest offers, and what is chosen in it."""
    store = page.context.store
    return {
        "edited": edited,
        "folders": await store.read(list_folders),
        "targets": await store.read(list_targets),
    }


async def _hints(page: Page, digest: Digest) -> list[str]:
    return [hint.render(page.language) for hint in await page.context.store.read(digest_hints, digest)]


async def _body(html: str) -> Markup:
    return Markup(await showing.run(sanitize_html, html))  # noqa: S704 - just sanitised


def _tell(connection: Connection, digests: Sequence[Digest], language: Language) -> list[str]:
    return tell_selections(connection, [digest.selection for digest in digests], language)


def _switch(connection: Connection, name: str, now: float) -> None:
    digest = get_digest(connection, name)
    due_at = read_digest(digest, now).due_at
    change_digest(connection, name, now, is_enabled=not digest.is_enabled, due_at=due_at)


def _change(connection: Connection, before: Digest, wanted: Digest, now: float) -> None:
    changes: dict[str, Any] = {
        key: getattr(wanted, key)
        for key in ("title", "schedule", "zone", "selection", "when", "config", "targets")
    }
    if (before.schedule, before.zone) != (wanted.schedule, wanted.zone):
        changes["due_at"] = wanted.due_at
    change_digest(connection, before.name, now, **changes)


async def _read(action: Action, before: Digest) -> Digest:
    """The digest that the form describes. What it does not show stays as it is."""
    folders = tuple(filter(None, action.texts("folder")))
    await action.page.context.store.read(refuse_unknown_folders, folders)
    selection = replace(
        before.selection,
        folders=folders,
        search=action.text("search") or None,
        has=read_content(action.text("has")),
        tags=read_content(action.text("tags")),
        min_score=action.decimal("min_score"),
    )
    needs_results = bool(selection.has or selection.tags or selection.min_score is not None)
    return replace(
        before,
        title=action.text("title") or before.name,
        schedule=action.text("schedule"),
        zone=action.text("zone") or "UTC",
        selection=selection,
        when="processed" if needs_results else before.when,
        config=_read_config(action, before),
        targets=tuple(filter(None, action.texts("target"))),
    )


def _read_config(action: Action, before: Digest) -> dict[str, Any]:
    given: dict[str, Any] = {
        "write": action.text("write") or "list",
        "languages": list(read_content(action.text("languages"))) or None,
        "sort": action.text("sort") or None,
        "prompt": action.text("prompt") or None,
    }
    for key in _NUMBERS:
        number = action.decimal(key)
        given[key] = None if number is None else int(number)
    whole = {**before.config, **given}
    return {key: value for key, value in whole.items() if value is not None}
