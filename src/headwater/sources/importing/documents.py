"""Files for interchange: FreshRSS's zip and JSON, Miniflux's API answers, tt-rss's XML, and tables as CSV."""

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson
from lxml import etree

from headwater.errors import ParseError
from headwater.formats.opml import Opml, Rejected, read_opml
from headwater.sources.importing.export import Collected, Export, Marked, Program

# What a file may hold when it is unpacked: so many times its own size, but always the first and never the second.
MOST_TIMES = 30
LEAST_BYTES, MOST_BYTES = 20_000_000, 1_000_000_000
LONGEST_TAG, MOST_TAGS = 200, 100  # of one entry
LAST_TIME = 32_503_680_000.0  # the year 3000
MOST_FIELDS = 100  # of one article
MOST_VALUES = 5_000_000  # of one JSON document, and cells of one table
_STRING = re.compile(
    rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL
)  # one that is cut off too, so that time is linear
_READ = "user/-/state/com.google/read"
_TRUE = {"1", "t", "true", "yes", "y", "read", "removed"}
_FOLDER_NAMES = ("folder", "category")
_LINK_NAMES = ("link", "url")
_ADDRESS_NAMES = ("feed_url", "xmlurl", "feed", "url", "address", "link")
_TITLE_NAMES = ("feed_title", "title", "name")
_PAUSED_NAMES = ("disabled", "paused")
_STAR_NAMES = ("starred", "marked", "is_favorite")
_SEPARATORS = (",", ";", "\t")
_STARRED = "user/-/state/com.google/starred"
_LABEL = "user/-/label/"


def most_unpacked(size: int) -> int:
    """How many bytes may come out of a compressed file of this size. What is more is made to fill the memory."""
    return max(LEAST_BYTES, min(size * MOST_TIMES, MOST_BYTES))


def read_zip(data: bytes) -> Export:
    """FreshRSS's export: an OPML file, and JSON files of articles beside it."""
    found = Collected()
    rejected: tuple[Rejected, ...] = ()
    known = False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            most = most_unpacked(len(data))
            if sum(member.file_size for member in members) > most:
                raise ParseError("This zip file holds more than {size} bytes.", size=most)
            # The list of feeds first: it knows their folders.
            for member in sorted(members, key=lambda member: ".opml" not in member.filename):
                if member.filename.endswith((".opml", ".opml.xml")):
                    opml = read_opml(archive.read(member))
                    _subscribe(found, opml)
                    rejected += opml.rejected
                elif member.filename.endswith(".json"):
                    _take_freshrss(found, _load(archive.read(member)))
                else:
                    continue
                known = True
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ):
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
        for document in _documents(data.removeprefix(b"\xef\xbb\xbf")):
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


def _load(data: bytes) -> Any:
    """A JSON document of a size that is read; ValueError when it is none, or too deep."""
    refuse_too_many_values(data)
    return orjson.loads(data)


def refuse_too_many_values(data: bytes) -> None:
    """ParseError when a JSON document holds so many values that they would fill the memory."""
    if sum(map(data.count, (b",", b"[", b"{"))) <= MOST_VALUES:
        return
    if sum(map(_STRING.sub(b"", data).count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ParseError("The document has more than {limit} values.", limit=MOST_VALUES)


def _documents(data: bytes) -> Iterator[Any]:
    refuse_too_many_values(data)
    with suppress(ValueError):
        yield orjson.loads(data)
        return
    text, place = data.decode(), 0
    decoder = json.JSONDecoder()
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
        links = item.get("canonical") or item.get("alternate") or [{}]
        link, labels = links[0].get("href"), [str(each) for each in item.get("categories", ())]
        if _READ in labels:
            found.add(url, item.get("guid"), link)
        body = item.get("content") or item.get("summary") or {}
        found.mark(
            url,
            Marked(
                _text(item.get("guid")),
                _text(link),
                _text(item.get("title")) or "",
                _text(item.get("author")),
                _text(body.get("content") if isinstance(body, dict) else body),
                _seconds(item.get("published")),
                _STARRED in labels,
                _READ in labels,
                _tags(each.removeprefix(_LABEL) for each in labels if each.startswith(_LABEL)),
            ),
        )


def _take_miniflux(found: Collected, document: Any) -> None:
    """The answers of its API: `/v1/feeds`, and `/v1/entries` of any status."""
    if isinstance(document, dict):
        document = document["entries"]
    for each in document:
        entry = each if "feed" in each else None
        feed = each["feed"] if entry else each
        category = (feed.get("category") or {}).get("title")
        folder = category if category != "All" else None
        found.subscribe(
            feed["feed_url"], feed.get("title") or "", folder, paused=feed.get("disabled") is True
        )
        if entry:
            found.mark(
                feed["feed_url"],
                Marked(
                    None,
                    _text(entry.get("url")),
                    _text(entry.get("title")) or "",
                    _text(entry.get("author")),
                    _text(entry.get("content")),
                    _seconds(entry.get("published_at")),
                    entry.get("starred") is True,
                    entry["status"] in ("read", "removed"),
                    _tags(entry.get("tags") or ()),
                ),
            )
        if entry and entry["status"] in ("read", "removed"):
            found.add(feed["feed_url"], None, entry.get("url"))


def read_ttrss(data: bytes) -> Export:
    """Its export of starred and archived articles. It has hashed their ids; their addresses are left."""
    articles = _Articles()
    parser = etree.XMLParser(
        target=articles, recover=True, huge_tree=True, resolve_entities=False, no_network=True
    )
    try:
        etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        raise ParseError("This XML is not what tt-rss exports.") from None
    return articles.found.export("tt-rss")


class _Articles:
    """Takes tt-rss's articles as the parser meets them. Such files can be large: no tree is made of them."""

    def __init__(self) -> None:
        self.found = Collected()
        self._depth = 0
        self._article = 0  # the depth of the one that is open
        self._values: dict[str, str] = {}
        self._texts: list[str] | None = None

    def start(self, tag: str | bytes, attributes: object) -> None:
        self._depth += 1
        if tag == "article" and not self._article:
            self._article, self._values = self._depth, {}
        elif self._article and self._depth == self._article + 1:
            self._texts = []

    def data(self, data: str | bytes) -> None:
        if self._texts is not None:
            self._texts.append(str(data))

    def comment(self, text: str | bytes) -> None:
        pass

    def end(self, tag: str | bytes) -> None:
        if self._texts is not None and self._depth == self._article + 1:
            if len(self._values) < MOST_FIELDS:
                self._values[str(tag)] = "".join(self._texts).strip()
            self._texts = None
        elif self._article and self._depth == self._article:
            self._article = 0
            _take_article(self.found, self._values)
        self._depth -= 1

    def close(self) -> None:
        pass


def _take_article(found: Collected, values: Mapping[str, str]) -> None:
    if not (url := values.get("feed_url")):
        return
    found.subscribe(url, values.get("feed_title", ""))
    if values.get("unread", "0") not in ("1", "t", "true"):
        found.add(url, None, values.get("link"))
    is_starred = values.get("marked", "0") in ("1", "t", "true")
    tags = _tags(values.get("tag_cache", "").split(","))
    if values.get("label_cache", "[]") not in ("", "[]") and not tags:
        found.tags += 1  # of which it keeps no names that could be read
    found.mark(
        url,
        Marked(
            None,
            _text(values.get("link")),
            values.get("title", ""),
            None,
            values.get("content"),
            _seconds(values.get("updated")),
            is_starred,
            values.get("unread", "0") not in ("1", "t", "true"),
            tags,
        ),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _tags(names: Iterable[Any]) -> tuple[str, ...]:
    """The names that can be tags, each once."""
    known = (" ".join(name.split()) for name in names if isinstance(name, str))
    return tuple(dict.fromkeys(name for name in known if 0 < len(name) <= LONGEST_TAG))[:MOST_TAGS]


def _seconds(value: Any) -> float | None:
    """A time as seconds since 1970, which it is already, or ISO 8601."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 < value < LAST_TIME else None
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def read_table(data: bytes) -> Export:
    """A table with a row a feed (or an entry), as spreadsheets and databases write one; or a list of addresses.

    The names of the columns say what they are: feed_url, or url where there is none; feed_title, title or name;
    category or folder; guid; link or url; read, unread or status; disabled or paused. Columns are separated by commas,
    semicolons or tabs. A table without names has addresses in its first column.
    """
    csv.field_size_limit(1 << 30)
    found = Collected()
    if sum(map(data.count, (b"\n", b"\r", b",", b";", b"\t"))) > MOST_VALUES:
        raise ParseError("The table has more than {limit} cells.", limit=MOST_VALUES)
    try:
        lines = data.decode("utf-8-sig").splitlines()
        first = next((line for line in lines if line.strip()), "")
        rows = list(csv.reader(lines, delimiter=max(_SEPARATORS, key=first.count)))
    except (UnicodeDecodeError, csv.Error):
        raise ParseError("This is not a file that Headwater can import.") from None
    rows = [row for row in rows if any(map(str.strip, row)) and not row[0].lstrip().startswith("#")]
    names = [name.strip().lower() for name in rows[0]] if rows else []
    address = next((name for name in _ADDRESS_NAMES if name in names), None)
    if address is not None:
        for row in rows[1:]:
            _take_row(found, dict(zip(names, row, strict=False)), address)
    elif rows and is_address(rows[0][0]):
        for row in rows:
            found.subscribe(row[0].strip(), row[1].strip() if len(row) > 1 else "")
    else:
        raise ParseError(
            "This is not a file that Headwater can import: neither a list of addresses, one a line, nor a table with a"
            " column feed_url or url."
        )
    return found.export("csv")


def is_address(text: str) -> bool:
    """Whether a text can mean an address of the web: it says so, or begins with a host that has a dot or a port."""
    return (
        re.match(r"\s*((https?|feed):|[^\s/:]+(\.[^\s/:.]+|:\d+)([/?#:]|\s*\Z))", text, re.IGNORECASE)
        is not None
    )


def _take_row(found: Collected, row: Mapping[str, str], address: str) -> None:
    if not (url := row.get(address, "").strip()):
        return
    title, folder = _first(row, _TITLE_NAMES), _first(row, _FOLDER_NAMES)
    is_paused = any(row.get(name, "").strip().lower() in _TRUE for name in _PAUSED_NAMES)
    found.subscribe(url, title or "", folder, paused=is_paused)
    if _was_read(row):
        found.add(url, row.get("guid"), _first(row, tuple(name for name in _LINK_NAMES if name != address)))
    found.stars += any(row.get(name, "").strip().lower() in _TRUE for name in _STAR_NAMES)
    found.tags += bool(row.get("tags", "").strip())


def _first(row: Mapping[str, str | None], names: tuple[str, ...]) -> str | None:
    return next((row[name] for name in names if row.get(name)), None)


def _was_read(row: Mapping[str, str | None]) -> bool:
    if row.get("unread"):
        return (row["unread"] or "").lower() not in _TRUE
    return (row.get("read") or row.get("status") or "").lower() in _TRUE
