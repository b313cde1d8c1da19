"""Peers that try to confuse a connection, to fill memory or to hold on to us: on both loops, with TLS and without."""

import asyncio
import gc
import ssl
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import uvloop

from headwater.errors import FailureKind, FetchError
from headwater.fetch import Fetcher, Request, Response
from headwater.model import Validators
from tests.fetch import door
from tests.origin import Answer, Origin, tls_context

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NEXT = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HANG = 3600.0

Script = list[
    bytes | float
]  # what is sent, and how long is waited before more is; then the next request is read
Send = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Peer:
    """Says what it is told in answer to one request after the other, the last for ever; nothing (`[]`) is a hang-up."""

    def __init__(self, *scripts: Script | Send, context: ssl.SSLContext | None, reads_bodies: bool) -> None:
        self._scripts = scripts
        self._context = context
        self._reads_bodies = reads_bodies
        self._tasks: set[asyncio.Task[None]] = set()
        self.heads: list[bytes] = []
        self.connections = 0

    @property
    def open(self) -> int:
        return len(self._tasks)

    def url(self, path: str = "/") -> str:
        return f"{'http' if self._context is None else 'https'}://127.0.0.1:{self.port}{path}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await asyncio.sleep(0)  # a connection just accepted begins, so that its end closes it
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
                while await self._answer(reader, writer):
                    pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        script = self._scripts[min(len(self.heads), len(self._scripts) - 1)]
        self.heads.append(head)
        if self._reads_bodies and b"Content-Length: " in head:
            await reader.readexactly(int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]))
        if callable(script):
            await script(writer)
            return False
        for step in script:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif step == HANG:
                with suppress(ConnectionError):
                    while await reader.read(65536):
                        pass
                return False
            else:
                await asyncio.sleep(step)
        return bool(script)


def for_ever(start: bytes, more: bytes) -> Send:
    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(more)
            await writer.drain()
            await asyncio.sleep(0)

    return send


class Setting:
    """A loop and a kind of connection to try something with."""

    def __init__(self, run: Callable[..., None], tls: bool, folder: Path) -> None:
        self._run = run
        trusted, self.ca_file = tls_context("trusted", folder)
        self.trusted = trusted
        self._context = trusted if tls else None
        self.complaints: list[dict[str, Any]] = []

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        async def complain() -> None:
            asyncio.get_running_loop().set_exception_handler(self._take_complaint)
            await main()
            gc.collect()

        self._run(complain())
        assert self.complaints == []

    def _take_complaint(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "incoming connection" not in context["message"]:  # the peer's own, for a handshake that we gave up
            self.complaints.append(context)

    def peer(self, *scripts: Script | Send, reads_bodies: bool = True) -> Peer:
        return Peer(*scripts, context=self._context, reads_bodies=reads_bodies)

    def plain_peer(self, *scripts: Script | Send) -> Peer:
        return Peer(*scripts, context=None, reads_bodies=True)

    def door(self, **options: Any) -> Fetcher:
        return door(ca_file=self.ca_file, **options)


@pytest.fixture(params=[uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])
def run(request: pytest.FixtureRequest) -> Callable[..., None]:
    chosen: Callable[..., None] = request.param
    return chosen


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def setting(request: pytest.FixtureRequest, run: Callable[..., None], tmp_path: Path) -> Setting:
    return Setting(run, request.param, tmp_path)


async def try_get(fetcher: Fetcher, url: str, **options: Any) -> Response | FailureKind:
    try:
        return await fetcher.get(Request(url, **options))
    except FetchError as error:
        return error.kind


async def failure(fetcher: Fetcher, url: str, **options: Any) -> FailureKind:
    kind = await try_get(fetcher, url, **options)
    assert isinstance(kind, FailureKind), kind
    return kind


SPOILT: list[Script] = [
    [OK + b"more than was promised"],
    [OK + NEXT],
    [OK + b"HTTP/1.1 200 OK\r\nX-Swallows: "],
    [OK + b"H"],
    [OK, 0.02, b"H", 0.02],
    [b"HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\nX-Swallows: "],
    [b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", 0.02, b"bad", 0.02],
    [b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"HTTP/1.1 100 "],
    [b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"],
    [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"],
    [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
    [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\nokok"],
    [b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok"],
    [CHUNKED + b"2\r\nok\r\n0\r\n\r\nHTTP/1.1 200"],
    [CHUNKED + b"-2\r\nok\r\n0\r\n\r\n"],
    [CHUNKED + b"fffffffffffffffff\r\nok\r\n0\r\n\r\n"],
    [b"HTTP/1.1 101 Switching Protocols\r\n\r\nwhatever"],
    [b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nwhatever"],
    [b"<html>HTTP/0.9"],
    [b"HTTP/1.1 200 OK\r\nX: a\rContent-Length: 2\r\n\r\nok"],
    [b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 2\r\n\r\nok"],
]


def test_nothing_of_an_answer_is_left_for_the_next(setting: Setting) -> None:
    async def main() -> None:
        async with setting.door() as fetcher:
            for script in SPOILT:
                async with setting.peer(script, [NEXT]) as peer:
                    await try_get(fetcher, peer.url("/first"), validators=Validators(etag=b'"x"'))
                    await asyncio.sleep(0.06)  # for all that the peer has to say
                    answer = await try_get(fetcher, peer.url("/second"))
                    assert isinstance(answer, Response), script
                    assert answer.body == b"next", script

    setting.run(main)


def test_an_answer_that_has_no_body_is_none_the_worse_for_one(setting: Setting) -> None:
    async def main() -> None:
        async with setting.door() as fetcher:
            for status in (204, 304):
                for body in (b"a body all the same", b"0\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"):
                    head = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
                    async with setting.peer([head + body]) as peer:
                        answer = await fetcher.get(Request(peer.url(), validators=Validators(etag=b'"x"')))
                        assert (answer.status, answer.body) == (status, b"")

    setting.run(main)


def test_what_comes_before_an_answer_is_no_part_of_it(setting: Setting) -> None:
    interim = b"HTTP/1.1 150 Odd\r\nX-Odd: yes\r\n\r\n"

    async def main() -> None:
        async with setting.peer([interim * 3 + OK]) as peer, setting.door() as fetcher:
            for _ in range(2):
                answer = await fetcher.get(Request(peer.url()))
                assert (answer.body, "x-odd" in answer.headers) == (b"ok", False)
            assert peer.connections == 1

    setting.run(main)


def test_an_interim_answer_with_a_body_is_refused(setting: Setting) -> None:
    interim = b"HTTP/1.1 150 Odd\r\nContent-Length: 3\r\n\r\nbad"

    async def main() -> None:
        async with setting.peer([interim + OK], [NEXT]) as peer, setting.door() as fetcher:
            assert await failure(fetcher, peer.url()) is FailureKind.BROKEN
            assert (await fetcher.get(Request(peer.url()))).body == b"next"

    setting.run(main)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\n\r\nok",
        b"Content-Length : 5\r\n\r\nok",
        b"Transfer-Encoding : chunked\r\n\r\nok",
    ],
)
def test_a_body_that_is_cut_off_is_not_taken_for_whole(setting: Setting, head: bytes) -> None:
    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + head)
        await writer.drain()

    async def main() -> None:
        async with setting.peer(send) as peer, setting.door() as fetcher:
            assert await failure(fetcher, peer.url()) is FailureKind.BROKEN

    setting.run(main)


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (CHUNKED + b"2\r\nok\r\n0\r\nX-Long: ", b"x" * 65536),
        (CHUNKED + b"2\r\nok\r\n0\r\n", b"X-Many: x\r\n" * 6000),
        (CHUNKED + b"2;extension=", b"x" * 65536),
        (b"", b"HTTP/1.1 150 Odd\r\nContent-Length: 999\r\n\r\n" + b"x" * 999),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 65536),
    ],
    ids=["trailer", "trailers", "chunk extension", "interim bodies", "header"],
)
def test_a_flood_that_is_no_body_ends_soon(setting: Setting, start: bytes, more: bytes) -> None:
    async def main() -> None:
        async with setting.peer(for_ever(start, more)) as peer, setting.door(total_seconds=60) as fetcher:
            began = time.monotonic()
            assert await failure(fetcher, peer.url()) is FailureKind.BROKEN
            assert time.monotonic() - began < 20
            await until(lambda: peer.open == 0)

    setting.run(main)


def test_a_slow_response_after_a_large_one_is_no_flood(setting: Setting) -> None:
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000

    async def main() -> None:
        async with setting.peer([large], [3.2, OK]) as peer, setting.door(total_seconds=60) as fetcher:
            await fetcher.get(Request(peer.url()))
            assert (await fetcher.get(Request(peer.url()))).body == b"ok"
            assert peer.connections == 1

    setting.run(main)


def test_a_body_in_tiny_pieces_takes_no_more_room_than_in_one(
    run: Callable[..., None], tmp_path: Path
) -> None:
    pieces = b"".join(b"2\r\n%02d\r\n" % (number % 100) for number in range(200_000))
    setting = Setting(run, False, tmp_path)

    async def main() -> None:
        async with (
            setting.peer([CHUNKED, pieces, b"0\r\n\r\n"]) as peer,
            setting.door(total_seconds=60) as fetcher,
        ):
            tracemalloc.start()
            try:
                answer = await fetcher.get(Request(peer.url()))
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert len(answer.body) == 400_000
            assert peak < 8_000_000  # with an object for every piece it would be 15 million

    setting.run(main)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@asynccontextmanager
async def nothing_left_open() -> AsyncIterator[None]:
    before = open_files()
    yield
    gc.collect()
    await until(lambda: open_files() <= before)


@pytest.mark.parametrize("proxied", [None, False, True], ids=["direct", "proxy", "https proxy"])
def test_whenever_a_request_is_given_up_nothing_stays(setting: Setting, proxied: bool | None) -> None:
    async def main() -> None:
        with Origin(tls="trusted" if proxied else None) as proxy:
            proxy.otherwise(b"ok")
            options: dict[str, Any] = {"host_concurrency": 50}
            if proxied is not None:
                options["proxy"] = proxy.url("", userinfo="u:p")
            if proxy.ca_file is not None:
                setting.ca_file.write_bytes(setting.ca_file.read_bytes() + proxy.ca_file.read_bytes())
            async with (
                setting.peer([OK[:-2], 0.001, b"ok"]) as peer,
                setting.door(**options) as fetcher,
                nothing_left_open(),
            ):
                for steps in range(90):
                    task = asyncio.create_task(fetcher.get(Request(peer.url())))
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    if steps > 60:
                        await asyncio.sleep((steps - 60) * 0.0004)
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        assert (await task).body == b"ok"
                assert (await fetcher.get(Request(peer.url()))).body == b"ok"
                transport = fetcher._transport
                assert transport is not None
                await transport.close()
                await until(lambda: peer.open == 0 and proxy.open_connections == 0)

    setting.run(main)


def test_failures_leave_nothing_open(setting: Setting) -> None:
    scripts: list[Script] = [
        [],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", HANG],
        [b"nonsense", HANG],
    ]

    async def main() -> None:
        async with (
            setting.peer(*scripts * 20) as peer,
            setting.door(total_seconds=2, read_seconds=0.05) as fetcher,
            nothing_left_open(),
        ):
            for _ in range(60):
                await failure(fetcher, peer.url())
            await until(lambda: peer.open == 0)

    setting.run(main)


def test_each_time_limit_holds_wherever_the_peer_falls_silent(setting: Setting) -> None:
    async def main() -> None:
        limits = {"total_seconds": 30.0, "connect_seconds": 0.1, "read_seconds": 0.1}
        opening: Script = [b"HTTP/1.1 200 Connection established\r\n\r\n", HANG]
        async with (
            setting.peer([HANG]) as silent,
            setting.peer([OK[:-1], HANG]) as halting,
            setting.plain_peer([HANG]) as deaf,
            setting.plain_peer(opening) as tunnel,
            setting.door(**limits) as fetcher,
        ):
            handshake = deaf.url().replace("http:", "https:")
            for url, options in [
                (silent.url(), {}),
                (halting.url(), {}),
                ("https://a.example/", {"proxy": deaf.url()}),
                ("https://a.example/", {"proxy": handshake}),
                ("http://a.example/", {"proxy": deaf.url()}),
                ("https://a.example/", {"proxy": tunnel.url()}),
            ]:
                for more in ({}, {"connect_seconds": 20.0, "read_seconds": 20.0, "total_seconds": 0.1}):
                    began = time.monotonic()
                    assert await failure(fetcher, url, **options, **more) is FailureKind.TIMEOUT
                    assert time.monotonic() - began < 5
            assert await failure(fetcher, silent.url(), total_seconds=1e-9) is FailureKind.TIMEOUT

    setting.run(main)


@pytest.mark.parametrize("answer", [b"", b"x" * 7, b"x" * 700_000], ids=["none", "few", "many"])
def test_what_a_proxy_says_before_the_tunnel_is_used_is_not_passed_on(
    run: Callable[..., None], tmp_path: Path, answer: bytes
) -> None:
    setting = Setting(run, False, tmp_path)

    async def main() -> None:
        opening: Script = [b"HTTP/1.1 200 Connection established\r\n\r\n" + answer, HANG]
        async with (
            setting.plain_peer(opening) as proxy,
            setting.door(connect_seconds=0.2, proxy=proxy.url()) as fetcher,
        ):
            expected = (
                FailureKind.TLS if answer else FailureKind.TIMEOUT
            )  # it is not an answer to a handshake
            assert await failure(fetcher, "https://a.example/") is expected
            await until(lambda: proxy.open == 0)

    setting.run(main)


@pytest.mark.parametrize("host", ["a..b", ".a.example", "a" * 64 + ".example"])
def test_a_name_that_tls_cannot_say_is_an_unknown_one(host: str, tmp_path: Path) -> None:
    async def main() -> None:
        opening: Script = [b"HTTP/1.1 200 Connection established\r\n\r\n", HANG]
        setting = Setting(asyncio.run, False, tmp_path)
        async with setting.plain_peer(opening) as proxy, setting.door(proxy=proxy.url()) as fetcher:
            assert await failure(fetcher, f"https://{host}/") is FailureKind.DNS
            await until(lambda: proxy.open == 0)

    asyncio.run(main())


def test_connections_through_proxies_are_shared_by_none_but_their_own(setting: Setting) -> None:
    async def main() -> None:
        async with setting.plain_peer([OK]) as proxy, setting.door() as fetcher:
            place = f"127.0.0.1:{proxy.port}"
            proxies = [f"http://{userinfo}{place}" for userinfo in ("", "u:p@", "u:q@")]
            for _ in range(2):
                for each in proxies:
                    await fetcher.get(Request("http://127.0.0.1:8080/", proxy=each))
            await fetcher.get(Request(proxy.url("/itself")))
            assert proxy.connections == 4
            secrets = [b"Proxy-Authorization: " in head for head in proxy.heads]
            assert secrets == [False, True, True] * 2 + [False]
            assert all(head.startswith(b"GET http://127.0.0.1:8080/ ") for head in proxy.heads[:-1])
            assert proxy.heads[-1].startswith(b"GET /itself ")

    setting.run(main)


def test_a_post_is_sent_once(setting: Setting) -> None:
    async def main() -> None:
        async with setting.peer([OK], []) as peer, setting.door() as fetcher:
            assert (await fetcher.post(Request(peer.url(), body=b"1"))).status == 200
            with pytest.raises(FetchError):
                await fetcher.post(Request(peer.url(), body=b"2"))
            assert len(peer.heads) == 2

    setting.run(main)


def test_an_answer_that_comes_before_all_was_sent(setting: Setting) -> None:
    """What is still on its way must not be read as the beginning of the next request."""
    early = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig"

    async def main() -> None:
        async with setting.peer([early, HANG], [NEXT], reads_bodies=False) as peer, setting.door() as fetcher:
            answer = await fetcher.post(Request(peer.url(), body=b"x" * 20_000_000))
            assert (answer.status, answer.body) == (413, b"big")
            assert (await fetcher.get(Request(peer.url()))).body == b"next"
            assert peer.connections == 2

    setting.run(main)


def test_tls_session_is_resumed_on_the_next_connection(tmp_path: Path) -> None:
    context, ca_file = tls_context("trusted", tmp_path)
    resumed: list[bool] = []

    async def answer(writer: asyncio.StreamWriter) -> None:
        resumed.append(writer.get_extra_info("ssl_object").session_reused)
        writer.write(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        await writer.drain()

    async def main() -> None:
        async with Peer(answer, context=context, reads_bodies=True) as peer, door(ca_file=ca_file) as fetcher:
            for _ in range(3):
                assert (await fetcher.get(Request(peer.url()))).body == b"ok"
            assert peer.connections == 3

    asyncio.run(main())
    assert resumed == [False, True, True]


async def test_response_that_waits_on_one_connection_does_not_cost_another(origin: Origin) -> None:
    origin.otherwise(Answer(body=b"ok", delay=0.05))
    async with door() as fetcher:
        await asyncio.gather(*(fetcher.get(Request(origin.url("/warm"))) for _ in range(2)))
        first = asyncio.ensure_future(fetcher.get(Request(origin.url("/first"))))
        await asyncio.sleep(0.02)
        time.sleep(0.1)
        await fetcher.get(Request(origin.url("/second")))
        await first
    assert origin.connections == 2


async def test_many_kept_connections_that_are_gone_cost_no_response() -> None:
    connections = 0
    ended = asyncio.Semaphore(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.02)  # so that each of them has its own connection
            writer.write(OK)
            with suppress(asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
        finally:
            writer.transport.abort()
            ended.release()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, door(host_concurrency=20) as fetcher:
        await asyncio.gather(*(fetcher.get(Request(url)) for _ in range(12)))
        assert connections == 12
        assert (await fetcher.get(Request(url))).body == b"ok"
        assert connections == 13
    for _ in range(connections):
        await ended.acquire()
    await asyncio.sleep(0)  # the transports close
