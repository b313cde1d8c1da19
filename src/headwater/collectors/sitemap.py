"""`web.sitemap`: the pages a sitemap lists, each an item named after its address.

An index is followed one level down, its most recently changed children first and at most MAX_CHILDREN of them.
"""

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

from headwater.collectors.base import Harvest, SourceConfig, request_for
from headwater.fetch.client import Fetcher
from headwater.formats.sitemap import Sitemap, SitemapUrl, read_sitemap
from headwater.model import Item, Source, Validators

MAX_CHILDREN = 20
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class SitemapCollector:
    config_model = SourceConfig

    async def collect(self, source: Source, config: SourceConfig, fetcher: Fetcher) -> Harvest:
        response = await fetcher.get(request_for(source, config))
        if response.unchanged:
            return Harvest.of(response)
        sitemap = read_sitemap(response.body, url=response.url, content_type=response.content_type)
        if not sitemap.is_index:
            return Harvest.of(response, items=_items(sitemap))
        items: dict[str, Item] = {}
        requests, received = response.requests, response.bytes_received
        newest_first = sorted(sitemap.urls, key=lambda child: child.modified or _LONG_AGO, reverse=True)
        for child in newest_first[:MAX_CHILDREN]:
            request = replace(request_for(source, config, child.loc), validators=Validators())
            answer = await fetcher.get(request)
            requests, received = requests + answer.requests, received + answer.bytes_received
            part = read_sitemap(answer.body, url=answer.url, content_type=answer.content_type)
            if not part.is_index:
                items |= {item.external_id: item for item in _items(part)}
        harvest = Harvest.of(response, items=tuple(items.values()))
        return replace(harvest, requests=requests, bytes_received=received)


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
