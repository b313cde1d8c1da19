"""The sign-in and sign-up pages: by name and password, key, link, invitation or provider; and signing out."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import RedirectResponse, Response

from headwater.errors import HeadwaterError, Text
from headwater.store.people.invitations import LONGEST_TOKEN as LONGEST_INVITATION
from headwater.store.people.invitations import Invitation, find_invitation
from headwater.store.people.passwords import SHORTEST_PASSWORD
from headwater.store.people.sessions import LONGEST_TOKEN
from headwater.web.accounts import InAccounts
from headwater.web.api.problems import Refusal, status_of
from headwater.web.pages.frame import Action, Page, open_action, open_page
from headwater.web.pages.visitor import SESSION_COOKIE, own_path

router = APIRouter()

InOpenPage = Annotated[Page, Depends(open_page)]
InOpenAction = Annotated[Action, Depends(open_action)]


@router.get("/login")
async def sign_in_page(
    page: InOpenPage,
    next: str = "/",
    link: Annotated[str, Query(max_length=LONGEST_TOKEN)] = "",
) -> Response:
    """A link is used up by the form, not by opening it: programs that look at links would spend it."""
    if page.visitor.allows("read"):
        return RedirectResponse(own_path(next), status_code=303)
    return await show_sign_in(page, next, link=link)


@router.post("/login")
async def sign_in(action: InOpenAction) -> Response:
    page = action.page
    next, name = own_path(action.text("next")), action.text("name")
    secret = action.secret("secret") if name else action.text("secret")
    try:
        token = await page.sessions.sign_in(page.request, secret, name)
    except Refusal as refusal:
        return await show_sign_in(page, next, refusal, name=name)
    response = action.back(next)
    page.sessions.give(page.request, response, token)
    return response


@router.post("/logout")
async def sign_out(action: InOpenAction) -> Response:
    await action.page.sessions.sign_out(action.page.visitor)
    response = action.back("/login")
    response.delete_cookie(SESSION_COOKIE)
    return response


@router.get("/signup")
async def sign_up_page(
    page: InOpenPage, invitation: Annotated[str, Query(max_length=LONGEST_INVITATION)] = ""
) -> Response:
    return await _show_sign_up(page, invitation)


@router.post("/signup")
async def sign_up(action: InOpenAction, accounts: InAccounts) -> Response:
    """Make the account and sign in to it."""
    page, invitation = action.page, action.text("invitation")
    name, email = action.text("name"), action.text("email")
    try:
        user = await accounts.register(
            page.request,
            name=name,
            password=action.new_password("password"),
            email=email,
            invitation=invitation,
        )
    except (Refusal, HeadwaterError) as error:
        refusal = error if isinstance(error, Refusal) else as_refusal(error)
        return await _show_sign_up(page, invitation, refusal, name=name, email=email)
    response = action.back("/", page.t("Welcome, {name}.", name=user.name))
    page.sessions.give(page.request, response, await page.sessions.open_for(page.request, user))
    return response


def as_refusal(error: HeadwaterError) -> Refusal:
    """An error of input, to be shown above its form."""
    if (status := status_of(error)) >= 500:
        raise error
    return Refusal(status, Text(error.template, **error.values))


async def show_sign_in(
    page: Page, next: str, refusal: Refusal | None = None, *, link: str = "", name: str = ""
) -> Response:
    settings = page.context.settings
    response = await page.show(
        "signin.html",
        status=refusal.status if refusal else 200,
        next=own_path(next),
        link=link,
        name=name,
        has_names=page.has_accounts or page.has_password,
        has_password=settings.password is not None,
        has_provider=settings.oidc_issuer is not None,
        is_registration_open=settings.registration == "open",
        problem=refusal.detail.render(page.language) if refusal else None,
    )
    response.headers.update((refusal.headers if refusal else None) or {})
    return response


async def _show_sign_up(
    page: Page, token: str, refusal: Refusal | None = None, *, name: str = "", email: str = ""
) -> Response:
    invitation: Invitation | None = None
    if token:
        invitation = await page.context.store.read(find_invitation, token, page.context.clock())
    is_open = invitation is not None or (not token and page.context.settings.registration == "open")
    if not is_open and refusal is None:
        text = (
            Text("this invitation was used before or has expired; ask for another")
            if token
            else Text("registration is closed; ask an admin for an invitation")
        )
        refusal = Refusal(403, text)
    response = await page.show(
        "signup.html",
        status=refusal.status if refusal else 200,
        is_open=is_open,
        has_provider=page.context.settings.oidc_issuer is not None,
        invitation=token,
        role=invitation.role if invitation else "reader",
        name=name,
        email=email,
        shortest_password=SHORTEST_PASSWORD,
        problem=refusal.detail.render(page.language) if refusal else None,
    )
    response.headers.update((refusal.headers if refusal else None) or {})
    return response
