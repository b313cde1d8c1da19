"""Finds the character encoding of a document and decodes it.

The order: byte order mark, the HTTP header, the document's own declaration, UTF-8, the language that the document
names, statistics. Encodings are read as browsers read them (Latin-1 means Windows-1252). A claim that the bytes
contradict is passed over; text that was encoded twice is decoded twice. It knows no XML beyond the place of a
declaration and of a language.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import chardet

from headwater.model import Repair

# Longest first: the UTF-32 mark begins with the UTF-16 one.
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The first character of a document, `<` or `{`, in wide encodings; white space may stand before it.
_WIDE_STARTS: Final = tuple(
    (re.compile(pattern), encoding)
    for pattern, encoding in (
        (rb"(?:[ \t\r\n]\x00{3})*+[<{]\x00{3}", "utf-32-le"),
        (rb"(?:\x00{3}[ \t\r\n])*+\x00{3}[<{]", "utf-32-be"),
        (rb"(?:[ \t\r\n]\x00)*+[<{]\x00", "utf-16-le"),
        (rb"(?:\x00[ \t\r\n])*+\x00[<{]", "utf-16-be"),
        (rb"\x4c\x6f\xa7\x94", "cp037"),  # EBCDIC `<?xm`
    )
)
_NARROW_START = re.compile(rb"\s*+[<{][^\x00][^\x00]")
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
_WIDE: Final = frozenset(("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "cp037"))
_DECLARATION = re.compile(
    rb"""<\?xml\b[^>]*?\bencoding\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]++)""", re.IGNORECASE
)
_HEADER = re.compile(r"""charset\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]++)""", re.IGNORECASE)
_DECLARATION_WITHIN: Final = 2048
_SAMPLE_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text and the encoding it was read with. `doubtful`: characters were replaced or guessed; `twice`: they had been
    encoded twice."""

    text: str
    encoding: str
    doubtful: bool = False
    twice: bool = False

    @property
    def repairs(self) -> tuple[Repair, ...]:
        doubt = (Repair("encoding", detail=self.encoding),) if self.doubtful else ()
        return (*doubt, Repair("double_encoding", detail="UTF-8, Windows-1252")) if self.twice else doubt


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
    marked, skip = next(((name, len(mark)) for mark, name in _BOMS if data.startswith(mark)), (None, 0))
    for start, encoding in _WIDE_STARTS:
        if start.match(data, skip):
            return encoding, skip
    if marked and not (marked in _WIDE and _NARROW_START.match(data, skip)):
        return marked, skip
    return next(_claims(data, content_type), None), skip


def _claims(data: bytes, content_type: str | None) -> Iterator[str]:
    """The encodings that header and declaration name. What begins as ASCII does not begin as UTF-16 or EBCDIC."""
    for name in (header_encoding(content_type), declared_encoding(data)):
        if name and (codec := codec_for(name)) and _agrees_with_ascii(codec):
            yield codec


@lru_cache(maxsize=256)
def _agrees_with_ascii(codec: str) -> bool:
    return b"<?xml".decode(codec, "replace") == "<?xml"


def decode(data: bytes, content_type: str | None = None) -> Decoded:
    """The text of `data`. Never fails: what cannot be read becomes U+FFFD."""
    claimed, skip = sniff_encoding(data, content_type)
    data = data[skip:] if skip else data
    if claimed in _WIDE:
        return _decode_wide(data, claimed)
    marked = ("utf-8",) if skip else ()
    for encoding in dict.fromkeys((*marked, *_claims(data, content_type), "utf-8")):
        if encoding != "utf-8" and _is_rather_utf8(data, encoding):
            continue
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        return _once(data, text) if encoding == "utf-8" else Decoded(text, encoding)
    return _decode_damaged(data, claimed)


def _decode_wide(data: bytes, encoding: str) -> Decoded:
    try:
        text, is_doubtful = data.decode(encoding), False
    except UnicodeDecodeError:
        text, is_doubtful = data.decode(encoding, "replace").removesuffix("\ufffd"), True
    return replace(_once(text.encode("utf-8", "replace"), text, doubtful=is_doubtful), encoding=encoding)


# Encodings in which every byte string is valid, and those in which much of UTF-8 is.
_ANY_BYTES: Final = frozenset(
    ("cp1252", "cp1254", "iso8859-15", "iso8859-2", "koi8-r", "cp1251", "mac-roman")
)
_MANY_BYTES: Final = frozenset(("gb18030", "big5hkscs", "cp932", "cp949", "euc_jp", "johab"))
_ENOUGH_SEQUENCES: Final = 4
_SEQUENCE = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")


def _is_rather_utf8(data: bytes, encoding: str) -> bool:
    """Whether bytes that are said to be in an encoding are UTF-8, for they would not be valid UTF-8 by chance."""
    if encoding in _ANY_BYTES:
        return _is_utf8(data)
    if encoding not in _MANY_BYTES or not _is_utf8(data):
        return False
    return len(set(_SEQUENCE.findall(_sample(data)))) >= _ENOUGH_SEQUENCES


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


# How text that is UTF-8, read as Windows-1252 and written as UTF-8 again begins: `Ã`, `Â`, `â€`, `ð`.
_TWICE = re.compile(rb"\xc3(?:[\x82\x83]\xc2[\x80-\xbf]|\xa2(?:\xe2\x82\xac|\xc2\x80)|\xb0\xc5\xb8)")
_LONGEST_KNOWN_RUN: Final = 16
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def is_encoded_twice(data: bytes) -> bool:
    """Whether UTF-8 bytes look as if they had been encoded twice."""
    return not data.isascii() and b"\xc3" in data and _TWICE.search(data) is not None


def _once(data: bytes, text: str, *, doubtful: bool = False) -> Decoded:
    """`text`, which is `data` read as UTF-8, decoded once more where it was encoded twice."""
    once = _decode_again(text) if is_encoded_twice(data) else None
    return Decoded(text if once is None else once, "utf-8", doubtful, twice=once is not None)


def _decode_again(text: str) -> str | None:
    """`text` decoded once more; None where less than nine tenths of what is not ASCII makes sense that way."""
    try:  # all at once, which is many times faster
        return text.encode("latin-1", "headwater-cp1252").decode("utf-8")
    except UnicodeError:
        pass
    good = bad = 0

    def again(match: re.Match[str]) -> str:
        nonlocal good, bad
        try:
            once = match[0].encode("cp1252", "headwater-c1").decode("utf-8")
        except UnicodeError:
            bad += 1
            return match[0]
        good += 1
        return once

    repaired = _NOT_ASCII.sub(again, text)
    return repaired if good > 9 * bad else None


def _encode_cp1252(error: UnicodeError) -> tuple[bytes | str, int]:
    """For encoding as Latin-1: the rest as Windows-1252, which agrees with it wherever both have a letter."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    run = error.object[error.start : error.end]
    return _as_cp1252(run) if len(run) <= _LONGEST_KNOWN_RUN else run.encode(
        "cp1252", "headwater-c1"
    ), error.end


@lru_cache(maxsize=1024)  # most texts use few letters beyond ASCII
def _as_cp1252(run: str) -> bytes:
    return run.encode("cp1252", "headwater-c1")


def _pass_c1(error: UnicodeError) -> tuple[bytes | str, int]:
    """For encoding as Windows-1252: the five bytes that it leaves undefined stand for themselves."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    if any(ord(letter) > 0x9F for letter in part):
        raise error
    return part.encode("latin-1"), error.end


_LONGEST_FOREIGN_RUN: Final = 3
_LIKELY: Final = bytes((0x85, *range(0x91, 0x98), *range(0xC0, 0xFD)))


def _read_as_latin(error: UnicodeError) -> tuple[str, int]:
    """For decoding UTF-8 with foreign bytes in it: a few together are most often letters or quotes of Windows-1252."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, place = error.object, error.start
    run = _high_run(data, place)
    is_likely = len(run) <= _LONGEST_FOREIGN_RUN and not run.strip(_LIKELY)
    return data[place : place + 1].decode("cp1252") if is_likely else "\ufffd", place + 1


def _high_run(data: bytes, place: int) -> bytes:
    """The bytes beyond ASCII around a place, as far as they matter."""
    start, end = place, place + 1
    while start > 0 and data[start - 1] >= 0x80 and place - start <= _LONGEST_FOREIGN_RUN:
        start -= 1
    while end < len(data) and data[end] >= 0x80 and end - place <= _LONGEST_FOREIGN_RUN:
        end += 1
    return data[start:end]


codecs.register_error("headwater-c1", _pass_c1)
codecs.register_error("headwater-cp1252", _encode_cp1252)
codecs.register_error("headwater-latin", _read_as_latin)

_LANGUAGE = re.compile(rb"""(?:<(?:dc:)?language>|\blang\s*=\s*["'])\s*([A-Za-z]{2,3})\b""")
_BY_LANGUAGE: Final = {
    **dict.fromkeys(("it", "fr", "de", "es", "pt", "nl", "sv", "da", "nb", "nn", "no"), ("cp1252",)),
    **dict.fromkeys(("fi", "en", "ca", "gl", "eu", "is", "ga", "af", "id", "ms", "sw"), ("cp1252",)),
    **dict.fromkeys(("pl", "cs", "sk", "hu", "sl", "hr", "bs", "ro", "sq"), ("cp1250", "iso8859-2")),
    **dict.fromkeys(("ru", "uk", "be", "bg", "mk", "sr"), ("cp1251", "koi8-r", "iso8859-5", "cp866")),
    **dict.fromkeys(("lt", "lv", "et"), ("cp1257", "iso8859-13")),
    "el": ("cp1253", "iso8859-7"),
    "tr": ("cp1254",),
    "he": ("cp1255", "iso8859-8"),
    "ar": ("cp1256", "iso8859-6"),
    "fa": ("cp1256",),
    "vi": ("cp1258",),
    "th": ("cp874",),
    "ja": ("cp932", "euc_jp", "iso2022_jp"),
    "zh": ("gb18030", "big5hkscs"),
    "ko": ("cp949",),
}
_LATIN: Final = frozenset(("cp1252", "cp1250", "cp1254", "cp1257", "iso8859-2", "iso8859-15", "mac-roman"))
# A letter beyond ASCII that has ASCII letters or the end of a word on both sides, as in Latin scripts.
_LONE = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")
_HIGH = re.compile(rb"[\x80-\xff]")


def _decode_damaged(data: bytes, claimed: str | None) -> Decoded:
    """Bytes that no claim explains: damaged UTF-8, or an undeclared legacy encoding."""
    sample = _sample(data)
    good = sum(1 for _ in re.finditer(rb"[\xc2-\xf4][\x80-\xbf]+", sample))
    bad = sample.decode("utf-8", "replace").count("\ufffd")
    if good >= bad or not bad or _is_mixed(sample):
        return _once(data, data.decode("utf-8", "headwater-latin"), doubtful=True)
    if claimed and claimed != "utf-8":
        return Decoded(data.decode(claimed, "replace"), claimed, doubtful=True)
    codec = _guess(data, sample)
    return Decoded(data.decode(codec, "replace"), codec, doubtful=True)


# What UTF-8 of Latin scripts is full of, and Windows-1252 without: quotes, dashes and accented letters.
_TYPICAL = re.compile(rb"\xe2\x80[\x90-\xbf]|\xc3[\x80-\xbf]")


def _is_mixed(sample: bytes) -> bool:
    """Whether bytes are UTF-8 with parts in Windows-1252 among it, as where entries of two systems are joined."""
    rest, typical = _TYPICAL.subn(b"", sample)
    return typical >= _ENOUGH_SEQUENCES and _looks_latin(rest)


def _guess(data: bytes, sample: bytes) -> str:
    """The legacy encoding of bytes: of those that the document's language is written in, else by their look."""
    named = _LANGUAGE.search(data, 0, _SAMPLE_BYTES)
    possible = _BY_LANGUAGE.get(named[1].decode("ascii").lower(), ()) if named else ()
    if len(possible) == 1:
        return possible[0]
    guess = chardet.detect(sample).get("encoding")
    codec = codec_for(guess) if guess else None
    if possible:
        return codec if codec in possible else _fitting(data, possible)
    if codec is None or codec.startswith("utf"):
        return "cp1252"
    # Statistics take a few accents between ASCII letters for any alphabet; only Latin ones look like that.
    return codec if codec in _LATIN or not _looks_latin(sample) else "cp1252"


def _fitting(data: bytes, possible: tuple[str, ...]) -> str:
    for codec in possible:
        try:
            data.decode(codec)
        except UnicodeDecodeError:
            continue
        return codec
    return possible[0]


def _looks_latin(sample: bytes) -> bool:
    return len(_LONE.findall(sample)) > 0.8 * len(_HIGH.findall(sample))


def _sample(data: bytes) -> bytes:
    """A part worth looking at: from shortly before the first byte that is not ASCII."""
    first = next((m.start() for m in re.finditer(rb"[\x80-\xff]", data)), 0)
    start = max(0, first - 1024)
    return data[start : start + _SAMPLE_BYTES]
