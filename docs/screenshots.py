"""Takes pictures of every page, from a running demo with a pipeline, an outlet and their results.

    make screenshots                 the pictures in docs/images
    make screenshots ARGS=all        every page at 1440 and 390, light and dark, in both languages, in .screenshots

It does what a newcomer would do, so it also fails where they would be stuck. Needs chromium.
"""

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).with_name("images")
LOOKED_AT = Path(__file__).parent.parent / ".screenshots"
SIZE = {"width": 1100, "height": 700}
SIZES = {"desktop": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
LOCALES = {"en": "en-GB", "zh": "zh-CN"}
# Every page, by what its picture is called.
PAGES = {
    "overview": "/",
    "read": "/read?view=all",
    "read-article": "/read?view=all&item=1",
    "read-search": "/read?search=river",
    "arrange-feeds": "/read/feeds",
    "add-a-feed": "/read/add",
    "bookmarks": "/bookmarks",
    "connect": "/connect",
    "items": "/items",
    "sources": "/sources",
    "source": "/sources/2",
    "add": "/sources/add",
    "watch": "/sources/watch",
    "progress": "/progress",
    "pipelines": "/pipelines",
    "pipeline": "/pipelines/1",
    "pipeline-new": "/pipelines/new?example=keywords",
    "runs": "/runs",
    "run": "/runs/1",
    "outlets": "/outlets",
    "outlet-new": "/outlets/new",
    "digests": "/digests",
    "alerts": "/alerts",
    "settings": "/settings",
    "statistics": "/statistics",
    "users": "/users",
    "account": "/account",
    "api": "/api/docs",
}


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=which("chromium") or which("google-chrome"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        if "all" in sys.argv:
            with running("demo") as address:
                take_every_page(browser, address, PAGES)
            with running("serve") as address:
                take_every_page(browser, address, {"welcome": "/"})
        else:
            with running("demo") as address:
                take_those_of_the_documents(browser, address)
        browser.close()


@contextmanager
def running(command: str) -> Iterator[str]:
    """The address of a demo, or of a Headwater with nothing in it."""
    with tempfile.TemporaryDirectory() as directory:
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": directory,
            "HEADWATER_PORT": "0",
            "HEADWATER_LANGUAGE": "en",
            "HEADWATER_DATA_DIR": directory,
        }
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "headwater", command],
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            line = next(line for line in process.stdout or () if "http://" in line)
            yield re.findall(r"http://\S+", line)[0].rstrip("/")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def take_every_page(browser: Browser, address: str, pages: dict[str, str]) -> None:
    """Each page at both widths, in both colour schemes and languages, for looking at beside the design."""
    LOOKED_AT.mkdir(exist_ok=True)
    for width, size in SIZES.items():
        for scheme in ("light", "dark"):
            for language, locale in LOCALES.items():
                context = browser.new_context(viewport=size, locale=locale, color_scheme=scheme)  # type: ignore[arg-type]
                page = context.new_page()
                for name, path in pages.items():
                    page.goto(address + path)
                    page.wait_for_timeout(300)
                    page.screenshot(path=LOOKED_AT / f"{name}-{width}-{scheme}-{language}.png")
                context.close()


def take_those_of_the_documents(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport=SIZE, locale="en-GB", color_scheme="light")  # type: ignore[arg-type]
    furnish(page, address)
    take_all(page, address)
    chinese = browser.new_page(viewport=SIZE, locale="zh-CN", color_scheme="light")  # type: ignore[arg-type]
    take(chinese, f"{address}/", "dashboard-zh")


def furnish(page: Page, address: str) -> None:
    """Wait for what the demo's own pipeline and outlet have to show."""
    page.goto(f"{address}/runs?status=completed")
    page.get_by_role("row").nth(6).wait_for(timeout=120_000)


def take_all(page: Page, address: str) -> None:
    take(page, f"{address}/", "dashboard")
    take(page, f"{address}/sources", "sources")
    take(page, f"{address}/sources/2", "source")
    page.goto(f"{address}/sources/2")
    feed = page.locator(".title a").first.get_attribute("href")
    take(page, f"{address}/sources/add?url={feed}", "add-a-source")
    take(page, f"{address}/items?search=river", "items")
    take_reader(page, address)
    take(page, f"{address}/items/2", "item")
    take(page, f"{address}/pipelines/1", "pipeline")
    page.goto(f"{address}/runs?status=completed")
    take(page, address + str(page.locator("tbody th a").first.get_attribute("href")), "run")
    take(page, f"{address}/outlets", "outlets")
    take(page, f"{address}/settings", "settings")


def take_reader(page: Page, address: str) -> None:
    """The reader with an article, wide enough for the tree beside the list."""
    page.set_viewport_size(SIZES["desktop"])  # type: ignore[arg-type]
    page.goto(f"{address}/read?view=all&folder=2")
    page.locator("[data-item]:has(.th)").first.click()
    page.locator("[data-article]").wait_for()
    page.wait_for_timeout(1_000)  # for its picture
    page.screenshot(path=IMAGES / "read.png")
    page.set_viewport_size(SIZE)  # type: ignore[arg-type]


def take(page: Page, url: str, name: str) -> None:
    page.goto(url)
    page.wait_for_timeout(500)  # for what the page loads afterwards
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
