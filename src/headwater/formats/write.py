"""Writes RSS 2.0, Atom 1.0 and JSON Feed 1.1 from a Feed.

What one format has no word for is said in a well-known extension, so that reading the document back gives the
same feed. The same feed gives the same bytes. It neither fetches nor asks a clock; `publish.prepare` fills
what is missing.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import format_datetime
from typing import Any, Final

import orjson
from lxml import etree

from headwater.formats.entry import Entry, Feed, Person
from headwater.formats.html import escape_text, plain_text
from headwater.formats.names import XML_NAMESPACE
from headwater.formats.publish import NO_TYPE, prepare, update_frequency
from headwater.model import Enclosure, Hints

ATOM: Final = "http://www.w3.org/2005/Atom"
CONTENT: Final = "http://purl.org/rss/1.0/modules/content/"
DC: Final = "http://purl.org/dc/elements/1.1/"
ITUNES: Final = "http://www.itunes.com/dtds/podcast-1.0.dtd"
MEDIA: Final = "http://search.yahoo.com/mrss/"
PODCAST: Final = "https://podcastindex.org/namespace/1.0"
RSS: Final = "http://backend.userland.com/rss2"
SLASH: Final = "http://purl.org/rss/1.0/modules/slash/"
SY: Final = "http://purl.org/rss/1.0/modules/syndication/"
THR: Final = "http://purl.org/syndication/thread/1.0"
WFW: Final = "http://wellformedweb.org/CommentAPI/"
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LANG: Final = f"{{{XML_NAMESPACE}}}lang"

MEDIA_TYPES: Final = {
    "rss": "application/rss+xml; charset=utf-8",
    "atom": "application/atom+xml; charset=utf-8",
    "json": "application/feed+json",
}


def write_feed(feed: Feed, format: str) -> bytes:
    """The document of `feed` in `format`, one of the keys of MEDIA_TYPES."""
    writers: Mapping[str, Callable[[Feed], bytes]] = {
        "rss": write_rss,
        "atom": write_atom,
        "json": write_json_feed,
    }
    return writers[format](feed)


def _add(
    parent: etree._Element, tag: str, text: str | None = None, /, **attributes: str | None
) -> etree._Element:
    element = etree.SubElement(
        parent, tag, {key: value for key, value in attributes.items() if value is not None}
    )
    element.text = text
    return element


def _add_text(parent: etree._Element, tag: str, text: str | None) -> None:
    if text:
        _add(parent, tag, text)


def _add_person(parent: etree._Element, person: Person) -> None:
    element = _add(parent, f"{{{ATOM}}}author")
    _add_text(element, f"{{{ATOM}}}name", person.name)
    _add_text(element, f"{{{ATOM}}}email", person.email)
    _add_text(element, f"{{{ATOM}}}uri", person.url)


def _add_feed_links(parent: etree._Element, feed: Feed, own_type: str) -> None:
    for rel, href, kind in (("self", feed.self_link, own_type), ("next", feed.next_link, own_type)):
        if href:
            _add(parent, f"{{{ATOM}}}link", rel=rel, href=href, type=kind)
    for hub in feed.hub_links:
        _add(parent, f"{{{ATOM}}}link", rel="hub", href=hub)


def _add_period(parent: etree._Element, hints: Hints) -> None:
    if hints.update_period_seconds:
        name, times = update_frequency(hints.update_period_seconds)
        _add(parent, f"{{{SY}}}updatePeriod", name)
        _add(parent, f"{{{SY}}}updateFrequency", str(times))


def _add_rss_hints(parent: etree._Element, hints: Hints, namespace: str = "") -> None:
    def name(local: str) -> str:
        return f"{{{namespace}}}{local}" if namespace else local

    if hints.ttl_seconds:
        _add(parent, name("ttl"), str(round(hints.ttl_seconds / 60)))
    if hints.skip_hours:
        hours = _add(parent, name("skipHours"))
        for hour in hints.skip_hours:
            _add(hours, name("hour"), str(hour))
    if hints.skip_days:
        days = _add(parent, name("skipDays"))
        for day in hints.skip_days:
            _add(days, name("day"), _DAYS[day])


def _add_media(parent: etree._Element, entry: Entry) -> None:
    """What enclosures and links have no place for: durations, the picture, chapters, transcripts."""
    for file in entry.enclosures:
        if file.duration_seconds is None:
            continue
        # Without a type, and with a medium that is no picture: it only adds to the enclosure of the same
        # address.
        duration = _number(file.duration_seconds)
        _add(parent, f"{{{MEDIA}}}content", url=file.url, medium="document", duration=duration)
    if len(entry.enclosures) == 1 and (seconds := entry.enclosures[0].duration_seconds) and seconds >= 1:
        _add(parent, f"{{{ITUNES}}}duration", str(int(seconds)))
    if entry.image:
        _add(parent, f"{{{MEDIA}}}thumbnail", url=entry.image)
    if entry.chapters:
        _add(parent, f"{{{PODCAST}}}chapters", url=entry.chapters.url, type=entry.chapters.media_type)
    for file in entry.transcripts:
        _add(parent, f"{{{PODCAST}}}transcript", url=file.url, type=file.media_type, language=file.title)


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _length(file: Enclosure) -> str | None:
    return str(file.length) if file.length else None


def _add_file_link(parent: etree._Element, file: Enclosure) -> None:
    attributes = {"rel": "enclosure", "type": file.media_type, "length": _length(file), "title": file.title}
    _add(parent, f"{{{ATOM}}}link", href=file.url, **attributes)


def _rss_text(title: str) -> str:
    """A title for RSS, whose readers decode HTML in it: escaped where decoding would change it."""
    return title if plain_text(title) == title else escape_text(title)


def _rss_date(moment: datetime) -> str:
    return format_datetime(moment)


def _iso_date(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")  # strftime does not pad years before 1000


def _serialize(root: etree._Element) -> bytes:
    etree.cleanup_namespaces(root, keep_ns_prefixes=["atom"])
    return etree.tostring(root, encoding="utf-8", xml_declaration=True, pretty_print=False)


def write_rss(feed: Feed) -> bytes:
    """RSS 2.0."""
    feed = prepare(feed)
    namespaces = {
        "atom": ATOM,
        "content": CONTENT,
        "dc": DC,
        "itunes": ITUNES,
        "media": MEDIA,
        "podcast": PODCAST,
        "slash": SLASH,
        "sy": SY,
        "wfw": WFW,
    }
    root = etree.Element("rss", {"version": "2.0"}, nsmap=namespaces)
    channel = _add(root, "channel")
    _add(channel, "title", _rss_text(feed.title))
    _add_text(channel, "link", feed.link)
    _add(channel, "description", feed.description)
    _add_feed_links(channel, feed, "application/rss+xml")
    _add_text(channel, f"{{{ATOM}}}id", feed.id)
    _add_text(channel, "language", feed.language)
    _add_text(channel, "copyright", feed.rights)
    for person in feed.authors:
        _add_person(channel, person)
    if feed.published:
        _add(channel, "pubDate", _rss_date(feed.published))
    if feed.updated:
        _add(channel, "lastBuildDate", _rss_date(feed.updated))
    for category in feed.categories:
        _add(channel, "category", category)
    _add_text(channel, "generator", feed.generator)
    _add_rss_hints(channel, feed.hints)
    _add_period(channel, feed.hints)
    _add_text(channel, f"{{{ATOM}}}icon", feed.icon)
    if feed.image:
        image = _add(channel, "image")
        _add(image, "url", feed.image)
        _add(image, "title", _rss_text(feed.title))
        _add_text(image, "link", feed.link)
    for entry in feed.entries:
        _add_rss_item(channel, entry)
    return _serialize(root)


def _add_rss_item(channel: etree._Element, entry: Entry) -> None:
    item = _add(channel, "item")
    _add(item, "title", _rss_text(entry.title))
    _add_text(item, "link", entry.link)
    _add(item, "guid", entry.id, isPermaLink="false")
    if entry.published:
        _add(item, "pubDate", _rss_date(entry.published))
    if entry.updated:
        _add(item, f"{{{ATOM}}}updated", _iso_date(entry.updated))
    for person in entry.authors:
        _add_text(item, f"{{{DC}}}creator", person.name)
        _add_person(item, person)
    for category in entry.categories:
        _add(item, "category", category)
    _add_text(item, "description", entry.summary)
    _add_text(item, f"{{{CONTENT}}}encoded", entry.content)
    for number, file in enumerate(entry.enclosures):
        is_enclosure = number == 0 and file.media_type is not None  # RSS has one, with all three attributes
        if is_enclosure:
            _add(item, "enclosure", url=file.url, length=_length(file) or "0", type=file.media_type)
        if file.title or not is_enclosure:
            _add_file_link(item, file)
    _add_media(item, entry)
    _add_text(item, f"{{{DC}}}language", entry.language)
    _add_text(item, "comments", entry.comments_url)
    _add_text(item, f"{{{WFW}}}commentRss", entry.comments_feed)
    if entry.comments_count:
        _add(item, f"{{{SLASH}}}comments", str(entry.comments_count))
    if entry.source_url:
        _add(item, "source", entry.source_title, url=entry.source_url)
    elif entry.source_title:
        _add(_add(item, f"{{{ATOM}}}source"), f"{{{ATOM}}}title", entry.source_title, type="text")


def write_atom(feed: Feed) -> bytes:
    """Atom 1.0."""
    feed = prepare(feed, author_needed=True)
    namespaces: Any = {
        None: ATOM,
        "itunes": ITUNES,
        "media": MEDIA,
        "podcast": PODCAST,
        "rss": RSS,
        "sy": SY,
    }
    root = etree.Element(f"{{{ATOM}}}feed", nsmap={**namespaces, "thr": THR, "wfw": WFW})
    if feed.language:
        root.set(_LANG, feed.language)
    _add(root, f"{{{ATOM}}}title", feed.title, type="text")
    if feed.link:
        _add(root, f"{{{ATOM}}}link", rel="alternate", href=feed.link)
    _add_feed_links(root, feed, "application/atom+xml")
    _add(root, f"{{{ATOM}}}id", feed.id)
    if feed.updated:
        _add(root, f"{{{ATOM}}}updated", _iso_date(feed.updated))
    if feed.description:
        _add(root, f"{{{ATOM}}}subtitle", feed.description, type="html")
    for person in feed.authors:
        _add_person(root, person)
    for category in feed.categories:
        _add(root, f"{{{ATOM}}}category", term=category)
    _add_text(root, f"{{{ATOM}}}generator", feed.generator)
    _add_text(root, f"{{{ATOM}}}icon", feed.icon)
    _add_text(root, f"{{{ATOM}}}logo", feed.image)
    _add_text(root, f"{{{ATOM}}}rights", feed.rights)
    if feed.published:
        _add(root, f"{{{RSS}}}pubDate", _rss_date(feed.published))
    _add_rss_hints(root, feed.hints, RSS)
    _add_period(root, feed.hints)
    for entry in feed.entries:
        _add_atom_entry(root, entry)
    return _serialize(root)


def _add_atom_entry(root: etree._Element, item: Entry) -> None:
    entry = _add(root, f"{{{ATOM}}}entry")
    if item.language:
        entry.set(_LANG, item.language)
    _add(entry, f"{{{ATOM}}}title", item.title, type="text")
    if item.link:
        _add(entry, f"{{{ATOM}}}link", rel="alternate", href=item.link)
    _add(entry, f"{{{ATOM}}}id", item.id)
    if item.published:
        _add(entry, f"{{{ATOM}}}published", _iso_date(item.published))
    if item.updated:
        _add(entry, f"{{{ATOM}}}updated", _iso_date(item.updated))
    for person in item.authors:
        _add_person(entry, person)
    for category in item.categories:
        _add(entry, f"{{{ATOM}}}category", term=category)
    if item.summary:
        _add(entry, f"{{{ATOM}}}summary", item.summary, type="html")
    if item.content:
        _add(entry, f"{{{ATOM}}}content", item.content, type="html")
    for file in item.enclosures:
        _add_file_link(entry, file)
    if item.comments_url:
        _add(entry, f"{{{ATOM}}}link", rel="replies", type="text/html", href=item.comments_url)
    if item.comments_feed:
        _add(entry, f"{{{ATOM}}}link", rel="replies", type="application/atom+xml", href=item.comments_feed)
    if item.comments_count:
        _add(entry, f"{{{THR}}}total", str(item.comments_count))
    if item.source_title or item.source_url:
        source = _add(entry, f"{{{ATOM}}}source")
        if item.source_title:
            _add(source, f"{{{ATOM}}}title", item.source_title, type="text")
        if item.source_url:
            _add(source, f"{{{ATOM}}}link", rel="self", href=item.source_url)
    _add_media(entry, item)


def write_json_feed(feed: Feed) -> bytes:
    """JSON Feed 1.1. What it has no key for is under `_headwater`."""
    feed = prepare(feed)
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
        "authors": _json_people(feed.authors),
        "hubs": [{"type": "WebSub", "url": hub} for hub in feed.hub_links],
        "_headwater": _without_empty(
            {
                "id": feed.id,
                "description_html": feed.description
                if escape_text(description) != feed.description
                else None,
                "categories": list(feed.categories),
                "generator": feed.generator,
                "rights": feed.rights,
                "date_published": _iso_date(feed.published) if feed.published else None,
                "date_modified": _iso_date(feed.updated) if feed.updated else None,
                "hints": _json_hints(feed.hints),
            }
        ),
    }
    return orjson.dumps({**_without_empty(document), "items": [_json_item(entry) for entry in feed.entries]})


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def _json_item(entry: Entry) -> dict[str, Any]:
    summary = plain_text(entry.summary or "")
    item = {
        "url": entry.link,
        "title": entry.title,
        "content_html": entry.content,
        "summary": summary,
        "image": entry.image,
        "date_published": _iso_date(entry.published) if entry.published else None,
        "date_modified": _iso_date(entry.updated) if entry.updated else None,
        "authors": _json_people(entry.authors),
        "tags": list(entry.categories),
        "language": entry.language,
        "attachments": [_json_file(file) for file in entry.enclosures],
        "_headwater": _without_empty(
            {
                "summary_html": entry.summary
                if entry.summary and escape_text(summary) != entry.summary
                else None,
                "comments_url": entry.comments_url,
                "comments_feed": entry.comments_feed,
                "comments_count": entry.comments_count,
                "source_title": entry.source_title,
                "source_url": entry.source_url,
                "chapters": _json_file(entry.chapters) if entry.chapters else None,
                "transcripts": [_json_file(file) for file in entry.transcripts],
            }
        ),
    }
    # The specification wants one of the two contents in every item.
    return {"id": entry.id, **({} if entry.content else {"content_text": ""}), **_without_empty(item)}


def _json_people(people: tuple[Person, ...]) -> list[dict[str, Any]]:
    return [_without_empty({"name": p.name, "url": p.url, "_email": p.email}) for p in people]


def _json_file(file: Enclosure) -> dict[str, Any]:
    return _without_empty(
        {
            "url": file.url,
            "mime_type": file.media_type or NO_TYPE,
            "title": file.title,
            "size_in_bytes": file.length,
            "duration_in_seconds": file.duration_seconds,
        }
    )


def _json_hints(hints: Hints) -> dict[str, Any]:
    return _without_empty(
        {
            "ttl_seconds": hints.ttl_seconds,
            "update_period_seconds": hints.update_period_seconds,
            "skip_hours": list(hints.skip_hours),
            "skip_days": list(hints.skip_days),
        }
    )
