"""How long pages take in a real Chromium when much is stored: `make bench-browser`.

The databases are those of `benchmarks.api`: `--scale 1` is 100,000 sources and 5,000,000 items; `--keep` leaves them in
a folder for another time. One person has all the sources, as on a private machine, with everything read but the
newest items. Each page is opened with an empty cache, in turns with the same page of an empty database. A page is told
by its first contentful paint and by when it answers to a person: when its document is read, its scripts have run and
no long task is left. After that, a thousand articles are read by the key `j`: how long each takes to be shown, and how
the memory of the page grows.
"""

import argparse
import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks.api import ITEMS, SOURCES, clock_from, prepare, two_stores
from benchmarks.verdict import Verdict
from headwater.config import load_settings
from headwater.store.core.database import Store
from headwater.store.people.subscriptions import OWNER
from headwater.web.app import create_app
from headwater.web.server import address_of, listen, serve_app

MOST_MILLISECONDS, MOST_ARTICLE_MILLISECONDS, MOST_GROWTH = 1_000.0, 100.0, 1.2
ROUNDS = 3
ARTICLES, SETTLED = 1_000, 200  # read one after the other; so many before memory is compared
UNREAD = 5_000
QUIET_MS = 600  # without a long task, before a page counts as ready
PATHS = (
    "/",
    "/read",
    "/read?view=all",
    "/read?view=starred",
    "/read?folder=7",
    "/read?feed=7",
    "/read?search=word77",
    "/read?view=all&item=7",
    "/read/feeds",
    "/read/add",
    "/bookmarks",
    "/connect",
    "/sources",
    "/sources?state=failing",
    "/sources?search=source+77",
    "/sources/7",
    "/sources/add",
    "/sources/watch",
    "/items",
    "/items?search=common",
    "/items/7",
    "/pipelines",
    "/pipelines/1",
    "/pipelines/new?example=webhook",
    "/runs",
    "/runs/7",
    "/outlets",
    "/outlets/new",
    "/digests",
    "/alerts",
    "/settings",
    "/statistics",
    "/users",
    "/account",
    "/progress",
    "/api/docs",
)
# What is not read yet lies above the level of each subscription.
SUBSCRIBE = (
    "DELETE FROM subscriptions WHERE user_id = {owner}",
    "DELETE FROM folders WHERE user_id = {owner}",
    "INSERT INTO folders (id, user_id, name, position) SELECT n, {owner}, 'Folder ' || n, n"
    " FROM (SELECT DISTINCT id % 50 + 1 AS n FROM sources) AS numbers",
    "INSERT INTO subscriptions (user_id, source_id, folder_id, level, settled, created_at)"
    " SELECT {owner}, s.id, s.id % 50 + 1, {level}, COALESCE(c.stored, 0) - COALESCE(fresh.count, 0), {now}"
    " FROM sources s LEFT JOIN source_counts c ON c.source_id = s.id LEFT JOIN (SELECT source_id, count(*) AS count"
    " FROM items WHERE position > {level} GROUP BY source_id) AS fresh ON fresh.source_id = s.id"
    " WHERE NOT s.is_deleted",
)
COUNT = (
    "DELETE FROM source_counts",
    "INSERT INTO source_counts (source_id, stored, last_position, last_stored_at)"
    " SELECT source_id, count(*), max(position), max(first_seen_at) FROM items GROUP BY source_id",
)
WATCH = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) window.longest = Math.max(window.longest, each.startTime + each.duration);
}).observe({ type: "longtask", buffered: true });
"""
READY = """() => {
  const page = performance.getEntriesByType("navigation")[0];
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return [paint ? paint.startTime : -1, Math.max(page.domContentLoadedEventEnd, window.longest)];
}"""
NEXT = """() => new Promise((done) => {
  const pane = document.getElementById("article");
  const begin = performance.now();
  new MutationObserver((changes, observer) => {
    observer.disconnect();
    requestAnimationFrame(() => done(performance.now() - begin));
  }).observe(pane, { childList: true });
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
  setTimeout(() => done(-1), 10000);
})"""


def subscribe(store: Store, scale: float, now: float) -> None:
    """Give the first user every source, with the newest items unread."""
    values = {"owner": OWNER, "now": now, "level": max(1_000, int(ITEMS * scale)) - UNREAD}
    for statement in (*COUNT, *SUBSCRIBE):
        with store.writing() as connection:
            text = statement.format(**values)
            connection.exec_driver_sql(text if store.is_sqlite else text.replace("%", "%%"))
    if not store.is_sqlite:
        with store.engine.connect() as plain, plain.execution_options(isolation_level="AUTOCOMMIT") as vacuum:
            vacuum.exec_driver_sql("VACUUM ANALYZE")


@contextmanager
def served(store: Store, clock: Callable[[], float]) -> Iterator[str]:
    """The address of the web application alone: nothing is collected."""
    settings = load_settings(directory=Path("/nonexistent"), environment={})
    listener = listen("127.0.0.1", 0)
    loop = asyncio.new_event_loop()
    stopped = asyncio.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve_app(create_app(store, settings, clock=clock), listener, stopped))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield address_of(listener).rstrip("/")
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()


def open_page(browser: Browser, url: str) -> tuple[float, float]:
    """Milliseconds until the first paint, and until the page answers."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB")
    try:
        page = context.new_page()
        page.add_init_script(WATCH)
        answer = page.goto(url, timeout=120_000)
        assert answer is not None, url
        page.wait_for_timeout(QUIET_MS)
        paint, ready = page.evaluate(READY)
        # What is not there, for instance a source of a small fleet, is a page, too.
        return float(paint), float(ready)
    finally:
        context.close()


def read_on(page: Page, address: str, articles: int) -> tuple[list[float], float]:
    """How long each article took to be there after the key, and how many times the memory was in the end."""
    page.goto(f"{address}/read?view=all")
    session = page.context.new_cdp_session(page)
    took, memory = [], []
    for number in range(articles):
        taken = float(page.evaluate(NEXT))
        assert taken >= 0, f"no article after {number}"
        took.append(taken)
        page.wait_for_timeout(100)  # no one reads faster; the next one is fetched ahead meanwhile
        if number in (min(SETTLED, articles // 2), articles - 1):
            memory.append(used_memory(session))
    return took, memory[1] / memory[0]


def used_memory(session: CDPSession) -> float:
    """Of the page's scripts, after what is no longer needed has been given back."""
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics: dict[str, Any] = {
        each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]
    }
    return float(metrics["JSHeapUsedSize"])


def compare(browser: Browser, kind: str, chosen: argparse.Namespace, verdict: Verdict) -> None:
    with two_stores(kind, chosen.keep) as (empty, store):
        now = prepare(store, kind, chosen.scale)
        subscribe(store, chosen.scale, now)
        with served(empty, clock_from(now)) as plain, served(store, clock_from(now)) as address:
            slowest_paint = slowest_ready = 0.0
            for path in PATHS:
                if chosen.only not in path:
                    continue
                taken = [
                    (*open_page(browser, plain + path), *open_page(browser, address + path))
                    for _ in range(chosen.rounds)
                ]
                _, floor, paint, ready = (median(column) for column in zip(*taken, strict=True))
                word = "" if max(paint, ready) <= MOST_MILLISECONDS else "  MISSED"
                print(
                    f"  {path:40} painted {paint:7.0f} ms, answers {ready:7.0f} ms; empty {floor:7.0f} ms{word}",
                    flush=True,
                )
                slowest_paint, slowest_ready = max(slowest_paint, paint), max(slowest_ready, ready)
            verdict.tell(f"{kind}: slowest first paint", slowest_paint, " ms", most=MOST_MILLISECONDS)
            verdict.tell(f"{kind}: slowest time to answer", slowest_ready, " ms", most=MOST_MILLISECONDS)
            if chosen.articles:
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                took, growth = read_on(page, address, chosen.articles)
                slow = sorted(took)[int(len(took) * 0.95)]
                page.close()
                verdict.tell(f"{kind}: next article, median", median(took), " ms")
                verdict.tell(
                    f"{kind}: next article, 19 of 20 within", slow, " ms", most=MOST_ARTICLE_MILLISECONDS
                )
                verdict.tell(f"{kind}: memory after {len(took)} articles", growth, "×", most=MOST_GROWTH)


def main(arguments: list[str]) -> int:
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.02, help="1 is 100,000 sources and 5,000,000 items")
    parser.add_argument("--database", choices=["SQLite", "PostgreSQL"], help="only this one")
    parser.add_argument("--only", default="", help="only paths that contain this")
    parser.add_argument("--keep", type=Path, help="a folder in which the databases stay for another time")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--articles", type=int, default=ARTICLES)
    chosen = parser.parse_args(arguments)
    verdict = Verdict("browser")
    path = which("chromium") or which("chromium-browser") or which("google-chrome")
    if path is None:
        print("this benchmark needs a browser: apt-get install chromium")
        return 2
    print(f"{SOURCES * chosen.scale:,.0f} sources, {ITEMS * chosen.scale:,.0f} items")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for kind in [chosen.database] if chosen.database else ["SQLite", "PostgreSQL"]:
            compare(browser, kind, chosen, verdict)
        browser.close()
    return verdict.exit_code()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
