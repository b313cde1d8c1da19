"""Reads RSS 0.90 to 2.0, RDF Site Summary and their extensions from an element tree.

Atom elements inside RSS are read too. It never fails: a field it cannot read is absent.
"""

from collections.abc import Iterator
from typing import Final

from headwater.formats.dates import parse_date
from headwater.formats.feeds.categories import CATEGORY_NAMES, add_categories
from headwater.formats.feeds.extras.read import add_extras, add_live, concerns_extras
from headwater.formats.feeds.feed import Entry, Feed
from headwater.formats.feeds.fields import (
    Fields,
    Table,
    read_address,
    read_count,
    read_date,
    read_fields,
    read_text,
    read_text_address,
    sources,
)
from headwater.formats.feeds.media import FILE_NAMES, IMAGES, MEDIA_NAMES, add_files, spread_media
from headwater.formats.feeds.persons import read_creator, read_person
from headwater.formats.feeds.relations import NO_LINKS, read_links
from headwater.formats.feeds.scope import (
    Children,
    Element,
    Scope,
    first_text,
    inner_text,
    language_of,
    pick,
)
from headwater.formats.feeds.text import atom_body, itunes_body, plain_body, read_title, rss_body
from headwater.formats.feeds.timing import TIMING_NAMES, add_hints
from headwater.formats.html import collapse
from headwater.formats.limits import MOST_ENTRIES
from headwater.formats.links import is_absolute

_RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_PUBLISHED: Final = (
    "pubdate atom:published atom:issued dcterms:issued atom:created dcterms:created dcterms:available"
)
_UPDATED: Final = "atom:updated atom:modified dcterms:modified"


def _add_source(found: Fields, scope: Scope, children: Children, names: tuple[str, ...]) -> None:
    """Add the feed that an item was taken from."""
    title = url = None
    for element in children.get("source", ()):
        title, url = collapse(inner_text(element)) or None, scope.attribute_link(element, "url", "href")
        if title or url:
            break
    else:
        if "atom:source" in children:
            inner = scope.children(children["atom:source"][0])
            links = read_links(scope, pick(inner, "atom:link", "link"))
            title = next((read_title(scope, e) or None for e in pick(inner, "atom:title", "title")), None)
            url = links.self_link or links.alternate
        else:
            title = collapse(first_text(children, "dc:source") or "") or None
    found["source_title"], found["source_url"] = title, url


_MORE: Final = (
    (add_extras, concerns_extras),
    (add_categories, CATEGORY_NAMES.__contains__),
)
_ITEM: Final = Table(
    first={
        "id": sources(read_text, "guid atom:id id dc:identifier"),
        "title": sources(read_title, "title atom:title dc:title itunes:title media:title"),
        # Which of the two dates dc:date is, its specification does not say.
        "published": sources(read_date, f"{_PUBLISHED} dc:date date"),
        "updated": sources(read_date, f"{_UPDATED} lastbuilddate dc:date date"),
        "summary": (
            ("description", rss_body),
            ("atom:summary", atom_body),
            *sources(rss_body, "dc:description abstract"),
            *sources(itunes_body, "itunes:summary itunes:subtitle"),
            ("media:description", rss_body),
        ),
        "content": (
            *sources(rss_body, "content:encoded xhtml:body xhtml:div body fullitem"),
            *sources(atom_body, "atom:content content"),
        ),
        "link": sources(read_text_address, "feedburner:origlink"),  # what FeedBurner put its own address for
        "image": IMAGES,
        "language": sources(read_text, "dc:language language"),
        "comments_url": sources(read_text_address, "comments"),
        "comments_feed": sources(read_text_address, "wfw:commentrss"),
        "comments_count": sources(read_count, "slash:comments thr:total"),
    },
    every={
        "authors": (
            sources(read_person, "atom:author"),
            (("author", read_person), ("dc:creator", read_creator), ("dc:author", read_person)),
            sources(read_person, "itunes:author"),
            sources(read_person, "googleplay:author"),
            sources(read_person, "dc:contributor atom:contributor dc:publisher"),
            sources(read_person, "media:credit"),
        ),
    },
    more=(*_MORE, (_add_source, frozenset(("source", "atom:source", "dc:source")).__contains__)),
)


_CHANNEL: Final = Table(
    first={
        "title": sources(read_title, "title atom:title dc:title media:title itunes:title"),
        "id": sources(read_text, "atom:id dc:identifier"),
        "description": (
            *sources(rss_body, "description tagline abstract"),
            *sources(atom_body, "atom:subtitle atom:tagline"),
            *sources(plain_body, "dc:description itunes:summary itunes:subtitle"),
        ),
        "language": sources(read_text, "language dc:language"),
        "icon": sources(read_text_address, "atom:icon"),
        "generator": sources(read_text, "generator atom:generator"),
        "rights": sources(read_text, "copyright atom:rights dc:rights dcterms:rights"),
        "published": sources(read_date, _PUBLISHED),
        "updated": sources(read_date, f"lastbuilddate {_UPDATED} dc:date date"),
    },
    every={
        "authors": (
            sources(read_person, "atom:author"),
            (
                *sources(read_person, "managingeditor author"),
                ("dc:creator", read_creator),
                ("dc:author", read_person),
            ),
            sources(read_person, "itunes:author googleplay:author"),
            sources(read_person, "itunes:owner"),
            sources(read_person, "dc:publisher webmaster"),
        ),
    },
    more=(*_MORE, (add_hints, TIMING_NAMES.__contains__)),
)


def read_rss(scope: Scope, root: Element, format_name: str) -> Feed:
    """The feed under `root`, which is `rss`, `rdf:RDF` or `channel`."""
    is_channel = scope.names[root.tag] == "channel"
    top: Children = {} if is_channel else scope.children(root, MOST_ENTRIES)
    channels = [root] if is_channel else top.get("channel", [])
    channel = scope.children(channels[0], MOST_ENTRIES) if channels else {}
    for element in channels[1:]:
        for name, found in scope.children(element, MOST_ENTRIES).items():
            channel.setdefault(name, []).extend(found)
    fields = _read_channel(scope, channel, top)
    if "id" not in fields:
        abouts = ((element.get(f"{_RDF}about") or "").strip() for element in channels)
        fields["id"] = next(filter(None, abouts), None)
    if "language" not in fields:
        fields["language"] = next(filter(None, map(language_of, (*channels, root))), None)
    link = fields["link"]
    if link and is_absolute(link):
        # RSS has no rule for relative addresses. Publishers mean their site; the document's own address is
        # often that of a feed host.
        scope = Scope(scope.names, link, scope.tree)
    entries = tuple([read_item(scope, item) for item in _items(scope, channel, top)])
    return Feed(format=format_name, entries=entries, **fields)


def _read_channel(scope: Scope, channel: Children, top: Children) -> Fields:
    links = read_links(scope, pick(channel, "atom:link", "link"))
    has_media = not MEDIA_NAMES.isdisjoint(channel)
    fields = read_fields(_CHANNEL, scope, spread_media(scope, channel) if has_media else channel)
    fields["link"] = _plain_link(scope, channel)[0] or links.alternate
    fields["image"] = _channel_image(scope, channel, top)
    fields |= {
        "self_link": links.self_link,
        "next_link": links.next_link,
        "archive_link": links.archive_link,
        "hub_links": links.hubs,
    }
    return fields


def _items(scope: Scope, channel: Children, top: Children) -> Iterator[Element]:
    """Items in the channel (RSS 2.0), beside it (RDF, RSS without a channel) or in a list of items (RSS 1.1)."""
    for children in (channel, top):
        yield from pick(children, "item", "atom:entry", "entry")
        for holder in children.get("items", ()):
            yield from scope.children(holder, MOST_ENTRIES).get("item", ())
        yield from children.get("podcast:liveitem", ())


def read_item(scope: Scope, item: Element) -> Entry:
    """One item."""
    children = scope.children(item)
    if not MEDIA_NAMES.isdisjoint(children):
        children = spread_media(scope, children)
    fields = read_fields(_ITEM, scope, children)
    link, has_atom_form = _plain_link(scope, children)
    links = NO_LINKS
    if has_atom_form or "atom:link" in children:
        links = read_links(scope, pick(children, "atom:link", "link"))
        fields.setdefault("comments_url", links.replies)
        fields.setdefault("comments_feed", links.replies_feed)
    if link := fields.get("link") or link or links.alternate or _permalink(scope, children):
        fields["link"] = link
    if links.enclosures or not FILE_NAMES.isdisjoint(children):
        add_files(fields, scope, children, links)
    if item.keys():
        _add_attributes(fields, scope, item, children)
    return Entry(**fields)


def _add_attributes(fields: Fields, scope: Scope, item: Element, children: Children) -> None:
    """Add what the attributes of an item state: an address in RDF and CDF, a date in CDF, the time of a live item."""
    if about := (item.get(f"{_RDF}about") or item.get("about") or "").strip():
        fields["id"] = first_text(children, "guid", "atom:id", "id") or about
        if about.startswith("http") and is_absolute(about):
            fields.setdefault("link", about)
    if href := item.get("href") or item.get("HREF"):
        fields.setdefault("link", scope.link(item, href))
    if modified := parse_date(item.get("lastmod") or item.get("LASTMOD")):
        fields.setdefault("updated", modified)
    if language := language_of(item):
        fields.setdefault("language", language)
    if scope.names[item.tag] == "podcast:liveitem":
        add_live(fields, item)


def _plain_link(scope: Scope, children: Children) -> tuple[str | None, bool]:
    """`<link>address</link>`, or Atom's form of it written without its namespace, of which the last counts; and
    whether there is one in Atom's form."""
    found, has_atom_form = None, False
    for element in children.get("link", ()):
        if not element.keys():
            found = scope.link(element, inner_text(element)) or found
            continue
        href = element.get("href")
        has_atom_form = has_atom_form or bool(href)
        if (element.get("rel") or "alternate").strip().lower() == "alternate":
            found = scope.link(element, inner_text(element) or href) or found
    return found, has_atom_form


def _permalink(scope: Scope, children: Children) -> str | None:
    """The id of an item, where it is an address or says that it is one."""
    for element in pick(children, "guid", "atom:id", "id"):
        if text := inner_text(element):
            said = (element.get("isPermaLink") or element.get("ispermalink") or "").strip().lower()
            is_address = said == "true" or text.lower().startswith(("http://", "https://"))
            return scope.link(element, text) if is_address and said != "false" and " " not in text else None
    return None


def _channel_image(scope: Scope, channel: Children, top: Children) -> str | None:
    for element in (*channel.get("image", ()), *top.get("image", ())):
        url = scope.link(element, first_text(scope.children(element), "url"))
        if url := url or scope.attribute_link(element, "href", f"{_RDF}resource"):
            return url
    for element in pick(channel, "itunes:image", "podcast:image", "media:thumbnail", "atom:logo"):
        if url := read_address(scope, element):
            return url
    return None
