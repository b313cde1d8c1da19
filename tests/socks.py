"""A SOCKS 5 proxy on loopback that reaches one address whatever it is asked for, and remembers what it was asked."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self


class SocksProxy:
    """An async context manager. With a `login` only clients that know it get in; `refuses` makes no connection."""

    def __init__(self, port: int, *, login: tuple[str, str] | None = None, refuses: bool = False) -> None:
        self._there = port
        self._login = login
        self._refuses = refuses
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.asked: list[tuple[str, int]] = []
        self.logins: list[tuple[str, str]] = []
        self.port = 0

    def url(self, userinfo: str = "") -> str:
        return f"socks5://{userinfo and userinfo + '@'}127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        wanted = 0 if self._login is None else 2
        if wanted not in methods:
            writer.write(b"\x05\xff")
            return
        writer.write(bytes((5, wanted)))
        if self._login is not None:
            await reader.readexactly(1)
            user = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
            password = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
            self.logins.append((user, password))
            writer.write(b"\x01\x00" if (user, password) == self._login else b"\x01\x01")
            if (user, password) != self._login:
                return
        _, _, _, kind = await reader.readexactly(4)
        assert kind == 3, "names are looked up by the proxy"
        name = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        self.asked.append((name, int.from_bytes(await reader.readexactly(2))))
        if self._refuses:
            writer.write(b"\x05\x05\x00\x01" + bytes(6))
            return
        there = await asyncio.open_connection("127.0.0.1", self._there)
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        try:
            await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))
        finally:
            there[1].close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65_536):
        sink.write(data)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()
