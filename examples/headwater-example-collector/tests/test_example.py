"""The example's own tests: `pytest examples/headwater-example-collector`, with Headwater and the example installed."""

import asyncio
from pathlib import Path

import pytest
from headwater_example.lines import parse
from headwater_example.words import CountWords, CountWordsConfig

from headwater.errors import ParseError
from headwater.pipeline.steps.base import StepContext

PAGE = b"# Changes\n- faster\n\n- kinder\n"


def test_every_line_is_an_item() -> None:
    assert [item.title for item in parse(PAGE, "https://example.org/")] == [
        "# Changes",
        "- faster",
        "- kinder",
    ]


def test_the_marker_chooses_lines() -> None:
    items = parse(PAGE, "https://example.org/", marker="-")
    assert [item.title for item in items] == ["faster", "kinder"]


def test_a_page_of_html_is_refused() -> None:
    with pytest.raises(ParseError):
        parse(b"<html>Not found</html>", "https://example.org/")


def test_words_are_counted_without_tags(tmp_path: Path) -> None:
    context = StepContext({"content": "<p>one two</p>"}, {}, {}, "key", tmp_path)
    result = asyncio.run(CountWords().run(context, CountWordsConfig()))
    assert result.output == {"words": 2}
