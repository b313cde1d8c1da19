"""Fingerprints of texts: near-equal texts have near-equal fingerprints, without any model. Pure.

A SimHash of 64 bits over word triples; Chinese, Japanese and Korean characters are separate words. Two texts with
few different bits (three, say) tell the same, almost word for word.
"""

import re
from hashlib import blake2b
from typing import Any

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+"
)
_BITS = 64
_MOST_WORDS = 5_000
_TOGETHER = 3


def fingerprint(text: str) -> dict[str, Any]:
    """The fingerprint of a text, as a result's data."""
    words = [word.casefold() for word, _ in zip(_WORD.findall(text), range(_MOST_WORDS), strict=False)]
    return {"simhash": f"{simhash(words):016x}", "words": len(words)}


def simhash(words: list[str]) -> int:
    counts = [0] * _BITS
    groups = {" ".join(words[at : at + _TOGETHER]) for at in range(max(len(words) - _TOGETHER + 1, 1))}
    for group in groups:
        value = int.from_bytes(blake2b(group.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        for bit in range(_BITS):
            counts[bit] += 1 if value >> bit & 1 else -1
    return sum(1 << bit for bit in range(_BITS) if counts[bit] > 0)


def distance(one: str, other: str) -> int:
    """How many bits of two fingerprints differ."""
    return (int(one, 16) ^ int(other, 16)).bit_count()
