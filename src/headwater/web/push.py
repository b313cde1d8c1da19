"""The door for hubs: `/push/{token}`, where they ask whether a subscription is meant and deliver what was published.

It stands before everything else, for hubs come under the server's public name, with no key but the token. Whatever is
not known, not asked for or not signed as it should be gets the same 404: callers cannot learn which tokens there are. A
body is not read before its token is known, nor further than the cap.
"""

import asyncio

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.collect.context import read_planner
from headwater.collect.push import Delivery, confirm, take_push
from headwater.store.collecting.push import find_subscription
from headwater.web.context import Context

PREFIX = "/push/"
LONGEST_TOKEN = 100
LONGEST_CHALLENGE = 4_096
BODY_SECONDS = 30.0
HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class PushDoor:
    """Answers hubs and hands everything else on to the application behind it."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        token = scope["path"].removeprefix(PREFIX)
        answer = await self._answer(request, token) if 0 < len(token) <= LONGEST_TOKEN else None
        await (answer or _say("", 404))(scope, receive, send)

    async def _answer(self, request: Request, token: str) -> Response | None:
        if request.method == "GET":
            return await self._confirm(request, token)
        return await self._take(request, token) if request.method == "POST" else None

    async def _confirm(self, request: Request, token: str) -> Response | None:
        query = request.query_params
        mode, challenge = query.get("hub.mode", ""), query.get("hub.challenge", "")
        lease = query.get("hub.lease_seconds", "")
        if len(challenge) > LONGEST_CHALLENGE or not (challenge or mode == "denied"):
            return None
        meant = await self._context.store.write(
            confirm,
            token,
            mode=mode,
            topic=query.get("hub.topic", ""),
            lease_seconds=float(lease) if lease.isascii() and lease.isdigit() and len(lease) < 12 else None,
            now=self._context.clock(),
        )
        return _say(challenge) if meant else None

    async def _take(self, request: Request, token: str) -> Response | None:
        context = self._context
        if await context.store.read(find_subscription, token) is None:
            return None
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read_body(request, context.settings.max_body_megabytes * 1_000_000)
        except (TimeoutError, ClientDisconnect):
            return _say("", 408)
        if body is None:
            return _say("", 413)
        headers = request.headers
        delivery = Delivery(token, body, headers.get("content-type"), headers.get("x-hub-signature"))
        planner = await read_planner(context.store, context.settings)
        return _say("") if await take_push(delivery, context.store, planner, context.clock) else None


async def _read_body(request: Request, limit: int) -> bytes | None:
    """The body, or None when it is larger than `limit`."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
    return b"".join(parts)


def _say(text: str, status: int = 200) -> Response:
    return PlainTextResponse(text, status_code=status, headers=HEADERS)
