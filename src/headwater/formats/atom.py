"""Reads Atom 0.3 and 1.0 (and single Atom entries) from an element tree.

It never fails: a field it cannot read is absent.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from headwater.formats.dates import parse_date
from headwater.formats.elements import (
    Children,
    Element,
    Scope,
    atom_body,
    first_text,
    first_title,
    inner_text,
    language_of,
    pick,
    positive_integer,
    read_atom_person,
    rss_body,
    unique,
    unique_persons,
)
from headwater.formats.entry import Entry, Feed, Person
from headwater.formats.html import collapse, escape_text
from headwater.formats.links import is_absolute
from headwater.formats.media import (
    entry_chapters,
    entry_duration,
    entry_image,
    entry_transcripts,
    media_children,
    media_files,
    merge_files,
)
from headwater.formats.timing import read_hints
from headwater.model import Enclosure

ATOM_DATES_PUBLISHED: Final = (
    "atom:published",
    "atom:issued",
    "dcterms:issued",
    "atom:created",
    "dcterms:created",
    "dcterms:available",
)
ATOM_DATES_UPDATED: Final = ("atom:updated", "atom:modified", "dcterms:modified")
_IANA: Final = "http://www.iana.org/assignments/relation/"
_PAGE_TYPES: Final = ("", "text/html", "application/xhtml+xml")
_FEED_TYPES: Final = (
    "application/atom+xml",
    "application/rss+xml",
    "application/rdf+xml",
    "text/xml",
    "application/xml",
)


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a feed or entry, by what they are for."""

    alternate: str | None = None
    self_link: str | None = None
    next_link: str | None = None
    replies: str | None = None
    replies_feed: str | None = None
    hubs: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()


def read_links(scope: Scope, elements: Iterable[Element]) -> Links:
    """Sort link elements by their rel."""
    pages: list[str] = []
    others: list[str] = []
    found: dict[str, str] = {}
    hubs: list[str] = []
    enclosures: list[Enclosure] = []
    replies = replies_feed = None
    for element in elements:
        href = scope.attribute_link(element, "href")
        if href is None:
            # Some write Atom's link as RSS's.
            href = (
                scope.link(element, inner_text(element))
                if element.get("rel") in (None, "alternate")
                else None
            )
            if href is None:
                continue
        kind = (element.get("type") or "").strip().lower()
        for rel in (element.get("rel") or "alternate").lower().removeprefix(_IANA).split() or ["alternate"]:
            if rel == "alternate":
                (pages if kind in _PAGE_TYPES else others).append(href)
            elif rel == "enclosure":
                enclosures.append(
                    Enclosure(
                        url=href,
                        media_type=kind or None,
                        length=positive_integer(element.get("length")),
                        title=collapse(element.get("title") or "") or None,
                    )
                )
            elif rel == "hub":
                hubs.append(href)
            elif rel == "replies":
                if kind in _FEED_TYPES:
                    replies_feed = replies_feed or href
                else:
                    replies = replies or href
            else:
                found.setdefault(rel, href)
    return Links(
        alternate=next(iter(pages or others), None),
        self_link=found.get("self"),
        next_link=found.get("next"),
        replies=replies,
        replies_feed=replies_feed,
        hubs=unique(hubs),
        enclosures=tuple(enclosures),
    )


def read_atom(scope: Scope, root: Element, format_name: str) -> Feed:
    """The feed under `root`, which is `feed`, or an `entry` alone."""
    if scope.names[root.tag] == "atom:entry":
        entry = read_entry(scope, root)
        return Feed(format=format_name, language=language_of(root), entries=(entry,))
    children = scope.children(root)
    for channel in pick(children, "channel", "rss:channel"):  # a mixture of both formats
        for name, elements in scope.children(channel).items():
            children.setdefault(name, []).extend(elements)
    links = read_links(scope, pick(children, "atom:link", "link"))
    if scope.base is None and (base := links.self_link or links.alternate) and is_absolute(base):
        scope = Scope(scope.names, base, scope.has_xml_base)
    authors = _people(scope, children)
    return Feed(
        format=format_name,
        title=_title(children),
        id=first_text(children, "atom:id", "atom:guid", "dc:identifier"),
        link=links.alternate,
        description=_body(scope, children, "atom:subtitle", "atom:tagline", "atom:description", "atom:info"),
        language=language_of(root) or first_text(children, "atom:language", "dc:language"),
        icon=_address(scope, children, "atom:icon"),
        image=_address(scope, children, "atom:logo", "itunes:image", "media:thumbnail"),
        authors=authors,
        categories=_categories(children),
        generator=first_text(children, "atom:generator"),
        rights=first_text(children, "atom:rights", "atom:copyright", "dc:rights"),
        published=_date(children, *ATOM_DATES_PUBLISHED, "atom:pubdate", "pubdate"),
        updated=_date(children, *ATOM_DATES_UPDATED, "dc:date", "atom:lastbuilddate"),
        self_link=links.self_link,
        next_link=links.next_link,
        hub_links=links.hubs,
        hints=read_hints(scope, children),
        entries=tuple(
            read_entry(scope, entry, authors) for entry in pick(children, "atom:entry", "atom:item", "item")
        ),
    )


def read_entry(scope: Scope, entry: Element, feed_authors: tuple[Person, ...] = ()) -> Entry:
    """One entry. Without authors of its own it has those of its source, else those of the feed (RFC 4287,
    4.2.1)."""
    children = scope.children(entry)
    links = read_links(scope, pick(children, "atom:link", "link"))
    files = merge_files(_files(scope, children, links), entry_duration(children))
    source_title, source_url = _source(scope, children)
    return Entry(
        id=_identifier(scope, children),
        link=links.alternate or _content_source(scope, children),
        title=_title(children) or _media_title(scope, children),
        authors=_people(scope, children) or _source_authors(scope, children) or feed_authors,
        published=_date(children, *ATOM_DATES_PUBLISHED, "atom:pubdate", "pubdate"),
        updated=_date(children, *ATOM_DATES_UPDATED, "dc:date"),
        summary=_body(scope, children, "atom:summary", "atom:description", "description")
        or _media_text(scope, children),
        content=_body(scope, children, "atom:content", "content:encoded", "xhtml:body"),
        categories=_categories(children),
        enclosures=files,
        image=entry_image(scope, children, files),
        language=language_of(entry) or first_text(children, "dc:language", "atom:language"),
        comments_url=links.replies or _address(scope, children, "atom:comments", "comments"),
        comments_feed=links.replies_feed or _address(scope, children, "wfw:commentrss"),
        comments_count=positive_integer(first_text(children, "thr:total", "slash:comments")),
        source_title=source_title,
        source_url=source_url,
        chapters=entry_chapters(scope, children) if "podcast" in scope.names.prefixes else None,
        transcripts=entry_transcripts(scope, children) if "podcast" in scope.names.prefixes else (),
    )


def _identifier(scope: Scope, children: Children) -> str | None:
    """The id as written. Only the document's own xml:base completes a relative one: with the address of the
    document it would change whenever the feed moves."""
    for element in pick(children, "atom:id", "atom:guid", "guid", "dc:identifier"):
        if text := inner_text(element):
            return text if not scope.has_xml_base or is_absolute(text) else scope.declared_link(element, text)
    return None


def _source_authors(scope: Scope, children: Children) -> tuple[Person, ...]:
    for element in pick(children, "atom:source"):
        return _people(scope, scope.children(element))
    return ()


def _title(children: Children) -> str:
    return first_title(children, "atom:title", "title", "dc:title")


def _media_title(scope: Scope, children: Children) -> str:
    return next(
        (t for inner in media_children(scope, children) if (t := first_title(inner, "media:title"))), ""
    )


def _media_text(scope: Scope, children: Children) -> str | None:
    if "media" not in scope.names.prefixes:
        return None
    for inner in media_children(scope, children):
        if text := first_text(inner, "media:description"):
            return escape_text(text)
    return None


def _body(scope: Scope, children: Children, *names: str) -> str | None:
    for element in pick(children, *names):
        is_atom = scope.names[element.tag].startswith("atom:")
        if body := atom_body(scope, element) if is_atom else rss_body(scope, element):
            return body
    return None


def _content_source(scope: Scope, children: Children) -> str | None:
    """Content that lies elsewhere is where the entry is, when no link says so."""
    for element in pick(children, "atom:content"):
        if src := scope.attribute_link(element, "src"):
            return src
    return None


def _people(scope: Scope, children: Children) -> tuple[Person, ...]:
    for names in (
        ("atom:author", "author"),
        ("dc:creator",),
        ("itunes:author",),
        ("atom:contributor", "dc:contributor"),
    ):
        if people := unique_persons(read_atom_person(scope, element) for element in pick(children, *names)):
            return people
    return ()


def _date(children: Children, *names: str) -> datetime | None:
    for name in names:
        if name in children:
            for element in children[name]:
                if moment := parse_date(inner_text(element)):
                    return moment
    return None


def _address(scope: Scope, children: Children, *names: str) -> str | None:
    for element in pick(children, *names):
        if url := scope.attribute_link(element, "href", "url") or scope.link(element, inner_text(element)):
            return url
    return None


def _categories(children: Children) -> tuple[str, ...]:
    return unique(
        collapse(element.get("label") or element.get("term") or inner_text(element))
        for element in pick(children, "atom:category", "category", "dc:subject")
    )


def _files(scope: Scope, children: Children, links: Links) -> Iterable[Enclosure]:
    yield from links.enclosures
    yield from media_files(scope, children)


def _source(scope: Scope, children: Children) -> tuple[str | None, str | None]:
    for element in pick(children, "atom:source"):
        inner = scope.children(element)
        links = read_links(scope, pick(inner, "atom:link", "link"))
        title = _title(inner) or None
        url = links.self_link or links.alternate
        if title or url:
            return title, url
    return collapse(first_text(children, "dc:source") or "") or None, None
