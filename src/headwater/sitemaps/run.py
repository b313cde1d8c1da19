"""One run: a site's sitemaps are surveyed, the pages of what changed are read, its feed is written.

    state → survey → pages → one transaction (ledger, entries, hashes) → the feed's file → today's backup

What a run found is in the state before it is in the file, and the file is always written from the state: a run that
is killed at any moment is completed by the next one, and everything is told exactly once. A damaged state is set
aside and the site starts again.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from headwater.collectors.sitemap_pages import Story, read_stories
from headwater.collectors.sitemap_survey import Survey, Wishes, survey
from headwater.errors import IncrementalStateCorrupted
from headwater.fetch.client import Fetcher
from headwater.files import write_whole
from headwater.formats.sitemaps.ledger import Ledger
from headwater.formats.sitemaps.read import SitemapUrl
from headwater.sitemaps.backup import back_up_daily
from headwater.sitemaps.feed import Channel, merge_entries, render
from headwater.sitemaps.state import Commit, IncrementalStateManager
from headwater.store.collecting.sites import SiteMemory

log = logging.getLogger(__name__)

MAX_ITEMS = 50

How = Literal["baseline", "incremental", "full"]


@dataclass(frozen=True, slots=True)
class Order:
    """Which site is to become which feed."""

    url: str
    site_name: str
    wishes: Wishes = Wishes()
    channel: Channel = Channel()
    max_items: int = MAX_ITEMS
    fetch_titles: bool = True
    incremental: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did. `new_urls` and `modified_urls` are those it was the first to tell of."""

    site_name: str
    how: How
    new_urls: list[str]
    modified_urls: list[str]
    total_urls: int
    requests: int
    written: bool
    document: bytes = field(repr=False)
    failures: list[str] = field(default_factory=list)


async def make_feed(
    order: Order,
    manager: IncrementalStateManager,
    fetcher: Fetcher,
    *,
    output: Path | None = None,
    format: str = "rss",
    clock: Callable[[], float] = time.time,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """Bring the feed of a site up to date. VisitError when its sitemaps cannot be had: then all is as it was."""
    run = _Run(order, manager, fetcher, clock(), progress)
    if not order.incremental:
        found, stories, entries = await run.full()
    else:
        try:
            found, stories, entries = await run.incremental()
        except IncrementalStateCorrupted as error:
            place = manager.set_aside()
            log.warning("%s; it is now %s, and everything is read again", error, place)
            found, stories, entries = await run.incremental(baseline_items=order.max_items)
    document = render(entries, order.channel, order.url, format)
    written = write_whole(output, document) if output is not None else False
    if order.incremental:
        await back_up_daily(manager, clock())
    return Outcome(
        order.site_name,
        "full" if not order.incremental else "baseline" if found.baseline else "incremental",
        [story.url for story in stories if story.verdict == "new"],
        [story.url for story in stories if story.verdict == "modified"],
        found.total,
        found.requests,
        written,
        document,
        [str(error) for error in found.failures],
    )


class _Run:
    def __init__(
        self,
        order: Order,
        manager: IncrementalStateManager,
        fetcher: Fetcher,
        now: float,
        progress: Callable[[int, int], None],
    ) -> None:
        self._order = order
        self._manager = manager
        self._fetcher = fetcher
        self._now = now
        self._progress = progress

    async def full(self) -> tuple[Survey, list[Story], str]:
        """The newest of everything, whatever was told before."""
        order = self._order
        wishes = Wishes(order.wishes.include, order.wishes.exclude, "new", order.max_items)
        found = await survey(order.url, self._fetcher, wishes, None, self._now)
        stories = await self._read(found, wishes)
        return found, stories, merge_entries("[]", stories, order.max_items, self._now)

    async def incremental(self, baseline_items: int | None = None) -> tuple[Survey, list[Story], str]:
        """What changed since the last run. `baseline_items`: as many at first, whatever the order says."""
        order, manager = self._order, self._manager
        wishes = order.wishes
        if baseline_items is not None:
            wishes = replace(wishes, baseline_items=baseline_items)
        before = await manager.begin(order.site_name)
        ledger = self._ledger(before)
        start_over = ledger is None or ledger.config_hash != wishes.config_hash()

        async def note(urls: Sequence[SitemapUrl]) -> None:
            nonlocal start_over
            if urls:
                await manager.note_addresses(order.site_name, urls, start_over=start_over)
                start_over = False

        found = await survey(order.url, self._fetcher, wishes, ledger, self._now, on_records=note)
        stories = await self._read(found, wishes)
        shown = "[]" if found.baseline or before is None else before.entries
        entries = merge_entries(shown, stories, order.max_items, self._now)
        etag = found.response.validators.etag if found.response else None
        memory = found.ledger.to_bytes() if found.ledger_changed or stories else None
        found.ledger = Ledger(found.ledger.config_hash)  # a million addresses need not be here twice
        await manager.commit(
            order.site_name,
            before,
            Commit(
                memory,
                entries,
                etag.decode("utf-8", "replace") if etag else None,
                found.ledger.config_hash,
                {story.url: story.text_hash for story in stories if story.text_hash},
                frozenset(found.forgotten),
            ),
        )
        return found, stories, entries

    def _ledger(self, before: SiteMemory | None) -> Ledger | None:
        if before is None:
            return None
        try:
            return Ledger.from_bytes(before.memory)
        except (ValueError, KeyError, TypeError) as error:
            log.warning(
                "what was remembered of %s is damaged (%s); it starts again", self._order.site_name, error
            )
            return None

    async def _read(self, found: Survey, wishes: Wishes) -> list[Story]:
        # What does not fit into the feed need not be read.
        return await read_stories(
            found,
            wishes,
            self._fetcher,
            self._now,
            fetch_pages=self._order.fetch_titles,
            max_pages=self._order.max_items,
            progress=self._progress,
        )
