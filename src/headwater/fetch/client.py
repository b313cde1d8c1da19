"""The door: one request out, one answer or one FetchError back.

What happens to a request, in order: the guard looks at the URL → politeness gives its host a turn → the
conditions go out exactly as the validators were received → redirects are followed one hop at a time, each
through guard and politeness again, credentials only while the origin stays the same → the body is decoded as
it arrives, up to a cap → the answer is compared with what was known.

It keeps no cookies, sends no referrer, retries nothing (the schedule does) and parses nothing.
"""

import asyncio
import re
import time
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar
from yarl import URL

from headwater.errors import FailureKind, FetchError, SettingError
from headwater.fetch.connect import RawHeaderRequest, Resolve, connecting_to, make_connector
from headwater.fetch.decode import ACCEPT_ENCODING, TooLargeError, UndecodableError, make_decoder
from headwater.fetch.faults import network_error, status_error
from headwater.fetch.guard import Guard
from headwater.fetch.hints import read_hints
from headwater.fetch.message import NO_HINTS, BasicAuth, Hop, Request, Response, public_url
from headwater.fetch.politeness import Politeness
from headwater.model import Validators

ACCEPT_FEED = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, "
    "text/xml;q=0.9, application/json;q=0.8, text/html;q=0.5, */*;q=0.1"
)

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_PERMANENT = frozenset((301, 308))
_SAFE_HEADERS = frozenset(("accept", "accept-language", "user-agent"))
_READ = frozenset(
    (
        b"etag",
        b"last-modified",
        b"cache-control",
        b"expires",
        b"age",
        b"date",
        b"retry-after",
        b"location",
        b"content-encoding",
        b"content-type",
    )
)
_HINTING = (b"cache-control", b"expires", b"retry-after")
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
        self._slots = asyncio.Semaphore(concurrency)
        self._base_headers = {"User-Agent": user_agent, "Accept": accept, "Accept-Encoding": ACCEPT_ENCODING}
        self._timeout = ClientTimeout(
            total=total_seconds, connect=connect_seconds, sock_connect=connect_seconds, sock_read=read_seconds
        )
        self._max_bytes = max_bytes
        self._max_redirects = max_redirects
        self._proxy = _read_proxy(proxy) if proxy else None
        self._ca_file = ca_file
        self._resolve = resolve
        self._session: ClientSession | None = None
        self._raw_session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = make_connector(self.guard, self._resolve, self._ca_file)
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

    async def get(self, request: Request) -> Response:
        """The answer to a GET, or FetchError. One that fails before anything was sent has no http_status."""
        url, userinfo = _read_url(request.url, public_url(request.url))
        proxy, proxy_is_ours = self._proxy, True
        if request.proxy is not None:
            proxy, proxy_is_ours = _read_proxy(request.proxy), False
        origin_headers = _origin_headers(request, userinfo)
        hops: list[Hop] = []
        visited = {url}
        permanent_url: str | None = None
        permanent = userinfo is None  # a URL with credentials in it stays as it is
        same_origin = True
        spent = 0.0
        received = 0
        turn, status, retry_after = "", 0, None
        try:
            while True:
                shown = str(url)
                host = url.raw_host or ""
                self.guard.check_url(url.scheme, host, url.port or 0, shown=shown, proxied=proxy is not None)
                if host != turn:
                    if turn:
                        self._leave(turn, status, None)
                        turn, status = "", 0
                    await self._enter(host, shown)
                    turn = host
                if proxy is None:
                    connecting_to.set(host)
                else:
                    connecting_to.set("" if proxy_is_ours else proxy[0].raw_host or "")
                headers, raw = self._headers(request, origin_headers, same_origin=same_origin)
                began = time.monotonic()
                try:
                    answer = await self._send(url, headers, raw, proxy, self._deadlines(request, spent))
                    status = answer.status
                    seen, size = _read_headers(answer.raw_headers)
                    received += size
                    if status == 304:
                        return self._unchanged(
                            request, answer, seen, shown, hops, permanent_url, received, spent, began
                        )
                    if 200 <= status < 300:
                        limit = request.max_bytes or self._max_bytes
                        body, size = await _read_body(answer, seen, limit, shown)
                        return self._changed(
                            request,
                            answer,
                            seen,
                            body,
                            shown,
                            hops,
                            permanent_url,
                            received + size,
                            spent,
                            began,
                        )
                except (ClientError, OSError, ValueError) as error:
                    raise network_error(error, self.guard, shown, host, proxy is not None) from None
                _drop(answer)
                spent += time.monotonic() - began
                if status not in _REDIRECTS or b"location" not in seen:
                    retry_after = read_hints(seen, time.time()).retry_after_seconds
                    if status in _REDIRECTS:
                        raise FetchError(
                            FailureKind.REDIRECT,
                            "{url}: a redirect that leads nowhere (status {status}).",
                            http_status=status,
                            url=shown,
                            status=status,
                        )
                    raise status_error(shown, status, retry_after)
                following = self._follow(url, seen[b"location"], status, shown, visited, len(hops))
                same_origin = same_origin and following.origin() == url.origin()
                permanent = permanent and status in _PERMANENT
                url = following
                hops.append(Hop(status, str(url)))
                if permanent:
                    permanent_url = str(url)
        finally:
            if turn:
                self._leave(turn, status, retry_after)

    async def _enter(self, host: str, shown: str) -> None:
        """Take the host's turn, then one of our own slots: whoever waits for a host holds up nobody else."""
        await self.politeness.enter(host, shown)
        try:
            await self._slots.acquire()
        except BaseException:
            self.politeness.leave(host)
            raise

    def _leave(self, host: str, status: int, retry_after: float | None) -> None:
        self._slots.release()
        self.politeness.leave(host, status, retry_after)

    async def _send(
        self,
        url: URL,
        headers: dict[str, str],
        raw: bool,
        proxy: tuple[URL, str | None] | None,
        deadlines: ClientTimeout,
    ) -> ClientResponse:
        session = self._raw_session if raw else self._session
        if session is None:
            raise RuntimeError("Fetcher is used outside its `async with`")
        if proxy is None:
            return await session.get(url, headers=headers, timeout=deadlines, allow_redirects=False)
        proxy_url, authorization = proxy
        proxy_headers = None
        if authorization is not None:
            if url.scheme == "https":
                proxy_headers = {
                    "Proxy-Authorization": authorization
                }  # goes with CONNECT, to the proxy alone
            else:
                headers["Proxy-Authorization"] = authorization
        return await session.get(
            url,
            headers=headers,
            timeout=deadlines,
            allow_redirects=False,
            proxy=proxy_url,
            proxy_headers=proxy_headers,
        )

    def _headers(
        self, request: Request, origin_headers: dict[str, str] | None, *, same_origin: bool
    ) -> tuple[dict[str, str], bool]:
        """The headers to send, and whether they hold bytes that are no UTF-8."""
        headers = dict(self._base_headers)
        if request.accept is not None:
            headers["Accept"] = request.accept
        if origin_headers is not None:
            if same_origin:
                headers.update(origin_headers)
            else:
                headers.update({k: v for k, v in origin_headers.items() if k.lower() in _SAFE_HEADERS})
        raw = False
        validators = request.validators
        for name, value in (
            ("If-None-Match", validators.etag),
            ("If-Modified-Since", validators.last_modified),
        ):
            if value and not _UNSENDABLE.search(value):
                try:
                    headers[name] = value.decode()
                except UnicodeDecodeError:
                    headers[name] = value.decode("utf-8", "surrogateescape")
                    raw = True
        return headers, raw

    def _deadlines(self, request: Request, spent: float) -> ClientTimeout:
        asked = (request.total_seconds, request.connect_seconds, request.read_seconds)
        if not spent and asked == (None, None, None):
            return self._timeout
        total, connect, read = asked
        default = self._timeout
        connect = connect or default.connect
        return ClientTimeout(
            # A hop that comes after the time is up fails by the same timer as the others.
            total=max(0.001, (total or default.total or 0) - spent),
            connect=connect,
            sock_connect=connect,
            sock_read=read or default.sock_read,
        )

    def _follow(
        self, url: URL, location: bytes, status: int, shown: str, visited: set[URL], hops: int
    ) -> URL:
        """Where the redirect leads; FetchError for a loop, a chain without end and a place that is none."""
        if hops >= self._max_redirects:
            raise FetchError(
                FailureKind.REDIRECT,
                "{url}: more than {count} redirects.",
                http_status=status,
                url=shown,
                count=self._max_redirects,
            )
        text = location.decode("utf-8", "replace")
        try:
            following, _ = _read_url(str(url.join(_parse(text))), public_url(text))
        except ValueError:
            following = URL()
        if not following.raw_host:
            raise FetchError(
                FailureKind.REDIRECT,
                "{url}: it redirects to {location}, which is no address.",
                http_status=status,
                url=shown,
                location=public_url(text),
            )
        if following in visited:
            raise FetchError(
                FailureKind.REDIRECT, "{url}: its redirects go in a circle.", http_status=status, url=shown
            )
        visited.add(following)
        return following

    def _unchanged(
        self,
        request: Request,
        answer: ClientResponse,
        seen: dict[bytes, bytes],
        shown: str,
        hops: list[Hop],
        permanent_url: str | None,
        received: int,
        spent: float,
        began: float,
    ) -> Response:
        known = request.validators
        if known.etag is None and known.last_modified is None:
            raise FetchError(
                FailureKind.BROKEN,
                "{url}: the server says it has not changed, but was not asked that (status 304).",
                http_status=304,
                url=shown,
            )
        etag = seen.get(b"etag") or known.etag
        last_modified = seen.get(b"last-modified") or known.last_modified
        if etag != known.etag or last_modified != known.last_modified:
            known = Validators(etag=etag, last_modified=last_modified, body_hash=known.body_hash)
        return Response(
            url=shown,
            status=304,
            headers=answer.headers,
            body=b"",
            validators=known,
            unchanged=True,
            redirects=tuple(hops),
            permanent_url=permanent_url,
            hints=_hints(seen),
            bytes_received=received,
            elapsed_seconds=spent + time.monotonic() - began,
            content_type=None,
            requests=len(hops) + 1,
        )

    def _changed(
        self,
        request: Request,
        answer: ClientResponse,
        seen: dict[bytes, bytes],
        body: bytes,
        shown: str,
        hops: list[Hop],
        permanent_url: str | None,
        received: int,
        spent: float,
        began: float,
    ) -> Response:
        body_hash = blake2b(body, digest_size=16).digest()
        content_type = seen.get(b"content-type")
        return Response(
            url=shown,
            status=answer.status,
            headers=answer.headers,
            body=body,
            validators=Validators(
                etag=seen.get(b"etag") or None,
                last_modified=seen.get(b"last-modified") or None,
                body_hash=body_hash,
            ),
            unchanged=body_hash == request.validators.body_hash,
            redirects=tuple(hops),
            permanent_url=permanent_url,
            hints=_hints(seen),
            bytes_received=received,
            elapsed_seconds=spent + time.monotonic() - began,
            content_type=content_type.decode("latin-1") if content_type is not None else None,
            requests=len(hops) + 1,
        )


async def _read_body(
    answer: ClientResponse, seen: dict[bytes, bytes], limit: int, shown: str
) -> tuple[bytes, int]:
    """The decoded body and its size on the wire. Never holds more than the cap, whatever is sent."""
    try:
        decoder = make_decoder(seen.get(b"content-encoding", b"").decode("latin-1"))
        content = answer.content
        parts: list[bytes] = []
        size, room = 0, limit
        while chunk := await content.readany():
            size += len(chunk)
            if size > limit:
                raise TooLargeError
            if decoder is None:
                parts.append(chunk)
            else:
                for part in decoder.feed(chunk, room):
                    room -= len(part)
                    parts.append(part)
        if decoder is not None:
            decoder.finish()
    except BaseException as error:
        _drop(answer)
        if isinstance(error, TooLargeError):
            raise FetchError(
                FailureKind.TOO_LARGE,
                "{url}: the answer is larger than the {limit} bytes allowed.",
                http_status=answer.status,
                url=shown,
                limit=limit,
            ) from None
        if isinstance(error, UndecodableError):
            raise FetchError(
                FailureKind.BROKEN,
                "{url}: the compressed answer cannot be read, or is cut off ({encoding}).",
                http_status=answer.status,
                url=shown,
                encoding=str(error),
            ) from None
        raise
    return (parts[0] if len(parts) == 1 else b"".join(parts)), size


def _drop(answer: ClientResponse) -> None:
    """Have done with an answer. Aborted, not closed: over TLS a closed transport may go on downloading."""
    connection = answer.connection
    if connection is not None and not answer.content.is_eof() and connection.transport is not None:
        connection.transport.abort()
    answer.close()


def _read_headers(raw_headers: tuple[tuple[bytes, bytes], ...]) -> tuple[dict[bytes, bytes], int]:
    """The headers that matter here, by lower-case name, and the size of them all."""
    seen: dict[bytes, bytes] = {}
    size = 19  # the status line, roughly, and the empty one
    for name, value in raw_headers:
        size += len(name) + len(value) + 4
        name = name.lower()
        if name in _READ:
            if name not in seen:
                seen[name] = value
            elif name == b"cache-control":
                seen[name] += b", " + value
    return seen, size


def _hints(seen: dict[bytes, bytes]) -> Any:
    for name in _HINTING:
        if name in seen:
            return read_hints(seen, time.time())
    return NO_HINTS


def _origin_headers(request: Request, userinfo: BasicAuth | None) -> dict[str, str] | None:
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


_LEGAL = re.compile(r"\Ahttps?://[!#$%&'()*+,\-./0-9:;=?@A-Z_a-z~\[\]]+\Z")


def _parse(text: str) -> URL:
    """Read a URL without touching what is already in order: some servers sign every byte of theirs."""
    text = text.strip()
    url = URL(text, encoded=True) if _LEGAL.match(text) else URL(text)
    if url.raw_fragment:
        url = url.with_fragment(None)
    return url if url.raw_path or not url.absolute else url.with_path("/")


def _read_url(text: str, shown: str) -> tuple[URL, BasicAuth | None]:
    """The URL without credentials, and the credentials."""
    try:
        url = _parse(text)
        if url.port is None and url.scheme in ("http", "https"):
            raise ValueError(text)
        userinfo = None
        if url.raw_user is not None or url.raw_password is not None:
            userinfo = BasicAuth(url.user or "", url.password or "")
            url = url.with_user(None)
    except ValueError:
        raise FetchError(
            FailureKind.BLOCKED, "{url}: this is not an address that can be fetched.", url=shown
        ) from None
    return url, userinfo


def _read_proxy(text: str) -> tuple[URL, str | None]:
    """The proxy's URL without credentials, and its Proxy-Authorization."""
    try:
        url, userinfo = _read_url(text, "")
    except FetchError:
        url, userinfo = URL(), None
    if url.scheme not in ("http", "https") or not url.raw_host:
        raise SettingError(
            "The proxy {proxy} is not one that can be used; write it as http://host:port.",
            proxy=public_url(text),
        )
    return url, userinfo.header() if userinfo is not None else None


def _make_session(**options: Any) -> ClientSession:
    return ClientSession(
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        max_line_size=65536,
        max_field_size=65536,
        max_headers=256,
        **options,
    )
