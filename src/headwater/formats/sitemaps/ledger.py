"""What is remembered of a site's sitemaps, and what a new reading of one says beside it. Pure.

A ledger holds three short numbers for every address: a fingerprint of its record in the document, byte for byte,
a key of the address, and its `lastmod`. So a document of 50,000 addresses of which 20 changed is compared at the
speed of a checksum, and only the 20 are parsed. An address is known for as long as it is in a sitemap, and for a
while after it has left; nothing else makes it new again.
"""

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import orjson

from headwater.formats.sitemaps.read import MAX_URLS, SitemapScan, SitemapUrl, read_sitemap
from headwater.model import Validators

Verdict = Literal["new", "modified", "unchanged"]
U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]

DAYS_TO_KEEP: Final = 30
MOST_GONE: Final = 1_000
GRACE_DAYS: Final = 7  # how long clean-up by count spares what has just left
DAY_SECONDS: Final = 86_400.0

_FORMAT: Final = 1
_END: Final = b"</url>"
_ALIKE_FROM: Final = 10  # so many addresses with one and the same lastmod: a generator's stamp
_NO_U64: Final[U64] = np.empty(0, np.uint64)
_NO_U32: Final[U32] = np.empty(0, np.uint32)


def judge(known: bool, before: float | None, now: float | None) -> Verdict:
    """What a `lastmod` says of an address, beside the one remembered. The rule of every mode and every way in.

    A first date after none says nothing, and neither does one that went back.
    """
    if not known:
        return "new"
    return "modified" if before and now and now > before else "unchanged"


@dataclass(slots=True)
class Document:
    """One sitemap as it was when it was last read whole."""

    parent: str | None = None
    lastmod: str | None = None  # as its index states it
    is_index: bool = False
    counts: bool = True  # False: what it lists when it is first read is taken for seen
    read_at: float | None = None
    asked_at: float = 0.0
    validators: Validators = Validators()
    prints: U64 = field(default_factory=lambda: _NO_U64)  # sorted; empty where records cannot be told apart
    keys: U64 = field(default_factory=lambda: _NO_U64)
    stamps: U32 = field(default_factory=lambda: _NO_U32)


@dataclass(slots=True)
class Ledger:
    """All that is remembered of one site."""

    config_hash: str = ""
    url: str = ""  # for which `roots` were found
    baselined: bool = False
    roots: list[str] = field(default_factory=list)
    documents: dict[str, Document] = field(default_factory=dict)
    gone: dict[int, tuple[int, float]] = field(default_factory=dict)  # key: (stamp, since when)
    watched: dict[str, tuple[str | None, float]] = field(default_factory=dict)  # address: (hash, looked at)
    robots: dict[str, tuple[float, str]] = field(default_factory=dict)  # site: (good until, robots.txt)
    cleaned_at: float = 0.0  # when what has left was last looked through

    def known(self, keys: U64) -> tuple[npt.NDArray[np.bool_], U32]:
        """Which of the keys are known, and the stamps that are remembered of them."""
        mine = [document.keys for document in self.documents.values()]
        stamps = [document.stamps for document in self.documents.values()]
        gone = np.fromiter(self.gone, np.uint64, len(self.gone))
        gone_stamps = np.fromiter((stamp for stamp, _ in self.gone.values()), np.uint32, len(self.gone))
        found = np.zeros(len(keys), np.bool_)
        latest = np.zeros(len(keys), np.uint32)
        if not len(keys):
            return found, latest
        order = np.argsort(keys)
        ordered = keys[order]
        for part, part_stamps in zip([*mine, gone], [*stamps, gone_stamps], strict=True):
            # Looked up from the side of the few: a site has a million addresses, a run changes twenty.
            places = np.minimum(np.searchsorted(ordered, part), len(ordered) - 1)
            hits = ordered[places] == part
            where = order[places[hits]]
            found[where] = True
            np.maximum.at(latest, where, part_stamps[hits])
        # Addresses listed twice in one go: what is known of one of them is known of all.
        same = ordered[1:] == ordered[:-1]
        if same.any():
            first = np.searchsorted(ordered, keys)
            found, latest = found[order[first]], latest[order[first]]
        return found, latest

    def count(self) -> int:
        """How many addresses the sitemaps list."""
        return sum(len(document.keys) for document in self.documents.values())

    def mark_gone(self, keys: U64, stamps: U32, now: float) -> None:
        """Note the addresses that have left a document, unless another one still lists them."""
        for document in self.documents.values():
            if len(keys) and len(document.keys):
                here = np.isin(keys, document.keys)
                keys, stamps = keys[~here], stamps[~here]
        for key, stamp in zip(keys.tolist(), stamps.tolist(), strict=True):
            self.gone.setdefault(key, (stamp, now))

    def mark_back(self, keys: U64) -> None:
        """Note that addresses are listed, whatever was thought of them."""
        if self.gone:
            gone = np.fromiter(self.gone, np.uint64, len(self.gone))
            for key in gone[np.isin(gone, keys)].tolist():
                del self.gone[key]

    def forget_gone(
        self,
        now: float,
        *,
        days: float = DAYS_TO_KEEP,
        most: int = MOST_GONE,
    ) -> set[int]:
        """Clean up what has left the sitemaps: by age, then by number, longest gone first. Answers what went."""
        forgotten = {key for key, (_, since) in self.gone.items() if since < now - days * DAY_SECONDS}
        left = sorted((since, key) for key, (_, since) in self.gone.items() if key not in forgotten)
        grace = min(GRACE_DAYS, days) * DAY_SECONDS
        # A sitemap that lost half of itself by mistake has it back in a day or two: that must not be news.
        forgotten |= {key for since, key in left[: max(len(left) - most, 0)] if since < now - grace}
        for key in forgotten:
            del self.gone[key]
        return forgotten

    def to_bytes(self) -> bytes:
        header: dict[str, Any] = {
            "format": _FORMAT,
            "config_hash": self.config_hash,
            "url": self.url,
            "baselined": self.baselined,
            "roots": self.roots,
            "documents": [_document_header(url, each) for url, each in self.documents.items()],
            "gone": [[key, stamp, since] for key, (stamp, since) in self.gone.items()],
            "watched": self.watched,
            "robots": self.robots,
            "cleaned_at": self.cleaned_at,
        }
        packed = orjson.dumps(header)
        # A million addresses are twenty megabytes: they are copied once.
        parts: list[bytes | memoryview] = [len(packed).to_bytes(8, "little"), packed]
        for document in self.documents.values():
            parts += (document.prints.data.cast("B"), document.keys.data.cast("B"))
            parts.append(document.stamps.data.cast("B"))
        checksum = 0
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        return b"".join((checksum.to_bytes(4, "little"), *parts))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Ledger":
        """The ledger again; ValueError where the bytes are damaged or another format's."""
        body = memoryview(data)[4:]
        if zlib.crc32(body).to_bytes(4, "little") != data[:4]:
            raise ValueError("the checksum is wrong")
        size = int.from_bytes(body[:8], "little")
        header = orjson.loads(body[8 : 8 + size])
        if header.get("format") != _FORMAT:
            raise ValueError("another format")
        ledger = cls(header["config_hash"], header["url"], header["baselined"], header["roots"])
        at = 8 + size
        for row in header["documents"]:
            document = _document(row)
            prints, count = row["prints"], row["keys"]
            document.prints = np.frombuffer(body, np.uint64, prints, at).copy()
            document.keys = np.frombuffer(body, np.uint64, count, at + 8 * prints).copy()
            document.stamps = np.frombuffer(body, np.uint32, count, at + 8 * (prints + count)).copy()
            at += 8 * prints + 12 * count
            ledger.documents[row["url"]] = document
        ledger.gone = {key: (stamp, since) for key, stamp, since in header["gone"]}
        ledger.watched = {url: (text_hash, at) for url, (text_hash, at) in header["watched"].items()}
        ledger.robots = {site: (until, text) for site, (until, text) in header["robots"].items()}
        ledger.cleaned_at = header.get("cleaned_at", 0.0)  # ledgers of earlier versions do not say
        return ledger


def _document_header(url: str, document: Document) -> dict[str, Any]:
    validators = document.validators
    return {
        "url": url,
        "parent": document.parent,
        "lastmod": document.lastmod,
        "is_index": document.is_index,
        "counts": document.counts,
        "read_at": document.read_at,
        "asked_at": document.asked_at,
        "validators": [value.hex() if value is not None else None for value in asdict(validators).values()],
        "prints": len(document.prints),
        "keys": len(document.keys),
    }


def _document(row: dict[str, Any]) -> Document:
    validators = (bytes.fromhex(value) if value is not None else None for value in row["validators"])
    return Document(
        parent=row["parent"],
        lastmod=row["lastmod"],
        is_index=row["is_index"],
        counts=row["counts"],
        read_at=row["read_at"],
        asked_at=row["asked_at"],
        validators=Validators(*validators),
    )


def key_of(url: str) -> int:
    """The key of an address, the same under http and https."""
    encoded = url.partition(":")[2].encode("utf-8", "replace")
    return zlib.crc32(encoded) << 32 | zlib.adler32(encoded)


def stamp_of(url: SitemapUrl) -> int:
    """The `lastmod` as whole seconds; 0 where there is none, or none that can be."""
    if url.modified is None:
        return 0
    seconds = int(url.modified.timestamp())
    return seconds if 0 < seconds < 2**32 else 0


def stamp_time(stamp: int) -> datetime | None:
    return datetime.fromtimestamp(stamp, UTC) if stamp else None


@dataclass(frozen=True, slots=True)
class Reading:
    """What one reading of a document showed. `urls` are those whose records are not known, in its order."""

    urls: list[SitemapUrl]
    keys: U64  # of `urls`
    stamps: U32  # likewise
    places: npt.NDArray[np.intp]  # where `urls` are in the three that follow, which are of the whole document
    prints: U64
    all_keys: U64
    all_stamps: U32
    lost: U64  # keys that it listed and does not list any more
    lost_stamps: U32
    truncated: bool
    cut_off: bool

    def verdicts(self, ledger: Ledger) -> list[Verdict]:
        """What each of `urls` is to the owner of this ledger, and the ledger's stamps kept where they are later."""
        known, latest = ledger.known(self.keys)
        verdicts = [
            judge(*each) for each in zip(known.tolist(), latest.tolist(), self.stamps.tolist(), strict=True)
        ]
        self.all_stamps[self.places] = np.maximum(latest, self.stamps)
        return verdicts

    def enter(self, document: Document, ledger: Ledger, now: float) -> None:
        """Note in the ledger what the document lists now, and what it lists no more."""
        document.prints, document.keys, document.stamps = self.prints, self.all_keys, self.all_stamps
        if self.truncated and len(self.lost):
            # What a damaged or overlong document does not list may still be there.
            document.prints = _NO_U64
            document.keys = np.concatenate((self.all_keys, self.lost))
            document.stamps = np.concatenate((self.all_stamps, self.lost_stamps))
        else:
            ledger.mark_gone(self.lost, self.lost_stamps, now)
        ledger.mark_back(document.keys)


def read_document(data: bytes, before: Document, *, url: str, content_type: str | None = None) -> Reading:
    """Compare a document of addresses with what is remembered of it; ParseError when it is not a sitemap."""
    parts = _split(data)
    prints = _fingerprints(parts[1]) if parts else _NO_U64
    if parts and len(before.prints):
        quick = _read_changed(parts, prints, before, url, content_type)
        if quick is not None:
            return quick
    parts = None  # as large as the document
    return _read_whole(data, prints, before, url, content_type)


def _read_whole(data: bytes, prints: U64, before: Document, url: str, content_type: str | None) -> Reading:
    scan = SitemapScan(data, url=url, content_type=content_type)
    urls = list(scan)
    keys, stamps = _keys(urls), _stamps(urls)
    if len(prints) != len(urls):
        prints = _NO_U64  # some record names no address: which belongs to which cannot be told
    order = np.argsort(prints) if len(prints) else np.arange(len(keys))
    stays = np.isin(before.keys, keys) if len(before.keys) else np.empty(0, np.bool_)
    stamps = _believed(stamps)
    return Reading(
        urls,
        keys,
        stamps,
        np.argsort(order),
        prints[order] if len(prints) else prints,
        keys[order],
        stamps[order],
        before.keys[~stays],
        before.stamps[~stays],
        scan.truncated,
        scan.cut_off,
    )


def _read_changed(
    parts: tuple[bytes, list[bytes], bytes],
    prints: U64,
    before: Document,
    url: str,
    content_type: str | None,
) -> Reading | None:
    """The quick way: parse only the records that were not there before; None where that does not work out."""
    head, records, tail = parts
    places = np.minimum(np.searchsorted(before.prints, prints), len(before.prints) - 1)
    hits = before.prints[places] == prints
    fresh = np.flatnonzero(~hits)
    if 2 * len(fresh) > len(records):
        return None
    urls: list[SitemapUrl] = []
    if len(fresh):
        document = b"".join((head, *(records[at] + _END for at in fresh.tolist()), tail))
        urls = list(read_sitemap(document, url=url, content_type=content_type).urls)
        if len(urls) != len(fresh):
            return None
    keys = before.keys[places]
    stamps = before.stamps[places]
    keys[fresh], stamps[fresh] = _keys(urls), _stamps(urls)
    left = np.ones(len(before.prints), np.bool_)
    left[places[hits]] = False
    lost = np.flatnonzero(left)
    lost = lost[~np.isin(before.keys[lost], keys[fresh])]
    order = np.argsort(prints)
    return Reading(
        urls,
        keys[fresh],
        stamps[fresh],
        np.argsort(order)[fresh],
        prints[order],
        keys[order],
        stamps[order],
        before.keys[lost],
        before.stamps[lost],
        truncated=False,
        cut_off=False,
    )


def _split(data: bytes) -> tuple[bytes, list[bytes], bytes] | None:
    """Head, records and tail of a document whose records can be told apart without parsing it; else None."""
    start = data.find(b"<url>")
    if start < 0 or not data.rstrip().endswith(b"</urlset>"):
        return None
    head = data[:start]
    if b"\x00" in head[:256] or (b"encoding" in head[:256] and b"utf-8" not in head[:256].lower()):
        return None
    *records, tail = data[start:].split(_END)
    # Comments and CDATA may hold what looks like a record; a DOCTYPE may give any of it another meaning.
    if not records or len(records) > MAX_URLS or data.find(b"<!", start) >= 0 or b"<!DOCTYPE" in head:
        return None
    return head, records, tail


def _fingerprints(records: Sequence[bytes]) -> U64:
    """Two checksums each, which C computes by the million: no publisher gains from fooling their own feed."""
    high = np.fromiter(map(zlib.crc32, records), np.uint64, len(records))
    low = np.fromiter(map(zlib.adler32, records), np.uint64, len(records))
    return (high << np.uint64(32)) | low


def _keys(urls: Sequence[SitemapUrl]) -> U64:
    return np.fromiter((key_of(url.loc) for url in urls), np.uint64, len(urls))


def _stamps(urls: Sequence[SitemapUrl]) -> U32:
    return np.fromiter(map(stamp_of, urls), np.uint32, len(urls))


def _believed(stamps: U32) -> U32:
    """The stamps, unless they are all the one that a generator gives to everything it writes."""
    if len(stamps) >= _ALIKE_FROM and stamps[0] and (stamps == stamps[0]).all():
        return np.zeros(len(stamps), np.uint32)
    return stamps


def hash_config(*values: Any) -> str:
    """A short hash of whatever decides which addresses count."""
    return hashlib.blake2b(orjson.dumps(values), digest_size=8).hexdigest()
