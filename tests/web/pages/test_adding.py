"""Adding from a page: what was found is chosen from, and a page without a feed is watched."""

import html
import re

from headwater.store.collecting.sources import list_sources
from headwater.store.core.database import Store
from headwater.web.policy import COPY_POLICY
from tests.origin import Origin
from tests.web.pages.conftest import Visitor

FEED = b"<rss version='2.0'><channel><title>News %d</title><item><guid>1</guid><title>x</title></item></channel></rss>"
PAGE = b"""<!doctype html><title>Ferry notices</title><script>alert(1)</script><main>
<div class=notice><h3><a href=/3>Route 4 runs hourly to Friday</a></h3><time>2026-11-16</time><p>Short text.</p></div>
<div class=notice><h3><a href=/2>Pier 2 is closed for dredging</a></h3><time>2026-11-14</time><p>Short text.</p></div>
<div class=notice><h3><a href=/1>The winter timetable is published</a></h3><time>2026-11-11</time></div></main>"""


def test_feeds_that_are_ticked_are_added_into_a_folder(local: Visitor, store: Store, origin: Origin) -> None:
    feeds = [origin.route(f"/feed{number}", body=FEED % number) for number in (1, 2)]
    site = origin.route(
        "/",
        body="".join(f'<link rel="alternate" type="application/rss+xml" href="{feed}">' for feed in feeds),
    )
    found = local.see(f"/sources/add?url={site}")
    assert re.findall(r'name="feed" value="([^"]+)"( checked)?', found) == [
        (feeds[0], " checked"),
        (feeds[1], ""),
    ]
    added = local.send("/sources/add", page="/sources/add", feed=feeds, new_folder="News")
    assert "added 2 sources" in added.text
    with store.reading() as connection:
        assert {(each.name, each.folder) for each in list_sources(connection)} == {
            ("News 1", "News"),
            ("News 2", "News"),
        }
    again = local.see(f"/sources/add?url={site}")
    assert again.count("subscribed already") == 2
    assert re.findall(r'name="feed"[^>]*( disabled)', again) == [" disabled"] * 2


def test_page_without_a_feed_is_offered_to_be_watched(local: Visitor, origin: Origin) -> None:
    page = origin.route("/notices", body=PAGE, content_type="text/html")
    found = local.see(f"/sources/add?url={page}")
    assert "has no feed" in found
    assert f"/sources/watch?url={page.replace(':', '%3A')}" in found


def test_watched_page_is_proposed_shown_and_added(local: Visitor, store: Store, origin: Origin) -> None:
    page = origin.route("/notices", body=PAGE, content_type="text/html")
    proposed = local.see(f"/sources/watch?url={page}")
    assert 'value="div.notice"' in proposed
    assert "Route 4 runs hourly to Friday" in proposed
    own = {"Sec-Fetch-Site": "same-origin"}
    copy = local.client.get("/sources/watch/page", params={"url": page}, headers=own)
    assert "<script" not in copy.text
    assert copy.headers["Content-Security-Policy"] == COPY_POLICY
    fields = {"url": page, "item": "div.notice", "title": "h3", "date": "time"}
    part = local.send("/sources/watch/items", page="/sources/add", **fields)
    assert '"date": 3' in html.unescape(part.text)
    wrong = local.send("/sources/watch/items", page="/sources/add", url=page, item="div[")
    assert "CSS selector" in wrong.text
    shown = local.send("/sources/watch", page="/sources/add", what="show", **fields)
    assert "Pier 2 is closed for dredging" in shown.text
    assert sum(each.path == "/notices" for each in origin.requests) == 1, (
        "it is kept while its parts are chosen"
    )
    added = local.send("/sources/watch", page="/sources/add", what="add", name="Ferry", **fields)
    assert added.url.path == "/sources/1"
    with store.reading() as connection:
        (source,) = list_sources(connection)
    assert (source.type, source.name, source.config["item"]) == ("web.scraper", "Ferry", "div.notice")


def test_page_is_watched_for_a_phrase_a_price_or_any_change(
    local: Visitor, store: Store, origin: Origin
) -> None:
    text = "<title>Lamp</title><main><h1>Lamp</h1><p id=price>Now 1,299.50 EUR</p><p>Sold out</p></main>"
    url = origin.route("/lamp", body=text, content_type="text/html")
    whole = local.see(f"/sources/watch?url={url}")
    assert re.search(r'name="watch" value="1" checked', whole), "no list is on the page: it is watched itself"
    assert "Now 1,299.50 EUR Sold out" in " ".join(whole.split())
    fields = {"url": url, "watch": "1", "watched": "#price", "number": "1"}
    costly = local.send("/sources/watch/items", page="/sources/add", below="1000", **fields)
    assert "not on the page yet" in costly.text
    cheap = local.send("/sources/watch/items", page="/sources/add", below="1300", **fields)
    assert "1299.5" in cheap.text
    wrong = local.send("/sources/watch", page="/sources/add", url=url, watch="1", below="9", what="add")
    assert (wrong.status_code, "number" in wrong.text) == (400, True)
    price = local.send("/sources/watch", page="/sources/add", what="add", below="1300", **fields)
    assert "added source" in price.text
    other = origin.route("/other", body=text, content_type="text/html")
    added = local.send(
        "/sources/watch", page="/sources/add", url=other, watch="1", says="in stock\n\n sold out ", what="add"
    )
    assert added.url.path == "/sources/2", added.text
    with store.reading() as connection:
        configs = [source.config for source in list_sources(connection)]
    assert configs == [
        {"watch": True, "item": "#price", "number": True, "below": 1300.0},
        {"watch": True, "says": ["in stock", "sold out"]},
    ]


def test_watching_needs_a_request_of_our_own_page(local: Visitor, origin: Origin) -> None:
    page = origin.route("/notices", body=PAGE, content_type="text/html")
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    for path in ("/sources/watch", "/sources/watch/page"):
        local.client.get(path, params={"url": page}, headers=elsewhere)
    assert origin.requests == []
    missing = local.send("/sources/watch", page="/sources/add", url=page, what="add")
    assert (missing.status_code, "say where the items are" in missing.text) == (400, True)


def test_all_sources_are_visited_and_the_progress_is_shown(local: Visitor, store: Store) -> None:
    opml = b"<opml version='2.0'><body><outline text='A' xmlUrl='https://a.example/f'/></body></opml>"
    imported = local.send("/sources/import", page="/sources/add", files={"file": ("a.opml", opml)})
    assert "of 1 visited" in imported.text
    told = local.send("/sources/refresh-all", page="/sources")
    assert told.url.path == "/progress"
    assert "1 source is visited now" in told.text
    assert "1 to go" in local.see("/progress/live")


def test_file_that_is_pasted_is_offered_shown_and_added(local: Visitor, store: Store, origin: Origin) -> None:
    url = origin.route("/list.csv", body="title,link\nOne,/1\nTwo,/2\n", content_type="text/csv")
    found = html.unescape(local.see(f"/sources/add?url={url}"))
    (offer,) = re.findall(r'name="feed" value="(\{.*?\})" checked', found)
    (preview,) = re.findall(r'data-load="(/sources/preview[^"]*)"', found)
    part = local.see(preview)
    assert "One" in part
    assert "Two" in part
    local.send("/sources/add", page="/sources/add", feed=[offer])
    with store.reading() as connection:
        (added,) = list_sources(connection)
    assert (added.type, added.url) == ("file.table", url)


def test_preview_sends_no_secret_and_shows_what_is_wrong(local: Visitor, origin: Origin) -> None:
    url = origin.route("/list.csv", body="title,link\nOne,/1\n", content_type="text/csv")
    own = {"Sec-Fetch-Site": "same-origin"}

    def preview(**fields: str) -> str:
        return local.client.get("/sources/preview", params={"url": url, **fields}, headers=own).text

    before = len(origin.requests)
    assert "One" not in preview(type="file.table", config='{"bearer_token": "${X}"}')
    assert len(origin.requests) == before
    assert "bad" in preview(type="file.table", config='{"title": "nothing"}')
    assert "bad" in preview(type="no.type")
    assert "bad" in preview(type="file.table", config="{")
    assert local.client.get("/sources/preview", params={"url": url, "type": "file.table"}).status_code == 403
