"""Hits of a search, marked in titles, excerpts and articles. Pure."""

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

from headwater.errors import InputError
from headwater.markup import read_pieces
from headwater.store.reading.search import read_query

EXCERPT_CHARACTERS = 220
BEFORE_A_HIT = 60  # characters of an excerpt
MOST_MARKED_TERMS = 20

Hits = re.Pattern[str]


def hits_of(search: str | None) -> Hits | None:
    """What to mark of a search; None: nothing."""
    if not search:
        return None
    try:
        terms = [term for term in read_query(search) if not term.excluded][:MOST_MARKED_TERMS]
    except InputError:  # a search for nothing
        return None
    patterns = []
    for term in terms:
        words = r"[\W_]{0,3}".join(map(re.escape, term.words))
        is_cjk = not term.words[0][0].isascii()
        begin, end = ("", "") if is_cjk else (r"\b", r"\w{0,40}" if term.prefix else r"\b")
        patterns.append(f"{begin}{words}{end}")
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def mark_text(text: str, hits: Hits | None) -> Markup:
    """A text as HTML, with its hits marked."""
    if hits is None:
        return escape(text)
    shown: list[str] = []
    end = 0
    for found in hits.finditer(text):
        shown += (escape(text[end : found.start()]), "<mark>", escape(found[0]), "</mark>")
        end = found.end()
    return Markup("".join((*shown, escape(text[end:]))))  # noqa: S704 - escaped above


def mark_html(html: str, hits: Hits | None) -> str:
    """Sanitised HTML with the hits in its texts marked."""
    if hits is None:
        return html
    return "".join(
        piece.text if piece.name else hits.sub(lambda found: f"<mark>{found[0]}</mark>", piece.text)
        for piece in read_pieces(html)
    )


def excerpt_of(text: str, hits: Hits | None) -> str:
    """The beginning of a text, or what stands around its first hit."""
    words = " ".join(text.split())
    found = hits.search(words) if hits else None
    if found is None or found.end() < EXCERPT_CHARACTERS:
        return _cut(words, EXCERPT_CHARACTERS)
    begin = max(0, found.start() - BEFORE_A_HIT)
    return "…" + _cut(words[begin:], EXCERPT_CHARACTERS)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def minutes_to_read(texts: Sequence[str]) -> int:
    """How long a text takes: 230 words, or 400 Chinese characters, a minute."""
    words = sum(len(_WORDS.findall(text)) for text in texts)
    characters = sum(len(_CHARACTERS.findall(text)) for text in texts)
    return max(1, round(words / 230 + characters / 400))


_CHARACTERS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORDS = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
