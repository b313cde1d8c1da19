"""Finds the character encoding of a document and decodes it.

The order: byte order mark, the HTTP header, the document's own declaration, UTF-8, statistics. Encodings are
read as browsers read them (Latin-1 means Windows-1252). A claim that the bytes contradict is passed over. It
knows no XML beyond the place of a declaration.
"""

import codecs
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import chardet

# Longest first: the UTF-32 mark begins with the UTF-16 one.
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The first characters of a document without a mark: `<` and one more, in wide encodings.
_WIDE_STARTS: Final = (
    (b"<\x00\x00\x00", "utf-32-le"),
    (b"\x00\x00\x00<", "utf-32-be"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
    (b"{\x00", "utf-16-le"),
    (b"\x00{", "utf-16-be"),
    (b"\x4c\x6f\xa7\x94", "cp037"),  # EBCDIC `<?xm`
)
# What publishers write and what browsers read it as: the supersets, which differ only where the named one has
# control characters or nothing.
_SUPERSETS: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "latin-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "johab": "johab",
    "big5": "big5hkscs",
}
_ALIASES: Final = {
    "x-sjis": "cp932",
    "x-gbk": "gb18030",
    "x-euc-jp": "euc_jp",
    "x-mac-roman": "mac-roman",
    "utf8": "utf-8",
}
_DECLARATION = re.compile(rb"""<\?xml\b[^>]*?\bencoding\s*=\s*["']?\s*([A-Za-z0-9._:-]+)""", re.IGNORECASE)
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9._:-]+)""", re.IGNORECASE)
_DECLARATION_WITHIN: Final = 2048
_SAMPLE_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text and the encoding it was read with. `doubtful` says that characters were replaced or guessed."""

    text: str
    encoding: str
    doubtful: bool = False


def declared_encoding(data: bytes) -> str | None:
    """The name in the XML declaration, as written."""
    match = _DECLARATION.search(data, 0, _DECLARATION_WITHIN)
    return match[1].decode("ascii") if match else None


def header_encoding(content_type: str | None) -> str | None:
    """The charset parameter of a Content-Type header, as written."""
    match = _HEADER.search(content_type) if content_type else None
    return match[1] if match else None


@lru_cache(maxsize=256)
def codec_for(name: str) -> str | None:
    """Python's codec for an encoding name found in the wild; None when there is no such text encoding."""
    name = _ALIASES.get(name.lower(), name)
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        return None
    if not getattr(info, "_is_text_encoding", True) or info.name in ("idna", "punycode", "undefined"):
        return None
    if info.name in ("unicode_escape", "raw_unicode_escape", "unicode-escape", "raw-unicode-escape"):
        return None
    return _SUPERSETS.get(info.name, info.name)


def sniff_encoding(data: bytes, content_type: str | None = None) -> tuple[str | None, int]:
    """What bytes and header claim to be, and how many bytes of mark to skip. None: no usable claim."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return encoding, len(mark)
    for start, encoding in _WIDE_STARTS:
        if data.startswith(start):
            return encoding, 0
    for name in (header_encoding(content_type), declared_encoding(data)):
        # Text that we just read as ASCII cannot be UTF-16, whatever it says of itself.
        if name and (codec := codec_for(name)) and not codec.startswith(("utf-16", "utf-32")):
            return codec, 0
    return None, 0


def decode(data: bytes, content_type: str | None = None) -> Decoded:
    """The text of `data`. Never fails: what cannot be read becomes U+FFFD."""
    claimed, skip = sniff_encoding(data, content_type)
    if skip or (claimed and claimed.startswith(("utf-16", "utf-32", "cp037"))):
        body = data[skip:]
        try:
            return Decoded(body.decode(claimed or "utf-8"), claimed or "utf-8")
        except UnicodeDecodeError:
            return Decoded(body.decode(claimed or "utf-8", "replace"), claimed or "utf-8", doubtful=True)
    declared = codec_for(declared_encoding(data) or "")
    for encoding in dict.fromkeys((claimed, declared, "utf-8")):
        # Every byte string is valid in some 8-bit encodings, so a claim of those is believed only when the
        # same bytes are not also valid UTF-8 beyond ASCII: that does not happen by chance.
        if encoding is None or (encoding in _ANY_BYTES and encoding != "utf-8" and _is_utf8(data)):
            continue
        try:
            return Decoded(data.decode(encoding), encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return _decode_damaged(data, claimed)


_ANY_BYTES: Final = frozenset(
    ("cp1252", "cp1254", "iso8859-15", "iso8859-2", "koi8-r", "cp1251", "mac-roman")
)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _decode_damaged(data: bytes, claimed: str | None) -> Decoded:
    """Bytes that no claim explains: damaged UTF-8, or a legacy encoding nobody declared."""
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    multibyte = sum(1 for _ in re.finditer(rb"[\xc2-\xf4][\x80-\xbf]+", data[:_SAMPLE_BYTES]))
    if multibyte > 2 * bad or bad == 0:
        return Decoded(text, "utf-8", doubtful=True)
    if claimed and claimed != "utf-8":
        return Decoded(data.decode(claimed, "replace"), claimed, doubtful=True)
    guess = chardet.detect(_sample(data)).get("encoding")
    codec = codec_for(guess) if guess else None
    if codec in (None, "utf-8", "utf-7"):
        codec = "cp1252"
    return Decoded(data.decode(codec or "cp1252", "replace"), codec or "cp1252", doubtful=True)


def _sample(data: bytes) -> bytes:
    """A part worth looking at: from shortly before the first byte that is not ASCII."""
    first = next((m.start() for m in re.finditer(rb"[\x80-\xff]", data)), 0)
    start = max(0, first - 1024)
    return data[start : start + _SAMPLE_BYTES]
