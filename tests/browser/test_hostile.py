"""Whatever publishers, lists and errors say, nothing of it runs: in a real browser, on every page."""

import html
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import opened, running
from tests.browser.furnished import PAGES, furnish
from tests.origin import Origin

EVIL = (
    "river \"'><script>window.__pwned=1</script><img src='' onerror=window.__pwned=1>"
    "<svg onload=window.__pwned=1></svg>{{ 7*7 }}</textarea><script>window.__pwned=1</script>"
)
EVIL_URL = "javascript:window.__pwned=1//https://news.example/"
# Set before anything of the page runs: tells on whatever the page's policy had to stop.
WATCH = (
    "window.__stopped = [];"
    "addEventListener('securitypolicyviolation', e => __stopped.push(e.violatedDirective + e.blockedURI))"
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("hostile")
    furnish(directory, text=EVIL, url=EVIL_URL)
    url = f"sqlite:///{directory / 'headwater.db'}"
    with running(directory, "serve", HEADWATER_DATABASE_URL=url, COLLECTOR_TICK="1") as address:
        yield address


def harmless(page: Page) -> None:
    """Nothing ran, nothing had to be stopped, and no link or handler waits for a click."""
    assert page.evaluate("window.__pwned") is None
    assert page.evaluate("window.__stopped") == []
    waiting = page.locator('[href^="javascript:"]:not([data-bookmarklet]), [onerror], [onload]')
    assert waiting.count() == 0
    ours = page.locator("[data-bookmarklet]").evaluate_all(
        "all => all.map((each) => each.getAttribute('href'))"
    )
    assert all(href.startswith("javascript:location.href='http://127.0.0.1:") for href in ours)
    assert page.locator("script:not([src])").count() == 0


def test_what_is_stored_does_not_run(chromium: Browser, hostile: str) -> None:
    with opened(chromium) as page:
        page.add_init_script(WATCH)
        for path in PAGES:
            page.goto(hostile + path)
            harmless(page)
        for path in ("/live", "/runs/live", "/runs/1/live", "/sources/1/what-if"):
            page.goto(hostile + path)
            harmless(page)


def test_what_a_feed_a_list_or_an_error_says_does_not_run(
    chromium: Browser, hostile: str, publisher: Origin, tmp_path: Path
) -> None:
    said = html.escape(EVIL)
    feed = publisher.route(
        "/feed.xml",
        body=f"<rss version='2.0'><channel><title>{said}</title><item><guid>{said}</guid><title>{said}</title>"
        f"<link>{html.escape(EVIL_URL)}</link><description>{said}</description></item></channel></rss>",
    )
    opml = tmp_path / "list.opml"
    opml.write_text(
        f'<opml version="2.0"><body><outline text="{said}"><outline text="{said}" xmlUrl="{html.escape(EVIL_URL)}"/>'
        f'<outline text="{said}" xmlUrl="{publisher.url("/gone")}?{html.escape("<script>window.__pwned=1</script>")}"/>'
        "</outline></body></opml>"
    )
    publisher.route("/gone", status=404, body=EVIL, headers={"X": "<script>"})
    with opened(chromium) as page:
        page.add_init_script(WATCH)
        page.goto(f"{hostile}/sources/add?url={feed}")
        harmless(page)
        page.locator("form[method=post] button").first.click()
        expect(page.get_by_role("status")).to_be_visible()
        harmless(page)
        page.goto(f"{hostile}/sources/add")
        page.locator("input[type=file]").set_input_files(opml)
        page.get_by_role("button", name="Import", exact=True).click()
        expect(page.locator("ol.items li")).to_have_count(2)
        harmless(page)
        for path in ("/", "/sources?state=failing", "/items"):
            page.goto(hostile + path)
            harmless(page)
        # A pipeline whose mistakes repeat what was typed.
        page.goto(f"{hostile}/pipelines/new")
        page.locator("details.json summary").click()
        page.locator("textarea[name=steps]").fill(f'[{{"step_type": {EVIL!r}}}]')
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_be_visible()
        harmless(page)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/outlets/..%2f..%2fetc%2fpasswd.xml",
        "/outlets/%2e%2e.xml",
    ],
)
def test_no_path_leads_out_of_the_house(hostile: str, path: str) -> None:
    host, _, port = hostile.removeprefix("http://").rpartition(":")
    # A raw request: a client that tidies the path up would ask for something else.
    request = urllib.request.Request(f"http://{host}:{port}")
    request.selector = path
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == 404
    caught.value.close()
