"""A site on an origin whose sitemap a test rewrites, and runs that make a feed of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import feedparser

from headwater.collectors.sitemap_survey import Wishes
from headwater.fetch.client import Fetcher
from headwater.sitemaps.run import Order, Outcome, make_feed
from headwater.sitemaps.state import IncrementalStateManager
from tests.origin import Answer, Origin

DAY = 86_400.0


class Site:
    def __init__(self, origin: Origin, folder: Path) -> None:
        self.origin = origin
        self.folder = folder
        self.output = folder / "feed.xml"
        self.now = 1_750_000_000.0
        self.dates: dict[str, str] = {}
        self.wishes = Wishes()
        self.options: dict[str, Any] = {}
        origin.route("/robots.txt", status=404)
        origin.otherwise(Answer(b"<title>A page</title><p>text</p>", content_type="text/html"))

    def publish(self, **dates: str) -> None:
        """Add pages to the sitemap, or give them another date; `None` takes one away."""
        self.dates |= dates
        self.origin.route("/sitemap.xml", body=self.document())

    def document(self) -> str:
        records = "".join(
            f"<url><loc>{self.origin.url('/' + name)}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</url>"
            for name, date in self.dates.items()
        )
        return f"<urlset>{records}</urlset>"

    async def run(self, progress: Callable[[int, int], None] = lambda done, total: None) -> Outcome:
        order = Order(self.origin.url("/sitemap.xml"), "site", self.wishes, **self.options)
        with IncrementalStateManager(self.folder / "rss_states") as manager:
            async with fetcher() as door:
                return await make_feed(
                    order, manager, door, output=self.output, clock=lambda: self.now, progress=progress
                )

    async def news(self) -> list[str]:
        """The names of the pages a run tells of: modified ones with a star."""
        outcome = await self.run()
        told = [name_of(url) for url in outcome.new_urls]
        return sorted([*told, *(name_of(url) + "*" for url in outcome.modified_urls)])

    def shown(self) -> list[str]:
        """The names of the pages in the feed."""
        feed = feedparser.parse(self.output.read_bytes())
        assert not feed.bozo
        return [name_of(entry.id) for entry in feed.entries]


def fetcher() -> Fetcher:
    return Fetcher(user_agent="test", allow=["127.0.0.1"], host_spacing_seconds=0, host_concurrency=8)


def name_of(url: str) -> str:
    return url.rpartition("/")[2]
