"""Looking at elements: children by canonical name, the text or the markup inside one, the base of its links.

The readers are written in terms of this and of nothing deeper. It knows the constructs that formats share
(text, person, link), never a whole format.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lxml import etree

from headwater.formats.entry import Person
from headwater.formats.html import collapse, escape_text, plain_text
from headwater.formats.links import join, resolve_html
from headwater.formats.names import XML_NAMESPACE, Names

Element = etree._Element
Children = dict[str, list[Element]]

_BASE: Final = f"{{{XML_NAMESPACE}}}base"
_LANG: Final = f"{{{XML_NAMESPACE}}}lang"
_FIRST_TAG = re.compile(r"""<[^<>"']*+(?:"[^"]*+"[^<>"']*+|'[^']*+'[^<>"']*+)*+>""")
_PREFIXED_TAG = re.compile(r"<[A-Za-z][A-Za-z0-9_.-]*+:")
_XMLNS = re.compile(r"""(<[A-Za-z][^<>]*?)\sxmlns(?::[A-Za-z0-9_.-]+)?="[^"]*\"""")
_VOID_ENDS = re.compile(r"</(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)>")
_HTML_TYPES: Final = frozenset(("html", "text/html", "escaped", "text/x-html"))
_XHTML_TYPES: Final = frozenset(("xhtml", "application/xhtml+xml", "xml", "text/xml", "application/xml"))
_EMAIL = re.compile(r"[^\s<>()\[\],;:\"]+@[^\s<>()\[\],;:\"]+\.[^\s<>()\[\],;:\".]+")
_LONGEST_PERSON: Final = 500  # the patterns below look at every pair of places
_NAME_IN_PARENS = re.compile(r"\(\s*(.*?)\s*\)\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds for the document: its names, its address, whether any element changes the base of links."""

    names: Names
    base: str | None
    has_xml_base: bool = False

    def base_of(self, element: Element) -> str | None:
        """The base that xml:base attributes on `element` and around it make."""
        return self._base_of(element, self.base) if self.has_xml_base else self.base

    def declared_link(self, element: Element, value: str) -> str:
        """`value` made absolute by xml:base alone."""
        return join(self._base_of(element, None), value) or value

    def _base_of(self, element: Element, base: str | None) -> str | None:
        chain = [value for e in (element, *element.iterancestors()) if (value := e.get(_BASE))]
        for value in reversed(chain):
            base = join(base, value)
        return base

    def children(self, element: Element) -> Children:
        """The children of `element` by canonical name, each list in document order."""
        names = self.names
        found: Children = {}
        for child in element:
            name = names[child.tag]
            if name in found:
                found[name].append(child)
            else:
                found[name] = [child]
        return found

    def link(self, element: Element, value: str | None) -> str | None:
        return join(self.base_of(element), value)

    def attribute_link(self, element: Element, *attributes: str) -> str | None:
        for attribute in attributes:
            if value := element.get(attribute):
                return self.link(element, value)
        return None


def language_of(element: Element) -> str | None:
    return (element.get(_LANG) or "").strip() or None


def pick(children: Children, *names: str) -> Sequence[Element]:
    """The elements of these names, in the order of the names: what is asked for first is wanted most."""
    found: list[Element] | None = None
    for name in names:
        if name in children:
            found = children[name] if found is None else found + children[name]
    return found or ()


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


def inner_markup(element: Element) -> str:
    """What is inside `element` as HTML, its own tag left out."""
    markup = etree.tostring(element, method="html", encoding="unicode", with_tail=False)
    if _PREFIXED_TAG.search(markup):  # HTML would not know `xhtml:p`
        markup = etree.tostring(
            _without_prefixes(element), method="html", encoding="unicode", with_tail=False
        )
    start = _FIRST_TAG.match(markup)
    markup = markup[start.end() if start else 0 : markup.rfind("</")]
    markup = _VOID_ENDS.sub("", markup)  # lxml does not take namespaced elements for HTML's own
    if " xmlns" in markup:
        markup = _XMLNS.sub(r"\1", markup)
    return markup.strip()


def _without_prefixes(element: Element) -> Element:
    copy = etree.fromstring(etree.tostring(element, with_tail=False))
    for e in copy.iter(etree.Element):
        e.tag = etree.QName(e).localname
    etree.cleanup_namespaces(copy)
    return copy


def _markup_of(element: Element) -> tuple[str, bool]:
    """What a text construct holds, and whether that is HTML."""
    kind = (element.get("type") or "").strip().lower().partition(";")[0]
    mode = (element.get("mode") or "").strip().lower()
    if len(element):
        if kind == "text" and mode != "xml":  # says text, holds tags
            return inner_markup(element), True
        only = element[0] if len(element) == 1 and not (element.text or "").strip() else None
        if (
            only is not None
            and etree.QName(only).localname.lower() == "div"
            and not (only.tail or "").strip()
        ):
            element = only  # Atom's wrapper is no part of the content
        return inner_markup(element), True
    text = (element.text or "").strip()
    if mode == "base64" or (
        kind and "/" in kind and not kind.startswith("text/") and kind not in _XHTML_TYPES
    ):
        decoded = _decode_base64(text)
        if decoded is not None:
            return decoded, kind != "text/plain"
    if kind in _HTML_TYPES or mode == "escaped":
        return text, kind != "text/plain"
    if kind in _XHTML_TYPES:
        return escape_text(text), True
    return text, False


def _decode_base64(text: str) -> str | None:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8").strip()
    except (binascii.Error, ValueError):
        return None


def atom_title(element: Element) -> str:
    """The plain text of an Atom text construct."""
    markup, is_html = _markup_of(element)
    return plain_text(markup) if is_html else collapse(markup)


def atom_body(scope: Scope, element: Element) -> str | None:
    """An Atom text construct as HTML."""
    markup, is_html = _markup_of(element)
    if not is_html:
        return escape_text(markup) or None
    return resolve_html(markup, scope.base_of(element)) or None


def rss_title(element: Element) -> str:
    """The plain text of an RSS title, which may be text or escaped HTML: nobody says which."""
    return plain_text(inner_markup(element) if len(element) else element.text or "")


def rss_body(scope: Scope, element: Element) -> str | None:
    """An RSS description or body as HTML."""
    markup = inner_markup(element) if len(element) else (element.text or "").strip()
    return resolve_html(markup, scope.base_of(element)) or None


def first_title(children: Children, *names: str) -> str:
    for name in names:
        if name in children:
            for element in children[name]:
                is_construct = element.keys() and (element.get("type") or element.get("mode"))
                if title := atom_title(element) if is_construct else rss_title(element):
                    return title
    return ""


def read_person_text(text: str) -> Person | None:
    """A person written in one string: `jane@example.org (Jane Doe)`, `Jane Doe <jane@example.org>`, `Jane
    Doe`."""
    text = text[:_LONGEST_PERSON]
    text = collapse(plain_text(text) if "&" in text or "</" in text else text)
    if not text:
        return None
    match = _EMAIL.search(text)
    if match is None:
        return Person(name=text)
    email = match[0].removeprefix("mailto:")
    rest = text[: match.start()] + text[match.end() :]
    rest = rest.replace("<>", " ").replace("()", " ").replace("[]", " ").strip()
    if parens := _NAME_IN_PARENS.search(rest):
        rest = parens[1] if not rest[: parens.start()].strip() else rest
    name = collapse(rest).strip(" -,;:\"'<>") or None
    return Person(name=name, email=email)


def read_atom_person(scope: Scope, element: Element) -> Person | None:
    """An Atom person construct, also when it holds only text."""
    children = scope.children(element)
    if not children:
        return read_person_text(inner_text(element))
    name = first_text(children, "atom:name", "name", "itunes:name", "atom:title", "title")
    email = first_text(children, "atom:email", "email", "itunes:email")
    url = first_text(children, "atom:uri", "atom:url", "uri", "url", "atom:homepage", "homepage")
    if not (name or email or url):
        return read_person_text(inner_text(element))
    return Person(name=collapse(name) if name else None, email=email, url=scope.link(element, url))


def unique(values: Iterable[str]) -> tuple[str, ...]:
    """Without the empty and the repeated ones, in order."""
    found = tuple(filter(None, values))
    return tuple(dict.fromkeys(found)) if len(found) > 1 else found


def unique_persons(persons: Iterable[Person | None]) -> tuple[Person, ...]:
    found = tuple(filter(None, persons))
    return tuple(dict.fromkeys(found)) if len(found) > 1 else found


def positive_integer(text: str | None) -> int | None:
    """A count or a size that makes sense; publishers write 0 for "unknown"."""
    if not text:
        return None
    text = text.strip().replace(",", "")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        return None
    return int(text) or None
