"""Bytes → element tree: the strict parser where it can, repaired text where it must, tag soup as the last
resort.

No network, no external entities, no unlimited expansion; what a tree may cost is capped. It gives the
document's root element and says what had to be done to it; what the elements mean is the readers' business.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from lxml import etree

from headwater.errors import FailureKind, ParseError
from headwater.formats.charset import decode, sniff_encoding
from headwater.formats.entities import drop_illegal, has_suspect_numbers, repair_references
from headwater.formats.soup import read_soup

MAX_BYTES: Final = 32 * 1024 * 1024
MAX_ELEMENTS: Final = 3_000_000

NOTE_ILL_FORMED: Final = "The XML is not well-formed; it was read as far as possible."
NOTE_REPAIRED: Final = "Characters or entities that XML does not allow were repaired."
NOTE_CHARSET: Final = "The character encoding is not what the document says; it was guessed."

_XML_DECLARATION = re.compile(r"<\?xml\b[^>]*\?>")


@dataclass(frozen=True, slots=True)
class Tree:
    root: etree._Element
    has_xml_base: bool = False
    notes: tuple[str, ...] = ()


def _strict_parser() -> etree.XMLParser:
    return etree.XMLParser(
        encoding="utf-8",
        resolve_entities="internal",  # type: ignore[arg-type]  # newer than the stubs
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )


def _parse_strictly(data: bytes) -> etree._Element | None:
    # A parser of one's own: a shared one keeps the errors of the last document and is no good to two threads.
    try:
        root = etree.fromstring(data, _strict_parser())
    except (etree.XMLSyntaxError, ValueError):
        return None
    # With a DOCTYPE that points elsewhere an unknown entity is no error, and the text behind it would be
    # lost.
    docinfo: Any = root.getroottree().docinfo
    if docinfo.doctype and next(root.iter(etree.Entity), None) is not None:
        return None
    return root


def check_size(data: bytes) -> None:
    """Refuse what would cost too much memory."""
    if len(data) > MAX_BYTES:
        raise ParseError(
            "The document has {size} bytes; at most {limit} are read.",
            kind=FailureKind.TOO_LARGE,
            size=len(data),
            limit=MAX_BYTES,
        )


def read_tree(data: bytes, content_type: str | None = None) -> Tree:
    """The tree of an XML document, however damaged. Its root is named `soup` where nothing else would do."""
    check_size(data)
    if len(data) > 4 * MAX_ELEMENTS and data.count(b"<") > 2 * MAX_ELEMENTS:
        raise ParseError(
            "The document has more than {limit} elements.", kind=FailureKind.TOO_LARGE, limit=MAX_ELEMENTS
        )
    encoding, skip = sniff_encoding(data, content_type)
    if (
        encoding in (None, "utf-8", "cp1252") and (encoding != "cp1252" or data.isascii())
    ) and not has_suspect_numbers(data):
        start = data.find(b"<", skip)
        root = _parse_strictly(data[start:] if start > 0 else data)
        if root is not None:
            return Tree(root, b"xml:base" in data)
    return _read_damaged(data, content_type)


def _read_damaged(data: bytes, content_type: str | None) -> Tree:
    decoded = decode(data, content_type)
    notes = [NOTE_CHARSET] if decoded.doubtful else []
    # The declaration names the encoding of the bytes, which this text no longer has.
    start = max(decoded.text.find("<"), 0)
    text = _XML_DECLARATION.sub("", decoded.text[start:], count=1)
    has_xml_base = "xml:base" in text
    plain = text.lstrip()
    root = _parse_strictly(plain.encode("utf-8", "replace"))
    if root is not None and not has_suspect_numbers(data):
        return Tree(root, has_xml_base, tuple(notes))
    repaired = repair_references(drop_illegal(text)).lstrip()
    root = _parse_strictly(repaired.encode("utf-8", "replace"))
    if root is not None:
        return Tree(root, has_xml_base, (*notes, NOTE_REPAIRED))
    return Tree(read_soup(repaired), has_xml_base, (*notes, NOTE_ILL_FORMED))
