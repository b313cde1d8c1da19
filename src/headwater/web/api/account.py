"""`/api/auth…`: signing in and out, signing up, and what belongs to one's own account."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.errors import Text
from headwater.store.people.app_passwords import add_app_password, list_app_passwords, remove_app_password
from headwater.store.people.keys import SCOPES, Scope, add_key, list_keys, revoke_key
from headwater.store.people.sessions import end_session, list_sessions
from headwater.store.people.users import change_user
from headwater.views.keys import KeyView, NewKeyView, SessionView, key_json, new_key_json, session_json
from headwater.views.shape import Json
from headwater.views.users import (
    AppPasswordView,
    NewAppPasswordView,
    OwnUserView,
    app_password_json,
    own_user_json,
)
from headwater.web.accounts import InAccounts
from headwater.web.api.auth import Caller, InCaller, InOwner, InUser
from headwater.web.api.json import JsonObject
from headwater.web.api.problems import Refusal, problem_responses
from headwater.web.api.users import Email, Password, UserName
from headwater.web.context import Context, InContext
from headwater.web.pages.visitor import SESSION_COOKIE, InSessions, Sessions, is_foreign

router = APIRouter(prefix="/auth", tags=["account"])

Number = Annotated[int, Path(ge=1, le=2**63 - 1, description="Its number.")]


class SignIn(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "li", "password": "correct horse battery"}}
    )

    name: UserName
    password: Password


class Registration(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"name": "li", "password": "correct horse battery", "invitation": "hwi_…"}
        },
    )

    name: UserName
    password: Password
    email: Email | None = None
    invitation: str = Field(
        default="", max_length=200, description="Its token; empty where registration is open."
    )


class OwnChange(BaseModel):
    """What is left out stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"preferences": {"language": "en"}}}
    )

    email: Email | None = Field(default=None, description="Empty: none.")
    preferences: JsonObject | None = Field(
        default=None, description="Merged into the preferences; null removes one."
    )


class PasswordChange(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    current: Annotated[str, Field(max_length=1_000)] = Field(
        default="", description="Left out by a user without a password."
    )
    new: Password


class OwnKeys(BaseModel):
    keys: list[KeyView]


class NewOwnKey(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "script", "scopes": ["read"]}}
    )

    name: Annotated[str, Field(min_length=1, max_length=200)]
    scopes: list[Scope] = Field(default=["read"], min_length=1, max_length=len(SCOPES))
    days: float | None = Field(default=None, gt=0, le=36_500, description="Until it expires; null: never.")


class OwnSessions(BaseModel):
    sessions: list[SessionView]


class AppPasswords(BaseModel):
    app_passwords: list[AppPasswordView]


class NewAppPassword(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "phone"}}
    )

    name: Annotated[str, Field(min_length=1, max_length=200)]


@router.post("/login", response_model=OwnUserView, responses=problem_responses(), summary="Sign in")
async def sign_in(
    request: Request, response: Response, context: InContext, sessions: InSessions, given: SignIn
) -> Json:
    """Sign in by name and password. The answer sets a session's cookie."""
    _refuse_foreign(request, context)
    token = await sessions.sign_in(request, given.password, given.name)
    sessions.give(request, response, token)
    return await _signed_in(sessions, token)


@router.post(
    "/register",
    status_code=201,
    response_model=OwnUserView,
    responses=problem_responses(400, 409),
    summary="Sign up",
)
async def register(
    request: Request,
    response: Response,
    context: InContext,
    sessions: InSessions,
    accounts: InAccounts,
    given: Registration,
) -> Json:
    """Make an account, by an invitation or where registration is open, and sign in to it."""
    _refuse_foreign(request, context)
    user = await accounts.register(
        request, name=given.name, password=given.password, email=given.email, invitation=given.invitation
    )
    token = await sessions.open_for(request, user)
    sessions.give(request, response, token)
    return await _signed_in(sessions, token)


@router.post("/logout", status_code=204, responses=problem_responses(), summary="Sign out")
async def sign_out(request: Request, response: Response, context: InContext, sessions: InSessions) -> None:
    """End the session whose cookie is sent, if any."""
    _refuse_foreign(request, context)
    await sessions.end(request.cookies.get(SESSION_COOKIE, ""))
    response.delete_cookie(SESSION_COOKIE)


@router.get("/me", response_model=OwnUserView, responses=problem_responses(), summary="Show your account")
async def me(caller: InCaller) -> Json:
    """The user whose key or session is sent."""
    return own_user_json(caller.user, caller.scopes)


@router.patch(
    "/me", response_model=OwnUserView, responses=problem_responses(400), summary="Change your account"
)
async def change_me(context: InContext, caller: InCaller, user: InUser, wanted: OwnChange) -> Json:
    """Change your email address or preferences."""
    preferences = None
    if wanted.preferences is not None:
        merged = {**user.preferences, **wanted.preferences}
        preferences = {name: value for name, value in merged.items() if value is not None}
    changed = await context.store.write(change_user, user.id, email=wanted.email, preferences=preferences)
    return own_user_json(changed, caller.scopes)


@router.post("/password", status_code=204, responses=problem_responses(400), summary="Change your password")
async def change_password(
    request: Request, accounts: InAccounts, caller: InOwner, given: PasswordChange
) -> None:
    """Set a new password and end your other sessions."""
    await accounts.change_password(
        request, caller.user, current=given.current, new=given.new, keep_session=_session_id(caller)
    )


@router.get("/sessions", response_model=OwnSessions, responses=problem_responses(), summary="Your sessions")
async def my_sessions(context: InContext, caller: InOwner) -> Json:
    """Browsers that are signed in to your account, the latest used first."""
    found = await context.store.read(list_sessions, context.clock(), caller.user.id)
    return {"sessions": [session_json(session) for session in found]}


@router.delete(
    "/sessions/{session_id}",
    status_code=204,
    responses=problem_responses(404),
    summary="End one of your sessions",
)
async def end_my_session(context: InContext, caller: InOwner, session_id: Number) -> None:
    """Sign one browser out, at once."""
    await context.store.write(end_session, session_id, caller.user.id)


@router.get("/keys", response_model=OwnKeys, responses=problem_responses(), summary="Your keys")
async def my_keys(context: InContext, caller: InOwner) -> Json:
    """Your keys, revoked ones too."""
    return {"keys": [key_json(key) for key in await context.store.read(list_keys, caller.user.id)]}


@router.post(
    "/keys",
    status_code=201,
    response_model=NewKeyView,
    responses=problem_responses(400),
    summary="Make a key of yours",
)
async def make_my_key(context: InContext, caller: InOwner, new: NewOwnKey) -> Json:
    """Make a key for your account. It is shown this once."""
    now = context.clock()
    key, secret = await context.store.write(
        add_key,
        name=new.name,
        scopes=new.scopes,
        now=now,
        user_id=caller.user.id,
        expires_at=None if new.days is None else now + new.days * 86_400.0,
    )
    return new_key_json(key, secret)


@router.delete(
    "/keys/{key_id}",
    response_model=KeyView,
    responses=problem_responses(404),
    summary="Revoke a key of yours",
)
async def revoke_my_key(context: InContext, caller: InOwner, key_id: Number) -> Json:
    """Make a key of yours invalid, at once and for ever. Repeating it is not an error."""
    return key_json(await context.store.write(revoke_key, key_id, context.clock(), user_id=caller.user.id))


@router.get(
    "/app-passwords", response_model=AppPasswords, responses=problem_responses(), summary="Your app passwords"
)
async def my_app_passwords(context: InContext, caller: InOwner) -> Json:
    """Passwords of the reader apps that you have connected."""
    found = await context.store.read(list_app_passwords, caller.user.id)
    return {"app_passwords": [app_password_json(each) for each in found]}


@router.post(
    "/app-passwords",
    status_code=201,
    response_model=NewAppPasswordView,
    responses=problem_responses(400),
    summary="Make an app password",
)
async def make_app_password(context: InContext, caller: InOwner, new: NewAppPassword) -> Json:
    """Make a password for a reader app. It is shown this once."""
    made, password = await context.store.write(
        add_app_password, user_id=caller.user.id, name=new.name, now=context.clock()
    )
    return {**app_password_json(made), "password": password}


@router.delete(
    "/app-passwords/{password_id}",
    status_code=204,
    responses=problem_responses(404),
    summary="Remove an app password",
)
async def remove_my_app_password(context: InContext, caller: InOwner, password_id: Number) -> None:
    """Make an app password invalid, at once."""
    await context.store.write(remove_app_password, caller.user.id, password_id)


def _refuse_foreign(request: Request, context: Context) -> None:
    """Refuse what another site's page has sent: it could sign a visitor in to its own account."""
    if is_foreign(request, context):
        raise Refusal(403, Text("this request did not come from this site"))


async def _signed_in(sessions: Sessions, token: str) -> Json:
    visitor = await sessions.visitor_of(token)
    if visitor.user is None:
        raise Refusal(401, Text("sign in first"))
    return own_user_json(visitor.user, visitor.scopes)


def _session_id(caller: Caller) -> int | None:
    return caller.session.id if caller.session else None
