"""What a document may cost before it is parsed: entries and values are counted in the bytes, gzip is capped. Pure."""

import re
import zlib
from itertools import islice
from typing import Any, Final

import orjson

from headwater.errors import FailureKind, ParseError

MOST_ENTRIES: Final = 20_000  # of one feed; what comes after them is not read
MOST_VALUES: Final = 2_000_000  # of one JSON document
MOST_TAGS: Final = 1_000_000  # of one XML document
MOST_ATTRIBUTES: Final = 500_000  # of one XML document; what looks like one in a text counts too

_ENTRY = re.compile(rb"<(?:[A-Za-z_][\w.-]{0,50}:)?(?:item|entry)[\s>/]", re.IGNORECASE)
_ENDS: Final = ((b"<rss", b"</channel></rss>"), (b"<feed", b"</feed>"), (b":rdf", b"</rdf:RDF>"))
_HEAD_BYTES: Final = 4_096
_SHORTEST_ENTRY: Final = len(b"<item/>")


def cut_entries(data: bytes, most: int = MOST_ENTRIES) -> tuple[bytes, int]:
    """An XML feed up to so many entries, closed as its root demands, and how many were left out."""
    is_long = len(data) > most * _SHORTEST_ENTRY and data.count(b"<") > most
    beyond = next(islice(_ENTRY.finditer(data), most, None), None) if is_long else None
    if beyond is None:
        return data, 0
    head = data[:_HEAD_BYTES].lower()
    end = next((end for root, end in _ENDS if root in head), b"")
    return data[: beyond.start()] + end, sum(1 for _ in _ENTRY.finditer(data, beyond.start()))


def refuse_too_many_tags(data: bytes, most_attributes: int = MOST_ATTRIBUTES) -> None:
    """ParseError when an XML document holds so many tags or attributes that its tree would fill the memory."""
    if len(data) > 2 * MOST_TAGS and data.count(b"<") > MOST_TAGS:
        raise ParseError(
            "The document has more than {limit} tags.", kind=FailureKind.TOO_LARGE, limit=MOST_TAGS
        )
    if len(data) > 4 * most_attributes and data.count(b"=") > most_attributes:
        raise ParseError(
            "The document has more than {limit} attributes.",
            kind=FailureKind.TOO_LARGE,
            limit=most_attributes,
        )


def load_json(data: bytes) -> Any:
    """What a JSON document says; ParseError when it holds too many values, orjson's error when it is none."""
    if len(data) > MOST_VALUES and sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ParseError(
            "The document has more than {limit} values.", kind=FailureKind.TOO_LARGE, limit=MOST_VALUES
        )
    return orjson.loads(data)


def inflate(data: bytes, most_bytes: int) -> tuple[bytes, bool]:
    """Unzip up to the cap: a bomb costs no more than an honest file. Also says whether it was cut."""
    engine = zlib.decompressobj(wbits=31)
    try:
        result = engine.decompress(data, most_bytes)
    except zlib.error as error:
        raise ParseError(
            "The gzip file is damaged: {reason}.", kind=FailureKind.MALFORMED, reason=str(error)
        ) from None
    return result, not engine.eof
