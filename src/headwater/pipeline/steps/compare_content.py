"""`compare_content`: what has changed in an item since its version before, word by word."""

import asyncio
from html import escape
from typing import Any

from pydantic import Field

from headwater.formats.compare import COMPARED_CHARACTERS, compare
from headwater.model import Result
from headwater.pipeline.steps.base import Step, StepConfig, StepContext, StepResult
from headwater.pipeline.steps.reading import text_of_item

CONTEXT_CHARACTERS = 80  # of what stayed the same, on either side of a change


class CompareConfig(StepConfig):
    only_changes: bool = Field(
        default=True, description="The run ends here for items that are new, or whose text is the same."
    )


class CompareContent(Step):
    step_type = "compare_content"
    config_model = CompareConfig
    timeout_seconds = 60.0

    async def run(self, context: StepContext, config: CompareConfig) -> StepResult:
        if context.earlier_item is None:
            return StepResult({"changed": False, "reason": "it is new"}, end_run=config.only_changes)
        parts = await asyncio.to_thread(_compare, context.earlier_item, context.content_item)
        if all(kind == "same" for kind, _ in parts):
            return StepResult(
                {"changed": False, "reason": "its text is the same"}, end_run=config.only_changes
            )
        gone = [text.strip() for kind, text in parts if kind == "gone" and text.strip()]
        come = [text.strip() for kind, text in parts if kind == "come" and text.strip()]
        output = {"changed": True, "gone": gone, "come": come}
        return StepResult(output, results=(Result("analysis", "changes", body=_html(parts), format="html"),))


def _compare(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[Any, str]]:
    return compare(_text(before), _text(after))


def _text(item: dict[str, Any]) -> str:
    title = str(item.get("title") or "")
    return f"{title}\n\n{text_of_item({**item, 'title': None})}".strip()[:COMPARED_CHARACTERS]


def _html(parts: list[tuple[Any, str]]) -> str:
    """What came and what is gone, each with a few words around it."""
    shown = []
    for place, (kind, text) in enumerate(parts):
        if kind == "gone":
            shown.append(f"<del>{escape(text)}</del>")
        elif kind == "come":
            shown.append(f"<ins>{escape(text)}</ins>")
        else:
            shown.append(escape(_shortened(text, is_first=place == 0, is_last=place == len(parts) - 1)))
    return "<p>" + "".join(shown).replace("\n\n", "</p>\n<p>") + "</p>"


def _shortened(text: str, *, is_first: bool, is_last: bool) -> str:
    most = CONTEXT_CHARACTERS
    if len(text) <= 2 * most + 10:
        return text
    if is_first:
        return "… " + text[-most:]
    if is_last:
        return text[:most] + " …"
    return f"{text[:most]} … {text[-most:]}"
