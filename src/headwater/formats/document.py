"""Reads a web page into a tree, at a price that is known beforehand. Pure.

The parser looks through all open elements at many a tag, so what is nested deeply costs the square of its length: half
a megabyte of `<div>` takes half a minute. A page is read up to so many bytes and tags; what pages say of themselves,
and the newest of what they list, stands before that.
"""

import re
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from headwater.formats.charset import decode

MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
MAX_TAGS: Final = 30_000

_TAG = re.compile("<")


def read_html(page: bytes, content_type: str | None = None) -> LexborHTMLParser:
    """The tree of a page, or of its beginning where it is too large."""
    text = decode(page[:MAX_PAGE_BYTES], content_type).text
    beyond = next(islice(_TAG.finditer(text), MAX_TAGS, None), None)
    return LexborHTMLParser(text if beyond is None else text[: beyond.start()])
