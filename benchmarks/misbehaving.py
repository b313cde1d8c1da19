"""What many requests to an origin that misbehaves leave behind: `python -m benchmarks.misbehaving`.

A process makes requests over plain connections and over TLS; the origin, another process, closes, resets, cuts, floods,
lies about lengths, answers twice, speaks nonsense, and now and then says nothing. The memory and the open files after
a tenth of the requests are compared with those at the end: what leaks grows with their number.
"""

import argparse
import asyncio
import multiprocessing
import multiprocessing.connection
import ssl
import sys
import tempfile
from collections import Counter
from itertools import count
from pathlib import Path
from typing import cast

import uvloop
from tests.origin import make_certificate

from benchmarks.verdict import Verdict
from headwater.errors import FetchError
from headwater.fetch import Fetcher, Request

AT_ONCE = 100
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HANG_EVERY = 997
# What is sent, and whether the connection is closed, reset or kept after it.
ANSWERS: tuple[tuple[bytes, str], ...] = (
    (OK, "keep"),
    (OK, "close"),
    (OK + OK, "keep"),
    (b"", "close"),
    (b"", "reset"),
    (b"nonsense\r\n\r\n", "close"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "close"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nok", "keep"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok", "keep"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "close"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok", "close"),
    (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", "keep"),
    (b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n", "keep"),
    (b"HTTP/1.1 200 OK\r\n" + b"X: %s\r\n" % (b"x" * 9000) * 40 + b"\r\n", "close"),
    (b"HTTP/1.1 500 Oh\r\nContent-Length: 99999\r\n\r\n" + b"x" * 20_000, "keep"),
    (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 40_000, "close"),
)


def _serve(ready: multiprocessing.connection.Connection, certificate: str) -> None:
    numbers = count()

    class Answering(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self._transport = cast("asyncio.Transport", transport)

        def data_received(self, data: bytes) -> None:
            number = next(numbers)
            if number % HANG_EVERY == 0:
                return
            answer, after = ANSWERS[number % len(ANSWERS)]
            if b" /again" in data:
                answer, after = OK, "keep"
            if answer:
                self._transport.write(answer)
            if after == "close":
                self._transport.close()
            elif after == "reset":
                self._transport.abort()

    async def main() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_server(Answering, "127.0.0.1", 0, backlog=4096, ssl=chosen)
            for chosen in (None, context)
        ]
        ready.send([server.sockets[0].getsockname()[1] for server in servers])
        await asyncio.Event().wait()

    uvloop.run(main())


def _measure() -> tuple[float, int]:
    """Megabytes in memory and open files of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024, len(list(Path("/proc/self/fd").iterdir()))
    raise RuntimeError("no VmRSS in /proc/self/status")


async def _ask(ports: list[int], ca_file: Path, requests: int) -> list[tuple[float, int]]:
    outcomes: Counter[str] = Counter()
    measured = []
    options = {"host_spacing_seconds": 0.0, "host_concurrency": AT_ONCE, "patience_seconds": 600.0}
    async with Fetcher(
        user_agent="x",
        allow=["127.0.0.1"],
        concurrency=AT_ONCE,
        total_seconds=5.0,
        ca_file=ca_file,
        **options,  # type: ignore[arg-type]
    ) as fetcher:
        left = iter(range(requests))

        async def worker() -> None:
            for number in left:
                scheme, port = (("http", ports[0]), ("https", ports[1]))[number % 2]
                try:
                    await fetcher.get(Request(f"{scheme}://127.0.0.1:{port}/{number}"))
                    outcomes["ok"] += 1
                except FetchError as error:
                    outcomes[error.kind.value] += 1
                if number and number % (requests // 10) == 0:
                    measured.append(_measure())
                    megabytes, files = measured[-1]
                    print(f"  {number:>9,} requests: {megabytes:6.1f} MB, {files} open files", flush=True)

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        measured.append(_measure())
    print("  " + ", ".join(f"{name} {number:,}" for name, number in outcomes.most_common()))
    return measured


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--requests", type=int, default=1_000_000)
    requests = arguments.parse_args().requests
    with tempfile.TemporaryDirectory() as directory:
        leaf, ca = make_certificate("trusted")
        certificate, ca_file = Path(directory) / "leaf.pem", Path(directory) / "ca.pem"
        certificate.write_bytes(leaf)
        ca_file.write_bytes(ca)
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(there, str(certificate)), daemon=True
        )
        process.start()
        try:
            measured = uvloop.run(_ask(here.recv(), ca_file, requests))
        finally:
            process.terminate()
            process.join()
    verdict = Verdict("misbehaving")
    verdict.tell(
        "memory at the end, over that after a tenth", measured[-1][0] - measured[0][0], " MB", most=8
    )
    verdict.tell(
        "open files at the end, over those after a tenth", measured[-1][1] - measured[0][1], "", most=50
    )
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())
