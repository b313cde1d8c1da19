"""Pipelines are built from cards, by mouse and by keyboard; what the cards say is what is saved."""

import json

from playwright.sync_api import Page, expect

from tests.browser.conftest import in_language


def test_cards_build_a_pipeline(page: Page, demo_address: str) -> None:
    t = in_language("en")
    page.goto(f"{demo_address}/pipelines/new?example=keywords")
    text = page.locator("textarea[name=steps]")
    cards = page.locator("#steps-editor .step")
    expect(cards).to_have_count(2)
    page.get_by_label(t("Name"), exact=True).fill("By cards")
    cards.nth(0).get_by_label("Contains one of").fill("ferry\npier")
    cards.nth(0).get_by_label(t("Must succeed")).uncheck()
    page.get_by_label(t("Step types")).select_option("enrich_content")
    page.get_by_role("button", name=t("Add a step")).click()
    expect(cards).to_have_count(3)
    # By keyboard: the new step goes up, and the focus with it.
    cards.nth(2).get_by_role("button", name=t("Move up")).focus()
    page.keyboard.press("Enter")
    expect(cards.nth(1).get_by_role("heading")).to_have_text(t("Get full text"))
    page.keyboard.press("Enter")
    expect(cards.nth(0).get_by_role("heading")).to_have_text(t("Get full text"))
    cards.nth(0).get_by_role("button", name=t("Remove this step")).click()
    cards.nth(1).get_by_label("outlet", exact=False).last.fill("rivers")
    page.keyboard.press("Tab")
    written = json.loads(text.input_value())
    assert [step["step_type"] for step in written] == ["filter_content", "publish_content"]
    assert written[0]["config"]["include_keywords"] == ["ferry", "pier"]
    assert written[0]["is_critical"] is False
    page.get_by_role("button", name=t("Save")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("By cards")
    expect(cards.nth(0).get_by_label("Contains one of")).to_have_value("ferry\npier")


def test_steps_are_tried_with_what_each_gives_beside_it(page: Page, demo_address: str) -> None:
    t = in_language("en")
    page.goto(f"{demo_address}/pipelines/new?example=keywords")
    cards = page.locator("#steps-editor .step")
    cards.nth(0).get_by_label("Contains one of").fill("nothing says this")
    page.keyboard.press("Tab")
    page.get_by_role("button", name=t("Try on newest item")).click()
    expect(page.locator("#tried .badge").first).to_have_text(t("Would be filtered out"))
    expect(cards.nth(0).locator(".outp")).to_be_visible()
    expect(page.locator("#outline li")).to_have_count(2)


def test_json_that_is_broken_is_told_and_kept(page: Page, demo_address: str) -> None:
    page.goto(f"{demo_address}/pipelines/new?example=keywords")
    page.get_by_text("Edit as JSON").click()
    page.locator("textarea[name=steps]").fill("[{")
    expect(page.locator("#steps-editor .notice")).to_be_visible()
    assert page.locator("textarea[name=steps]").input_value() == "[{"
    page.locator("textarea[name=steps]").fill("[]")
    expect(page.locator("#steps-editor .step")).to_have_count(0)
