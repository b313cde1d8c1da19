"""Digests: what is gathered on a schedule, and the issues that were made."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup
from sqlalchemy import Connection

from headwater.errors import InputError
from headwater.formats.html import sanitize_html
from headwater.language import Language
from headwater.publish.digests import read_digest, send_issue
from headwater.publish.outlets import read_content
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
from headwater.store.publishing.targets import list_targets
from headwater.store.reading.listing import list_folders, refuse_unknown_folders
from headwater.store.reading.selection import Selection, tell_selections
from headwater.threads import showing
from headwater.web.pages.frame import Action, InAction, InPage, Page

router = APIRouter()

LISTED_ISSUES = 50


@router.get("/digests")
async def digests_page(page: InPage) -> HTMLResponse:
    return await _show(page)


@router.post("/digests")
async def add(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    now = page.context.clock()
    try:
        digest = read_digest(await _read(action), now)
        await page.context.store.write(add_digest, digest, now)
    except InputError as error:
        return await _show(page, problem=error.render(page.language), status=400)
    return action.back("/digests", page.t("added digest {name}", name=digest.name))


@router.get("/digests/{name}")
async def digest_page(page: InPage, name: str) -> HTMLResponse:
    store = page.context.store
    digest = await store.read(get_digest, name)
    return await page.show(
        "digest.html",
        digest=digest,
        shows=(await store.read(_tell, [digest], page.language))[0],
        issues=await store.read(list_issues, name, limit=LISTED_ISSUES),
    )


@router.get("/digest-issues/{issue_id}")
async def issue_page(page: InPage, issue_id: int) -> HTMLResponse:
    issue = await page.context.store.read(get_issue, issue_id)
    body = Markup(await showing.run(sanitize_html, issue.html))  # noqa: S704 - just sanitised
    return await page.show("issue.html", issue=issue, body=body)


@router.post("/digest-issues/{issue_id}/send")
async def send(action: InAction, issue_id: int) -> Response:
    page = action.page
    page.require("admin")
    count = await page.context.store.write(send_issue, issue_id, page.context.clock())
    told = page.t("{count} {count:message is|messages are} on {count:its|their} way", count=count)
    return action.back(f"/digest-issues/{issue_id}", told)


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


async def _show(page: Page, problem: str | None = None, status: int = 200) -> HTMLResponse:
    store = page.context.store
    digests = await store.read(list_digests)
    return await page.show(
        "digests.html",
        status=status,
        digests=list(zip(digests, await store.read(_tell, digests, page.language), strict=True)),
        folders=await store.read(list_folders),
        targets=await store.read(list_targets),
        problem=problem,
    )


def _tell(connection: Connection, digests: list[Digest], language: Language) -> list[str]:
    return tell_selections(connection, [digest.selection for digest in digests], language)


def _switch(connection: Connection, name: str, now: float) -> None:
    digest = get_digest(connection, name)
    due_at = read_digest(digest, now).due_at
    change_digest(connection, name, now, is_enabled=not digest.is_enabled, due_at=due_at)


async def _read(action: Action) -> Digest:
    name = action.text("name")
    folders = tuple(filter(None, action.texts("folder")))
    await action.page.context.store.read(refuse_unknown_folders, folders)
    selection = Selection(
        folders=folders,
        search=action.text("search") or None,
        tags=read_content(action.text("tags")),
        min_score=action.decimal("min_score"),
    )
    config: dict[str, Any] = {"write": action.text("write") or "list"}
    if languages := read_content(action.text("languages")):
        config["languages"] = list(languages)
    if selection.min_score is not None:
        config["sort"] = "score"
    needs_results = selection.tags or selection.min_score is not None
    return Digest(
        name,
        action.text("title") or name,
        action.text("schedule"),
        action.text("zone") or "UTC",
        selection,
        "processed" if needs_results else "stored",
        config,
        tuple(filter(None, action.texts("target"))),
    )
