"""Reads lists of files: the pages that web servers make of a directory, and the XML of buckets (S3 and the like). Pure.

A directory's page names what lies one step below it; links to anywhere else, and those that sort the list, are not
files.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from lxml import etree
from selectolax.lexbor import LexborNode

from headwater.errors import FailureKind, ParseError
from headwater.formats.dates import parse_date
from headwater.formats.limits import refuse_too_many_tags
from headwater.formats.links import join
from headwater.formats.pages.document import read_html
from headwater.formats.xml.names import split_tag

MOST_FILES: Final = 20_000
LONGEST_ROW: Final = 300
_TITLE: Final = re.compile(
    rb"<title>\s*(?:Index of|Directory listing for|Listing of|Directory:)\s", re.IGNORECASE
)
_TITLE_WITHIN: Final = 4_096
_DATE: Final = re.compile(
    r"(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?|\d{1,2}[- ][A-Z][a-z]{2}[- ]\d{4}(?: \d\d:\d\d(?::\d\d)?)?"
    r"|\d{4}-[A-Z][a-z]{2}-\d\d \d\d:\d\d(?::\d\d)?|\d{4}/\d\d/\d\d \d\d:\d\d)"
)
_SIZE: Final = re.compile(
    r"(?<![\w:.-])(\d+(?:\.\d+)?)\s?(?:([KMGT])i?B?|(?:B|bytes))?(?![\w:.-])", re.IGNORECASE
)
_UNITS: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_BUCKETS: Final = frozenset(("ListBucketResult", "EnumerationResults"))
_BUCKET_HEAD: Final = re.compile(rb"<(?:[\w.-]{1,50}:)?(ListBucketResult|EnumerationResults)[\s>]")


@dataclass(frozen=True, slots=True)
class File:
    """A file, or a folder, whose address ends with a slash."""

    url: str
    name: str
    modified: datetime | None = None
    size: int | None = None
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """`next_marker` is what to ask the rest of a bucket with, as a query parameter and its value."""

    files: tuple[File, ...]
    title: str | None = None
    next_marker: tuple[str, str] | None = None


def is_directory(data: bytes) -> bool:
    """Whether a page is surely a list of files."""
    return _TITLE.search(data[:_TITLE_WITHIN]) is not None


def is_bucket(data: bytes) -> bool:
    return _BUCKET_HEAD.search(data[:_TITLE_WITHIN]) is not None


def read_listing(data: bytes, url: str, content_type: str | None = None) -> Listing:
    """The files of a directory's page or of a bucket at `url`. ParseError when it is neither."""
    return _read_bucket(data, url) if is_bucket(data) else _read_directory(data, url, content_type)


def _read_directory(data: bytes, url: str, content_type: str | None) -> Listing:
    document = read_html(data, content_type)
    parts = urlsplit(url)
    folder = urlunsplit((parts.scheme, parts.netloc, parts.path[: parts.path.rfind("/") + 1] or "/", "", ""))
    found: dict[str, File] = {}
    for link in document.css("a[href]"):
        file = _file(link, folder, url)
        if file is not None and len(found) < MOST_FILES:
            kept = found.get(file.url)
            if kept is None or (file.modified and not kept.modified):
                found[file.url] = file
    title = document.css_first("title")
    if not found and not is_directory(data):
        raise ParseError("This is not a list of files: no link on it leads into its own directory.")
    return Listing(tuple(found.values()), title.text(strip=True) if title else None)


def _file(link: LexborNode, folder: str, base: str) -> File | None:
    """The file that a link leads to; None when it leads anywhere but one step down."""
    target = (join(base, link.attributes.get("href")) or "").partition("#")[0]
    path, question, _ = target.partition("?")
    if question or not path.startswith(folder):
        return None
    rest = path[len(folder) :]
    name = unquote(rest.rstrip("/"))
    if not name or "/" in rest.rstrip("/") or name in (".", ".."):
        return None
    told = _beside(link)
    date = _DATE.search(told)
    told = told.replace(date[0], " ") if date else told
    size = _SIZE.search(told)
    is_folder = rest.endswith("/")
    return File(
        path,
        name,
        parse_date(date[0]) if date else None,
        int(float(size[1]) * _UNITS[(size[2] or "").upper()]) if size and not is_folder else None,
        is_folder,
    )


def _beside(link: LexborNode) -> str:
    """The text of a link's row, behind the link: of a table's row, or up to the next link in a plain list."""
    row = link.parent
    for _ in range(3):
        if row is None or row.tag in ("tr", "li"):
            break
        row = row.parent
    if row is not None and row.tag in ("tr", "li"):
        told = row.text(separator=" ")
        own = link.text()
        return told[told.find(own) + len(own) :][:LONGEST_ROW] if own else told[:LONGEST_ROW]
    parts: list[str] = []
    each = link.next
    while (
        each is not None and each.tag not in ("a", "img", "br", "hr") and sum(map(len, parts)) < LONGEST_ROW
    ):
        parts.append(each.text(deep=True) or "")
        each = each.next
    return " ".join(parts)


def _read_bucket(data: bytes, url: str) -> Listing:
    refuse_too_many_tags(data)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.LxmlError as error:
        raise ParseError(
            "The document cannot be read: {reason}.", kind=FailureKind.MALFORMED, reason=type(error).__name__
        ) from None
    if split_tag(root.tag)[1] not in _BUCKETS:
        raise ParseError(
            "This is not a list of files: its root element is <{name}>.", name=str(root.tag)[:60]
        )
    parts = urlsplit(url)
    base = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + "/", "", ""))
    files: list[File] = []
    about: dict[str, str] = {}
    for child in root:
        name = split_tag(child.tag)[1]
        if name == "Contents":
            files += _object(_fields(child), base, "Key", "LastModified", "Size")
        elif name == "Blobs":
            for blob in child:
                said = _fields(blob)
                files += _object(said, base, "Name", "Last-Modified", "Content-Length")
        elif len(child) == 0:
            about[name] = (child.text or "").strip()
    title = about.get("Name") or root.get("ContainerName") or parts.hostname
    return Listing(tuple(files[:MOST_FILES]), title, _next_marker(root, about, files, base))


def _fields(element: etree._Element) -> dict[str, str]:
    """The texts of all that is inside of an element, by name."""
    return {
        split_tag(each.tag)[1]: (each.text or "").strip()
        for each in element.iter(etree.Element)
        if len(each) == 0
    }


def _object(said: dict[str, str], base: str, name: str, date: str, size: str) -> list[File]:
    key = said.get(name, "")
    if not key or key.endswith("/"):
        return []
    length = said.get(size, "")
    return [
        File(
            said.get("Url") or base + quote(key),
            key,
            parse_date(said.get(date)),
            int(length) if length.isdigit() else None,
        )
    ]


def _next_marker(
    root: etree._Element, about: dict[str, str], files: list[File], base: str
) -> tuple[str, str] | None:
    if split_tag(root.tag)[1] == "EnumerationResults":
        return ("marker", about["NextMarker"]) if about.get("NextMarker") else None
    if about.get("IsTruncated", "").lower() != "true":
        return None
    if about.get("NextContinuationToken"):
        return "continuation-token", about["NextContinuationToken"]
    marker = about.get("NextMarker") or (files[-1].name if files else "")
    return ("marker", marker) if marker else None
