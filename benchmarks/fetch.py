"""What the fetch door costs over the bare client: `python -m benchmarks.fetch`.

CPU of this process per 1,000 requests, for answers 304 and 200, our door against bare aiohttp in turns within
one run; the origin is another process. Then the memory that compressed bombs add under a cap. Ratios are what
to read: the absolute figures are this machine's.
"""

import argparse
import asyncio
import multiprocessing
import multiprocessing.connection
import resource
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Literal, cast

import aiohttp
import uvloop
from tests.origin import Encoding, Origin, bomb

from benchmarks.verdict import Verdict
from headwater.errors import FetchError
from headwater.fetch import Fetcher, Request
from headwater.model import Validators

MOST_MEGABYTES_OF_A_BOMB = 40  # the cap of a body is 10, and it is held more than once while it is unpacked
USER_AGENT = "Headwater/benchmark (+https://headwater.example)"
ETAG = b'"0123456789abcdef"'
BODY = b"<rss><channel><title>A feed</title></channel></rss>" * 400
HEADERS = (
    b"Server: nginx\r\nDate: Sat, 14 Nov 2026 10:00:00 GMT\r\nETag: %s\r\n"
    b"Last-Modified: Fri, 13 Nov 2026 08:00:00 GMT\r\nCache-Control: max-age=300\r\n"
    b"X-Frame-Options: DENY\r\nVary: Accept-Encoding\r\nConnection: keep-alive\r\n" % ETAG
)
NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\n" + HEADERS + b"\r\n"
FOUND = (
    b"HTTP/1.1 200 OK\r\n"
    + HEADERS
    + b"Content-Type: application/rss+xml\r\nContent-Length: %d\r\n\r\n" % len(BODY)
    + BODY
)


class _Answering(asyncio.Protocol):
    """The fastest origin there is: no parsing beyond the end of the request's head."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        for head in data.split(b"\r\n\r\n")[:-1]:
            self._transport.write(NOT_MODIFIED if b"If-None-Match" in head else FOUND)


def _serve(ready: multiprocessing.connection.Connection) -> None:
    async def main() -> int:
        server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0, backlog=1024)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(main())


async def _run(request: Callable[[], Awaitable[None]], count: int, at_once: int) -> float:
    """CPU seconds of this process for `count` requests."""
    left = count

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await request()

    began = time.process_time()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return time.process_time() - began


async def _compare(url: str, count: int, rounds: int, at_once: int, verdict: Verdict) -> None:
    known = Validators(etag=ETAG, last_modified=b"Fri, 13 Nov 2026 08:00:00 GMT", body_hash=b"x")
    conditions = {
        "User-Agent": USER_AGENT,
        "If-None-Match": ETAG.decode(),
        "If-Modified-Since": "Fri, 13 Nov 2026 08:00:00 GMT",
    }
    timeout = aiohttp.ClientTimeout(total=60, connect=15, sock_read=30)
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session,
        Fetcher(
            user_agent=USER_AGENT,
            allow=["127.0.0.1"],
            concurrency=at_once,
            host_concurrency=at_once,
            host_spacing_seconds=0.0,
        ) as fetcher,
    ):

        async def bare_304() -> None:
            async with session.get(url, headers=conditions) as answer:
                assert answer.status == 304

        async def bare_200() -> None:
            async with session.get(url, headers={"User-Agent": USER_AGENT}) as answer:
                assert len(await answer.read()) == len(BODY)

        async def door_304() -> None:
            assert (await fetcher.get(Request(url, known))).unchanged

        async def door_200() -> None:
            assert len((await fetcher.get(Request(url))).body) == len(BODY)

        print(f"{'':6}{'bare aiohttp':>16}{'our door':>16}   (CPU ms per 1,000 requests)")
        for name, bare, door in (("304", bare_304, door_304), ("200", bare_200, door_200)):
            figures: list[tuple[float, float]] = []
            for turn in range(rounds + 1):
                pair = (await _run(bare, count, at_once), await _run(door, count, at_once))
                if turn:  # the first warms up
                    figures.append(pair)
            scale = 1e6 / count
            bare_cpu, door_cpu = (statistics.median(column) * scale for column in zip(*figures, strict=True))
            ratio = statistics.median(ours / theirs for theirs, ours in figures)
            print(f"{name:6}{bare_cpu:16.1f}{door_cpu:16.1f}")
            verdict.tell(f"a {name}, times the bare client's CPU", ratio, "×")


def _bomb(encoding: Encoding, size: int, result: multiprocessing.connection.Connection) -> None:
    async def main() -> None:
        with Origin() as origin:
            packed = bomb(encoding, size)
            origin.route("/small", body="x")
            origin.route("/bomb", body=packed, headers={"Content-Encoding": encoding})
            async with Fetcher(
                user_agent=USER_AGENT, allow=["127.0.0.1"], host_spacing_seconds=0, max_bytes=10_000_000
            ) as fetcher:
                await fetcher.get(Request(origin.url("/small")))
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                began = time.process_time()
                outcome = "?"
                try:
                    await fetcher.get(Request(origin.url("/bomb")))
                except FetchError as error:
                    outcome = str(error.kind)
                spent = time.process_time() - began
                added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
                result.send((len(packed), added, spent, outcome))

    uvloop.run(main())


def _bombs(size: int, verdict: Verdict) -> None:
    print(f"\nbombs of {size >> 20} MB under a cap of 10 MB")
    print(f"{'':8}{'on the wire':>14}{'memory added':>14}{'CPU':>10}   outcome")
    encodings: tuple[Literal["gzip", "deflate", "br", "zstd"], ...] = ("gzip", "deflate", "br", "zstd")
    for encoding in encodings:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=_bomb, args=(encoding, size, there))
        process.start()
        wire, added, spent, outcome = here.recv()
        process.join()
        print(f"{encoding:8}{wire / 1e3:11.1f} kB{added:11.1f} MB{spent * 1e3:7.1f} ms   {outcome}")
        verdict.tell(f"memory a {encoding} bomb adds", added, " MB", most=MOST_MEGABYTES_OF_A_BOMB)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--requests", type=int, default=1500, help="requests per round")
    arguments.add_argument("--rounds", type=int, default=15, help="the median round counts")
    arguments.add_argument("--at-once", type=int, default=50)
    arguments.add_argument("--bomb-megabytes", type=int, default=512)
    options = arguments.parse_args()
    verdict = Verdict("fetch")

    here, there = multiprocessing.Pipe()
    origin = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    origin.start()
    try:
        url = f"http://127.0.0.1:{here.recv()}/feed.xml"
        uvloop.run(_compare(url, options.requests, options.rounds, options.at_once, verdict))
    finally:
        origin.terminate()
        origin.join()
    _bombs(options.bomb_megabytes << 20, verdict)
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())
