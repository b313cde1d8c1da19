"""Reads Atom 0.3 and 1.0, and single Atom entries, from an element tree.

It never fails: a field it cannot read is absent.
"""

from typing import Final

from headwater.formats.feeds.categories import CATEGORY_NAMES, add_categories
from headwater.formats.feeds.extras.read import add_extras, add_live, concerns_extras
from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.fields import (
    Fields,
    Source,
    Table,
    read_address,
    read_count,
    read_date,
    read_fields,
    read_line,
    read_text,
    sources,
)
from headwater.formats.feeds.media import FILE_NAMES, IMAGES, MEDIA_NAMES, add_files, spread_media
from headwater.formats.feeds.persons import read_person
from headwater.formats.feeds.relations import read_links
from headwater.formats.feeds.scope import Children, Element, Scope, inner_text, language_of, pick
from headwater.formats.feeds.text import atom_body, plain_body, read_title, rss_body
from headwater.formats.feeds.timing import TIMING_NAMES, add_hints
from headwater.formats.limits import MOST_ENTRIES
from headwater.formats.links import is_absolute

_TITLES: Final = sources(read_title, "atom:title title dc:title")
_PUBLISHED: Final = sources(
    read_date,
    "atom:published atom:issued dcterms:issued atom:created dcterms:created dcterms:available atom:pubdate pubdate",
)
_UPDATED: Final = sources(read_date, "atom:updated atom:modified dcterms:modified dc:date")
_AUTHORS: Final = (
    sources(read_person, "atom:author author"),
    sources(read_person, "dc:creator"),
    sources(read_person, "itunes:author"),
    sources(read_person, "atom:contributor dc:contributor"),
)
_EXTRAS: Final = (
    (add_extras, concerns_extras),
    (add_categories, CATEGORY_NAMES.__contains__),
)


def _read_identifier(scope: Scope, element: Element) -> str | None:
    """The id as written. Only the document's own xml:base completes a relative one: with the address of the
    document it would change whenever the feed moves."""
    text = inner_text(element)
    if is_absolute(text) or not scope.tree.has_xml_base:
        return text
    return scope.declared_link(element, text)


_SOURCE: Final = Table(first={"source_title": _TITLES}, every={"authors": _AUTHORS})


def _add_source(found: Fields, scope: Scope, children: Children, names: tuple[str, ...]) -> None:
    """Add the feed that an entry was taken from. An entry without authors has those of its source."""
    inner = scope.children(children["atom:source"][0])
    source = read_fields(_SOURCE, scope, inner)
    links = read_links(scope, pick(inner, "atom:link", "link"))
    found |= {"source_url": links.self_link or links.alternate, **source, **found}


_FEED: Final = Table(
    first={
        "title": _TITLES,
        "id": sources(read_text, "atom:id atom:guid dc:identifier"),
        "description": sources(atom_body, "atom:subtitle atom:tagline atom:description atom:info"),
        "language": sources(read_text, "atom:language dc:language"),
        "icon": sources(read_address, "atom:icon"),
        "image": sources(read_address, "atom:logo itunes:image media:thumbnail"),
        "generator": sources(read_text, "atom:generator"),
        "rights": sources(read_text, "atom:rights atom:copyright dc:rights"),
        "published": _PUBLISHED,
        "updated": (*_UPDATED, ("atom:lastbuilddate", read_date)),
    },
    every={"authors": _AUTHORS},
    more=(*_EXTRAS, (add_hints, TIMING_NAMES.__contains__)),
)
_ENTRY: Final = Table(
    first={
        "id": sources(_read_identifier, "atom:id atom:guid guid dc:identifier"),
        "title": (*_TITLES, ("media:title", read_title)),
        "published": _PUBLISHED,
        "updated": _UPDATED,
        "summary": (
            *sources(atom_body, "atom:summary atom:description"),
            ("description", rss_body),
            ("media:description", plain_body),
        ),
        "content": (("atom:content", atom_body), *sources(rss_body, "content:encoded xhtml:body")),
        "image": IMAGES,
        "language": sources(read_text, "dc:language atom:language"),
        "comments_url": sources(read_address, "atom:comments comments"),
        "comments_feed": sources(read_address, "wfw:commentrss"),
        "comments_count": sources(read_count, "thr:total slash:comments"),
        "source_title": sources(read_line, "dc:source"),
    },
    every={"authors": _AUTHORS},
    more=(*_EXTRAS, (_add_source, frozenset(("atom:source",)).__contains__)),
)
# Where an entry without a link is.
_ADDRESSES: Final[tuple[Source, ...]] = (
    ("atom:content", lambda scope, element: scope.attribute_link(element, "src")),
    ("feedburner:origlink", read_address),
)
_PLACE: Final = Table(first={"link": _ADDRESSES})


def read_atom(scope: Scope, root: Element, format_name: str) -> Feed:
    """The feed under `root`, which is `feed`, or an `entry` alone."""
    if scope.names[root.tag] == "atom:entry":
        entry = read_entry(scope, root)
        return Feed(format=format_name, language=language_of(root), entries=(entry,))
    children = scope.children(root, MOST_ENTRIES)
    for channel in pick(children, "channel", "rss:channel"):  # a mixture of both formats
        for name, elements in scope.children(channel, MOST_ENTRIES).items():
            children.setdefault(name, []).extend(elements)
    links = read_links(scope, pick(children, "atom:link", "link"))
    if scope.base is None and (base := links.self_link or links.alternate) and is_absolute(base):
        scope = Scope(scope.names, base, scope.tree)
    has_media = not MEDIA_NAMES.isdisjoint(children)
    fields = read_fields(_FEED, scope, spread_media(scope, children) if has_media else children)
    if language := language_of(root):
        fields["language"] = language
    authors = fields.get("authors", ())
    return Feed(
        format=format_name,
        link=links.alternate,
        self_link=links.self_link,
        next_link=links.next_link,
        archive_link=links.archive_link,
        hub_links=links.hubs,
        entries=tuple(
            read_entry(scope, entry, authors) for entry in pick(children, "atom:entry", "atom:item", "item")
        ),
        **fields,
    )


def read_entry(scope: Scope, entry: Element, feed_authors: tuple[Person, ...] = ()) -> Entry:
    """One entry. Without authors it has those of its source, else those of the feed (RFC 4287, 4.2.1)."""
    children = scope.children(entry)
    if not MEDIA_NAMES.isdisjoint(children):
        children = spread_media(scope, children)
    fields = read_fields(_ENTRY, scope, children)
    links = read_links(scope, pick(children, "atom:link", "link"))
    fields.setdefault("authors", feed_authors)
    fields["link"] = links.alternate or _other_link(scope, children, fields.get("id"))
    if links.replies or links.replies_feed:
        fields |= {
            "comments_url": links.replies or fields.get("comments_url"),
            "comments_feed": links.replies_feed or fields.get("comments_feed"),
        }
    if links.enclosures or not FILE_NAMES.isdisjoint(children):
        add_files(fields, scope, children, links)
    if entry.keys() and (language := language_of(entry)):
        fields["language"] = language
    for live in children.get("podcast:liveitem", ())[:1]:
        add_live(fields, live)
    return Entry(**fields)


def _other_link(scope: Scope, children: Children, identifier: str | None) -> str | None:
    """Where an entry without a link is: where its content is, at the address FeedBurner took from it, or at its id."""
    if "atom:content" in children or "feedburner:origlink" in children:
        found: str | None = read_fields(_PLACE, scope, children).get("link")
        if found:
            return found
    return identifier if identifier and identifier.lower().startswith(("http://", "https://")) else None
