"""Every page: still while it loads, light, served by this site alone, wide enough for a phone and for 200 % zoom."""

import gzip
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Response

from headwater.language import Language
from tests.browser.conftest import opened
from tests.browser.furnished import PAGES
from tests.browser.test_accessibility import problems_of

MOST_SHIFT = 0.05
MOST_SCRIPT_BYTES = 150_000  # compressed
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
# A window of 1440 × 900 at 200 %.
ZOOMED: dict[str, Any] = {"viewport": {"width": 720, "height": 450}, "device_scale_factor": 2}
SHIFTS = (
    "window.shift = 0; new PerformanceObserver((list) => { for (const each of list.getEntries())"
    " if (!each.hadRecentInput) window.shift += each.value; }).observe({type: 'layout-shift', buffered: true})"
)
# What can be pressed on a page and is smaller than a finger; links within a text may be.
SMALL = """() => [...document.querySelectorAll("main button, main .button, .tabbar a, .tabbar summary, main select")]
  .filter((each) => each.checkVisibility() && !each.closest("details:not([open]) > :not(summary)"))
  .map((each) => [each, each.getBoundingClientRect()])
  .filter(([, box]) => box.width && (box.height < 43.5 || box.width < 43.5))
  .map(([each, box]) => `${Math.round(box.width)}×${Math.round(box.height)} ${each.outerHTML.slice(0, 90)}`)"""


def test_no_page_moves_weighs_much_or_asks_elsewhere(chromium: Browser, furnished: str) -> None:
    moved, heavy, elsewhere, open_policies = {}, {}, [], []
    with opened(chromium) as page:
        page.add_init_script(SHIFTS)
        scripts: list[int] = []

        def weigh(response: Response) -> None:
            if not response.url.startswith((furnished, "data:")):
                elsewhere.append(response.url)
            elif urlsplit(response.url).path.endswith(".js"):
                scripts.append(len(gzip.compress(response.body())))

        page.on("response", weigh)
        for path in PAGES:
            scripts.clear()
            answer = page.goto(furnished + path)
            assert answer is not None
            policy = answer.headers["content-security-policy"]
            if "default-src 'none'" not in policy or "unsafe" in policy or "script-src 'self'" not in policy:
                open_policies.append((path, policy))
            page.wait_for_timeout(400)
            if (shift := page.evaluate("window.shift")) > MOST_SHIFT:
                moved[path] = shift
            if sum(scripts) > MOST_SCRIPT_BYTES:
                heavy[path] = sum(scripts)
    assert (moved, heavy, elsewhere, open_policies) == ({}, {}, [], [])


def widths(page: Page, address: str, width: int) -> list[str]:
    """The pages that have to be scrolled sideways."""
    wide = []
    for path in PAGES:
        page.goto(address + path)
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(path)
    return wide


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_page_scrolls_sideways_zoomed_to_200_percent(
    chromium: Browser, furnished: str, language: Language
) -> None:
    with opened(chromium, language, **ZOOMED) as page:
        assert widths(page, furnished, 720) == []


def test_fingers_can_press_what_is_there(chromium: Browser, furnished: str) -> None:
    small = {}
    with opened(chromium, **PHONE) as page:
        for path in PAGES:
            page.goto(furnished + path)
            if found := page.evaluate(SMALL):
                small[path] = found
    assert small == {}


@pytest.mark.parametrize(("scheme", "language"), [("light", "zh"), ("dark", "en")])
def test_axe_finds_nothing_on_a_phone(
    chromium: Browser, furnished: str, axe: str, scheme: str, language: Language
) -> None:
    found = []
    with opened(chromium, language, color_scheme=scheme, **PHONE) as page:
        for path in PAGES:
            page.goto(furnished + path)
            found += problems_of(page, axe)
    assert found == []
