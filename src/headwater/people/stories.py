"""Whether two items tell the same story. Pure, without any model, and bounded: only the beginning of a text counts.

An item has a few keys: its address, and what MinHash makes of the words of its title and of the first lines of its
text. Items that share a key, and enough of their sketches, are compared. What tells a copy from a twin of the same
template (the weather of two days, of two towns) is what only one of them says: a copy may leave things out, but both
then say no names or numbers that the other lacks.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit
from zlib import crc32

from headwater.markup import visible_text

RAW_CHARACTERS: Final = 3_000  # of a text with its markup that are read
TEXT_CHARACTERS: Final = 1_000
TITLE_CHARACTERS: Final = 400
MOST_WORDS: Final = 140
SHORT_WORDS: Final = 40  # the beginning that a summary has in common with the whole text
FEWEST_WORDS: Final = 10  # a shorter text says too little to be compared
FEWEST_SUBJECTS: Final = 3  # likewise of a title
BINS: Final = 8
FEWEST_BINS: Final = 2  # of a sketch, that copies have in common

_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+|\d+(?:[.,:]\d+)*|[^\W\d_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+"
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_SITE = re.compile(r"(?<!\s)\s++[-|–—·•»]\s++[^-|–—·•»]{2,40}$|[_|｜][^_|｜]{2,20}$")
_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for from has have he her his how in into is it its more new not of off on or our"
        " over says she than that the their they this to up was we were what when who why will with you your after"
        " amid 的 了 在 是 和 与",
    )
)
_TRACKING = re.compile(
    r"(?:utm_|mc_|pk_|ga_|hsa_|at_|ns_).*|fbclid|gclid|dclid|igshid|ref|ref_src|src|source|cmpid|cid|ocid|ito|smid|"
    r"partner|rss|feed|feedtype|from|share|spm|amp|outputtype|xtor|taid|yclid|mkt_tok",
    re.IGNORECASE,
)
_PLAIN_PATH = re.compile(r"/?(?:index\.\w{2,5}|home|news|rss|feed|blog|[a-z]{2})?/?", re.IGNORECASE)


@dataclass(frozen=True)
class Telling:
    """How one item tells its story: the words of its title, of the beginning of its text, and its address."""

    title: tuple[str, ...]
    text: tuple[str, ...]
    address: str | None

    @cached_property
    def said(self) -> frozenset[str]:
        return frozenset(self.title) | frozenset(self.text)

    @cached_property
    def subjects(self) -> frozenset[str]:
        """What the title is about: its words without those that every title has."""
        return frozenset(self.title) - _STOP

    @cached_property
    def figures(self) -> tuple[str, ...]:
        return tuple(word for word in self.title if word[0].isdigit())


def telling_of(title: str | None, text: str | None, url: str | None) -> Telling:
    """How an item tells its story. `text`: its content, else its summary, with markup."""
    whole = unicodedata.normalize("NFKC", (title or "")[:TITLE_CHARACTERS])
    head = _SITE.sub("", whole)
    words = _words(head if len(_words(head)) >= 3 else whole)
    body = visible_text((text or "")[:RAW_CHARACTERS], TEXT_CHARACTERS)
    return Telling(words, _words(unicodedata.normalize("NFKC", body))[:MOST_WORDS], canonical_address(url))


def _words(text: str) -> tuple[str, ...]:
    """Words in small letters; what is written without spaces in pairs of characters."""
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if _CJK.match(token) is None:
            found.append(token.casefold().removesuffix("'s"))
        elif len(token) == 1:
            found.append(token)
        else:
            found += [one + two for one, two in pairwise(token)]
    return tuple(found)


def canonical_address(url: str | None) -> str | None:
    """What the addresses of one page share; None for none, and for one that many items may have."""
    if not url or len(url) > 2_000:
        return None
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.").removeprefix("m.").removeprefix("amp.")
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    query = [
        (name, value) for name, value in parse_qsl(parts.query)[:50] if _TRACKING.fullmatch(name) is None
    ]
    path = parts.path.removesuffix("/amp").removesuffix("/amp/").rstrip("/")
    if not query and _PLAIN_PATH.fullmatch(path):
        return None
    return f"{host}{path}?{urlencode(sorted(query))}"


@dataclass(frozen=True)
class Marks:
    """By what copies of an item are found: its keys (signed, of 64 bits), and its sketch to sort out others."""

    keys: tuple[int, ...]
    sure_keys: frozenset[int]  # of the address and the title: what shares one of these is always compared
    sketch: bytes


def marks_of(telling: Telling) -> Marks:
    """What copies of this have in common with it, nearly always."""
    sure = []
    if telling.address is not None:
        sure.append(_key("u", telling.address))
    subjects = telling.subjects
    if len(subjects) >= FEWEST_SUBJECTS:
        sure.append(_key("t", *sorted(subjects)))
        first, second, third, fourth = _least(subjects, 4)
        sure += [_key("w", str(first), str(second)), _key("x", str(third), str(fourth))]
    sketch: list[int] = []
    if len(telling.text) >= FEWEST_WORDS:
        sketch = _least(_shingles(telling.text[:SHORT_WORDS]), BINS)
    keys = [_key("s", str(place), str(least)) for place, least in enumerate(sketch) if least <= 0xFFFFFFFF]
    packed = b"".join(least.to_bytes(5, "big") for least in sketch)
    return Marks(tuple(dict.fromkeys([*sure, *keys])), frozenset(sure), packed)


def is_worth_comparing(one: bytes, other: bytes) -> bool:
    """Whether two sketches have enough in common."""
    places = range(0, min(len(one), len(other)), 5)
    return sum(one[at : at + 5] == other[at : at + 5] for at in places) >= FEWEST_BINS


def _shingles(words: Sequence[str]) -> set[str]:
    """Pairs of neighbouring words, without those that stand in every text."""
    return {f"{one} {two}" for one, two in pairwise([word for word in words if word not in _STOP])}


def _least(features: Iterable[str], bins: int) -> list[int]:
    """MinHash in one pass: the least hash of each bin; a number beyond 32 bits for an empty one."""
    least = [0xFFFFFFFF + 1] * bins
    for feature in features:
        value = (crc32(feature.encode("utf-8", "replace")) * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF
        place = value % bins
        least[place] = min(least[place], value)
    return least


def _key(*parts: str) -> int:
    digest = blake2b("\x1f".join(parts).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def is_same_story(one: Telling, other: Telling) -> bool:
    """Whether two items of different sources tell the same story."""
    alike = _likeness(one.subjects, other.subjects)
    if _is_template(one, other):
        return False
    if one.address is not None and one.address == other.address:
        return alike >= 0.2
    if min(len(one.text), len(other.text)) < FEWEST_WORDS:
        return alike >= 0.85 and min(len(one.subjects), len(other.subjects)) >= 5
    if _own_names(one, other) and _own_names(other, one):
        return False
    common = _containment(one.text, other.text)
    if common >= 0.6:
        return max(_support(one, other), _support(other, one)) >= 0.3
    if common >= 0.4:
        return alike >= 0.15 or min(_support(one, other), _support(other, one)) >= 0.6
    return alike >= 0.85 and common >= 0.15 and min(len(one.subjects), len(other.subjects)) >= 5


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def _support(one: Telling, other: Telling) -> float:
    """How much of what the first title is about the other says somewhere."""
    return len(one.subjects & other.said) / max(len(one.subjects), 1)


def _containment(one: Sequence[str], other: Sequence[str]) -> float:
    """How much of the shorter text stands in the beginning of the other."""
    length = min(len(one), len(other))
    reach = length + length // 3 + 5  # the other may begin with a place and a date
    first, second = _shingles(one[:reach]), _shingles(other[:reach])
    return len(first & second) / max(min(len(first), len(second)), 1)


def _is_template(one: Telling, other: Telling) -> bool:
    """Whether the titles are the same but for their numbers: another day, another release."""
    short, long = sorted((one.figures, other.figures), key=len)
    rest = iter(long)
    if len(short) < len(long) and all(figure in rest for figure in short):  # one says more than the other
        return False
    if short == long:
        return False
    return _likeness(one.subjects - set(one.figures), other.subjects - set(other.figures)) >= 0.5


def _own_names(one: Telling, other: Telling) -> frozenset[str]:
    """What one says in its title and again in its text, and the other nowhere: another town, day or match."""
    return (one.subjects & frozenset(one.text)) - other.said
