"""One's own account: password, language, sessions, app passwords, keys."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from headwater.errors import HeadwaterError, InputError, Text
from headwater.store.people.app_passwords import add_app_password, list_app_passwords, remove_app_password
from headwater.store.people.keys import READER_SCOPES, SCOPES, add_key, list_keys, revoke_key
from headwater.store.people.passwords import SHORTEST_PASSWORD
from headwater.store.people.sessions import end_session, list_sessions
from headwater.store.people.users import change_user
from headwater.web.accounts import InAccounts
from headwater.web.api.problems import Refusal
from headwater.web.pages.frame import (
    LANGUAGE_COOKIE,
    Action,
    InUserAction,
    InUserPage,
    Page,
    known_language,
)
from headwater.web.pages.signin import as_refusal

router = APIRouter(prefix="/account")


@router.get("")
async def account_page(page: InUserPage) -> HTMLResponse:
    return await _show(page)


@router.post("/profile")
async def change_profile(action: InUserAction) -> Response:
    """Change the email address and the language, which goes with the user from browser to browser."""
    page, user = action.page, action.page.user
    page.require("edit")
    language = known_language(action.text("language"))
    preferences = {name: value for name, value in user.preferences.items() if name != "language"}
    if language is not None:
        preferences["language"] = language
    try:
        await page.context.store.write(
            change_user, user.id, email=action.text("email"), preferences=preferences
        )
    except InputError as error:
        return await _show(page, as_refusal(error))
    response = action.back("/account", page.t("saved"))
    response.delete_cookie(LANGUAGE_COOKIE)  # else the browser's choice would hide the new one
    return response


@router.post("/password")
async def change_password(action: InUserAction, accounts: InAccounts) -> Response:
    page = _require_all_rights(action)
    session = page.visitor.session
    try:
        await accounts.change_password(
            page.request,
            page.user,
            current=action.secret("current"),
            new=action.new_password("new"),
            keep_session=session.id if session else None,
        )
    except (Refusal, HeadwaterError) as error:
        return await _show(page, error if isinstance(error, Refusal) else as_refusal(error))
    return action.back("/account", page.t("the new password is set; your other sessions have ended"))


@router.post("/sessions/{session_id}/end")
async def end(action: InUserAction, session_id: int) -> Response:
    page = _require_all_rights(action)
    await page.context.store.write(end_session, session_id, page.user.id)
    return action.back("/account#sessions", page.t("the session has ended"))


@router.post("/app-passwords")
async def make_app_password(action: InUserAction) -> Response:
    """The new password is on the answer itself, this once: nothing else ever shows it."""
    page = _require_all_rights(action)
    try:
        made, password = await page.context.store.write(
            add_app_password, user_id=page.user.id, name=action.text("name"), now=page.context.clock()
        )
    except InputError as error:
        return await _show(page, as_refusal(error))
    return await _show(page, new_app_password=(made.name, password))


@router.post("/app-passwords/{password_id}/remove")
async def remove_one(action: InUserAction, password_id: int) -> Response:
    page = _require_all_rights(action)
    await page.context.store.write(remove_app_password, page.user.id, password_id)
    return action.back("/account#app-passwords", page.t("the app password is removed"))


@router.post("/keys")
async def make_key(action: InUserAction) -> Response:
    """The new key is on the answer itself, this once: nothing else ever shows it."""
    page = _require_all_rights(action)
    now = page.context.clock()
    try:
        days = action.decimal("days")
        key, secret = await page.context.store.write(
            add_key,
            name=action.text("name"),
            scopes=action.texts("scope"),
            now=now,
            user_id=page.user.id,
            expires_at=None if days is None else now + days * 86_400.0,
        )
    except InputError as error:
        return await _show(page, as_refusal(error))
    return await _show(page, new_key=(key.name, secret))


@router.post("/keys/{key_id}/revoke")
async def revoke(action: InUserAction, key_id: int) -> Response:
    page = _require_all_rights(action)
    key = await page.context.store.write(revoke_key, key_id, page.context.clock(), user_id=page.user.id)
    return action.back("/account#keys", page.t("key {name} is revoked", name=key.name))


def _require_all_rights(action: Action) -> Page:
    page = action.page
    if not page.visitor.has_all_rights:
        raise Refusal(403, Text("this needs a sign-in, or a key with all scopes"))
    return page


async def _show(page: Page, refusal: Refusal | None = None, **values: Any) -> HTMLResponse:
    store, user = page.context.store, page.user
    has_rights = page.visitor.has_all_rights
    response = await page.show(
        "account.html",
        status=refusal.status if refusal else 200,
        user=user,
        problem=refusal.detail.render(page.language) if refusal else None,
        has_rights=has_rights,
        has_provider=page.context.settings.oidc_issuer is not None,
        sessions=await store.read(list_sessions, page.context.clock(), user.id) if has_rights else [],
        app_passwords=await store.read(list_app_passwords, user.id) if has_rights else [],
        keys=await store.read(list_keys, user.id) if has_rights else [],
        scopes=SCOPES if user.is_admin else READER_SCOPES,
        shortest_password=SHORTEST_PASSWORD,
        site=(page.context.settings.public_url or str(page.request.base_url)).rstrip("/"),
        **{"new_key": None, "new_app_password": None, **values},
    )
    response.headers.update((refusal.headers if refusal else None) or {})
    return response
