"""`web.telegram`: the posts of a public Telegram channel, by the page with which Telegram shows it to everyone.

Older posts are behind `?before=`, and are asked for while nothing on a page is known.
"""

import re
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field
from selectolax.lexbor import LexborNode

from headwater.collectors.base import Collector, FetchRequest, FetchResult, StructuredConfig, request_for
from headwater.errors import FailureKind, VisitError
from headwater.fetch.message import NO_VALIDATORS, Response, public_url
from headwater.formats.dates import parse_date
from headwater.formats.html import collapse
from headwater.formats.links import resolve_html
from headwater.formats.pages.document import read_html
from headwater.model import Enclosure, Item, SourceMetadata
from headwater.threads import read_aside

TITLE_CHARACTERS: Final = 100
_PICTURE: Final = re.compile(r"background-image:\s*url\(['\"]?(https?://[^'\")]+)")
_COUNT: Final = re.compile(r"([\d.]+)([KM]?)\Z")


class TelegramConfig(StructuredConfig):
    max_pages: int = Field(
        default=3, ge=1, le=50, description="How many pages of older posts are read at most."
    )


@dataclass(frozen=True, slots=True)
class _Page:
    items: tuple[Item, ...]
    title: str | None
    description: str | None
    icon: str | None
    before: int | None  # the number of the oldest post on it


class TelegramCollector(Collector):
    config_model = TelegramConfig

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        source, config = fetch_request.source, fetch_request.config
        response = await fetch_request.fetcher.get(request_for(source, config))
        if response.unchanged:
            return FetchResult.of(response)
        first = await read_aside(len(response.body), _read, response)
        if first.title is None:
            raise VisitError(
                FailureKind.NOT_FOUND if source.last_entry_at is None else FailureKind.CHANGED_STRUCTURE,
                "{url} shows no posts: the channel is private, is missing, or has switched its preview off",
                http_status=response.status,
                url=public_url(source.url),
            )
        items = {item.external_id: item for item in first.items}
        requests, received = response.requests, response.bytes_received
        page = first
        for _ in range(config.max_pages - 1):
            if page.before is None or await fetch_request.known([item.external_id for item in page.items]):
                break
            older = urlsplit(source.url)._replace(query=f"before={page.before}").geturl()
            answer = await fetch_request.fetcher.get(
                replace(request_for(source, config, older), validators=NO_VALIDATORS)
            )
            requests, received = requests + answer.requests, received + answer.bytes_received
            page = await read_aside(len(answer.body), _read, answer)
            if all(item.external_id in items for item in page.items):
                break
            items |= {item.external_id: item for item in page.items if item.external_id not in items}
        return replace(
            FetchResult.of(response),
            items=tuple(items.values()),
            metadata=SourceMetadata(first.title, first.description, source.url, icon_url=first.icon),
            requests=requests,
            bytes_received=received,
        )


def _read(response: Response) -> _Page:
    document = read_html(response.body, response.content_type)
    title = document.css_first(".tgme_channel_info_header_title")
    about = document.css_first(".tgme_channel_info_description")
    icon = document.css_first(".tgme_page_photo_image img[src]")
    found = [
        item
        for post in document.css(".tgme_widget_message[data-post]")
        if (item := _item(post, response.url))
    ]
    numbers = [int(tail) for item in found if (tail := item.external_id.rpartition("/")[2]).isdigit()]
    return _Page(
        tuple(reversed(found)),  # the page shows the newest last
        collapse(title.text()) or None if title else None,
        (about.html or None) if about else None,
        icon.attributes.get("src") if icon else None,
        min(numbers) if numbers and min(numbers) > 1 else None,
    )


def _item(post: LexborNode, base: str) -> Item | None:
    name = post.attributes.get("data-post") or ""
    if "service_message" in (post.attributes.get("class") or "") or "/" not in name:
        return None  # that a picture was changed, or a post pinned
    body = post.css_first(".tgme_widget_message_text.js-message_text") or post.css_first(
        ".tgme_widget_message_text"
    )
    date = post.css_first(".tgme_widget_message_date time[datetime]") or post.css_first("time[datetime]")
    files = _files(post)
    text = body.text(separator="\n") if body else ""
    line = next((found for each in text.split("\n") if (found := collapse(each))), "")
    author = post.css_first(".tgme_widget_message_from_author") or post.css_first(
        ".tgme_widget_message_owner_name"
    )
    preview = post.css_first("a.tgme_widget_message_link_preview[href]")
    at = parse_date(date.attributes.get("datetime")) if date else None
    content = resolve_html(body.inner_html or "", base) if body else None
    if preview is not None and (preview.attributes.get("href") or "") not in (content or ""):
        content = f"{content or ''}<p>{preview.html}</p>"
    return Item(
        external_id=name,
        url=f"https://t.me/{name}",
        title=(line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1]}…") or name,
        author=collapse(author.text()) or None if author else None,
        content=content,
        published_at=at.timestamp() if at else None,
        image_url=next((file.url for file in files if (file.media_type or "").startswith("image/")), None),
        enclosures=files,
        score=_views(post),
    )


def _files(post: LexborNode) -> tuple[Enclosure, ...]:
    found: dict[str, Enclosure] = {}
    for node in post.css(".tgme_widget_message_photo_wrap, .tgme_widget_message_video_thumb"):
        if picture := _PICTURE.search(node.attributes.get("style") or ""):
            found.setdefault(picture[1], Enclosure(picture[1], "image/jpeg"))
    for tag, kind in (("video", "video/mp4"), ("audio", "audio/ogg")):
        for node in post.css(f"{tag}[src]"):
            url = node.attributes.get("src") or ""
            if url.startswith(("http://", "https://")):
                found.setdefault(url, Enclosure(url, kind))
    return tuple(found.values())


def _views(post: LexborNode) -> int | None:
    node = post.css_first(".tgme_widget_message_views")
    match = _COUNT.match(collapse(node.text()).upper()) if node else None
    if match is None or match[1].count(".") > 1 or match[1] == ".":
        return None
    return int(float(match[1]) * {"": 1, "K": 1_000, "M": 1_000_000}[match[2]])
