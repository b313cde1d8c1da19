"""Signing in with an OpenID Connect provider: to it and back."""

import hmac
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from headwater.errors import HeadwaterError, Text
from headwater.model import User
from headwater.store.people.users import change_user, find_user_by_subject
from headwater.web.accounts import Accounts, InAccounts
from headwater.web.api.auth import count_wrong, refuse_for_now
from headwater.web.api.problems import Refusal
from headwater.web.oidc import Attempt, Identity, Provider
from headwater.web.pages.frame import Page
from headwater.web.pages.signin import InOpenPage, as_refusal, show_sign_in
from headwater.web.pages.visitor import is_secure, own_path

router = APIRouter(prefix="/login/oidc")

ATTEMPT_COOKIE: Final = "headwater_oidc"
ATTEMPT_SECONDS: Final = 600


@router.get("")
async def go(
    page: InOpenPage, next: str = "/", invitation: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Send the browser to the provider.

    Not for another site's page: it could make us ask the provider, and connect an account of that
    site's choice to the account that is signed in here.
    """
    if not page.is_own:
        return RedirectResponse(f"/login?{urlencode({'next': own_path(next)})}", status_code=303)
    attempt = Attempt.begin(own_path(next), invitation)
    try:
        provider = Provider(page.context.settings)
        address = await provider.address(attempt, _redirect_uri(page))
    except (Refusal, HeadwaterError) as error:
        return await show_sign_in(page, next, error if isinstance(error, Refusal) else as_refusal(error))
    response = RedirectResponse(address, status_code=303)
    response.set_cookie(
        ATTEMPT_COOKIE,
        attempt.dump(),
        max_age=ATTEMPT_SECONDS,
        path=router.prefix,
        httponly=True,
        samesite="lax",  # the provider's page leads back here
        secure=is_secure(page.request, page.context),
    )
    return response


@router.get("/callback")
async def come_back(
    page: InOpenPage, accounts: InAccounts, code: str = "", state: str = "", error: str = ""
) -> Response:
    """Sign in whom the provider names; connect a provider to the account that is signed in already."""
    attempt = Attempt.load(page.request.cookies.get(ATTEMPT_COOKIE, ""))
    try:
        refuse_for_now(page.request)
        user = await _user(page, accounts, attempt, code, state, error)
    except (Refusal, HeadwaterError) as problem:
        count_wrong(page.request)
        refusal = problem if isinstance(problem, Refusal) else as_refusal(problem)
        return await show_sign_in(page, attempt.next if attempt else "/", refusal)
    response: Response = RedirectResponse(own_path(attempt.next if attempt else "/"), status_code=303)
    if page.visitor.user is None:
        token = await page.sessions.open_for(page.request, user, "oidc")
        page.sessions.give(page.request, response, token)
    response.delete_cookie(ATTEMPT_COOKIE, path=router.prefix)
    return response


async def _user(
    page: Page, accounts: Accounts, attempt: Attempt | None, code: str, state: str, error: str
) -> User:
    if attempt is None or not hmac.compare_digest(attempt.state.encode(), state.encode()):
        raise Refusal(400, Text("this sign-in is too old, or was not begun here; try again"))
    if error or not code:
        raise Refusal(403, Text("the sign-in provider refused: {problem}", problem=error[:100] or "?"))
    provider = Provider(page.context.settings)
    identity = await provider.identify(attempt, code, _redirect_uri(page), page.context.clock())
    return await _account_of(page, accounts, identity, attempt.invitation)


async def _account_of(page: Page, accounts: Accounts, identity: Identity, invitation: str) -> User:
    """The account of an identity: known, the one that is signed in, or new where that is allowed."""
    store = page.context.store
    user = await store.read(find_user_by_subject, identity.subject)
    if user is not None and user.is_disabled:
        raise Refusal(403, Text("this account is disabled"))
    if page.visitor.user is not None:
        if user is not None and user.id != page.visitor.user.id:
            raise Refusal(409, Text("another account is connected to this sign-in"))
        return await store.write(change_user, page.visitor.user.id, oidc_subject=identity.subject)
    if user is not None:
        return user
    return await accounts.register_identity(identity.subject, identity.name, identity.email, invitation)


def _redirect_uri(page: Page) -> str:
    return f"{_base_url(page.request, page)}{router.prefix}/callback"


def _base_url(request: Request, page: Page) -> str:
    return (page.context.settings.public_url or str(request.base_url)).rstrip("/")
