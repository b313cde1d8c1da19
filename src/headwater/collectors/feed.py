"""`rss.feed` and `rss.digest`: RSS, RDF, Atom and JSON Feed."""

import asyncio

from headwater.collectors.base import Collector, Errand, Harvest, request_for
from headwater.fetch.message import Response
from headwater.formats.feed import Feed, parse, to_item
from headwater.formats.links import read_link_header
from headwater.model import Hub

BIG_BYTES = 64_000  # parsed off the event loop from here on: it takes longer than a thread costs


class FeedCollector(Collector):
    async def collect(self, errand: Errand) -> Harvest:
        return await harvest_feed(await errand.fetcher.get(request_for(errand.source, errand.config)))


async def harvest_feed(response: Response) -> Harvest:
    """The harvest from an answer that is a feed, or that nothing has changed."""
    if response.unchanged:
        return Harvest.of(response)
    feed = await parse_feed(response.body, response.url, response.content_type)
    return Harvest.of(
        response,
        items=tuple(to_item(entry, feed) for entry in feed.entries),
        metadata=feed.metadata,
        document_hints=feed.hints,
        hub=hub_of(response, feed),
    )


async def parse_feed(body: bytes, url: str, content_type: str | None) -> Feed:
    """The feed in `body`, read off the event loop when it is big."""
    if len(body) < BIG_BYTES:
        return parse(body, url=url, content_type=content_type)
    return await asyncio.to_thread(parse, body, url=url, content_type=content_type)


def hub_of(response: Response, feed: Feed) -> Hub | None:
    """The hub that the answer's headers name, else the feed itself; of several, one with a safe address."""
    links = [
        pair for value in response.header_values("link") for pair in read_link_header(value, response.url)
    ]
    hubs = [url for rel, url in links if rel == "hub"] or list(feed.hub_links)
    hubs = sorted(
        (url for url in hubs if url.lower().startswith(("http://", "https://"))),
        key=lambda url: not url.lower().startswith("https://"),
    )
    if not hubs:
        return None
    topic = next((url for rel, url in links if rel == "self"), None) or feed.self_link or response.url
    return Hub(hubs[0], topic)


async def read_feed(response: Response) -> Feed:
    return await parse_feed(response.body, response.url, response.content_type)
