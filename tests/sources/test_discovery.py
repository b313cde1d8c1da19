"""Feeds are found by rules, on pages and at the usual places, and checked before they are listed."""

from headwater.sources.discovery import MAX_CHECKED, FoundFeed, discover
from tests.fetch import door
from tests.origin import Origin

FEED = '<rss version="2.0"><channel><title>One</title><item><guid>1</guid></item></channel></rss>'


async def find(origin: Origin, path: str) -> list[FoundFeed]:
    async with door() as fetcher:
        return await discover(origin.url(path), fetcher)


def link(href: str, title: str = "") -> str:
    return f'<link rel="alternate" type="application/rss+xml" title="{title}" href="{href}">'


async def test_discover_page_lists_working_feeds_before_dead_ones(origin: Origin) -> None:
    origin.route("/", body=link("/dead", "Dead") + link("/page") + link("/feed"), content_type="text/html")
    origin.route("/page", body="<p>no feed</p>", content_type="text/html")
    origin.route("/feed", body=FEED)
    working, *dead = await find(origin, "/")
    assert (working.url, working.title, working.items) == (origin.url("/feed"), "One", 1)
    assert [(each.title, each.problem is not None) for each in dead] == [("Dead", True), (None, True)]


async def test_discover_page_with_many_feeds_lists_the_rest_unchecked(origin: Origin) -> None:
    feeds = [f"/feed{number}" for number in range(MAX_CHECKED + 2)]
    origin.route("/", body="".join(map(link, feeds)), content_type="text/html")
    for feed in feeds:
        origin.route(feed, body=FEED)
    found = await find(origin, "/")
    assert [each.checked for each in found] == [True] * MAX_CHECKED + [False] * 2


async def test_discover_rule_without_working_feed_falls_back_to_page(origin: Origin) -> None:
    origin.route("/@ann", body=link("/own", "Own"), content_type="text/html")
    origin.route("/own", body=FEED)
    own, ruled = await find(origin, "/@ann")
    assert (own.url, own.how, own.problem) == (origin.url("/own"), "link", None)
    assert (ruled.url, ruled.how) == (origin.url("/@ann.rss"), "rule")
    assert "404" in (ruled.problem or "")


async def test_discover_rule_without_working_feed_or_page_lists_the_dead_feed(origin: Origin) -> None:
    (ruled,) = await find(origin, "/@ann")
    assert ruled.url == origin.url("/@ann.rss")
    assert len(origin.received("/@ann.rss")) == 1


async def test_discover_feed_itself_says_so_and_names_its_hub(origin: Origin) -> None:
    origin.route("/feed", body=FEED, headers={"Link": "<https://hub.example/>; rel=hub"})
    (found,) = await find(origin, "/feed")
    assert found == FoundFeed(
        origin.url("/feed"), "One", None, checked=True, items=1, hub="https://hub.example/"
    )
