"""Reads sitemaps piece by piece: urlset, sitemapindex, plain text, RSS or Atom used as one, gzipped or not.

A pull parser, so that 50,000 addresses cost little memory; capped in bytes, addresses and depth. Damaged
documents are read up to the damage. It follows nothing: an index gives the addresses of its sitemaps.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from mimetypes import guess_type
from typing import Final, Literal
from urllib.parse import urlsplit

from lxml import etree

from headwater.errors import FailureKind, ParseError
from headwater.formats.charset import decode
from headwater.formats.dates import parse_date
from headwater.formats.limits import inflate
from headwater.formats.links import join
from headwater.formats.xml.entities import drop_illegal, repair_references
from headwater.formats.xml.names import split_tag
from headwater.model import Enclosure

Kind = Literal["urlset", "sitemapindex", "text", "rss", "atom"]

MAX_BYTES: Final = 52_428_800  # the protocol's own limit, uncompressed
MAX_URLS: Final = 50_000  # likewise
HEAD_BYTES: Final = 65_536  # before the root element, at most
_CHUNK: Final = 65_536
_KINDS: Final[dict[str, Kind]] = {
    "urlset": "urlset",
    "sitemapindex": "sitemapindex",
    "rss": "rss",
    "rdf": "rss",
    "channel": "rss",
    "feed": "atom",
}
_RECORDS: Final = tuple(
    f"{{*}}{spelling}"
    for name in ("url", "sitemap", "item", "entry")
    for spelling in (name, name.title(), name.upper())
)
# The extensions whose words are about the page, and those words.
_EXTENSIONS: Final[dict[str, frozenset[str]]] = {
    "news": frozenset(("title", "publication_date", "keywords", "genres", "language")),
    "image": frozenset(("loc",)),
    "video": frozenset(
        (
            "title",
            "description",
            "thumbnail_loc",
            "publication_date",
            "content_loc",
            "duration",
            "tag",
            "category",
        )
    ),
}
_SEVERAL: Final = frozenset(("keywords", "genres", "tag", "category"))  # words that are taken together
MOST_WORDS: Final = 50
LONGEST_VIDEO_SECONDS: Final = 28_800  # by the extension's own rules
_NAME: Final = rb"(?:[^\s<>/:!?]+:)?([^\s<>/:!?]+)"
# Atomic and possessive: what stands before the root is read in one way or not at all. Otherwise thirty comments
# before nothing would be tried in every combination.
_SUBSET: Final = rb"""\[(?:(?:[^\]"']++|"[^"]*+"|'[^']*+')*+\]|.*?\])"""  # of a DOCTYPE
_FIRST_TAG = re.compile(
    rb"(?>\s++|<\?[^>]*+>|<!--.*?-->|<!DOCTYPE[^\[>]*+(?:" + _SUBSET + rb"\s*+)?>)*+<" + _NAME,
    re.DOTALL | re.IGNORECASE,
)
_LAST_TAG = re.compile(rb"</" + _NAME + rb"\s*>\s*\Z")
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_GZIP_MAGIC: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class SitemapUrl:
    """One address. `lastmod` is the text as written, `modified` what it means, if anything.

    The rest is what the news, image and video extensions, or a feed used as a sitemap, say of the page.
    """

    loc: str
    lastmod: str | None = None
    modified: datetime | None = None
    title: str | None = None
    published: datetime | None = None
    description: str | None = None
    image: str | None = None
    language: str | None = None
    categories: tuple[str, ...] = ()
    video: Enclosure | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    kind: Kind
    urls: tuple[SitemapUrl, ...] = ()
    truncated: bool = False  # a cap was reached, or the document is damaged: there may be more
    cut_off: bool = False  # it ends before its end: only a part of it was delivered

    @property
    def is_index(self) -> bool:
        return self.kind == "sitemapindex"


def read_sitemap(data: bytes, *, url: str | None = None, content_type: str | None = None) -> Sitemap:
    """The sitemap in `data`. Raises ParseError when it is none."""
    scan = SitemapScan(data, url=url, content_type=content_type)
    urls = tuple(scan)
    return Sitemap(scan.kind, urls, truncated=scan.truncated, cut_off=scan.cut_off)


class SitemapScan:
    """A sitemap being read: iterate over it for its addresses, which are kept nowhere.

    `truncated` and `cut_off` are known at the end. Raises ParseError when the document is not a sitemap.
    """

    def __init__(self, data: bytes, *, url: str | None = None, content_type: str | None = None) -> None:
        self.cut_off = False
        self.truncated = False
        self._base = url
        data = self._within_caps(data)
        text = decode(data, content_type).text if not _is_plain_utf8(data) else None
        start = (text or data[:4096].decode("utf-8", "replace")).lstrip("\ufeff \t\r\n\x00")
        if not start:
            raise ParseError("The document is empty.", kind=FailureKind.MALFORMED)
        self.kind: Kind = "text"
        self._text = ""
        self._document = b""
        if not start.startswith("<"):
            self._text = text if text is not None else data.decode("utf-8", "replace")
            return
        self._document = data if text is None else text.encode("utf-8", "replace")
        root = _root_name(self._document)
        if root not in _KINDS:
            raise ParseError("This is not a sitemap: its root element is <{name}>.", name=root[:60])
        self.kind = _KINDS[root]

    def _within_caps(self, data: bytes) -> bytes:
        if data.startswith(_GZIP_MAGIC):
            data, self.truncated = inflate(data, MAX_BYTES)
            self.cut_off = self.truncated and len(data) < MAX_BYTES
        if len(data) > MAX_BYTES:
            data, self.truncated = data[:MAX_BYTES], True
        return data

    def __iter__(self) -> Iterator[SitemapUrl]:
        if self.kind == "text":
            yield from self._read_lines()
            return
        reader = _Reader(self._base)
        count = 0
        for record in reader.read(self._document):
            count += 1
            yield record
        if reader.damaged and b"&" in self._document:
            # Bare ampersands in addresses are the most frequent damage; repaired, the document is often whole.
            repaired = repair_references(drop_illegal(self._document.decode("utf-8", "replace")))
            second = _Reader(self._base)
            found = 0
            for record in second.read(repaired.encode("utf-8", "replace")):
                found += 1
                if found > count:
                    yield record
            if found >= count:
                reader = second
        if reader.damaged and not self.truncated:
            self.cut_off = self.cut_off or not _is_closed(self._document)
        self.truncated = self.truncated or reader.damaged or reader.full

    def _read_lines(self) -> Iterator[SitemapUrl]:
        urls: dict[str, None] = {}
        other = 0
        for line in _lines(self._text):
            if not _ADDRESS.fullmatch(line):
                other += 1
            elif len(urls) >= MAX_URLS:
                self.truncated = True
                break
            else:
                urls[line] = None
        if not urls or other > len(urls):
            raise ParseError("This is neither an XML sitemap nor a list of addresses.")
        yield from map(SitemapUrl, urls)


def unzip(data: bytes) -> bytes:
    """What a gzipped document holds; anything else, and what is damaged or too large, as it is."""
    if not data.startswith(_GZIP_MAGIC):
        return data
    whole, cut = inflate(data, MAX_BYTES)
    return data if cut else whole


def _is_plain_utf8(data: bytes) -> bool:
    head = data[:256]
    return b"\x00" not in head and (b"encoding" not in head or b"utf-8" in head.lower())


def _is_closed(document: bytes) -> bool:
    """Whether the last thing in a document is the end of its root element."""
    match = _LAST_TAG.search(document[-1000:])
    return match is not None and match[1].decode("ascii", "replace").lower() == _root_name(document)


def _root_name(document: bytes) -> str:
    """The local name of the root element, in lower case; "" where there is none."""
    match = _FIRST_TAG.match(document[max(document.find(b"<"), 0) :][:HEAD_BYTES])
    return match[1].decode("utf-8", "replace").lower() if match else ""


def _lines(text: str) -> Iterator[str]:
    for line in text.lstrip("\ufeff").splitlines():
        if line := line.strip():
            yield line


class _Reader:
    """Feeds the parser in pieces and keeps nothing of the tree but the record at hand."""

    def __init__(self, base: str | None) -> None:
        self._base = base
        self.damaged = False
        self.full = False
        self._count = 0

    def read(self, document: bytes) -> Iterator[SitemapUrl]:
        parser = etree.XMLPullParser(
            events=("end",),
            tag=_RECORDS,
            encoding="utf-8",
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,  # which also caps the depth
            recover=False,
            remove_comments=True,
            remove_pis=True,
            collect_ids=False,
        )
        start = max(document.find(b"<"), 0)
        for position in range(start, len(document), _CHUNK):
            try:
                parser.feed(document[position : position + _CHUNK])
            except etree.XMLSyntaxError:
                self.damaged = True
            yield from self._take(parser)
            if self.damaged or self.full:
                return
        try:
            parser.close()
        except etree.XMLSyntaxError:
            self.damaged = True
        yield from self._take(parser)

    def _take(self, parser: etree.XMLPullParser) -> Iterator[SitemapUrl]:
        try:
            for _, element in parser.read_events():
                if not isinstance(element, etree._Element):
                    continue
                record = self._record(element)
                element.clear()
                while element.getprevious() is not None and (parent := element.getparent()) is not None:
                    del parent[0]
                if record is None:
                    continue
                if self._count >= MAX_URLS:
                    self.full = True
                    return
                self._count += 1
                yield record
        except etree.XMLSyntaxError:
            self.damaged = True

    def _record(self, element: etree._Element) -> SitemapUrl | None:
        loc = guid = lastmod = title = None
        extension: dict[str, str] = {}
        for child in element:
            foreign, name = _name(child.tag)
            text = _text(child)
            if foreign:
                if foreign in _EXTENSIONS and name in _EXTENSIONS:
                    _read_extension(child, name, extension)
            elif name in ("loc", "link"):
                if loc is None:
                    rel = (child.get("rel") or "alternate").lower()
                    loc = text or (child.get("href") if rel == "alternate" else None)
            elif name in ("lastmod", "pubdate", "updated", "date") or (
                name == "published" and lastmod is None
            ):
                lastmod = text or lastmod
            elif name == "guid" and _ADDRESS.fullmatch(text):
                guid = text
            elif name == "title":
                title = " ".join(text.split()) or None
        if loc is None and element.text and _ADDRESS.fullmatch(element.text.strip()):
            loc = element.text.strip()  # some forget the <loc>
        loc = join(self._base, loc or guid)
        if not loc:
            return None
        if not extension:
            return SitemapUrl(loc, lastmod, parse_date(lastmod), title)
        return SitemapUrl(
            loc,
            lastmod,
            parse_date(lastmod),
            title or extension.get("title"),
            parse_date(extension.get("publication_date")),
            extension.get("description"),
            join(self._base, extension.get("loc") or extension.get("thumbnail_loc")),
            extension.get("language"),
            _words(extension),
            _video(join(self._base, extension.get("content_loc")), extension.get("duration")),
        )


def _text(element: etree._Element) -> str:
    if not len(element):
        return (element.text or "").strip()
    # Elements only: an entity, which may be an external one, is left out unread.
    return "".join(map(str, element.itertext(etree.Element))).strip()


def _read_extension(element: etree._Element, kind: str, found: dict[str, str]) -> None:
    """Take what a news, image or video element says of the page; the first of each word counts."""
    for child in element:
        _, name = _name(child.tag)
        if kind == "news" and name == "publication":
            _read_extension(child, kind, found)  # its name is the site's, its language the page's
        elif name in _EXTENSIONS[kind] and (text := " ".join(_text(child).split())):
            if name in _SEVERAL and name in found:
                found[name] += f",{text}"
            else:
                found.setdefault(name, text)


def _words(extension: dict[str, str]) -> tuple[str, ...]:
    """What a page is about: keywords, genres, tags and categories, each once."""
    said = ",".join(
        extension[name] for name in ("keywords", "tag", "category", "genres") if name in extension
    )
    return tuple(dict.fromkeys(word for each in said.split(",") if (word := each.strip())))[:MOST_WORDS]


def _video(url: str | None, duration: str | None) -> Enclosure | None:
    if not url or not _ADDRESS.fullmatch(url):
        return None
    seconds = int(duration) if duration and duration.isdecimal() and len(duration) < 6 else 0
    length = float(seconds) if 0 < seconds <= LONGEST_VIDEO_SECONDS else None
    return Enclosure(url, guess_type(urlsplit(url).path)[0] or "video/mp4", duration_seconds=length)


@lru_cache(maxsize=256)
def _name(tag: str) -> tuple[str, str]:
    """The extension a tag belongs to ("" for the page's own words) and its local name, in lower case."""
    namespace, name = split_tag(tag)
    for part in ("image", "video", "news", "xhtml", "mobile", "media", "yahoo"):
        if part in namespace:
            return part, name.lower()
    return "", name.lower()
