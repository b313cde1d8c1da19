"""Takes the pictures in docs/images of every page, from a running demo with a pipeline, an outlet and their results.

    make screenshots

It does what a newcomer would do, so it also fails where they would be stuck. Needs chromium.
"""

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).with_name("images")
SIZE = {"width": 1100, "height": 700}
PHONE = {"width": 380, "height": 760}


def main() -> None:
    chromium = which("chromium") or which("google-chrome")
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        demo = subprocess.Popen(
            [sys.executable, "-m", "headwater", "demo"],
            cwd=directory,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": directory,
                "HEADWATER_PORT": "0",
                "HEADWATER_LANGUAGE": "en",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            address = re.findall(r"http://\S+", next(iter(demo.stdout or ())))[0].rstrip("/")
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport=SIZE, locale="en-GB", color_scheme="light")
            furnish(page, address)
            take_all(page, address)
            dark = browser.new_page(viewport=SIZE, locale="en-GB", color_scheme="dark")
            take(dark, f"{address}/", "dashboard-dark")
            phone = browser.new_page(viewport=PHONE, locale="en-GB", color_scheme="light")
            take(phone, f"{address}/", "dashboard-phone")
            chinese = browser.new_page(viewport=SIZE, locale="zh-CN", color_scheme="light")
            take(chinese, f"{address}/", "dashboard-zh")
            browser.close()
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(timeout=60)


def furnish(page: Page, address: str) -> None:
    """A pipeline that picks by keywords, on two sources, with runs; and the outlet that it fills."""
    page.goto(f"{address}/outlets")
    page.locator("input[name=name]").fill("picked")
    page.locator("input[name=title]").fill("Rivers and harbours")
    page.locator("input[name=by_pipelines]").check()
    page.get_by_role("button", name="Add", exact=True).click()
    page.goto(f"{address}/pipelines/new?example=keywords")
    page.get_by_role("button", name="Save").click()
    page.locator("input[name=sources]").fill("1, 2, 6")
    page.get_by_role("button", name="Attach", exact=True).click()
    page.goto(f"{address}/runs?status=completed")
    page.get_by_role("row").nth(6).wait_for(timeout=120_000)
    page.goto(f"{address}/sources/2")
    # An item that was corrected: the list marks it.
    for _ in range(60):
        page.goto(f"{address}/items?source=2")
        if page.get_by_text("changed", exact=True).count():
            break
        page.wait_for_timeout(1_000)


def take_all(page: Page, address: str) -> None:
    take(page, f"{address}/", "dashboard")
    take(page, f"{address}/sources", "sources")
    take(page, f"{address}/sources/2", "source")
    page.goto(f"{address}/sources/2")
    feed = page.locator("dl.facts dd a").first.get_attribute("href")
    take(page, f"{address}/sources/add?url={feed}", "add-a-source")
    take(page, f"{address}/items?search=river", "items")
    page.goto(f"{address}/items?source=2")
    page.locator("li", has=page.get_by_text("changed", exact=True)).get_by_role("link").first.click()
    take(page, page.url, "item")
    take(page, f"{address}/pipelines", "pipelines")
    take(page, f"{address}/pipelines/1", "pipeline", opened="details:nth-of-type(4)")
    take(page, f"{address}/runs", "runs")
    page.goto(f"{address}/runs?status=completed")
    page.locator("tbody a").first.click()
    take(page, page.url, "run")
    take(page, f"{address}/outlets", "outlets")
    take(page, f"{address}/settings", "settings")


def take(page: Page, url: str, name: str, opened: str | None = None) -> None:
    page.goto(url)
    page.wait_for_timeout(500)  # for what the page loads by itself
    if opened:
        page.locator(opened).first.evaluate("each => { each.open = true }")
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
