"""Results as people read them: HTML for feeds and pages, plain text for messages. Pure."""

from typing import Any

from headwater.formats.html import sanitize_html, text_as_html
from headwater.formats.links import resolve_html
from headwater.markup import bound_html, paragraphs_of
from headwater.model import Result, StoredItem
from headwater.services.json_text import data_as_text


def text_of_item(item: StoredItem) -> tuple[str, bool]:
    """An item's text as harmless HTML, its links leading where they led at the publisher's.

    Beside it, whether something of it is left out because it is too big.
    """
    body, cut = bound_html(item.content or item.summary or "")
    return sanitize_html(resolve_html(body, item.url)), cut


def html_of(result: Result) -> str:
    """A result as harmless HTML: its body, or its data as text."""
    if result.body is not None and result.format == "html":
        return sanitize_html(result.body)
    return text_as_html(text_of(result))


def text_of(result: Result) -> str:
    """A result as plain text."""
    if result.body is None:
        return data_as_text(result.data)
    return paragraphs_of(result.body) if result.format == "html" else result.body


def title_of(result: Result) -> str | None:
    """The item's title as the result says it: a translation has one."""
    title: Any = result.data.get("title") if isinstance(result.data, dict) else None
    return title if result.kind == "translation" and isinstance(title, str) and title.strip() else None
