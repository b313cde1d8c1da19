"""Makes the character and entity references of a damaged document safe for an XML parser.

HTML's names become their characters, bare ampersands become `&amp;`, Windows-1252 numbers their real
characters, and characters XML does not allow are dropped. CDATA sections stay as they are. It knows nothing
of elements.
"""

import re
from html.entities import html5
from typing import Final

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REFERENCE = re.compile(r"&(?:#(\d{1,9});|#[xX]([0-9A-Fa-f]{1,8});|([A-Za-z][A-Za-z0-9.]{0,39});)?")
_SUSPECT_NUMBERS = re.compile(rb"&#(?:1[2-5]\d|0|[xX]0*[89][0-9A-Fa-f]);")
_DECLARED = re.compile(r"""<!ENTITY\s+([A-Za-z_][\w.-]*)\s+["']""")
_PREDEFINED: Final = frozenset(("amp", "lt", "gt", "quot", "apos"))
_CDATA_OPEN: Final = "<![CDATA["
_CDATA_CLOSE: Final = "]]>"


def drop_illegal(text: str) -> str:
    """`text` without the characters that XML cannot hold."""
    return _ILLEGAL.sub("", text)


def has_suspect_numbers(data: bytes) -> bool:
    """Whether numeric references of the range that means Windows-1252 in practice are there."""
    # One byte is found many times faster than two.
    return b"&" in data and b"&#" in data and _SUSPECT_NUMBERS.search(data) is not None


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
        decimal, hexadecimal, name = match.groups()
        if name:
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
            parts.append(_REFERENCE.sub(replace, text[position:]))
            return "".join(parts)
        parts.append(_REFERENCE.sub(replace, text[position:start]))
        close = text.find(_CDATA_CLOSE, start)
        if close < 0:
            parts.append(text[start:])
            return "".join(parts)
        position = close + len(_CDATA_CLOSE)
        parts.append(text[start:position])


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
