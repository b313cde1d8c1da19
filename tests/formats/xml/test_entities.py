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
