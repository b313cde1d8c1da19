"""Which of the items a visit brought are new, changed, or old under a new id. Pure.

An item is recognised by two hashes: one of its id, and one of its likeness (address without scheme and host,
title, and date or text). The second catches publishers who change all their ids or move house: what looks the
same in every respect is the same item. Identity errs on the side of a second copy, never of a lost item.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from urllib.parse import urlsplit

from headwater.model import Item
from headwater.store.items import ChangeKind, ItemChange

HASH_BYTES = 16
STAMP_BYTES = 8
FUTURE_SECONDS = 86_400.0  # a date further ahead than any time zone explains is not believed
OLDEST_DATE = 0.0
FRESH_SECONDS = 120.0  # an `updated` this close to our visit was most likely made by it
TELLING_CHARACTERS = 80  # an undated item with less text than this has no likeness


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item with all that is needed to recognise it."""

    item: Item
    id_key: bytes
    likeness: bytes | None  # None: too little to go by
    content_hash: bytes

    @property
    def keys(self) -> tuple[bytes, ...]:
        return (self.id_key,) if self.likeness is None else (self.id_key, self.likeness)


@dataclass(frozen=True, slots=True)
class Decision:
    changes: tuple[ItemChange, ...]
    item_times: tuple[float, ...]
    overflow: bool

    @property
    def new_count(self) -> int:
        return sum(change.kind == "new" for change in self.changes)

    @property
    def updated_count(self) -> int:
        return sum(change.kind == "changed" for change in self.changes)


def candidates(items: tuple[Item, ...], now: float) -> list[Candidate]:
    """The items with their keys, each once, in the publisher's order."""
    generated = _generated_stamp(items, now)
    found: dict[bytes, Candidate] = {}
    for item in items:
        candidate = _candidate(item, generated, now)
        twin = found.get(candidate.id_key)
        if twin is not None and item.url and item.url != twin.item.url:
            # One id for different things is no id; the address tells them apart.
            candidate = _candidate(replace(item, external_id=item.url), generated, now)
        found.setdefault(candidate.id_key, candidate)
    return list(found.values())


def keys_of(found: list[Candidate]) -> list[bytes]:
    """Everything to look up before deciding."""
    return [key for candidate in found for key in candidate.keys]


def decide(
    found: list[Candidate], known: Mapping[bytes, bytes], *, now: float, has_history: bool
) -> Decision:
    """Compare what was found with what is known (content hash by key)."""
    # A likeness whose owner is here under its own id belongs to that one; the other is a new item that looks alike.
    taken = {candidate.likeness for candidate in found if candidate.id_key in known}
    changes: list[ItemChange] = []
    times: list[float] = []
    recognised = 0
    for candidate in found:
        kind: ChangeKind | None = None
        if candidate.id_key in known:
            if _differs(known[candidate.id_key], candidate.content_hash):
                kind = "changed"
        elif candidate.likeness in known and candidate.likeness not in taken:
            kind = "renamed"
        else:
            kind = "new"
        recognised += kind != "new"
        if kind is None:
            continue
        item_at, invented = item_time(candidate.item, now)
        keys = candidate.keys if kind == "new" else (candidate.id_key,)
        changes.append(ItemChange(kind, candidate.item, keys, candidate.content_hash, item_at, invented))
        if kind == "new":
            times.append(item_at)
    return Decision(tuple(changes), tuple(times), has_history and bool(found) and recognised == 0)


def item_time(item: Item, now: float) -> tuple[float, bool]:
    """When the item appeared, and whether that had to be made up: first seen stands in for no or an absurd date."""
    stated = item.published_at if item.published_at is not None else item.updated_at
    if stated is None or stated <= OLDEST_DATE or stated > now + FUTURE_SECONDS:
        return now, True
    return min(stated, now), False


def _candidate(item: Item, generated: float | None, now: float) -> Candidate:
    id_key = _hash("id", _without_scheme(item.external_id))
    return Candidate(item, id_key, _likeness(item), _content_hash(item, generated, now))


def _likeness(item: Item) -> bytes | None:
    parts = urlsplit(item.url) if item.url and _is_url(item.url) else None
    place = f"{parts.path.rstrip('/')}?{parts.query}" if parts else ""
    if item.published_at is not None:
        sign = str(round(item.published_at))
    else:
        sign = f"{item.content or ''}\0{item.summary or ''}"
        if len(sign) < TELLING_CHARACTERS:
            return None
    return _hash("likeness", place, " ".join(item.title.split()), sign)


def _content_hash(item: Item, generated: float | None, now: float) -> bytes:
    """A hash of what is shown, then the publisher's `updated` (0: none, or not meant)."""
    stamp = item.updated_at
    if stamp is None or stamp == generated or abs(stamp - now) < FRESH_SECONDS or not 0 < stamp < 2.0**62:
        stamp = 0.0
    return _hash("content", item.title, item.summary or "", item.content or "") + int(stamp).to_bytes(
        STAMP_BYTES, "big"
    )


def _differs(known: bytes, found: bytes) -> bool:
    if known[:HASH_BYTES] != found[:HASH_BYTES]:
        return True
    old, new = known[HASH_BYTES:], found[HASH_BYTES:]
    # Only a date that moved says something: one that appears or goes away may be our own doubt about it.
    return old != new and any(old) and any(new)


def _generated_stamp(items: tuple[Item, ...], now: float) -> float | None:
    """The one `updated` that a generator stamps on every item, which says nothing about any of them."""
    stamps = [item.updated_at for item in items if item.updated_at is not None]
    if len(stamps) > 1 and len(set(stamps)) == 1:
        return stamps[0]
    return None


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _without_scheme(text: str) -> str:
    """An id that is an address is the same under http and https."""
    return text.partition(":")[2] if _is_url(text) else text


def _hash(*texts: str) -> bytes:
    digest = blake2b(digest_size=HASH_BYTES)
    for text in texts:
        encoded = text.encode("utf-8", "replace")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.digest()
