"""`api.bluesky`: the posts of a profile, a feed or a list on Bluesky, by its public API, which needs no account."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from pydantic import Field

from headwater.collectors.answer import number_of, read_json, read_list, text_of
from headwater.collectors.base import Collector, FetchRequest, FetchResult, StructuredConfig, request_for
from headwater.errors import FailureKind, VisitError
from headwater.fetch.message import NO_VALIDATORS, Response, public_url
from headwater.formats.dates import parse_date
from headwater.formats.html import collapse, escape_text, text_as_html
from headwater.formats.links import is_followable
from headwater.model import Enclosure, Item, SourceMetadata

SITE: Final = "https://bsky.app"
PAGE_SIZE: Final = 50
TITLE_CHARACTERS: Final = 100
_PATH: Final = re.compile(r"/profile/(?P<actor>[^/]+)(?:/(?P<kind>feed|lists)/(?P<key>[^/]+))?/?\Z")
_FILTERS: Final = frozenset(
    ("posts_no_replies", "posts_with_replies", "posts_with_media", "posts_and_author_threads")
)
_LINK: Final = "app.bsky.richtext.facet#link"


class BlueskyConfig(StructuredConfig):
    reposts: bool = Field(default=False, description="Whether posts that an author passes on become items.")
    limit: int = Field(default=100, ge=1, le=1_000, description="How many posts at most in one visit.")
    base_url: str = Field(
        default="https://public.api.bsky.app", pattern=r"^https?://", description="The API's address."
    )


class BlueskyCollector(Collector):
    config_model = BlueskyConfig

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        config: BlueskyConfig = fetch_request.config
        method, params, by = _asked(fetch_request.source.url)
        items: dict[str, Item] = {}
        requests = received = left_out = 0
        first: Response | None = None
        while True:
            query = urlencode({**params, "limit": str(PAGE_SIZE)})
            url = f"{config.base_url.rstrip('/')}/xrpc/{method}?{query}"
            request = request_for(fetch_request.source, config, url)
            response = await fetch_request.fetcher.get(
                replace(request, accept="application/json", validators=NO_VALIDATORS)
            )
            first = first or response
            requests, received = requests + response.requests, received + response.bytes_received
            answer = read_json(response)
            posts = read_list(answer, "feed", response.url)
            wanted = [each for each in posts if config.reposts or not (by and _is_repost(each))]
            left_out += len(posts) - len(wanted)
            page = [item for each in wanted if (item := _item(each)) is not None]
            before = len(items)
            items |= {item.external_id: item for item in page}
            following = text_of(answer.get("cursor"))
            if (
                following is None
                or not posts
                or len(items) >= config.limit
                or (page and len(items) == before)
            ):
                break
            if await fetch_request.known([item.external_id for item in page]):
                break
            params["cursor"] = following
        name = next((item.author for item in items.values()), None) if by else None
        return replace(
            FetchResult.of(first),
            items=tuple(items.values())[: config.limit],
            metadata=SourceMetadata(name, site_url=fetch_request.source.url),
            left_out_count=left_out,
            validators=NO_VALIDATORS,
            permanent_url=None,
            requests=requests,
            bytes_received=received,
        )


def _asked(url: str) -> tuple[str, dict[str, str], bool]:
    """The method and the parameters for an address of the site, and whether it is a profile's."""
    parts = urlsplit(url)
    found = _PATH.search(unquote(parts.path))
    if found is None:
        raise VisitError(
            FailureKind.NOT_FOUND,
            "{url} is not the address of a profile, a feed or a list on Bluesky",
            url=public_url(url),
        )
    if found["kind"] == "feed":
        return (
            "app.bsky.feed.getFeed",
            {"feed": f"at://{found['actor']}/app.bsky.feed.generator/{found['key']}"},
            False,
        )
    if found["kind"] == "lists":
        return (
            "app.bsky.feed.getListFeed",
            {"list": f"at://{found['actor']}/app.bsky.graph.list/{found['key']}"},
            False,
        )
    shown = parse_qs(parts.query).get("show", ["posts_no_replies"])[0]
    kind = shown if shown in _FILTERS else "posts_no_replies"
    return "app.bsky.feed.getAuthorFeed", {"actor": found["actor"], "filter": kind}, True


def _is_repost(entry: Any) -> bool:
    reason = entry.get("reason") if isinstance(entry, Mapping) else None
    return isinstance(reason, Mapping) and str(reason.get("$type")).endswith("#reasonRepost")


def _object(value: Any, *names: str) -> Mapping[str, Any]:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _item(entry: Any) -> Item | None:
    post = _object(entry, "post")
    uri = text_of(post.get("uri"))
    record, author = _object(post, "record"), _object(post, "author")
    if uri is None or not record:
        return None
    handle = text_of(author.get("handle")) or text_of(author.get("did")) or ""
    text = text_of(record.get("text")) or ""
    at = parse_date(text_of(record.get("createdAt")))
    embed = _object(post, "embed")
    files = _files(embed)
    line = collapse(text) or next((file.title for file in files if file.title), None) or handle
    spoken = record.get("langs")
    tags = [
        tag
        for facet in _facets(record)
        for each in _features(facet)
        if str(each.get("$type")).endswith("#tag") and (tag := text_of(each.get("tag")))
    ]
    return Item(
        external_id=uri,
        url=f"{SITE}/profile/{handle}/post/{uri.rpartition('/')[2]}",
        title=line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1]}…",
        author=text_of(author.get("displayName")) or handle,
        content=_body(record, text) + _quoted(embed),
        published_at=at.timestamp() if at else None,
        language=text_of(spoken[0]) if isinstance(spoken, list) and spoken else None,
        image_url=next((file.url for file in files), None),
        categories=tuple(dict.fromkeys(tags)),
        enclosures=files,
        score=number_of(post.get("likeCount")),
        comments_count=number_of(post.get("replyCount")),
    )


def _facets(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    facets = record.get("facets")
    return [each for each in facets if isinstance(each, Mapping)] if isinstance(facets, list) else []


def _features(facet: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    features = facet.get("features")
    return [each for each in features if isinstance(each, Mapping)] if isinstance(features, list) else []


def _body(record: Mapping[str, Any], text: str) -> str:
    """The text with its links: facets say between which bytes of it they stand, in shortened form."""
    data = text.encode()
    spans: list[tuple[int, int, str]] = []
    for facet in _facets(record):
        index = _object(facet, "index")
        start, end = number_of(index.get("byteStart")), number_of(index.get("byteEnd"))
        link = next(
            (text_of(each.get("uri")) for each in _features(facet) if each.get("$type") == _LINK), None
        )
        if (
            link
            and is_followable(link)
            and start is not None
            and end is not None
            and 0 <= start < end <= len(data)
        ):
            spans.append((start, end, link))
    if not spans:
        return text_as_html(text)
    parts: list[str] = []
    place = 0
    for start, end, link in sorted(spans):
        if start < place:
            continue
        shown = escape_text(data[start:end].decode("utf-8", "replace"))
        address = escape_text(link).replace('"', "&quot;")
        parts += [
            escape_text(data[place:start].decode("utf-8", "replace")),
            f'<a href="{address}">{shown}</a>',
        ]
        place = end
    parts.append(escape_text(data[place:].decode("utf-8", "replace")))
    return f"<p>{''.join(parts)}</p>".replace("\n", "<br>\n")


def _quoted(embed: Mapping[str, Any]) -> str:
    """The page that a post shows, and the post that it quotes."""
    shown = ""
    card = _object(embed, "external") or _object(embed, "media", "external")
    if (url := text_of(card.get("uri"))) and is_followable(url):
        address = escape_text(url).replace('"', "&quot;")
        shown += f'<p><a href="{address}">{escape_text(text_of(card.get("title")) or url)}</a></p>'
    quoted = _object(embed, "record")
    quoted = quoted if "value" in quoted else _object(quoted, "record")
    if text := text_of(_object(quoted, "value").get("text")):
        by = text_of(_object(quoted, "author").get("handle"))
        shown += f"<blockquote>{f'<p>@{escape_text(by)}</p>' if by else ''}{text_as_html(text)}</blockquote>"
    return shown


def _files(embed: Mapping[str, Any]) -> tuple[Enclosure, ...]:
    found = []
    for holder in (embed, _object(embed, "media")):
        images = holder.get("images")
        for each in images if isinstance(images, list) else ():
            if isinstance(each, Mapping) and (
                url := text_of(each.get("fullsize")) or text_of(each.get("thumb"))
            ):
                found.append(Enclosure(url, "image/jpeg", title=text_of(each.get("alt"))))
        if playlist := text_of(holder.get("playlist")):
            found.append(
                Enclosure(playlist, "application/vnd.apple.mpegurl", title=text_of(holder.get("alt")))
            )
    return tuple(found)
