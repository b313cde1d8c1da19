"""From the demo to a source of one's own that calls a webhook, by nothing but what the screen says."""

import json
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from headwater.language import Language
from tests.browser.conftest import in_language, opened, running
from tests.origin import Origin, Received


@pytest.fixture(scope="module")
def demo_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A demo of one's own, for things are added to it."""
    with running(tmp_path_factory.mktemp("newcomer"), "demo", "--weeks", "1") as address:
        yield address


@pytest.mark.parametrize("language", ["en", "zh"])
def test_from_the_demo_to_a_webhook_of_ones_own(
    chromium: Browser, demo_address: str, publisher: Origin, language: Language
) -> None:
    t = in_language(language)
    titles = ["The harbour opens"]

    def feed(request: Received) -> str:
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        items = "".join(
            f"<item><guid>{number}</guid><title>{title}</title><pubDate>{date}</pubDate></item>"
            for number, title in reversed(list(enumerate(titles)))
        )
        return f"<rss version='2.0'><channel><title>My blog {language}</title>{items}</channel></rss>"

    publisher.route(f"/mine/{language}/feed.xml", feed)
    site = publisher.route(
        f"/mine/{language}/",
        body=f'<!doctype html><title>Mine</title><link rel="alternate" type="application/rss+xml"'
        f' href="/mine/{language}/feed.xml">',
        content_type="text/html",
    )
    hook = publisher.route(f"/my-hook/{language}", body="ok", content_type="text/plain")

    def delivered() -> list[str]:
        return [
            json.loads(each.body)["content_item"]["title"]
            for each in publisher.requests
            if each.path == f"/my-hook/{language}"
        ]

    with opened(chromium, language) as page:
        page.goto(demo_address)
        page.get_by_role("link", name=t("Add source")).first.click()
        page.get_by_role("searchbox").fill(site)
        page.get_by_role("button", name=t("Find feeds")).click()
        page.get_by_role("button", name=t("Add source")).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"My blog {language}")
        source = page.url
        # The source's page leads to a pipeline for it; its list is longer once there is one.
        page.locator(f"a[href='/pipelines?source={source.rpartition('/')[2]}']").click()
        page.get_by_role("link", name=t("Call a webhook")).click()
        page.get_by_label(t("Name"), exact=True).fill(f"Tell me {language}")
        steps = page.locator("textarea[name=steps]")
        page.get_by_role("button", name=t("Save")).click()
        expect(page.get_by_role("alert")).to_contain_text("YOUR.HOST")
        steps.fill(steps.input_value().replace("https://YOUR.HOST/hook", hook))
        page.get_by_role("button", name=t("Save")).click()
        expect(page.locator("#sources li")).to_contain_text(f"My blog {language}")
        page.get_by_role("button", name=t("Try it with the newest item")).click()
        expect(page.locator(".run .badge")).to_have_text(t("completed"))
        assert delivered() == ["The harbour opens"]
        # Something new: the page shows it without being loaded again, and it is sent.
        titles.append("The lighthouse is lit")
        page.goto(source)
        page.get_by_role("button", name=t("Visit now")).click()
        expect(page.get_by_role("link", name="The lighthouse is lit")).to_be_visible()
        page.locator(f"a[href='/runs?source={source.rpartition('/')[2]}']").click()
        row = page.get_by_role("row").filter(has_text="The lighthouse is lit")
        expect(row).to_contain_text(t("completed"))
    assert delivered() == ["The harbour opens", "The lighthouse is lit"]
