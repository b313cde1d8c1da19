"""`compare_content` shows what has changed since the version before."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from headwater.pipeline.steps.base import StepResult
from headwater.pipeline.steps.compare_content import CompareContent
from tests.pipeline.steps.harness import make_context, run_step

LONG = "<p>" + "The river is calm today. " * 40 + "</p>"


async def compared(
    tmp_path: Path, before: dict[str, Any] | None, after: dict[str, Any], **config: Any
) -> StepResult:
    context = replace(make_context(tmp_path, item=after), earlier_item=before)
    return await run_step(CompareContent(), context, config)


async def test_changed_words_are_shown_with_a_few_around_them(tmp_path: Path) -> None:
    before = {"title": "Shop", "content": f"{LONG}<p>A boat costs <b>100</b> euros.</p>{LONG}"}
    after = {"title": "Shop", "content": f"{LONG}<p>A boat costs <b>120</b> euros &amp; more.</p>{LONG}"}
    result = await compared(tmp_path, before, after)
    assert result.output == {"changed": True, "gone": ["100"], "come": ["120", "& more"]}
    [made] = result.results
    assert (made.key, made.format) == ("analysis:changes", "html")
    assert "<del>100</del><ins>120</ins> euros<ins> &amp; more</ins>." in (made.body or "")
    assert len(made.body or "") < 500


async def test_item_that_is_new_or_says_the_same_ends_the_run(tmp_path: Path) -> None:
    item = {"title": "Shop", "content": "<p>A boat</p>"}
    for before in (None, {"title": "Shop", "content": "<div>A  boat</div>"}):
        assert (await compared(tmp_path, before, item)).end_run
        kept = await compared(tmp_path, before, item, only_changes=False)
        assert (kept.end_run, kept.output["changed"]) == (False, False)
