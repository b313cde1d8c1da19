"""Writes extras as elements of RSS items and channels, or Atom entries and feeds."""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from lxml import etree

from headwater.formats.feeds.extras.vocabulary import (
    EXTENSIONS,
    JSON_EXTENSIONS,
    NAMESPACES,
    RECORDS,
    VALUES,
    Record,
    Value,
    as_digits,
)
from headwater.formats.feeds.scope import Element
from headwater.model import Json

_MEDIA: Final = next(record for record in RECORDS if record.key == "media")
_YES_OR_NO: Final = frozenset(("block", "complete", "locked"))  # the other truths are `true` or `false`


def write_extras(parent: Element, extras: Json | None) -> None:
    """Add the elements of cleaned `extras` to an item, entry, channel or feed."""
    if not extras:
        return
    for value in VALUES:
        if value.key in extras and value.attribute is None:
            _write_value(parent, extras, value)
    for record in RECORDS:
        if record.key not in extras or record.key in ("live", "media"):
            continue
        around = add_element(parent, record.within) if record.within else parent
        if record.within == "psc:chapters":
            around.set("version", "1.2")
        for each in extras[record.key]:
            _write_record(around, record, each)
    _write_media(parent, extras.get("media", ()))
    _write_extensions(parent, extras.get(EXTENSIONS, {}))


def _write_value(parent: Element, extras: Json, value: Value) -> None:
    given = extras[value.key]
    if value.kind == "truth":
        words = ("no", "yes") if value.key in _YES_OR_NO else ("false", "true")
        text = words[given]
    elif value.kind == "words":
        text = ", ".join(given)
    else:
        text = given if isinstance(given, str) else as_digits(given)
    element = add_element(parent, value.elements[0], text)
    for other in VALUES:
        if other.of == value.key and other.key in extras:
            element.set(other.attribute or "", extras[other.key])
    if value.key in ("season", "episode") and isinstance(given, int):
        add_element(parent, value.elements[1], text)  # for readers that know only the older vocabulary


def _write_record(parent: Element, record: Record, given: Json) -> None:
    element = add_element(parent, record.element)
    for attribute, key in record.attributes.items():
        if key in given:
            element.set(attribute, given[key])
    if record.text and record.text in given:
        element.text = given[record.text]
    for key, child in record.parts:
        for each in given.get(key, ()):
            _write_record(element, child, each)


def _write_media(parent: Element, contents: Iterable[Json]) -> None:
    for group, members in groupby(contents, lambda each: each.get("group")):
        around = add_element(parent, "media:group") if group else parent
        for each in members:
            _write_record(around, _MEDIA, each)


def _write_extensions(parent: Element, extensions: Json) -> None:
    for namespace, names in extensions.items():
        if namespace == JSON_EXTENSIONS:
            continue
        for name, nodes in names.items():
            for node in nodes:
                element = etree.SubElement(parent, f"{{{namespace}}}{name}")
                if isinstance(node, str):
                    element.text = node
                    continue
                element.text = node.get("text")
                for attribute, value in node.get("attributes", {}).items():
                    element.set(attribute, value)
                _write_extensions(element, node.get("children", {}))


def add_element(parent: Element, name: str, text: str | None = None, /, **attributes: str | None) -> Element:
    """Add an element by its name, such as `podcast:chapters`."""
    prefix, _, local = name.rpartition(":")
    tag = f"{{{NAMESPACES[prefix]}}}{local}" if prefix else local
    given = {key: value for key, value in attributes.items() if value is not None}
    element = etree.SubElement(parent, tag, given)
    element.text = text
    return element
