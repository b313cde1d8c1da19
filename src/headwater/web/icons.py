"""Icons as SVG text: the symbols of static/icons.svg, and a letter where a source has no picture."""

import unicodedata
from functools import cache
from hashlib import blake2b
from pathlib import Path

from markupsafe import Markup, escape


@cache
def _symbols() -> dict[str, str]:
    text = Path(__file__).with_name("static").joinpath("icons.svg").read_text(encoding="utf-8")
    symbols = (each.partition("</symbol>")[0] for each in text.split('<symbol id="')[1:])
    return dict(each.split('">', 1) for each in symbols)


@cache
def icon(name: str, size: str = "") -> Markup:
    """An icon, which stands beside a word: screen readers skip it. `size`: "s" is small, "l" large."""
    return Markup(  # noqa: S704 - our own file
        f'<svg class="i {size}" viewBox="0 0 24 24" aria-hidden="true">{_symbols()[name]}</svg>'
    )


def letter_icon(name: str, size: str = "") -> Markup:
    """The first letter of a name on a colour that is always the same for it."""
    letter = next((each for each in name if unicodedata.category(each)[0] in "LN"), "#").upper()
    hue = blake2b(name.encode(), digest_size=2).digest()
    degrees = int.from_bytes(hue, "big") % 360
    return Markup(
        '<svg class="fav {size}" viewBox="0 0 32 32" aria-hidden="true">'
        '<rect width="32" height="32" fill="oklch(.52 .1 {hue})"/><text x="16" y="23">{letter}</text></svg>'
    ).format(size=size, hue=degrees, letter=escape(letter))
