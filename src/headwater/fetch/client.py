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
from collections.abc import Awaitable, Iterable, Mapping
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar
from multidict import istr

from headwater.errors import FailureKind, FetchError
from headwater.fetch.body import drop, read_body
from headwater.fetch.connect import GuardedResolver, RawHeaderRequest, Resolve, connecting_to, make_connector
from headwater.fetch.decode import ACCEPT_ENCODING
from headwater.fetch.faults import network_error, redirect_error, status_error
from headwater.fetch.guard import Guard
from headwater.fetch.hints import read_hints
from headwater.fetch.message import BasicAuth, Hop, Request, Response
from headwater.fetch.politeness import Politeness, Slots
from headwater.fetch.proxy import GuardedProxy
from headwater.fetch.robots import Robots
from headwater.fetch.url import Proxy, read_location, read_proxy, read_url
from headwater.model import NO_HINTS, Hints, Validators

ACCEPT_FEED = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, "
    "text/xml;q=0.9, application/json;q=0.8, text/html;q=0.5, */*;q=0.1"
)

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_PERMANENT = frozenset((301, 308))
_SAFE_HEADERS = frozenset(("Accept", "User-Agent", "accept-language"))
# As the header collection looks them up without folding their case first.
_ETAG, _LAST_MODIFIED, _LOCATION = istr("ETag"), istr("Last-Modified"), istr("Location")
_CONTENT_TYPE, _CONTENT_ENCODING = istr("Content-Type"), istr("Content-Encoding")
_CACHE_CONTROL, _EXPIRES, _RETRY_AFTER = istr("Cache-Control"), istr("Expires"), istr("Retry-After")
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
        self._timeout = ClientTimeout(
            total=total_seconds, connect=connect_seconds, sock_connect=connect_seconds, sock_read=read_seconds
        )
        self._max_bytes = max_bytes
        self._max_redirects = max_redirects
        self._proxy = read_proxy(proxy, is_ours=True) if proxy else None
        self._ca_file = ca_file
        self._resolver = GuardedResolver(self.guard, resolve)
        self._session: ClientSession | None = None
        self._raw_session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = make_connector(self.guard, self._resolver, self._ca_file)
        self._session = _make_session(connector=connector)
        # The same connections, for the few requests whose validators are not UTF-8.
        self._raw_session = _make_session(
            connector=connector, connector_owner=False, request_class=RawHeaderRequest
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None and self._raw_session is not None:
            await self._raw_session.close()
            await self._session.close()
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
                    status = trail.take(answer)
                    if status == 304:
                        return trail.unchanged(answer)
                    if 200 <= status < 300 or status in request.answers:
                        if status >= 400:
                            retry_after = trail.hints().retry_after_seconds
                        return await trail.changed(answer, request.max_bytes or self._max_bytes)
                except (ClientError, OSError, ValueError) as error:
                    raise network_error(error, self.guard, trail.shown, host, proxy is not None) from None
                drop(answer)
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
            trail.take(answer)
            return await trail.changed(answer, request.max_bytes or self._max_bytes)
        except (ClientError, OSError, ValueError) as error:
            raise network_error(error, self.guard, trail.shown, trail.host, proxy is not None) from None
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

    def _send(self, request: Request, trail: "_Trail", proxy: Proxy | None) -> Awaitable[ClientResponse]:
        headers, raw = self._headers(request, trail)
        session = self._raw_session if raw else self._session
        if session is None:
            raise RuntimeError("a Fetcher is used within its `async with`")
        deadlines = self._deadlines(request, trail.spent)
        trail.began = time.monotonic()
        method = "GET" if request.body is None else "POST"
        if proxy is None:
            connecting_to.set(trail.host)
            return session.request(
                method,
                trail.url,
                headers=headers,
                data=request.body,
                timeout=deadlines,
                allow_redirects=False,
            )
        connecting_to.set("" if proxy.is_ours else proxy.url.raw_host or "")
        proxy_headers = None
        if proxy.authorization is not None:
            if trail.url.scheme == "https":
                proxy_headers = {"Proxy-Authorization": proxy.authorization}  # goes with CONNECT, no further
            else:
                headers["Proxy-Authorization"] = proxy.authorization
        return session.request(
            method,
            trail.url,
            headers=headers,
            data=request.body,
            timeout=deadlines,
            allow_redirects=False,
            proxy=proxy.url,
            proxy_headers=proxy_headers,
        )

    def _headers(self, request: Request, trail: "_Trail") -> tuple[dict[str, str], bool]:
        """The headers to send, and whether they hold bytes that are no UTF-8."""
        headers = self._base_headers.copy()
        if request.accept is not None:
            headers["Accept"] = request.accept
        if trail.own_headers is not None:
            for name, value in trail.own_headers.items():
                if trail.same_origin or name in _SAFE_HEADERS:
                    headers[name] = value
        raw = False
        validators = request.validators
        for name, known in (
            ("If-None-Match", validators.etag),
            ("If-Modified-Since", validators.last_modified),
        ):
            if known and not _UNSENDABLE.search(known):
                try:
                    headers[name] = known.decode()
                except UnicodeDecodeError:
                    headers[name] = known.decode("utf-8", "surrogateescape")
                    raw = True
        return headers, raw

    def _deadlines(self, request: Request, spent: float) -> ClientTimeout:
        default = self._timeout
        total, connect, read = request.total_seconds, request.connect_seconds, request.read_seconds
        if not spent and total is None and connect is None and read is None:
            return default
        connect = connect or default.connect
        return ClientTimeout(
            # A hop that comes after the time is up fails by the same timer as the others.
            total=max(0.001, (total or default.total or 0.0) - spent),
            connect=connect,
            sock_connect=connect,
            sock_read=read or default.sock_read,
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
        self.headers: Mapping[str, str] = {}
        self.spent = self.began = 0.0
        self.received = 0

    def take(self, answer: ClientResponse) -> int:
        """Note an answer's headers; its status."""
        self.headers = answer.headers
        raw = answer.raw_headers
        # With the colons and line ends, the empty line and, roughly, the status line.
        self.received += sum(map(len, chain.from_iterable(raw))) + 4 * len(raw) + 19
        return answer.status

    def hints(self) -> Hints:
        headers = self.headers
        if _CACHE_CONTROL in headers or _EXPIRES in headers or _RETRY_AFTER in headers:
            return read_hints(headers, time.time())
        return NO_HINTS

    def follow(self, status: int, limit: int) -> None:
        """Go where the redirect leads; FetchError for a circle, an endless chain and a place that is none."""
        location = self.headers.get(_LOCATION)
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

    def unchanged(self, answer: ClientResponse) -> Response:
        """The answer to a condition that held."""
        known = self.known
        if known.etag is None and known.last_modified is None:
            raise FetchError(
                FailureKind.BROKEN,
                "{url}: the server says it has not changed, but was not asked that (status 304).",
                http_status=304,
                url=self.shown,
            )
        etag = _bytes(self.headers.get(_ETAG)) or known.etag
        last_modified = _bytes(self.headers.get(_LAST_MODIFIED)) or known.last_modified
        if etag != known.etag or last_modified != known.last_modified:
            known = Validators(etag=etag, last_modified=last_modified, body_hash=known.body_hash)
        return self._response(answer, b"", known, True)

    async def changed(self, answer: ClientResponse, limit: int) -> Response:
        """The answer with a body, which may still turn out to be the one we know."""
        headers = self.headers
        body, size = await read_body(answer, headers.get(_CONTENT_ENCODING), limit, self.shown)
        self.received += size
        validators = Validators(
            etag=_bytes(headers.get(_ETAG)),
            last_modified=_bytes(headers.get(_LAST_MODIFIED)),
            body_hash=blake2b(body, digest_size=16).digest(),
        )
        return self._response(answer, body, validators, validators.body_hash == self.known.body_hash)

    def _response(
        self, answer: ClientResponse, body: bytes, validators: Validators, unchanged: bool
    ) -> Response:
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
            bytes_received=self.received,
            elapsed_seconds=self.spent + time.monotonic() - self.began,
            content_type=self.headers.get(_CONTENT_TYPE),
            requests=len(self.hops) + 1,
        )


def _bytes(value: str | None) -> bytes | None:
    """A header's value as it came over the wire; None for an empty one. The client read it in this way."""
    return value.encode("utf-8", "surrogateescape") if value else None


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


def _make_session(**options: Any) -> ClientSession:
    return ClientSession(
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        # Real servers send policies of tens of kilobytes in one header; floods are longer.
        max_line_size=65536,
        max_field_size=65536,
        max_headers=256,
        **options,
    )
