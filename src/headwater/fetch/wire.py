"""HTTP/1.1 on the wire: connections that are kept and made, and one request at a time on each.

What it does not know: what a URL means, redirects, conditions, encodings of bodies. What arrives is read by llhttp
(httptools), the parser of Node.js, in the lenient way in which browsers read it; how much may arrive before anybody
asked for it is bounded here. Every failure is a WireError of its own kind.

A connection that is not read to the end of its answer is aborted, not closed: over TLS a goodbye waits for the peer's,
and a peer that goes on sending instead would be read without end.
"""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Literal, NamedTuple

from aiohappyeyeballs import AddrInfoType, start_connection
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from headwater.fetch.guard import RefusedError
from headwater.fetch.resolve import GuardedResolver
from headwater.fetch.url import Proxy

KEEP_ALIVE_SECONDS = 30.0
KEPT_HOSTS = 200  # to which idle connections are kept: each costs memory and a file descriptor
# Real servers send policies of tens of kilobytes in one header; floods are longer, in a head or after a body.
MOST_HEAD_BYTES = 262_144
MOST_LINE_BYTES = 65_536
MOST_HEADERS = 256
ENOUGH_WAITING_BYTES = 262_144  # of a body that nobody has read yet; the sender waits then
PIECE_COST = 64  # of each of its pieces, were it of one byte
LONG_REQUEST_BYTES = 65_536  # beyond which an answer may come while the request is still being sent
SECOND_ADDRESS_SECONDS = 0.25  # after which another address of a host is tried beside a slow one

_BODILESS = (204, 304)

Phase = Literal["connect", "read", "total"]


class WireError(Exception):
    """Something went wrong on the way, before or in the middle of an answer."""


class UnknownHostError(WireError):
    """The name has no address."""


class UnreachableError(WireError):
    """Nobody answers at the address."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UntrustedError(WireError):
    """The certificate is not one to trust."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class InsecureError(WireError):
    """No secure connection could be made."""


class ProxyFailedError(WireError):
    """The proxy is not there, or refuses; then with a status."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__(status)
        self.status = status


class SlowError(WireError):
    """The time for a phase is over."""

    def __init__(self, phase: Phase) -> None:
        super().__init__(phase)
        self.phase = phase


class LostError(WireError):
    """The connection ended before the answer did; `begun` when some of it had come."""

    def __init__(self, begun: bool) -> None:
        super().__init__(begun)
        self.begun = begun


class NotHttpError(WireError):
    """What came is not HTTP, or more of it than anybody sends in good faith; `begun`: after the head of an answer."""

    def __init__(self, begun: bool) -> None:
        super().__init__(begun)
        self.begun = begun


class Route(NamedTuple):
    """Where a connection leads: requests on the same route may share one."""

    tls: bool
    host: str
    port: int
    proxy: Proxy | None = None

    @property
    def has_tunnel(self) -> bool:
        return self.tls and self.proxy is not None


class Deadlines(NamedTuple):
    """Seconds for a whole request, for its connection to be made, and for the next bytes to come."""

    total: float
    connect: float
    read: float


class Connection(asyncio.Protocol):
    """One connection. While a request is under way it is also its answer: `status`, `headers`, `read`, `release`."""

    __slots__ = (
        "_barren",
        "_chunks",
        "_complete",
        "_deadline",
        "_error",
        "_head_done",
        "_heard_at",
        "_interim",
        "_is_busy",
        "_is_long",
        "_keep",
        "_loop",
        "_parser",
        "_paused",
        "_read_seconds",
        "_timer",
        "_transport",
        "_waiter",
        "_waiting",
        "_wire",
        "headers",
        "idle_since",
        "received",
        "route",
        "status",
    )

    def __init__(self, wire: "Wire", route: Route) -> None:
        self._wire = wire
        self._loop = wire.loop
        self.route = route
        self._transport: asyncio.Transport | None = None
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_busy = self._is_long = False
        self._paused = False
        self._error: WireError | None = None
        self._begin()
        self.idle_since = 0.0

    def _begin(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.received = 0
        self._chunks: list[bytes] = []
        self._waiting = self._barren = 0
        self._head_done = self._complete = self._keep = self._interim = False

    # -- what the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if not self._is_busy:
            self._wire.forget(self)  # nobody has asked: whatever it is, it must not become the next answer
            self.abort()
            return
        self.received += len(data)
        self._barren += len(data)
        self._heard_at = self._loop.time()
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            if self._complete and self.status in _BODILESS:
                self._keep = False  # some send one all the same; the answer is none the worse for it
            else:
                self._fail(NotHttpError(self._head_done))
                return
        if self._barren > MOST_HEAD_BYTES:
            self._fail(NotHttpError(self._head_done))
            return
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if not self._is_busy:
            self._wire.forget(self)
        elif not self._complete and self._error is None:
            if error is None and self._head_done and self._ends_with_connection():
                self._complete = True
            else:
                self._error = LostError(self.received > 0)
        self._wake()

    def _ends_with_connection(self) -> bool:
        return not any(
            name.strip().lower() == b"content-length"  # the parser knows none with spaces before its colon
            or (name.strip().lower() == b"transfer-encoding" and b"chunked" in value.lower())
            for name, value in self.headers
        )

    # -- what the parser tells

    def on_message_begin(self) -> None:
        if self._complete:  # not even the beginning of another may be left for the next request
            raise ValueError("an answer to nothing")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_done:
            return  # a trailer
        self.headers.append((name, value))
        if len(value) > MOST_LINE_BYTES or len(self.headers) > MOST_HEADERS:
            raise ValueError("too much of a head")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self._interim = True
            return
        self.status = status
        self._head_done = True

    def on_body(self, data: bytes) -> None:
        if not self._head_done:
            return  # of an interim answer, which has none
        self._barren = 0
        self._chunks.append(data)
        self._waiting += len(data) + PIECE_COST
        if self._waiting > ENOUGH_WAITING_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
            self.headers.clear()
            return
        self._complete = True
        self._keep = self._parser.should_keep_alive()

    # -- what the one who asks does

    async def ask(self, request: bytes, deadline: float, read_seconds: float) -> None:
        """Send a request; the head of its answer is there when this comes back. `deadline` is the loop's time."""
        self._begin()
        self._is_busy = True
        self._is_long = len(request) > LONG_REQUEST_BYTES
        self._read_seconds = read_seconds
        self._deadline = deadline
        self._heard_at = now = self._loop.time()
        self._timer = self._loop.call_at(min(deadline, now + read_seconds), self._check_time)
        if self._transport is None:
            self._error = LostError(False)
        else:
            self._transport.write(request)
        while not self._head_done and self._error is None:
            await self._news()
        if self._error is not None:
            raise self._error

    async def read(self) -> bytes:
        """All of the body that has come since the last time, as it came over the wire; nothing at its end."""
        while not self._chunks and not self._complete and self._error is None:
            await self._news()
        if self._error is not None:
            raise self._error
        if not self._chunks:
            return b""
        chunks, self._chunks = self._chunks, []
        self._waiting = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._heard_at = self._loop.time()
            self._transport.resume_reading()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def release(self) -> None:
        """Have done with the answer, read or not. The connection is kept only if all of it has come."""
        if not self._is_busy:
            return
        self._is_busy = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._complete and self._keep and not self._is_long and self._error is None and self._is_open():
            if self._paused and self._transport is not None:
                self._paused = False
                self._transport.resume_reading()
            self._wire.keep(self)
        else:
            self.abort()

    def abort(self) -> bool:
        """End it at once; False when there is nothing to end."""
        if self._transport is None:
            return False
        self._transport.abort()
        return True

    def _is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def take_transport(self) -> asyncio.Transport:
        """The transport, for something else to be spoken on it. This connection is at its end."""
        if self._timer is not None:
            self._timer.cancel()
        if self._chunks:
            raise NotHttpError(True)  # said before anybody spoke to it: it would be lost on whoever comes now
        transport, self._transport = self._transport, None
        if transport is None:
            raise self._error or LostError(True)
        self._is_busy = False
        return transport

    async def _news(self) -> None:
        waiter = self._waiter = self._loop.create_future()
        await waiter

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def _fail(self, error: WireError) -> None:
        if self._error is None:
            self._error = error
        self.abort()
        self._wake()

    def _check_time(self) -> None:
        """One timer for both: it is not set anew for everything that arrives, but looks when it was."""
        now = self._loop.time()
        if self._paused:
            self._heard_at = now  # we let it wait, not it us
        if now >= self._deadline:
            self._fail(SlowError("total"))
        elif now >= self._heard_at + self._read_seconds:
            self._fail(SlowError("read"))
        else:
            self._timer = self._loop.call_at(
                min(self._deadline, self._heard_at + self._read_seconds), self._check_time
            )


class Wire:
    """All connections of a Fetcher, on one event loop."""

    def __init__(self, resolver: GuardedResolver, ca_file: str | Path | None) -> None:
        self.loop = asyncio.get_running_loop()
        self._resolver = resolver
        self._ca_file = ca_file
        self._context: ssl.SSLContext | None = None
        self._idle: dict[Route, list[Connection]] = {}
        self._sweep: asyncio.TimerHandle | None = None

    async def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        for kept in list(self._idle.values()):
            for connection in list(kept):
                connection.abort()
        await asyncio.sleep(0)  # in which they are closed

    async def send(
        self, route: Route, request: bytes, deadlines: Deadlines, *, may_repeat: bool
    ) -> Connection:
        """Send a request and wait for the head of its answer, which must be given back with `release`.

        `may_repeat`: sent once more when a kept connection turns out to have been closed in the meantime.
        """
        deadline = self.loop.time() + deadlines.total
        connection = self._take(route)
        if connection is not None:
            try:
                await connection.ask(request, deadline, deadlines.read)
            except LostError as error:
                connection.release()
                if error.begun or not may_repeat:
                    raise
            except BaseException:
                connection.release()
                raise
            else:
                return connection
        connection = await self._connect(route, deadlines, deadline)
        try:
            await connection.ask(request, deadline, deadlines.read)
        except BaseException:
            connection.release()
            raise
        return connection

    # -- kept connections

    def _take(self, route: Route) -> Connection | None:
        kept = self._idle.get(route)
        if not kept:
            return None
        connection = kept.pop()
        if not kept:
            del self._idle[route]
        return connection

    def keep(self, connection: Connection) -> None:
        kept = self._idle.get(connection.route)
        if kept is None:
            # Whoever visits a thousand hosts a second will not be back before the connections have timed out.
            if len(self._idle) >= KEPT_HOSTS:
                connection.abort()
                return
            kept = self._idle[connection.route] = []
        connection.idle_since = self.loop.time()
        kept.append(connection)
        if self._sweep is None:
            self._sweep = self.loop.call_later(KEEP_ALIVE_SECONDS, self._close_idle)

    def forget(self, connection: Connection) -> None:
        kept = self._idle.get(connection.route)
        if kept and connection in kept:
            kept.remove(connection)
            if not kept:
                del self._idle[connection.route]

    def _close_idle(self) -> None:
        before = self.loop.time() - KEEP_ALIVE_SECONDS
        for kept in list(self._idle.values()):
            for connection in list(kept):
                if connection.idle_since <= before:
                    self.forget(connection)
                    connection.abort()
        self._sweep = None
        if self._idle:
            self._sweep = self.loop.call_later(KEEP_ALIVE_SECONDS / 2, self._close_idle)

    # -- new connections

    async def _connect(self, route: Route, deadlines: Deadlines, deadline: float) -> Connection:
        left = deadline - self.loop.time()
        try:
            async with asyncio.timeout(min(deadlines.connect, left)):
                if route.proxy is None:
                    return await self._open(route, route.host, route.port, tls=route.tls)
                return await self._connect_through(route, route.proxy, deadline)
        except TimeoutError:
            raise SlowError("connect" if deadlines.connect < left else "total") from None
        except ssl.SSLCertVerificationError as error:
            raise UntrustedError(error.verify_message) from None
        except ssl.SSLError:
            raise InsecureError from None
        except RefusedError:
            raise
        except ValueError:  # TLS cannot even say it: a part of the name is empty or too long
            raise UnknownHostError from None
        except OSError as error:
            raise UnreachableError(error.strerror or type(error).__name__) from None

    async def _open(
        self, route: Route, host: str, port: int, *, tls: bool, unguarded: bool = False
    ) -> Connection:
        try:
            addresses = await self._resolver.resolve(host, port, unguarded=unguarded)
        except RefusedError:
            raise
        except OSError:
            raise UnknownHostError from None

        def make_socket(info: AddrInfoType) -> socket.socket:
            if not unguarded:  # the last word, on the very address that is connected to
                self._resolver.check(host, str(info[4][0]), port)
            return socket.socket(*info[:3])

        infos: list[AddrInfoType] = [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                socket.IPPROTO_TCP,
                "",
                (address, port, 0, 0) if ":" in address else (address, port),
            )
            for address in addresses
        ]
        opened = await start_connection(
            infos, happy_eyeballs_delay=SECOND_ADDRESS_SECONDS, socket_factory=make_socket
        )
        connection = Connection(self, route)
        try:
            await self.loop.create_connection(
                lambda: connection,
                sock=opened,
                ssl=self._tls_context() if tls else None,
                server_hostname=host.rstrip(".") if tls else None,
            )
        except BaseException:
            if not connection.abort():  # then the loop has it no more
                opened.close()
            raise
        return connection

    async def _connect_through(self, route: Route, proxy: Proxy, deadline: float) -> Connection:
        host, port = proxy.url.raw_host or "", proxy.url.port or 80
        try:
            connection = await self._open(
                route, host, port, tls=proxy.url.scheme == "https", unguarded=proxy.is_ours
            )
        except RefusedError:
            raise
        except (OSError, UnknownHostError):
            raise ProxyFailedError from None
        if not route.has_tunnel:
            return connection
        place = f"[{route.host}]:{route.port}" if ":" in route.host else f"{route.host}:{route.port}"
        request = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
        if proxy.authorization is not None:
            request += f"Proxy-Authorization: {proxy.authorization}\r\n"
        try:
            await connection.ask(f"{request}\r\n".encode(), deadline, deadline - self.loop.time())
            if 200 <= connection.status < 300:
                return await self._secure(connection)
        finally:
            connection.release()
        raise ProxyFailedError(connection.status)

    async def _secure(self, connection: Connection) -> Connection:
        """Begin TLS on a connection that a proxy has passed through."""
        tunnel = Connection(self, connection.route)
        passed = connection.take_transport()
        try:
            transport = await self.loop.start_tls(
                passed, tunnel, self._tls_context(), server_hostname=connection.route.host.rstrip(".")
            )
        except BaseException:
            passed.abort()
            raise
        if transport is None:
            raise InsecureError
        tunnel.connection_made(transport)
        return tunnel

    def _tls_context(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = ssl.create_default_context()
            if self._ca_file is not None:
                self._context.load_verify_locations(self._ca_file)
            self._context.set_alpn_protocols(["http/1.1"])
        return self._context
