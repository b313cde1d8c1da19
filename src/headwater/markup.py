"""Foreign HTML at a price that is known beforehand: how much of a text is kept, and a linear reading of its tags.

Parsers of HTML look through all open elements at many a tag, and through all attributes at each of one, so what is
nested deeply or has many attributes costs the square of its length. `bound_html` leaves of a body what can be parsed
in linear time. Pure; nothing here decides what is harmless.
"""

import html
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LONGEST_TEXT: Final = 500_000  # characters of an item's summary, content or answer: a book of 80,000 words
LONGEST_LINE: Final = 20_000  # characters of a title, a name, a category
LONGEST_URL: Final = 8_192
MOST_PARTS: Final = 1_000  # categories of an item, its files, …
DEEPEST: Final = 128
MOST_TAGS: Final = 20_000
MOST_FORMATS: Final = 12  # of <b>, <font>, … open at once: every paragraph may open all of them again
LONGEST_TAG: Final = 4_096
_HARMLESS_CHARACTERS: Final = 2_000  # of which no parser can make much work
_PATIENCE: Final = 1_000  # beginnings of tags without an end, after which none is looked for

_TAG = re.compile(r"""<(/?)([A-Za-z][A-Za-z0-9:_-]*+)([^<>"']*+(?:"[^"]*+"[^<>"']*+|'[^']*+'[^<>"']*+)*+)>""")
_PLAIN_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:_-]*+)([^<>]*+)>")
_HIDDEN = re.compile(
    r"<!--(?:[^-]|-(?!->))*+(?:-->|\Z)|<[!?][^<>]*+>?"
    r"|<(script|style)\b[^<]*+(?:<(?!/\1\b)[^<]*+)*+(?:</\1[^<>]*+>?|\Z)",
    re.IGNORECASE,
)
# Only with its semicolon: "?a=1&copy=2" is not a copyright sign.
_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_VOID_NAMES: Final = "area base br col embed hr img input link meta param source track wbr"
_VOID: Final = frozenset(_VOID_NAMES.split())
# Elements that end where the next of their kind begins: many leave out their end tags.
_SELF_CLOSING_NAMES: Final = "p li dd dt option tr td th thead tbody tfoot colgroup rp rt body html head"
_SELF_CLOSING: Final = frozenset(_SELF_CLOSING_NAMES.split())
_FORMAT_NAMES: Final = "a b big code em font i nobr s small strike strong tt u"
_FORMATS: Final = frozenset(_FORMAT_NAMES.split())
_FOREIGN: Final = frozenset(("svg", "math"))


class Bounded(NamedTuple):
    """A body that costs little to parse; `cut` when something of it was left out for that."""

    body: str
    cut: bool


class Piece(NamedTuple):
    """A piece of a body: a tag by its name in lower case, or text, which has no name."""

    text: str
    name: str = ""
    is_end: bool = False


def read_pieces(body: str) -> Iterator[Piece]:
    """The tags and texts of a body in order, without comments and scripts; in linear time."""
    position, impatience = 0, 0
    while (opening := body.find("<", position)) >= 0:
        if opening > position:
            yield Piece(body[position:opening])
        position = opening + 1
        following = body[position : position + 1]
        if following in "!?sS" and (hidden := _HIDDEN.match(body, opening)):
            position = hidden.end()
            continue
        tag = None
        if impatience < _PATIENCE:
            tag = _TAG.match(body, opening, opening + 2 * LONGEST_TAG)
            impatience += tag is None
        tag = tag or _PLAIN_TAG.match(body, opening)
        if tag is None:
            yield Piece("<")
        else:
            yield Piece(tag[0], tag[2].lower(), bool(tag[1]))
            position = tag.end()
    if position < len(body):
        yield Piece(body[position:])


def bound_html(body: str, most_characters: int = LONGEST_TEXT) -> Bounded:
    """As much of `body` as can be parsed and shown in linear time.

    Tags that are too long or nested too deeply are left out, and what comes after too many characters or tags.
    """
    if len(body) <= min(_HARMLESS_CHARACTERS, most_characters):
        return Bounded(body, False)
    nesting = _Nesting()
    kept: list[str] = []
    left, tags = most_characters, 0
    for piece in read_pieces(body):
        text = nesting.tag(piece) if piece.name else "&lt;" if piece.text == "<" else piece.text
        tags += bool(piece.name) or piece.text == "<"
        if len(text) > left or tags > MOST_TAGS:
            kept.append("" if piece.name else text[:left])
            return Bounded("".join(kept), True)
        kept.append(text)
        left -= len(text)
    return Bounded("".join(kept), nesting.cut)


def visible_text(body: str, most_characters: int) -> str:
    """The text of a body without its tags, up to so many characters."""
    if "<" not in body:
        return unescape_text(body[: 2 * most_characters])[:most_characters]
    found: list[str] = []
    left = 2 * most_characters  # references become shorter
    for piece in read_pieces(body):
        found.append(" " if piece.name else piece.text[:left])
        left -= len(found[-1])
        if left <= 0:
            break
    return unescape_text("".join(found))[:most_characters]


_BLOCK_NAMES: Final = (
    "address article aside blockquote center dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6"
    " header hr li main nav ol p pre section table td th tr ul"
)
_BLOCKS: Final = frozenset(_BLOCK_NAMES.split())


def paragraphs_of(body: str, most_characters: int = LONGEST_TEXT) -> str:
    """The text of a body as it is read: paragraphs with an empty line between them."""
    blocks: list[list[str]] = [[]]
    left = most_characters
    for piece in read_pieces(body):
        if piece.name in _BLOCKS:
            blocks.append([])
        elif piece.name == "br":
            blocks[-1].append("\n")
        elif not piece.name:
            blocks[-1].append(" ".join(f"|{piece.text[:left]}|".split())[1:-1])
            left -= len(piece.text)
            if left <= 0:
                break
    paragraphs = ("".join(block).strip() for block in blocks)
    return unescape_text("\n\n".join(text for text in paragraphs if text))


def unescape_text(text: str) -> str:
    """`text` with the characters that its references stand for."""
    if "&" not in text:
        return text
    return _REFERENCE.sub(lambda match: html.unescape(match[0]), text)


class _Nesting:
    """The elements that are open, as our own tags leave them: each is closed before what it stands in."""

    def __init__(self) -> None:
        self.cut = False
        self._open: list[str] = []
        self._formats = self._foreign = 0

    def tag(self, tag: Piece) -> str:
        """What stays of a tag; of an end tag, with those of what is still open inside."""
        if not tag.is_end:
            return self._start(tag)
        if tag.name not in self._open:
            return f"</{tag.name}>" if tag.name in _SELF_CLOSING else ""
        closed: list[str] = []
        while not closed or closed[-1] != tag.name:
            closed.append(self._open.pop())
            self._formats -= closed[-1] in _FORMATS
            self._foreign -= closed[-1] in _FOREIGN
        return "".join(f"</{name}>" for name in closed)

    def _start(self, tag: Piece) -> str:
        name = tag.name
        if len(tag.text) > LONGEST_TAG:
            self.cut = True
            return ""
        # In drawings and formulas every element stays open until it is closed.
        if not self._foreign and (name in _VOID or name in _SELF_CLOSING):
            return tag.text
        if len(self._open) >= DEEPEST or (name in _FORMATS and self._formats >= MOST_FORMATS):
            self.cut = True
            return ""
        self._open.append(name)
        self._formats += name in _FORMATS
        self._foreign += name in _FOREIGN
        return tag.text
