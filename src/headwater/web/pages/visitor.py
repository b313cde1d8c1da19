"""Who is looking at a page: sessions, and the proof that a form came from a page of ours.

On a loopback address without a password and a public address the pages are open to everyone on this machine, as long as
there is one user. Everywhere else a visitor signs in: by name and password, API key, the password from the settings,
a link that works once, or at a provider or proxy that is trusted. The cookie holds a random token; while the visitor is
signed in, its hash is in the database. Forms carry a token from it.
"""

import asyncio
import hashlib
import hmac
import secrets
from dataclasses import dataclass, replace
from typing import Annotated, Final

from fastapi import Depends, Request, Response
from sqlalchemy import Connection

from headwater.errors import Text
from headwater.model import User
from headwater.store.core.settings import get_setting, set_setting
from headwater.store.people.keys import KEY_START, SCOPES, scopes_of_role
from headwater.store.people.sessions import (
    LINK_START,
    SESSION_SECONDS,
    NewSession,
    Session,
    SignedInBy,
    end_session_of,
    find_session,
    is_session_use_worth_noting,
    new_token,
    note_session_use,
    open_session,
    take_link,
)
from headwater.store.people.users import find_or_add_user, find_user, first_admin, fold_name, get_user
from headwater.web.accounts import Accounts
from headwater.web.api.auth import (
    SAFE_METHODS,
    count_wrong,
    find_open_user,
    known_key,
    note_user,
    refuse_for_now,
    sender_of,
)
from headwater.web.api.problems import Refusal
from headwater.web.context import Context
from headwater.web.hosts import is_own_origin, user_named_by_proxy

SESSION_COOKIE: Final = "headwater_session"
SALT_SETTING: Final = "web.secret"


@dataclass(frozen=True, slots=True)
class Visitor:
    """`token` tells visitors apart; `scopes` is what the visitor may do."""

    token: str
    scopes: tuple[str, ...]
    session: Session | None = None
    user: User | None = None  # None: has to sign in

    def allows(self, scope: str) -> bool:
        return scope in self.scopes or "admin" in self.scopes

    @property
    def is_admin(self) -> bool:
        return self.user is not None and self.user.is_admin

    @property
    def has_all_rights(self) -> bool:
        """Whether they may do all that their user may, which a session of a key may not."""
        return self.user is not None and all(map(self.allows, scopes_of_role(self.user.role)))

    @property
    def form_token(self) -> str:
        """What a form of this visitor's carries. It does not reveal the visitor's own token."""
        return hashlib.blake2b(self.token.encode(), digest_size=24, person=b"headwater form").hexdigest()


class Sessions:
    """Signs visitors in and out, and recognises them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._mark: bytes | None = None

    async def visitor(self, request: Request) -> Visitor:
        """Who sends a request; a visitor who may nothing if they have to sign in first."""
        context, now = self._context, self._context.clock()
        token = request.cookies.get(SESSION_COOKIE, "")
        if (user := await self._user_of_proxy(request)) is not None:
            return Visitor(token or new_token(), scopes_of_role(user.role), user=user)
        if (user := await find_open_user(request, context)) is not None:
            return Visitor(token or new_token(), SCOPES, user=user)
        if not token:
            return Visitor(new_token(), ())
        visitor = await self.visitor_of(token)
        if visitor.session is not None and is_session_use_worth_noting(visitor.session, now):
            await context.store.write(note_session_use, visitor.session.id, sender_of(request), now)
        return visitor

    async def visitor_of(self, token: str) -> Visitor:
        """The visitor with this session; without any right if it is not in force."""
        context = self._context
        session = await context.store.read(find_session, token, await self.password_mark(), context.clock())
        if session is None:
            return Visitor(token, ())
        user = await context.store.read(get_user, session.user_id)
        await note_user(context, user)
        return Visitor(token, session.scopes, session, user)

    async def sign_in(self, request: Request, secret: str, name: str = "") -> str:
        """The token of a new session, for a name and password, a link, a key or the settings' password."""
        if secret.startswith(LINK_START):
            new = await self._by_link(request, secret)
        elif name and not await self._is_operator(name, secret):
            accounts: Accounts = request.app.state.accounts
            user = await accounts.check_password(request, name, secret)
            new = NewSession("account", user_id=user.id)
        elif key := await known_key(self._context, secret):
            new = NewSession("key", key.id, user_id=key.user_id)
        else:
            new = await self._by_password(request, secret)
        return await self.open(request, new)

    async def open(self, request: Request, new: NewSession) -> str:
        """The token of a new session for this browser."""
        new = replace(new, address=sender_of(request), user_agent=request.headers.get("user-agent"))
        return await self._context.store.write(open_session, new, self._context.clock())

    def is_trustworthy(self, request: Request, visitor: Visitor) -> bool:
        """Whether a request to the API without a key may do what the visitor may: no other site has caused it.

        Browsers send a session's cookie with our own pages' requests only; where no cookie is needed, the browser has
        to say that the request is ours.
        """
        if is_foreign(request, self._context):
            return False
        if visitor.session is not None or request.method in SAFE_METHODS:
            return True
        return is_surely_own(request, self._context)

    async def _user_of_proxy(self, request: Request) -> User | None:
        """The user whom a trusted proxy names; a new one where the settings allow it."""
        name = user_named_by_proxy(request, self._context.settings)
        if name is None:
            return None
        context = self._context
        user = await context.store.read(find_user, name)
        if user is None and context.settings.registration != "closed":
            user = await context.store.write(find_or_add_user, name, context.clock())
        if user is None or user.is_disabled:
            return None
        await note_user(context, user)
        return user

    async def _is_operator(self, name: str, secret: str) -> bool:
        """Whether this is the first admin's name with the password from the settings, or with an API key."""
        admin = await self._context.store.read(first_admin)
        if admin.name != fold_name(name):
            return False
        password = self._context.settings.password
        return secret.startswith(KEY_START) or (
            password is not None and hmac.compare_digest(password.encode(), secret.encode())
        )

    async def open_for(self, request: Request, user: User, by: SignedInBy = "account") -> str:
        """The token of a new session of this user's."""
        return await self.open(request, NewSession(by, user_id=user.id))

    async def sign_out(self, visitor: Visitor) -> None:
        await self.end(visitor.token)

    async def end(self, token: str) -> None:
        """End the session of this token, if there is one."""
        await self._context.store.write(end_session_of, token)

    async def password_mark(self) -> bytes:
        """What tells one password from another, without telling the password; empty without one."""
        password = self._context.settings.password
        if password is None:
            return b""
        if self._mark is None:
            store = self._context.store
            salt = await store.read(get_setting, SALT_SETTING)
            if salt is None:
                salt = await store.write(_make_salt, self._context.clock())
            self._mark = await asyncio.to_thread(_mark_of, password, str(salt))
        return self._mark

    def give(self, request: Request, response: Response, token: str) -> None:
        """Let the browser carry a token."""
        response.set_cookie(
            SESSION_COOKIE,
            token,
            max_age=int(SESSION_SECONDS),
            httponly=True,
            samesite="lax",
            secure=is_secure(request, self._context),
        )

    def check_form(self, request: Request, visitor: Visitor, token: str) -> None:
        """Refuse a form that was not sent from a page of ours, by this visitor."""
        if is_foreign(request, self._context) or not hmac.compare_digest(
            token.encode(), visitor.form_token.encode()
        ):
            raise Refusal(
                403,
                Text(
                    "this form is too old, or did not come from this site; go back, reload the page and try again"
                ),
            )

    async def _by_link(self, request: Request, token: str) -> NewSession:
        user_id = await self._context.store.write(take_link, token, self._context.clock())
        if user_id is None:
            refuse_for_now(request)
            count_wrong(request)
            raise Refusal(
                401,
                Text(
                    "this sign-in link was used before or has expired; make another: headwater sign-in-link"
                ),
            )
        return NewSession("link", password_mark=await self.password_mark(), user_id=user_id)

    async def _by_password(self, request: Request, secret: str) -> NewSession:
        refuse_for_now(request, is_password=True)
        password = self._context.settings.password
        if password is None or not hmac.compare_digest(password.encode(), secret.encode()):
            count_wrong(request, is_password=password is not None)
            if password is None:
                raise Refusal(401, Text("this API key is unknown or revoked"))
            raise Refusal(401, Text("the password or key is wrong"))
        return NewSession("password", password_mark=await self.password_mark())


def sessions_of(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


InSessions = Annotated[Sessions, Depends(sessions_of)]


def is_foreign(request: Request, context: Context) -> bool:
    """Whether the browser says that another site's page has sent this request."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = request.headers.get("origin")
    return origin is not None and not is_own_origin(origin, request, context.settings)


def is_surely_own(request: Request, context: Context) -> bool:
    """Whether the browser says that a page of ours, or the person at the address bar, has sent this request.

    Over plain HTTP browsers send no Sec-Fetch-Site; then the referring page tells.
    """
    if (site := request.headers.get("sec-fetch-site")) is not None:
        return site in ("same-origin", "none")
    return is_own_origin(request.headers.get("referer", ""), request, context.settings)


def is_secure(request: Request, context: Context) -> bool:
    """Whether the browser reaches us over TLS, here or at a proxy in front of us."""
    return request.url.scheme == "https" or (context.settings.public_url or "").startswith("https:")


def own_path(text: str | None, otherwise: str = "/") -> str:
    """`text` if it is a path on this site: our links send no visitor elsewhere."""
    if (
        not text
        or not text.startswith("/")
        or text.startswith(("//", "/\\"))
        or any(ord(c) < 33 for c in text)
    ):
        return otherwise
    return text


def _mark_of(password: str, salt: str) -> bytes:
    # Slow on purpose: unlike a key, a password can be guessed by a thief of the database.
    return hashlib.scrypt(password.encode(), salt=salt.encode(), n=2**14, r=8, p=1, dklen=32)


def _make_salt(connection: Connection, now: float) -> str:
    stored = get_setting(connection, SALT_SETTING)
    if stored is None:
        stored = secrets.token_hex(32)
        set_setting(connection, SALT_SETTING, stored, now)
    return str(stored)
