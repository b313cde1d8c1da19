"""Connections with the guard on them: resolver, sockets and the few places where aiohttp is bent.

Every connection passes `Guard.check_address` with the address it is made to: once when a name is resolved (an
answer is filtered, and what is left is what is used) and again when the socket is made, which also covers
addresses written in the URL, for which aiohttp asks no resolver.
"""

import asyncio
import re
import secrets
import socket
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import (
    ClientConnectionResetError,
    ClientPayloadError,
    ClientRequest,
    ClientResponse,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from headwater.fetch.guard import Guard, RefusedError

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import AddrInfoType, Connection

Resolve = Callable[[str, int], Awaitable[list[str]]]

# The host whose connection is being made, for the socket factory, which is told only the address. "" means
# the operator's own proxy, which may have any address.
connecting_to: ContextVar[str] = ContextVar("connecting_to")

_SURROGATE = re.compile("[\udc80-\udcff]")
_DNS_SECONDS = 60
_KEEP_ALIVE_SECONDS = 30.0
_KEPT_HOSTS = 200  # to which idle connections are kept: each costs memory and a file descriptor


def make_connector(guard: Guard, resolver: AbstractResolver, ca_file: str | Path | None) -> TCPConnector:
    """A connector that connects where the guard lets it. Concurrency is not its business."""

    def make_socket(info: "AddrInfoType") -> socket.socket:
        family, kind, protocol, _, sockaddr = info
        if host := connecting_to.get():
            guard.check_address(host, str(sockaddr[0]), int(sockaddr[1]))
        return socket.socket(family=family, type=kind, proto=protocol)

    context: ssl.SSLContext | bool = True
    if ca_file is not None:
        context = ssl.create_default_context()
        context.load_verify_locations(ca_file)
        context.set_alpn_protocols(["http/1.1"])
    return _AbortingConnector(
        ssl=context,
        resolver=resolver,
        socket_factory=make_socket,
        limit=0,
        ttl_dns_cache=_DNS_SECONDS,
        keepalive_timeout=_KEEP_ALIVE_SECONDS,
    )


class _AbortingConnector(TCPConnector):
    """Keeps connections to few hosts, and aborts what it does not keep.

    Whoever visits a thousand hosts a second will not be back before the connections have timed out.
    A TLS transport that is only closed waits for the peer's goodbye, and under uvloop reads without end what
    the peer sends instead of one. Nothing that is given up here deserves the courtesy.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        protocol: type[ResponseHandler] = _Protocol
        self._factory = partial(protocol, loop=asyncio.get_running_loop())

    def _release(
        self, key: "ConnectionKey", protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        if len(self._conns) >= _KEPT_HOSTS and key not in self._conns:
            should_close = True
        if should_close or protocol.should_close:
            protocol.abort()
        super()._release(key, protocol, should_close=should_close)


class _Protocol(ResponseHandler):
    """Tells the reader of a body that it will not go on: aiohttp tells only those who wait for an answer."""

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        super().set_exception(exc, *cause)
        if isinstance(exc, HttpProcessingError) and self._payload is not None:
            self._payload.set_exception(ClientPayloadError("not HTTP"))


class GuardedResolver(AbstractResolver):
    """Resolves names on threads of its own (the system's resolver blocks), and filters what comes back."""

    def __init__(self, guard: Guard, resolve: Resolve | None = None) -> None:
        self._guard = guard
        self._resolve = resolve or self._ask_system
        # A dead name server holds a thread for many seconds; the loop's own threads have other work.
        self._threads = ThreadPoolExecutor(32, thread_name_prefix="headwater-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        results: list[ResolveResult] = []
        refused: RefusedError | None = None
        for address in await self._resolve(host, port):
            try:
                if connecting_to.get():
                    self._guard.check_address(host, address, port)
            except RefusedError as refusal:
                refused = refusal
                continue
            results.append(
                ResolveResult(
                    hostname=host,
                    host=address,
                    port=port,
                    family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                    proto=0,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
            )
        if not results:
            raise refused or OSError(None, "no address")
        return results

    async def _ask_system(self, host: str, port: int) -> list[str]:
        def ask() -> list[str]:
            try:
                infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
            except UnicodeError:
                raise OSError(None, "not a host name") from None
            return [str(info[4][0]) for info in infos]

        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class RawHeaderRequest(ClientRequest):
    """A request whose headers may hold bytes that are no UTF-8 (as surrogates), sent as they are.

    aiohttp writes headers as UTF-8 and drops surrogates. Here such a value goes through it as a token that is
    put right at the transport, which is the only place where the bytes are ours. Used only where needed.
    """

    async def send(self, conn: "Connection") -> ClientResponse:
        tokens: dict[bytes, bytes] = {}
        for name, value in list(self.headers.items()):
            if _SURROGATE.search(value):
                token = secrets.token_hex(16)
                tokens[token.encode()] = value.encode("utf-8", "surrogateescape")
                self.headers[name] = token
        protocol = conn.protocol
        if protocol is None or protocol.transport is None:
            raise ClientConnectionResetError("the connection is gone")
        transport = protocol.transport
        protocol.transport = _Substituting(transport, tokens)  # type: ignore[assignment]
        try:
            return await super().send(conn)
        finally:
            if protocol.transport is not None:
                protocol.transport = transport


class _Substituting:
    def __init__(self, transport: asyncio.Transport, tokens: dict[bytes, bytes]) -> None:
        self._transport = transport
        self._tokens = tokens

    def write(self, data: bytes) -> None:
        for token, value in self._tokens.items():
            data = data.replace(token, value)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
