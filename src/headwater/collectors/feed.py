"""`rss.feed` and `rss.digest`: RSS, RDF, Atom and JSON Feed."""

import asyncio

from headwater.collectors.base import Collector, Errand, Harvest, request_for
from headwater.formats.feed import parse, to_item

BIG_BYTES = 64_000  # parsed off the event loop from here on: it takes longer than a thread costs


class FeedCollector(Collector):
    async def collect(self, errand: Errand) -> Harvest:
        response = await errand.fetcher.get(request_for(errand.source, errand.config))
        if response.unchanged:
            return Harvest.of(response)
        if len(response.body) < BIG_BYTES:
            feed = parse(response.body, url=response.url, content_type=response.content_type)
        else:
            feed = await asyncio.to_thread(
                parse, response.body, url=response.url, content_type=response.content_type
            )
        return Harvest.of(
            response,
            items=tuple(to_item(entry, feed) for entry in feed.entries),
            metadata=feed.metadata,
            document_hints=feed.hints,
        )
