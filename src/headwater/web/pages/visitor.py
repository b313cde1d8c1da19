"""Who is looking at a page: sessions in a signed cookie, and the proof that a form came from a page of ours.

On a loopback address without a password the pages are open to whoever uses this machine. Everywhere else a visitor
signs in with an API key, or with the password from the settings. A session names its key, so revoking the key ends
it. Every visitor has a session number of their own, signed in or not: forms carry a token made of it.
"""

import base64
import hmac
import secrets
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import orjson
from fastapi import Request, Response
from sqlalchemy import Connection

from headwater.errors import Text
from headwater.store.keys import SCOPES, get_active_key
from headwater.store.settings import get_setting, set_setting
from headwater.web.api.auth import FailedKeys, recognise
from headwater.web.api.problems import Refusal
from headwater.web.context import Context
from headwater.web.hosts import is_open

SESSION_COOKIE: Final = "headwater_session"
SESSION_SECONDS: Final = 30 * 86_400
SECRET_SETTING: Final = "web.secret"  # noqa: S105 - the name under which it is kept
BY_PASSWORD: Final = 0  # in the place of a key's number
NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class Visitor:
    """`number` tells sessions apart; `scopes` is what the visitor may do."""

    number: str
    scopes: tuple[str, ...]
    name: str | None = None  # of the key they signed in with
    signed_in: bool = False

    def allows(self, scope: str) -> bool:
        return scope in self.scopes or "admin" in self.scopes


class Sessions:
    """Makes and reads session cookies, signed with a secret that all processes on one database share."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._secret: bytes | None = None

    async def secret(self) -> bytes:
        if self._secret is None:
            store = self._context.store
            stored = await store.read(get_setting, SECRET_SETTING)
            if stored is None:
                stored = await store.write(_make_secret, self._context.clock())
            self._secret = bytes.fromhex(str(stored))
        return self._secret

    async def visitor(self, request: Request) -> Visitor:
        """Who sends a request; a visitor who may nothing if they have to sign in first."""
        settings = self._context.settings
        number, key_id = await self._read(request.cookies.get(SESSION_COOKIE, ""))
        if is_open(settings):
            return Visitor(number, SCOPES)
        if key_id == BY_PASSWORD and settings.password is not None:
            return Visitor(number, SCOPES, signed_in=True)
        key = await self._context.store.read(get_active_key, key_id) if key_id > 0 else None
        if key is None:
            return Visitor(number, ())
        return Visitor(number, key.scopes, key.name, signed_in=True)

    async def sign_in(self, request: Request, secret: str) -> int:
        """The key's number for a key, BY_PASSWORD for the password; a refusal for anything else."""
        password = self._context.settings.password
        if password is not None and hmac.compare_digest(password.encode(), secret.encode()):
            failed_keys: FailedKeys = request.app.state.failed_keys
            address = request.client.host if request.client else ""
            if not failed_keys.seconds_to_wait(address):
                return BY_PASSWORD
        return (await recognise(request, self._context, secret, "Session")).id

    async def give(
        self, request: Request, response: Response, key_id: int, number: str | None = None
    ) -> None:
        """Let the browser carry a session; a new number unless one is given, so nobody can plant one beforehand."""
        expires_at = int(self._context.clock()) + SESSION_SECONDS
        payload = _encode(orjson.dumps([number or secrets.token_urlsafe(18), key_id, expires_at]))
        response.set_cookie(
            SESSION_COOKIE,
            f"{payload}.{await self._sign('session', payload)}",
            max_age=SESSION_SECONDS,
            httponly=True,
            samesite="lax",
            secure=is_secure(request, self._context),
        )

    async def form_token(self, visitor: Visitor) -> str:
        return await self._sign("form", visitor.number)

    async def check_form(self, request: Request, visitor: Visitor, token: str) -> None:
        """Refuse a form that was not sent from a page of ours, by this visitor."""
        site = request.headers.get("sec-fetch-site", "same-origin")
        origin = request.headers.get("origin")
        foreign = site not in ("same-origin", "none") or (
            origin is not None and urlsplit(origin).netloc != request.headers.get("host")
        )
        if foreign or not hmac.compare_digest(token.encode(), (await self.form_token(visitor)).encode()):
            raise Refusal(
                403,
                Text(
                    "this form is too old, or did not come from this site; go back, reload the page and try again"
                ),
            )

    async def _read(self, cookie: str) -> tuple[str, int]:
        payload, _, signature = cookie.partition(".")
        if payload and hmac.compare_digest(
            signature.encode(), (await self._sign("session", payload)).encode()
        ):
            number, key_id, expires_at = orjson.loads(
                base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
            )
            if expires_at > self._context.clock():
                return number, key_id
        return secrets.token_urlsafe(18), NOBODY

    async def _sign(self, purpose: str, text: str) -> str:
        return hmac.digest(await self.secret(), f"{purpose}:{text}".encode(), "sha256").hex()


def is_secure(request: Request, context: Context) -> bool:
    """Whether the browser reaches us over TLS, here or at a proxy in front of us."""
    return request.url.scheme == "https" or (context.settings.public_url or "").startswith("https:")


def own_path(text: str | None, otherwise: str = "/") -> str:
    """`text` if it is a path on this site: nobody is sent elsewhere by a link of ours."""
    if (
        not text
        or not text.startswith("/")
        or text.startswith(("//", "/\\"))
        or any(ord(c) < 33 for c in text)
    ):
        return otherwise
    return text


def _encode(payload: bytes) -> str:
    return base64.urlsafe_b64encode(payload).rstrip(b"=").decode()


def _make_secret(connection: Connection, now: float) -> str:
    stored = get_setting(connection, SECRET_SETTING)
    if stored is None:
        stored = secrets.token_hex(32)
        set_setting(connection, SECRET_SETTING, stored, now)
    return str(stored)
