"""Makes the character and entity references of a damaged document safe for an XML parser.

HTML's names become their characters, bare ampersands become `&amp;`, Windows-1252 numbers their real
characters, and characters XML does not allow are dropped. CDATA sections stay as they are. It knows nothing
of elements.
"""

import re
from collections.abc import Iterator
from html.entities import html5
from typing import Final

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Browsers do without the semicolon behind numbers and behind the oldest names.
_REFERENCE = re.compile(
    r"&(?:#(\d{1,9})(?:;|(?!\d))|#[xX]([0-9A-Fa-f]{1,8})(?:;|(?![0-9A-Fa-f]))"
    r"|([A-Za-z][A-Za-z0-9.]{0,39});|(amp|lt|gt|quot|nbsp)(?![\w=]))?"
)
_PART_CHARACTERS: Final = 500_000
# Begins with one literal, which is searched fastest.
_SUSPECT_NUMBERS = re.compile(rb"#(?<=&#)(?:1(?:2[89]|[345]\d)|0|[xX]0*[89][0-9A-Fa-f]);")
_DECLARED = re.compile(r"""<!ENTITY\s+([A-Za-z_][\w.-]*)\s+["']""")
_MOST_LOOKS: Final = 20
_PREDEFINED: Final = frozenset(("amp", "lt", "gt", "quot", "apos"))
_CDATA_OPEN: Final = "<![CDATA["
_CDATA_CLOSE: Final = "]]>"


def drop_illegal(text: str) -> str:
    """`text` without the characters that XML cannot hold."""
    if len(text) <= _PART_CHARACTERS:
        return _ILLEGAL.sub("", text)
    starts = range(0, len(text), _PART_CHARACTERS)
    return "".join(_ILLEGAL.sub("", text[start : start + _PART_CHARACTERS]) for start in starts)


def has_suspect_numbers(data: bytes) -> bool:
    """Whether there are numeric references that stand for Windows-1252 in practice, or for nothing."""
    if b"#" not in data:
        return False
    for count, match in enumerate(_SUSPECT_NUMBERS.finditer(data)):
        # In a CDATA section they are text. Each look back may go to the beginning, so there are not many.
        section, end = (data.rfind(mark, 0, match.start()) for mark in (b"<![CDATA[", b"]]>"))
        if section <= end or count == _MOST_LOOKS:
            return True
    return False


def character(number: int) -> str:
    """The character that a numeric reference means, as browsers read it; "" for one that cannot be."""
    if 128 <= number <= 159:
        try:
            return bytes((number,)).decode("cp1252")
        except UnicodeDecodeError:
            return ""
    if number > 0x10FFFF or number == 0:
        return ""
    return drop_illegal(chr(number))


def repair_references(text: str) -> str:
    """`text` with every reference outside CDATA either valid XML or escaped."""
    declared = frozenset(_DECLARED.findall(text, 0, 65_536)) if "<!ENTITY" in text else frozenset()

    def replace(match: re.Match[str]) -> str:
        decimal, hexadecimal, closed, bare = match.groups()
        if name := closed or bare:
            if bare in _PREDEFINED:
                return f"&{bare};"
            if name in _PREDEFINED or name in declared:
                return match[0]
            found = html5.get(name + ";") or html5.get(name.lower() + ";")
            return found.replace("&", "&amp;").replace("<", "&lt;") if found else "&amp;" + match[0][1:]
        if decimal or hexadecimal:
            found = character(int(decimal) if decimal else int(hexadecimal, 16))
            return {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}.get(found, found)
        return "&amp;"

    parts: list[str] = []
    position = 0
    while True:
        start = text.find(_CDATA_OPEN, position)
        if start < 0:
            parts.extend(_REFERENCE.sub(replace, part) for part in _split(text, position, len(text)))
            return "".join(parts)
        parts.extend(_REFERENCE.sub(replace, part) for part in _split(text, position, start))
        close = text.find(_CDATA_CLOSE, start)
        if close < 0:
            parts.append(text[start:])
            return "".join(parts)
        position = close + len(_CDATA_CLOSE)
        parts.append(text[start:position])


def _split(text: str, start: int, end: int) -> Iterator[str]:
    """Parts of a text that do not cut a reference: replacing millions of them in one go takes ten times its memory."""
    while end - start > _PART_CHARACTERS:
        reference = text.rfind("&", start + 1, start + _PART_CHARACTERS)
        middle = reference if reference > 0 else start + _PART_CHARACTERS
        yield text[start:middle]
        start = middle
    yield text[start:end]


def unescape(text: str) -> str:
    """`text` with the references that `repair_references` leaves resolved."""
    if "&" not in text:
        return text
    return (
        text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", '"')
        .replace("&apos;", "'")
        .replace("&amp;", "&")
    )
