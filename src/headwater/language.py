"""The two languages Headwater speaks, and how a text finds its translation.

The English text is the key; the Chinese one stands beside it in `headwater/chinese.toml`. Every text
for people passes through `translate`; a text without a translation is shown in English, and `make release-check` lists
it. Where a number decides the word, the text has both: `{count} {count:run|runs}`.
"""

import os
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from string import Formatter
from typing import Any, Literal

Language = Literal["en", "zh"]


class _Counting(Formatter):
    """Fills `{count:run|runs}` with the first for one, with the second for any other number."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, bar, many = format_spec.partition("|")
        if not bar:
            return str(super().format_field(value, format_spec))
        return one if value == 1 else many


class Translated(str):
    """A text in the reader's language, with blanks to fill."""

    __slots__ = ()

    def format(self, *args: Any, **values: Any) -> str:
        if "|" not in self:
            return super().format(*args, **values)
        return _Counting().vformat(self, args, values)


@cache
def _chinese() -> dict[str, str]:
    path = Path(__file__).with_name("chinese.toml")
    return {
        entry["en"]: entry["zh"] for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("text", [])
    }


_chosen: Language | None = None


def choose_language(language: Language | None) -> None:
    """Speak `language` in this process from now on; None goes by the environment again."""
    global _chosen  # noqa: PLW0603 - a process has one person at its terminal
    _chosen = language


def process_language() -> Language:
    """The language of the person at this terminal: as chosen, else HEADWATER_LANGUAGE, else the locale."""
    return _chosen or _environment_language()


@cache
def _environment_language() -> Language:
    for name in ("HEADWATER_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def preferred_language(accept_language: str) -> Language:
    """The language a browser asks for in its Accept-Language header."""
    best, best_weight = "en", 0.0
    for part in accept_language.split(","):
        tag, _, parameters = part.strip().partition(";")
        try:
            weight = float(parameters.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        primary = tag.split("-")[0].lower()
        if primary in ("en", "zh") and weight > best_weight:
            best, best_weight = primary, weight
    return "zh" if best == "zh" else "en"


def translate(text: str, language: Language | None = None) -> Translated:
    """`text` in the wished language, itself where there is no translation."""
    if (language or process_language()) == "zh":
        return Translated(_chinese().get(text, text))
    return Translated(text)


ABOUT_ADDRESS = "{url}: "


@cache
def _told_of_addresses() -> tuple[tuple[str, tuple[tuple[str, str | None], ...]], ...]:
    """What is said of addresses, in the pieces between which the blanks are; the longest text first."""
    return tuple(
        (english, tuple((text, name) for text, name, _, _ in Formatter().parse(english)))
        for english in sorted(_chinese(), key=len, reverse=True)
        if english.startswith(ABOUT_ADDRESS) and english != ABOUT_ADDRESS + "{problem}"
    )


def retell(text: str, language: Language | None = None) -> str:
    """A text about an address that was stored in English, in the reader's language."""
    if (language or process_language()) == "en":
        return text
    return _in_chinese(text)


@lru_cache(maxsize=1_000)
def _in_chinese(text: str) -> str:
    for english, pieces in _told_of_addresses():
        blanks = _find_blanks(text, pieces)
        if blanks is not None:
            told = Formatter().parse(_chinese()[english])
            return "".join(piece + (blanks[name] if name else "") for piece, name, _, _ in told)
    return text


def _find_blanks(text: str, pieces: tuple[tuple[str, str | None], ...]) -> dict[str, str] | None:
    """What the blanks were filled with, in time linear in the text; None if it is another text."""
    blanks: dict[str, str] = {}
    waiting: str | None = None
    at = 0
    for literal, name in pieces:
        found = text.find(literal, at)
        if found < 0 or (waiting is None and found != at):
            return None
        if waiting is not None:
            blanks.setdefault(waiting, text[at:found] if literal else text[at:])
        at, waiting = found + len(literal), name
    if waiting is not None:
        blanks.setdefault(waiting, text[at:])
        at = len(text)
    return blanks if at == len(text) and " " not in blanks["url"] else None
