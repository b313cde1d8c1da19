"""Writes prepared feeds as RSS 2.0 and Atom 1.0."""

from datetime import datetime
from email.utils import format_datetime
from typing import Any, Final

from lxml import etree

from headwater.formats.feeds.extras.vocabulary import CATEGORY_SCHEMES, NAMESPACES
from headwater.formats.feeds.extras.write import add_element as _add
from headwater.formats.feeds.extras.write import write_extras
from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.prepare import update_frequency
from headwater.formats.feeds.scope import Element
from headwater.formats.feeds.timing import DAYS
from headwater.formats.html import escape_text, plain_text
from headwater.formats.xml.names import XML_NAMESPACE
from headwater.model import Enclosure, Hints, Json

_LANG: Final = f"{{{XML_NAMESPACE}}}lang"


def as_rss(feed: Feed) -> bytes:
    """RSS 2.0."""
    used = {prefix: uri for prefix, uri in NAMESPACES.items() if prefix != "rss"}
    root = etree.Element("rss", {"version": "2.0"}, nsmap=used)
    channel = _add(root, "channel")
    _add(channel, "title", _rss_title(feed.title))
    _add_text(channel, "link", feed.link)
    _add(channel, "description", feed.description)
    _add_feed_links(channel, feed, "application/rss+xml")
    _add_text(channel, "atom:id", feed.id)
    _add_text(channel, "language", feed.language)
    _add_text(channel, "copyright", feed.rights)
    for person in feed.authors:
        _add_person(channel, person)
    _add_text(channel, "pubDate", _rss_date(feed.published))
    _add_text(channel, "lastBuildDate", _rss_date(feed.updated))
    schemes = _schemes(feed.extras)
    for category in feed.categories:
        _add(channel, "category", category, domain=schemes.get(category))
    _add_text(channel, "generator", feed.generator)
    _add_hints(channel, feed.hints, "")
    _add_text(channel, "atom:icon", feed.icon)
    if feed.image:
        image = _add(channel, "image")
        _add(image, "url", feed.image)
        _add(image, "title", _rss_title(feed.title))
        _add_text(image, "link", feed.link)
    write_extras(channel, feed.extras)
    for entry in feed.entries:
        _add_rss_item(channel, entry)
    return _serialize(root)


def _add_rss_item(channel: Element, entry: Entry) -> None:
    live = (entry.extras or {}).get("live")
    item = _add(channel, "podcast:liveItem", **live[0]) if live else _add(channel, "item")
    _add(item, "title", _rss_title(entry.title))
    _add_text(item, "link", entry.link)
    _add(item, "guid", entry.id, isPermaLink="false")
    _add_text(item, "pubDate", _rss_date(entry.published))
    _add_text(item, "atom:updated", iso_date(entry.updated))
    for person in entry.authors:
        _add_text(item, "dc:creator", person.name)
        _add_person(item, person)
    schemes = _schemes(entry.extras)
    for category in entry.categories:
        _add(item, "category", category, domain=schemes.get(category))
    _add_text(item, "description", entry.summary)
    _add_text(item, "content:encoded", entry.content)
    for number, file in enumerate(entry.enclosures):
        is_enclosure = number == 0 and file.media_type is not None  # RSS has one, with all three attributes
        if is_enclosure:
            _add(item, "enclosure", url=file.url, length=str(file.length or 0), type=file.media_type)
        if file.title or not is_enclosure:
            _add_file_link(item, file)
    _add_media(item, entry)
    _add_text(item, "dc:language", entry.language)
    _add_text(item, "comments", entry.comments_url)
    _add_text(item, "wfw:commentRss", entry.comments_feed)
    _add_text(item, "slash:comments", str(entry.comments_count or ""))
    if entry.source_url:
        _add(item, "source", entry.source_title, url=entry.source_url)
    elif entry.source_title:
        _add(item, "dc:source", entry.source_title)  # RSS's own element demands an address


def as_atom(feed: Feed) -> bytes:
    """Atom 1.0."""
    namespaces: Any = {None: NAMESPACES["atom"], **{p: uri for p, uri in NAMESPACES.items() if p != "atom"}}
    root = etree.Element(f"{{{NAMESPACES['atom']}}}feed", nsmap=namespaces)
    if feed.language:
        root.set(_LANG, feed.language)
    _add(root, "atom:title", feed.title, type="text")
    _add_link(root, feed.link, rel="alternate")
    _add_feed_links(root, feed, "application/atom+xml")
    _add(root, "atom:id", feed.id)
    _add_text(root, "atom:updated", iso_date(feed.updated))
    if feed.description:
        _add(root, "atom:subtitle", feed.description, type="html")
    for person in feed.authors:
        _add_person(root, person)
    _add_atom_categories(root, feed.categories, feed.extras)
    _add_text(root, "atom:generator", feed.generator)
    _add_text(root, "atom:icon", feed.icon)
    _add_text(root, "atom:logo", feed.image)
    _add_text(root, "atom:rights", feed.rights)
    _add_text(root, "rss:pubDate", _rss_date(feed.published))
    _add_hints(root, feed.hints, "rss:")
    write_extras(root, feed.extras)
    for entry in feed.entries:
        _add_atom_entry(root, entry)
    return _serialize(root)


def _add_atom_entry(root: Element, item: Entry) -> None:
    entry = _add(root, "atom:entry")
    if item.language:
        entry.set(_LANG, item.language)
    _add(entry, "atom:title", item.title, type="text")
    _add_link(entry, item.link, rel="alternate")
    _add(entry, "atom:id", item.id)
    _add_text(entry, "atom:published", iso_date(item.published))
    _add_text(entry, "atom:updated", iso_date(item.updated))
    for person in item.authors:
        _add_person(entry, person)
    _add_atom_categories(entry, item.categories, item.extras)
    if item.summary:
        _add(entry, "atom:summary", item.summary, type="html")
    if item.content or not item.link:  # Atom demands one of the two
        _add(entry, "atom:content", item.content or "", type="html")
    for file in item.enclosures:
        _add_file_link(entry, file)
    _add_link(entry, item.comments_url, rel="replies", type="text/html")
    _add_link(entry, item.comments_feed, rel="replies", type="application/atom+xml")
    _add_text(entry, "thr:total", str(item.comments_count or ""))
    if item.source_title or item.source_url:
        source = _add(entry, "atom:source")
        if item.source_title:
            _add(source, "atom:title", item.source_title, type="text")
        _add_link(source, item.source_url, rel="self")
    _add_media(entry, item)
    for live in (item.extras or {}).get("live", ()):
        _add(entry, "podcast:liveItem", **live)


def _add_text(parent: Element, name: str, text: str | None) -> None:
    if text:
        _add(parent, name, text)


def _add_link(parent: Element, href: str | None, **attributes: str | None) -> None:
    if href:
        _add(parent, "atom:link", href=href, **attributes)


def _add_feed_links(parent: Element, feed: Feed, own_type: str) -> None:
    _add_link(parent, feed.self_link, rel="self", type=own_type)
    _add_link(parent, feed.next_link, rel="next", type=own_type)
    for hub in feed.hub_links:
        _add_link(parent, hub, rel="hub")


def _add_file_link(parent: Element, file: Enclosure) -> None:
    length = str(file.length) if file.length else None
    _add_link(parent, file.url, rel="enclosure", type=file.media_type, length=length, title=file.title)


def _add_person(parent: Element, person: Person) -> None:
    element = _add(parent, "atom:author")
    _add_text(element, "atom:name", person.name)
    _add_text(element, "atom:email", person.email)
    _add_text(element, "atom:uri", person.url)


def _add_atom_categories(parent: Element, categories: tuple[str, ...], extras: Json | None) -> None:
    schemes = _schemes(extras)
    for category in categories:
        _add(parent, "atom:category", term=category, scheme=schemes.get(category))


def _schemes(extras: Json | None) -> dict[str, str]:
    """Which list each category is from."""
    return {each["name"]: each["scheme"] for each in (extras or {}).get(CATEGORY_SCHEMES, ())}


def _add_hints(parent: Element, hints: Hints, prefix: str) -> None:
    """When to come back; `prefix` is that of RSS, which has the words for it."""
    if hints.ttl_seconds:
        _add(parent, f"{prefix}ttl", str(round(hints.ttl_seconds / 60)))
    if hints.skip_hours:
        hours = _add(parent, f"{prefix}skipHours")
        for hour in hints.skip_hours:
            _add(hours, f"{prefix}hour", str(hour))
    if hints.skip_days:
        days = _add(parent, f"{prefix}skipDays")
        for day in hints.skip_days:
            _add(days, f"{prefix}day", DAYS[day].title())
    if hints.update_period_seconds:
        name, times = update_frequency(hints.update_period_seconds)
        _add(parent, "sy:updatePeriod", name)
        _add(parent, "sy:updateFrequency", str(times))


def _add_media(parent: Element, entry: Entry) -> None:
    """Add what enclosures and links have no place for: durations, the picture, and the extras of an entry."""
    for file in entry.enclosures:
        if file.duration_seconds is not None:
            # Without a type, and with a medium that is not a picture: it adds to the enclosure of the same address.
            seconds = f"{file.duration_seconds:.3f}".rstrip("0").rstrip(".")
            _add(parent, "media:content", url=file.url, medium="document", duration=seconds)
    if len(entry.enclosures) == 1 and (duration := entry.enclosures[0].duration_seconds) and duration >= 1:
        _add(parent, "itunes:duration", str(int(duration)))
    if entry.image and "thumbnails" in (entry.extras or {}):
        _add(parent, "itunes:image", href=entry.image)
    elif entry.image:
        _add(parent, "media:thumbnail", url=entry.image)
    write_extras(parent, entry.extras)


def _rss_title(title: str) -> str:
    """A title for RSS, whose readers decode HTML in it: escaped where decoding would change it."""
    return title if plain_text(title) == title else escape_text(title)


def _rss_date(moment: datetime | None) -> str | None:
    return format_datetime(moment) if moment else None


def iso_date(moment: datetime | None) -> str | None:
    # strftime does not pad years before 1000
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0") if moment else None


def _serialize(root: Element) -> bytes:
    etree.cleanup_namespaces(root, keep_ns_prefixes=["atom"])
    return etree.tostring(root, encoding="utf-8", xml_declaration=True, pretty_print=False)
