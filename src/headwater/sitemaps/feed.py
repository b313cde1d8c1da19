"""The feed of a site: the newest things found on it, kept from run to run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from headwater.collectors.sitemap_pages import Story
from headwater.errors import InputError
from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.write import MEDIA_TYPES, write_feed
from headwater.formats.html import escape_text

ENDINGS: Final[Mapping[str, str]] = {".xml": "rss", ".rss": "rss", ".atom": "atom", ".json": "json"}


@dataclass(frozen=True, slots=True)
class Channel:
    """What a feed says of itself. What is missing is made up from the site's address."""

    title: str | None = None
    description: str | None = None
    link: str | None = None
    language: str | None = None
    self_link: str | None = None


def read_format(output: Path | None, format: str | None) -> str:
    """The format that a name or the ending of a file means; InputError says what there is."""
    if format is None:
        return ENDINGS.get(output.suffix.lower(), "rss") if output else "rss"
    if format.lower() not in MEDIA_TYPES:
        raise InputError(
            "there is no format {format}; choose one of {known}", format=format, known=", ".join(MEDIA_TYPES)
        )
    return format.lower()


def merge_entries(before: str, stories: Sequence[Story], most: int, now: float) -> str:
    """The entries to show, as JSON: the stories, then those shown before that are not among them."""
    found_at = datetime.fromtimestamp(now, UTC).isoformat()
    entries = {story.url: {**_story_as_json(story), "found_at": found_at} for story in stories}
    for entry in orjson.loads(before):
        entries.setdefault(entry["url"], entry)
    return orjson.dumps(list(entries.values())[:most]).decode()


def _story_as_json(story: Story) -> dict[str, Any]:
    values = {
        "url": story.url,
        "title": story.title,
        "published": story.published.isoformat() if story.published else None,
        "modified": story.modified.isoformat() if story.modified else None,
        "description": story.description,
        "language": story.language,
        "image": story.image,
        "author": story.author,
    }
    return {name: _clean(value) for name, value in values.items() if value}


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def render(entries: str, channel: Channel, site_url: str, format: str) -> bytes:
    """The document of a feed with these entries. The same entries give the same bytes."""
    parts = urlsplit(site_url)
    feed = Feed(
        format="",
        title=channel.title or parts.netloc,
        link=channel.link or f"{parts.scheme}://{parts.netloc}/",
        description=channel.description,
        language=channel.language,
        self_link=channel.self_link,
        generator="Headwater",
        entries=tuple(map(_entry, orjson.loads(entries))),
    )
    return write_feed(feed, format)


def _entry(entry: Mapping[str, Any]) -> Entry:
    found, modified = _date(entry["found_at"]), _date(entry.get("modified"))
    description = entry.get("description")
    return Entry(
        id=entry["url"],
        link=entry["url"],
        title=entry["title"],
        authors=(Person(name=entry["author"]),) if entry.get("author") else (),
        published=_date(entry.get("published")) or modified or found,
        updated=modified or found,
        summary=escape_text(description) if description else None,
        image=entry.get("image"),
        language=entry.get("language"),
    )


def _date(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
