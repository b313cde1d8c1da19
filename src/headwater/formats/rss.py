"""Reads RSS 0.90 to 2.0, RDF Site Summary and their extensions from an element tree.

Which element wins where several say the same is written as the order of names in each `first_…` call. Atom
elements inside RSS are read too. It never fails: a field it cannot read is absent.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from headwater.formats.atom import ATOM_DATES_PUBLISHED, ATOM_DATES_UPDATED, Links, read_links
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
    read_person_text,
    rss_body,
    unique,
    unique_persons,
)
from headwater.formats.entry import Entry, Feed, Person
from headwater.formats.html import collapse, escape_text, plain_text
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

_AUTHOR_NAMES: Final = (
    ("atom:author",),
    ("author", "dc:creator", "dc:author"),
    ("itunes:author",),
    ("googleplay:author",),
    ("dc:contributor", "atom:contributor", "dc:publisher"),
)
# Which of the two dc:date is, nobody says.
_PUBLISHED: Final = ("pubdate", *ATOM_DATES_PUBLISHED, "dc:date", "date")
_BODIES: Final = ("content:encoded", "xhtml:body", "xhtml:div", "body", "fullitem")
_CATEGORIES: Final = ("category", "atom:category", "dc:subject", "media:category")
_UPDATED: Final = (*ATOM_DATES_UPDATED, "lastbuilddate", "dc:date", "date")
_NO_LINKS: Final = Links()
# What the fields that every item has are read from: where an item has nothing else, no other field need be looked for.
_USUAL: Final = frozenset(
    ("title", "link", "guid", "description", "content:encoded", "pubdate", "author", "dc:creator", "category")
)
_RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_RDF_ABOUT: Final = f"{_RDF}about"


def read_rss(scope: Scope, root: Element, format_name: str) -> Feed:
    """The feed under `root`, which is `rss`, `rdf:RDF` or `channel`."""
    names = scope.names
    is_channel = names[root.tag] == "channel"
    top: Children = {} if is_channel else scope.children(root)
    channels = [root] if is_channel else top.get("channel", [])
    channel: Children = {}
    for element in channels:
        for name, found in scope.children(element).items():
            channel.setdefault(name, []).extend(found)
    feed = _read_channel(scope, channel, channels, format_name, root, top)
    if feed.link and is_absolute(feed.link):
        # RSS has no rule for relative addresses. Publishers mean their site; the document's own address is
        # often that of a feed host.
        scope = Scope(scope.names, feed.link, scope.has_xml_base)
    entries = tuple(read_item(scope, item) for item in _items(scope, channel, top))
    return replace(feed, entries=entries)


def _items(scope: Scope, channel: Children, top: Children) -> Iterator[Element]:
    # In the channel (RSS 2.0), beside it (RDF, and RSS that forgot the channel), in a list of items (RSS
    # 1.1).
    seen = set()
    for children in (channel, top):
        for name in ("item", "atom:entry", "entry"):
            for element in children.get(name, ()):
                if id(element) not in seen:
                    seen.add(id(element))
                    yield element
        for holder in pick(children, "items"):
            yield from pick(scope.children(holder), "item")


def _read_channel(
    scope: Scope, channel: Children, channels: list[Element], format_name: str, root: Element, top: Children
) -> Feed:
    links = read_links(scope, pick(channel, "atom:link", "link"))
    link = _plain_link(scope, channel) or links.alternate
    people = [
        _author(scope, element, name)
        for name in ("managingeditor", "author", "dc:creator", "dc:author")
        for element in channel.get(name, ())
    ]
    atom_people = [read_atom_person(scope, element) for element in pick(channel, "atom:author")]
    if not atom_people and not people:
        people = [read_person_text(text) for text in _texts(channel, "itunes:author", "googleplay:author")]
    if not atom_people and not any(people):
        people = [read_atom_person(scope, element) for element in pick(channel, "itunes:owner")]
    if not atom_people and not any(people):
        people = [read_person_text(text) for text in _texts(channel, "dc:publisher", "webmaster")]
    description = next(
        (body for e in pick(channel, "description", "tagline", "abstract") if (body := rss_body(scope, e))),
        None,
    ) or next(
        (body for e in pick(channel, "atom:subtitle", "atom:tagline") if (body := atom_body(scope, e))), None
    )
    if description is None and (
        plain := first_text(channel, "dc:description", "itunes:summary", "itunes:subtitle")
    ):
        description = escape_text(plain)
    return Feed(
        format=format_name,
        title=first_title(channel, "title", "atom:title", "dc:title", "media:title", "itunes:title"),
        id=first_text(channel, "atom:id", "dc:identifier") or _about(channels),
        link=link,
        description=description,
        language=first_text(channel, "language", "dc:language")
        or next((lang for e in (*channels, root) if (lang := language_of(e))), None),
        icon=_linked_text(scope, channel, "atom:icon"),
        image=_channel_image(scope, channel, top),
        authors=unique_persons(atom_people or people),
        categories=_categories(channel),
        generator=first_text(channel, "generator", "atom:generator"),
        rights=first_text(channel, "copyright", "atom:rights", "dc:rights", "dcterms:rights"),
        published=_first_date(channel, ("pubdate", *ATOM_DATES_PUBLISHED)),
        updated=_first_date(channel, ("lastbuilddate", *ATOM_DATES_UPDATED, "dc:date", "date")),
        self_link=links.self_link,
        next_link=links.next_link,
        hub_links=links.hubs,
        hints=read_hints(scope, channel),
    )


def read_item(scope: Scope, item: Element) -> Entry:
    """One item."""
    children = scope.children(item)
    links = read_links(scope, pick(children, "atom:link", "link")) if _has_atom_links(children) else _NO_LINKS
    identifier, permalink = _guid(scope, children)
    marked = bool(item.keys())  # few items have attributes, and every look at one costs
    about = (item.get(_RDF_ABOUT) or item.get("about") or "").strip() or None if marked else None
    link = _plain_link(scope, children) or links.alternate or permalink
    if link is None and about and is_absolute(about) and about.startswith("http"):
        link = about
    if link is None and marked and (href := item.get("href") or item.get("HREF")):  # CDF
        link = scope.link(item, href)
    is_usual = not marked and links is _NO_LINKS and _USUAL.issuperset(children)
    return Entry(
        id=identifier or about or first_text(children, "dc:identifier"),
        link=link,
        title=_item_title(scope, children),
        authors=_item_authors(scope, children),
        published=_first_date(children, _PUBLISHED),
        summary=_summary(scope, children),
        content=_content(scope, children),
        categories=_categories(children),
        **({} if is_usual else _read_rest(scope, item, children, links)),
    )


def _read_rest(scope: Scope, item: Element, children: Children, links: Links) -> dict[str, Any]:
    """The fields of an entry that not every feed has."""
    files = _files(scope, children, links)
    source_title, source_url = _source(scope, children)
    vocabularies = scope.names.prefixes
    return {
        "updated": _first_date(children, _UPDATED) or parse_date(item.get("lastmod") or item.get("LASTMOD")),
        "enclosures": files,
        "image": entry_image(scope, children, files),
        "language": first_text(children, "dc:language", "language") or language_of(item),
        "comments_url": _linked_text(scope, children, "comments") or links.replies,
        "comments_feed": _linked_text(scope, children, "wfw:commentrss") or links.replies_feed,
        "comments_count": positive_integer(first_text(children, "slash:comments", "thr:total")),
        "source_title": source_title,
        "source_url": source_url,
        "chapters": entry_chapters(scope, children) if "podcast" in vocabularies else None,
        "transcripts": entry_transcripts(scope, children) if "podcast" in vocabularies else (),
    }


def _has_atom_links(children: Children) -> bool:
    if "atom:link" in children:
        return True
    for element in children.get("link", ()):  # noqa: SIM110 - a generator would be most of what this costs
        if element.keys() and element.get("href"):
            return True
    return False


def _item_title(scope: Scope, children: Children) -> str:
    title = first_title(children, "title", "atom:title", "dc:title", "itunes:title")
    if title or "media" not in scope.names.prefixes:
        return title
    return next(
        (found for inner in media_children(scope, children) if (found := first_title(inner, "media:title"))),
        "",
    )


def _texts(children: Children, *names: str) -> Iterator[str]:
    for element in pick(children, *names):
        if text := inner_text(element):
            yield text


def _linked_text(scope: Scope, children: Children, name: str) -> str | None:
    if name in children:
        for element in children[name]:
            if link := scope.link(element, inner_text(element)):
                return link
    return None


def _plain_link(scope: Scope, children: Children) -> str | None:
    """`<link>address</link>`, or Atom's form of it written without its namespace. The last one stands."""
    found = None
    for element in children.get("link", ()):
        if not element.keys():  # the usual form, of which nothing else need be asked
            found = scope.link(element, inner_text(element)) or found
        elif (rel := element.get("rel")) is None or (rel or "alternate").strip().lower() == "alternate":
            found = scope.link(element, inner_text(element) or element.get("href")) or found
    return found


def _guid(scope: Scope, children: Children) -> tuple[str | None, str | None]:
    """The item's id, and the address it is when it may serve as one."""
    for element in pick(children, "guid", "atom:id", "id"):
        if not (text := inner_text(element)):
            continue
        said = element.get("isPermaLink") or element.get("ispermalink") or ""
        if said not in ("true", "false", ""):
            said = said.strip().lower()
        if " " in text or said == "false":
            return text, None
        if said == "true" or text.lower().startswith(("http://", "https://")):
            return text, scope.link(element, text)
        return text, None
    return None, None


def _item_authors(scope: Scope, children: Children) -> tuple[Person, ...]:
    for names in _AUTHOR_NAMES:
        people = []
        for name in names:
            if name in children:
                for element in children[name]:
                    if person := _author(scope, element, name):
                        people.append(person)
        if people:
            return unique_persons(people)
    if "media" in scope.names.prefixes:
        return unique_persons(
            read_person_text(text)
            for inner in media_children(scope, children)
            for text in _texts(inner, "media:credit")
        )
    return ()


def _author(scope: Scope, element: Element, name: str) -> Person | None:
    if len(element):
        return read_atom_person(scope, element)
    text = element.text or ""
    if name == "dc:creator":  # free text by its definition; only a bare address is one
        person = plain_text(text)
        return Person(person) if " " in person else read_person_text(person)
    return read_person_text(text)


def _first_date(children: Children, names: tuple[str, ...]) -> datetime | None:
    for name in names:
        if name in children:
            for element in children[name]:
                if moment := parse_date(inner_text(element)):
                    return moment
    return None


def _summary(scope: Scope, children: Children) -> str | None:
    for element in children.get("description", ()):
        if body := rss_body(scope, element):
            return body
    for element in children.get("atom:summary", ()):
        if body := atom_body(scope, element):
            return body
    for element in pick(children, "dc:description", "abstract"):
        if body := rss_body(scope, element):
            return body
    if plain := first_text(children, "itunes:summary", "itunes:subtitle"):
        return escape_text(plain) if "<" not in plain else plain
    if "media" in scope.names.prefixes:
        for inner in media_children(scope, children):
            for element in pick(inner, "media:description"):
                if body := rss_body(scope, element):
                    return body
    return None


def _content(scope: Scope, children: Children) -> str | None:
    for name in _BODIES:
        if name in children:
            for element in children[name]:
                if body := rss_body(scope, element):
                    return body
    for element in pick(children, "atom:content", "content"):
        if body := atom_body(scope, element):
            return body
    return None


def _categories(children: Children) -> tuple[str, ...]:
    found = []
    for name in _CATEGORIES:
        if name in children:
            for element in children[name]:
                found.append(
                    collapse(inner_text(element) or element.get("label") or element.get("term") or "")
                )
    return unique(found)


def _files(scope: Scope, children: Children, links: Links) -> tuple[Enclosure, ...]:
    if "enclosure" not in children and not links.enclosures and "media" not in scope.names.prefixes:
        return ()
    return merge_files(_each_file(scope, children, links), entry_duration(children))


def _each_file(scope: Scope, children: Children, links: Links) -> Iterator[Enclosure]:
    for element in children.get("enclosure", ()):
        if url := scope.attribute_link(element, "url", "href", "link") or scope.link(element, element.text):
            yield Enclosure(
                url=url,
                media_type=(element.get("type") or "").strip() or None,
                length=positive_integer(element.get("length") or element.get("size")),
            )
    yield from links.enclosures
    yield from media_files(scope, children)


def _source(scope: Scope, children: Children) -> tuple[str | None, str | None]:
    if "source" not in children and "atom:source" not in children and "dc:source" not in children:
        return None, None
    for element in pick(children, "source"):
        title, url = collapse(inner_text(element)) or None, scope.attribute_link(element, "url", "href")
        if title or url:
            return title, url
    for element in pick(children, "atom:source"):
        inner = scope.children(element)
        links = read_links(scope, pick(inner, "atom:link", "link"))
        return first_title(inner, "atom:title", "title") or None, links.self_link or links.alternate
    return collapse(first_text(children, "dc:source") or "") or None, None


def _channel_image(scope: Scope, channel: Children, top: Children) -> str | None:
    for element in pick(channel, "image"):
        inner = scope.children(element)
        if url := scope.link(element, first_text(inner, "url")) or scope.attribute_link(
            element, "href", f"{_RDF}resource"
        ):
            return url
    for element in pick(top, "image"):
        if url := scope.link(element, first_text(scope.children(element), "url")):
            return url
    for element in pick(channel, "itunes:image", "podcast:image", "media:thumbnail", "atom:logo"):
        if url := scope.attribute_link(element, "href", "url") or scope.link(element, inner_text(element)):
            return url
    return None


def _about(channels: list[Element]) -> str | None:
    return next((about for e in channels if (about := (e.get(f"{_RDF}about") or "").strip())), None)
