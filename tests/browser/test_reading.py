"""Reading: articles open beside the list by mouse and by key; on a phone and without scripts, on their own page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import opened


@pytest.fixture
def reading(page: Page, demo_address: str) -> Iterator[Page]:
    page.goto(f"{demo_address}/items?folder=Harbour")
    expect(page.locator("[data-item]").first).to_be_visible()
    yield page


def title(page: Page, place: int) -> str:
    return page.locator("[data-item]").nth(place).locator(".ttl").inner_text()


def test_keys_open_the_next_and_the_previous_article(reading: Page) -> None:
    heading = reading.locator("#article h1")
    reading.keyboard.press("j")
    expect(heading).to_have_text(title(reading, 0))
    reading.keyboard.press("j")
    expect(heading).to_have_text(title(reading, 1))
    reading.keyboard.press("k")
    expect(heading).to_have_text(title(reading, 0))
    reading.keyboard.press("n")
    expect(heading).to_have_text(title(reading, 0))
    reading.keyboard.press("o")
    expect(heading).to_have_text(title(reading, 1))
    assert "item=" in reading.url
    reading.reload()
    expect(heading).to_have_text(title(reading, 1))


def test_next_article_is_there_within_100_ms(reading: Page) -> None:
    reading.keyboard.press("j")
    expect(reading.locator("#article h1")).to_be_visible()
    reading.wait_for_timeout(1_000)  # in which the next one is fetched ahead
    took = reading.evaluate(
        """async () => {
            const article = document.getElementById("article");
            const begin = performance.now();
            const changed = new Promise((done) => new MutationObserver(done).observe(article, { childList: true }));
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
            await changed;
            return performance.now() - begin;
        }"""
    )
    assert took < 100


def test_keys_can_be_turned_off(reading: Page) -> None:
    reading.keyboard.press("?")
    expect(reading.locator("dialog")).to_be_visible()
    reading.locator("[data-keys-on]").uncheck()
    reading.keyboard.press("Escape")
    reading.keyboard.press("j")
    expect(reading.locator("#article h1")).to_have_count(0)
    reading.keyboard.press("/")
    expect(reading.get_by_role("searchbox")).not_to_be_focused()


def test_search_has_the_keys_to_itself(reading: Page) -> None:
    reading.keyboard.press("/")
    expect(reading.get_by_role("searchbox")).to_be_focused()
    reading.keyboard.type("jn")
    expect(reading.get_by_role("searchbox")).to_have_value("jn")


def test_phone_opens_articles_on_their_own_page(chromium: Browser, demo_address: str) -> None:
    with opened(chromium, viewport={"width": 390, "height": 844}, has_touch=True) as page:
        page.goto(f"{demo_address}/items")
        page.locator("[data-item]").first.tap()
        page.wait_for_url("**/items/*")
        expect(page.get_by_role("article")).to_be_visible()


def test_articles_can_be_read_without_scripts(chromium: Browser, demo_address: str) -> None:
    with opened(chromium, java_script_enabled=False) as page:
        page.goto(f"{demo_address}/items")
        page.locator("[data-item]").first.click()
        expect(page.get_by_role("article")).to_be_visible()
