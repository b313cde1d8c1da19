"""The only door to the network: one request out, one response or one FetchError back.

What happens to a request, in order: the guard looks at the URL → politeness gives its host a turn → the conditions go
out exactly as the validators were received → redirects are followed one hop at a time, each through guard and
politeness again, credentials only while the origin stays the same (or the host goes from http to https) → the body is
decoded as it arrives, up to a cap → the response is compared with what was known.

It keeps no cookies, sends no referrer and parses nothing. It retries nothing (the schedule does), except once when a
kept connection turns out to be closed before any of the response has come.
"""

import asyncio
import re
import time
from collections.abc import Iterable
from functools import cached_property
from hashlib import sha1
from pathlib import Path
from types import TracebackType
from typing import Self

from headwater.config import Settings
from headwater.errors import FailureKind, FetchError
from headwater.fetch.decode import ACCEPT_ENCODING
from headwater.fetch.faults import network_error, redirect_error, status_error
from headwater.fetch.guard import Guard, RefusedError, parse_address
from headwater.fetch.hints import read_hints
from headwater.fetch.memory_budget import holding_responses
from headwater.fetch.message import HARMLESS_HEADERS, BasicAuth, Headers, Hop, Request, Response
from headwater.fetch.politeness import Politeness, Slots, crowded
from headwater.fetch.proxy import GuardedProxy
from headwater.fetch.resolve import GuardedResolver, Resolve
from headwater.fetch.robots import Robots
from headwater.fetch.shared_limits import SharedLimits, find_keys
from headwater.fetch.transfer import (
    Call,
    Deadlines,
    ProxyFailedError,
    Transfer,
    TransferError,
    UnknownHostError,
)
from headwater.fetch.transport import Transport
from headwater.fetch.url import Proxy, keeps_credentials, read_location, read_proxy, read_url
from headwater.fetch.usage import add_usage
from headwater.model import NO_HINTS, Hints, Validators
from headwater.version import __version__

ACCEPT_FEED = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, "
    "text/xml;q=0.9, application/json;q=0.8, text/html;q=0.5, */*;q=0.1"
)

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_PERMANENT = frozenset((301, 308))
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
        self.shared_limits = SharedLimits(patience_seconds=patience_seconds)
        self._slots = Slots(concurrency)
        self._base_headers = {"User-Agent": user_agent, "Accept": accept, "Accept-Encoding": ACCEPT_ENCODING}
        self._usual_headers = _encode(self._base_headers)
        self._deadlines = Deadlines(total_seconds, connect_seconds, read_seconds)
        self._max_bytes = max_bytes
        self._max_redirects = max_redirects
        self._proxy = read_proxy(proxy, is_ours=True) if proxy else None
        self.ca_file = ca_file
        self._resolver = GuardedResolver(self.guard, resolve)
        self._transport: Transport | None = None

    async def __aenter__(self) -> Self:
        self._transport = Transport(self.ca_file)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._transport is not None:
            await self._transport.close()
        await self._resolver.close()

    @cached_property
    def robots(self) -> Robots:
        """What sites ask of programs, remembered for all who read pages through this door."""
        return Robots(self)

    async def get(self, request: Request) -> Response:
        """The response to a GET, or FetchError. One that fails before anything was sent has no http_status."""
        exchange = _Exchange(request)
        proxy = self._proxy if request.proxy is None else read_proxy(request.proxy, is_ours=False)
        turn, status, retry_after = "", 0, None
        try:
            while True:
                host = exchange.host
                self._check(exchange, proxy)
                if host != turn:
                    if turn:
                        self._leave(turn, status, None)
                        turn, status = "", 0
                    if self.shared_limits:
                        await self._keep_shared_limits(exchange, proxy)
                    entered = self.politeness.try_enter(host)
                    if not entered or not self._slots.try_take():
                        await self._wait_for_turn(host, exchange.shown, entered)
                    turn = host
                status = await self._send(request, exchange, proxy)
                if status == 304:
                    return exchange.unchanged()
                if 200 <= status < 300 or status in request.answers:
                    if status >= 400:
                        retry_after = exchange.hints().retry_after_seconds
                    return exchange.changed(status)
                if status not in _REDIRECTS:
                    retry_after = exchange.hints().retry_after_seconds
                    raise status_error(
                        exchange.shown,
                        status,
                        retry_after,
                        withheld=exchange.withheld,
                        tried=exchange.signed_in,
                    )
                exchange.follow(status, self._max_redirects)
        finally:
            if turn:
                self._leave(turn, status, retry_after)
                if status == 429:
                    addresses = self._addresses(exchange, proxy)
                    self.shared_limits.refuse(exchange.start, turn, exchange.account, addresses, retry_after)

    def rest(self, url: str, seconds: float) -> None:
        """Send nothing to the host of `url` for a while: its service has said so in its own way."""
        self.politeness.rest((read_url(url)[0].raw_host or "").lower(), seconds)

    async def post(self, request: Request) -> Response:
        """The response to a POST of the request's body, whatever its status; FetchError when there is none.

        For services that the operator named, which are asked as often as there is work for them: their hosts have no
        turns to wait for. A redirect is a response like any other: nothing is ever sent on to another place.
        """
        if request.body is None:
            raise ValueError("nothing to post")
        exchange = _Exchange(request)
        proxy = self._proxy if request.proxy is None else read_proxy(request.proxy, is_ours=False)
        self._check(exchange, proxy)
        if not self._slots.try_take():
            await self._slots.take()
        try:
            return exchange.changed(await self._send(request, exchange, proxy))
        finally:
            self._slots.give()

    async def resolve(self, host: str, port: int) -> tuple[str, ...]:
        """The addresses at which `host` may be reached, for protocols beside HTTP; RefusedError or OSError if none."""
        return await self._resolver.resolve(host, port)

    def secure_url(self, url: str) -> str:
        """Where to send a secret that is meant for `url`: over https, unless the operator has named its host."""
        parsed, _ = read_url(url)
        port = parsed.port or 0
        if parsed.scheme == "https" or self.guard.is_named((parsed.host or "").lower(), port):
            return url
        return str(parsed.with_scheme("https").with_port(None if port == 80 else port))

    def open_to_child(self, *, max_bytes: int) -> GuardedProxy:
        """A way out for another program, through this guard; an async context manager."""
        return GuardedProxy(self.guard, max_bytes=max_bytes, upstream=self._proxy)

    async def _keep_shared_limits(self, exchange: "_Exchange", proxy: Proxy | None) -> None:
        """Wait as long as the limits that this host shares with others demand; FetchError if that is long."""
        keys = find_keys(exchange.host, exchange.account, self._addresses(exchange, proxy))
        seconds, group = self.shared_limits.enter(keys)
        if group is not None:
            raise crowded(group, exchange.shown, seconds)
        if seconds > 0.0:
            await asyncio.sleep(seconds)

    def _addresses(self, exchange: "_Exchange", proxy: Proxy | None) -> list[str]:
        return self._resolver.known_addresses(exchange.host, exchange.url.port or 0) if proxy is None else []

    def _check(self, exchange: "_Exchange", proxy: Proxy | None) -> None:
        url = exchange.url
        self.guard.check_url(
            url.scheme, exchange.host, url.port or 0, shown=exchange.shown, proxied=proxy is not None
        )

    async def _wait_for_turn(self, host: str, shown: str, entered: bool) -> None:
        """Take the host's turn, then one of our own slots: a request that waits for a host holds up no other."""
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

    async def _send(self, request: Request, exchange: "_Exchange", proxy: Proxy | None) -> int:
        """One hop: send the request to where the exchange is, take its response, return the status."""
        if self._transport is None:
            raise RuntimeError("a Fetcher is used within its `async with`")
        add_usage(1, 0)
        exchange.began = time.monotonic()
        limit = request.max_bytes or self._max_bytes
        try:
            call = await self._make_call(request, exchange, proxy, limit)
            with holding_responses():
                transfer = await self._transport.send(call)
        except (TransferError, RefusedError) as error:
            raise network_error(error, self.guard, exchange.shown, exchange.host, limit) from None
        status = exchange.take(transfer)
        self._transport.release(transfer)
        return status

    async def _make_call(
        self, request: Request, exchange: "_Exchange", proxy: Proxy | None, limit: int
    ) -> Call:
        url = exchange.url
        host, port = exchange.host.rstrip("."), url.port or 0
        is_guarded = proxy is None or not proxy.is_ours
        try:
            if proxy is None:
                resolve = await self._resolver.locate(host, port)
            elif parse_address(host) is None and not all(0 < len(label) < 64 for label in host.split(".")):
                raise UnknownHostError  # which no proxy could find either
            else:
                resolve = await self._resolver.locate(proxy.host, proxy.port, guarded=is_guarded)
        except RefusedError:
            raise
        except OSError:
            raise (UnknownHostError() if proxy is None else ProxyFailedError()) from None
        # Only what is sent through a proxy in the clear names the whole address.
        is_forwarded = proxy is not None and not proxy.is_socks and url.scheme == "http"
        return Call(
            url=f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{port}/",
            host=host if proxy is None else proxy.host,
            port=port if proxy is None else proxy.port,
            target=str(url) if is_forwarded else url.raw_path_qs,
            headers=self._headers(request, exchange),
            deadlines=self._deadlines_of(request, exchange.spent),
            limit=limit,
            answers=None if request.body is not None else request.answers,
            check=self._resolver.check if is_guarded else None,
            resolve=resolve,
            body=request.body,
            proxy=proxy,
        )

    def _headers(self, request: Request, exchange: "_Exchange") -> list[bytes]:
        """The headers to send."""
        lines = [b"Host: " + exchange.url.host_port_subcomponent.encode()]  # type: ignore[union-attr]
        is_usual = request.accept is None and exchange.own_headers is None
        if is_usual and request.body is None and request.part is None:
            lines += self._usual_headers
        else:
            headers = self._base_headers.copy()
            if request.accept is not None:
                headers["Accept"] = request.accept
            if request.part is not None:
                headers["Accept-Encoding"] = "identity"  # a part of what is packed cannot be unpacked
            for name, value in (exchange.own_headers or {}).items():
                if exchange.same_origin or name.lower() in HARMLESS_HEADERS:
                    headers[name] = value
            if request.body is not None:
                headers["Expect"] = ""
                if "content-type" not in headers:
                    headers["content-type"] = "application/octet-stream"
            lines += _encode(headers)
        validators = request.validators
        if validators.etag and not _UNSENDABLE.search(validators.etag):
            lines.append(b"If-None-Match: " + validators.etag)
        if validators.last_modified and not _UNSENDABLE.search(validators.last_modified):
            lines.append(b"If-Modified-Since: " + validators.last_modified)
        if request.part is not None:
            lines.append(b"Range: bytes=%d-%d" % request.part)
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


def make_fetcher(settings: Settings) -> Fetcher:
    """The fetch door as the settings want it."""
    contact = f" (+{settings.contact_url})" if settings.contact_url else ""
    return Fetcher(
        user_agent=f"Headwater/{__version__}{contact}",
        allow=settings.allow_hosts,
        concurrency=settings.collector_concurrency + settings.slow_visits,
        host_concurrency=settings.host_concurrency,
        host_spacing_seconds=settings.host_spacing_seconds,
        max_bytes=settings.max_body_megabytes * 1_000_000,
        proxy=settings.proxy,
        ca_file=settings.ca_file,
    )


class _Exchange:
    """How far one request has come: the URL it is at, the redirects behind it and what they cost."""

    __slots__ = (
        *("began", "body", "headers", "hops", "host", "known", "own_headers", "permanent", "received"),
        *("same_origin", "shown", "spent", "start", "url"),
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
        self.body = b""
        self.spent = self.began = 0.0
        self.received = 0

    @property
    def withheld(self) -> bool:
        """Whether credentials were left behind at the origin they are for."""
        return self.own_headers is not None and not self.same_origin

    @property
    def signed_in(self) -> bool:
        """Whether credentials were sent."""
        sent = self.own_headers if self.same_origin else None
        return sent is not None and ("authorization" in sent or "cookie" in sent)

    @property
    def account(self) -> str | None:
        """A mark of the credentials that were sent; None without."""
        sent = self.own_headers if self.signed_in else None
        return None if sent is None else str(hash((sent.get("authorization"), sent.get("cookie"))))

    def take(self, transfer: Transfer) -> int:
        """Note a response; return its status."""
        self.headers = Headers(transfer.headers)
        self.body = transfer.body
        self.received += transfer.received
        return transfer.status

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
        self.same_origin = self.same_origin and keeps_credentials(self.url, following)
        self.permanent = self.permanent and status in _PERMANENT
        self.hops += (Hop(status, address, self.permanent),)
        self.url, self.host, self.shown = following, (following.raw_host or "").lower(), address

    def unchanged(self) -> Response:
        """The response to a condition that held."""
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
        return self._response(304, b"", known, True)

    def changed(self, status: int) -> Response:
        """The response with a body, which may still turn out to be the one we know."""
        # It is compared with the same source's last body alone: who forges one hides nothing but their own news. Of the
        # hashes that are good enough for that, this is the one that processors have built in.
        body_hash = sha1(self.body, usedforsecurity=False).digest()
        validators = Validators(
            etag=self.headers.raw(b"etag"),
            last_modified=self.headers.raw(b"last-modified"),
            body_hash=body_hash,
        )
        return self._response(status, self.body, validators, body_hash == self.known.body_hash)

    def _response(self, status: int, body: bytes, validators: Validators, unchanged: bool) -> Response:
        permanent_url = None
        for hop in self.hops:
            if hop.permanent:
                permanent_url = hop.url
        return Response(
            url=self.shown,
            status=status,
            headers=self.headers,
            body=body,
            validators=validators,
            unchanged=unchanged,
            redirects=self.hops,
            permanent_url=permanent_url,
            hints=self.hints(),
            bytes_received=self.received,
            elapsed_seconds=self.spent + time.monotonic() - self.began,
            content_type=self.headers.get("content-type"),
            requests=len(self.hops) + 1,
        )


_NO_HEADERS = Headers([])


def _encode(headers: dict[str, str]) -> list[bytes]:
    """Header lines as libcurl takes them: one without a value ends in a semicolon, and a colon would leave it out."""
    return [
        (f"{name}: {value}" if value or name == "Expect" else f"{name};").encode("utf-8", "surrogateescape")
        for name, value in headers.items()
    ]


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
