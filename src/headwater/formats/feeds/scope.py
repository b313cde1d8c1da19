"""Looking at elements: children by canonical name, the text inside one, the base of its links.

The readers are written in terms of this and of nothing deeper.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from lxml import etree

from headwater.formats.links import find_relative_link, join, resolve_html
from headwater.formats.xml.names import XML_NAMESPACE, Names
from headwater.formats.xml.tree import Tree
from headwater.markup import MOST_PARTS

Element = etree._Element
Children = dict[str, list[Element]]
Value = TypeVar("Value")

_BASE: Final = f"{{{XML_NAMESPACE}}}base"
_LANG: Final = f"{{{XML_NAMESPACE}}}lang"


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds for the whole document: its names, the base of its links, and the tree it was read into."""

    names: Names
    base: str | None
    tree: Tree

    def base_of(self, element: Element) -> str | None:
        """The base of links that xml:base attributes on `element` and around it make."""
        return self._declared_base(element, self.base) if self.tree.has_xml_base else self.base

    def declared_link(self, element: Element, value: str) -> str:
        """`value` made absolute by xml:base alone."""
        return join(self._declared_base(element, None), value) or value

    def _declared_base(self, element: Element, base: str | None) -> str | None:
        chain = [value for e in (element, *element.iterancestors()) if (value := e.get(_BASE))]
        for value in reversed(chain):
            base = join(base, value)
        return base

    def children(self, element: Element, most: int = MOST_PARTS) -> Children:
        """The children of `element` by canonical name, each list in document order and no longer than `most`."""
        names = self.names
        found: Children = {}
        for child in element:
            name = names[child.tag]
            if name in found:
                if len(found[name]) < most:
                    found[name].append(child)
            else:
                found[name] = [child]
        return found

    def link(self, element: Element, value: str | None) -> str | None:
        """The address `value`, made absolute."""
        if not value:
            return None
        if value.startswith(("https://", "http://")) and value[-1] != " " and value.isprintable():
            return value  # plain, as most are: asking `is_plain` would be half of what this costs
        return join(self.base_of(element), value)

    def resolve_html(self, element: Element, body: str) -> str:
        """`body` with the relative addresses in it made absolute."""
        return resolve_html(body, self.base_of(element)) if find_relative_link(body) else body

    def attribute_link(self, element: Element, *attributes: str) -> str | None:
        """The address in the first of these attributes that is there."""
        for attribute in attributes:
            if value := element.get(attribute):
                return self.link(element, value)
        return None


def pick(children: Children, *names: str) -> Sequence[Element]:
    """The elements of these names, in the order of the names."""
    return [element for name in names if name in children for element in children[name]]


def language_of(element: Element) -> str | None:
    return (element.get(_LANG) or "").strip() or None


def inner_text(element: Element) -> str:
    """All text inside `element`, without tags."""
    if len(element):
        return "".join(map(str, element.itertext())).strip()
    return (element.text or "").strip()


def first_text(children: Children, *names: str) -> str | None:
    """The first text of these elements that is not empty."""
    for name in names:
        if name in children:
            for element in children[name]:
                if text := inner_text(element):
                    return text
    return None


def unique(values: Iterable[Value | None]) -> tuple[Value, ...]:
    """The values without the empty and the repeated ones, in order."""
    found = tuple(filter(None, values))
    return tuple(dict.fromkeys(found)) if len(found) > 1 else found


def positive_integer(text: str | None) -> int | None:
    """A count or a size; None for 0, which publishers write for "unknown"."""
    if not text:
        return None
    text = text.strip().replace(",", "")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        return None
    return int(text) or None
