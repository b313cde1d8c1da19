"""A real Chromium, the demo for it to look at, and its own Headwater with a publisher for it to work with."""

import importlib.util
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from headwater.language import Language, translate
from tests.browser.furnished import furnish
from tests.command import Headwater
from tests.origin import Origin

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
Words = Callable[..., str]
# What a browser says of a form that was sent back with its mistakes named, of a page that is not there, and offline.
EXPECTED = re.compile(
    "Failed to load resource: (the server responded with a status of (400|401|404)|net::ERR_INTERNET_DISCONNECTED)"
)
LOCALES: dict[Language, str] = {"en": "en-GB", "zh": "zh-CN"}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = which("chromium") or which("chromium-browser") or which("google-chrome")
    assert path, "these tests need a browser: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


@contextmanager
def running(directory: Path, *arguments: str, **environment: str) -> Iterator[str]:
    """The address of a process of ours that serves the dashboard."""
    process = Headwater(directory, None).start(*arguments, HEADWATER_PORT="0", **environment)
    assert process.stdout is not None
    try:
        said = next(line for line in process.stdout if "http://" in line)
        yield re.findall(r"http://\S+", said)[0].rstrip("/")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.fixture(scope="session")
def demo_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running demo."""
    with running(tmp_path_factory.mktemp("demo"), "demo", "--weeks", "1") as address:
        yield address


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Headwater with nothing in it yet, which may visit this machine."""
    with running(tmp_path_factory.mktemp("served"), "serve", COLLECTOR_TICK="1") as address:
        yield address


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Headwater whose pages all have something to show, and stand still: nothing is collected."""
    directory = tmp_path_factory.mktemp("furnished")
    furnish(directory)
    url = f"sqlite:///{directory / 'headwater.db'}"
    with running(
        directory, "serve", HEADWATER_DATABASE_URL=url, HEADWATER_PIPELINE_CONCURRENCY="0"
    ) as address:
        yield address


@pytest.fixture(scope="module")
def publisher() -> Iterator[Origin]:
    with Origin() as origin:
        yield origin


def is_expected(message: ConsoleMessage) -> bool:
    """What a browser says of itself, not of us: refusals that a test asks for, and what is not kept while offline."""
    is_offline = "net::ERR_FAILED" in message.text and "/read/items/" in message.location["url"]
    return is_offline or EXPECTED.match(message.text) is not None


@contextmanager
def opened(chromium: Browser, language: Language = "en", **options: Any) -> Iterator[Page]:
    """A page that fails its test when anything complains in the console: a refused script or style does."""
    complaints: list[str] = []
    context = chromium.new_context(
        **{"locale": LOCALES[language], "viewport": {"width": 1280, "height": 900}, **options}
    )
    context.set_default_timeout(20_000)

    def listen(message: ConsoleMessage) -> None:
        if message.type == "error" and not is_expected(message):
            complaints.append(f"{message.location['url']}: {message.text}")

    context.on("console", listen)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("dialog", lambda dialog: dialog.accept())
    yield context.new_page()
    context.close()
    assert complaints == []


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    with opened(chromium) as page:
        yield page


@pytest.fixture(scope="session")
def axe() -> str:
    """The program that finds what is wrong for people who cannot see or use a mouse."""
    found = importlib.util.find_spec("axe_playwright_python")
    assert found is not None, "these tests need pip install axe-playwright-python"
    assert found.origin is not None
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")


def in_language(language: Language) -> Words:
    def t(text: str, **values: object) -> str:
        return translate(text, language).format(**values) if values else translate(text, language)

    return t
