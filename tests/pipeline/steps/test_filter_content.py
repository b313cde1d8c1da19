import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import InputError
from headwater.pipeline.steps.base import StepError
from headwater.pipeline.steps.filter_content import FilterContent
from tests.pipeline.steps.harness import make_context, run_step

ITEM = {
    "title": "The River Rose",
    "content": "<p>Three days of <b>rain</b> in the valley.</p>",
    "author": "Ann Walker",
    "url": "https://valley.example/river",
    "language": "en-GB",
    "published_at": time.time() - 3600,
    "extra": {"categories": ["Weather", "Local"]},
}


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ({}, True),
        ({"include_keywords": ["RAIN", "snow"]}, True),
        ({"include_keywords": ["snow"]}, False),
        ({"exclude_keywords": ["river rose"]}, False),
        ({"exclude_keywords": ["<b>"]}, True),
        ({"include_keywords": ["rain"], "look_in": ["title"]}, False),
        ({"include_patterns": [r"(?i)\briver\b"]}, True),
        ({"include_patterns": [r"^river"]}, False),
        ({"exclude_patterns": [r"\d days", r"v[ae]lley"]}, False),
        ({"languages": ["en"]}, True),
        ({"languages": ["de", "zh"]}, False),
        ({"authors": ["ann walker"]}, True),
        ({"exclude_authors": ["Ann Walker"]}, False),
        ({"categories": ["weather"]}, True),
        ({"categories": ["sport"]}, False),
        ({"exclude_categories": ["LOCAL"]}, False),
        ({"max_age_seconds": 7200}, True),
        ({"max_age_seconds": 60}, False),
        ({"min_age_seconds": 60}, True),
        ({"min_age_seconds": 7200}, False),
        ({"min_characters": 10}, True),
        ({"min_characters": 1000}, False),
        ({"max_characters": 10}, False),
        ({"where": "content_item.author == 'Ann Walker'"}, True),
        ({"where": "contains(content_item.extra.categories, 'Sport')"}, False),
        ({"where": "previous_steps.step_1_analyze.result.score >= `7`"}, True),
        ({"where": "previous_steps.step_1_analyze.result.score > `7`"}, False),
    ],
)
async def test_rules(tmp_path: Path, rules: dict[str, Any], kept: bool) -> None:
    previous = {"step_1_analyze": {"result": {"score": 7}}}
    result = await run_step(FilterContent(), make_context(tmp_path, item=ITEM, previous=previous), rules)
    assert result.output["kept"] is kept
    assert result.end_run is not kept
    if not kept:
        assert result.output["rule"] in rules
        assert result.output["reason"]


async def test_no_pattern_and_no_text_makes_it_hang(tmp_path: Path) -> None:
    item = {"title": "a" * 50_000 + "b", "content": "x" * 1_000_000}
    rules = {"exclude_patterns": [r"^(a+)+$", r"(x+x+)+y", r"(a|aa)+c"]}
    began = time.process_time()
    result = await run_step(FilterContent(), make_context(tmp_path, item=item), rules)
    assert result.output["kept"]
    assert time.process_time() - began < 10


@given(words=st.lists(st.text(min_size=1), min_size=1, max_size=4), title=st.text())
async def test_including_and_excluding_are_opposites(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], title: str
) -> None:
    context = make_context(tmp_path_factory.getbasetemp(), item={"title": title})
    place = {"look_in": ["title"]}
    included = await run_step(FilterContent(), context, {"include_keywords": words, **place})
    excluded = await run_step(FilterContent(), context, {"exclude_keywords": words, **place})
    assert included.output["kept"] is not excluded.output["kept"]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"include_patterns": ["("]}, "include_patterns: [(] is not a regular expression"),
        ({"exclude_patterns": [r"(a)\1"]}, "backreferences"),
        ({"exclude_patterns": [r"(?=a)"]}, "look-around"),
        ({"where": "content_item.["}, "where: .* is not a JMESPath expression"),
    ],
)
async def test_what_cannot_work_is_refused_when_saved(
    tmp_path: Path, rules: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        await run_step(FilterContent(), make_context(tmp_path), rules)


async def test_an_expression_that_does_not_suit_the_item(tmp_path: Path) -> None:
    context = make_context(tmp_path, item={"title": None})
    with pytest.raises(StepError, match="where: "):
        await run_step(FilterContent(), context, {"where": "length(content_item.title) > `3`"})
