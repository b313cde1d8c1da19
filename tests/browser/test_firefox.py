"""Firefox, where it is installed: reading and operating, by mouse and by keys, without a complaint."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.bidi import FIREFOX, Tab, firefox
from tests.browser.conftest import running
from tests.browser.furnished import PAGES, furnish
from tests.browser.reading_data import furnish_reading
from tests.browser.test_journey import Newsroom
from tests.browser.test_reader import FIRST, SECOND
from tests.origin import Origin

pytestmark = pytest.mark.skipif(
    FIREFOX is None and "CI" not in os.environ, reason="Firefox is missing: apt-get install firefox-esr"
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with firefox(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def tab(shared: Tab) -> Iterator[Tab]:
    shared.complaints.clear()
    shared.size(1280, 900)
    yield shared
    assert shared.complaints == []


HEADING = "document.querySelector('#article h1')?.innerText"


def test_firefox_reads(tab: Tab, tmp_path: Path) -> None:
    furnish_reading(tmp_path, "http://127.0.0.1:9")
    url = f"sqlite:///{tmp_path / 'headwater.db'}"
    with running(
        tmp_path, "serve", HEADWATER_DATABASE_URL=url, HEADWATER_PIPELINE_CONCURRENCY="0"
    ) as address:
        tab.goto(f"{address}/read?view=all")
        tab.press("j")
        tab.wait_for(f"{HEADING} === '{FIRST}'")
        tab.press("j")
        tab.wait_for(f"{HEADING} === '{SECOND}'")
        row = f"[...document.querySelectorAll('[data-item]')].find((each) => each.innerText.includes('{SECOND}'))"
        starred = tab.evaluate(f"{row}.dataset.starred")
        tab.press("s")
        tab.wait_for(f"{row}.dataset.starred !== '{starred}'")
        tab.click("[data-item]")
        tab.wait_for(f"{HEADING} === '{FIRST}'")
        tab.press("?")
        tab.wait_for("document.querySelector('#keys').open")
        tab.press("Escape")
        tab.press("/")
        tab.press(*"binoculars", "Enter")
        tab.wait_for("location.search.includes('binoculars') && document.querySelector('#entries mark')")
        tab.size(390, 844)
        tab.goto(f"{address}/read?view=all")
        tab.click("[data-item]")
        tab.wait_for("document.querySelector('[data-article]')?.checkVisibility()")


def test_firefox_operates(tab: Tab, tmp_path: Path) -> None:
    with Origin() as publisher, running(tmp_path, "serve", COLLECTOR_TICK="1") as address:
        newsroom = Newsroom(publisher, "firefox")
        tab.goto(f"{address}/sources/add")
        tab.type("input[type=search]", newsroom.page)
        tab.press("Enter")
        tab.wait_for("document.body.innerText.includes('firefox finds a map')")
        tab.click("form:has([type=checkbox]:checked) button:not(.quiet, .bare)")
        tab.wait_for("location.pathname !== '/sources/add'")
        tab.goto(f"{address}/sources")
        tab.wait_for("document.querySelector('tbody th a')")
        tab.click("tbody th a")
        tab.wait_for("document.querySelector('#why')?.innerText.trim()")
        tab.goto(f"{address}/pipelines/new?example=keywords")
        tab.wait_for("document.querySelectorAll('#steps-editor .step').length === 2")
        tab.click("#steps-editor .step:nth-child(2) [data-up]")
        steps = "JSON.parse(document.querySelector('textarea[name=steps]').value)"
        tab.wait_for(f"{steps}[0].step_type === 'publish_content'")


def test_firefox_shows_every_page_on_a_phone(tab: Tab, tmp_path: Path) -> None:
    furnish(tmp_path)
    url = f"sqlite:///{tmp_path / 'headwater.db'}"
    with running(
        tmp_path, "serve", HEADWATER_DATABASE_URL=url, HEADWATER_PIPELINE_CONCURRENCY="0"
    ) as address:
        tab.size(320, 640)
        wide = []
        for path in PAGES:
            tab.goto(address + path)
            if tab.evaluate("document.documentElement.scrollWidth") > 320:
                wide.append(path)
    assert wide == []
