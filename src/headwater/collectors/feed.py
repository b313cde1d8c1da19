"""`rss.feed` and `rss.digest`: RSS, RDF, Atom and JSON Feed."""

import asyncio

from headwater.collectors.base import Collector, Errand, Harvest, request_for
from headwater.fetch.message import Response
from headwater.formats.feed import Feed, parse, to_item

BIG_BYTES = 64_000  # parsed off the event loop from here on: it takes longer than a thread costs


class FeedCollector(Collector):
    async def collect(self, errand: Errand) -> Harvest:
        return await harvest_feed(await errand.fetcher.get(request_for(errand.source, errand.config)))


async def harvest_feed(response: Response) -> Harvest:
    """The harvest from an answer that is a feed, or that nothing has changed."""
    if response.unchanged:
        return Harvest.of(response)
    feed = await read_feed(response)
    return Harvest.of(
        response,
        items=tuple(to_item(entry, feed) for entry in feed.entries),
        metadata=feed.metadata,
        document_hints=feed.hints,
    )


async def read_feed(response: Response) -> Feed:
    if len(response.body) < BIG_BYTES:
        return parse(response.body, url=response.url, content_type=response.content_type)
    return await asyncio.to_thread(parse, response.body, url=response.url, content_type=response.content_type)
