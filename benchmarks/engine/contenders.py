"""Who is measured: Headwater, two bare clients, and `reader`, each in a separate process that is told to visit.

A visit round answers with the CPU seconds (user and system, all threads and child processes) it took for each feed.
Starting, importing, opening databases and adding feeds are outside of it, for all alike: each contender visits one
feed before it says that it is ready. First visits are made in several rounds too, each of another part of the feeds.
"""

import asyncio
import multiprocessing
import multiprocessing.connection
import resource
import ssl
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp

Pipe = multiprocessing.connection.Connection


def cpu_seconds() -> float:
    """Of this process, its threads, and its children that have ended."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def peak_megabytes() -> float:
    """The most memory this process has had; of a fresh process, unlike what getrusage answers."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


class Contender:
    """The other end of a contender's process."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self.ready: Any = pipe.recv()

    def visit(self, urls: list[str] | None = None) -> float:
        """Visit these feeds for the first time, or all once more; the CPU seconds that took for each."""
        self._pipe.send(urls)
        seconds: float = self._pipe.recv()
        return seconds


@contextmanager
def contender(target: Callable[..., None], *args: object) -> Iterator[Contender]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=target, args=(there, *args), daemon=True)
    process.start()
    there.close()
    try:
        yield Contender(here)
    finally:
        here.close()
        process.join(30)
        process.kill()


async def _obey(
    pipe: Pipe, visit: Callable[[list[str]], Awaitable[None]], prepare: Callable[[list[str] | None], None]
) -> None:
    """Visit what is asked for: addresses that are new, or None for all of them once more."""
    known: list[str] = []
    pipe.send("ready")
    while (order := await _next_order(pipe)) is not _END:
        prepare(order)
        known += order or ()
        wanted = order or known
        began = cpu_seconds()
        await visit(wanted)
        pipe.send((cpu_seconds() - began) / len(wanted))


_END: Any = object()


async def _next_order(pipe: Pipe) -> Any:
    """Wait without a thread of the pool, which would be one more than the measured program has."""
    loop = asyncio.get_running_loop()
    came: asyncio.Future[Any] = loop.create_future()

    def wait() -> None:
        try:
            loop.call_soon_threadsafe(came.set_result, pipe.recv())
        except EOFError:
            loop.call_soon_threadsafe(came.set_result, _END)

    threading.Thread(target=wait, daemon=True).start()
    return await came


def headwater(pipe: Pipe, database_url: str, warm_up: str, at_once: int, ca_file: Path | None = None) -> None:
    """Headwater as `headwater collect --loop` runs it with many visits.

    The hosts are few, so politeness is told to let them be.
    """
    from headwater.cli.loop import run
    from headwater.collect.engine import Engine
    from headwater.config import load_settings
    from headwater.store.core.database import Store

    settings = replace(
        load_settings(directory=Path(tempfile.gettempdir()), environment={}),
        allow_hosts=("127.0.0.0/8",),
        collector_concurrency=at_once,
        host_concurrency=at_once,
        host_spacing_seconds=0.0,
        ca_file=ca_file,
    )
    store = Store.open(database_url)

    async def main() -> None:
        async with Engine(store, settings) as engine:
            add_sources(store, [warm_up])
            await engine.collect_due()
            delete_source(store, warm_up)

            def prepare(new: list[str] | None) -> None:
                if new is None:
                    make_due(store)
                else:
                    add_sources(store, new)

            async def visit(urls: list[str]) -> None:
                before = engine.tally.visits
                await engine.collect_due()
                assert engine.tally.visits - before == len(urls), engine.tally
                assert not engine.tally.failed, engine.tally.failures[:3]

            await _obey(pipe, visit, prepare)

    run(main())
    store.close()


def add_sources(store: Any, urls: list[str]) -> None:
    from headwater.model import url_key
    from headwater.store.collecting.sources import NEW_LANE
    from headwater.store.core.bulk import insert_rows
    from headwater.store.core.tables import sources

    now = time.time()
    with store.writing() as connection:
        insert_rows(
            connection,
            sources,
            ("name", "type", "url", "url_key", "due_at", "created_at", "updated_at"),
            [(url, "rss.feed", url, url_key(url), NEW_LANE + now, now, now) for url in urls],
        )


def delete_source(store: Any, url: str) -> None:
    with store.writing() as connection:
        connection.exec_driver_sql(f"DELETE FROM sources WHERE url = '{url}'")


def make_due(store: Any) -> None:
    """Every visited source is due again, as if its planned time had come."""
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE sources SET due_at = 1.0 WHERE last_fetched_at IS NOT NULL")


def bare(pipe: Pipe, warm_up: str, at_once: int, on_our_loop: bool, ca_file: Path | None = None) -> None:
    """aiohttp and nothing else: conditional requests, bodies read, validators kept in a dictionary.

    On the loop that Headwater runs on, or on asyncio's own, which is what a script gets that asks for nothing.
    """
    from headwater.cli import loop

    run = loop.run if on_our_loop else asyncio.run

    known: dict[str, dict[str, str]] = {}

    async def main() -> None:
        timeout = aiohttp.ClientTimeout(total=60, connect=15, sock_read=30)
        context = ssl.create_default_context(cafile=ca_file)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=context),
            timeout=timeout,
            headers={"User-Agent": "bare"},
        ) as session:

            async def get(url: str) -> None:
                async with session.get(url, headers=known.get(url)) as answer:
                    if answer.status != 304:
                        await answer.read()
                        known[url] = {
                            "If-None-Match": answer.headers["ETag"],
                            "If-Modified-Since": answer.headers["Last-Modified"],
                        }

            async def visit(urls: list[str]) -> None:
                left = iter(urls)

                async def worker() -> None:
                    for url in left:
                        await get(url)

                await asyncio.gather(*(worker() for _ in range(at_once)))

            await get(warm_up)
            await _obey(pipe, visit, lambda new: None)

    run(main())


def bare_curl(pipe: Pipe, warm_up: str, at_once: int, ca_file: Path | None = None) -> None:
    """pycurl and nothing else, as bare as `bare`: handles used again and again, driven by libcurl's own loop."""
    import pycurl

    known: dict[str, list[str]] = {}
    multi = pycurl.CurlMulti()

    class Get:
        """One handle and the answer it takes."""

        def __init__(self) -> None:
            self.curl = curl = pycurl.Curl()
            for option, value in (
                (pycurl.NOSIGNAL, 1),
                (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
                (pycurl.TIMEOUT, 60),
                (pycurl.USERAGENT, "bare"),
                (pycurl.HEADERFUNCTION, self.head),
                (pycurl.WRITEFUNCTION, self.write),
            ):
                curl.setopt(option, value)
            if ca_file is not None:
                curl.setopt(pycurl.CAINFO, str(ca_file))

        def head(self, line: bytes) -> None:
            name, _, value = line.partition(b":")
            if name in (b"ETag", b"Last-Modified"):
                self.validators.append(value.strip().decode())

        def write(self, data: bytes) -> None:
            self.body += data

        def start(self, url: str) -> None:
            self.url, self.body = url, b""
            self.validators: list[str] = []
            self.curl.setopt(pycurl.URL, url)
            self.curl.setopt(pycurl.HTTPHEADER, known.get(url, []))
            multi.add_handle(self.curl)

        def finish(self) -> None:
            multi.remove_handle(self.curl)
            if self.curl.getinfo(pycurl.RESPONSE_CODE) != 304:
                etag, modified = self.validators
                known[self.url] = [f"If-None-Match: {etag}", f"If-Modified-Since: {modified}"]

    idle = [Get() for _ in range(at_once)]

    async def visit(urls: list[str]) -> None:
        left, busy = list(reversed(urls)), dict[Any, Get]()
        while left or busy:
            while left and idle:
                get = idle.pop()
                get.start(left.pop())
                busy[get.curl] = get
            multi.select(1.0)
            multi.perform()
            _, done, failed = multi.info_read(at_once)
            assert not failed, failed
            for curl in done:
                get = busy.pop(curl)
                get.finish()
                idle.append(get)

    async def main() -> None:
        await visit([warm_up])
        await _obey(pipe, visit, lambda new: None)

    asyncio.run(main())


def reader(pipe: Pipe, path: str, warm_up: str) -> None:
    """The `reader` library with its defaults: one worker, SQLite, feedparser."""
    import sys
    import warnings

    import feedparser_sgmllib

    warnings.simplefilter("ignore")
    sys.modules["sgmllib"] = (
        feedparser_sgmllib  # the same module, under the name reader's own feedparser knows
    )
    from reader import make_reader

    feeds = make_reader(path)
    feeds.add_feed(warm_up)
    feeds.update_feeds()
    feeds.delete_feed(warm_up)
    count = 0
    pipe.send("ready")
    while True:
        try:
            new = pipe.recv()
        except EOFError:
            return
        for url in new or ():
            feeds.add_feed(url)
        count += len(new or ())
        began = cpu_seconds()
        feeds.update_feeds(scheduled=False, new=new is not None or None)
        pipe.send((cpu_seconds() - began) / (len(new) if new else count))
