"""Reads a web page into a tree, in bounded time. Pure.

The parser looks through all open elements at many tags, so that deep nesting costs the square of its length: half a
megabyte of `<div>` takes half a minute, and compares each attribute of a tag with all others. So only the first bytes
and tags of a page are read, and the first attributes of a tag. The metadata of a page, and the newest of what it lists,
stand there.
"""

import re
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from headwater.formats.charset import decode
from headwater.formats.links import join

MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
MAX_TAGS: Final = 30_000

MAX_ATTRIBUTES: Final = 1_000  # of one tag
_SHORTEST_LONG_TAG: Final = 2 * MAX_ATTRIBUTES

_TAG = re.compile("<")
_LONG_TAG = re.compile(rf"<[^<>]{{{_SHORTEST_LONG_TAG},}}+")
_ATTRIBUTE = re.compile(r"""(?:[^\s/"']|"[^"]*+"|'[^']*+'|["'])++[\s/]*+""")


def read_html(page: bytes, content_type: str | None = None) -> LexborHTMLParser:
    """The tree of a page, or of its beginning where it is too large."""
    text = decode(page[:MAX_PAGE_BYTES], content_type).text
    beyond = next(islice(_TAG.finditer(text), MAX_TAGS, None), None)
    text = text if beyond is None else text[: beyond.start()]
    return LexborHTMLParser(_LONG_TAG.sub(_first_attributes, text))


def _first_attributes(tag: re.Match[str]) -> str:
    """A tag without the attributes that no page has."""
    beyond = next(islice(_ATTRIBUTE.finditer(tag[0]), MAX_ATTRIBUTES, None), None)
    return tag[0] if beyond is None else tag[0][: beyond.start()]


def base_of(document: LexborHTMLParser, url: str) -> str:
    """The address that the relative addresses of a page start from."""
    node = document.css_first("base[href]")
    return join(url, node.attributes.get("href") if node else None) or url
