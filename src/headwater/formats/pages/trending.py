"""Reads GitHub's page of trending repositories. Pure.

A repository is found by its heading's link of two parts, not by the page's class names, which change. Counts of stars
are left out: they change by the hour, and every change of an item's text is stored as a new version of it.
"""

import re
from typing import Final

from selectolax.lexbor import LexborNode

from headwater.formats.html import collapse
from headwater.formats.links import join
from headwater.formats.pages.document import base_of, read_html
from headwater.formats.pages.scrape import text_of
from headwater.model import Item

_REPOSITORY = re.compile(r"/([A-Za-z0-9][A-Za-z0-9-]*)/([A-Za-z0-9._-]+)/?\Z")
_NONE_TRENDING = re.compile(r"don.t have any trending repositories", re.IGNORECASE)
_CONTAINERS: Final = frozenset(("article", "li", "tr"))


def read_trending(page: bytes, *, url: str, content_type: str | None = None) -> tuple[Item, ...] | None:
    """The repositories on the page, in its order; None when the page is not what it was."""
    document = read_html(page, content_type)
    base = base_of(document, url)
    items: dict[str, Item] = {}
    for link in document.css("h1 a[href], h2 a[href], h3 a[href]"):
        href = link.attributes.get("href") or ""
        box = _container(link)
        match = _REPOSITORY.match(href)
        if match and box is not None:
            address = join(base, f"/{match[1]}/{match[2]}") or href
            items.setdefault(address, _read_item(box, f"{match[1]}/{match[2]}", address))
    if not items and not _NONE_TRENDING.search(document.body.text() if document.body else ""):
        return None
    return tuple(items.values())


def _container(link: LexborNode) -> LexborNode | None:
    node = link.parent
    while node is not None and node.tag not in _CONTAINERS:
        node = node.parent
    return node


def _read_item(box: LexborNode, name: str, address: str) -> Item:
    about = box.css_first("p")
    language = box.css_first('[itemprop="programmingLanguage"]')
    return Item(
        external_id=address,
        url=address,
        title=name,
        author=name.partition("/")[0],
        summary=(text_of(about) or None) if about is not None else None,
        categories=(collapse(language.text()),) if language is not None else (),
    )
