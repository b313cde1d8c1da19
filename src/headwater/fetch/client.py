"""The door: one request out, one answer or one FetchError back.

What happens to a request, in order: the guard looks at the URL → politeness gives its host a turn → the
conditions go out exactly as the validators were received → redirects are followed one hop at a time, each
through guard and politeness again, credentials only while the origin stays the same → the body is decoded as
it arrives, up to a cap → the answer is compared with what was known.

It keeps no cookies, sends no referrer and parses nothing. It retries nothing (the schedule does), except once
when a connection is lost before any of the answer has come: a kept one may close in the moment of its use.
"""

import re
import time
from collections.abc import Awaitable, Iterable
from functools import cached_property
from hashlib import sha1
from pathlib import Path
from types import TracebackType
from typing import Self

from headwater.errors import FailureKind, FetchError
from headwater.fetch.body import read_body
from headwater.fetch.decode import ACCEPT_ENCODING
from headwater.fetch.faults import network_error, redirect_error, status_error
from headwater.fetch.guard import Guard, RefusedError
from headwater.fetch.hints import read_hints
from headwater.fetch.message import BasicAuth, Headers, Hop, Request, Response
from headwater.fetch.politeness import Politeness, Slots
from headwater.fetch.proxy import GuardedProxy
from headwater.fetch.resolve import GuardedResolver, Resolve
from headwater.fetch.robots import Robots
from headwater.fetch.url import Proxy, read_location, read_proxy, read_url
from headwater.fetch.wire import Connection, Deadlines, Route, Wire, WireError
from headwater.model import NO_HINTS, Hints, Validators

ACCEPT_FEED = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, "
    "text/xml;q=0.9, application/json;q=0.8, text/html;q=0.5, */*;q=0.1"
)

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_PERMANENT = frozenset((301, 308))
_SAFE_HEADERS = frozenset(("Accept", "User-Agent", "accept-language"))
_UNSENDABLE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class Fetcher:
    """Makes requests, many at once, on one event loop. An async context manager."""

    def __init__(
        self,
        *,
        user_agent: str,
        allow: Iterable[str] = (),
        concurrency: int = 100,
        host_concurrency: int = 2,
        host_spacing_seconds: float = 0.5,
        patience_seconds: float = 60.0,
        total_seconds: float = 60.0,
        connect_seconds: float = 15.0,
        read_seconds: float = 30.0,
        max_bytes: int = 20_000_000,
        max_redirects: int = 10,
        accept: str = ACCEPT_FEED,
        proxy: str | None = None,
        ca_file: str | Path | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self.guard = Guard(allow)
        self.politeness = Politeness(
            concurrency=host_concurrency,
            spacing_seconds=host_spacing_seconds,
            patience_seconds=patience_seconds,
        )
        self._slots = Slots(concurrency)
        self._base_headers = {"User-Agent": user_agent, "Accept": accept, "Accept-Encoding": ACCEPT_ENCODING}
        self._usual_headers = _encode(self._base_headers)
        self._deadlines = Deadlines(total_seconds, connect_seconds, read_seconds)
        self._max_bytes = max_bytes
        self._max_redirects = max_redirects
        self._proxy = read_proxy(proxy, is_ours=True) if proxy else None
        self._ca_file = ca_file
        self._resolver = GuardedResolver(self.guard, resolve)
        self._wire: Wire | None = None

    async def __aenter__(self) -> Self:
        self._wire = Wire(self._resolver, self._ca_file)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._wire is not None:
            await self._wire.close()
        await self._resolver.close()

    @cached_property
    def robots(self) -> Robots:
        """What sites ask of programs, remembered for all who read pages through this door."""
        return Robots(self)

    async def get(self, request: Request) -> Response:
        """The answer to a GET, or FetchError. One that fails before anything was sent has no http_status."""
        trail = _Trail(request)
        proxy = self._proxy if request.proxy is None else read_proxy(request.proxy, is_ours=False)
        turn, status, retry_after = "", 0, None
        try:
            while True:
                host = trail.host
                self.guard.check_url(
                    trail.url.scheme, host, trail.url.port or 0, shown=trail.shown, proxied=proxy is not None
                )
                if host != turn:
                    if turn:
                        self._leave(turn, status, None)
                        turn, status = "", 0
                    entered = self.politeness.try_enter(host)
                    if not entered or not self._slots.try_take():
                        await self._wait_for_turn(host, trail.shown, entered)
                    turn = host
                try:
                    answer = await self._send(request, trail, proxy)
                    try:
                        status = trail.take(answer)
                        if status == 304:
                            return trail.unchanged(answer)
                        if 200 <= status < 300 or status in request.answers:
                            if status >= 400:
                                retry_after = trail.hints().retry_after_seconds
                            return await trail.changed(answer, request.max_bytes or self._max_bytes)
                    finally:
                        answer.release()
                except (WireError, RefusedError) as error:
                    raise network_error(error, self.guard, trail.shown, host) from None
                trail.received += answer.received
                if status not in _REDIRECTS:
                    retry_after = trail.hints().retry_after_seconds
                    raise status_error(trail.shown, status, retry_after)
                trail.follow(status, self._max_redirects)
        finally:
            if turn:
                self._leave(turn, status, retry_after)

    def rest(self, url: str, seconds: float) -> None:
        """Send nothing to the host of `url` for a while: its service has said so in its own way."""
        self.politeness.rest((read_url(url)[0].raw_host or "").lower(), seconds)

    async def post(self, request: Request) -> Response:
        """The answer to a POST of the request's body, whatever its status; FetchError when there is none.

        For services the operator named, which are asked as often as there is work for them: their hosts have no
        turns to wait for. A redirect is an answer like any other: nothing is ever sent on to another place.
        """
        if request.body is None:
            raise ValueError("nothing to post")
        trail = _Trail(request)
        proxy = self._proxy if request.proxy is None else read_proxy(request.proxy, is_ours=False)
        self.guard.check_url(
            trail.url.scheme, trail.host, trail.url.port or 0, shown=trail.shown, proxied=proxy is not None
        )
        if not self._slots.try_take():
            await self._slots.take()
        try:
            answer = await self._send(request, trail, proxy)
            try:
                trail.take(answer)
                return await trail.changed(answer, request.max_bytes or self._max_bytes)
            finally:
                answer.release()
        except (WireError, RefusedError) as error:
            raise network_error(error, self.guard, trail.shown, trail.host) from None
        finally:
            self._slots.give()

    def open_to_child(self, *, max_bytes: int) -> GuardedProxy:
        """A way out for another program, through this guard; an async context manager."""
        return GuardedProxy(self.guard, max_bytes=max_bytes, upstream=self._proxy)

    async def _wait_for_turn(self, host: str, shown: str, entered: bool) -> None:
        """Take the host's turn, then one of our own slots: whoever waits for a host holds up nobody else."""
        if not entered:
            await self.politeness.enter(host, shown)
        try:
            await self._slots.take()
        except BaseException:
            self.politeness.leave(host)
            raise

    def _leave(self, host: str, status: int, retry_after: float | None) -> None:
        self._slots.give()
        self.politeness.leave(host, status, retry_after)

    def _send(self, request: Request, trail: "_Trail", proxy: Proxy | None) -> Awaitable[Connection]:
        if self._wire is None:
            raise RuntimeError("a Fetcher is used within its `async with`")
        url, body = trail.url, request.body
        trail.began = time.monotonic()
        route = Route(url.scheme == "https", trail.host, url.port or 0, proxy)
        # Only what is sent through a proxy in the clear names the whole address.
        target = url.raw_path_qs if proxy is None or route.has_tunnel else str(url)
        head = (
            f"{'GET' if body is None else 'POST'} {target} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"
        ).encode()
        return self._wire.send(
            route,
            b"%b%b\r\n%b" % (head, self._headers(request, trail, proxy), body or b""),
            self._deadlines_of(request, trail.spent),
            may_repeat=body is None,
        )

    def _headers(self, request: Request, trail: "_Trail", proxy: Proxy | None) -> bytes:
        """The headers to send, but for the host."""
        if request.accept is None and trail.own_headers is None and proxy is None and request.body is None:
            lines = self._usual_headers
        else:
            headers = self._base_headers.copy()
            if request.accept is not None:
                headers["Accept"] = request.accept
            for name, value in (trail.own_headers or {}).items():
                if trail.same_origin or name in _SAFE_HEADERS:
                    headers[name] = value
            if proxy is not None and proxy.authorization is not None and trail.url.scheme == "http":
                headers["Proxy-Authorization"] = proxy.authorization
            if request.body is not None:
                headers["Content-Length"] = str(len(request.body))
                if "content-type" not in headers:
                    headers["content-type"] = "application/octet-stream"
            lines = _encode(headers)
        validators = request.validators
        if validators.etag and not _UNSENDABLE.search(validators.etag):
            lines += b"If-None-Match: %b\r\n" % validators.etag
        if validators.last_modified and not _UNSENDABLE.search(validators.last_modified):
            lines += b"If-Modified-Since: %b\r\n" % validators.last_modified
        return lines

    def _deadlines_of(self, request: Request, spent: float) -> Deadlines:
        usual = self._deadlines
        total, connect, read = request.total_seconds, request.connect_seconds, request.read_seconds
        if not spent and total is None and connect is None and read is None:
            return usual
        # A hop that comes after the time is up fails by the same timer as the others.
        return Deadlines(
            max(0.001, (total or usual.total) - spent), connect or usual.connect, read or usual.read
        )


class _Trail:
    """How far one request has come: the URL it is at, the redirects behind it and what they cost."""

    __slots__ = (
        "began",
        "headers",
        "hops",
        "host",
        "known",
        "own_headers",
        "permanent",
        "received",
        "same_origin",
        "shown",
        "spent",
        "start",
        "url",
    )

    def __init__(self, request: Request) -> None:
        self.url, userinfo = read_url(request.url)
        self.host = (self.url.raw_host or "").lower()
        self.start = self.shown = str(self.url)
        self.known = request.validators
        self.own_headers = _own_headers(request, userinfo)
        self.same_origin = True
        # A URL with credentials in it is never moved: the place it moves to would be without them.
        self.permanent = userinfo is None
        self.hops: tuple[Hop, ...] = ()
        self.headers = _NO_HEADERS
        self.spent = self.began = 0.0
        self.received = 0

    def take(self, answer: Connection) -> int:
        """Note an answer's headers; its status."""
        self.headers = Headers(answer.headers)
        return answer.status

    def hints(self) -> Hints:
        headers = self.headers
        if headers.raw(b"cache-control") or headers.raw(b"expires") or headers.raw(b"retry-after"):
            return read_hints(headers, time.time())
        return NO_HINTS

    def follow(self, status: int, limit: int) -> None:
        """Go where the redirect leads; FetchError for a circle, an endless chain and a place that is none."""
        location = self.headers.get("location")
        following = read_location(self.url, location) if location else None
        if following is None:
            raise redirect_error("nowhere", self.shown, status)
        if len(self.hops) >= limit:
            raise redirect_error("endless", self.shown, status)
        address = str(following)
        if address == self.start or any(hop.url == address for hop in self.hops):
            raise redirect_error("circle", self.shown, status)
        self.spent += time.monotonic() - self.began
        self.same_origin = self.same_origin and following.origin() == self.url.origin()
        self.permanent = self.permanent and status in _PERMANENT
        self.hops += (Hop(status, address, self.permanent),)
        self.url, self.host, self.shown = following, (following.raw_host or "").lower(), address

    def unchanged(self, answer: Connection) -> Response:
        """The answer to a condition that held."""
        known = self.known
        if known.etag is None and known.last_modified is None:
            raise FetchError(
                FailureKind.BROKEN,
                "{url}: the server says it has not changed, but was not asked that (status 304).",
                http_status=304,
                url=self.shown,
            )
        etag = self.headers.raw(b"etag") or known.etag
        last_modified = self.headers.raw(b"last-modified") or known.last_modified
        if etag != known.etag or last_modified != known.last_modified:
            known = Validators(etag=etag, last_modified=last_modified, body_hash=known.body_hash)
        return self._response(answer, b"", known, True)

    async def changed(self, answer: Connection, limit: int) -> Response:
        """The answer with a body, which may still turn out to be the one we know."""
        headers = self.headers
        body = await read_body(answer, headers.get("content-encoding"), limit, self.shown)
        # It is compared with the same source's last body alone: who forges one hides nothing but their own news. Of the
        # hashes that are good enough for that, this is the one that processors have built in.
        body_hash = sha1(body, usedforsecurity=False).digest()
        validators = Validators(
            etag=headers.raw(b"etag"), last_modified=headers.raw(b"last-modified"), body_hash=body_hash
        )
        return self._response(answer, body, validators, validators.body_hash == self.known.body_hash)

    def _response(self, answer: Connection, body: bytes, validators: Validators, unchanged: bool) -> Response:
        permanent_url = None
        for hop in self.hops:
            if hop.permanent:
                permanent_url = hop.url
        return Response(
            url=self.shown,
            status=answer.status,
            headers=self.headers,
            body=body,
            validators=validators,
            unchanged=unchanged,
            redirects=self.hops,
            permanent_url=permanent_url,
            hints=self.hints(),
            bytes_received=self.received + answer.received,
            elapsed_seconds=self.spent + time.monotonic() - self.began,
            content_type=self.headers.get("content-type"),
            requests=len(self.hops) + 1,
        )


_NO_HEADERS = Headers([])


def _encode(headers: dict[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode(
        "utf-8", "surrogateescape"
    )


def _own_headers(request: Request, userinfo: BasicAuth | None) -> dict[str, str] | None:
    """What belongs to the source's own origin: its headers, cookies and credentials."""
    auth = request.auth or userinfo
    if not request.headers and not request.cookies and auth is None:
        return None
    headers: dict[str, str] = {}
    for name, value in (request.headers or {}).items():
        lowered = name.lower()
        headers[{"user-agent": "User-Agent", "accept": "Accept"}.get(lowered, lowered)] = value
    if request.cookies:
        headers["cookie"] = "; ".join(f"{name}={value}" for name, value in request.cookies.items())
    if auth is not None:
        headers["authorization"] = auth.header()
    return headers
