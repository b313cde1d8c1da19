"""`rss.feed` and `rss.digest`: RSS, RDF, Atom and JSON Feed."""

from dataclasses import replace

from headwater.collectors.base import Collector, FetchRequest, FetchResult, request_for
from headwater.fetch.message import Response
from headwater.formats.feeds.feed import Feed, to_item
from headwater.formats.feeds.parse import parse
from headwater.formats.links import read_link_header
from headwater.model import Hub, Item, Json, url_key
from headwater.threads import read_aside

BIG_BYTES = 64_000  # parsed off the event loop from here on: it takes longer than a thread costs


class FeedCollector(Collector):
    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        source = fetch_request.source
        response = await fetch_request.fetcher.get(request_for(source, fetch_request.config))
        result = await read_result(response)
        if response.unchanged and not result.permanent_url:
            # What the document said when it was last read still holds.
            return replace(result, permanent_url=new_address(source.metadata.details, response.url))
        return result


async def read_result(response: Response) -> FetchResult:
    """The result from an answer that is a feed, or that nothing has changed."""
    if response.unchanged:
        return FetchResult.of(response)
    feed = await read_feed(response)
    result = FetchResult.of(
        response,
        items=await read_items(feed, len(response.body)),
        metadata=feed.metadata,
        document_hints=feed.hints,
        hub=hub_of(response, feed),
        beyond_count=feed.left_out_count,
    )
    moved_to = new_address(feed.extras, response.url)
    return result if moved_to is None or result.permanent_url else replace(result, permanent_url=moved_to)


def new_address(details: Json | None, url: str) -> str | None:
    """Where a podcast says that it has moved for good, by itunes:new-feed-url; None: nowhere else."""
    said = str((details or {}).get("new_feed_url") or "")
    is_other = said.lower().startswith(("http://", "https://")) and url_key(said) != url_key(url)
    return said if is_other else None


async def read_items(feed: Feed, size: int) -> tuple[Item, ...]:
    """The items of a feed that was so many bytes long, made off the event loop when it is big."""
    return _make_items(feed) if size < BIG_BYTES else await read_aside(size, _make_items, feed)


def _make_items(feed: Feed) -> tuple[Item, ...]:
    return tuple(to_item(entry, feed) for entry in feed.entries)


async def read_feed(response: Response) -> Feed:
    """The feed in an answer; ParseError when it is none."""
    return await parse_feed(response.body, response.url, response.content_type)


async def parse_feed(body: bytes, url: str, content_type: str | None) -> Feed:
    """The feed in `body`, read off the event loop when it is big."""
    if len(body) < BIG_BYTES:
        return parse(body, url=url, content_type=content_type)
    return await read_aside(len(body), parse, body, url=url, content_type=content_type)


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
