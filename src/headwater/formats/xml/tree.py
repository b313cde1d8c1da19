"""Bytes → element tree: the strict parser where it can, repaired text where it must, tag soup as the last
resort.

No network, no external entities, no unlimited expansion; what a tree may cost is capped. It gives the
document's root element and says what had to be done to it; what the elements mean is the readers' business.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from lxml import etree

from headwater.errors import FailureKind, ParseError
from headwater.formats.charset import decode, is_encoded_twice, sniff_encoding
from headwater.formats.limits import MOST_ATTRIBUTES, refuse_too_many_tags
from headwater.formats.xml.entities import drop_illegal, has_suspect_numbers, repair_references
from headwater.formats.xml.names import undeclared_namespace
from headwater.formats.xml.soup import read_soup
from headwater.model import Repair

MAX_BYTES: Final = 32 * 1024 * 1024

_LONGEST_REASON: Final = 200
_PLACE = re.compile(r",? line \d+, column \d+.*|(?<=\w) line \d+")
_XML_DECLARATION = re.compile(r"<\?xml\b[^<>?]*+(?:\?(?!>)[^<>?]*+)*+\?>")


@dataclass(frozen=True)
class Tree:
    """A document as elements. `has_items`: a damaged document has items, whether or not they are elements here."""

    root: etree._Element
    source: bytes  # in an encoding that agrees with ASCII
    repairs: tuple[Repair, ...] = ()
    has_items: bool = False

    @cached_property
    def has_xml_base(self) -> bool:
        """Whether any element changes the base of links. Few documents need to know."""
        return b"xml:base" in self.source


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a document is not well-formed, and why."""

    line: int
    message: str

    @property
    def reason(self) -> str:
        """libxml2's own words, without the place."""
        message = _PLACE.sub("", " ".join(self.message.split()))
        return (message[:_LONGEST_REASON].rstrip(" .,") or "Damaged") + "."


def _make_parser(*, recover: bool = False) -> etree.XMLParser:
    # One for each document: a shared one keeps the errors of the last document and is not safe for two threads.
    return etree.XMLParser(
        encoding="utf-8",
        resolve_entities="internal",  # type: ignore[arg-type]  # newer than the stubs
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )


def _parse(data: bytes) -> tuple[etree._Element | None, Damage | None]:
    """The root of a well-formed document, and what is wrong with it. Errors in namespaces only do no harm."""
    parser = _make_parser()
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        damage = Damage(error.lineno or 1, error.msg or "")
        if any(entry.domain != etree.ErrorDomains.NAMESPACE for entry in parser.error_log):
            return None, damage
        root = etree.fromstring(data, _make_parser(recover=True))
        return (_declare_prefixes(root) if _is_whole(root, data) else None), damage
    except ValueError as error:
        return None, Damage(1, str(error))
    # With a DOCTYPE that points elsewhere an unknown entity is not an error, and the text behind it would be lost.
    docinfo: Any = root.getroottree().docinfo
    if docinfo.doctype and (unknown := next(root.iter(etree.Entity), None)) is not None:
        return None, Damage(unknown.sourceline or 1, "Unknown entity")
    return root, None


def _is_whole(root: etree._Element, data: bytes) -> bool:
    """Whether a document ends with its root element. What comes behind it the parser leaves out without an error."""
    if not len(root):  # `<rss/>`, and the rest behind it
        return False
    ends = re.findall(
        rb"</(?:[\w.-]+:)?%b\s*>" % re.escape(root.tag.rpartition("}")[2].rpartition(":")[2].encode()), data
    )
    return len(ends) == 1 and data.rstrip().endswith(ends[0])


def _declare_prefixes(root: etree._Element) -> etree._Element:
    """Put names whose prefixes the document does not declare into namespaces made from them."""
    for element in root.iter(etree.Element):
        if ":" in element.tag and element.tag[0] != "{":
            element.tag = _qualify(element.tag)
        for name, value in ((str(name), str(value)) for name, value in element.items()):
            if ":" in name and name[0] != "{":
                del element.attrib[name]
                element.set(_qualify(name), value)
    return root


def _qualify(written: str) -> str:
    prefix, _, local = written.rpartition(":")
    return f"{{{undeclared_namespace(prefix)}}}{local}"


def check_size(data: bytes) -> None:
    """Refuse what would cost too much memory."""
    if len(data) > MAX_BYTES:
        raise ParseError(
            "The document has {size} bytes; at most {limit} are read.",
            kind=FailureKind.TOO_LARGE,
            size=len(data),
            limit=MAX_BYTES,
        )


def read_tree(data: bytes, content_type: str | None = None, most_attributes: int = MOST_ATTRIBUTES) -> Tree:
    """The tree of an XML document, however damaged. Its root is named `soup` where nothing else would do."""
    check_size(data)
    refuse_too_many_tags(data, most_attributes)
    encoding, skip = sniff_encoding(data, content_type)
    if (encoding in (None, "utf-8", "cp1252") and (encoding != "cp1252" or data.isascii())) and not (
        has_suspect_numbers(data) or is_encoded_twice(data)
    ):
        start = max(data.find(b"<", skip), 0)
        root, damage = _parse(data[start:] if start else data)
        if root is not None:
            lines_before = data.count(b"\n", 0, start)
            return Tree(root, data, _repairs((), damage, lines_before))
    return _read_damaged(data, content_type)


def _read_damaged(data: bytes, content_type: str | None) -> Tree:
    decoded = decode(data, content_type)
    # The declaration names the encoding of the bytes, which this text no longer has.
    start = max(decoded.text.find("<"), 0)
    text = _XML_DECLARATION.sub(lambda match: "\n" * match[0].count("\n"), decoded.text[start:], count=1)
    plain = text.lstrip()
    lines_before = decoded.text.count("\n", 0, start) + text[: len(text) - len(plain)].count("\n")
    if not has_suspect_numbers(data):
        source = plain.encode("utf-8", "replace")
        root, damage = _parse(source)
        if root is not None:
            return Tree(root, source, _repairs(decoded.repairs, damage, lines_before))
        del source
    del plain
    repaired = repair_references(drop_illegal(text)).lstrip()
    source = repaired.encode("utf-8", "replace")
    root, damage = _parse(source)
    if root is not None:
        repairs = (*decoded.repairs, Repair("characters"))
        return Tree(root, source, _repairs(repairs, damage, lines_before))
    soup, has_items = read_soup(repaired.replace("\r\n", "\n"))
    return Tree(soup, source, _repairs(decoded.repairs, damage, lines_before), has_items)


def _repairs(others: tuple[Repair, ...], damage: Damage | None, lines_before: int) -> tuple[Repair, ...]:
    if damage is None:
        return others
    return (*others, Repair("ill_formed", damage.line + lines_before, damage.reason))
