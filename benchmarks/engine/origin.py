"""An origin that is cheap enough not to be the bottleneck: a separate process, every answer made beforehand.

It serves `/N.xml` on every loopback address: an RSS feed of some items, with ETag and Last-Modified. `/publish`
gives every tenth feed a new item. With TLS it keeps connections, or ends each after its answer, and then gives tickets
to resume sessions by, or none.
"""

import asyncio
import multiprocessing
import multiprocessing.connection
import ssl
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from random import Random
from typing import Literal, cast

import uvloop

ADDRESSES = 20  # of the loopback network, each its own host
CHANGED_EVERY = 10
TlsMode = Literal["new", "resumed", "kept"]
_WORDS = tuple(
    "water river stream delta source valley rain snow spring lake harbour bridge morning letter paper".split()  # noqa: SIM905
)


def feed_url(port: int, number: int, feeds: int, scheme: str = "http") -> str:
    """The address of feed `number`; beyond `feeds` the same documents come again under other addresses."""
    query = "" if number < feeds else f"?{number // feeds}"
    return f"{scheme}://127.0.0.{number % ADDRESSES + 1}:{port}/{number % feeds}.xml{query}"


def _words(rng: Random, count: int) -> str:
    return " ".join(rng.choices(_WORDS, k=count))


def _item(rng: Random, feed: int, number: int, published_at: float) -> str:
    """An item as blogs have them: a summary, and a text with some markup."""
    text = "".join(
        f'<p>{_words(rng, 40)} <a href="https://site{feed}.example/page/{number}">{_words(rng, 2)}</a>'
        f" <em>{_words(rng, 10)}</em>.</p>"
        for _ in range(3)
    )
    return (
        f"<item><title>{_words(rng, 6)}</title><link>https://site{feed}.example/posts/{number}</link>"
        f'<guid isPermaLink="false">post-{feed}-{number}</guid><pubDate>{formatdate(published_at)}</pubDate>'
        f"<dc:creator>{_words(rng, 2)}</dc:creator><category>{rng.choice(_WORDS)}</category>"
        f"<description>{_words(rng, 30)}</description>"
        f"<content:encoded><![CDATA[{text}]]></content:encoded></item>"
    )


class _Feed:
    """One feed, its items from a few weeks in the hours its publisher works in."""

    def __init__(self, number: int, items: int, now: float, is_kept: bool) -> None:
        self._is_kept = is_kept
        self._rng = Random(number)
        self._number = number
        self._published = items
        self._version = 0
        self._now = now
        gap, hour = self._rng.uniform(6.0, 36.0) * 3600, self._rng.uniform(0, 24) * 3600
        times: list[float] = []
        at = now - 3600.0
        for _ in range(items):
            times.append(at)
            at -= self._rng.expovariate(1 / gap)
            at = at - at % 86400 + (hour + self._rng.gauss(0, 5400)) % 86400 - 86400 * (at % 86400 < hour)
        self._items = [_item(self._rng, number, index, at) for index, at in enumerate(times)]
        self._build()

    def publish(self) -> None:
        self._version += 1
        self._published += 1
        newest = _item(self._rng, self._number, self._published, self._now)
        self._items = [newest, *self._items[:-1]]
        self._build()

    def answer(self, head: bytes) -> bytes:
        return self._not_modified if self._etag in head else self._found

    def _build(self) -> None:
        body = (
            '<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"'
            ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
            ' xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>'
            f"<title>Site {self._number}</title><link>https://site{self._number}.example/</link>"
            f"<description>What site {self._number} has to say</description><language>en</language>"
            f"{''.join(self._items)}</channel></rss>"
        ).encode()
        self._etag = b'"%d-%d-0123456789abcdef"' % (self._number, self._version)
        headers = (
            b"Server: nginx\r\nDate: %s\r\nETag: %s\r\nLast-Modified: %s\r\nVary: Accept-Encoding\r\n"
            b"X-Frame-Options: DENY\r\nConnection: %s\r\n"
            % (
                formatdate(self._now, usegmt=True).encode(),
                self._etag,
                formatdate(self._now - 60 + self._version, usegmt=True).encode(),
                b"keep-alive" if self._is_kept else b"close",
            )
        )
        self._not_modified = b"HTTP/1.1 304 Not Modified\r\n" + headers + b"\r\n"
        self._found = (
            b"HTTP/1.1 200 OK\r\n"
            + headers
            + b"Content-Type: application/rss+xml; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body
        )


def _serve(
    ready: multiprocessing.connection.Connection,
    count: int,
    items: int,
    certificate: Path | None,
    mode: TlsMode,
) -> None:
    now = time.time()
    feeds = {b"/%d.xml" % number: _Feed(number, items, now, mode == "kept") for number in range(count)}

    class Answering(asyncio.Protocol):
        """No parsing beyond the path and the end of the request's head."""

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self._transport = cast("asyncio.Transport", transport)

        def data_received(self, data: bytes) -> None:
            for head in data.split(b"\r\n\r\n")[:-1]:
                path = head[4 : head.index(b" ", 4)].partition(b"?")[0]
                if path == b"/publish":
                    for number in range(0, count, CHANGED_EVERY):
                        feeds[b"/%d.xml" % number].publish()
                    self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                else:
                    self._transport.write(feeds[path].answer(head))
                    if mode != "kept":
                        self._transport.close()

    async def main() -> None:
        context = None
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            if mode == "new":
                context.num_tickets = 0
                context.options |= ssl.OP_NO_TICKET
        server = await asyncio.get_running_loop().create_server(
            Answering,
            "0.0.0.0",  # noqa: S104 - all of the loopback network
            0,
            backlog=4096,
            ssl=context,
        )
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(main())


@contextmanager
def serving(
    feeds: int, items: int, *, certificate: Path | None = None, mode: TlsMode = "kept"
) -> Iterator[int]:
    """The port of an origin with so many feeds of so many items each; with a certificate it speaks TLS."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(there, feeds, items, certificate, mode), daemon=True
    )
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def publish(port: int) -> None:
    """A new item in every tenth feed."""
    urllib.request.urlopen(f"http://127.0.0.1:{port}/publish").close()
