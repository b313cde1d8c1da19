"""Text constructs: titles as plain text, bodies as HTML.

RSS does not say whether its text is plain or escaped HTML; Atom does, in the attributes `type` and `mode`.
"""

import base64
import binascii
import re
from typing import Final

from lxml import etree

from headwater.formats.feeds.scope import Element, Scope, inner_text
from headwater.formats.html import collapse, escape_text, plain_text

_FIRST_TAG = re.compile(r"""<[^<>"']*+(?:"[^"]*+"[^<>"']*+|'[^']*+'[^<>"']*+)*+>""")
_PREFIXES = re.compile(r"<(/?)[A-Za-z][A-Za-z0-9_.-]*+:(?=[A-Za-z])")
_XMLNS = re.compile(r"""(<[A-Za-z][^<>]*?)\sxmlns(?::[A-Za-z0-9_.-]+)?="[^"]*\"""")
_VOID_ENDS = re.compile(r"</(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)>")
_HTML_TYPES: Final = frozenset(("html", "text/html", "escaped", "text/x-html"))
_XHTML_TYPES: Final = frozenset(("xhtml", "application/xhtml+xml", "xml", "text/xml", "application/xml"))


def read_title(scope: Scope, element: Element) -> str:
    """A title as plain text. Without a type it is read as in RSS, where it may be escaped HTML."""
    if element.keys() and (element.get("type") or element.get("mode")):
        markup, is_html = _read_construct(element)
        return plain_text(markup) if is_html else collapse(markup)
    return plain_text(_inner_markup(element) if len(element) else element.text or "")


def atom_body(scope: Scope, element: Element) -> str | None:
    """An Atom text construct as HTML."""
    markup, is_html = _read_construct(element)
    if not is_html:
        return escape_text(markup) or None
    return scope.resolve_html(element, markup) or None


def rss_body(scope: Scope, element: Element) -> str | None:
    """An RSS description or body as HTML."""
    markup = _inner_markup(element) if len(element) else (element.text or "").strip()
    return scope.resolve_html(element, markup) or None


def plain_body(scope: Scope, element: Element) -> str | None:
    """Text that is plain by its definition, as HTML."""
    return escape_text(inner_text(element)) or None


def itunes_body(scope: Scope, element: Element) -> str | None:
    """A summary that is plain by its definition, and often HTML all the same."""
    text = inner_text(element)
    return (escape_text(text) if "<" not in text else text) or None


def _inner_markup(element: Element) -> str:
    """What is inside `element` as HTML, without its own tag."""
    markup = etree.tostring(element, method="html", encoding="unicode", with_tail=False)
    markup = _PREFIXES.sub(r"<\1", markup)  # `xhtml:p` is not HTML
    start = _FIRST_TAG.match(markup)
    markup = markup[start.end() if start else 0 : markup.rfind("</")]
    markup = _VOID_ENDS.sub("", markup)  # lxml writes end tags for elements of the XHTML namespace
    if " xmlns" in markup:
        markup = _XMLNS.sub(r"\1", markup)
    return markup.strip()


def _read_construct(element: Element) -> tuple[str, bool]:
    """What an Atom text construct holds, and whether that is HTML."""
    given = element.get("type") or ""
    if given == "html" and not len(element):  # the usual case
        return (element.text or "").strip(), True
    kind = given.strip().lower().partition(";")[0]
    mode = (element.get("mode") or "").strip().lower()
    if len(element):
        if kind == "text" and mode != "xml":  # says text, holds tags
            return _inner_markup(element), True
        return _inner_markup(_without_wrapper(element)), True
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


def _without_wrapper(element: Element) -> Element:
    """The <div> that Atom demands around XHTML, which is not part of the content; else `element`."""
    if len(element) != 1 or (element.text or "").strip() or (element[0].tail or "").strip():
        return element
    return element[0] if etree.QName(element[0]).localname.lower() == "div" else element


def _decode_base64(text: str) -> str | None:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8").strip()
    except (binascii.Error, ValueError):
        return None
