"""Reads what feeds say beyond titles, texts and dates into one JSON object.

`vocabulary` says which element has which key. Elements without a key are kept whole under `extensions`, by namespace
and name. Everything is capped, so that a document cannot make an item large.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from headwater.formats.feeds.extras.vocabulary import (
    ADDRESSES,
    EXTENSIONS,
    LICENSE_ELEMENTS,
    LONGEST_EXTENSIONS,
    LONGEST_TEXT,
    MAX_DEPTH,
    MAX_NODES,
    MAX_RECORDS,
    RECORDS,
    VALUES,
    Record,
    Value,
    as_kind,
)
from headwater.formats.feeds.fields import Fields
from headwater.formats.feeds.scope import Children, Element, Scope, inner_text
from headwater.formats.html import collapse
from headwater.formats.xml.names import LONGEST_NAME, UNDECLARED, split_tag

# Elements that the readers of entries and feeds take themselves, or that say nothing about an item.
_TAKEN_NAMES: Final = (
    "title link guid description pubdate author category categories enclosure source comments content:encoded"
    " xhtml:body xhtml:div body fullitem language image item items lastbuilddate generator copyright"
    " managingeditor webmaster ttl skiphours skipdays docs cloud textinput rating date id content abstract tagline"
    " entry url comment rss feed rdf:rdf channel icon updated published summary dc:creator dc:author dc:date"
    " dc:title dc:subject dc:language dc:identifier dc:description dc:source dcterms:issued dcterms:created"
    " dcterms:available dcterms:modified itunes:author itunes:duration itunes:image itunes:title itunes:summary"
    " googleplay:author googleplay:image googleplay:description podcast:image podcast:liveitem media:title"
    " media:description media:category media:group slash:comments thr:total wfw:commentrss feedburner:origlink"
    " feedburner:info feedburner:browserfriendly feedburner:feedflare feedburner:feedburnerhostname"
    " feedburner:emailserviceid sy:updateperiod sy:updatefrequency sy:updatebase rdf:li psc:chapters geo:lat"
    " geo:long geo:point cc:license"
)
_TAKEN: Final = frozenset(_TAKEN_NAMES.split())
_OWN: Final = frozenset(("atom:", "xhtml", "rdf:a", "rdf:t", "rdf:v"))
_INDIRECT: Final = frozenset(("geo:lat", "geo:point", "psc:chapters", *LICENSE_ELEMENTS))
_RECORDS: Final = {
    record.element.lower(): record for record in RECORDS if record.within is None and record.key != "live"
}
_VALUES: Final = {
    name: tuple(value for value in VALUES if name in map(str.lower, value.elements))
    for name in {name.lower() for value in VALUES for name in value.elements}
}
_CHAPTERS: Final = next(record for record in RECORDS if record.key == "chapters")
_PLAIN_MEDIA: Final = frozenset(("url", "type", "medium", "file_size", "duration"))


def concerns_extras(name: str) -> bool:
    """Whether elements of this name are read here."""
    return name in _INDIRECT or (name not in _TAKEN and name[:5] not in _OWN)


def add_extras(found: Fields, scope: Scope, children: Children, names: tuple[str, ...]) -> None:
    """Add what the children of an entry or feed say beyond its other fields."""
    extras: dict[str, Any] = {}
    unknown: list[Element] = []
    for name in names:
        elements = children[name]
        if name in _RECORDS:
            _add_records(extras, scope, _RECORDS[name], elements)
        elif name in _VALUES:
            for value in _VALUES[name]:
                _add_value(extras, value, elements)
        elif name in _INDIRECT:
            _add_indirect(extras, scope, name, children)
        else:
            unknown += elements
    if "media" in extras or "thumbnails" in extras:
        _trim_media(scope, extras, children.get("media:group", ()))
    if unknown and (extensions := _read_extensions(unknown)):
        extras[EXTENSIONS] = extensions
    if extras:
        found["extras"] = extras


def add_live(found: Fields, element: Element) -> None:
    """Add when a live item takes place."""
    live = {name: text for name in ("status", "start", "end") if (text := (element.get(name) or "").strip())}
    found["extras"] = {**found.get("extras", {}), "live": [live or {"status": "pending"}]}


def _trim_media(scope: Scope, extras: dict[str, Any], groups: Sequence[Element]) -> None:
    """Leave out what enclosures and the entry's picture say already; number the groups."""
    numbers: dict[str, str] = {}
    for number, group in enumerate(groups, 1):
        for content in scope.children(group).get("media:content", ()):
            if url := scope.attribute_link(content, "url"):
                numbers[url] = str(number)
    for each in extras.get("media", ()):
        if each["url"] in numbers and len(numbers) > 1:
            each["group"] = numbers[each["url"]]
    if telling := [each for each in extras.get("media", ()) if not _PLAIN_MEDIA.issuperset(each)]:
        extras["media"] = telling
    else:
        extras.pop("media", None)
    thumbnails = extras.get("thumbnails", ())
    if len(thumbnails) == 1 and thumbnails[0].keys() == {"url"}:
        del extras["thumbnails"]


def _add_indirect(extras: dict[str, Any], scope: Scope, name: str, children: Children) -> None:
    """Add what is stated in another shape than it is kept in."""
    if name == "psc:chapters":
        for holder in children[name]:
            _add_records(extras, scope, _CHAPTERS, scope.children(holder).get("psc:chapter", ()))
    elif name in LICENSE_ELEMENTS:
        for element in children[name]:
            address = inner_text(element) or next((each for each in element.attrib.values()), "")
            if url := scope.link(element, str(address)):
                extras.setdefault("licenses", []).append({"url": url})
    else:  # the older vocabulary of places
        places = [children] if name == "geo:lat" else [scope.children(each) for each in children[name]]
        for place in places:
            for latitude, longitude in zip(place.get("geo:lat", ()), place.get("geo:long", ()), strict=False):
                point = f"{inner_text(latitude)} {inner_text(longitude)}"
                extras.setdefault("points", []).append({"point": point})


def _add_value(extras: dict[str, Any], value: Value, elements: Iterable[Element]) -> None:
    for element in elements:
        text = element.get(value.attribute) if value.attribute else inner_text(element)
        read = as_kind(text or "", value)
        if read is None:
            continue
        if value.kind == "words":
            extras[value.key] = list(dict.fromkeys([*extras.get(value.key, ()), *read]))[:MAX_RECORDS]
        else:
            extras.setdefault(value.key, read)


def _add_records(extras: dict[str, Any], scope: Scope, record: Record, elements: Sequence[Element]) -> None:
    if objects := _read_records(scope, record, elements):
        extras[record.key] = [*extras.get(record.key, ()), *objects][:MAX_RECORDS]


def _read_records(
    scope: Scope, record: Record, elements: Sequence[Element], depth: int = 0
) -> list[dict[str, Any]]:
    found = []
    for element in elements[:MAX_RECORDS]:
        read = _read_record(scope, record, element, depth)
        if read and (not record.needs or record.needs in read):
            found.append(read)
    return found


def _read_record(scope: Scope, record: Record, element: Element, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, given in _attributes(element):
        key = record.attributes.get(name)
        if key and (text := given.strip()[:LONGEST_TEXT]):
            found[key] = (scope.link(element, text) or text) if key in ADDRESSES else text
    if record.text and (text := collapse(inner_text(element))[:LONGEST_TEXT]):
        found[record.text] = text
    if len(element) and depth < MAX_DEPTH:
        inner = scope.children(element)
        for key, child in record.parts:
            if objects := _read_records(scope, child, inner.get(child.element.lower(), ()), depth + 1):
                found[key] = objects
    return found


def _attributes(element: Element) -> list[tuple[str, str]]:
    return element.items()  # type: ignore[return-value]  # the stubs allow bytes


def _read_extensions(elements: Iterable[Element]) -> dict[str, Any]:
    budget = [MAX_NODES, LONGEST_EXTENSIONS]
    found: dict[str, Any] = {}
    for element in elements:
        _keep(found, element, budget, 0)
    return found


def _keep(found: dict[str, Any], element: Element, budget: list[int], depth: int) -> None:
    """Put an element into `found`, by namespace and name, as far as the budget of nodes and characters goes."""
    nodes_left, characters_left = budget
    tag = element.tag
    if nodes_left <= 0 or characters_left <= 0 or depth > MAX_DEPTH or not isinstance(tag, str):
        return
    namespace, local = _split_tag(tag) if len(tag) <= LONGEST_NAME else _split_tag.__wrapped__(tag)
    text = (element.text or "").strip()
    if text:
        text = text[: min(LONGEST_TEXT, characters_left)]
    budget[0] = nodes_left - 1
    budget[1] = characters_left - len(text) - len(local)
    node: Any = text
    if (given := _attributes(element)) or len(element):
        attributes = {name: value[:LONGEST_TEXT] for name, value in given}
        for name, value in attributes.items():
            budget[1] -= len(name) + len(value)
        inner: dict[str, Any] = {}
        for child in element:
            _keep(inner, child, budget, depth + 1)
        parts = (("text", text), ("attributes", attributes), ("children", inner))
        node = {key: value for key, value in parts if value}
    if node:
        of_namespace = found[namespace] if namespace in found else found.setdefault(namespace, {})
        if local in of_namespace:
            of_namespace[local].append(node)
        else:
            of_namespace[local] = [node]


@lru_cache(maxsize=1024)
def _split_tag(tag: str) -> tuple[str, str]:
    """The namespace and the name of an extension; for a prefix that is not declared, the prefix."""
    namespace, local = split_tag(tag)
    return namespace.strip().removeprefix(UNDECLARED), local
