"""Sitemaps as sources: what is new or modified becomes items, and a bad day of the publisher's is not news."""

import contextlib
import gzip
from pathlib import Path
from typing import Any

import pytest

from headwater.collectors import sitemap_pages, sitemap_survey
from headwater.collectors.base import FetchRequest, FetchResult, read_config
from headwater.collectors.sitemap import SitemapCollector, SitemapConfig
from headwater.collectors.sitemap_pages import title_from_url
from headwater.config import load_settings
from headwater.errors import FailureKind, InputError, VisitError
from headwater.fetch.client import make_fetcher
from headwater.formats.sitemaps.ledger import Ledger
from headwater.model import Source
from tests.origin import Answer, Origin

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
OLD, NEWER = "2024-05-01", "2024-06-01"


def urlset(*urls: str, lastmod: str | None = OLD, **others: str) -> str:
    """A sitemap; a URL may be followed by its own date after a space."""
    entries = ""
    for url in urls:
        place, _, date = url.partition(" ")
        date = date or (lastmod or "")
        entries += f"<url><loc>{place}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</url>"
    return f"<urlset {NAMESPACE}>{entries}</urlset>"


def index(*urls: str) -> str:
    entries = ""
    for url in urls:
        place, _, date = url.partition(" ")
        entries += f"<sitemap><loc>{place}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</sitemap>"
    return f"<sitemapindex {NAMESPACE}>{entries}</sitemapindex>"


class Visitor:
    """Visits one source again and again, as the engine does: the memory of one visit goes to the next."""

    def __init__(self, tmp_path: Path, url: str, **config: Any) -> None:
        self.settings = load_settings(
            directory=tmp_path,
            environment={"HEADWATER_ALLOW_HOSTS": "127.0.0.1", "HEADWATER_HOST_SPACING_SECONDS": "0"},
        )
        self.url = url
        self.config = config
        self.memory: bytes | None = None
        self.stored: set[str] = set()

    async def visit(self) -> FetchResult:
        config = read_config(SitemapConfig, self.config, "web.sitemap")

        async def known(ids: Any) -> set[str]:
            return self.stored & set(ids)

        async with make_fetcher(self.settings) as fetcher:
            source = Source(1, "map", "web.sitemap", self.url)
            result = await SitemapCollector().collect(
                FetchRequest(source, config, fetcher, self.memory, known)
            )
        if result.memory is not None:
            self.memory = result.memory
        self.stored |= {item.external_id for item in result.items}
        return result

    async def news(self) -> list[str]:
        return sorted(item.external_id.rpartition("/")[2] for item in (await self.visit()).items)


@pytest.fixture
def pages(origin: Origin) -> Origin:
    origin.otherwise(Answer(b"<html><title>A page</title><p>text</p></html>", content_type="text/html"))
    origin.route("/robots.txt", status=404)
    return origin


async def test_the_newest_pages_become_items_with_what_they_say(pages: Origin, tmp_path: Path) -> None:
    page = pages.route(
        "/a",
        body="<html lang=fr><head><title>Ignored</title><meta property='og:title' content='Le titre'>"
        "<meta name=description content='Un &lt;b&gt;'><meta property=article:published_time"
        " content='2020-03-03T00:00:00Z'></head><body><main>Le texte</main></body></html>",
        content_type="text/html",
    )
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=urlset(page), etag='"1"'))
    (item,) = (await visitor.visit()).items
    assert (item.external_id, item.url, item.title, item.language) == (page, page, "Le titre", "fr")
    assert item.summary == "Un &lt;b&gt;"
    assert (item.published_at, item.updated_at) == (1583193600.0, 1714521600.0)
    second = await visitor.visit()
    assert (second.unchanged, second.items, second.requests) == (True, (), 1)


async def test_the_first_visit_takes_the_newest_and_the_rest_as_seen(pages: Origin, tmp_path: Path) -> None:
    urls = [f"{pages.url('/p')}{n} 2024-01-{n:02}" for n in range(1, 29)]
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=urlset(*urls)))
    assert await visitor.news() == sorted(f"p{n}" for n in range(19, 29))
    assert len([request for request in pages.requests if request.path.startswith("/p")]) == 10
    pages.requests.clear()
    pages.route("/map.xml", body=urlset(*urls[:-1], f"{pages.url('/p28')} 2024-02-01", pages.url("/new")))
    assert await visitor.news() == ["new", "p28"]
    assert sorted(request.path for request in pages.requests) == ["/map.xml", "/new", "/p28"]
    assert await visitor.news() == []


async def test_the_secrets_of_a_source_go_to_its_own_origin_alone(pages: Origin, tmp_path: Path) -> None:
    with Origin() as elsewhere:
        elsewhere.otherwise(Answer(b"<title>A page</title>", content_type="text/html"))
        elsewhere.route("/robots.txt", status=404)
        child = elsewhere.route("/child.xml", body=urlset(elsewhere.url("/theirs"), pages.url("/ours")))
        visitor = Visitor(
            tmp_path,
            pages.route("/map.xml", body=index(child)),
            headers={"X-Key": "k3y"},
            cookies={"session": "c00kie"},
            bearer_token="t0ken",
        )
        assert await visitor.news() == ["ours", "theirs"]
        assert {request.path for request in elsewhere.requests} >= {"/child.xml", "/theirs"}
        for request in elsewhere.requests:
            assert not {"x-key", "cookie", "authorization"} & set(request.headers), request.path
        (ours,) = pages.received("/ours")
        assert (ours.headers["x-key"], ours.headers["authorization"]) == ("k3y", "Bearer t0ken")


@pytest.mark.timeout(10)
def test_patterns_take_no_time_whatever_a_site_makes_up() -> None:
    wanted = sitemap_survey.Wishes(include=("a*a*a*a*a*b",), exclude=("/x*/y",)).filter()
    assert not any(wanted(f"https://e.org/{'a' * 4_000}") for _ in range(100))
    assert wanted("https://e.org/aaaaab")
    assert not wanted("https://e.org/aaaaab/x/1/y")
    assert not wanted(f"https://e.org/{'a' * 10_000}b")  # no address is as long as that


async def test_modes_and_patterns(pages: Origin, tmp_path: Path) -> None:
    first = urlset(pages.url("/blog/a"), pages.url("/shop/b"))
    later = urlset(
        f"{pages.url('/blog/a')} {NEWER}", pages.url("/shop/b"), pages.url("/blog/c"), pages.url("/blog/x/d")
    )
    for config, at_first, then in (
        ({}, ["a", "b"], ["a", "c", "d"]),
        ({"mode": "new"}, ["a", "b"], ["c", "d"]),
        ({"include": ["/blog/"]}, ["a"], ["a", "c", "d"]),
        ({"include": ["/blog/"], "exclude": ["/blog/*/d"]}, ["a"], ["a", "c"]),
    ):
        visitor = Visitor(tmp_path, pages.route("/map.xml", body=first), **config)
        assert await visitor.news() == at_first
        pages.route("/map.xml", body=later)
        assert await visitor.news() == then
    with pytest.raises(InputError, match="mode"):
        read_config(SitemapConfig, {"mode": "old"}, "web.sitemap")


async def test_other_wishes_start_again_without_repeating_what_is_stored(
    pages: Origin, tmp_path: Path
) -> None:
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=urlset(pages.url("/a"), pages.url("/b"))))
    visitor.config = {"include": ["/a"]}
    assert await visitor.news() == ["a"]
    visitor.config = {}
    assert await visitor.news() == ["b"]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=500),
        Answer(urlset()),
        Answer(urlset("http://x.example/1", "http://x.example/2")[:-30]),
        Answer(b"<html>Sorry</html>"),
        Answer(urlset("http://x.example/1") * 3, fault="cut-body"),
        Answer(gzip.compress(urlset("http://x.example/1").encode())[:-12]),
    ],
    ids=["failing", "empty", "half", "page", "cut", "half-zipped"],
)
async def test_a_bad_sitemap_says_nothing(pages: Origin, tmp_path: Path, answer: Answer) -> None:
    good = urlset(*(f"{pages.url('/p')}{n}" for n in range(20)))
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=good, etag='"1"'))
    await visitor.visit()
    memory = visitor.memory
    pages.route("/map.xml", answer)
    with contextlib.suppress(VisitError):
        assert (await visitor.visit()).items == ()
    assert visitor.memory == memory
    pages.route(
        "/map.xml", body=good.replace("</urlset>", f"<url><loc>{pages.url('/q')}</loc></url></urlset>")
    )
    assert await visitor.news() == ["q"]


async def test_an_address_that_comes_back_is_not_new(pages: Origin, tmp_path: Path) -> None:
    urls = [f"{pages.url('/p')}{n}" for n in range(20)]
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=urlset(*urls)))
    await visitor.visit()
    pages.route("/map.xml", body=urlset(*urls[:3]))
    assert await visitor.news() == []
    pages.route("/map.xml", body=urlset(*urls, pages.url("/q")))
    assert await visitor.news() == ["q"]


async def test_one_date_on_everything_is_a_generators(pages: Origin, tmp_path: Path) -> None:
    urls = [f"{pages.url('/p')}{n}" for n in range(20)]
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=urlset(*urls)))
    await visitor.visit()
    pages.route("/map.xml", body=urlset(*urls, pages.url("/q"), lastmod=NEWER))
    assert await visitor.news() == ["q"]


# -- indexes -----------------------------------------------------------------------------------------------


async def test_only_children_that_moved_are_fetched(pages: Origin, tmp_path: Path) -> None:
    children = [pages.route(f"/child{n}", body=urlset(pages.url(f"/p{n}")), etag='"1"') for n in range(4)]

    def publish(moved: str) -> None:
        dates = (moved, OLD, "", "")
        pages.route(
            "/map.xml", body=index(*(f"{c} {d}".strip() for c, d in zip(children, dates, strict=True)))
        )

    publish(OLD)
    visitor = Visitor(tmp_path, pages.url("/map.xml"))
    assert await visitor.news() == ["p0", "p1", "p2", "p3"]
    pages.requests.clear()
    assert await visitor.news() == []
    # The undated are asked, with their own validators; the dated ones not at all.
    assert [request.path for request in pages.requests] == ["/map.xml", "/child2", "/child3"]
    assert all(request.headers["if-none-match"] == '"1"' for request in pages.requests[1:])
    publish(NEWER)
    for number in (0, 1, 3):
        pages.route(f"/child{number}", body=urlset(pages.url(f"/p{number}"), pages.url(f"/q{number}")))
    pages.requests.clear()
    assert await visitor.news() == ["q0", "q3"]
    assert "/child1" not in [request.path for request in pages.requests]


async def test_an_unchanged_index_still_shows_what_its_undated_children_gain(
    pages: Origin, tmp_path: Path
) -> None:
    child = pages.route("/child", body=urlset(pages.url("/1")))
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=index(child), etag='"same"'))
    assert await visitor.news() == ["1"]
    pages.route("/child", body=urlset(pages.url("/1"), pages.url("/2")))
    assert await visitor.news() == ["2"]


async def test_a_date_that_never_moves_is_found_out(
    pages: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = pages.route("/child", body=urlset(pages.url("/1")))
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=index(f"{child} {OLD}")))
    await visitor.visit()
    pages.route("/child", body=urlset(pages.url("/1"), pages.url("/2")))
    assert await visitor.news() == []
    monkeypatch.setattr(sitemap_survey, "RECHECK_SECONDS", 0.0)
    assert await visitor.news() == ["2"]


async def test_a_bad_child_spoils_nothing_unless_all_are(pages: Origin, tmp_path: Path) -> None:
    good = pages.route("/good", body=urlset(pages.url("/1")))
    bad = pages.route("/bad", status=500)
    html = pages.route("/html", body="<html></html>", content_type="text/html")
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=index(bad, good, html)))
    assert await visitor.news() == ["1"]
    # What a child lists that could not be had at first is taken for seen; what a new child lists is new.
    pages.route("/bad", body=urlset(pages.url("/2"), pages.url("/3")))
    assert await visitor.news() == []
    pages.route("/bad", body=urlset(pages.url("/2"), pages.url("/3"), pages.url("/4")))
    later = pages.route("/later", body=urlset(pages.url("/5")))
    pages.route("/map.xml", body=index(bad, good, later))
    assert await visitor.news() == ["4", "5"]
    with pytest.raises(VisitError):
        await Visitor(
            tmp_path, pages.route("/worse", body=index(pages.route("/bad", status=500), html))
        ).visit()


async def test_an_index_may_be_nested_but_not_for_ever(pages: Origin, tmp_path: Path) -> None:
    leaf = pages.route("/leaf.xml.gz", body=gzip.compress(urlset(pages.url("/1")).encode()))
    middle = pages.route("/middle", body=index(leaf))
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=index(middle, pages.url("/map.xml"))))
    assert await visitor.news() == ["1"]
    for depth in range(10):
        pages.route(f"/deep{depth}", body=index(pages.url(f"/deep{depth + 1}")))
    pages.requests.clear()
    await Visitor(tmp_path, pages.url("/deep0")).visit()
    assert len(pages.requests) == sitemap_survey.MAX_DEPTH + 1


async def test_what_does_not_fit_into_one_visit_has_its_turn_in_the_next(
    pages: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitemap_survey, "MAX_DOCUMENTS", 3)
    children = [pages.route(f"/child{n}", body=urlset(pages.url(f"/p{n}"))) for n in range(4)]
    visitor = Visitor(
        tmp_path, pages.route("/map.xml", body=index(*(f"{child} {OLD}" for child in children)))
    )
    assert len(await visitor.news()) == 2
    assert await visitor.news() == []
    assert visitor.memory is not None
    assert Ledger.from_bytes(visitor.memory).count() == 4


# -- where the sitemaps are --------------------------------------------------------------------------------


async def test_a_sites_sitemaps_are_found_by_its_robots_txt(pages: Origin, tmp_path: Path) -> None:
    pages.route("/one.xml", body=urlset(pages.url("/1")))
    pages.route("/two.txt", body=f"{pages.url('/2')}\n{pages.url('/3')}\n", content_type="text/plain")
    pages.route("/robots.txt", body=f"Sitemap: /one.xml\nSitemap: {pages.url('/two.txt')}\n")
    visitor = Visitor(tmp_path, pages.url("/"))
    assert await visitor.news() == ["1", "2", "3"]
    pages.requests.clear()
    assert await visitor.news() == []
    assert [request.path for request in pages.requests] == ["/one.xml", "/two.txt"]


async def test_or_at_the_usual_places(pages: Origin, tmp_path: Path) -> None:
    pages.route("/blog", body="<html></html>", content_type="text/html")
    pages.route("/sitemap.xml", status=404)
    pages.route(
        "/sitemap_index.xml",
        body=f"<rss><channel><item><link>{pages.url('/1')}</link><title>One</title></item></channel></rss>",
    )
    assert await Visitor(tmp_path, pages.url("/blog")).news() == ["1"]
    pages.otherwise(Answer(status=404))
    pages.route("/sitemap_index.xml", status=404)
    with pytest.raises(VisitError) as caught:
        await Visitor(tmp_path, pages.url("/")).visit()
    assert caught.value.kind is FailureKind.NOT_A_FEED


async def test_a_site_that_moves_repeats_nothing(pages: Origin, tmp_path: Path) -> None:
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=urlset(pages.url("/1"))))
    await visitor.visit()
    visitor.url = pages.route("/new.xml", body=urlset(pages.url("/1"), pages.url("/2")))
    assert await visitor.news() == []
    pages.route("/new.xml", body=urlset(pages.url("/1"), pages.url("/2"), pages.url("/3")))
    assert await visitor.news() == ["3"]


# -- pages -------------------------------------------------------------------------------------------------


async def test_a_bad_page_spoils_only_itself(pages: Origin, tmp_path: Path) -> None:
    pages.route("/gone", status=410)
    pages.route("/slow-day", status=503)
    pages.route("/robots.txt", body="User-agent: *\nDisallow: /private\n")
    urls = ("/good", "/gone", "/slow-day", "/private-letter")
    body = urlset(*map(pages.url, urls), "http://[bad", "mailto:x")
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=body))
    titles = {item.title for item in (await visitor.visit()).items}
    assert titles == {"A page", "slow day", "private letter"}
    assert pages.received("/private-letter") == []
    assert await visitor.news() == []


async def test_no_more_pages_than_allowed_are_read(
    pages: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=urlset(pages.url("/0"))))
    await visitor.visit()
    monkeypatch.setattr(sitemap_pages, "MAX_PAGES", 5)
    monkeypatch.setattr("headwater.collectors.sitemap.MAX_PAGES", 5)
    pages.route("/map.xml", body=urlset(*(f"{pages.url('/p')}{n}" for n in range(30))))
    pages.requests.clear()
    result = await visitor.visit()
    assert (len(result.items), len(pages.requests), result.requests) == (30, 6, 6)
    quiet = Visitor(tmp_path, pages.url("/map.xml"), fetch_pages=False)
    pages.requests.clear()
    assert len((await quiet.visit()).items) == 10
    assert len(pages.requests) == 1


async def test_smart_mode_looks_at_the_text_of_a_few(
    pages: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitemap_pages, "SMART_CHECKS", 3)

    def text(name: str, words: str) -> None:
        body = f"<nav>{len(pages.requests)}</nav><main>{words}</main><script>{len(pages.requests)}</script>"
        pages.route(f"/{name}", body=body, content_type="text/html")

    for number in range(6):
        text(f"p{number}", "the text")
    urls = [f"{pages.url('/p')}{n}" for n in range(6)]
    visitor = Visitor(
        tmp_path, pages.route("/map.xml", body=urlset(*urls, lastmod=None), etag='"1"'), mode="smart"
    )
    assert len(await visitor.news()) == 6
    text("p1", "another text")
    text("p5", "the text")
    pages.requests.clear()
    changed = await visitor.news() + await visitor.news()
    assert changed == ["p1"]
    assert len(pages.requests) == 2 + 2 * 3, "a few of the pages in each visit"
    # A lastmod that moved without the text is not a modification.
    pages.route("/map.xml", body=urlset(*urls, lastmod=OLD))
    await visitor.visit()
    pages.route("/map.xml", body=urlset(f"{urls[0]} {NEWER}", f"{urls[2]} {NEWER}", *urls[3:]))
    text("p2", "a third text")
    assert await visitor.news() == ["p2"]


async def test_damaged_memory_starts_again(pages: Origin, tmp_path: Path) -> None:
    visitor = Visitor(tmp_path, pages.route("/map.xml", body=urlset(pages.url("/1"), pages.url("/2"))))
    await visitor.visit()
    assert visitor.memory is not None
    visitor.memory = visitor.memory[:-3]
    pages.route("/map.xml", body=urlset(pages.url("/1"), pages.url("/2"), pages.url("/3")))
    assert await visitor.news() == ["3"]


@pytest.mark.parametrize(
    ("url", "title"),
    [
        ("https://one.example/blog/2024/hello-context.html", "hello context"),
        ("https://one.example/%E4%BD%A0%E5%A5%BD/", "你好"),
        ("https://one.example/", "one.example"),
        ("https://one.example/a_b", "a b"),
    ],
)
def test_titles_from_addresses(url: str, title: str) -> None:
    assert title_from_url(url) == title
