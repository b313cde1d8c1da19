"""Names in the Google Reader API: of items, of streams, and times. Pure."""

import re
from dataclasses import dataclass
from typing import Final, Literal

ITEM_PREFIX: Final = "tag:google.com,2005:reader/item/"
READING_LIST: Final = "user/-/state/com.google/reading-list"
READ: Final = "user/-/state/com.google/read"
STARRED: Final = "user/-/state/com.google/starred"
LABEL: Final = "user/-/label/"
_STATE: Final = "user/-/state/com.google/"
_USER = re.compile(r"user/[^/]*/")
_DECIMAL = re.compile(r"-?[0-9]{1,20}")
_HEX = re.compile(r"[0-9a-fA-F]{1,16}")
_TIME = re.compile(r"([0-9]{1,20})(\.[0-9]{0,20})?")

StreamKind = Literal["all", "feed", "address", "label", "read", "unread", "starred", "none"]


def long_id(number: int) -> str:
    """An item's name as answers have it."""
    return f"{ITEM_PREFIX}{number & (2**64 - 1):016x}"


def read_item_id(text: str) -> int | None:
    """The number that an item's name means, long, decimal (signed or not) or hexadecimal; None: no such name.

    Sixteen digits with a zero in front are hexadecimal, as in the long form.
    """
    text = text.strip()
    is_hex = text.startswith(ITEM_PREFIX)
    text = text.removeprefix(ITEM_PREFIX)
    if not is_hex and _DECIMAL.fullmatch(text) and not (len(text) == 16 and text[0] == "0"):
        number = int(text)
    elif _HEX.fullmatch(text):
        number = int(text, 16)
    else:
        return None
    number = number - 2**64 if number >= 2**63 else number
    return number if 0 < number < 2**63 else None


@dataclass(frozen=True, slots=True)
class Stream:
    """What a stream's name means. `name` is a label or an address, `number` a subscription's."""

    kind: StreamKind
    name: str = ""
    number: int = 0


def read_stream(text: str) -> Stream:
    """The stream of this name. No name means everything; an unknown one means nothing."""
    text = _USER.sub("user/-/", text.strip(), count=1) if text.startswith("user/") else text.strip()
    if not text or text == READING_LIST:
        return Stream("all")
    if text.startswith("feed/"):
        name = text.removeprefix("feed/")
        if name.isascii() and name.isdigit() and len(name) < 19:
            return Stream("feed", number=int(name))
        return Stream("address", name)
    if text.startswith(LABEL):
        return Stream("label", text.removeprefix(LABEL))
    kinds: dict[str, StreamKind] = {
        "read": "read",
        "starred": "starred",
        "kept-unread": "unread",
        "unread": "unread",
        "fresh": "unread",
    }
    if text.startswith(_STATE):
        return Stream(kinds.get(text.removeprefix(_STATE), "none"))
    return Stream("none")


def read_seconds(text: str | None) -> float | None:
    """A time in seconds, milliseconds, microseconds or nanoseconds since 1970; None: none was given.

    NetNewsWire and Vienna send seconds with a fraction.
    """
    found = _TIME.fullmatch((text or "").strip())
    if found is None:
        return None
    if found[2]:
        return float(found[0]) or None
    number = int(found[1])
    for digits, factor in ((18, 1e9), (15, 1e6), (12, 1e3)):
        if number >= 10**digits:
            return number / factor
    return float(number) if number > 0 else None
