"""`web.sitemap`: the pages a sitemap lists, each an item named after its address.

An index is followed one level down, its most recently changed children first and at most MAX_CHILDREN of them.
It is asked for anew each time: that it is unchanged does not say that its children are.
"""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

from headwater.collectors.base import Collector, Errand, Harvest, SourceConfig, request_for
from headwater.errors import VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Response
from headwater.formats.sitemap import Sitemap, SitemapUrl, read_sitemap
from headwater.model import Item, Source, Validators

log = logging.getLogger(__name__)

MAX_CHILDREN = 20
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class SitemapCollector(Collector):
    async def collect(self, errand: Errand) -> Harvest:
        source, config, fetcher = errand.source, errand.config, errand.fetcher
        response = await fetcher.get(request_for(source, config))
        if response.unchanged:
            return Harvest.of(response)
        sitemap = await _read(response)
        if not sitemap.is_index:
            return Harvest.of(response, items=_items(sitemap))
        harvest = replace(Harvest.of(response), validators=Validators())
        newest_first = sorted(sitemap.urls, key=lambda child: child.modified or _LONG_AGO, reverse=True)
        return await _collect_children(source, config, fetcher, newest_first[:MAX_CHILDREN], harvest)


async def _collect_children(
    source: Source, config: SourceConfig, fetcher: Fetcher, children: list[SitemapUrl], harvest: Harvest
) -> Harvest:
    """The harvest with the children's items. A bad child is skipped; when all are bad, so is the visit."""
    items: dict[str, Item] = {}
    requests, received = harvest.requests, harvest.bytes_received
    failure: VisitError | None = None
    good = 0
    for child in children:
        try:
            answer = await fetcher.get(
                replace(request_for(source, config, child.loc), validators=Validators())
            )
            requests, received = requests + answer.requests, received + answer.bytes_received
            part = await _read(answer)
        except VisitError as error:
            failure = error
            log.warning("source %s: a sitemap of its index is skipped: %s", source.id, error)
            continue
        good += 1
        if not part.is_index:
            items |= {item.external_id: item for item in _items(part)}
    if failure is not None and not good:
        raise failure
    return replace(harvest, items=tuple(items.values()), requests=requests, bytes_received=received)


async def _read(response: Response) -> Sitemap:
    return await asyncio.to_thread(
        read_sitemap, response.body, url=response.url, content_type=response.content_type
    )


def _items(sitemap: Sitemap) -> tuple[Item, ...]:
    return tuple(_item(url) for url in sitemap.urls)


def _item(url: SitemapUrl) -> Item:
    modified_at = url.modified.timestamp() if url.modified else None
    return Item(
        external_id=url.loc,
        url=url.loc,
        title=url.title or title_from_url(url.loc),
        published_at=modified_at,
        updated_at=modified_at,
    )


def title_from_url(url: str) -> str:
    """What an address says of its page: `/blog/2024/hello-world.html` is "hello world"."""
    parts = urlsplit(url)
    last = unquote(parts.path).rstrip("/").rpartition("/")[2]
    words = last.rsplit(".", 1)[0].replace("-", " ").replace("_", " ").split()
    return " ".join(words) or parts.netloc
