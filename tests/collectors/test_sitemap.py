"""Sitemaps as sources: pages become items, indexes are followed, a bad child spoils nothing."""

from pathlib import Path

import pytest

from headwater.collect.surroundings import make_fetcher
from headwater.collectors.base import Errand, Harvest, SourceConfig
from headwater.collectors.sitemap import SitemapCollector, title_from_url
from headwater.config import load_settings
from headwater.errors import VisitError
from headwater.model import Source
from tests.origin import Origin

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*urls: str) -> str:
    entries = "".join(f"<url><loc>{url}</loc><lastmod>2024-05-01</lastmod></url>" for url in urls)
    return f"<urlset {NAMESPACE}>{entries}</urlset>"


def index(*urls: str) -> str:
    return f"<sitemapindex {NAMESPACE}>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>"


async def collect(tmp_path: Path, url: str, previous: Harvest | None = None) -> Harvest:
    settings = load_settings(
        directory=tmp_path,
        environment={"HEADWATER_ALLOW_HOSTS": "127.0.0.1", "HEADWATER_HOST_SPACING_SECONDS": "0"},
    )
    source = Source(1, "map", "web.sitemap", url)
    if previous is not None:
        source = Source(1, "map", "web.sitemap", url, validators=previous.validators)
    async with make_fetcher(settings) as fetcher:
        return await SitemapCollector().collect(Errand(source, SourceConfig(), fetcher))


async def test_pages_become_items(origin: Origin, tmp_path: Path) -> None:
    url = origin.route("/map", body=urlset("http://one.example/a-first-page.html"), etag='"1"')
    harvest = await collect(tmp_path, url)
    (item,) = harvest.items
    assert (item.external_id, item.title) == ("http://one.example/a-first-page.html", "a first page")
    assert item.published_at == item.updated_at == 1714521600.0
    assert (await collect(tmp_path, url, harvest)).unchanged


async def test_an_index_that_stays_the_same_still_shows_what_its_children_gain(
    origin: Origin, tmp_path: Path
) -> None:
    child = origin.route("/child", body=urlset("http://one.example/1"))
    url = origin.route("/index", body=index(child), etag='"same"')
    first = await collect(tmp_path, url)
    origin.route("/child", body=urlset("http://one.example/1", "http://one.example/2"))
    second = await collect(tmp_path, url, first)
    assert (len(first.items), len(second.items)) == (1, 2)
    assert second.requests == 2


async def test_a_bad_child_spoils_nothing_unless_all_are(origin: Origin, tmp_path: Path) -> None:
    good = origin.route("/good", body=urlset("http://one.example/1"))
    bad = origin.route("/bad", status=500)
    html = origin.route("/html", body="<html></html>", content_type="text/html")
    harvest = await collect(tmp_path, origin.route("/index", body=index(bad, good, html)))
    assert len(harvest.items) == 1
    with pytest.raises(VisitError):
        await collect(tmp_path, origin.route("/worse", body=index(bad, html)))


@pytest.mark.parametrize(
    ("url", "title"),
    [
        ("https://one.example/blog/2024/hello-world.html", "hello world"),
        ("https://one.example/%E4%BD%A0%E5%A5%BD/", "你好"),
        ("https://one.example/", "one.example"),
        ("https://one.example/a_b", "a b"),
    ],
)
def test_titles_from_addresses(url: str, title: str) -> None:
    assert title_from_url(url) == title
