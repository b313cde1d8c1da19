"""`headwater scrape`: shows what a page would give, and saves it when told to."""

from pathlib import Path

import pytest

from tests.collect.test_engine import rss
from tests.command import Headwater
from tests.formats.pages.test_scrape import page, trending
from tests.origin import Answer, Origin


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


def blog(origin: Origin, extra: str = "") -> str:
    body = page("blog").replace(b"</head>", extra.encode() + b"</head>")
    origin.route("/page/2", Answer(body=page("none"), content_type="text/html"))
    return origin.route("/blog", Answer(body=body, content_type="text/html", etag='"1"'))


def test_nothing_is_saved_unless_asked_for(headwater: Headwater, origin: Origin) -> None:
    shown = headwater.ok("scrape", blog(origin))
    assert "item: article.post" in shown
    assert "What we learnt about rivers, part 0" in shown
    assert "8 items in all" in shown
    assert "Nothing is saved." in shown
    assert headwater.json("source", "list") == []


def test_saved_it_is_a_source_like_any_other(headwater: Headwater, origin: Origin) -> None:
    url = blog(origin)
    report = headwater.json("scrape", url, "--yes", "--name", "Rivers")
    assert report["proposals"][0]["config"]["item"] == "article.post"
    assert report["source"]["type"] == "web.scraper"
    assert report["source"]["config"]["date"] == "time"
    assert len(headwater.json("items")) == 8
    # robots.txt, the page to look at, the page as a source, its older page: no request more.
    assert [request.path for request in origin.requests] == ["/robots.txt", "/blog", "/blog", "/page/2"]
    headwater.ok("collect", "--source", str(report["source"]["id"]))
    assert len(headwater.json("items")) == 8, "a second visit stores nothing new"


def test_trending_repositories_are_a_source(headwater: Headwater, origin: Origin) -> None:
    def show(*names: str, stars: int) -> None:
        origin.route("/trending/rust", Answer(body=trending(*names, stars=stars), content_type="text/html"))

    show("ann/river", "bob/lake", stars=7)
    url = origin.url("/trending")
    added = headwater.json("source", "add", url, "--type", "github_trending", "--config", "language=rust")
    assert (added["type"], added["name"]) == ("web.github_trending", "GitHub trending rust")
    show("ann/river", "eve/sea", stars=9)  # the next day, one of them is still there with more stars
    seen = len(origin.requests)
    report = headwater.json("collect", "--source", str(added["id"]))
    assert (report["items_new"], report["items_updated"]) == (1, 0)
    assert [request.path for request in origin.requests[seen:]] == ["/trending/rust"]
    assert sorted(item["title"] for item in headwater.json("items")) == ["ann/river", "bob/lake", "eve/sea"]


def test_json_alone_saves_nothing(headwater: Headwater, origin: Origin) -> None:
    assert headwater.json("scrape", blog(origin))["source"] is None
    assert headwater.json("source", "list") == []


def test_a_feed_is_named_first(headwater: Headwater, origin: Origin) -> None:
    url = blog(origin, '<link rel="alternate" type="application/atom+xml" href="/atom.xml">')
    first, *_ = headwater.ok("scrape", url).splitlines()
    assert first == (
        f"It has a feed, which is better than scraping: headwater source add {origin.url('/atom.xml')}"
    )
    feed = origin.route("/feed.xml", body=rss(1))
    assert "It is a feed itself" in headwater.ok("scrape", feed)


def test_a_page_with_nothing_says_so(headwater: Headwater, origin: Origin) -> None:
    url = origin.route("/", Answer(body=page("none"), content_type="text/html"))
    assert "nothing on the page looks like a list of items" in headwater.refused("scrape", url)
    url = blog(origin)
    code, _, err = headwater.run("scrape", url, "--choose", "9")
    assert (code, err) == (2, "error: there is no proposal 9; the page gives 1\n")
