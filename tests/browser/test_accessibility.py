"""Every page can be used by people who see little or use no mouse, in both colour schemes, and on a phone."""

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from headwater.language import Language
from tests.browser.conftest import in_language, opened, running
from tests.browser.furnished import PAGES

Scheme = Literal["light", "dark"]
in_both = pytest.mark.parametrize(("scheme", "language"), [("light", "en"), ("dark", "zh")])


def problems_of(page: Page, axe: str) -> list[Any]:
    """What axe finds on the page as it is now."""
    page.evaluate(axe)  # given by the browser itself: the page's policy lets no script in
    result = page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        (page.url, each["id"], each["impact"], [node["html"][:200] for node in each["nodes"]][:3])
        for each in result["violations"]
    ]


@in_both
def test_axe_finds_nothing(
    chromium: Browser, furnished: str, axe: str, scheme: Scheme, language: Language
) -> None:
    found = []
    with opened(chromium, language, color_scheme=scheme) as page:
        for path in PAGES:
            page.goto(furnished + path)
            found += problems_of(page, axe)
    assert found == []


@in_both
def test_axe_finds_nothing_in_what_an_import_reports(
    chromium: Browser, furnished: str, axe: str, scheme: Scheme, language: Language, tmp_path: Path
) -> None:
    opml = tmp_path / "list.opml"
    opml.write_text(
        '<opml version="2.0"><body><outline text="Folder"><outline text="Listed" xmlUrl="https://a.example/f"/>'
        '<outline text="Known" xmlUrl="https://news.example/"/></outline><outline text="bad" xmlUrl="none"/>'
        "</body></opml>"
    )
    t = in_language(language)
    with opened(chromium, language, color_scheme=scheme) as page:
        page.goto(f"{furnished}/sources/add")
        page.locator("input[type=file]").set_input_files(opml)
        page.get_by_role("button", name=t("Import")).click()
        expect(page.locator(".badge.bad")).to_have_text(t("rejected"))
        assert problems_of(page, axe) == []


@in_both
def test_axe_finds_nothing_at_the_door(
    chromium: Browser, tmp_path: Path, axe: str, scheme: Scheme, language: Language
) -> None:
    t = in_language(language)
    with (
        running(tmp_path, "serve", HEADWATER_PASSWORD="a good password") as locked,
        opened(chromium, language, color_scheme=scheme) as page,
    ):
        page.goto(f"{locked}/sources")
        expect(page.get_by_role("heading", level=1)).to_have_text(t("Sign in"))
        assert problems_of(page, axe) == []
        page.get_by_label(t("Password or API key")).fill("a wrong one")
        page.get_by_role("button", name=t("Sign in")).click()
        expect(page.get_by_role("alert")).to_be_visible()
        assert problems_of(page, axe) == []
        page.get_by_label(t("Password or API key")).fill("a good password")
        page.get_by_role("button", name=t("Sign in")).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(t("Sources"))


def test_no_page_of_a_phone_needs_sideways_scrolling(chromium: Browser, furnished: str) -> None:
    with opened(chromium, viewport={"width": 320, "height": 640}) as page:
        wide = []
        for path in PAGES:
            page.goto(furnished + path)
            if page.evaluate("document.documentElement.scrollWidth") > 320:
                wide.append(path)
    assert wide == []


def test_the_keyboard_reaches_the_content_first(chromium: Browser, furnished: str) -> None:
    with opened(chromium) as page:
        page.goto(f"{furnished}/sources")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.url.endswith("#content")
