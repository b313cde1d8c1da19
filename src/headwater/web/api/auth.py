"""Who sends a request, and what they may.

`needs("read")` is for what the whole installation shares: it takes an API key of an admin with that scope. `InUser` is
for what belongs to one person: it takes a key, a session or a trusted proxy's word, and gives the user. `InAdmin` is
the same for admins only. Wrong keys count against the address they come from: after too many, it is told to wait. A
right key is let in all the same.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from headwater.errors import Text
from headwater.model import User
from headwater.store.people.keys import (
    ApiKey,
    Scope,
    find_key,
    is_use_worth_noting,
    note_use,
    scopes_of_role,
)
from headwater.store.people.sessions import Session
from headwater.store.people.users import get_user, is_seeing_worth_noting, note_seen, only_user
from headwater.web.api.problems import Refusal
from headwater.web.context import Context, InContext
from headwater.web.hosts import is_open_to
from headwater.web.sign_in_limits import WrongSecrets

if TYPE_CHECKING:
    from headwater.web.pages.visitor import Sessions

LONGEST_KEY = 200
CHALLENGE = 'Bearer realm="Headwater"'
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

_bearer = HTTPBearer(
    auto_error=False, scheme_name="key", description="An API key: `headwater key add NAME --scope read`."
)


def sender_of(request: Request) -> str:
    """The address that a request comes from; behind a trusted proxy, the one that the proxy names."""
    return request.client.host if request.client else ""


async def known_key(context: Context, secret: str) -> ApiKey | None:
    """The key that `secret` is, with its use noted."""
    now = context.clock()
    key = await context.store.read(find_key, secret, now) if len(secret) <= LONGEST_KEY else None
    if key is not None and is_use_worth_noting(key, now):
        await context.store.write(note_use, key.id, now)
    return key


def refuse_for_now(request: Request, *, is_password: bool = False, account: str | None = None) -> None:
    """Refuse an address or an account for which too many wrong keys or passwords came."""
    wrong_secrets: WrongSecrets = request.app.state.wrong_secrets
    if wait := wrong_secrets.seconds_to_wait(sender_of(request), is_password=is_password, account=account):
        raise Refusal(
            429,
            Text("too many wrong keys or passwords; try again in {seconds:.0f} s", seconds=wait),
            {"Retry-After": str(int(wait) + 1)},
        )


def count_wrong(request: Request, *, is_password: bool = False, account: str | None = None) -> None:
    wrong_secrets: WrongSecrets = request.app.state.wrong_secrets
    wrong_secrets.add(sender_of(request), is_password=is_password, account=account)


async def recognise(request: Request, context: Context, secret: str | None) -> ApiKey:
    """The key that a request brings, or a refusal."""
    if secret is None:
        raise _needs_key()
    key = await known_key(context, secret)
    if key is None:
        refuse_for_now(request)
        count_wrong(request)
        raise Refusal(
            401,
            Text("this API key is unknown or revoked"),
            {"WWW-Authenticate": f'{CHALLENGE}, error="invalid_token"'},
        )
    return key


def require(key: ApiKey, scope: Scope) -> None:
    """Refuse a key that lacks the scope, or does not belong to an admin."""
    if key.role != "admin":
        raise _needs_admin()
    if not key.allows(scope):
        raise _lacks_scope(key.name, scope)


Given = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def needs(scope: Scope) -> Any:
    """A dependency that lets only holders of an admin's key with `scope` pass, and tells which key it is."""

    async def check(request: Request, context: InContext, given: Given) -> ApiKey:
        key = await recognise(request, context, given.credentials if given else None)
        require(key, scope)
        return key

    return Depends(check)


def welcomes(scope: Scope) -> Any:
    """The same, but people on this machine pass without a key (None) where the pages are open to them."""

    async def check(request: Request, context: InContext, given: Given) -> ApiKey | None:
        if given is None and await find_open_user(request, context) is not None:
            return None
        key = await recognise(request, context, given.credentials if given else None)
        require(key, scope)
        return key

    return Depends(check)


async def find_open_user(request: Request, context: Context) -> User | None:
    """The only user, where the pages are open to everyone on this machine. With a second account, all sign in."""
    if not is_open_to(request, context.settings):
        return None
    user = await context.store.read(only_user)
    return user if user is not None and user.is_admin else None


@dataclass(frozen=True, slots=True)
class Caller:
    """A user who sends a request to the API, and the scopes of the key or session that they bring."""

    user: User
    scopes: tuple[str, ...]
    key: ApiKey | None = None
    session: Session | None = None

    def allows(self, scope: str) -> bool:
        return scope in self.scopes or "admin" in self.scopes

    @property
    def has_all_rights(self) -> bool:
        """Whether they may do all that their user may: only then may they make keys and change passwords."""
        return all(self.allows(scope) for scope in scopes_of_role(self.user.role))

    def require(self, scope: Scope) -> None:
        if not self.allows(scope):
            raise _lacks_scope(self.key.name if self.key else self.user.name, scope)


async def find_caller(request: Request, context: InContext, given: Given) -> Caller:
    """The user who sends a request, by key, session or trusted proxy; a refusal if there is none."""
    if given is not None:
        key = await recognise(request, context, given.credentials)
        user = await context.store.read(get_user, key.user_id)
        await note_user(context, user)
        return Caller(user, key.scopes, key=key)
    sessions: Sessions = request.app.state.sessions
    visitor = await sessions.visitor(request)
    if visitor.user is None or not sessions.is_trustworthy(request, visitor):
        raise _needs_key()
    return Caller(visitor.user, visitor.scopes, session=visitor.session)


async def note_user(context: Context, user: User) -> None:
    """Write down that a user was here, at most once a minute."""
    now = context.clock()
    if is_seeing_worth_noting(user, now):
        await context.store.write(note_seen, user.id, now)


InCaller = Annotated[Caller, Depends(find_caller)]


async def current_user(request: Request, caller: InCaller) -> User:
    """The user who sends a request. Reading takes the scope `read`, changing something takes `edit`."""
    caller.require("read" if request.method in SAFE_METHODS else "edit")
    return caller.user


async def current_admin(caller: InCaller) -> User:
    """The user who sends a request, if an admin with all rights."""
    if not caller.user.is_admin:
        raise _needs_admin()
    caller.require("admin")
    return caller.user


async def caller_with_all_rights(caller: InCaller) -> Caller:
    """The caller, if they may do all that their user may."""
    if not caller.has_all_rights:
        raise Refusal(403, Text("this needs a sign-in, or a key with all scopes"))
    return caller


InUser = Annotated[User, Depends(current_user)]
InAdmin = Annotated[User, Depends(current_admin)]
InOwner = Annotated[Caller, Depends(caller_with_all_rights)]


def _needs_key() -> Refusal:
    return Refusal(
        401,
        Text("this needs an API key, sent as: Authorization: Bearer KEY"),
        {"WWW-Authenticate": CHALLENGE},
    )


def _needs_admin() -> Refusal:
    return Refusal(403, Text("this needs an admin"))


def _lacks_scope(name: str, scope: str) -> Refusal:
    return Refusal(
        403,
        Text("key {name} lacks the scope {scope}, which this needs", name=name, scope=scope),
        {"WWW-Authenticate": f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'},
    )
