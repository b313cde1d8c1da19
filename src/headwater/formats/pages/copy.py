"""A copy of a web page to point at: its elements and words, and nothing that loads, runs or leads away. Pure.

It is written again, element by element. Classes and ids stay, so that a CSS selector finds the same elements in it
and on the page.
"""

import re
from html import escape
from typing import Final

from selectolax.lexbor import LexborNode

from headwater.formats.pages.document import read_html

MAX_DEPTH: Final = 200
MAX_NODES: Final = 60_000
# What shows no words, shows them by a program, or is read by other rules than HTML's.
_LEFT_OUT: Final = frozenset(
    (
        "script",
        "style",
        "link",
        "meta",
        "base",
        "head",
        "title",
        "template",
        "noscript",
        "iframe",
        "frame",
        "frameset",
        "object",
        "embed",
        "applet",
        "svg",
        "math",
        "canvas",
        "audio",
        "video",
        "source",
        "track",
        "portal",
        "xmp",
        "plaintext",
        "noembed",
        "noframes",
        "textarea",
        "select",
        "input",
        "button",
        "dialog",
    )
)
_EMPTY: Final = frozenset(("area", "br", "col", "hr", "img", "wbr"))
_KEPT_ATTRIBUTES: Final = ("class", "id", "datetime", "dir", "lang", "alt")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}\Z")


def copy_page(page: bytes, content_type: str | None = None) -> str:
    """The inside of the body, harmless; empty where the page is too deep or too large to be shown."""
    body = read_html(page, content_type).body
    written: list[str] = []
    waiting: list[LexborNode | str] = [body] if body is not None else []
    depth = count = 0
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            written.append(node)
            depth -= 1
            continue
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            return ""
        if node.next is not None and node.tag != "body":
            waiting.append(node.next)
        if (end := _begin(node, written)) is not None and node.child is not None:
            depth += 1
            waiting += (end, node.child)
        elif end is not None:
            written.append(end)
    return "".join(written)


def _begin(node: LexborNode, written: list[str]) -> str | None:
    """Write a text or the beginning of an element; what ends the element, if it may have something inside."""
    name = node.tag or ""
    if name == "-text":
        written.append(escape(node.text_content or "", quote=False))
    elif name == "body":
        return ""
    elif name not in _LEFT_OUT and _NAME.match(name):
        attributes = node.attributes
        kept = [
            ' {}="{}"'.format(key, escape(attributes[key] or ""))
            for key in _KEPT_ATTRIBUTES
            if key in attributes
        ]
        written.append(f"<{name}{''.join(kept)}>")
        return None if name in _EMPTY else f"</{name}>"
    return None
