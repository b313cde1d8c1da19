"""Targets: where messages are sent, what a message would look like there, and what became of those that were sent."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup
from sqlalchemy import Connection

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.formats.html import sanitize_html, text_as_html
from headwater.model import StoredItem
from headwater.publish.targets import preview_message, read_target, send_test, show_config, tell_place
from headwater.services.targets import KINDS, Message
from headwater.store.publishing.outbox import list_deliveries, retry_delivery
from headwater.store.publishing.targets import (
    Target,
    add_target,
    change_target,
    get_target,
    list_targets,
    remove_target,
)
from headwater.store.reading.items import get_item
from headwater.store.reading.listing import newest_items
from headwater.threads import showing
from headwater.web.pages.frame import Action, InAction, InPage, Page

router = APIRouter()

LISTED_DELIVERIES = 25
_WORDS = ("title", "body", "html")
_ADDRESSES = {"email": "recipients", "webhook": "url", "apprise": "apprise_urls"}


@dataclass(frozen=True, slots=True)
class Written:
    """A target as its form shows it."""

    name: str = ""
    kind: str = "email"
    addresses: str = ""
    title: str = ""
    body: str = ""
    html: str = ""
    batch_minutes: str = ""
    batch_items: str = "20"


@router.get("/targets")
async def targets_page(page: InPage) -> HTMLResponse:
    return await _show(page, Written())


@router.post("/targets")
async def add(action: InAction) -> Response:
    page = action.page
    page.require("admin")
    written = _written(action, action.text("name"), action.text("kind"))
    try:
        target = _read(action, written)
        await page.context.store.write(add_target, target, page.context.clock())
    except (InputError, ConflictError) as error:
        return await _show(page, written, problem=error.render(page.language), status=400)
    return action.back(f"/targets/{target.name}", page.t("added target {name}", name=target.name))


@router.get("/targets/{name}")
async def target_page(page: InPage, name: str) -> HTMLResponse:
    target = await page.context.store.read(get_target, name)
    return await _show_one(page, target, _shown(target))


@router.post("/targets/{name}")
async def change(action: InAction, name: str) -> Response:
    page = action.page
    page.require("admin")
    before = await page.context.store.read(get_target, name)
    written = _written(action, name, before.kind)
    try:
        wanted = _read(action, written, before)
        await page.context.store.write(_change, wanted, page.context.clock())
    except InputError as error:
        return await _show_one(page, before, written, problem=error.render(page.language))
    return action.back(f"/targets/{name}", page.t("changed target {name}", name=name))


@router.post("/targets/{name}/preview")
async def preview(action: InAction, name: str) -> Response:
    """The message with what the form says, which is not saved."""
    page = action.page
    page.require("admin")
    before = await page.context.store.read(get_target, name)
    written = _written(action, name, before.kind)
    try:
        wanted = _read(action, written, before)
    except InputError as error:
        return await _show_one(page, before, written, problem=error.render(page.language))
    return await _show_one(page, wanted, written)


@router.post("/targets/{name}/test")
async def test(action: InAction, name: str) -> Response:
    page = action.page
    page.require("admin")
    await page.context.store.write(send_test, name, None, page.context.clock())
    return action.back(f"/targets/{name}", page.t("a test message is on its way to {name}", name=name))


@router.post("/targets/{name}/remove")
async def remove(action: InAction, name: str) -> Response:
    action.page.require("admin")
    await action.page.context.store.write(remove_target, name)
    return action.back("/targets", action.page.t("removed target {name}", name=name))


@router.post("/deliveries/{delivery_id}/retry")
async def retry(action: InAction, delivery_id: int) -> Response:
    page = action.page
    page.require("admin")
    await page.context.store.write(retry_delivery, delivery_id, page.context.clock())
    place = action.text("back")
    back = place if place.startswith(("/targets/", "/digest-issues/")) else "/targets"
    return action.back(back, page.t("delivery {id} is sent again", id=delivery_id))


def _written(action: Action, name: str, kind: str) -> Written:
    texts = {key: action.text(key) for key in ("addresses", *_WORDS, "batch_minutes", "batch_items")}
    return Written(name, kind, **texts)


def _read(action: Action, written: Written, before: Target | None = None) -> Target:
    """The target that the form describes; InputError for what is wrong. Keys that it does not show are kept."""
    lines = [line.strip() for line in written.addresses.replace(",", "\n").splitlines() if line.strip()]
    key = _ADDRESSES.get(written.kind, "url")
    config: dict[str, Any] = {} if before is None else show_config(before)
    config |= {name: getattr(written, name) or None for name in _WORDS}
    config[key] = _address_of(config.get(key), lines, is_list=key != "url")
    items = action.decimal("batch_items")
    return read_target(
        written.name,
        written.kind,
        {name: value for name, value in config.items() if value is not None},
        action.decimal("batch_minutes"),
        20 if items is None else int(items),
        before,
    )


def _address_of(shown: Any, lines: list[str], *, is_list: bool) -> Any:
    """The addresses as they are stored; those shown as stars stay as they were shown."""
    if shown is not None and lines == (shown if isinstance(shown, list) else [shown]):
        return shown
    if is_list:
        return lines
    if len(lines) > 1:
        raise InputError("a webhook has one address")
    return lines[0] if lines else None


def _shown(target: Target) -> Written:
    config = show_config(target)
    return Written(
        target.name,
        target.kind,
        _address(target),
        title=config.get("title") or "",
        body=config.get("body") or "",
        html=config.get("html") or "",
        batch_minutes="" if target.batch_minutes is None else f"{target.batch_minutes:g}",
        batch_items=str(target.batch_items),
    )


def _address(target: Target) -> str:
    """Where it sends to, secrets as stars; one address a line."""
    value = show_config(target).get(_ADDRESSES.get(target.kind, "url"), "")
    return "\n".join(value) if isinstance(value, list) else str(value)


def _change(connection: Connection, wanted: Target, now: float) -> None:
    change_target(
        connection,
        wanted.name,
        now,
        config=wanted.config,
        batch_minutes=wanted.batch_minutes,
        batch_items=wanted.batch_items,
    )


async def _show(page: Page, written: Written, problem: str | None = None, status: int = 200) -> HTMLResponse:
    store = page.context.store
    return await page.show(
        "targets.html",
        status=status,
        targets=[(each, tell_place(each)) for each in await store.read(list_targets)],
        deliveries=await store.read(list_deliveries, limit=LISTED_DELIVERIES),
        has_mail_server=page.context.settings.smtp_host is not None,
        kinds=KINDS,
        written=written,
        has_stars=False,
        problem=problem,
    )


async def _show_one(page: Page, target: Target, written: Written, problem: str | None = None) -> HTMLResponse:
    store = page.context.store
    item = await store.read(_newest_item)
    message: Message | None = None
    if item is not None and problem is None:
        try:
            message = await preview_message(target, item)
        except InputError as error:
            problem = error.render(page.language)
    return await page.show(
        "target.html",
        status=400 if problem else 200,
        target=target,
        deliveries=await store.read(list_deliveries, target=target.name, limit=LISTED_DELIVERIES),
        written=written,
        has_stars="***" in written.addresses,
        item=item,
        preview=message,
        preview_html=message and Markup(await showing.run(_html_of, message)),  # noqa: S704 - just sanitised
        problem=problem,
    )


def _html_of(message: Message) -> str:
    return sanitize_html(text_as_html(message.text) if message.html is None else message.html)


def _newest_item(connection: Connection) -> StoredItem | None:
    """The item that the preview is about."""
    found = newest_items(connection, limit=1)
    try:
        return get_item(connection, found[0].id) if found else None
    except NotFoundError:
        return None
