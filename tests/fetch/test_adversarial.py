"""Origins that mean harm or are merely broken: each ends in a clear FetchError, in little time and memory."""

import asyncio
import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

import pytest
import uvloop

from headwater.errors import FailureKind, FetchError
from headwater.fetch import Fetcher, Request
from headwater.fetch.decode import UndecodableError, make_decoder
from tests.fetch import door
from tests.origin import Answer, Encoding, Fault, Origin, bomb, compress, tls_context

CAP = 1_000_000
HARMLESS: tuple[Fault, ...] = ("no-length", "short-length")  # the answer is complete all the same


async def failure(fetcher: Fetcher, url: str, seconds: float = 3.0) -> FetchError:
    """The error for `url`, which must come in time."""
    began = time.monotonic()
    with pytest.raises(FetchError) as caught:
        await fetcher.get(Request(url))
    assert time.monotonic() - began < seconds
    error = caught.value
    assert url in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 300
    assert error.render("zh") != str(error)
    return error


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("hang", FailureKind.TIMEOUT),
        ("close", FailureKind.BROKEN),
        ("reset", FailureKind.BROKEN),
        ("garbage", FailureKind.BROKEN),
        ("header-flood", FailureKind.BROKEN),
        ("long-header", FailureKind.BROKEN),
        ("cut-body", FailureKind.BROKEN),
        ("long-length", FailureKind.BROKEN),
        ("cut-chunk", FailureKind.BROKEN),
        ("bad-chunk", FailureKind.BROKEN),
        ("drip", FailureKind.TIMEOUT),
        ("drip-headers", FailureKind.TIMEOUT),
        ("endless", FailureKind.TOO_LARGE),
    ],
)
@pytest.mark.parametrize("tls", [None, "trusted"])
async def test_faults(fault: Fault, kind: FailureKind, tls: Literal["trusted"] | None) -> None:
    with Origin(tls=tls) as origin:
        bad = origin.route("/bad", body=b"x" * 5000, fault=fault, drip_seconds=0.05)
        good = origin.route("/good", body=b"fine")
        # What is broken is seen when it happens, not when the time is up.
        total = 1.0 if kind is FailureKind.TIMEOUT else 30.0
        async with door(total_seconds=total, ca_file=origin.ca_file) as fetcher:
            error = await failure(fetcher, bad)
            assert error.kind is kind
            # Whatever the fault left in the connection, the next request is not touched by it.
            assert (await fetcher.get(Request(good))).body == b"fine"


def test_every_fault_is_tested() -> None:
    parameters = test_faults.pytestmark[1].args[1]  # type: ignore[attr-defined]
    assert {fault for fault, _ in parameters} | set(HARMLESS) == set(get_args(Fault))


async def test_a_body_longer_than_its_length_ends_there(origin: Origin, fetcher: Fetcher) -> None:
    """What is beyond it belongs to no answer, and the connection is not used again."""
    url = origin.route("/feed", body=b"x" * 5000, fault="short-length")
    good = origin.route("/good", body=b"fine")
    assert set((await fetcher.get(Request(url))).body) == {ord("x")}
    assert (await fetcher.get(Request(good))).body == b"fine"
    assert origin.connections == 2


async def test_a_body_that_ends_with_its_connection_is_fine(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=b"x" * 5000, fault="no-length")
    assert (await fetcher.get(Request(url))).body == b"x" * 5000


async def test_a_server_that_stops_sending(origin: Origin) -> None:
    url = origin.route("/feed", body=b"x" * 100, fault="drip", drip_seconds=60)
    async with door(total_seconds=30, read_seconds=0.3) as fetcher:
        assert (await failure(fetcher, url)).kind is FailureKind.TIMEOUT


async def test_one_byte_per_second_is_cut_by_the_total_deadline(origin: Origin) -> None:
    url = origin.route("/feed", body=b"x" * 100, fault="drip", drip_seconds=0.1)
    async with door(total_seconds=1.0, read_seconds=5) as fetcher:
        assert (await failure(fetcher, url)).kind is FailureKind.TIMEOUT


@pytest.mark.parametrize("encoding", get_args(Encoding))
async def test_bombs(origin: Origin, fetcher: Fetcher, encoding: Encoding) -> None:
    size = 256 << 20
    url = origin.route("/bomb", body=bomb(encoding, size), headers={"Content-Encoding": encoding})
    tracemalloc.start()
    try:
        error = await failure(fetcher, url)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.kind is FailureKind.TOO_LARGE
    assert peak < 6 * CAP


async def test_a_bomb_in_a_bomb(origin: Origin, fetcher: Fetcher) -> None:
    body = compress(compress(bomb("gzip", 256 << 20), "gzip"), "br")
    url = origin.route("/bomb", body=body, headers={"Content-Encoding": "gzip, gzip, br"})
    assert (await failure(fetcher, url)).kind is FailureKind.TOO_LARGE


async def test_an_encoding_of_endless_nothing(origin: Origin, fetcher: Fetcher) -> None:
    def members() -> Iterator[bytes]:
        while True:
            yield gzip.compress(b"") * 50

    url = origin.route("/feed", lambda _: Answer(body=members(), headers={"Content-Encoding": "gzip"}))
    assert (await failure(fetcher, url)).kind in (FailureKind.TOO_LARGE, FailureKind.BROKEN)


async def test_a_zstd_window_larger_than_allowed(origin: Origin, fetcher: Fetcher) -> None:
    # A frame header that asks for a window of 128 MB, then one raw block.
    frame = b"\x28\xb5\x2f\xfd\x00\x88" + b"\x09\x00\x00x"
    url = origin.route("/feed", body=frame, headers={"Content-Encoding": "zstd"})
    assert (await failure(fetcher, url)).kind is FailureKind.BROKEN


@pytest.mark.parametrize("encoding", get_args(Encoding))
@pytest.mark.parametrize("fault", [None, "no-length"])
async def test_a_compressed_body_cut_short(
    origin: Origin, fetcher: Fetcher, encoding: Encoding, fault: Fault | None
) -> None:
    packed = compress(bytes(range(256)) * 40, encoding)
    url = origin.route("/feed", body=packed[:-9], headers={"Content-Encoding": encoding}, fault=fault)
    assert (await failure(fetcher, url)).kind is FailureKind.BROKEN


@pytest.mark.parametrize("encoding", ["deflate", "br", "zstd"])
async def test_a_body_that_is_not_what_it_says(origin: Origin, fetcher: Fetcher, encoding: str) -> None:
    url = origin.route("/feed", body=b"<rss/> in plain text", headers={"Content-Encoding": encoding})
    assert (await failure(fetcher, url)).kind is FailureKind.BROKEN


async def test_plain_text_that_says_gzip_is_read(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=b"<rss/>", headers={"Content-Encoding": "gzip"})
    assert (await fetcher.get(Request(url))).body == b"<rss/>"


@pytest.mark.parametrize("encoding", ["lzma", "gzip, br, gzip, br", "aws-chunked"])
async def test_encoding_that_was_not_asked_for(origin: Origin, fetcher: Fetcher, encoding: str) -> None:
    url = origin.route("/feed", body=b"x", headers={"Content-Encoding": encoding})
    assert (await failure(fetcher, url)).kind is FailureKind.BROKEN


@pytest.mark.parametrize("size", [0, 1, 1000, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 1 << 19])
@pytest.mark.parametrize("form", ["gzip", "two members", "zlib", "raw deflate", "br", "zstd", "two frames"])
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_decoding_does_not_depend_on_how_it_arrives(size: int, form: str, step: int) -> None:
    data = b"0123456789abcdef" * (size // 16) + b"z" * (size % 16)
    raw = zlib.compressobj(wbits=-15)
    packed, name = {
        "gzip": (gzip.compress(data), "gzip"),
        "two members": (gzip.compress(data[:100]) + gzip.compress(data[100:]) + b"\0\0", "x-gzip"),
        "zlib": (zlib.compress(data), "deflate"),
        "raw deflate": (raw.compress(data) + raw.flush(), "deflate"),
        "br": (compress(data, "br"), "br"),
        "zstd": (compress(data, "zstd"), "zstd"),
        "two frames": (compress(data[:100], "zstd") + compress(data[100:], "zstd"), "zstd"),
    }[form]
    decoder = make_decoder(name)
    assert decoder is not None
    parts: list[bytes] = []
    for at in range(0, len(packed), step):
        parts += decoder.feed(packed[at : at + step], size - sum(map(len, parts)))
    decoder.finish()
    assert b"".join(parts) == data


def test_what_waits_inside_a_decoder_is_not_forgotten() -> None:
    """At some sizes all of a raw deflate is taken in when a piece is full, and no input follows."""
    for size in range((1 << 18) + 1, (1 << 18) + 300):
        raw = zlib.compressobj(9, wbits=-15)
        packed = raw.compress(bytes(size)) + raw.flush()
        decoder = make_decoder("deflate")
        assert decoder is not None
        assert sum(map(len, decoder.feed(packed, size))) == size
        decoder.finish()


def test_an_empty_encoded_body_is_empty() -> None:
    for name in get_args(Encoding):
        decoder = make_decoder(name)
        assert decoder is not None
        decoder.finish()
    with pytest.raises(UndecodableError):
        decoder = make_decoder("gzip")
        assert decoder is not None
        decoder.feed(b"\x1f", 10)
        decoder.finish()


async def test_redirect_loops(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/self", status=302, location="/self")
    origin.route("/a", status=301, location="/b")
    origin.route("/b", status=301, location="/a")
    for path, requests in (("/self", 1), ("/a", 2)):
        with pytest.raises(FetchError) as caught:
            await fetcher.get(Request(origin.url(path)))
        assert caught.value.kind is FailureKind.REDIRECT
        assert len(origin.requests) == requests
        origin.requests.clear()


async def test_a_chain_of_redirects_without_end(origin: Origin, fetcher: Fetcher) -> None:
    origin.otherwise(lambda request: Answer(status=302, location=request.target + "x"))
    with pytest.raises(FetchError) as caught:
        await fetcher.get(Request(origin.url("/")))
    assert caught.value.kind is FailureKind.REDIRECT
    assert len(origin.requests) == 11


@pytest.mark.parametrize(
    "location", ["", "http://", "http://[::1", "http://h:99999/", "javascript:alert(1)", "mailto:x"]
)
async def test_redirects_to_nowhere(origin: Origin, fetcher: Fetcher, location: str) -> None:
    url = origin.route("/feed", status=302, location=location)
    assert (await failure(fetcher, url)).kind is FailureKind.REDIRECT


@pytest.mark.parametrize(
    "location",
    [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:192.168.0.1]/",
        "http://[64:ff9b::a00:1]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://10.1/",
        "http://127.0.0.1:22/",
        "//10.0.0.1/",
        "ftp://feeds.example/",
        "file:///etc/passwd",
        "gopher://10.0.0.1:6379/_INFO",
    ],
)
async def test_redirects_into_the_network_behind_us(origin: Origin, fetcher: Fetcher, location: str) -> None:
    url = origin.route("/feed", status=302, location=location)
    with pytest.raises(FetchError) as caught:
        await fetcher.get(Request(url))
    assert caught.value.kind in (FailureKind.BLOCKED, FailureKind.REDIRECT)
    if "10.0.0.1" in location and location.startswith(("http:", "//")):
        assert caught.value.kind is FailureKind.BLOCKED
        assert "HEADWATER_ALLOW_HOSTS" in str(caught.value)


@pytest.mark.parametrize(
    ("quality", "words"),
    [("expired", "expired"), ("self-signed", "self-signed"), ("wrong-host", "127.0.0.1")],
)
async def test_certificates_that_cannot_be_trusted(
    quality: Literal["expired", "self-signed", "wrong-host"], words: str
) -> None:
    with Origin(tls=quality) as origin:
        url = origin.route("/feed", body=b"x")
        async with door(ca_file=origin.ca_file) as fetcher:
            error = await failure(fetcher, url)
        assert error.kind is FailureKind.TLS
        assert words in str(error)
        assert not origin.requests


async def test_tls_on_a_plain_port_and_the_other_way(origin: Origin, fetcher: Fetcher) -> None:
    origin.otherwise(b"x")
    error = await failure(fetcher, origin.url("/").replace("http:", "https:"))
    assert error.kind is FailureKind.TLS
    with Origin(tls="trusted") as secure:
        error = await failure(fetcher, secure.url("/").replace("https:", "http:"))
        assert error.kind is FailureKind.BROKEN


async def test_closed_port_is_refused(fetcher: Fetcher) -> None:
    with Origin() as gone:
        url = gone.url("/")
    assert (await failure(fetcher, url)).kind is FailureKind.CONNECT


class Deaf:
    """A TLS server that sends for ever, reads nothing after the request, and so does not hear a goodbye."""

    def __init__(self, folder: Path, head: bytes, more: bytes) -> None:
        self._context, self.ca_file = tls_context("trusted", folder)
        self._head, self._more = head, more
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}/"
        self.sent = 0
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        raw, _ = self._listener.accept()
        with suppress(OSError), self._context.wrap_socket(raw, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(self._head)
            while not self.stopped.is_set():
                connection.sendall(self._more)
                self.sent += len(self._more)
        self.stopped.set()

    def close(self) -> None:
        self.stopped.set()
        self._listener.close()
        self._thread.join(5)


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n"


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (b"HTTP/1.1 200 OK\r\n" + CHUNKED, CHUNK),
        (b"HTTP/1.1 404 Not Found\r\n" + CHUNKED, CHUNK),
        (b"HTTP/1.1 302 Found\r\n" + CHUNKED, CHUNK),
        (b"HTTP/1.1 200 OK\r\n" + CHUNKED, b"zz\r\n" + bytes(9999)),
        (b"HTTP/1.1 200 OK\r\n", b"X-Flood: %s\r\n" % (b"x" * 9999)),
        (b"garbage", b"garbage" * 9999),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 999),
    ],
    ids=["body", "error", "redirect", "bad chunk", "headers", "garbage", "interim answers"],
)
@pytest.mark.parametrize("run", [uvloop.run, asyncio.run])
def test_an_abandoned_download_stops(
    tmp_path: Path, head: bytes, more: bytes, run: Callable[..., None]
) -> None:
    """A TLS transport that is closed, not aborted, reads on as long as a peer that is deaf to it sends."""
    server = Deaf(tmp_path, head, more)

    async def main() -> None:
        async with door(ca_file=server.ca_file, total_seconds=1.0) as fetcher:
            with pytest.raises(FetchError):
                await fetcher.get(Request(server.url))
            for _ in range(100):
                await asyncio.sleep(0.02)
                if server.stopped.is_set():
                    return
            pytest.fail(f"the server is still sending: {server.sent:,} bytes")

    try:
        run(main())
    finally:
        server.close()


@pytest.mark.parametrize("fault", ["header-flood", "drip-headers", "drip"])
def test_a_connection_given_up_is_closed(fault: Fault) -> None:
    async def main(origin: Origin) -> None:
        url = origin.route("/feed", body=b"x" * 5000, fault=fault, drip_seconds=0.01)
        async with door(ca_file=origin.ca_file, total_seconds=0.5) as fetcher:
            with pytest.raises(FetchError):
                await fetcher.get(Request(url))
            await asyncio.sleep(0.5)
            assert origin.open_connections == 0

    with Origin(tls="trusted") as origin:
        uvloop.run(main(origin))


async def test_all_of_it_at_once_and_a_healthy_feed_among_them() -> None:
    with Origin() as evil, Origin(host="127.0.0.2") as healthy:
        urls = [
            evil.route(f"/{fault}", body=b"x" * 5000, fault=fault, drip_seconds=0.05)
            for fault in get_args(Fault)
            if fault not in HARMLESS
        ]
        urls += [
            evil.route(f"/{encoding}", body=bomb(encoding, 64 << 20), headers={"Content-Encoding": encoding})
            for encoding in get_args(Encoding)
        ]
        feed = healthy.route("/feed", body=b"<rss/>")
        tracemalloc.start()
        try:
            async with door(host_concurrency=50, total_seconds=2.0) as fetcher:
                attacks = [asyncio.create_task(fetcher.get(Request(url))) for url in urls]
                for _ in range(10):
                    began = time.monotonic()
                    assert (await fetcher.get(Request(feed))).body == b"<rss/>"
                    assert time.monotonic() - began < 1.0
                results = await asyncio.gather(*attacks, return_exceptions=True)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert all(isinstance(result, FetchError) for result in results)
        assert peak < 60_000_000
