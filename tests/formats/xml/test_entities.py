"""References of damaged documents are repaired, whatever the length of the text."""

import pytest

from headwater.formats.xml import entities
from headwater.formats.xml.entities import repair_references


@pytest.mark.parametrize("shift", range(8))
def test_repair_references_in_a_long_text_cuts_none(monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    text = "x" * shift + "a&nbsp;b & c &amp; <![CDATA[&nbsp;]]> " * 20
    whole = repair_references(text)
    monkeypatch.setattr(entities, "_PART_CHARACTERS", 11)
    assert repair_references(text) == whole


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("a &amp b &lt 3 &#8217s &#x41z", "a &amp; b &lt; 3 \u2019s Az"),
        ("Tom &ampJerry", "Tom &amp;ampJerry"),
        ("?a=1&lt=2&amp_x=3&copy=4", "?a=1&amp;lt=2&amp;amp_x=3&amp;copy=4"),
        ("x&nbsp", "x\xa0"),
        ("&#; &#x; &", "&amp;#; &amp;#x; &amp;"),
    ],
)
def test_repair_references_without_semicolons_reads_them_as_browsers_do(text: str, repaired: str) -> None:
    assert repair_references(text) == repaired
