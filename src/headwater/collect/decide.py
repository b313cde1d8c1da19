"""Which of the items a visit brought are new, changed, or old under a new id. Pure.

An item is recognised by the hash of its id. Publishers change all their ids, or move house; so it has up to two
more hashes, of its likeness: one of address (without scheme and host), title and date, and one of title, text
and date (undated: address). What is alike in all of that is the same item under a new id, unless its owner is
still there under its own. Identity errs on the side of a second copy, never of a lost item.
"""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from struct import Struct
from urllib.parse import urlsplit

import orjson

from headwater.model import Item, Json
from headwater.records import dataclass
from headwater.store.reading.items import UNKNOWN_CONTENT, ChangeKind, ItemChange, Known

HASH_BYTES = 16
STAMP_BYTES = 8
FUTURE_SECONDS = 86_400.0  # a date further ahead than any time zone explains is not believed
OLDEST_DATE = 0.0
FRESH_SECONDS = 120.0  # an `updated` this close to our visit was most likely made by it
_WEB = ("http://", "https://")
# Path and query of an address without anything special in it, as `urlsplit` finds them, in a tenth of its time.
_USUAL_URL = re.compile(r"https?://[\w.:@%-]+(/[!$-.0->@-~/]*)?(?:\?([!$-~]*))?(?:#[!$-~]*)?\Z", re.ASCII)
_pack_length = Struct(">Q").pack
_new_hash = blake2b(digest_size=HASH_BYTES).copy  # half the time of making one
# What a hash is of, in the form of the texts that follow it.
_ID, _ADDRESS, _PLACE, _TEXT, _CONTENT = (
    _pack_length(len(label)) + label for label in (b"id", b"address", b"place", b"text", b"content")
)
_SEEN_EXTRAS = (
    *("season", "season_name", "episode", "episode_display", "episode_type", "explicit", "subtitle"),
    *("persons", "chapters", "chapter_files", "transcripts", "locations", "points", "live"),
)
TELLING_CHARACTERS = 80  # a text shorter than this says little about which item it is


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item with all that is needed to recognise it."""

    item: Item
    id_key: bytes
    likenesses: tuple[bytes, ...]
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class Decision:
    changes: tuple[ItemChange, ...]
    item_times: tuple[float, ...]
    overflow: bool

    @property
    def new_count(self) -> int:
        return len(self.item_times)

    @property
    def updated_count(self) -> int:
        return sum(change.kind == "changed" for change in self.changes)


def candidates(items: tuple[Item, ...], now: float) -> list[Candidate]:
    """The items with their keys, each once, in the publisher's order."""
    generated = _generated_stamp(items)
    shared = _shared_ids(items)
    found: dict[bytes, Candidate] = {}
    for item in items:
        if item.url and item.external_id in shared:
            item = replace(item, external_id=item.url)
        candidate = _candidate(item, generated, now)
        found.setdefault(candidate.id_key, candidate)
    return list(found.values())


def id_key(external_id: str) -> bytes:
    """The hash by which an item is recognised first."""
    return _hash(_ID, _without_scheme(external_id))


def imported_keys(external_id: str | None, url: str | None) -> dict[bytes, bytes]:
    """The keys of an entry that was read elsewhere, each with the key of the item: its id's, else its address's.

    Not every reader keeps ids; an address is what they all have, and is looked up on a source's first visit alone.
    """
    keys = [id_key(external_id)] if external_id else []
    if url:
        keys.append(_address_key(url))
        if not external_id:
            keys.append(id_key(url))  # which it is, if its publisher gives none
    return dict.fromkeys(keys, keys[0]) if keys else {}


def by_address(found: list[Candidate]) -> list[Candidate]:
    """The same, to be recognised by their addresses too."""
    return [
        replace(candidate, likenesses=(*candidate.likenesses, _address_key(candidate.item.url)))
        if candidate.item.url
        else candidate
        for candidate in found
    ]


def _address_key(url: str) -> bytes:
    return _hash(_ADDRESS, _without_scheme(url))


def fallback_ids(found: list[Candidate], known: Container[bytes]) -> list[bytes]:
    """By what else to look for those whose ids are not known."""
    return [
        likeness for candidate in found if candidate.id_key not in known for likeness in candidate.likenesses
    ]


def decide(
    found: list[Candidate], known: Mapping[bytes, Known], *, now: float, has_history: bool
) -> Decision:
    """Compare what was found with what is known."""
    # The items that are here under their own id: no other item can be them.
    taken = {known[candidate.id_key].item_key for candidate in found if candidate.id_key in known}
    changes: list[ItemChange] = []
    times: list[float] = []
    for candidate in found:
        kind: ChangeKind | None = None
        item_key = candidate.id_key
        if (memory := known.get(candidate.id_key)) is not None:
            item_key = memory.item_key
            if _differs(memory.content_hash, candidate.content_hash):
                kind = "changed"
        elif (owner := _owner(candidate, known, taken)) is not None:
            kind, item_key = "renamed", owner
            taken.add(owner)
        else:
            kind = "new"
        if kind is None:
            continue
        item_at, invented = item_time(candidate.item, now)
        changes.append(
            ItemChange(
                kind,
                candidate.item,
                candidate.id_key,
                item_key,
                candidate.likenesses if kind == "new" else (),
                candidate.content_hash,
                item_at,
                invented,
            )
        )
        if kind == "new":
            times.append(item_at if invented else stated_time(candidate.item, item_at))
    recognised = len(found) - len(times)
    return Decision(tuple(changes), tuple(times), has_history and bool(found) and recognised == 0)


def _owner(candidate: Candidate, known: Mapping[bytes, Known], taken: set[bytes]) -> bytes | None:
    """The item that a candidate with an unknown id must be, by its likeness."""
    for likeness in candidate.likenesses:
        memory = known.get(likeness)
        if memory is not None and memory.item_key not in taken:
            return memory.item_key
    return None


def item_time(item: Item, now: float) -> tuple[float, bool]:
    """When the item appeared, and whether that had to be made up: first seen stands in for no or an absurd date."""
    stated = item.published_at if item.published_at is not None else item.updated_at
    if stated is None or stated <= OLDEST_DATE or stated > now + FUTURE_SECONDS:
        return now, True
    return min(stated, now), False


def stated_time(item: Item, item_at: float) -> float:
    """What the item says itself, though it be ahead of us: by how much is what a policy can learn from."""
    stated = item.published_at if item.published_at is not None else item.updated_at
    return item_at if stated is None else stated


def _candidate(item: Item, generated: float | None, now: float) -> Candidate:
    shown = _hash(_CONTENT, item.title, item.summary or "", item.content or "")
    extras = _seen_extras(item.extras) if item.extras else None
    content = _hash(_CONTENT + shown, extras) if extras else shown
    return Candidate(
        item, id_key(item.external_id), _likenesses(item, shown), content + _stamp(item, generated, now)
    )


def _seen_extras(extras: Json) -> str | None:
    """Of what an item says beyond its text, what a reader sees: that it changes makes a new version."""
    seen = {key: extras[key] for key in _SEEN_EXTRAS if key in extras}
    return orjson.dumps(seen).decode() if seen else None


def _likenesses(item: Item, shown: bytes) -> tuple[bytes, ...]:
    title = " ".join(item.title.split())
    place = _place(item.url)
    date = "" if item.published_at is None else str(round(item.published_at))
    found = []
    if title and place and date:
        found.append(_hash(_PLACE, place, title, date))
    if len(item.content or "") + len(item.summary or "") >= TELLING_CHARACTERS and (date or place):
        found.append(_hash(_TEXT + shown, date or place))
    return tuple(found)


def _place(url: str | None) -> str:
    """The part of an address that stays when its site moves; nothing for a front page."""
    if not url or not url.startswith(_WEB):
        return ""
    if usual := _USUAL_URL.match(url):
        path, query = usual.groups("")
    else:
        try:
            _, _, path, query, _ = urlsplit(url)
        except ValueError:
            return ""
    path = path.rstrip("/")
    return f"{path}?{query}" if path or query else ""


def _shared_ids(items: tuple[Item, ...]) -> set[str]:
    """Ids that stand for different addresses in one document: no ids at all."""
    urls: dict[str, str] = {}
    shared: set[str] = set()
    for item in items:
        if item.url and urls.setdefault(item.external_id, item.url) != item.url:
            shared.add(item.external_id)
    return shared


def _stamp(item: Item, generated: float | None, now: float) -> bytes:
    """The publisher's `updated`; 0: none, or not meant."""
    stamp = item.updated_at
    if stamp is None or stamp == generated or abs(stamp - now) < FRESH_SECONDS or not 0 < stamp < 2.0**62:
        stamp = 0.0
    return int(stamp).to_bytes(STAMP_BYTES, "big")


def _differs(known: bytes, found: bytes) -> bool:
    if known == UNKNOWN_CONTENT:
        return False
    if known[:HASH_BYTES] != found[:HASH_BYTES]:
        return True
    old, new = known[HASH_BYTES:], found[HASH_BYTES:]
    # Only a date that moved says something: one that appears or goes away may be our own doubt about it.
    return old != new and any(old) and any(new)


def is_outdated(candidate: Candidate, memory: Known, earlier: Sequence[bytes]) -> bool:
    """Whether it is what was shown before what is known: by its `updated`, else because it was replaced already."""
    old, new = memory.content_hash[HASH_BYTES:], candidate.content_hash[HASH_BYTES:]
    if any(old) and any(new) and old != new:
        return new < old  # big endian
    content = candidate.content_hash[:HASH_BYTES]
    return content != memory.content_hash[:HASH_BYTES] and any(
        content == each[:HASH_BYTES] for each in earlier
    )


def _generated_stamp(items: tuple[Item, ...]) -> float | None:
    """The one `updated` that a generator stamps on every item, which says nothing about any of them."""
    stamps = [item.updated_at for item in items if item.updated_at is not None]
    if len(stamps) > 1 and len(set(stamps)) == 1:
        return stamps[0]
    return None


def _without_scheme(text: str) -> str:
    """An id that is an address is the same under http and https."""
    return text.partition(":")[2] if text.startswith(_WEB) else text


def _hash(label: bytes, *texts: str) -> bytes:
    whole = label
    for text in texts:
        try:
            encoded = text.encode()
        except UnicodeEncodeError:  # a lone surrogate
            encoded = text.encode("utf-8", "replace")
        whole += _pack_length(len(encoded)) + encoded
    digest = _new_hash()
    digest.update(whole)
    return digest.digest()
