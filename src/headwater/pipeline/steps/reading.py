"""What later steps read of an item: its best text, its media, its dates. Pure.

The item itself is never changed by a step: what a step found out is in its output, and a reader who wants the better
text asks here, where the order of preference is written down once.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headwater.formats.html import text_as_html
from headwater.markup import paragraphs_of
from headwater.pipeline.steps.base import StepContext
from headwater.services.json_text import data_as_text

TOLD_KINDS = frozenset({"analysis", "summary", "translation"})  # what messages carry
TOLD_CHARACTERS = 2_000  # of an item's text, in a message that has nothing better


def text_of(context: StepContext) -> str:
    """The fullest text there is: a transcript, else the article's own page, else what the source delivered.

    What this run has made comes before what an earlier one has.
    """
    for step_type in ("transcribe_content", "enrich_content"):
        text = context.output_of(step_type).get("text")
        if text:
            return str(text)
    for key in ("transcript", "full_text"):
        if text := text_of_result(context.content_item, key):
            return text
    return text_of_item(context.content_item)


def text_of_item(item: dict[str, Any]) -> str:
    """The text of an item as its source delivered it."""
    for name in ("content", "summary", "title"):
        if item.get(name):
            return paragraphs_of(str(item[name]))
    return ""


def text_of_result(item: dict[str, Any], key: str) -> str:
    """The text of one of an item's results; empty when there is none."""
    result = (item.get("results") or {}).get(key) or {}
    body = result.get("body") or ""
    return paragraphs_of(body) if result.get("format") == "html" else str(body)


def language_of(context: StepContext) -> str | None:
    for found in (
        context.content_item.get("language"),
        context.output_of("transcribe_content").get("language"),
        context.output_of("enrich_content").get("language"),
    ):
        if found:
            return str(found)
    return None


def part_of(item: dict[str, Any], name: str) -> Any:
    """A part of an item that may stand in it or in its `extra`."""
    value = item.get(name)
    extra = item.get("extra")
    return extra.get(name) if value is None and isinstance(extra, dict) else value


def media_url(item: dict[str, Any]) -> str | None:
    """What to download for an item: its first video or audio file, else its own page."""
    for enclosure in part_of(item, "enclosures") or ():
        kind = str(enclosure.get("media_type") or "")
        if kind.startswith(("video/", "audio/")) and enclosure.get("url"):
            return str(enclosure["url"])
    return str(item["url"]) if item.get("url") else None


def time_of(value: Any) -> float | None:
    """A time in a context, in Unix seconds: it is one already, or ISO 8601."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


@dataclass(frozen=True, slots=True)
class Made:
    """What a message says of an item: its title, and what the run has made of it, or else its text."""

    title: str
    text: str
    html: str


def made_in_run(context: StepContext) -> Made:
    """The newest analysis, summary or translation of this run; without one, the beginning of the item's text."""
    item = context.content_item
    title = str(item.get("title") or item.get("url") or "")
    digest = context.output_of("summarize_feed")
    if digest.get("text") and "count" in digest:
        text = str(digest["text"])
        return Made(
            str(digest["title"]), text, text if digest.get("format") == "html" else text_as_html(text)
        )
    made = [
        each
        for each in (item.get("results") or {}).values()
        if each["kind"] in TOLD_KINDS and each["run_id"] == context.run_id and context.run_id is not None
    ]
    if not made:
        text = text_of(context)
        text = text if len(text) <= TOLD_CHARACTERS else text[:TOLD_CHARACTERS].rstrip() + "…"
        return Made(title, text, text_as_html(text))
    newest = max(made, key=lambda each: each["step_index"])
    data = newest["data"] if isinstance(newest["data"], dict) else {}
    if newest["kind"] == "translation" and data.get("title"):
        title = str(data["title"])
    if newest["body"] is None:
        text = data_as_text(newest["data"])
        return Made(title, text, text_as_html(text))
    if newest["format"] == "html":
        return Made(title, paragraphs_of(newest["body"]), newest["body"])
    return Made(title, newest["body"], text_as_html(newest["body"]))


def values_of(context: StepContext, *, max_characters: int | None = None) -> dict[str, Any]:
    """The blanks of every template: the context's three parts, the item as `item`, and its best `text`.

    `title`, `result`: what a message says, for instance the translated title and the translation.
    """
    made = made_in_run(context)
    return {
        "content_item": context.content_item,
        "item": context.content_item,
        "results": context.content_item.get("results") or {},
        "previous_steps": context.previous_steps,
        "runtime_config": context.runtime_config,
        "text": text_of(context)[:max_characters],
        "title": made.title,
        "result": made.text,
    }
