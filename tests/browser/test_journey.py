"""A newcomer's whole way, in either language: from an address to a source, a pipeline, a webhook and a feed."""

import json
import time
from pathlib import Path

import feedparser
import pytest
from playwright.sync_api import Browser, Page, expect

from headwater.language import Language
from tests.browser.conftest import Words, in_language, opened
from tests.origin import Origin, Received


class Newsroom:
    """A site whose front page names its feed, which grows."""

    def __init__(self, origin: Origin, name: str) -> None:
        self.name = name
        self.titles = [f"{name} opens", f"{name} finds a map"]
        self.feed = origin.route(f"/{name}/feed.xml", self._render)
        self.page = origin.route(
            f"/{name}/",
            body=f'<!doctype html><title>{name}</title><link rel="alternate" type="application/rss+xml"'
            f' href="/{name}/feed.xml" title="{name} news">',
            content_type="text/html",
        )

    def _render(self, request: Received) -> str:
        items = "".join(
            f"<item><guid>{self.name}-{number}</guid><title>{title}</title><link>{self.page}{number}</link>"
            f"<pubDate>{time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime())}</pubDate>"
            f"<description>About the river: {title}</description></item>"
            for number, title in reversed(list(enumerate(self.titles)))
        )
        return f"<rss version='2.0'><channel><title>{self.name} news</title>{items}</channel></rss>"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_from_an_address_to_a_webhook(
    chromium: Browser, address: str, publisher: Origin, language: Language, tmp_path: Path
) -> None:
    t = in_language(language)
    newsroom = Newsroom(publisher, f"harbour{language}")
    hook = publisher.route(f"/hook/{language}", body="ok", content_type="text/plain")
    with opened(chromium, language) as page:
        add_a_source(page, address, newsroom, t)
        steer_it(page, newsroom, t)
        import_a_list(page, address, publisher, tmp_path, t)
        build_a_pipeline(page, address, newsroom, hook, t)
        watch_a_run(page, address, newsroom, t)
        publish_an_outlet(page, address, newsroom, t)
    delivered = [json.loads(each.body) for each in publisher.requests if each.path == f"/hook/{language}"]
    assert f"{newsroom.name} goes quiet" in {each["content_item"]["title"] for each in delivered}


def add_a_source(page: Page, address: str, newsroom: Newsroom, t: Words) -> None:
    page.goto(f"{address}/sources")
    page.get_by_role("link", name=t("Add source")).first.click()
    page.get_by_role("searchbox").fill(newsroom.page)
    page.get_by_role("button", name=t("Find feeds")).click()
    expect(page.get_by_role("checkbox", name=f"{newsroom.name} news")).to_be_checked()
    expect(page.get_by_text(f"{newsroom.name} finds a map")).to_be_visible()  # before anything is stored
    page.get_by_role("button", name=t("Add source")).click()
    expect(page.get_by_role("status")).to_contain_text(f"{newsroom.name} news")
    expect(page.get_by_role("link", name=f"{newsroom.name} opens")).to_be_visible()


def ask_for_a_visit(page: Page, t: Words) -> None:
    """And wait for the answer: a page closed or left on its way to it may never say so, or never ask."""
    page.get_by_role("button", name=t("Visit now")).click()
    expect(page.get_by_role("status")).to_have_text(t("it is visited at once"))


def steer_it(page: Page, newsroom: Newsroom, t: Words) -> None:
    assert page.locator("#why").inner_text().strip()
    source = page.url
    newsroom.titles.append(f"{newsroom.name} asks for help")
    ask_for_a_visit(page, t)
    # The overview shows what has come in without being loaded again.
    page.get_by_role("link", name=t("Overview")).click()
    expect(page.get_by_role("link", name=f"{newsroom.name} asks for help")).to_be_visible()
    page.evaluate("window.stillHere = true")
    newsroom.titles.append(f"{newsroom.name} breaks a record")
    other = page.context.new_page()
    other.goto(source)
    ask_for_a_visit(other, t)
    other.get_by_role("button", name=t("Pause")).click()
    expect(other.get_by_role("status")).to_have_text(t("paused"))
    other.get_by_role("button", name=t("Resume")).click()
    expect(other.get_by_role("status")).to_have_text(t("resumed"))
    ask_for_a_visit(other, t)
    other.close()
    expect(page.get_by_role("link", name=f"{newsroom.name} breaks a record")).to_be_visible()
    assert page.evaluate("window.stillHere") is True
    page.get_by_role("link", name=t("Read"), exact=True).first.click()
    page.get_by_role("searchbox").first.fill(f'"{newsroom.name} finds"')
    page.keyboard.press("Enter")
    expect(page.locator("[data-item]")).to_have_count(1)
    page.get_by_role("link", name=f"{newsroom.name} finds a map").click()
    expect(page.locator(".prose")).to_contain_text("About the river")


def import_a_list(page: Page, address: str, publisher: Origin, directory: Path, t: Words) -> None:
    feed = publisher.route(
        "/listed.xml", body="<rss version='2.0'><channel><title>Listed</title></channel></rss>"
    )
    opml = directory / "list.opml"
    opml.write_text(
        f'<opml version="2.0"><body><outline text="Folder"><outline text="Listed" xmlUrl="{feed}"/></outline>'
        '<outline text="bad" xmlUrl="no address"/></body></opml>'
    )
    page.goto(f"{address}/sources/add")
    page.locator("input[type=file]").set_input_files(opml)
    page.get_by_role("button", name=t("Import")).click()
    expect(page.locator("ol.items li")).to_have_count(2)
    expect(page.locator(".badge.bad")).to_have_text(t("rejected"))


def build_a_pipeline(page: Page, address: str, newsroom: Newsroom, hook: str, t: Words) -> None:
    page.goto(f"{address}/pipelines")
    page.get_by_role("link", name=t("Call a webhook")).click()
    steps = page.locator("textarea[name=steps]")
    name = f"Hook of {newsroom.name}"
    page.get_by_label(t("Name"), exact=True).fill(name)
    wrong = [{"step_type": "filter_content", "config": {"wrong": 1}}]
    page.get_by_text(t("Edit as JSON")).click()
    steps.fill(json.dumps(wrong))
    page.get_by_role("button", name=t("Save")).click()
    expect(page.get_by_role("alert")).to_contain_text("1 (filter_content)")
    expect(page.get_by_role("alert")).to_contain_text("config.wrong")
    assert json.loads(steps.input_value()) == wrong
    steps.fill(
        json.dumps(
            [
                {"step_type": "filter_content", "config": {"include_keywords": ["river"]}},
                {"step_type": "publish_content", "config": {"target": "webhook", "url": hook, "secret": "s"}},
            ]
        )
    )
    page.get_by_role("button", name=t("Save")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    assert "***" in steps.input_value()
    page.get_by_role("button", name=t("Save")).click()  # the stars stand for what is stored
    expect(page.get_by_role("status")).to_have_text(t("saved"))
    option = page.locator("select[name=source] option", has_text=f"{newsroom.name} news")
    page.locator("select[name=source]").select_option(value=option.get_attribute("value"))
    page.get_by_role("button", name=t("Attach"), exact=True).click()
    expect(page.locator("#sources li")).to_contain_text(f"{newsroom.name} news")


def watch_a_run(page: Page, address: str, newsroom: Newsroom, t: Words) -> None:
    page.locator("#sources").get_by_role("link", name=f"{newsroom.name} news").click()
    newsroom.titles.append(f"{newsroom.name} goes quiet")
    ask_for_a_visit(page, t)
    page.get_by_role("link", name=t("Runs"), exact=True).first.click()
    row = page.get_by_role("row").filter(has_text=f"{newsroom.name} goes quiet")
    expect(row).to_contain_text(t("completed"))  # the list renews itself
    row.get_by_role("rowheader").get_by_role("link").click()
    expect(page.locator(".run-steps > li")).to_have_count(2)
    expect(page.locator(".gantt rect")).to_have_count(2)
    expect(page.locator("#output-1")).to_contain_text('"target": "webhook"')
    page.get_by_role("button", name=t("Retry from here")).last.click()
    expect(page.get_by_role("status")).to_have_text(t("it begins again at step {number}", number=2))
    expect(page.locator(".run .badge")).to_have_text(t("completed"))
    # By hand, for an item that was there before.
    page.goto(f"{address}/items")
    page.get_by_role("link", name=f"{newsroom.name} opens").click()
    page.locator("select[name=template]").select_option(label=f"Hook of {newsroom.name}")
    page.get_by_role("button", name=t("Run a pipeline")).click()
    expect(page.locator(".run .badge")).to_have_text(t("completed"))


def publish_an_outlet(page: Page, address: str, newsroom: Newsroom, t: Words) -> None:
    page.goto(f"{address}/outlets")
    page.get_by_role("link", name=t("New outlet")).first.click()
    page.locator("input[name=name]").fill(newsroom.name)
    page.locator("input[name=search]").fill(newsroom.name)
    expect(page.locator("#preview")).to_contain_text(f"{newsroom.name} finds a map")
    page.get_by_role("button", name=t("Save")).click()
    card = page.locator(f"[data-outlet='{newsroom.name}']")
    path = card.get_by_role("link", name="RSS").get_attribute("href")
    feed = feedparser.parse(f"{address}{path}")
    assert not feed.bozo
    assert f"{newsroom.name} finds a map" in [entry.title for entry in feed.entries]
