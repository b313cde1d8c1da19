"""The first five minutes with only what the screen says: own feed, folder, full text, an outlet, a reader app."""

import json
import time
from collections.abc import Iterator
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import in_language, running
from tests.origin import Origin

FEED = """<rss version="2.0"><channel><title>My blog</title><item><guid>1</guid><title>The harbour opens</title>
<link>{page}</link><description>short</description></item></channel></rss>"""
ARTICLE = "<!doctype html><title>The harbour opens</title><article><h1>The harbour opens</h1>{text}</article>"
SENTENCE = (
    "The keeper of the harbour opened the gates this morning, and the ferries went out one after the other. "
)
MOST_SECONDS = 300


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    allowed = {"HEADWATER_ALLOW_HOSTS": "127.0.0.1", "HEADWATER_HOST_SPACING_SECONDS": "0"}
    with running(tmp_path_factory.mktemp("first-run"), "serve", COLLECTOR_TICK="1", **allowed) as address:
        yield address


def test_from_nothing_to_a_reader_app_in_five_minutes(page: Page, address: str, publisher: Origin) -> None:
    begin = time.monotonic()
    t = in_language("en")
    text = "".join(f"<p>{SENTENCE * 3}</p>" for _ in range(4))
    article = publisher.route("/1", body=ARTICLE.format(text=text), content_type="text/html")
    publisher.route("/feed.xml", body=FEED.format(page=article))
    site = publisher.route(
        "/",
        body='<link rel="alternate" type="application/rss+xml" href="/feed.xml">',
        content_type="text/html",
    )
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_have_text(t("What would you like to follow?"))
    page.get_by_role("searchbox").fill(site)
    page.get_by_role("button", name=t("Follow")).click()
    page.get_by_label(t("New folder")).first.fill("Mine")
    page.get_by_role("button", name=t("Add source")).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("My blog")

    page.get_by_role("link", name=t("Pipelines"), exact=True).first.click()
    entry = page.locator("#gallery li").filter(has_text=t("Full-text feed"))
    entry.locator("summary").click()
    entry.locator("select[name=folder]").select_option("Mine")
    entry.get_by_role("button").click()
    card = page.locator("[data-outlet=full-text-feed]")
    expect(card).to_contain_text("Mine")

    page.goto(f"{address}/pipelines")
    page.locator(".pipes a").first.click()
    page.get_by_role("button", name=t("Try it with the newest item")).click()
    expect(page.locator(".run .badge")).to_have_text(t("completed"))
    with urlopen(f"{address}/outlets/full-text-feed.xml") as answer:
        assert SENTENCE.strip() in answer.read().decode()

    page.goto(f"{address}/account")
    passwords = page.locator("#app-passwords")
    passwords.locator("input[name=name]").fill("phone")
    passwords.get_by_role("button", name=t("Make an app password")).click()
    secret = page.locator("code[id^=new-]").inner_text()
    assert unread(f"{address}/api/greader.php", secret) == 1
    assert time.monotonic() - begin < MOST_SECONDS


def unread(api: str, secret: str) -> int:
    """How many unread items a reader app is told."""
    form = urlencode({"Email": "admin", "Passwd": secret}).encode()
    with urlopen(f"{api}/accounts/ClientLogin", form) as answer:
        auth = next(line for line in answer.read().decode().splitlines() if line.startswith("Auth="))
    headers = {"Authorization": f"GoogleLogin auth={auth.removeprefix('Auth=')}"}
    asked = Request(f"{api}/reader/api/0/unread-count?output=json", headers=headers)
    with urlopen(asked) as answer:
        counts = {each["id"]: each["count"] for each in json.load(answer)["unreadcounts"]}
    return int(counts["feed/1"])
