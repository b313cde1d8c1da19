"""A way out for another program: a proxy on loopback with the guard on it.

Programs that make their own requests (a video downloader, a notification library) are given its address as their
proxy. Every connection they make, first or redirected, is then resolved, checked and made here. It lets in only
who knows its password, counts what comes in and cuts off what exceeds the cap.

It passes bytes on and looks into none; it only adds to an answer that its connection ends there.
"""

import asyncio
import base64
import secrets
import socket
from collections.abc import Awaitable
from contextlib import suppress
from types import TracebackType
from typing import Self

from yarl import URL

from headwater.errors import FetchError
from headwater.fetch.guard import Guard, RefusedError
from headwater.fetch.message import public_url
from headwater.fetch.socks import open_tunnel
from headwater.fetch.url import Proxy

_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 15.0
_MAX_HEAD = 65_536
_CHUNK = 65_536
# Not every server says so when it was told to. A program that does not know sends its next request into the closing.
_CLOSES = b"\r\nConnection: close\r\n"

_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class GuardedProxy:
    """Serves while its context is open. `refusal` is the first thing the guard said no to."""

    def __init__(self, guard: Guard, *, max_bytes: int, upstream: Proxy | None = None) -> None:
        self._guard = guard
        self._upstream = upstream
        self._left = max_bytes
        self._password = secrets.token_hex(16)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.refusal: FetchError | None = None
        self.exhausted = False  # whether the cap was reached
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://headwater:{self._password}@127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """The variables by which programs learn of a proxy."""
        names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        return dict.fromkeys(names, self.url) | {"no_proxy": "", "NO_PROXY": ""}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_MAX_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
                await self._serve(reader, writer)
        except asyncio.CancelledError:
            pass  # the proxy is closing
        finally:
            writer.close()
            if task is not None:
                self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
        first, *lines = head[:-4].split(b"\r\n")
        method, _, rest = first.decode("latin-1").partition(" ")
        target = rest.partition(" ")[0]
        if not self._is_let_in(lines):
            await _say(
                writer, b'407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="headwater"'
            )
            return
        tunnel = method.upper() == "CONNECT"
        try:
            url = URL(f"https://{target}" if tunnel else target, encoded=True)
            there = await self._connect(url, tunnel)
        except (FetchError, RefusedError, ValueError) as error:
            if self.refusal is None and isinstance(error, FetchError):
                self.refusal = error
            await _say(writer, b"403 Forbidden")
            return
        except (OSError, TimeoutError):
            await _say(writer, b"502 Bad Gateway")
            return
        try:
            if tunnel:
                await _say(writer, b"200 Connection established")
            else:
                there[1].write(self._forwarded(method, url, lines))
            await _first_of(
                self._pump(reader, there[1], inward=False),
                self._pump(there[0], writer, inward=True, saying=b"" if tunnel else _CLOSES),
            )
        finally:
            there[1].transport.abort()

    def _is_let_in(self, lines: list[bytes]) -> bool:
        expected = base64.b64encode(f"headwater:{self._password}".encode())
        for line in lines:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"proxy-authorization":
                return secrets.compare_digest(value.strip().removeprefix(b"Basic "), expected)
        return False

    async def _connect(self, url: URL, tunnel: bool) -> _Stream:
        """A connection to the URL's host, or to the operator's own proxy for it; FetchError when refused."""
        host, port = url.raw_host or "", url.port or 0
        shown = public_url(str(url))
        self._guard.check_url(url.scheme, host, port, shown=shown, proxied=self._upstream is not None)
        if self._upstream is not None:
            if self._upstream.is_socks:
                return await asyncio.wait_for(open_tunnel(self._upstream, host, port), _CONNECT_SECONDS)
            return await self._connect_upstream(self._upstream, f"{host}:{port}" if tunnel else None)
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        failure: OSError = OSError("no address")
        for info in infos:
            address = str(info[4][0])
            try:
                self._guard.check_address(host, address, port)
                # By the address that was checked, never again by the name.
                return await asyncio.wait_for(asyncio.open_connection(address, port), _CONNECT_SECONDS)
            except RefusedError as refused:
                raise self._guard.refusal(shown, host, refused.address) from None
            except (OSError, TimeoutError) as error:
                failure = error if isinstance(error, OSError) else OSError("timeout")
        raise failure

    async def _connect_upstream(self, upstream: Proxy, target: str | None) -> _Stream:
        secure = upstream.url.scheme == "https"
        there = await asyncio.wait_for(
            asyncio.open_connection(upstream.url.host, upstream.url.port, ssl=secure or None),
            _CONNECT_SECONDS,
        )
        if target is not None:
            head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
            if upstream.authorization is not None:
                head += f"Proxy-Authorization: {upstream.authorization}\r\n"
            there[1].write(f"{head}\r\n".encode("latin-1"))
            answer = await asyncio.wait_for(there[0].readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
            if b" 200" not in answer.partition(b"\r\n")[0]:
                there[1].transport.abort()
                raise OSError("the operator's proxy refused")
        return there

    def _forwarded(self, method: str, url: URL, lines: list[bytes]) -> bytes:
        """The request as the server is to see it: nothing of the proxy's in it, and one request a connection."""
        dropped = (b"proxy-", b"connection:", b"keep-alive:")
        kept = [line for line in lines if not line.lower().startswith(dropped)]
        upstream = None if self._upstream is None or self._upstream.is_socks else self._upstream
        place = str(url) if upstream is not None else url.raw_path_qs
        if upstream is not None and upstream.authorization is not None:
            kept.append(b"Proxy-Authorization: " + upstream.authorization.encode("latin-1"))
        head = f"{method} {place} HTTP/1.1".encode("latin-1")
        return b"\r\n".join([head, *kept, b"Connection: close", b"", b""])

    async def _pump(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        *,
        inward: bool,
        saying: bytes = b"",
    ) -> None:
        """Pass on what comes until nothing does, with `saying` behind the first line."""
        while data := await source.read(_CHUNK):
            if saying and b"\r\n" in data:
                data, saying = data.replace(b"\r\n", saying, 1), b""
            if inward:
                self._left -= len(data)
                if self._left < 0:
                    self.exhausted = True
                    sink.transport.abort()
                    return
            sink.write(data)
            await sink.drain()
        if not inward:  # the program has sent all it will; the answer may still be on its way
            await asyncio.Event().wait()


async def _say(writer: asyncio.StreamWriter, status: bytes) -> None:
    end = b"" if status.startswith(b"200") else b"Content-Length: 0\r\nConnection: close\r\n"
    writer.write(b"HTTP/1.1 " + status + b"\r\n" + end + b"\r\n")
    await writer.drain()


async def _first_of(*works: Awaitable[None]) -> None:
    """Run them together until one ends, and end the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
