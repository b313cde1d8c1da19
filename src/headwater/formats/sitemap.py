"""Reads sitemaps piece by piece: urlset, sitemapindex, plain text, RSS or Atom used as one, gzipped or not.

A pull parser, so that 50,000 addresses cost little memory; capped in bytes, addresses and depth. Damaged
documents are read up to the damage. It follows nothing: an index gives the addresses of its sitemaps.
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from lxml import etree

from headwater.errors import FailureKind, ParseError
from headwater.formats.charset import decode
from headwater.formats.dates import parse_date
from headwater.formats.entities import drop_illegal, repair_references
from headwater.formats.links import join
from headwater.formats.names import split_tag

Kind = Literal["urlset", "sitemapindex", "text", "rss", "atom"]

MAX_BYTES: Final = 52_428_800  # the protocol's own limit, uncompressed
MAX_URLS: Final = 50_000  # likewise
MAX_DEPTH: Final = 64
_CHUNK: Final = 65_536
_KINDS: Final[dict[str, Kind]] = {
    "urlset": "urlset",
    "sitemapindex": "sitemapindex",
    "rss": "rss",
    "rdf": "rss",
    "channel": "rss",
    "feed": "atom",
}
_RECORDS: Final = frozenset(("url", "sitemap", "item", "entry"))
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_GZIP_MAGIC: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class SitemapUrl:
    """One address. `lastmod` is the text as written, `modified` what it means, if anything."""

    loc: str
    lastmod: str | None = None
    modified: datetime | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    kind: Kind
    urls: tuple[SitemapUrl, ...] = ()
    truncated: bool = False  # a cap was reached, or the document is damaged: there may be more

    @property
    def is_index(self) -> bool:
        return self.kind == "sitemapindex"


def read_sitemap(data: bytes, *, url: str | None = None, content_type: str | None = None) -> Sitemap:
    """The sitemap in `data`. Raises ParseError when it is none."""
    cut = False
    if data.startswith(_GZIP_MAGIC):
        data, cut = _decompress(data)
    if len(data) > MAX_BYTES:
        data, cut = data[:MAX_BYTES], True
    text = decode(data, content_type).text if not _is_plain_utf8(data) else None
    start = (text or data[:4096].decode("utf-8", "replace")).lstrip("\ufeff \t\r\n\x00")
    if not start:
        raise ParseError("The document is empty.", kind=FailureKind.MALFORMED)
    if not start.startswith("<"):
        return _read_text(text if text is not None else data.decode("utf-8", "replace"), url, cut)
    document = data if text is None else text.encode("utf-8", "replace")
    reader = _Reader(url)
    reader.read(document)
    if reader.damaged and b"&" in document:
        # Bare ampersands in addresses are the most frequent damage; repaired, the document is often whole.
        repaired = repair_references(drop_illegal(document.decode("utf-8", "replace")))
        second = _Reader(url)
        second.read(repaired.encode("utf-8", "replace"))
        reader = second if len(second.urls) >= len(reader.urls) else reader
    if reader.kind is None:
        raise ParseError("This is not a sitemap: its root element is <{name}>.", name=reader.root[:60])
    return Sitemap(reader.kind, tuple(reader.urls), truncated=cut or reader.damaged or reader.full)


def _is_plain_utf8(data: bytes) -> bool:
    head = data[:256]
    return b"\x00" not in head and (b"encoding" not in head or b"utf-8" in head.lower())


def _decompress(data: bytes) -> tuple[bytes, bool]:
    """Unzip up to the cap: a bomb costs no more than an honest file. Also says whether it was cut."""
    unzip = zlib.decompressobj(wbits=31)
    try:
        result = unzip.decompress(data, MAX_BYTES)
    except zlib.error as error:
        raise ParseError(
            "The gzip file is damaged: {reason}.", kind=FailureKind.MALFORMED, reason=str(error)
        ) from None
    return result, not unzip.eof


def _read_text(text: str, base: str | None, cut: bool) -> Sitemap:
    urls: list[SitemapUrl] = []
    other = 0
    for line in _lines(text):
        if _ADDRESS.fullmatch(line):
            if len(urls) >= MAX_URLS:
                cut = True
                break
            urls.append(SitemapUrl(line))
        else:
            other += 1
    if not urls or other > len(urls):
        raise ParseError("This is neither an XML sitemap nor a list of addresses.")
    return Sitemap("text", tuple(dict.fromkeys(urls)), truncated=cut)


def _lines(text: str) -> Iterator[str]:
    for line in text.lstrip("\ufeff").splitlines():
        if line := line.strip():
            yield line


class _Reader:
    """Feeds the parser in pieces and keeps nothing of the tree but the element at hand."""

    def __init__(self, base: str | None) -> None:
        self._base = base
        self.kind: Kind | None = None
        self.root = ""
        self.urls: list[SitemapUrl] = []
        self.damaged = False
        self.full = False
        self._depth = 0

    def read(self, document: bytes) -> None:
        parser = etree.XMLPullParser(
            events=("start", "end"),
            encoding="utf-8",
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            recover=False,
            remove_comments=True,
            remove_pis=True,
            collect_ids=False,
        )
        start = document.find(b"<")
        try:
            for position in range(max(start, 0), len(document), _CHUNK):
                parser.feed(document[position : position + _CHUNK])
                if not self._take(parser):
                    return
            parser.close()
        except etree.XMLSyntaxError:
            self.damaged = True
        self._take(parser)

    def _take(self, parser: etree.XMLPullParser) -> bool:
        try:
            for event, element in parser.read_events():
                if not isinstance(element, etree._Element):
                    continue
                if event == "start":
                    self._depth += 1
                    if not self.root:
                        self.root = split_tag(element.tag)[1].lower()
                        self.kind = _KINDS.get(self.root)
                    if self.kind is None or self._depth > MAX_DEPTH:
                        self.damaged = True
                        return False
                else:
                    self._depth -= 1
                    if split_tag(element.tag)[1].lower() in _RECORDS and not self._finish(element):
                        return False
        except etree.XMLSyntaxError:
            self.damaged = True
        return True

    def _finish(self, element: etree._Element) -> bool:
        record = self._record(element)
        if record is not None:
            if len(self.urls) >= MAX_URLS:
                self.full = True
                return False
            self.urls.append(record)
        element.clear()
        while element.getprevious() is not None:
            parent = element.getparent()
            if parent is None:
                break
            del parent[0]
        return True

    def _record(self, element: etree._Element) -> SitemapUrl | None:
        loc = guid = lastmod = title = None
        for child in element:
            namespace, name = split_tag(child.tag)
            name = name.lower()
            # Elements only: an entity, which may be an external one, is left out unread.
            text = "".join(map(str, child.itertext(etree.Element))).strip()
            if name in ("loc", "link") and loc is None and not _is_foreign(namespace):
                rel = (child.get("rel") or "alternate").lower()
                loc = text or (child.get("href") if rel == "alternate" else None)
            elif name in ("lastmod", "pubdate", "updated", "date") or (
                name == "published" and lastmod is None
            ):
                lastmod = text or lastmod
            elif name == "guid" and _ADDRESS.fullmatch(text):
                guid = text
            elif name == "title" and not _is_foreign(namespace):
                title = " ".join(text.split()) or None
        if loc is None and element.text and _ADDRESS.fullmatch(element.text.strip()):
            loc = element.text.strip()  # some forget the <loc>
        loc = join(self._base, loc or guid)
        if not loc:
            return None
        return SitemapUrl(loc, lastmod, parse_date(lastmod), title)


def _is_foreign(namespace: str) -> bool:
    """Whether an element belongs to an extension (image, video, news, xhtml), whose addresses are not the
    page's."""
    return any(part in namespace for part in ("image", "video", "news", "xhtml", "mobile", "media", "yahoo"))
