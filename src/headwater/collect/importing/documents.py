"""Files for interchange: FreshRSS's zip and JSON, Miniflux's API answers, tt-rss's XML, and tables as CSV."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree

from headwater.collect.importing.export import Collected, Export, Program
from headwater.errors import ParseError
from headwater.formats.opml import Opml, Rejected, read_opml

MAX_BYTES = 4 << 30  # of all that is in a zip, after decompression
_READ = "user/-/state/com.google/read"
_TRUE = {"1", "t", "true", "yes", "y", "read", "removed"}
_FOLDER_NAMES = ("folder", "category")
_LINK_NAMES = ("link", "url")


def read_zip(data: bytes) -> Export:
    """FreshRSS's export: an OPML file, and JSON files of articles beside it."""
    found = Collected()
    rejected: tuple[Rejected, ...] = ()
    known = False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MAX_BYTES:
                raise ParseError("This zip file holds more than {size} bytes.", size=MAX_BYTES)
            # The list of feeds first: it knows their folders.
            for member in sorted(members, key=lambda member: ".opml" not in member.filename):
                if member.filename.endswith((".opml", ".opml.xml")):
                    opml = read_opml(archive.read(member))
                    _subscribe(found, opml)
                    rejected += opml.rejected
                elif member.filename.endswith(".json"):
                    _take_freshrss(found, json.loads(archive.read(member)))
                else:
                    continue
                known = True
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, KeyError, TypeError):
        raise ParseError("This zip file is damaged, or not FreshRSS's export.") from None
    if not known:
        raise ParseError("This zip file is damaged, or not FreshRSS's export.")
    return found.export("freshrss", rejected)


def read_opml_list(data: bytes) -> Export:
    opml = read_opml(data)
    return Export("opml", opml.outlines, opml.rejected)


def _subscribe(found: Collected, opml: Opml) -> None:
    for outline in opml.outlines:
        found.subscribe(outline.url, outline.title, outline.folder)


def read_json(data: bytes) -> Export:
    """One JSON document or several after each other, as they come from an API page by page."""
    found = Collected()
    program: Program | None = None
    try:
        for document in _documents(data.decode("utf-8-sig")):
            if isinstance(document, dict) and isinstance(document.get("items"), list):
                _take_freshrss(found, document)
                program = "freshrss"
            else:
                _take_miniflux(found, document)
                program = program or "miniflux"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        program = None
    if program is None:
        raise ParseError("This JSON is neither FreshRSS's nor Miniflux's.")
    return found.export(program)


def _documents(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        document, place = decoder.raw_decode(text, place)
        yield document


def _take_freshrss(found: Collected, document: Mapping[str, Any]) -> None:
    for item in document["items"]:
        origin = item["origin"]
        url = origin.get("feedUrl")
        if not url:
            continue
        found.subscribe(url, origin.get("title") or "")
        if _READ in item.get("categories", ()):
            links = item.get("canonical") or item.get("alternate") or [{}]
            found.add(url, item.get("guid"), links[0].get("href"))


def _take_miniflux(found: Collected, document: Any) -> None:
    """The answers of its API: `/v1/feeds`, and `/v1/entries` of any status."""
    if isinstance(document, dict):
        document = document["entries"]
    for each in document:
        entry = each if "feed" in each else None
        feed = each["feed"] if entry else each
        category = (feed.get("category") or {}).get("title")
        found.subscribe(feed["feed_url"], feed.get("title") or "", category if category != "All" else None)
        if entry and entry["status"] in ("read", "removed"):
            found.add(feed["feed_url"], None, entry.get("url"))


def read_ttrss(data: bytes) -> Export:
    """Its export of starred and archived articles. It has hashed their ids; their addresses are left."""
    found = Collected()
    articles = etree.iterparse(  # such files can be large: one article at a time
        io.BytesIO(data), tag="article", recover=True, huge_tree=True, resolve_entities=False, no_network=True
    )
    try:
        for _, article in articles:
            values = {str(child.tag): (child.text or "").strip() for child in article}
            article.clear()
            if url := values.get("feed_url"):
                found.subscribe(url, values.get("feed_title", ""))
                if values.get("unread", "0") not in ("1", "t", "true"):
                    found.add(url, None, values.get("link"))
    except etree.XMLSyntaxError:
        raise ParseError("This XML is not what tt-rss exports.") from None
    return found.export("tt-rss")


def read_csv(data: bytes) -> Export:
    """A table with a row an entry (or a feed), as any database writes one; the names of its columns say what they are.

    feed_url; feed_title; category or folder; guid; link or url; read, unread or status.
    """
    csv.field_size_limit(1 << 30)
    found = Collected()
    try:
        rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        names = [name.strip().lower() for name in rows.fieldnames or ()]
        if "feed_url" not in names:
            raise ParseError("This is not a file that Headwater can import.")
        rows.fieldnames = names
        for row in rows:
            if url := (row["feed_url"] or "").strip():
                found.subscribe(url, row.get("feed_title") or "", _first(row, _FOLDER_NAMES))
                if _was_read(row):
                    found.add(url, row.get("guid"), _first(row, _LINK_NAMES))
    except (UnicodeDecodeError, csv.Error):
        raise ParseError("This is not a file that Headwater can import.") from None
    return found.export("csv")


def _first(row: Mapping[str, str | None], names: tuple[str, ...]) -> str | None:
    return next((row[name] for name in names if row.get(name)), None)


def _was_read(row: Mapping[str, str | None]) -> bool:
    if row.get("unread"):
        return (row["unread"] or "").lower() not in _TRUE
    return (row.get("read") or row.get("status") or "").lower() in _TRUE
