"""A real Chromium, and the demo for it to look at."""

import re
import signal
from collections.abc import Iterator
from shutil import which

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.command import Headwater

# Without these, Chromium keeps calling home, which a closed network refuses many times over.
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = which("chromium") or which("chromium-browser") or which("google-chrome")
    assert path, "these tests need a browser: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def demo_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running demo."""
    process = Headwater(tmp_path_factory.mktemp("demo"), None).start("demo", HEADWATER_PORT="0")
    assert process.stdout is not None
    yield re.findall(r"http://\S+", process.stdout.readline())[0]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page that fails its test when anything complains in the console."""
    complaints: list[str] = []
    context = chromium.new_context(locale="en-GB", viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert complaints == []
