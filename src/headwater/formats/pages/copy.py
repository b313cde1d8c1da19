"""A copy of a web page to point at: its elements and words, and nothing that loads, runs or leads away. Pure.

Classes and ids stay, so that a CSS selector finds the same elements in the copy as on the page.
"""

from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from headwater.formats.pages.document import read_html

# What shows no words, or shows them by a program.
_LEFT_OUT: Final = (
    "script, style, link, meta, base, template, noscript, iframe, frame, object, embed, svg, math, canvas, "
    "audio, video, source, picture > source, title, portal"
)
_KEPT_ATTRIBUTES: Final = frozenset(("class", "id", "datetime", "dir", "lang", "alt"))
MAX_DEPTH: Final = 200
MAX_COPY_ELEMENTS: Final = 20_000


def copy_page(page: bytes, content_type: str | None = None) -> str:
    """The inside of the body, harmless; empty where the page is too deep or too large to be shown."""
    document = read_html(page, content_type)
    body = document.body
    if body is None or not _is_showable(body):
        return ""
    for node in document.css(_LEFT_OUT):
        node.decompose()
    for node in document.css("body *"):
        _strip(node)
    return _inside(document)


def _is_showable(body: LexborNode) -> bool:
    depths = {body.mem_id: 0}
    for number, node in enumerate(body.traverse()):
        if number > MAX_COPY_ELEMENTS:
            return False
        if node.parent is not None and node.mem_id not in depths:
            depths[node.mem_id] = depths.get(node.parent.mem_id, 0) + 1
        if depths[node.mem_id] > MAX_DEPTH:
            return False
    return True


def _strip(node: LexborNode) -> None:
    for name in node.attributes:
        if name not in _KEPT_ATTRIBUTES:
            del node.attrs[name]


def _inside(document: LexborHTMLParser) -> str:
    return document.body.inner_html or "" if document.body else ""
