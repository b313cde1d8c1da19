"""Every page can be used by those who see little or use no mouse, in both colour schemes, and on a phone."""

from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser

from headwater.language import Language
from tests.browser.conftest import opened, running
from tests.browser.furnished import PAGES, furnish


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("furnished")
    furnish(directory)
    # Nothing is collected: the pages stand still while they are looked at.
    url = f"sqlite:///{directory / 'headwater.db'}"
    with running(
        directory, "serve", HEADWATER_DATABASE_URL=url, HEADWATER_PIPELINE_CONCURRENCY="0"
    ) as address:
        yield address


@pytest.mark.parametrize(("scheme", "language"), [("light", "en"), ("dark", "zh")])
def test_axe_finds_nothing_serious(
    chromium: Browser, address: str, axe: str, scheme: Literal["light", "dark"], language: Language
) -> None:
    found = []
    with opened(chromium, language, color_scheme=scheme) as page:
        for path in PAGES:
            page.goto(address + path)
            page.evaluate(axe)  # given by the browser itself: the page's policy lets no script in
            result = page.evaluate("axe.run({resultTypes: ['violations']})")
            found += [
                (path, each["id"], each["impact"], [node["html"][:200] for node in each["nodes"]][:3])
                for each in result["violations"]
                if each["impact"] in ("serious", "critical")
            ]
    assert found == []


def test_no_page_of_a_phone_needs_sideways_scrolling(chromium: Browser, address: str) -> None:
    with opened(chromium, viewport={"width": 360, "height": 740}) as page:
        wide = []
        for path in PAGES:
            page.goto(address + path)
            if page.evaluate("document.documentElement.scrollWidth") > 360:
                wide.append(path)
    assert wide == []


def test_the_keyboard_reaches_the_content_first(chromium: Browser, address: str) -> None:
    with opened(chromium) as page:
        page.goto(f"{address}/sources")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.url.endswith("#content")
