"""One look at a site's sitemaps: which addresses are new or modified since the ledger was written.

    where the sitemaps are → each one asked for with its own validators, or left alone when its index says that it
    has not moved → compared with the ledger → what is new or modified, and the ledger after it

A sitemap that fails, is empty, or was delivered in part says nothing: its addresses stay as they were. The site's
first survey takes the newest few as a baseline and the rest as seen. It knows neither database nor schedule.
"""

import heapq
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit

from headwater.errors import FailureKind, FetchError, ParseError, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Request, Response, public_url
from headwater.fetch.robots import parse as parse_robots
from headwater.formats.links import join
from headwater.formats.sitemaps.ledger import (
    DAY_SECONDS,
    DAYS_TO_KEEP,
    Document,
    Ledger,
    Reading,
    Verdict,
    hash_config,
    read_document,
)
from headwater.formats.sitemaps.read import MAX_BYTES, SitemapScan, SitemapUrl, read_sitemap, unzip
from headwater.model import Validators
from headwater.threads import read_aside

log = logging.getLogger(__name__)

_ADDRESS = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[^\s/?#\[\]]+)(?::\d*)?(?:[/?#]|\Z)", re.IGNORECASE)

Mode = Literal["new", "new+modified", "smart"]

MAX_DEPTH: Final = 3  # of indexes in indexes; the protocol allows one
MAX_ROOTS: Final = 50  # that a robots.txt may name
MAX_DOCUMENTS: Final = 1_000  # asked for in one survey; the others have their turn in the next
MAX_ADDRESSES: Final = 5_000_000  # remembered of one site
LONGEST_ADDRESS: Final = 4_096  # the protocol allows 2,048 characters
MAX_FOUND: Final = 10_000  # told of one survey; more are remembered as seen
SURVEY_SECONDS: Final = 200.0  # no further sitemap is begun after that
RECHECK_SECONDS: Final = 7 * DAY_SECONDS  # an index that forgets to move a date is found out in a week
BASELINE: Final = 10
MAX_WATCHED: Final = 200  # addresses of a site whose text is looked at, a few in each survey
COMMON_PATHS: Final = (
    "/sitemap.xml",
    "/sitemap_index.xml",
    "/sitemap-index.xml",
    "/wp-sitemap.xml",
    "/sitemap.xml.gz",
    "/sitemap_index.xml.gz",
    "/sitemap/sitemap.xml",
    "/sitemap/index.xml",
    "/sitemapindex.xml",
    "/sitemap.txt",
)

ACCEPT: Final = "application/xml, text/xml, text/plain;q=0.9, application/gzip;q=0.8, */*;q=0.5"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is wanted of a site. A pattern is a part of an address, with * for anything."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    mode: Mode = "new+modified"
    baseline_items: int = BASELINE
    days_to_keep: float = DAYS_TO_KEEP  # what has left the sitemaps
    cleanup_interval_days: float = 0.0  # between two clean-ups of what has left; 0: in every run

    def config_hash(self) -> str:
        """Changes when other things are wanted; then the site starts again."""
        return hash_config(self.include, self.exclude, self.mode)

    def filter(self) -> Callable[[str], bool]:
        include, exclude = _any_of(self.include), _any_of(self.exclude)
        return lambda url: (
            len(url) <= LONGEST_ADDRESS
            and _ADDRESS.match(url) is not None
            and (not self.include or include(url))
            and not exclude(url)
        )


def _any_of(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether one of the patterns is a part of an address; in one pass, however the address was made up."""
    parts_of_each = [pattern.split("*") for pattern in patterns]
    return lambda url: any(_follow_each_other(parts, url) for parts in parts_of_each)


def _follow_each_other(parts: Sequence[str], url: str) -> bool:
    place = 0
    for part in parts:
        found = url.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True


@dataclass(frozen=True, slots=True)
class Found:
    url: SitemapUrl
    verdict: Verdict


@dataclass(slots=True)
class Survey:
    """What came of it. `unchanged`: nothing was parsed, because nothing can be new."""

    ledger: Ledger
    found: list[Found] = field(default_factory=list)
    new: int = 0  # with those beyond MAX_FOUND
    modified: int = 0
    baseline: bool = False
    unchanged: bool = True
    ledger_changed: bool = False
    watch: list[SitemapUrl] = field(default_factory=list)  # the newest, for a look at their text
    forgotten: set[int] = field(default_factory=set)  # keys of addresses that left long ago
    requests: int = 0
    bytes_received: int = 0
    response: Response | None = None  # of the first sitemap
    failures: list[VisitError] = field(default_factory=list)
    total: int = 0  # addresses that are listed


MakeRequest = Callable[[str, Validators], Request]
# Told of every record that was parsed, so that the caller can keep a list of them.
OnRecords = Callable[[Sequence[SitemapUrl]], Awaitable[None]]


def plain_request(url: str, validators: Validators) -> Request:
    return Request(url, validators=validators)


async def survey(
    url: str,
    fetcher: Fetcher,
    wishes: Wishes,
    ledger: Ledger | None,
    now: float,
    *,
    make_request: MakeRequest = plain_request,
    on_records: OnRecords | None = None,
) -> Survey:
    """Survey the sitemap, or the site, at `url`. VisitError when nothing of it can be had.

    `ledger` is changed in place; after an error it must not be used again.
    """
    config_hash = wishes.config_hash()
    if ledger is None or ledger.config_hash != config_hash:
        ledger = Ledger(config_hash)
    walk = _Walk(fetcher, wishes, ledger, now, make_request, on_records, moved=ledger.url != url)
    if not ledger.roots or ledger.url != url:
        await walk.find_roots(url)
        ledger.url = url
    await walk.walk()
    return walk.finish()


class _Walk:
    def __init__(
        self,
        fetcher: Fetcher,
        wishes: Wishes,
        ledger: Ledger,
        now: float,
        make_request: MakeRequest,
        on_records: OnRecords | None,
        *,
        moved: bool,
    ) -> None:
        self._fetcher = fetcher
        self._wishes = wishes
        self._wanted = wishes.filter()
        self._ledger = ledger
        self._now = now
        self._make_request = make_request
        self._on_records = on_records
        self._first = not ledger.baselined
        # What a site lists at another address than before is mostly what it listed there.
        self._counts = not self._first and not moved
        self._result = Survey(ledger, baseline=self._first)
        self._newest: list[tuple[float, int, SitemapUrl]] = []  # a heap of the baseline
        self._keep = wishes.baseline_items
        if wishes.mode == "smart":
            self._keep = max(self._keep, MAX_WATCHED)
        self._order = 0
        self._found: dict[str, Found] = {}
        self._seen: set[str] = set()  # sitemaps met in this survey
        self._answered: dict[str, Response] = {}  # had already, when looking for the sitemaps
        self._asked = 0
        self._good = 0
        self._ends_at = time.monotonic() + SURVEY_SECONDS

    # -- where the sitemaps are --------------------------------------------------------------------------

    async def find_roots(self, url: str) -> None:
        """The sitemap at `url`, or those of the site whose page it is."""
        failure: VisitError | None = None
        if urlsplit(url).path not in ("", "/"):
            try:
                if await self._try(url):
                    return
            except FetchError as error:
                if not (error.http_status and 400 <= error.http_status < 500):
                    raise
                failure = error
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        named = await self._named_by_robots(site)
        if named:
            self._ledger.roots = named
            return
        for path in COMMON_PATHS:
            try:
                if await self._try(site + path):
                    return
            except FetchError as error:
                if not (error.http_status and 400 <= error.http_status < 500):
                    raise
        raise failure or ParseError(
            "{url} is not a sitemap, its site's robots.txt names none, and none is at the usual places",
            url=public_url(url),
        )

    async def _try(self, url: str) -> bool:
        response = await self._get(url, Validators())
        try:
            SitemapScan(unzip(response.body), url=response.url, content_type=response.content_type)
        except ParseError:
            return False
        self._answered[url] = response
        self._ledger.roots = [url]
        return True

    async def _named_by_robots(self, site: str) -> list[str]:
        try:
            response = await self._get(f"{site}/robots.txt", Validators())
        except FetchError:
            return []
        named = (join(response.url, place) for place in parse_robots(response.body).sitemaps)
        return list(dict.fromkeys(place for place in named if place))[:MAX_ROOTS]

    # -- asking ------------------------------------------------------------------------------------------

    async def _get(self, url: str, validators: Validators) -> Response:
        request = self._make_request(url, validators)
        request.max_bytes = MAX_BYTES
        request.accept = ACCEPT
        self._result.requests += 1
        response = await self._fetcher.get(request)
        self._result.requests += response.requests - 1
        self._result.bytes_received += response.bytes_received
        return response

    async def walk(self) -> None:
        failure: VisitError | None = None
        for root in self._ledger.roots:
            try:
                await self._visit(root, None, None, 0)
                self._good += 1
            except VisitError as error:
                failure = error
                self._result.failures.append(error)
        if failure is not None and not self._good:
            raise failure
        for place in [place for place, each in self._ledger.documents.items() if each.parent is None]:
            if place not in self._ledger.roots:
                self._drop(place)

    async def _visit(self, url: str, parent: str | None, lastmod: str | None, depth: int) -> None:
        """Look at one sitemap; VisitError when it cannot be had or read."""
        self._seen.add(url)
        document = self._ledger.documents.get(url)
        if document is None:
            document = Document(parent, counts=self._counts)
            self._ledger.documents[url] = document
        if self._is_left_alone(document, lastmod):
            await self._visit_known_children(url, depth)
            return
        self._asked += 1
        response = self._answered.pop(url, None) or await self._get(url, document.validators)
        document.asked_at = self._now
        if self._result.response is None:
            self._result.response = response
        if response.unchanged and document.read_at is not None:
            # Of one that is asked every time it need not be written down when.
            self._result.ledger_changed |= lastmod is not None or document.validators != response.validators
            document.lastmod, document.validators = lastmod, response.validators
            await self._visit_known_children(url, depth)
            return
        data = unzip(response.body)
        where, kind = response.url, response.content_type
        if SitemapScan(data, url=where, content_type=kind).kind == "sitemapindex":
            await self._read_index(url, document, data, response, depth)
        else:
            reading = await read_aside(len(data), read_document, data, document, url=where, content_type=kind)
            if not await self._read_addresses(url, document, reading):
                return
        document.lastmod, document.validators, document.read_at = lastmod, response.validators, self._now
        self._result.unchanged = False
        self._result.ledger_changed = True

    def _is_left_alone(self, document: Document, lastmod: str | None) -> bool:
        return (
            document.read_at is not None
            and lastmod is not None
            and lastmod == document.lastmod
            and self._now - document.asked_at < RECHECK_SECONDS
        )

    async def _visit_known_children(self, url: str, depth: int) -> None:
        """Go on below an index that is as it was: its children say for themselves what changed."""
        children = [
            (place, document.lastmod)
            for place, document in self._ledger.documents.items()
            if document.parent == url and place not in self._seen
        ]
        await self._visit_children(url, children, depth)

    async def _read_index(
        self, url: str, document: Document, data: bytes, response: Response, depth: int
    ) -> None:
        index = read_sitemap(data, url=response.url, content_type=response.content_type)
        if index.cut_off:
            raise _cut_off(url)
        if not index.urls and document.read_at is not None:
            raise ParseError("{url} no longer lists any sitemaps", url=public_url(url))
        document.is_index = True
        newest_first = sorted(
            index.urls, key=lambda child: child.modified.timestamp() if child.modified else 0.0, reverse=True
        )
        children = [(child.loc, child.lastmod) for child in newest_first if child.loc not in self._seen]
        for place, _ in children:
            if place not in self._ledger.documents:
                self._ledger.documents[place] = Document(url, counts=self._counts)
        if not index.truncated:
            self._drop_children(url, {place for place, _ in children})
        await self._visit_children(url, children, depth)

    def _drop_children(self, url: str, named: set[str]) -> None:
        """Sitemaps that their index has dropped: their addresses are gone, if no other lists them."""
        for place in [place for place, each in self._ledger.documents.items() if each.parent == url]:
            if place not in named and place not in self._seen:
                self._drop(place)

    def _drop(self, url: str) -> None:
        left = self._ledger.documents.pop(url)
        self._drop_children(url, set())
        self._ledger.mark_gone(left.keys, left.stamps, self._now)

    async def _visit_children(self, url: str, children: Sequence[tuple[str, str | None]], depth: int) -> None:
        if depth >= MAX_DEPTH:
            log.warning("%s: indexes nested deeper than %s are not followed", public_url(url), MAX_DEPTH)
            return
        good, failure = 0, None
        for place, lastmod in children:
            if place in self._seen:
                continue
            if self._asked >= MAX_DOCUMENTS or time.monotonic() > self._ends_at:
                log.warning("%s: the rest of its sitemaps is for the next visit", public_url(url))
                break
            if self._ledger.count() >= MAX_ADDRESSES:
                log.warning(
                    "%s: more than %s addresses; the rest is left out", public_url(url), MAX_ADDRESSES
                )
                break
            try:
                await self._visit(place, url, lastmod, depth + 1)
                good += 1
            except VisitError as error:
                failure = error
                self._result.failures.append(error)
        if failure is not None and not good:
            raise failure

    # -- reading -----------------------------------------------------------------------------------------

    async def _read_addresses(self, url: str, document: Document, reading: Reading) -> bool:
        """Take what a sitemap says; False when it says nothing."""
        if reading.cut_off:
            raise _cut_off(url)
        if not len(reading.all_keys):
            return False
        first_time = document.read_at is None
        verdicts = reading.verdicts(self._ledger)
        if first_time and not document.counts:
            self._consider_for_baseline(reading.urls)
            parsed: Sequence[SitemapUrl] = reading.urls
        else:
            parsed = [
                each
                for each, verdict in zip(reading.urls, verdicts, strict=True)
                if self._take(each, verdict) or verdict != "unchanged"
            ]
        if self._on_records is not None:
            await self._on_records(parsed)
        reading.enter(document, self._ledger, self._now)
        return True

    def _consider_for_baseline(self, urls: Iterable[SitemapUrl]) -> None:
        """Keep the newest; undated ones count as old, and of those the first listed come first."""
        if not self._first:
            return
        for each in urls:
            if not self._wanted(each.loc):
                continue
            when = each.published or each.modified
            self._order -= 1
            entry = (when.timestamp() if when else 0.0, self._order, each)
            if len(self._newest) < self._keep:
                heapq.heappush(self._newest, entry)
            elif self._newest and entry > self._newest[0]:
                heapq.heapreplace(self._newest, entry)

    def _take(self, url: SitemapUrl, verdict: Verdict) -> bool:
        if verdict == "unchanged" or not self._wanted(url.loc):
            return False
        if verdict == "modified" and self._wishes.mode == "new":
            return False
        if url.loc in self._found:
            return False
        if len(self._found) < MAX_FOUND:
            self._found[url.loc] = Found(url, verdict)
        if verdict == "new":
            self._result.new += 1
        else:
            self._result.modified += 1
        return True

    def finish(self) -> Survey:
        result = self._result
        result.total = self._ledger.count()
        for error in result.failures:
            log.warning("a sitemap is skipped: %s", error)
        if self._first:
            newest = [each for _, _, each in sorted(self._newest, reverse=True)]
            result.watch = newest
            result.found = [Found(each, "new") for each in newest[: self._wishes.baseline_items]]
            result.new = len(result.found)
            # A site that lists nothing yet has no baseline: what it lists first is not all news.
            self._ledger.baselined = result.total > 0
        else:
            result.found = list(self._found.values())
        self._clean_up()
        return result

    def _clean_up(self) -> None:
        ledger, interval = self._ledger, self._wishes.cleanup_interval_days * DAY_SECONDS
        if not ledger.gone or 0 <= self._now - ledger.cleaned_at < interval:
            return
        self._result.forgotten = ledger.forget_gone(self._now, days=self._wishes.days_to_keep)
        self._result.ledger_changed |= bool(self._result.forgotten) or interval > 0
        ledger.cleaned_at = self._now


def _cut_off(url: str) -> ParseError:
    return ParseError(
        "{url} was delivered only in part; nothing is taken from it",
        kind=FailureKind.MALFORMED,
        url=public_url(url),
    )
