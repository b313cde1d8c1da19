"""Users and invitations, for admins."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from headwater.errors import HeadwaterError
from headwater.store.people.invitations import (
    INVITATION_DAYS,
    add_invitation,
    list_invitations,
    remove_invitation,
)
from headwater.store.people.passwords import SHORTEST_PASSWORD
from headwater.store.people.users import (
    ROLES,
    add_user,
    change_user,
    disable_user,
    list_users,
    remove_user,
)
from headwater.web.accounts import InAccounts
from headwater.web.api.problems import Refusal
from headwater.web.hosts import invitation_address
from headwater.web.pages.frame import Action, InAction, InPage, Page
from headwater.web.pages.signin import as_refusal

router = APIRouter(prefix="/users")


@router.get("")
async def users_page(page: InPage) -> HTMLResponse:
    page.require("admin")
    return await _show(page)


@router.post("")
async def add(action: InAction, accounts: InAccounts) -> Response:
    page = _require_admin(action)
    password = action.secret("password")
    try:
        user = await page.context.store.write(
            add_user,
            name=action.text("name"),
            role=action.text("role"),
            email=action.text("email"),
            password_hash=await accounts.hash(password) if password else None,
            now=page.context.clock(),
        )
    except HeadwaterError as error:
        return await _show(page, as_refusal(error))
    response = action.back("/users", page.t("added {name}", name=user.name))
    page = await _signed_in(page)
    page.sessions.give(page.request, response, page.visitor.token)
    return response


@router.post("/invitations")
async def invite(action: InAction) -> Response:
    """The link is on the answer itself, this once: nothing else ever shows it."""
    page = _require_admin(action)
    try:
        days = action.decimal("days")
        _, token = await page.context.store.write(
            add_invitation,
            role=action.text("role"),
            created_by=page.user.id,
            now=page.context.clock(),
            days=INVITATION_DAYS if days is None else days,
        )
    except HeadwaterError as error:
        return await _show(page, as_refusal(error))
    port = page.request.url.port or page.context.settings.port
    link = invitation_address(page.context.settings, port, token)
    page = await _signed_in(page)
    response = await _show(page, new_link=link)
    page.sessions.give(page.request, response, page.visitor.token)
    return response


@router.post("/invitations/{invitation_id}/remove")
async def uninvite(action: InAction, invitation_id: int) -> Response:
    page = _require_admin(action)
    await page.context.store.write(remove_invitation, invitation_id)
    return action.back("/users#invitations", page.t("the invitation is removed"))


@router.post("/{user_id}/role")
async def change_role(action: InAction, user_id: int) -> Response:
    page = _require_admin(action)
    try:
        user = await page.context.store.write(change_user, user_id, role=action.text("role"))
    except HeadwaterError as error:
        return await _show(page, as_refusal(error))
    return action.back("/users", page.t("{name} is {role} now", name=user.name, role=page.t(user.role)))


@router.post("/{user_id}/disable")
async def disable(action: InAction, user_id: int) -> Response:
    page = _require_admin(action)
    undo = bool(action.text("undo"))
    try:
        user = await page.context.store.write(disable_user, user_id, is_disabled=not undo)
    except HeadwaterError as error:
        return await _show(page, as_refusal(error))
    told = page.t("{name} can sign in again") if undo else page.t("{name} is disabled")
    return action.back("/users", told.format(name=user.name))


@router.post("/{user_id}/remove")
async def remove(action: InAction, user_id: int) -> Response:
    page = _require_admin(action)
    try:
        user = await page.context.store.write(remove_user, user_id)
    except HeadwaterError as error:
        return await _show(page, as_refusal(error))
    return action.back("/users", page.t("removed {name}", name=user.name))


def _require_admin(action: Action) -> Page:
    action.page.require("admin")
    return action.page


async def _signed_in(page: Page) -> Page:
    """The page of a browser that is signed in, even if it had no need to be: with a second user, everyone has to."""
    if page.visitor.session is not None:
        return page
    token = await page.sessions.open_for(page.request, page.user, "link")
    return replace(page, visitor=await page.sessions.visitor_of(token))


async def _show(page: Page, refusal: Refusal | None = None, *, new_link: str | None = None) -> HTMLResponse:
    store = page.context.store
    values: dict[str, Any] = {
        "users": await store.read(list_users),
        "invitations": await store.read(list_invitations),
        "roles": ROLES,
        "new_link": new_link,
        "invitation_days": INVITATION_DAYS,
        "shortest_password": SHORTEST_PASSWORD,
        "problem": refusal.detail.render(page.language) if refusal else None,
    }
    return await page.show("users.html", status=refusal.status if refusal else 200, **values)
