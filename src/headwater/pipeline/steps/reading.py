"""What later steps read of an item: its best text, its media, its dates. Pure.

The item itself is never changed by a step: what a step found out is in its output, and whoever wants the better
text asks here, where the order of preference is written down once.
"""

from datetime import UTC, datetime
from typing import Any

from headwater.formats.html import plain_text
from headwater.pipeline.steps.base import StepContext


def text_of(context: StepContext) -> str:
    """The fullest text there is: a transcript, else the article's own page, else what the source delivered."""
    for step_type in ("transcribe_content", "enrich_content"):
        text = context.output_of(step_type).get("text")
        if text:
            return str(text)
    return text_of_item(context.content_item)


def text_of_item(item: dict[str, Any]) -> str:
    """The text of an item as its source delivered it."""
    for name in ("content", "summary", "title"):
        if item.get(name):
            return plain_text(str(item[name]))
    return ""


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
