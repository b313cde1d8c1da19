"""The pages behind what a survey found: their titles, dates and descriptions, read politely and a few at once.

Only what changed is fetched. In smart mode the text of a few more is looked at, those longest unseen first, because
a `lastmod` may be missing or lie. A page that cannot be had spoils nothing but itself.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from urllib.parse import unquote, urlsplit

from headwater.collectors.sitemap_survey import (
    MAX_WATCHED,
    Found,
    MakeRequest,
    Survey,
    Wishes,
    plain_request,
)
from headwater.errors import FailureKind, HeadwaterError, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import public_url
from headwater.fetch.robots import Rules, check_rules, fetch_text, parse, site_of
from headwater.formats.pages.document import MAX_PAGE_BYTES
from headwater.formats.pages.metadata import Page, read_page
from headwater.formats.sitemaps.ledger import DAY_SECONDS, Ledger, Verdict
from headwater.formats.sitemaps.read import SitemapUrl
from headwater.model import Enclosure, Validators

log = logging.getLogger(__name__)

MAX_PAGES: Final = 50  # fetched for one survey; the others are called after their addresses
SMART_CHECKS: Final = 20
CONCURRENCY: Final = 8  # what the host is asked at once is the fetcher's business
PAGES_SECONDS: Final = 80.0
LONGEST_ROBOTS: Final = 65_536
ACCEPT: Final = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Story:
    """A page that is new or modified, with all that is known of it."""

    url: str
    verdict: Verdict
    title: str
    published: datetime | None = None
    modified: datetime | None = None
    description: str | None = None
    language: str | None = None
    image: str | None = None
    author: str | None = None
    text_hash: str | None = None
    categories: tuple[str, ...] = ()
    video: Enclosure | None = None


async def read_stories(
    survey: Survey,
    wishes: Wishes,
    fetcher: Fetcher,
    now: float,
    *,
    fetch_pages: bool = True,
    max_pages: int = MAX_PAGES,
    make_request: MakeRequest = plain_request,
    progress: Progress = lambda done, total: None,
) -> list[Story]:
    """What the survey found, newest first, each with what its page says."""
    ledger = survey.ledger
    found = sorted(survey.found, key=_newest_first, reverse=True)
    smart = wishes.mode == "smart"
    checks = _to_check(ledger, {each.url.loc for each in found}) if smart else []
    wanted = [each.url.loc for each in found[:max_pages]] if fetch_pages or smart else []
    reader = _Reader(fetcher, ledger, now, make_request)
    pages = await reader.read([*wanted, *checks], progress)
    survey.requests += reader.requests
    survey.bytes_received += reader.bytes_received
    stories = []
    for each in found:
        page = pages.get(each.url.loc)
        if isinstance(page, VisitError):
            log.warning("a page is skipped or left without its details: %s", page)
            survey.failures.append(page)
            if page.kind in (FailureKind.NOT_FOUND, FailureKind.GONE):
                continue
            page = None
        if smart and page and each.verdict == "modified" and _same_text(ledger, each, page):
            continue
        stories.append(_story(each.url, each.verdict, page))
    for url in checks:
        page = pages.get(url)
        if isinstance(page, Page) and page.text_hash:
            before, _ = ledger.watched[url]
            if before is not None and before != page.text_hash:
                stories.append(_story(SitemapUrl(url), "modified", page))
    if smart:
        _watch(ledger, survey, pages, now)
        survey.ledger_changed = True
    return stories


def _newest_first(found: Found) -> float:
    when = found.url.published or found.url.modified
    return when.timestamp() if when else 0.0


def _same_text(ledger: Ledger, found: Found, page: Page) -> bool:
    before, _ = ledger.watched.get(found.url.loc, (None, 0.0))
    return before is not None and before == page.text_hash


def _to_check(ledger: Ledger, already: set[str]) -> list[str]:
    longest_unseen = sorted(ledger.watched, key=lambda url: ledger.watched[url][1])
    return [url for url in longest_unseen if url not in already][:SMART_CHECKS]


def _watch(ledger: Ledger, survey: Survey, pages: dict[str, Page | VisitError], now: float) -> None:
    """Remember the texts that were read, and which addresses to look at from now on: the newest ones."""
    watched = ledger.watched
    for url in (*(each.url.loc for each in survey.found), *(each.loc for each in survey.watch)):
        watched.setdefault(url, (None, 0.0))
    for url, page in pages.items():
        if url not in watched:
            continue
        if isinstance(page, Page):
            watched[url] = (page.text_hash or watched[url][0], now)
        elif page.kind in (FailureKind.NOT_FOUND, FailureKind.GONE):
            del watched[url]
        else:
            watched[url] = (watched[url][0], now)
    for url in list(watched)[: max(len(watched) - MAX_WATCHED, 0)]:
        del watched[url]


def _story(url: SitemapUrl, verdict: Verdict, page: Page | None) -> Story:
    page = page or Page()
    return Story(
        url=url.loc,
        verdict=verdict,
        title=page.title or url.title or title_from_url(url.loc),
        published=page.published or url.published,
        modified=url.modified or page.modified,
        description=page.description or url.description,
        language=page.language or url.language,
        image=page.image or url.image,
        categories=url.categories,
        video=url.video,
        author=page.author,
        text_hash=page.text_hash,
    )


def title_from_url(url: str) -> str:
    """What an address says of its page: `/blog/2024/hello-world.html` is "hello world"."""
    parts = urlsplit(url)
    last = unquote(parts.path).rstrip("/").rpartition("/")[2]
    words = last.rsplit(".", 1)[0].replace("-", " ").replace("_", " ").split()
    return " ".join(words) or parts.netloc


class _Reader:
    def __init__(self, fetcher: Fetcher, ledger: Ledger, now: float, make_request: MakeRequest) -> None:
        self._fetcher = fetcher
        self._ledger = ledger
        self._now = now
        self._make_request = make_request
        self._asking: dict[str, asyncio.Task[str]] = {}
        self._rules: dict[str, Rules] = {}
        self.requests = 0
        self.bytes_received = 0

    async def read(self, urls: Sequence[str], progress: Progress) -> dict[str, Page | VisitError]:
        """Each page, or why it could not be read. What takes too long altogether is left out."""
        pages: dict[str, Page | VisitError] = {}
        turns = asyncio.Semaphore(CONCURRENCY)

        async def one(url: str) -> None:
            async with turns:
                try:
                    pages[url] = await self._read(url)
                except VisitError as error:
                    pages[url] = error
                except (HeadwaterError, ValueError) as error:  # an address that is none
                    pages[url] = VisitError(
                        FailureKind.NOT_FOUND, "{url}: {problem}", url=public_url(url), problem=str(error)
                    )
            progress(len(pages), len(urls))

        if not urls:
            return pages
        progress(0, len(urls))
        tasks = [asyncio.create_task(one(url)) for url in dict.fromkeys(urls)]
        try:
            async with asyncio.timeout(PAGES_SECONDS):
                await asyncio.gather(*tasks)
        except TimeoutError:
            log.warning("%s of %s pages were read in the time there is", len(pages), len(urls))
        finally:
            for task in (*tasks, *self._asking.values()):
                task.cancel()
            await asyncio.gather(*tasks, *self._asking.values(), return_exceptions=True)
        return pages

    async def _read(self, url: str) -> Page:
        site = site_of(url)
        if site not in self._rules:
            self._rules[site] = parse((await self._robots(site)).encode())
        check_rules(self._rules[site], url)
        request = replace(self._make_request(url, Validators()), accept=ACCEPT, max_bytes=MAX_PAGE_BYTES)
        self.requests += 1
        response = await self._fetcher.get(request)
        self.requests += response.requests - 1
        self.bytes_received += response.bytes_received
        return read_page(response.body, url=response.url, content_type=response.content_type)

    async def _robots(self, site: str) -> str:
        """The site's robots.txt, asked for once a day and remembered in the ledger."""
        until, text = self._ledger.robots.get(site, (0.0, ""))
        if until > self._now:
            return text
        if site not in self._asking:
            self._asking[site] = asyncio.create_task(self._ask(site))
        return await asyncio.shield(self._asking[site])

    async def _ask(self, site: str) -> str:
        self.requests += 1
        text = (await fetch_text(self._fetcher, site))[:LONGEST_ROBOTS].decode("utf-8", "replace")
        self._ledger.robots = {
            kept: known for kept, known in self._ledger.robots.items() if known[0] > self._now
        }
        self._ledger.robots[site] = (self._now + DAY_SECONDS, text)
        return text
