"""A person who was invited: follows, reads, keeps, sorts by rules, takes lists in and out, and connects an app."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from headwater.store.core.database import Store
from headwater.store.people.marks import cleanup_read_later
from tests.acceptance.test_newsboat import NEWSBOAT, Newsboat, feed
from tests.browser.conftest import in_language, opened, running
from tests.browser.test_accounts import PASSWORD, button, fill, invite
from tests.origin import Answer, Origin

PATIENCE_SECONDS = 60.0
DAY = 86_400.0
PAGE = """<html><head><title>How rivers move</title>
<meta property="og:description" content="Meanders, and why they wander."></head>
<body><article><p>A river moves its bed a little every year.</p></article></body></html>"""
LISTED = """<opml version="2.0"><body><outline text="Colours"><outline text="Paint" xmlUrl="{0}"/></outline>
<outline text="Known" xmlUrl="{1}"/></body></opml>"""


@pytest.fixture
def publisher() -> Iterator[Origin]:
    with Origin() as origin:
        origin.route("/rivers", body=feed("Rivers", "rhine", "danube"))
        origin.route("/paint", body=feed("Paint", "red", "blue"))
        origin.route("/page", Answer(body=PAGE, content_type="text/html"))
        yield origin


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'headwater.db'}"


@pytest.fixture
def served(tmp_path: Path, database: str) -> Iterator[str]:
    with running(
        tmp_path,
        "serve",
        HEADWATER_DATABASE_URL=database,
        HEADWATER_PIPELINE_CONCURRENCY="0",
        COLLECTOR_TICK="1",
    ) as address:
        yield address


@pytest.fixture
def guest(chromium: Browser, served: str) -> Iterator[Page]:
    """A person who has just signed up by an invitation."""
    with opened(chromium) as admin, opened(chromium) as guest:
        guest.goto(invite(admin, served, in_language("en")))
        fill(guest, name="Li", password=PASSWORD, again=PASSWORD)
        button(guest, "Create account")
        expect(guest.get_by_role("link", name="Add a feed").first).to_be_visible()
        yield guest


def seen_after_a_while(page: Page, address: str, found: Locator) -> None:
    """Load a page again until the collector has done what it is to show."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        page.goto(address)
        if found.count():
            return
        assert time.monotonic() < deadline, page.content()[-3000:]
        page.wait_for_timeout(500)


def follow(page: Page, address: str, url: str) -> None:
    page.goto(f"{address}/read/add")
    page.get_by_label("Address of a site or feed").fill(url)
    button(page, "Follow")
    expect(page.get_by_role("status").first).to_contain_text("You follow")


def row(page: Page, title: str) -> Locator:
    return page.locator("[data-item]", has_text=title)


def test_reader_follows_reads_and_stars_and_read_later_expires(
    guest: Page, served: str, database: str, publisher: Origin
) -> None:
    follow(guest, served, publisher.url("/rivers"))
    seen_after_a_while(guest, f"{served}/read?view=all", row(guest, "rhine"))
    row(guest, "rhine").click()
    expect(guest.locator("#article h1")).to_have_text("rhine")
    guest.get_by_role("button", name="Add star").click()
    expect(row(guest, "rhine")).to_have_attribute("data-starred", "yes")
    row(guest, "danube").click()
    guest.keyboard.press("l")
    expect(row(guest, "danube")).to_have_attribute("data-later", "yes")
    guest.goto(f"{served}/read?view=starred")
    expect(guest.locator("[data-item]")).to_have_count(1)
    expect(row(guest, "rhine")).to_have_class("it")  # read
    for days, kept in ((6, 1), (8, 0)):
        with Store.open(database) as store, store.writing() as connection:
            cleanup_read_later(connection, time.time() + days * DAY)
        guest.goto(f"{served}/read?view=later")
        expect(guest.locator("[data-item]")).to_have_count(kept)


def test_bookmark_of_an_address_shows_what_its_page_says(guest: Page, served: str, publisher: Origin) -> None:
    guest.goto(f"{served}/bookmarks")
    guest.get_by_label("Address").fill(publisher.url("/page"))
    button(guest, "Keep")
    seen_after_a_while(guest, f"{served}/bookmarks", guest.get_by_role("link", name="How rivers move"))
    expect(guest.locator(".marks-list .ex")).to_have_text("Meanders, and why they wander.")
    guest.get_by_role("link", name="How rivers move").click()
    expect(guest.locator("article")).to_contain_text("moves its bed a little")


def test_rule_is_tried_and_saved(guest: Page, served: str, publisher: Origin) -> None:
    follow(guest, served, publisher.url("/rivers"))
    seen_after_a_while(guest, f"{served}/read?view=all", row(guest, "rhine"))
    guest.goto(f"{served}/rules")
    fill(guest, name="The Rhine", include_keywords="rhine")
    guest.get_by_label("Star", exact=True).check()
    button(guest, "Try on the last week")
    expect(guest.locator("#trial")).to_contain_text("would have matched 1 of 2 entries")
    expect(guest.get_by_label("Star", exact=True)).to_be_checked()
    button(guest, "Save")
    expect(guest.get_by_role("status").first).to_contain_text("The Rhine")
    expect(guest.locator("#rules")).to_contain_text("rhine")


def test_lists_of_feeds_go_in_and_out(guest: Page, served: str, publisher: Origin, tmp_path: Path) -> None:
    follow(guest, served, publisher.url("/rivers"))
    listed = tmp_path / "list.opml"
    listed.write_text(LISTED.format(publisher.url("/paint"), publisher.url("/rivers")))
    guest.goto(f"{served}/read/add")
    guest.locator("input[type=file]").set_input_files(listed)
    button(guest, "Import")
    expect(guest.locator("#imported")).to_contain_text("1 added, 1 known already, 0 rejected")
    with guest.expect_download() as download:
        guest.get_by_role("link", name="Export OPML").click()
    written = Path(download.value.path()).read_text(encoding="utf-8")
    assert publisher.url("/paint") in written and publisher.url("/rivers") in written
    assert 'text="Colours"' in written


@pytest.mark.skipif(
    NEWSBOAT is None and "CI" not in os.environ, reason="newsboat is missing: apt-get install newsboat"
)
def test_newsboat_connects_as_the_page_says(
    guest: Page, served: str, publisher: Origin, tmp_path: Path
) -> None:
    follow(guest, served, publisher.url("/rivers"))
    seen_after_a_while(guest, f"{served}/read?view=all", row(guest, "rhine"))
    guest.goto(f"{served}/connect")
    button(guest, "Make an app password")
    steps = guest.locator("details", has_text="newsboat")
    steps.locator("summary").click()
    expect(steps).to_contain_text("~/.newsboat/config")
    newsboat = Newsboat(tmp_path / "home", steps.locator("pre").inner_text())
    newsboat.reload()
    assert newsboat.items() == {"rhine": True, "danube": True}
    assert newsboat.feeds() == {"Rivers"}
    guest.goto(f"{served}/connect")
    expect(guest.locator(".marks-list")).to_contain_text("last used")
