"""What a newcomer sees within ten seconds of opening the demo: rhythm, plans, trouble, a pipeline, an outlet, items."""

import time

from playwright.sync_api import Page, expect


def test_demo_shows_what_is_special_within_ten_seconds(page: Page, demo_address: str) -> None:
    begin = time.monotonic()
    page.goto(demo_address)
    expect(page.get_by_text("3 things need your attention")).to_be_visible()
    expect(page.get_by_role("link", name="Weather Buoy").first).to_be_visible()
    expect(page.locator(".chart svg .fill").first).to_be_attached()
    page.goto(f"{demo_address}/sources/2")
    expect(page.locator("#why")).to_contain_text("items a day")
    assert page.locator(".heat .h4").count() >= 1, "the hours it publishes in"
    assert page.locator(".lanes .v").count() >= 1, "visits that found something"
    page.goto(f"{demo_address}/runs")
    expect(page.get_by_role("row").filter(has_text="completed").first).to_be_visible()
    page.goto(f"{demo_address}/outlets")
    expect(page.get_by_text("Rivers and harbours")).to_be_visible()
    page.goto(f"{demo_address}/items")
    expect(page.locator("[data-item]").first).to_be_visible()
    assert time.monotonic() - begin < 10
