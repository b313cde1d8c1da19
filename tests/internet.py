"""A stand-in for the internet: a proxy on loopback that answers for every host, over https too.

What is asked of 127.0.0.1:8626, where `headwater serve` listens by default, is passed on to the port it really has.
"""

import asyncio
import json
import re
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.origin import tls_context

ARTICLES = "".join(
    f'<article class="post"><h2><a href="/{n}">The river on day {n}</a></h2>'
    f'<time datetime="2026-01-{n:02}">day {n}</time>'
    f'<p class="excerpt">It rose by {n} metres.</p><img src="/{n}.png"></article>'
    for n in range(1, 7)
)
PAGE = (
    "<html><head><title>Example</title><link rel='alternate' type='application/rss+xml' title='News' href='/feed.xml'>"
    f"</head><body>{ARTICLES}</body></html>"
)


def feed(address: str) -> str:
    items = "".join(
        f"<item><guid>{address}#{n}</guid><link>https://example.org/{n}</link><title>The river on day {n}</title>"
        f"<description>High water, flood, by {n} metres.</description>"
        f"<pubDate>Thu, {n:02} Jan 2026 08:00:00 GMT</pubDate></item>"
        for n in range(1, 7)
    )
    return f"<rss version='2.0'><channel><title>Example</title><link>https://example.org/</link>{items}</channel></rss>"


def answer(host: str, path: str) -> tuple[int, str, str]:
    """Status, type and body of what stands at an address."""
    plain = path.partition("?")[0]
    if plain == "/robots.txt":
        return 404, "text/plain", ""
    if plain.endswith("sitemap.xml"):
        urls = "".join(
            f"<url><loc>https://{host}/{name}</loc><lastmod>2026-01-0{n}</lastmod></url>"
            for n, name in enumerate(("1", "2", "blog/3", "blog/4"), 1)
        )
        return 200, "application/xml", f"<urlset>{urls}</urlset>"
    if plain.endswith("/posts"):
        posts = [
            {"id": n, "headline": f"Post {n}", "links": {"html": f"https://{host}/{n}"}, "tags": ["river"]}
            | {"created_at": f"2026-01-0{n}T00:00:00Z", "authors": [{"name": "Ann"}]}
            for n in range(1, 4)
        ]
        return 200, "application/json", json.dumps({"data": {"posts": posts}, "meta": {"next": None}})
    if plain.startswith("/v1/"):  # Miniflux
        if plain.endswith("/entries"):
            return 200, "application/json", json.dumps({"total": 0, "entries": []})
        found = [
            {"id": 1, "feed_url": "https://example.org/a.xml", "title": "A", "category": {"title": "News"}}
        ]
        return 200, "application/json", json.dumps(found)
    if plain.endswith((".xml", ".rss", "/feed", "/rss")):
        return 200, "application/rss+xml", feed(f"https://{host}{plain}")
    if plain.endswith(".txt"):
        return 200, "text/plain", "- first\n- second\n"
    return 200, "text/html", PAGE


class Internet:
    """Serves while its context is open. `proxy` is its address; `ca_file` has the certificate to trust."""

    def __init__(self, folder: Path, hosts: tuple[str, ...]) -> None:
        self._context, self.ca_file = tls_context("trusted", folder, hosts)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.proxy = ""
        self.serve_log: Path | None = None  # where `headwater serve` says its port

    def __enter__(self) -> Self:
        self._thread.start()
        start = asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result(30)
        self.proxy = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *exc: object) -> None:
        async def close() -> None:
            self._server.close()
            for _ in range(5):
                await asyncio.sleep(0)  # a connection just accepted begins, so that its end closes it
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)  # the transports close

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
                await self._serve(reader, writer)
        finally:  # also when the context ends while a client keeps its connection
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, target, _ = head.split(" ", 2)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.start_tls(self._context)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            await self._answer(target.partition(":")[0], head.split(" ", 2)[1], writer)
            return
        host, slash, path = target.removeprefix("http://").partition("/")
        if host == "127.0.0.1:8626":
            await self._pass_on(head.replace(target, slash + path, 1), reader, writer)
        else:
            await self._answer(host, slash + path, writer)

    async def _answer(self, host: str, path: str, writer: asyncio.StreamWriter) -> None:
        status, kind, text = answer(host, path)
        body = text.encode()
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    async def _pass_on(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.serve_log is not None, "no server was started for this page"
        port = re.search(r"http://127\.0\.0\.1:(\d+)/", self.serve_log.read_text(encoding="utf-8"))
        assert port is not None
        theirs, ours = await asyncio.open_connection("127.0.0.1", int(port[1]))
        lines = [
            line for line in head.split("\r\n") if not line.lower().startswith(("proxy-", "connection:"))
        ]
        length = next(
            (int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")), 0
        )
        ours.write("\r\n".join([lines[0], "Connection: close", *lines[1:]]).encode("latin-1"))
        ours.write(await reader.readexactly(length))
        while data := await theirs.read(65_536):
            writer.write(data)
        await writer.drain()
        ours.close()
