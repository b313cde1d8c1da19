"""Operating works without scripts: every flow by links and forms alone, and by keyboard where a form is sent."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from headwater.language import Language
from tests.browser.conftest import Words, in_language, opened, running
from tests.browser.test_journey import Newsroom
from tests.origin import Origin

MOST_SECONDS = 30.0


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    allowed = {"HEADWATER_ALLOW_HOSTS": "127.0.0.1", "HEADWATER_HOST_SPACING_SECONDS": "0"}
    with running(tmp_path_factory.mktemp("plain"), "serve", COLLECTOR_TICK="1", **allowed) as address:
        yield address


def reload_until(page: Page, shown: Locator) -> None:
    """Nothing is updated: a person without scripts loads the page again."""
    until = time.monotonic() + MOST_SECONDS
    while not shown.count() and time.monotonic() < until:
        page.wait_for_timeout(300)
        page.reload()
    expect(shown.first).to_be_visible()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_operating_needs_no_scripts(
    chromium: Browser, address: str, publisher: Origin, language: Language, tmp_path: Path
) -> None:
    t = in_language(language)
    newsroom = Newsroom(publisher, f"plain{language}")
    hook = publisher.route(f"/plain-hook/{language}", body="ok", content_type="text/plain")
    with opened(chromium, language, java_script_enabled=False) as page:
        add_and_steer(page, address, newsroom, t)
        import_and_move(page, address, publisher, tmp_path, t, language)
        run_a_pipeline(page, address, newsroom, hook, t)
        publish_and_look_up(page, address, newsroom, t)
    delivered = [
        json.loads(each.body) for each in publisher.requests if each.path == f"/plain-hook/{language}"
    ]
    assert [each["content_item"]["title"] for each in delivered] == [f"{newsroom.name} closes"]


def add_and_steer(page: Page, address: str, newsroom: Newsroom, t: Words) -> None:
    page.goto(f"{address}/sources/add")
    page.get_by_role("searchbox").fill(newsroom.page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("checkbox", name=f"{newsroom.name} news")).to_be_checked()
    page.get_by_label(t("New folder")).first.fill(newsroom.name)
    page.get_by_role("button", name=t("Add source")).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{newsroom.name} news")
    assert page.locator("#why").inner_text().strip()
    newsroom.titles.append(f"{newsroom.name} asks for help")
    for verb, told in (("Pause", "paused"), ("Resume", "resumed"), ("Visit now", "it is visited at once")):
        page.get_by_role("button", name=t(verb)).first.click()
        expect(page.get_by_role("status")).to_have_text(t(told))
    reload_until(page, page.get_by_role("link", name=f"{newsroom.name} asks for help"))


def import_and_move(
    page: Page, address: str, publisher: Origin, directory: Path, t: Words, language: Language
) -> None:
    feed = publisher.route(
        f"/plain-list-{language}.xml",
        body=f"<rss version='2.0'><channel><title>Listed {language}</title></channel></rss>",
    )
    opml = directory / "list.opml"
    opml.write_text(
        f'<opml version="2.0"><body><outline text="Listed {language}" xmlUrl="{feed}"/></body></opml>'
    )
    page.goto(f"{address}/sources/add")
    page.locator("input[type=file]").set_input_files(opml)
    page.get_by_role("button", name=t("Import")).click()
    expect(page.locator("ol.items li")).to_have_count(1)
    page.goto(f"{address}/sources?search=Listed+{language}")
    page.locator("tbody input[type=checkbox]").first.check()
    page.get_by_text(t("Edit the ticked sources")).click()
    page.locator("input[name=new_folder]").fill(f"Moved {language}")
    page.locator("button[value=edit]").click()
    page.goto(f"{address}/sources?search=Listed+{language}")
    expect(page.locator("tbody tr").first).to_contain_text(f"Moved {language}")


def run_a_pipeline(page: Page, address: str, newsroom: Newsroom, hook: str, t: Words) -> None:
    page.goto(f"{address}/pipelines")
    page.get_by_role("link", name=t("Call a webhook")).click()
    page.get_by_label(t("Name"), exact=True).fill(f"Hook of {newsroom.name}")
    page.get_by_text(t("Edit as JSON")).click()
    steps = page.locator("textarea[name=steps]")
    steps.fill("[{]")
    page.get_by_role("button", name=t("Save")).click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert steps.input_value() == "[{]"
    config = {"target": "webhook", "url": hook, "secret": "s"}
    steps.fill(json.dumps([{"step_type": "publish_content", "config": config}]))
    page.get_by_role("button", name=t("Save")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Hook of {newsroom.name}")
    option = page.locator("select[name=source] option", has_text=f"{newsroom.name} news")
    page.locator("select[name=source]").select_option(value=option.get_attribute("value"))
    page.get_by_role("button", name=t("Attach"), exact=True).click()
    page.locator("#sources").get_by_role("link", name=f"{newsroom.name} news").click()
    newsroom.titles.append(f"{newsroom.name} closes")
    page.get_by_role("button", name=t("Visit now")).first.click()
    page.goto(f"{address}/runs?status=completed")
    row = page.get_by_role("row").filter(has_text=f"{newsroom.name} closes")
    reload_until(page, row)
    row.get_by_role("rowheader").get_by_role("link").click()
    expect(page.locator(".run-steps > li")).to_have_count(1)
    expect(page.locator("#output-0")).to_contain_text('"target": "webhook"')


def publish_and_look_up(page: Page, address: str, newsroom: Newsroom, t: Words) -> None:
    page.goto(f"{address}/outlets/new")
    page.locator("input[name=name]").fill(newsroom.name)
    page.locator("input[name=search]").fill(newsroom.name)
    page.get_by_role("button", name=t("Save")).click()
    expect(page.locator(f"[data-outlet='{newsroom.name}']")).to_be_visible()
    page.goto(f"{address}/items?search={newsroom.name}")
    page.get_by_role("link", name=f"{newsroom.name} opens").click()
    expect(page.get_by_role("article")).to_be_visible()
    for path in ("/", "/progress", "/settings", "/statistics", "/alerts", "/digests", "/users", "/api/docs"):
        answer = page.goto(address + path)
        assert answer is not None and answer.ok, path
        assert page.locator(".needs-script:visible").count() == 0, f"{path} offers what needs scripts"
