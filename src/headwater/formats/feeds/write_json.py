"""Writes prepared feeds as JSON Feed 1.1. What it has no key for is under `_headwater`."""

from collections.abc import Mapping
from typing import Any

import orjson

from headwater.formats.feeds.extras.vocabulary import EXTENSIONS, JSON_EXTENSIONS
from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.jsonfeed import OWN
from headwater.formats.feeds.prepare import NO_TYPE
from headwater.formats.feeds.write_xml import iso_date
from headwater.formats.html import escape_text, plain_text
from headwater.model import Enclosure, Hints, Json

Object = dict[str, Any]


def as_json_feed(feed: Feed, records: Mapping[str, Json]) -> bytes:
    """JSON Feed 1.1. The record of an entry is `item` of its extension."""
    description = plain_text(feed.description or "")
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "home_page_url": feed.link,
        "feed_url": feed.self_link,
        "next_url": feed.next_link,
        "description": description,
        "icon": feed.image,
        "favicon": feed.icon,
        "language": feed.language,
        "authors": _people(feed.authors),
        "hubs": [{"type": "WebSub", "url": hub} for hub in feed.hub_links],
    }
    own = {
        "id": feed.id,
        "description_html": _html_beside(description, feed.description),
        "categories": list(feed.categories),
        "generator": feed.generator,
        "rights": feed.rights,
        "date_published": iso_date(feed.published),
        "date_modified": iso_date(feed.updated),
        "hints": _hints(feed.hints),
    }
    items = [_item(entry, records.get(entry.id or "")) for entry in feed.entries]
    return orjson.dumps({**_with_own(document, own, feed.extras), "items": items})


def _item(entry: Entry, record: Json | None) -> Object:
    summary = plain_text(entry.summary or "")
    item = {
        "url": entry.link,
        "title": entry.title,
        "content_html": entry.content,
        "summary": summary,
        "image": entry.image,
        "date_published": iso_date(entry.published),
        "date_modified": iso_date(entry.updated),
        "authors": _people(entry.authors),
        "tags": list(entry.categories),
        "language": entry.language,
        "attachments": [_file(file) for file in entry.enclosures],
    }
    own = {
        "summary_html": _html_beside(summary, entry.summary),
        "comments_url": entry.comments_url,
        "comments_feed": entry.comments_feed,
        "comments_count": entry.comments_count,
        "source_title": entry.source_title,
        "source_url": entry.source_url,
        "item": record,
    }
    # The specification wants one of the two contents in every item.
    empty = {} if entry.content else {"content_text": ""}
    return {"id": entry.id, **empty, **_with_own(item, own, entry.extras)}


def _with_own(document: Object, own: Object, extras: Json | None) -> Object:
    """What a document has values for; `own` and the extras in our extension; those of others as they were."""
    extras = dict(extras or {})
    extensions = dict(extras.pop(EXTENSIONS, {}))
    others = extensions.pop(JSON_EXTENSIONS, {})
    own = {**_without_empty({**own, EXTENSIONS: extensions}), **extras}
    return {**others, **_without_empty({**document, OWN: own})}


def _without_empty(values: Object) -> Object:
    return {key: value for key, value in values.items() if value}


def _html_beside(text: str, html: str | None) -> str | None:
    """HTML that says more than its plain text."""
    return html if html and escape_text(text) != html else None


def _people(people: tuple[Person, ...]) -> list[Object]:
    return [_without_empty({"name": p.name, "url": p.url, "_email": p.email}) for p in people]


def _file(file: Enclosure) -> Object:
    return _without_empty(
        {
            "url": file.url,
            "mime_type": file.media_type or NO_TYPE,
            "title": file.title,
            "size_in_bytes": file.length,
            "duration_in_seconds": file.duration_seconds,
        }
    )


def _hints(hints: Hints) -> Object:
    return _without_empty(
        {
            "ttl_seconds": hints.ttl_seconds,
            "update_period_seconds": hints.update_period_seconds,
            "skip_hours": list(hints.skip_hours),
            "skip_days": list(hints.skip_days),
        }
    )
