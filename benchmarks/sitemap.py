"""A sitemap of 50,000 addresses: what a second run costs beside the first, and reading beside another reader.

    python -m benchmarks.sitemap

Everything is measured in separate processes against a server in another one; CPU time counts, and the highest
memory a process ever had (VmHWM). Targets: the second run, with 20 changes, one sitemap request and 20 page requests,
at most a tenth of the first run's CPU; an unchanged sitemap one request; an index of 20 × 50,000 addresses under
200 MB; a third of ultimate-sitemap-parser's CPU and a tenth of the memory it adds.
"""

import asyncio
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.verdict import Verdict

URLS = 50_000
CHANGED = 20
OLD_URLS = URLS - CHANGED // 2  # the others come with the change
CHILDREN = 20
HEAD = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
)
PAGE = (
    b"<html><head><title>A page</title><meta name='description' content='Of the benchmark'></head><body><article>"
    + (b"<p>Some text.</p>" * 100)
    + b"</article></body></html>"
)


def make_sitemap(site: str, urls: int, changed: int = 0, name: str = "article") -> bytes:
    """Half of what changed has a new date, half is new, at the top as publishers do it."""
    step = max(urls // max(changed, 1), 1)
    moved = set(range(0, urls, step)[: changed // 2])
    new = b"".join(
        _record(site, f"{name}-new-{n}", "2025-06-01T08:00:00+00:00") for n in range(changed - len(moved))
    )
    old = b"".join(
        _record(
            site,
            f"{name}-{n}",
            "2025-06-01T08:00:00+00:00"
            if n in moved
            else f"2024-{n % 12 + 1:02}-{n % 28 + 1:02}T10:{n % 60:02}:00+00:00",
        )
        for n in range(urls)
    )
    return HEAD + new + old + b"</urlset>\n"


def _record(site: str, name: str, lastmod: str) -> bytes:
    return (
        f"  <url>\n    <loc>{site}/pages/2024/a-fairly-long-title-of-{name}</loc>\n"
        f"    <lastmod>{lastmod}</lastmod>\n    <changefreq>monthly</changefreq>\n  </url>\n"
    ).encode()


class _Server(ThreadingHTTPServer):
    documents: dict[str, bytes]
    counts: dict[str, int]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        documents, counts = self.server.documents, self.server.counts
        if self.path.startswith("/control/"):
            kind, _, changed = self.path.removeprefix("/control/").partition("/")
            site = f"http://127.0.0.1:{self.server.server_port}"
            if kind == "change":
                documents["/sitemap.xml"] = make_sitemap(site, OLD_URLS, int(changed))
            elif kind == "index":
                for number in range(CHILDREN):
                    documents[f"/child{number}.xml"] = make_sitemap(site, URLS, name=f"c{number}")
                places = "".join(
                    f"<sitemap><loc>{site}/child{n}.xml</loc></sitemap>" for n in range(CHILDREN)
                )
                documents["/index.xml"] = f"<sitemapindex>{places}</sitemapindex>".encode()
            body = json.dumps(counts).encode()
            counts.clear()
            self._answer(200, body)
            return
        kind = (
            "sitemap"
            if self.path.endswith(".xml")
            else "page"
            if self.path.startswith("/pages/")
            else "other"
        )
        counts[kind] = counts.get(kind, 0) + 1
        if kind == "page":
            self._answer(200, PAGE)
        elif self.path in documents:
            body = documents[self.path]
            etag = f'"{len(body)}"'
            same = self.headers.get("If-None-Match") == etag
            self._answer(304 if same else 200, b"" if same else body, etag)
        else:
            self._answer(404, b"")

    def _answer(self, status: int, body: bytes, etag: str | None = None) -> None:
        self.send_response(status)
        if etag:
            self.send_header("ETag", etag)
        self.send_header("Content-Type", "text/html" if body is PAGE else "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _serve(port: Any) -> None:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.documents, server.counts = {}, {}
    server.documents["/sitemap.xml"] = make_sitemap(f"http://127.0.0.1:{server.server_port}", OLD_URLS)
    port.send(server.server_port)
    server.serve_forever()


@contextmanager
def publisher() -> Iterator[str]:
    """A site in a separate process."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.kill()
        process.join()


def control(site: str, command: str) -> dict[str, int]:
    """Tell the site to change; the requests it had since it was last told."""
    from urllib.request import urlopen

    with urlopen(f"{site}/control/{command}") as answer:  # noqa: S310
        counts: dict[str, int] = json.loads(answer.read())
    return counts


def highest_memory() -> int:
    """The most memory this process ever had, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


# -- what runs in separate processes ----------------------------------------------------------------------


async def _run(url: str, folder: Path) -> Any:
    from headwater.fetch.client import Fetcher
    from headwater.sitemaps.run import Order, make_feed
    from headwater.sitemaps.state import IncrementalStateManager

    with IncrementalStateManager(folder / "rss_states") as manager:
        async with Fetcher(
            user_agent="benchmark", allow=["127.0.0.1"], host_spacing_seconds=0, host_concurrency=8
        ) as fetcher:
            return await make_feed(Order(url, "benchmark"), manager, fetcher, output=folder / "feed.xml")


def runs(site: str, path: str) -> dict[str, Any]:
    """First run, second run with changes, third run with none."""
    import headwater.sitemaps.run  # noqa: F401 - imports belong to no run

    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        control(site, "count")
        for name, change in (("first", None), ("second", f"change/{CHANGED}"), ("third", None)):
            if change:
                control(site, change)
            began = time.process_time()
            outcome = asyncio.run(_run(site + path, Path(folder)))
            figures[name] = {
                "cpu": time.process_time() - began,
                "found": len(outcome.new_urls) + len(outcome.modified_urls),
                "requests": control(site, "count"),
            }
    return figures


def index_memory(site: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        outcome = asyncio.run(_run(site + "/index.xml", Path(folder)))
    return {"addresses": outcome.total_urls, "memory": highest_memory()}


def read_ours(path: str) -> dict[str, Any]:
    from headwater.formats.sitemaps.read import SitemapScan

    list(SitemapScan(HEAD + b"</urlset>"))
    data = Path(path).read_bytes()
    return _measured(lambda: sum(1 for url in SitemapScan(data) if url.loc))


def read_theirs(path: str) -> dict[str, Any]:
    import logging

    from usp.fetch_parse import SitemapStrParser

    logging.disable()
    list(SitemapStrParser(static_content=(HEAD + b"</urlset>").decode()).sitemap().all_pages())
    data = Path(path).read_text()
    return _measured(
        lambda: sum(1 for page in SitemapStrParser(static_content=data).sitemap().all_pages() if page.url)
    )


def _measured(read: Any) -> dict[str, Any]:
    before = highest_memory()
    began = time.process_time()
    count = read()
    return {"count": count, "cpu": time.process_time() - began, "added": highest_memory() - before}


# -- the whole ------------------------------------------------------------------------------------------------


def apart(function: str, *arguments: str) -> Any:
    """Call a function of this module in a fresh process."""
    code = (
        f"import json; from benchmarks import sitemap; print(json.dumps(sitemap.{function}(*{arguments!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> int:
    verdict = Verdict("sitemap")
    with publisher() as site:
        figures = apart("runs", site, "/sitemap.xml")
        first, second, third = (figures[name] for name in ("first", "second", "third"))
        print(f"{URLS:,} addresses, {CHANGED} changed (CPU of a run)")
        for name, run in figures.items():
            print(f"  {name:7} {run['cpu'] * 1000:8.0f} ms  {run['found']:3} told  {run['requests']}")
        verdict.tell("the second run, times the first's CPU", second["cpu"] / first["cpu"], "×", most=0.1)
        assert second["requests"] == {"sitemap": 1, "page": CHANGED} and second["found"] == CHANGED
        asked = sum(third["requests"].values())
        verdict.tell("requests of a run that finds it unchanged", asked, "", most=1)
        control(site, "index")
        index = apart("index_memory", site)
        assert index["addresses"] == CHILDREN * URLS
        verdict.tell(f"an index of {CHILDREN} × {URLS:,}", index["memory"] / 1e6, " MB", most=200)
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(make_sitemap("https://www.example.org", URLS))
        ours, theirs = apart("read_ours", file.name), apart("read_theirs", file.name)
    print(f"reading {URLS:,} addresses")
    for name, read in (("headwater", ours), ("ultimate-sitemap-parser", theirs)):
        print(f"  {name:24} {read['cpu'] * 1000:8.0f} ms  {read['added'] / 1e6:+8.1f} MB")
    verdict.tell("times less CPU than ultimate-sitemap-parser", theirs["cpu"] / ours["cpu"], "×", least=3)
    verdict.tell("times less memory than it", theirs["added"] / max(ours["added"], 1), "×", least=10)
    return verdict.exit_code()


if __name__ == "__main__":
    raise SystemExit(main())
