"""Pages as sources: by selectors, by their own feed, with the site's consent, and loud when they change."""

from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.collectors.base import FetchRequest, FetchResult, read_config
from headwater.collectors.github_trending import TrendingCollector, trending_url
from headwater.collectors.scraper import ScraperCollector, ScraperConfig
from headwater.config import load_settings
from headwater.errors import FailureKind, InputError, VisitError
from headwater.fetch.client import Fetcher, make_fetcher
from headwater.model import Source
from headwater.sources.adding import read_new_source
from tests.collect.test_engine import rss
from tests.formats.pages.test_scrape import trending
from tests.origin import Answer, Origin

SELECTORS = {"item": "li", "title": "a", "next": "a.next"}


@pytest.fixture
async def fetcher(tmp_path: Path) -> AsyncIterator[Fetcher]:
    settings = load_settings(
        directory=tmp_path,
        environment={"HEADWATER_ALLOW_HOSTS": "127.0.0.1,localhost", "HEADWATER_HOST_SPACING_SECONDS": "0"},
    )
    async with make_fetcher(settings) as opened:
        yield opened


class Visitor:
    """A source that is visited again and again."""

    def __init__(self, fetcher: Fetcher, url: str, type_name: str = "web.scraper", **config: Any) -> None:
        self.fetcher = fetcher
        self.collector = ScraperCollector() if type_name == "web.scraper" else TrendingCollector()
        self.source = Source(1, "page", type_name, url, config)
        self.memory: bytes | None = None
        self.known: set[str] = set()

    async def visit(self) -> FetchResult:
        async def known(ids: Sequence[str]) -> set[str]:
            return self.known & set(ids)

        config = read_config(self.collector.config_model, self.source.config, self.source.type)
        result = await self.collector.collect(
            FetchRequest(self.source, config, self.fetcher, self.memory, known)
        )
        self.source = replace(self.source, validators=result.validators)
        self.memory = result.memory or self.memory
        self.known |= {item.external_id for item in result.items}
        return result


def listing(*numbers: int, following: str | None = None) -> str:
    items = "".join(f'<li><a href="/story/{n}">Story {n}</a></li>' for n in numbers)
    return f"<title>Stories</title><ul>{items}</ul>" + (
        f'<a class="next" href="{following}">older</a>' if following else ""
    )


def html(body: str | bytes, **more: Any) -> Answer:
    return Answer(body=body, content_type="text/html", **more)


async def test_a_second_visit_costs_one_request_and_no_parsing(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/", html(listing(1, 2, 3), etag='"1"'))
    page = Visitor(fetcher, url, **SELECTORS)
    first = await page.visit()
    assert [item.title for item in first.items] == ["Story 1", "Story 2", "Story 3"]
    assert first.items[0].url == origin.url("/story/1")
    assert first.metadata.title == "Stories"
    assert (await page.visit()).unchanged
    assert [request.path for request in origin.requests] == ["/robots.txt", "/", "/"]


async def test_older_pages_are_read_until_something_is_known(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/", html(listing(9, 8, 7, following="?page=2")))
    origin.route("/?page=2", html(listing(6, 5, 4, following="?page=3")))
    origin.route("/?page=3", html(listing(3, 2, 1, following="?page=2")))  # a circle
    page = Visitor(fetcher, url, **SELECTORS)
    first = await page.visit()
    assert [item.title for item in first.items] == [f"Story {n}" for n in range(9, 0, -1)]
    assert first.requests == 3
    origin.route("/", html(listing(10, 9, 8, following="?page=2")))
    second = await page.visit()
    assert (second.requests, len(second.items)) == (1, 3)
    limited = Visitor(fetcher, url, **SELECTORS, max_pages=2)
    assert (await limited.visit()).requests == 2


async def test_a_bad_older_page_does_not_cost_the_first(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/", html(listing(9, following="/old")))
    origin.route("/old", status=500)
    assert len((await Visitor(fetcher, url, **SELECTORS).visit()).items) == 1


async def test_robots_are_obeyed(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/robots.txt", body="User-agent: *\nDisallow: /private\n", content_type="text/plain")
    url = origin.route("/private/list", html(listing(1)))
    with pytest.raises(VisitError) as caught:
        await Visitor(fetcher, url, **SELECTORS).visit()
    assert caught.value.kind is FailureKind.FORBIDDEN
    public = origin.route("/list", html(listing(1, following="/private/list")))
    assert (await Visitor(fetcher, public, **SELECTORS).visit()).requests == 1
    assert not origin.received("/private/list")


async def test_secrets_stay_with_the_site_they_are_for(origin: Origin, fetcher: Fetcher) -> None:
    elsewhere = origin.url("/old", host="localhost")
    url = origin.route("/", html(listing(9, following=elsewhere)))
    origin.route("/old", html(listing(1)))
    await Visitor(fetcher, url, **SELECTORS, cookies={"session": "secret"}).visit()
    assert origin.received("/")[0].headers["cookie"] == "session=secret"
    assert "cookie" not in origin.received("/old")[0].headers


CAPTCHA = "<h1>Verify you are human</h1>"


async def test_nothing_where_there_was_something_is_an_alarm(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/", html(listing(1, 2, 3)))
    page = Visitor(fetcher, url, **SELECTORS)
    await page.visit()
    for changed in (CAPTCHA, "", "{}", listing(1).replace("li", "dd")):
        origin.route("/", html(changed))
        with pytest.raises(VisitError, match="where it found 3 before") as caught:
            await page.visit()
        assert caught.value.kind is FailureKind.MALFORMED


async def test_a_page_of_few_items_may_be_empty_for_once(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/", html(listing(1, 2)))
    page = Visitor(fetcher, url, **SELECTORS)
    await page.visit()
    origin.route("/", html(listing()))
    assert (await page.visit()).items == ()


async def test_selectors_that_never_found_anything_are_refused(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/", html(listing(1, 2, 3)))
    with pytest.raises(VisitError, match=r"the selector article finds no item on the page$"):
        await Visitor(fetcher, url, item="article").visit()


async def test_without_selectors_the_sites_feed_is_found_once_and_asked_from_then_on(
    origin: Origin, fetcher: Fetcher
) -> None:
    link = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
    url = origin.route("/", html(f"<head>{link}</head>{listing(1)}"))
    origin.route("/feed.xml", body=rss(1, 2), etag='"f"')
    page = Visitor(fetcher, url)
    first = await page.visit()
    assert [item.title for item in first.items] == ["Post 1", "Post 2"]
    assert first.requests == 2
    assert (await page.visit()).unchanged
    assert [request.path for request in origin.requests] == ["/robots.txt", "/", "/feed.xml", "/feed.xml"]
    assert origin.requests[-1].headers["if-none-match"] == '"f"'

    origin.route("/", html(f"<head>{link.replace('/feed.xml', '/new.xml')}</head>"))
    origin.route("/feed.xml", status=404)
    origin.route("/new.xml", body=rss(3))
    assert [item.title for item in (await page.visit()).items] == ["Post 3"], "the page knows where it went"


async def test_an_address_that_is_a_feed_itself(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed.xml", body=rss(1))
    assert len((await Visitor(fetcher, url).visit()).items) == 1


async def test_a_page_without_feed_or_selectors_says_what_to_do(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/", html(listing(1)))
    with pytest.raises(VisitError, match=r"has no feed$"):
        await Visitor(fetcher, url).visit()


@pytest.mark.parametrize("config", [{"item": "li..x"}, {"item": " "}, {"title": "a"}, {"max_pages": 0}])
def test_a_config_that_cannot_work_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"config of web.scraper"):
        read_config(ScraperConfig, config, "web.scraper")


async def test_trending_is_asked_for_with_language_and_time(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/trending/c++", html(trending("ann/river"), etag='"t"'))
    page = Visitor(
        fetcher,
        origin.url("/trending"),
        "web.github_trending",
        language="C++",
        since="weekly",
        spoken_language="zh",
    )
    first = await page.visit()
    assert [item.title for item in first.items] == ["ann/river"]
    assert origin.requests[-1].target == "/trending/c++?since=weekly&spoken_language_code=zh"
    assert first.metadata.title == "GitHub trending c++ weekly"
    assert (await page.visit()).unchanged
    origin.route("/trending/c++", html(CAPTCHA))
    with pytest.raises(VisitError, match="it has changed"):
        await page.visit()


def test_trending_addresses() -> None:
    for url in ("https://github.com/trending", "https://github.com/trending/rust?since=monthly"):
        assert trending_url(url, {}) == url
    assert trending_url("https://github.com", {}) == "https://github.com/trending"
    changed = trending_url("https://github.com/trending/rust?since=daily", {"language": "Go"})
    assert changed == "https://github.com/trending/go"


@pytest.mark.parametrize(
    ("url", "config", "address", "completed"),
    [
        (None, {}, "https://github.com/trending", {}),
        (
            None,
            {"language": "C++", "since": "weekly", "spoken_language": "zh"},
            "https://github.com/trending/c++?since=weekly&spoken_language_code=zh",
            {"language": "C++", "since": "weekly", "spoken_language": "zh"},
        ),
        (
            "github.com/trending/c%2B%2B?spoken_language_code=zh&since=weekly",
            {},
            "https://github.com/trending/c++?since=weekly&spoken_language_code=zh",
            {"language": "c++", "since": "weekly", "spoken_language": "zh"},
        ),
    ],
)
def test_a_trending_page_is_the_same_source_by_address_and_by_config(
    url: str | None, config: dict[str, str], address: str, completed: dict[str, str]
) -> None:
    wanted = read_new_source(url, "github_trending", config)
    assert (wanted.url, wanted.config) == (address, completed)
    assert read_new_source(wanted.url, None, wanted.config) == wanted, "its address tells the type"


async def test_robots_are_asked_for_once_a_day_by_all_processes_together(
    origin: Origin, fetcher: Fetcher, tmp_path: Path
) -> None:
    origin.route("/robots.txt", body="User-agent: *\nDisallow: /private\n", content_type="text/plain")
    origin.route("/", html("<ul><li><a href=/1>one</a></ul>", etag='"1"'))
    page = Visitor(fetcher, origin.url("/"), **SELECTORS)
    await page.visit()
    settings = load_settings(
        directory=tmp_path,
        environment={"HEADWATER_ALLOW_HOSTS": "127.0.0.1", "HEADWATER_HOST_SPACING_SECONDS": "0"},
    )
    async with make_fetcher(settings) as another_process:
        page.fetcher = another_process
        await page.visit()
        assert [request.path for request in origin.requests] == ["/robots.txt", "/", "/"]
        assert not (await another_process.robots.rules(origin.url("").rstrip("/"))).allows("/private")
    async with make_fetcher(settings) as the_next_day:
        page.fetcher = the_next_day
        page.memory = (page.memory or b"").replace(b'"asked_at":', b'"asked_at":-')
        await page.visit()
        await page.visit()
    assert [request.path for request in origin.requests[3:]] == ["/robots.txt", "/", "/"]


@pytest.mark.parametrize(
    ("selector", "is_wrong"),
    [
        ("div:has(a)", False),
        ("div:has( > a, h2 )", False),
        ("div:has(> h2 > a) p", False),
        ("div:has(a[title~='a b'])", False),
        ("div:has(div a)", True),
        ("div:has(div:has(a))", True),
        ("div:has(h2 ~ a)", True),
        ("div:HAS(:not(p) a)", True),
    ],
)
def test_a_selector_that_may_take_for_ever_is_refused(selector: str, is_wrong: bool) -> None:
    with pytest.raises(InputError, match="one thing") if is_wrong else nullcontext():
        read_config(ScraperConfig, {"item": selector}, "web.scraper")
