"""Builds an element tree from XML that is not well-formed, as far as sense allows.

libxml2's own recovery closes whatever is open when an end tag does not fit, which nests every following item
inside a broken one. Here an end tag closes the element it names or nothing, an item ends where the next one
begins, and a stray `<` is text. Time and memory are linear in the input; depth and number of elements are
capped.
"""

import re
from collections import Counter
from typing import Final

from lxml import etree

from headwater.formats.entities import unescape
from headwater.formats.names import UNDECLARED, XML_NAMESPACE

MAX_DEPTH: Final = 200
MAX_TAGS: Final = 2_000_000
MAX_ATTRIBUTES: Final = 256

_START = re.compile(r"<([A-Za-z_][A-Za-z0-9_.:-]*)")
_END = re.compile(r"</\s*([A-Za-z_][A-Za-z0-9_.:-]*)[^<>]*>?")
# Possessive, so that an unfinished quote costs one pass and not a product of passes.
_INSIDE = re.compile(r"""[^<>"']*+(?:"[^"]*+"[^<>"']*+|'[^']*+'[^<>"']*+)*+>""")
_INSIDE_PLAIN = re.compile(r"[^<>]*+>?")
_ATTRIBUTE = re.compile(r"""([A-Za-z_][A-Za-z0-9_.:-]*)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_LONGEST_TAG: Final = 32_768
_PATIENCE: Final = 500  # tags without an end, after which quotes are no longer believed

# Elements that hold text only: a feed's own element inside one means that its end tag is missing.
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
_HTML_VOID: Final = frozenset(("br", "img", "hr", "input", "meta", "area", "col", "wbr"))
_HTML_NAMES: Final = (
    "a abbr b big cite code del div em font i ins li nobr ol p pre q s small span strike strong sub sup table"
    " tbody td th tr tt u ul br img hr h1 h2 h3 h4 h5 h6 blockquote"
)
_HTML_INLINE: Final = frozenset(_HTML_NAMES.split())


def read_soup(text: str) -> etree._Element:
    """A tree under a root element named `soup`. `text` has gone through `repair_references` before."""
    return _Builder(text).build()


class _Builder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._root = etree.Element("soup")
        self._stack: list[etree._Element] = [self._root]
        self._names: list[str] = ["soup"]  # as written, in lower case, beside _stack
        self._namespaces: dict[str, str] = {"xml": XML_NAMESPACE}
        self._impatience = 0
        self._skipped_depth = 0
        self._pending: list[str] = []
        self._comments_over = False
        self._open: Counter[str] = Counter()  # how often each name is in _names

    def build(self) -> etree._Element:
        text, position, length, tags = self._text, 0, len(self._text), 0
        while position < length and tags < MAX_TAGS:
            opening = text.find("<", position)
            if opening < 0:
                self._add_text(unescape(text[position:]))
                break
            if opening > position:
                self._add_text(unescape(text[position:opening]))
            following = text[opening + 1 : opening + 2]
            tags += 1
            if following == "/":
                if match := _END.match(text, opening):
                    self._end(match[1].lower())
                    position = match.end()
                    continue
            elif following in ("!", "?"):
                position = self._declaration(opening)
                continue
            elif match := _START.match(text, opening):
                position = self._start(match)
                continue
            self._add_text("<")
            position = opening + 1
        self._flush()
        return self._root

    def _declaration(self, opening: int) -> int:
        text = self._text
        if text.startswith("<![CDATA[", opening):
            close = text.find("]]>", opening)
            self._add_text(text[opening + 9 : close if close >= 0 else len(text)])
            return close + 3 if close >= 0 else len(text)
        if text.startswith("<!--", opening):
            # An unfinished comment hides no more than the `<!--`; after one, none is finished.
            close = -1 if self._comments_over else text.find("-->", opening + 4)
            self._comments_over = close < 0
            return close + 3 if close >= 0 else opening + 4
        close = text.find(">", opening)
        if close < 0:
            return len(text)
        if text.startswith("<!DOCTYPE", opening) and "[" in text[opening:close]:
            close = text.find(">", max(close, text.find("]", opening)))
            return close + 1 if close >= 0 else len(text)
        return close + 1

    def _start(self, match: re.Match[str]) -> int:
        text, written = self._text, match[1]
        inside = None
        if self._impatience < _PATIENCE:
            inside = _INSIDE.match(text, match.end(), match.end() + _LONGEST_TAG)
            self._impatience += inside is None
        if inside is None:
            inside = _INSIDE_PLAIN.match(text, match.end())
        body = inside[0] if inside else ""
        name = written.lower()
        self._flush()
        self._close_unfinished(name)
        if len(self._stack) >= MAX_DEPTH:
            self._skipped_depth += 1
            return match.end() + len(body)
        element = self._append(written, body)
        if element is not None and not body.endswith("/>") and name not in _HTML_VOID:
            self._stack.append(element)
            self._names.append(name)
            self._open[name] += 1
        return match.end() + len(body)

    def _append(self, written: str, body: str) -> etree._Element | None:
        attributes: dict[str, str] = {}
        if body not in (">", "/>"):
            pairs = [
                (key, unescape(double or single or bare))
                for key, double, single, bare in _ATTRIBUTE.findall(body.removesuffix(">").removesuffix("/"))
            ]
            for key, value in pairs[:MAX_ATTRIBUTES]:
                if key == "xmlns":
                    self._namespaces[""] = value.strip()
                elif key.startswith("xmlns:"):
                    self._namespaces[key[6:]] = value.strip()
            for key, value in pairs[:MAX_ATTRIBUTES]:
                qualified = None if key.startswith("xmlns") else self._qualify(key, default="")
                if qualified:
                    attributes.setdefault(qualified, value)
        tag = self._qualify(written, default=self._namespaces.get("", ""))
        try:
            return etree.SubElement(self._stack[-1], tag, attributes) if tag else None
        except ValueError:  # a namespace that cannot be one
            return etree.SubElement(self._stack[-1], written.rpartition(":")[2])

    def _qualify(self, written: str, *, default: str) -> str | None:
        prefix, _, local = written.rpartition(":")
        if not _NAME.match(local):
            return None
        namespace = default
        if prefix:
            namespace = self._namespaces.get(prefix) or UNDECLARED + prefix.replace(":", "-").lower()
        return f"{{{namespace}}}{local}" if namespace else local

    def _close_unfinished(self, name: str) -> None:
        names = self._names
        if name in _ITEMS:
            for depth in range(len(names) - 1, 0, -1):
                if names[depth] in _ITEMS:
                    self._close(depth)
                    break
                if names[depth] in ("channel", "rss", "feed", "items"):
                    break
        is_leaf = name in _OWN and names[-1] in _LEAVES and not (names[-1] == "author" and name in _LEAVES)
        is_empty = names[-1] == "link" and bool(self._stack[-1].get("href"))  # Atom's link holds nothing
        if is_leaf or is_empty:
            self._close(len(names) - 1)

    def _end(self, name: str) -> None:
        if self._skipped_depth:
            self._skipped_depth -= 1
            return
        names = self._names
        if self._open[name]:
            self._flush()
            self._close(next(depth for depth in range(len(names) - 1, 0, -1) if names[depth] == name))
        elif names[-1] in _LEAVES and name not in _HTML_INLINE:  # a misspelt end tag
            self._flush()
            self._close(len(names) - 1)

    def _close(self, depth: int) -> None:
        self._open.subtract(self._names[depth:])
        del self._names[depth:], self._stack[depth:]

    def _add_text(self, text: str) -> None:
        # Collected first: text in many small pieces, each appended to an element, would take quadratic time.
        self._pending.append(text)

    def _flush(self) -> None:
        if not self._pending:
            return
        text = "".join(self._pending)
        self._pending.clear()
        top = self._stack[-1]
        if len(top):
            last = top[-1]
            last.tail = (last.tail or "") + text
        else:
            top.text = (top.text or "") + text
