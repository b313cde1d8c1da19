"""A page without a feed is watched: by pointing at its parts, by keyboard, and without any script."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import in_language, opened, running
from tests.origin import Origin

PAGE = b"""<!doctype html><title>Ferry notices</title><script>document.title = 'ran'</script>
<nav><ul><li><a href=/a>Home</a></li><li><a href=/b>Routes</a></li></ul></nav><main>
<div class=notice><h3><a href=/3>Route 4 runs hourly to Friday</a></h3><time>2026-11-16</time><p>Short text.</p></div>
<div class=notice><h3><a href=/2>Pier 2 is closed for dredging</a></h3><time>2026-11-14</time><p>Short text.</p></div>
<div class=notice><h3><a href=/1>The winter timetable is published</a></h3><time>2026-11-11</time></div></main>"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    allowed = {"HEADWATER_ALLOW_HOSTS": "127.0.0.1", "HEADWATER_HOST_SPACING_SECONDS": "0"}
    with running(tmp_path_factory.mktemp("watched"), "serve", COLLECTOR_TICK="1", **allowed) as address:
        yield address


def find_no_feed(page: Page, address: str, publisher: Origin, path: str) -> None:
    t = in_language("en")
    notices = publisher.route(path, body=PAGE, content_type="text/html")
    page.goto(f"{address}/sources/add")
    page.get_by_role("searchbox").fill(notices)
    page.get_by_role("button", name=t("Find feeds")).click()
    page.get_by_role("link", name=t("Watch this page")).click()
    expect(page.get_by_label(t("Each item"), exact=True)).to_have_value("div.notice")


def test_parts_are_picked_on_the_page_itself(page: Page, address: str, publisher: Origin) -> None:
    t = in_language("en")
    find_no_feed(page, address, publisher, "/picked")
    copy = page.frame_locator("iframe")
    expect(copy.locator("[data-picked=item]")).to_have_count(3)
    assert copy.locator("body").evaluate("() => document.title") != "ran"
    title = page.get_by_label(t("Title"), exact=True)
    title.fill("")
    page.locator("[data-pick=title]").click()
    place = copy.get_by_text("Pier 2 is closed").bounding_box()
    assert place is not None
    page.mouse.click(place["x"] + 10, place["y"] + 6)
    expect(title).to_have_value("a")
    expect(page.locator("#count-title")).to_have_text(t("{count} of {all}", count=3, all=3))
    # By keyboard: from the first item into its first part, and to the one beside it.
    date = page.get_by_label(t("Date"), exact=True)
    date.fill("")
    page.locator("[data-pick=date]").focus()
    page.keyboard.press("Enter")
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(date).to_have_value("time")
    expect(page.locator("#would li").first).to_contain_text("Route 4 runs hourly to Friday")
    page.get_by_role("button", name=t("Watch this page")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ferry notices")
    expect(page.get_by_role("link", name="Pier 2 is closed for dredging")).to_be_visible()


def test_page_is_watched_without_script(chromium: Browser, address: str, publisher: Origin) -> None:
    t = in_language("en")
    with opened(chromium, java_script_enabled=False) as page:
        find_no_feed(page, address, publisher, "/plain")
        page.get_by_label(t("Title"), exact=True).fill("h3")
        page.get_by_role("button", name=t("Show the items")).click()
        expect(page.locator("#would li")).to_have_count(3)
        page.get_by_label(t("Name"), exact=True).fill("Plain notices")
        page.get_by_role("button", name=t("Watch this page")).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Plain notices")
        # A pipeline, an outlet and a bulk move: all are forms.
        page.goto(f"{address}/sources")
        page.get_by_role("checkbox", name="Plain notices").check()
        page.get_by_text(t("Edit the ticked sources")).click()
        page.get_by_label(t("New folder")).fill("Piers")
        page.locator("form.has-bulk").get_by_role("button", name=t("Save")).click()
        expect(page.get_by_role("status")).to_contain_text("1 source")
        page.goto(f"{address}/outlets/new")
        page.locator("input[name=name]").fill("plain")
        page.get_by_role("checkbox", name="Piers").check()
        page.get_by_role("button", name=t("Save")).click()
        expect(page.locator("[data-outlet=plain]")).to_contain_text("Piers")
        page.goto(f"{address}/pipelines")
        page.get_by_role("link", name=t("Full text")).click()
        page.get_by_text(t("Edit as JSON")).click()
        page.locator("textarea[name=steps]").fill('[{"step_type": "enrich_content", "config": {}}]')
        page.get_by_role("button", name=t("Save")).click()
        page.locator("select[name=folder]").select_option("Piers")
        page.get_by_role("button", name=t("Attach"), exact=True).click()
        expect(page.locator("#sources li")).to_contain_text("Piers")


def test_rows_of_sources_are_walked_and_ticked_by_keys(page: Page, demo_address: str) -> None:
    page.goto(f"{demo_address}/sources")
    page.locator("tbody th a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    expect(page.locator("tbody input:checked")).to_have_count(2)
    expect(page.locator("[data-ticked]")).to_have_text("2")
    assert not page.locator("tbody input").first.is_checked()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#why")).to_be_visible()


def test_pages_do_not_shift_after_they_are_shown(page: Page, demo_address: str) -> None:
    page.add_init_script(
        "window.shift = 0; new PerformanceObserver((list) => { for (const each of list.getEntries())"
        " if (!each.hadRecentInput) window.shift += each.value; }).observe({type: 'layout-shift', buffered: true});"
    )
    shifts = {}
    for path in (
        "/",
        "/sources",
        "/sources/2",
        "/pipelines",
        "/pipelines/1",
        "/runs",
        "/outlets",
        "/settings",
    ):
        page.goto(demo_address + path)
        page.wait_for_timeout(1_200)  # what the page renews automatically is a part of it
        shifts[path] = page.evaluate("window.shift")
    assert {path: shift for path, shift in shifts.items() if shift > 0.05} == {}
