"""`web.sitemap`: the pages of a site that are new or modified since the last visit, by its sitemaps.

The first visit yields the newest few as a baseline; every other address is remembered as seen. What is remembered is
a ledger (`formats.sitemap_ledger`), stored with the visit. Where the sitemaps are, and which of them need to be asked
for, is the survey's work; titles and dates come from the pages of what changed, and of nothing else.
"""

import logging
import time
from dataclasses import replace

from pydantic import Field

from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig, request_to
from headwater.collectors.sitemap_pages import MAX_PAGES, Story, read_stories
from headwater.collectors.sitemap_survey import BASELINE, Mode, Survey, Wishes, survey
from headwater.fetch.message import Request
from headwater.formats.html import escape_text
from headwater.formats.sitemaps.ledger import Ledger
from headwater.model import Item, Source, Validators

log = logging.getLogger(__name__)


class SitemapConfig(SourceConfig):
    include: list[str] = Field(
        default_factory=list,
        description="Only addresses that contain one of these; `*` stands for anything.",
    )
    exclude: list[str] = Field(
        default_factory=list,
        description="No addresses that contain one of these; `*` stands for anything.",
    )
    mode: Mode = Field(
        default="new+modified",
        description="`new`: new pages; `new+modified`: modified ones too, by their lastmod; `smart`: modified ones"
        " by their text, looking at a few pages in each visit.",
    )
    baseline_items: int = Field(
        default=BASELINE, ge=0, le=1_000, description="How many of the newest pages the first visit yields."
    )
    fetch_pages: bool = Field(
        default=True,
        description="Whether titles, dates and descriptions are read from the pages that changed.",
    )

    def wishes(self) -> Wishes:
        return Wishes(tuple(self.include), tuple(self.exclude), self.mode, self.baseline_items)


class SitemapCollector(Collector):
    config_model = SitemapConfig
    remembers = True

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        source, config = fetch_request.source, fetch_request.config
        wishes = config.wishes()
        now = time.time()

        def make_request(url: str, validators: Validators) -> Request:
            return request_to(source, config, url, validators)

        found = await survey(
            source.url,
            fetch_request.fetcher,
            wishes,
            _read_ledger(source, fetch_request.memory),
            now,
            make_request=make_request,
        )
        if found.baseline and found.found:
            # Started again, with other wishes or after a damage: what is stored already need not be read again.
            known = await fetch_request.known([each.url.loc for each in found.found])
            found.found = [each for each in found.found if each.url.loc not in known]
        stories = await read_stories(
            found,
            wishes,
            fetch_request.fetcher,
            now,
            fetch_pages=config.fetch_pages,
            max_pages=MAX_PAGES,
            make_request=make_request,
        )
        return _result(source, found, tuple(map(_item, stories)))


def _read_ledger(source: Source, memory: bytes | None) -> Ledger | None:
    if memory is None:
        return None
    try:
        return Ledger.from_bytes(memory)
    except (ValueError, KeyError, TypeError):
        log.warning("source %s: what was remembered of its sitemaps is damaged; it starts again", source.id)
        return None


def _result(source: Source, found: Survey, items: tuple[Item, ...]) -> FetchResult:
    result = FetchResult() if found.response is None else FetchResult.of(found.response)
    is_root = found.ledger.roots == [source.url]
    return replace(
        result,
        items=items,
        known_count=max(found.ledger.count() - len(items), 0),
        permanent_url=result.permanent_url if is_root else None,
        unchanged=found.unchanged and not items,
        validators=Validators(),  # each sitemap's own are in the ledger
        requests=found.requests,
        bytes_received=found.bytes_received,
        memory=found.ledger.to_bytes() if found.ledger_changed else None,
    )


def _item(story: Story) -> Item:
    modified_at = story.modified.timestamp() if story.modified else None
    return Item(
        external_id=story.url,
        url=story.url,
        title=story.title,
        author=story.author,
        summary=escape_text(story.description) if story.description else None,
        published_at=story.published.timestamp() if story.published else modified_at,
        updated_at=modified_at,
        language=story.language,
        image_url=story.image,
        categories=story.categories,
        enclosures=() if story.video is None else (story.video,),
    )
