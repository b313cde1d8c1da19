"""Connections of strangers: a head without end, one that never comes, more of them than there is room for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing

import pytest
from fastapi import FastAPI, Request

from headwater.web import connections, server

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
START = b"GET / HTTP/1.1\r\nHost: x\r\n"


@asynccontextmanager
async def served() -> AsyncIterator[Connect]:
    app, stopped = FastAPI(), asyncio.Event()

    @app.get("/")
    async def answer() -> str:
        return "well"

    @app.post("/")
    async def measure(request: Request) -> int:
        return len(await request.body())

    with closing(server.listen("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve_app(app, listener, stopped))
        try:
            async with asyncio.timeout(60):
                yield lambda: asyncio.open_connection(*listener.getsockname())
        finally:
            stopped.set()
            await serving


async def ask(connect: Connect, request: bytes) -> bytes:
    """All that is answered until the connection is closed."""
    reader, writer = await connect()
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


def endless(head: bytes, piece: bytes) -> Iterator[bytes]:
    yield head
    for _ in range(400):
        yield piece * (64_000 // len(piece))


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (START, b"X: aaaaaaaaaa\r\n"),
        (START + b"X: ", b"a"),
        (b"GET /", b"a"),
        (b"", b"\r\n"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: aaaaaaaaaa\r\n"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a"),
    ],
    ids=["headers", "header", "address", "line ends", "trailers", "extension"],
)
async def test_head_without_end_is_refused_before_it_fills_the_memory(head: bytes, piece: bytes) -> None:
    async with served() as connect:
        _, writer = await connect()
        sent = 0
        try:
            for each in endless(head, piece):
                writer.write(each)
                await writer.drain()
                sent += len(each)
            pytest.fail(f"all {sent} bytes were taken")
        except OSError:
            assert sent < 15_000_000  # what the system's buffers hold, too
        writer.close()
        assert b"well" in await ask(connect, START + b"Connection: close\r\n\r\n")


async def test_long_head_and_large_body_in_small_chunks_are_taken() -> None:
    async with served() as connect:
        answer = await ask(connect, START + b"X: " + b"a" * 30_000 + b"\r\nConnection: close\r\n\r\n")
        assert b"well" in answer
        head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunks = b"".join(b"64\r\n" + b"a" * 100 + b"\r\n" for _ in range(20_000))
        assert (await ask(connect, head + chunks + b"0\r\n\r\n")).endswith(b"2000000")


async def test_connection_without_a_request_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    async with served() as connect:
        for beginning in (b"", START, b"\r\n"):
            assert await ask(connect, beginning) == b""
        # One that waits again after its first request.
        assert b"well" in await ask(connect, START + b"\r\n" + START)


async def test_of_too_many_connections_the_one_that_has_waited_longest_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 5)
    async with served() as connect:
        idle = [await connect() for _ in range(12)]
        assert b"well" in await ask(connect, START + b"Connection: close\r\n\r\n")
        for reader, _ in idle[:7]:
            assert await reader.read() == b""
        assert not idle[-1][0].at_eof()
        for _, writer in idle:
            writer.close()
