"""Reads and writes OPML subscription lists: folders and titles kept, every bad entry reported with its
reason.

It knows nothing of sources or the database; an outline is an address with a title in a folder.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from io import BytesIO
from itertools import groupby
from typing import Final

from lxml import etree

from headwater.errors import ParseError
from headwater.formats.html import collapse
from headwater.formats.xml.entities import drop_illegal
from headwater.formats.xml.names import split_tag
from headwater.formats.xml.tree import read_tree
from headwater.model import FOLDER_SEPARATOR

MAX_OUTLINES: Final = 200_000
MOST_ATTRIBUTES: Final = 5 * MAX_OUTLINES  # type, text, title and two addresses, as most readers write them
PIECE_BYTES: Final = 65_536  # written before a piece is handed out

REASON_NO_ADDRESS: Final = "It has no feed address."
REASON_BAD_ADDRESS: Final = "Its address is not an http or https one."
REASON_DUPLICATE: Final = "The same address is in the list more than once."

_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]+", re.IGNORECASE)
_FEED_SCHEME = re.compile(r"feed:(?://)?(?=https?://)|feed://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outline:
    """One subscription."""

    url: str
    title: str = ""
    folder: str | None = None  # names of nested folders, joined by FOLDER_SEPARATOR
    site_url: str | None = None
    description: str | None = None
    type: str | None = None  # a source type of ours, such as `web.sitemap`; None for an ordinary feed
    paused: bool = False  # paused in the reader it comes from


@dataclass(frozen=True, slots=True)
class Rejected:
    """An entry that cannot be imported. `reason` is a text for people, to be translated."""

    title: str
    url: str
    reason: str
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Opml:
    title: str = ""
    outlines: tuple[Outline, ...] = ()
    rejected: tuple[Rejected, ...] = ()


def read_opml(data: bytes) -> Opml:
    """The subscriptions in `data`. Damaged documents are read as far as possible; ParseError when it is no
    OPML."""
    root = read_tree(data, most_attributes=MOST_ATTRIBUTES).root
    body, title = _find_body(root)
    outlines: dict[tuple[str, str | None], Outline] = {}
    rejected: list[Rejected] = []
    # A stack instead of recursion: folders may nest as deep as the parser lets them.
    stack: list[tuple[etree._Element, tuple[str, ...]]] = [(child, ()) for child in reversed(_outlines(body))]
    seen = 0
    while stack and seen < MAX_OUTLINES:
        seen += 1
        element, folders = stack.pop()
        attributes = {split_tag(str(key))[1].lower(): str(value) for key, value in element.attrib.items()}
        name = collapse(attributes.get("title") or attributes.get("text") or "")
        url = _clean_url(attributes.get("xmlurl") or attributes.get("url") or "")
        children = _outlines(element)
        folder = FOLDER_SEPARATOR.join(folders) or None
        if url:
            _take(url, name, folder, attributes, outlines, rejected)
        elif not children:
            rejected.append(Rejected(name, "", REASON_NO_ADDRESS, folder))
        inner = folders if url or not name else (*folders, name.replace(FOLDER_SEPARATOR, "/"))
        stack.extend((child, inner) for child in reversed(children))
    return Opml(title=title, outlines=tuple(outlines.values()), rejected=tuple(rejected))


def _find_body(root: etree._Element) -> tuple[etree._Element, str]:
    for element in (root, *root):
        if _local(element) != "opml":
            continue
        title, body = "", None
        for child in element:
            if _local(child) == "head":
                title = next((collapse(e.text or "") for e in child if _local(e) == "title"), "")
            elif _local(child) == "body" and body is None:
                body = child
        return body if body is not None else element, title
    if _local(root) == "soup":
        raise ParseError("This is not an OPML file.")
    raise ParseError("This is not an OPML file: its root element is <{name}>.", name=_local(root)[:60])


def _local(element: etree._Element) -> str:
    return split_tag(element.tag)[1].lower() if isinstance(element.tag, str) else ""


def _outlines(element: etree._Element) -> list[etree._Element]:
    return [child for child in element if _local(child) == "outline"]


def _clean_url(url: str) -> str:
    url = url.strip()
    if match := _FEED_SCHEME.match(url):
        rest = url[match.end() :]
        url = rest if rest.lower().startswith("http") else "http://" + rest
    return url


def _take(
    url: str,
    name: str,
    folder: str | None,
    attributes: dict[str, str],
    outlines: dict[tuple[str, str | None], Outline],
    rejected: list[Rejected],
) -> None:
    if not _WEB_ADDRESS.match(url):
        rejected.append(Rejected(name, url, REASON_BAD_ADDRESS, folder))
        return
    # Files of some readers have the folder as a category instead.
    folder = folder or collapse(attributes.get("category", "").split(",")[0].strip().strip("/")) or None
    kind = attributes.get("headwatertype", "").strip() or None
    if (url, kind) in outlines:  # one address may be collected as two types
        rejected.append(Rejected(name, url, REASON_DUPLICATE, folder))
        return
    outlines[url, kind] = Outline(
        url=url,
        title=name,
        folder=folder,
        site_url=attributes.get("htmlurl", "").strip() or None,
        description=collapse(attributes.get("description", "")) or None,
        type=kind,
    )


def write_opml(
    outlines: Iterable[Outline], *, title: str = "", created: datetime | None = None
) -> Iterator[bytes]:
    """An OPML 2.0 document in pieces. Outlines that follow each other in one folder share its element."""
    written = BytesIO()
    with etree.xmlfile(written, encoding="utf-8") as file:
        file.write_declaration()
        with file.element("opml", {"version": "2.0"}):
            with file.element("head"):
                file.write(_text_element("title", drop_illegal(title)))
                if created is not None:
                    file.write(_text_element("dateCreated", format_datetime(created)))
            with file.element("body"):
                for folder, group in groupby(outlines, key=lambda outline: outline.folder):
                    with ExitStack() as folders:
                        for name in drop_illegal(folder).split(FOLDER_SEPARATOR) if folder else ():
                            folders.enter_context(file.element("outline", {"text": name, "title": name}))
                        for outline in group:
                            file.write(_outline_element(outline), "\n")
                            if written.tell() > PIECE_BYTES:
                                file.flush()
                                yield _take_bytes(written)
    yield _take_bytes(written)


def _take_bytes(written: BytesIO) -> bytes:
    data = written.getvalue()
    written.seek(0)
    written.truncate()
    return data


def _text_element(name: str, text: str) -> etree._Element:
    element = etree.Element(name)
    element.text = text
    return element


def _outline_element(outline: Outline) -> etree._Element:
    name = drop_illegal(outline.title) or outline.url
    attributes = {
        "type": "rss",
        "text": name,
        "title": name,
        "xmlUrl": outline.url,
        "htmlUrl": outline.site_url,
        "description": outline.description,
        "headwaterType": outline.type,
    }
    return etree.Element("outline", {key: drop_illegal(value) for key, value in attributes.items() if value})
