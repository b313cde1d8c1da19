"""Feeds are found by rules, on pages and at the usual places, and checked before they are listed."""

import tomllib
from pathlib import Path

import pytest

from headwater.collectors.recognition import recognise, rules_from
from headwater.collectors.types import is_type
from headwater.errors import InputError
from headwater.formats.pages import rules as rules_module
from headwater.formats.pages.rules import AddressRules
from headwater.sources.adding import read_new_source
from headwater.sources.discovery import MAX_CHECKED, FoundFeed, discover, look_up
from tests.fetch import door
from tests.origin import Origin

OWN_RULES = Path(rules_module.__file__).with_name("rules.toml").read_text(encoding="utf-8")
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
    own, ruled, actor = await find(origin, "/@ann")
    assert (own.url, own.how, own.problem) == (origin.url("/own"), "link", None)
    assert (ruled.url, ruled.how) == (origin.url("/@ann.rss"), "rule")
    assert "404" in (ruled.problem or "")
    assert (actor.type, actor.problem is None) == ("api.activitypub", False)


async def test_discover_rule_without_working_feed_or_page_lists_the_dead_feed(origin: Origin) -> None:
    ruled, actor = await find(origin, "/@ann")
    assert (actor.type, actor.problem is None) == ("api.activitypub", False)
    assert ruled.url == origin.url("/@ann.rss")
    assert len(origin.received("/@ann.rss")) == 1


async def test_discover_feed_itself_says_so_and_names_its_hub(origin: Origin) -> None:
    origin.route("/feed", body=FEED, headers={"Link": "<https://hub.example/>; rel=hub"})
    (found,) = await find(origin, "/feed")
    assert found == FoundFeed(
        origin.url("/feed"), "One", None, checked=True, items=1, hub="https://hub.example/"
    )


LOOKUP = """
[[rule]]
name = "podcast"
title = "Podcast"
paths = ["/podcast/{id}"]
texts = ["pod:{id}"]
page = "%(origin)s/podcast/{id}"
lookup = { url = "%(origin)s/lookup?id={id}", feed = "results[?feedUrl].feedUrl | [0]" }
"""


@pytest.mark.parametrize("pasted", ["pod:7", "/podcast/7"])
async def test_discover_rule_with_lookup_reads_the_feed_from_the_document(
    origin: Origin, pasted: str
) -> None:
    rules = AddressRules.read(LOOKUP % {"origin": origin.url("")})
    body = f'{{"resultCount": 1, "results": [{{"kind": "x"}}, {{"feedUrl": "{origin.url("/feed")}"}}]}}'
    origin.route("/lookup?id=7", body=body, content_type="application/json")
    origin.route("/feed", body=FEED)
    async with door() as fetcher:
        text = pasted if pasted.startswith("pod") else origin.url(pasted)
        (found,) = await discover(text, fetcher, rules=rules)
    assert (found.url, found.how, found.items) == (origin.url("/feed"), "rule", 1)
    assert origin.received("/podcast/7") == []


async def test_discover_page_that_names_a_feed_of_a_known_site_offers_its_choices(origin: Origin) -> None:
    rules = AddressRules.read(
        f"""
        [[rule]]
        name = "videos"
        title = "Videos"
        paths = ["/videos.xml?channel={{id}}", "/videos.xml?short={{id}}"]
        [[rule.offers]]
        title = "All"
        url = "{origin.url("/videos.xml")}?channel={{id}}"
        [[rule.offers]]
        title = "Short"
        zh = "短"
        url = "{origin.url("/videos.xml")}?short={{id}}"
        """
    )
    origin.route("/@ann/home", body=link("/videos.xml?channel=1"), content_type="text/html")
    for query in ("channel=1", "short=1"):
        origin.route(f"/videos.xml?{query}", body=FEED)
    async with door() as fetcher:
        found = await discover(origin.url("/@ann/home"), fetcher, rules=rules, language="zh")
    assert [(each.url.partition("?")[2], each.choice) for each in found] == [
        ("channel=1", "All"),
        ("short=1", "短"),
    ]


async def test_look_up_page_without_feed_offers_to_watch_it(origin: Origin) -> None:
    origin.route("/", body="<p>prices</p>", content_type="text/html")
    async with door() as fetcher:
        (found,) = await look_up(origin.url("/"), fetcher)
    assert (found.how, found.type, found.config) == ("watch", "web.scraper", {"watch": True, "item": "body"})
    assert read_new_source(found.url, found.type, found.config).type.name == "web.scraper"


def test_rules_of_the_operators_file_stand_before_ours_and_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    rule = '[[rule]]\nname="a"\ntitle="A"\ntexts=["r/{n}"]\n[[rule.offers]]\nurl="https://%s.example/{n}"\n'
    file.write_text(rule % "one")
    assert recognise("r/python", rules_from(file)).url == "https://one.example/python"
    file.write_text(rule % "other")
    assert recognise("r/python", rules_from(file)).url == "https://other.example/python"
    with pytest.raises(InputError, match="cannot read"):
        rules_from(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("pasted", "type_name", "url", "is_page"),
    [
        ("r/python", "api.reddit", "https://www.reddit.com/r/python/hot/", False),
        ("yt:@ann", "rss.feed", "https://www.youtube.com/@ann", True),
        ("itunes:12", "rss.feed", "https://podcasts.apple.com/podcast/id12", True),
        ("@ann@social.example", "rss.feed", "https://social.example/@ann", True),
        ("gh:ann/lib", "rss.feed", "https://github.com/ann/lib/releases.atom", False),
        ("https://bridge.example/?action=display&bridge=A", "rss.feed", None, False),
        ("me.example/@ann", "rss.feed", "https://me.example/@ann", True),
    ],
)
def test_read_new_source_pasted_text_is_understood(
    pasted: str, type_name: str, url: str | None, is_page: bool
) -> None:
    wanted = read_new_source(pasted)
    expected = url or "https://bridge.example/?action=display&bridge=A&format=Atom"
    assert (wanted.type.name, wanted.url, wanted.is_page) == (type_name, expected, is_page)


def test_every_type_that_rules_offer_is_there() -> None:
    """An offer of a type that is not known is left out without a word: a plugin may bring it. Ours must be there."""
    offered = {
        offer["type"]
        for rule in tomllib.loads(OWN_RULES)["rule"]
        for offer in rule.get("offers", ())
        if "type" in offer
    }
    assert sorted(name for name in offered if not is_type(name)) == []
