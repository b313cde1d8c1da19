"""Builds an element tree from XML that is not well-formed.

libxml2's own recovery closes everything that is open when an end tag does not fit, which nests every following item
inside a broken one. Here an end tag closes the element it names or nothing, an item closes what was left open before
it, a namespace ends with its element, and a stray `<` is text. Time and memory are linear in the input; depth and
number of elements are capped.
"""

import re
import sys
from collections import Counter
from typing import Final, NamedTuple

from lxml import etree

from headwater.formats.xml.entities import unescape
from headwater.formats.xml.names import (
    ATOM,
    RSS,
    UNKNOWN,
    XML_NAMESPACE,
    namespace_prefix,
    undeclared_namespace,
)

MAX_DEPTH: Final = 200
MAX_TAGS: Final = 2_000_000
MAX_ATTRIBUTES: Final = 256

_START = re.compile(r"<([A-Za-z_][A-Za-z0-9_.:-]*)")
_END = re.compile(r"</\s*([A-Za-z_][A-Za-z0-9_.:-]*)[^<>]*>?")
# Possessive, so that a missing quote costs one pass and not a product of passes.
_INSIDE = re.compile(r"""[^<>"']*+(?:"[^"<]*+"[^<>"']*+|'[^'<]*+'[^<>"']*+)*+>""")
_INSIDE_WIDE = re.compile(r"""[^<>"']*+(?:"[^"]*+"[^<>"']*+|'[^']*+'[^<>"']*+)*+>""")
_INSIDE_PLAIN = re.compile(r"[^<>]*+>?")
# A value whose second quote is missing ends where the next attribute begins.
_ATTRIBUTE = re.compile(
    r"""([A-Za-z_][A-Za-z0-9_.:-]*)\s*+(?:=\s*+(?:"""
    r""""((?:[^"\s]++|\s++(?![A-Za-z_][A-Za-z0-9_.:-]*+=\s?"))*+)"?"""
    r"""|'((?:[^'\s]++|\s++(?![A-Za-z_][A-Za-z0-9_.:-]*+=\s?'))*+)'?"""
    r"""|([^\s"'>]++)))?"""
)
_CURLY_QUOTES: Final = "“”„‟″«»‘’"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_LONGEST_TAG: Final = 32_768
_MOST_OPEN_QUOTES: Final = 500  # tags with a missing quote, after which quotes are ignored

# Elements that hold only text: another element of the feed inside one means that its end tag is missing.
_LEAF_NAMES: Final = (
    "title link guid id pubdate author category comments language copyright generator ttl docs managingeditor"
    " webmaster lastbuilddate updated published modified issued created name email uri url subtitle tagline"
    " rights icon logo width height"
)
_HOLDER_NAMES: Final = (
    "item entry channel rss feed description summary content enclosure image source cloud textinput"
)
_LEAVES: Final = frozenset(_LEAF_NAMES.split())
_OWN: Final = _LEAVES | frozenset(_HOLDER_NAMES.split())
_ITEMS: Final = frozenset(("item", "entry"))
_ROOTS: Final = frozenset(("channel", "rss", "feed", "rdf:rdf", "rdf"))
_CONTAINERS: Final = _ROOTS | {"items"}
_BOUNDARY = re.compile(r"<(/?)(?:[A-Za-z_][\w.-]*:)?(?:item|entry)[\s/>]", re.IGNORECASE)
# `< item>` and `< /item>`: a tag, unlike the `<` of a text.
_SPACED = re.compile(
    rf"<\s{{1,9}}(?=/?\s{{0,9}}(?:[\w.-]{{1,20}}:)?(?:{'|'.join(sorted(_OWN | _ROOTS))})"
    r"(?:\s{0,9}/?>|\s{1,9}[\w:-]{1,40}\s{0,9}=))",
    re.IGNORECASE,
)
# Elements that show that an item has begun, where its start tag is missing.
_FIRST_IN_ITEM: Final = frozenset(
    ("title", "link", "guid", "id", "pubdate", "published", "updated", "description")
)
_NEVER: Final = sys.maxsize
_HTML_VOID: Final = frozenset(("br", "img", "hr", "input", "meta", "area", "col", "wbr"))
_HTML_NAMES: Final = (
    "a abbr b big cite code del div em font i ins li nobr ol p pre q s small span strike strong sub sup table"
    " tbody td th tr tt u ul br img hr h1 h2 h3 h4 h5 h6 blockquote"
)
_HTML_INLINE: Final = frozenset(_HTML_NAMES.split())

Namespaces = dict[str, str | None]  # by prefix


def read_soup(text: str) -> tuple[etree._Element, bool]:
    """A tree under a root element named `soup`, and whether there are items in the text.

    `text` has gone through `repair_references` before.
    """
    if "< " in text:
        text = _SPACED.sub("<", text)
    builder = _Builder(text)
    return builder.build(), builder.last_item >= 0


def _find(text: str, what: str, start: int) -> int:
    found = text.find(what, start)
    return found if found >= 0 else _NEVER


class _Open(NamedTuple):
    """An element that is open. `shadowed`: what the prefixes that it declares meant before."""

    element: etree._Element
    name: str  # as written, in lower case
    shadowed: Namespaces | None = None


class _Builder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._root = etree.Element("soup")
        self._stack = [_Open(self._root, "soup")]
        self._open_names: Counter[str] = Counter()  # how often each name is on the stack
        self._namespaces: dict[str, str] = {"xml": XML_NAMESPACE}  # in force here
        self._declared: dict[str, str] = {}  # also of elements that have ended
        self._pending: list[str] = []  # text that is not in the tree yet
        self._open_quotes = 0
        self._skipped_depth = 0
        # Where the comment and the CDATA section that were looked at last end; _NEVER: they do not.
        self._comment_end = self._section_end = -1
        self._boundary = (-1, False)  # where the next item begins or ends, and whether it ends
        starts = (match.start() for match in _BOUNDARY.finditer(text) if not match[1])
        self.last_item = max(starts, default=-1)

    def build(self) -> etree._Element:
        text, position, length, tags = self._text, 0, len(self._text), 0
        while position < length and tags < MAX_TAGS:
            opening = text.find("<", position)
            if opening < 0:
                self._pending.append(unescape(text[position:]))
                break
            if opening > position:
                self._pending.append(unescape(text[position:opening]))
            following = text[opening + 1 : opening + 2]
            tags += 1
            if following == "/":
                if match := _END.match(text, opening):
                    self._end(match[1], opening)
                    position = match.end()
                    continue
            elif following in ("!", "?"):
                position = self._declaration(opening)
                continue
            elif match := _START.match(text, opening):
                position = self._start(match)
                continue
            self._pending.append("<")
            position = opening + 1
        self._flush()
        return self._root

    def _declaration(self, opening: int) -> int:
        text = self._text
        if text.startswith("<![CDATA[", opening):
            return self._section(opening + 9)
        if text.startswith("<!--", opening):
            return self._comment(opening + 4)
        close = text.find(">", opening)
        if close < 0:
            return len(text)
        if text.startswith("<!DOCTYPE", opening) and "[" in text[opening:close]:
            element = _START.search(text, opening)
            end = text.find("]", opening, element.start() if element else len(text))
            close = text.find(">", max(close, end))
            return close + 1 if close >= 0 else len(text)
        return close + 1

    def _section(self, start: int) -> int:
        """A CDATA section. One that lacks its end stops where its element or item does, or the next item begins."""
        text = self._text
        if self._section_end < start:
            self._section_end = _find(text, "]]>", start)
        close = self._section_end
        following = text.find("<![CDATA[", start, min(close, len(text)))
        if close == _NEVER or following >= 0:
            name = re.escape(self._stack[-1].name.rpartition(":")[2])
            end = re.compile(rf"</(?:[\w.-]+:)?{name}\s*>", re.IGNORECASE)
            stop = following if following >= 0 else len(text)
            ends = [found.start() for each in (end, _BOUNDARY) if (found := each.search(text, start, stop))]
            if ends or following >= 0:  # where another begins before it ends, that one goes on
                end_at = min(ends, default=following)
                self._pending.append(text[start:end_at])
                return end_at
        self._pending.append(text[start : min(close, len(text))])
        return min(close + 3, len(text))

    def _comment(self, start: int) -> int:
        """A comment. One that lacks its end, or runs from the middle of an item into others, hides nothing."""
        text = self._text
        if self._comment_end < start:
            self._comment_end = _find(text, "-->", start)
        close = self._comment_end
        if close == _NEVER or text.find("<!--", start, close) >= 0:
            return start
        boundary = _BOUNDARY.search(text, start, close)
        return start if boundary and boundary[1] else close + 3

    def _start(self, match: re.Match[str]) -> int:
        body = self._inside(match.end())
        name = self._short(match[1])
        self._flush()
        self._close_unfinished(name)
        if len(self._stack) >= MAX_DEPTH:
            self._skipped_depth += 1
            return match.end() + len(body)
        if name in _FIRST_IN_ITEM:
            self._begin_item(match.start())
        shadowed, element = self._append(match[1], body)
        if element is None or body.endswith("/>") or name in _HTML_VOID:
            self._restore(shadowed)
        else:
            self._push(_Open(element, name, shadowed))
        return match.end() + len(body)

    def _begin_item(self, at: int) -> None:
        """Open an item whose start tag is missing: one has ended, and the next boundary is an end as well."""
        top = self._stack[-1]
        if top.name not in _ROOTS or not len(top.element):
            return
        previous = top.element[-1]
        if etree.QName(previous).localname.lower() not in _ITEMS:
            return
        if self._boundary[0] < at:
            found = _BOUNDARY.search(self._text, at)
            self._boundary = (found.start(), bool(found[1])) if found else (_NEVER, False)
        if self._boundary[1]:
            name = self._short(etree.QName(previous).localname)
            self._push(_Open(etree.SubElement(top.element, previous.tag), name))

    def _push(self, opened: _Open) -> None:
        self._stack.append(opened)
        self._open_names[opened.name] += 1

    def _inside(self, start: int) -> str:
        """The rest of a tag. Where a quote is missing, it ends at the first `>` that no `<` precedes."""
        text, limit = self._text, start + _LONGEST_TAG
        inside = plain = None
        if self._open_quotes < _MOST_OPEN_QUOTES:
            inside = _INSIDE.match(text, start, limit)
            if inside is None:
                self._open_quotes += 1
                plain = _INSIDE_PLAIN.match(text, start)
                if plain is not None and not plain[0].endswith(">"):
                    inside = _INSIDE_WIDE.match(text, start, limit)
                    if inside and _BOUNDARY.search(text, start, inside.end()):
                        inside = None  # no value holds items
        found = inside or plain or _INSIDE_PLAIN.match(text, start)
        return found[0] if found else ""

    def _short(self, written: str) -> str:
        """A name in lower case, without the prefix where it is that of RSS or Atom."""
        prefix, colon, local = written.rpartition(":")
        if colon and namespace_prefix(self._namespace(prefix)) in (RSS, ATOM):
            return local.lower()
        return written.lower()

    def _namespace(self, prefix: str) -> str:
        found = self._namespaces.get(prefix) or self._declared.get(prefix)
        return found or undeclared_namespace(prefix)

    def _append(self, written: str, body: str) -> tuple[Namespaces | None, etree._Element | None]:
        """A new element, and what the prefixes that it declares meant before."""
        attributes: dict[str, str] = {}
        shadowed: Namespaces | None = None
        if body not in (">", "/>"):
            pairs = [
                (key, unescape(double or single or bare.strip(_CURLY_QUOTES)))
                for key, double, single, bare in _ATTRIBUTE.findall(body.removesuffix(">").removesuffix("/"))
            ][:MAX_ATTRIBUTES]
            if any(key.startswith("xmlns") for key, _ in pairs):
                shadowed = self._declare(pairs)
            for key, value in pairs:
                qualified = None if key.startswith("xmlns") else self._qualify(key, default="")
                if qualified:
                    attributes.setdefault(qualified, value)
        parent = self._stack[-1].element
        tag = self._qualify(written, default=self._namespaces.get("", ""))
        try:
            return shadowed, etree.SubElement(parent, tag, attributes) if tag else None
        except ValueError:  # a namespace that cannot be one
            return shadowed, etree.SubElement(parent, written.rpartition(":")[2])

    def _declare(self, pairs: list[tuple[str, str]]) -> Namespaces:
        shadowed: Namespaces = {}
        for key, value in pairs:
            name, colon, prefix = key.partition(":")
            if name == "xmlns":
                shadowed.setdefault(prefix, self._namespaces.get(prefix))
                self._namespaces[prefix] = value.strip()
                if colon:
                    self._declared[prefix] = value.strip()
        return shadowed

    def _restore(self, shadowed: Namespaces | None) -> None:
        for prefix, value in (shadowed or {}).items():
            if value is None:
                del self._namespaces[prefix]
            else:
                self._namespaces[prefix] = value

    def _qualify(self, written: str, *, default: str) -> str | None:
        prefix, _, local = written.rpartition(":")
        if not _NAME.match(local):
            return None
        namespace = self._namespace(prefix) if prefix else default
        return f"{{{namespace}}}{local}" if namespace else local

    def _close_unfinished(self, name: str) -> None:
        """Close what must have ended before an element of this name begins."""
        if name in _ITEMS:
            self._close(self._depth_for_item())
        top = self._stack[-1]
        is_inside_person = top.name == "author" and name in _LEAVES
        is_unfinished = top.name in _LEAVES and (name in _OWN or self._is_foreign(name))
        is_atom_link = top.name == "link" and bool(top.element.get("href"))  # which holds nothing
        if (is_unfinished and not is_inside_person) or is_atom_link:
            self._close(len(self._stack) - 1)

    def _is_foreign(self, name: str) -> bool:
        """Whether an element is of a known vocabulary other than RSS, Atom and HTML."""
        prefix, colon, _ = name.rpartition(":")
        return bool(colon) and namespace_prefix(self._namespace(prefix)) not in ("xhtml", UNKNOWN)

    def _depth_for_item(self) -> int:
        """How much may stay open around an item: its container, and nothing that the head or an item left open."""
        names = [opened.name for opened in self._stack]
        for depth in range(len(names) - 1, 0, -1):
            if names[depth] in _CONTAINERS:
                return depth + 1
        return next((depth for depth in range(1, len(names)) if names[depth] in _ITEMS), len(names))

    def _end(self, written: str, at: int) -> None:
        if self._skipped_depth:
            self._skipped_depth -= 1
            return
        name, top = self._short(written), self._stack[-1].name
        if name in _ROOTS and at < self.last_item:
            return  # too early: items follow
        depth = self._depth_of(name) if self._open_names[name] else 0
        if depth:
            self._flush()
            self._close(depth)
        elif top in _LEAVES and name not in _HTML_INLINE:  # a misspelt end tag
            self._flush()
            self._close(len(self._stack) - 1)
        elif name in _OWN and top in _ITEMS:
            self._wrap_text(written)

    def _wrap_text(self, written: str) -> None:
        """Put text whose start tag is missing into its element."""
        text = "".join(self._pending)
        if text.strip() and len(self._stack) < MAX_DEPTH:
            self._pending.clear()
            _, element = self._append(written, ">")
            if element is not None:
                element.text = text

    def _depth_of(self, name: str) -> int:
        """Where the element is that an end tag closes; 0 where an item stands between, which it cannot end."""
        for depth in range(len(self._stack) - 1, 0, -1):
            if self._stack[depth].name == name:
                return depth
            if self._stack[depth].name in _ITEMS and name not in _CONTAINERS:
                return 0
        return 0

    def _close(self, depth: int) -> None:
        for opened in reversed(self._stack[depth:]):
            self._open_names[opened.name] -= 1
            self._restore(opened.shadowed)
        del self._stack[depth:]

    def _flush(self) -> None:
        """Put the text collected so far into the tree, at once: many small additions would take quadratic time."""
        if not self._pending:
            return
        text = "".join(self._pending)
        self._pending.clear()
        top = self._stack[-1].element
        if len(top):
            last = top[-1]
            last.tail = (last.tail or "") + text
        else:
            top.text = (top.text or "") + text
