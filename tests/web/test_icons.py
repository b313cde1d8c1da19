"""Icons are drawn from one file; a source without a picture has its letter."""

import re

from headwater.web import icons
from headwater.web.pages.frame import PLACES, RUN_LOOKS, STATE_ICONS
from tests.test_language import PACKAGE


def test_every_icon_that_pages_name_exists() -> None:
    named = {symbol for _, _, symbol in PLACES} | {look[1] for look in RUN_LOOKS.values()}
    named |= set(STATE_ICONS.values())
    for path in (PACKAGE / "web" / "templates").glob("*.html"):
        named |= set(re.findall(r"\b(?:icon|empty)\('([a-z]+)'", path.read_text(encoding="utf-8")))
    for name in named:
        assert icons.icon(name).startswith("<svg"), name


def test_letter_icon_has_the_first_letter_and_always_the_same_colour() -> None:
    assert ">半</text>" in icons.letter_icon("半山科技")
    assert ">T</text>" in icons.letter_icon("“the small ledger”")
    assert ">#</text>" in icons.letter_icon("<…>")
    assert icons.letter_icon("a") == icons.letter_icon("a")
