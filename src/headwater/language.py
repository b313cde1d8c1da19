"""The two languages Headwater speaks, and how a text finds its translation.

The English text is the key; the Chinese one stands beside it in `headwater/chinese.toml`. Whoever writes a
text for people passes it through `translate`; a test fails when a text has no translation.
"""

import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

Language = Literal["en", "zh"]


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


def translate(text: str, language: Language | None = None) -> str:
    """`text` in the wished language, itself where there is no translation."""
    if (language or process_language()) == "zh":
        return _chinese().get(text, text)
    return text
