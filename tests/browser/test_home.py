"""The dashboard as a person sees it: items arrive without a reload, in both languages, also on a phone."""

import re

from playwright.sync_api import Browser, Page, expect


def count(page: Page) -> int:
    found = re.search(r"([\d,]+) in all", page.locator(".kpis").inner_text())
    assert found
    return int(found[1].replace(",", ""))


def test_items_arrive_without_a_reload(page: Page, demo_address: str) -> None:
    page.goto(demo_address)
    expect(page.get_by_role("heading", name="Newest items")).to_be_visible()
    expect(page.locator("a[href^='/items/']").first).to_be_visible(timeout=20_000)
    before = count(page)
    page.evaluate("window.stillHere = true")
    page.wait_for_function(
        "before => Number(/([\\d,]+) in all/.exec(document.querySelector('.kpis').innerText)[1].replace(',', ''))"
        " > before",
        arg=before,
        timeout=30_000,
    )
    assert page.evaluate("window.stillHere") is True


def test_the_language_switch(page: Page, demo_address: str) -> None:
    page.goto(demo_address)
    page.locator(".rail summary").click()
    page.get_by_role("link", name="中文").click()
    expect(page.get_by_role("heading", name="最新条目")).to_be_visible()
    page.goto(demo_address)
    expect(page.get_by_role("heading", name="最新条目")).to_be_visible()
    page.locator(".rail summary").click()
    page.get_by_role("link", name="English").click()
    expect(page.get_by_role("heading", name="Newest items")).to_be_visible()


def test_a_phone_needs_no_sideways_scrolling(chromium: Browser, demo_address: str) -> None:
    page = chromium.new_page(viewport={"width": 360, "height": 740})
    page.goto(demo_address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()
