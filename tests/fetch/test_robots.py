"""robots.txt by RFC 9309, and the memory of the check."""

import asyncio
import time

import pytest

from headwater.errors import FailureKind, FetchError
from headwater.fetch import Fetcher
from headwater.fetch.robots import Robots, parse
from tests.fetch import door
from tests.origin import Answer, Origin


def allows(text: str, target: str) -> bool:
    return parse(text.encode()).allows(target)


@pytest.mark.parametrize(
    ("rules", "target", "allowed"),
    [
        ("", "/", True),
        ("Disallow:", "/x", True),
        ("Disallow: /", "/", False),
        ("Disallow: /", "/robots.txt", True),
        ("Disallow: /fish", "/fish", False),
        ("Disallow: /fish", "/fish.html", False),
        ("Disallow: /fish", "/fishheads/yummy?x=1", False),
        ("Disallow: /fish", "/Fish", True),
        ("Disallow: /fish", "/catfish", True),
        ("Disallow: /fish/", "/fish", True),
        ("Disallow: fish", "/fish", False),
        ("Disallow: /*.php", "/folder/file.php?x", False),
        ("Disallow: /*.php", "/php", True),
        ("Disallow: /*.php$", "/file.php", False),
        ("Disallow: /*.php$", "/file.php?x", True),
        ("Disallow: /*.php$", "/a.php/b.php", False),
        ("Disallow: /a*b*c$", "/aXbXbXc", False),
        ("Disallow: /a*b*c$", "/ab", True),
        ("Disallow: /ab*b$", "/ab", True),
        ("Disallow: /x$", "/x", False),
        ("Disallow: /x$", "/xx", True),
        ("Disallow: *", "/anything", False),
        ("Disallow: /$", "/", False),
        ("Disallow: /$", "/page", True),
        ("Allow: /p\nDisallow: /", "/page", True),
        ("Disallow: /\nAllow: /p", "/page", True),
        ("Allow: /folder\nDisallow: /folder", "/folder/page", True),
        ("Disallow: /folder\nAllow: /folder", "/folder/page", True),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", False),
        ("Allow: /page\nDisallow: /*.ph", "/page.php5", True),
        ("Allow: /$\nDisallow: /", "/page.htm", False),
        ("Disallow: /a%3cd.html", "/a%3Cd.html", False),
        ("Disallow: /a%2fb", "/a/b", True),
        ("Disallow: /%7Ejoe/", "/~joe/index.html", False),
        ("Disallow: /~joe/", "/%7ejoe/index.html", False),
        ("Disallow: /中文", "/%E4%B8%AD%E6%96%87/x", False),
        ("DISALLOW : /x # comment", "/x", False),
        ("Disallow /x", "/x", True),
        ("Noindex: /x", "/x", True),
    ],
)
def test_matching(rules: str, target: str, allowed: bool) -> None:
    assert allows(f"User-agent: *\n{rules}\n", target) is allowed


@pytest.mark.parametrize(
    ("text", "target", "allowed"),
    [
        ("User-agent: headwater\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", "/a", False),
        ("User-agent: headwater\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", "/b", True),
        ("User-agent: *\nDisallow: /b\n\nUser-agent: HeadWater/1.0\nDisallow: /a", "/a", False),
        ("User-agent: other\nDisallow: /", "/", True),
        ("User-agent: headwater-images\nDisallow: /", "/", True),
        ("User-agent: other\nUser-agent: headwater\nDisallow: /x", "/x", False),
        ("User-agent: headwater\nDisallow: /a\nUser-agent: other\nDisallow: /b", "/b", True),
        ("User-agent: headwater\nDisallow: /a\nUser-agent: headwater\nDisallow: /b", "/b", False),
        ("User-agent: headwater\n\nUser-agent: *\nDisallow: /", "/", False),
        ("User-agent: headwater\nDisallow:\n\nUser-agent: *\nDisallow: /", "/", True),
        ("User-agent: headwater\nCrawl-delay: 1\nUser-agent: *\nDisallow: /", "/", True),
        ("Disallow: /\nUser-agent: *\nDisallow: /x", "/y", True),
        ("User-agent: *\nSitemap: https://h/s.xml\nDisallow: /x", "/x", False),
        ("\ufeffUser-agent: *\r\nDisallow: /x\r\n", "/x", False),
        ("User-agent: *\rDisallow: /x\r", "/x", False),
    ],
)
def test_groups(text: str, target: str, allowed: bool) -> None:
    assert allows(text, target) is allowed


def test_delay_and_sitemaps() -> None:
    rules = parse(
        b"Sitemap: https://h/1.xml\nUser-agent: *\nCrawl-delay: 2.5\nCrawl-delay: soon\n"
        b"Sitemap: https://h/2.xml\n\nUser-agent: other\nCrawl-delay: 60\n"
    )
    assert rules.crawl_delay_seconds == 2.5
    assert rules.sitemaps == ("https://h/1.xml", "https://h/2.xml")


def test_hostile_files_cost_little() -> None:
    began = time.process_time()
    many = parse(b"User-agent: *\n" + b"".join(b"Disallow: /%d\n" % n for n in range(100_000)))
    assert not many.allows("/77")
    stars = parse(b"User-agent: *\nDisallow: /" + b"*a" * 2000 + b"$\n")
    assert stars.allows("/" + "a" * 1999 + "b")
    for junk in (b"\xff\xfe\x00", b"\x00" * 1000, b"User-agent" * 1000, b":" * 1000, b"\n" * 100_000):
        assert parse(junk).allows("/")
    assert time.process_time() - began < 3


async def test_the_check(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/robots.txt", body="User-agent: *\nDisallow: /private\nDisallow: /*?q=\nCrawl-delay: 3")
    robots = Robots(fetcher)
    rules = await robots.check(origin.url("/public"))
    assert rules.crawl_delay_seconds == 3
    for path in ("/private/x", "/search?q=1"):
        with pytest.raises(FetchError) as caught:
            await robots.check(origin.url(path, userinfo="u:secret"))
        assert caught.value.kind is FailureKind.FORBIDDEN
        assert "robots.txt" in str(caught.value)
        assert "secret" not in str(caught.value)
    assert len(origin.requests) == 1


async def test_it_is_asked_once_by_many_at_the_same_time(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/robots.txt", body="User-agent: *\nDisallow: /x", delay=0.1)
    robots = Robots(fetcher)
    tasks = [asyncio.create_task(robots.check(origin.url(f"/{number}"))) for number in range(10)]
    await asyncio.sleep(0.02)
    tasks[0].cancel()  # who asked first does not take the answer away from the others
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert not [result for result in results[1:] if isinstance(result, BaseException)]
    assert len(origin.requests) == 1


async def test_it_is_asked_again_after_a_day(origin: Origin, fetcher: Fetcher) -> None:
    now = [0.0]
    origin.route("/robots.txt", [Answer("User-agent: *\nDisallow: /"), Answer("")])
    robots = Robots(fetcher, clock=lambda: now[0])
    for at, allowed in ((0.0, False), (86_399.0, False), (86_401.0, True)):
        now[0] = at
        assert (await robots.rules(origin.url("").rstrip("/"))).allows("/x") is allowed


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
async def test_a_site_without_rules(origin: Origin, fetcher: Fetcher, status: int) -> None:
    origin.route("/robots.txt", status=status)
    await Robots(fetcher).check(origin.url("/x"))


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_rules_that_cannot_be_had_now(origin: Origin, status: int) -> None:
    origin.route("/robots.txt", status=status)
    async with door() as fetcher:
        with pytest.raises(FetchError) as caught:
            await Robots(fetcher).check(origin.url("/x"))
    assert caught.value.http_status == status


async def test_the_guard_is_asked_too() -> None:
    async with door(allow=[]) as fetcher:
        with pytest.raises(FetchError) as caught:
            await Robots(fetcher).check("http://127.0.0.1/x")
    assert caught.value.kind is FailureKind.BLOCKED
