"""How much of a result is stored: so many items, and of each so much. Pure.

Publishers decide how long their texts are and how many; what is stored of them is read, indexed, compared and shown
again and again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from headwater.collectors.base import FetchResult
from headwater.errors import Text
from headwater.formats.links import is_followable
from headwater.markup import LONGEST_LINE, LONGEST_TEXT, LONGEST_URL, MOST_PARTS, MOST_TAGS, bound_html
from headwater.model import NO_METADATA, Enclosure, Item

T = TypeVar("T")

MOST_CHARACTERS = 20_000_000  # of all the texts of one visit's items
LONGEST_EXTRAS = 200_000  # characters of what an item says beyond its text
_LINES = ("external_id", "title", "author", "language")
_TEXTS = ("summary", "content")
_URLS = ("url", "image_url", "comments_url")


def bound_result(result: FetchResult, most_items: int) -> tuple[FetchResult, Text | None]:
    """What is stored of a result, and in words what is not."""
    result = _with_safe_links(result)
    items = result.items[:most_items]
    beyond = result.beyond_count + len(result.items) - len(items)
    bounded = bound_items(items)
    if not beyond:
        return (result if bounded is items else replace(result, items=bounded)), None
    note = Text(
        "items left out, beyond the {most} that are read of one document: {count} (HEADWATER_MAX_ITEMS)",
        count=beyond,
        most=len(items),
    )
    return replace(result, items=bounded), note


def _with_safe_links(result: FetchResult) -> FetchResult:
    """The result whose source says no address of itself that would run something when it is followed."""
    about = result.metadata
    if about is NO_METADATA:
        return result
    names = ("site_url", "icon_url")
    traps: dict[str, Any] = {name: None for name in names if not is_followable(getattr(about, name) or "")}
    return replace(result, metadata=replace(about, **traps)) if traps else result


def bound_items(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items, each cut where it is too long; the same tuple when none is."""
    left = MOST_CHARACTERS
    found: list[Item] = []
    for item in items:
        bounded = item if _is_usual(item) else _bound(_without_traps(item))
        size = len(bounded.summary or "") + len(bounded.content or "")
        if size > left:
            bounded = replace(bounded, summary=None, content=None, cut=True)
        else:
            left -= size
        found.append(bounded)
    return items if all(map(lambda one, other: one is other, items, found)) else tuple(found)


def _is_usual(item: Item) -> bool:
    """Whether nothing of it can be too much: so that the many that are so cost little."""
    return (
        all(_is_short(text) for text in (item.summary, item.content))
        and len(item.external_id) + len(item.title) + len(item.author or "") < LONGEST_LINE
        and all(_is_usual_url(url) for url in (item.url, item.image_url, item.comments_url))
        and len(item.language or "") < LONGEST_LINE
        and (not item.categories or _are_usual_lines(item.categories))
        and not item.enclosures
        and not item.extras
    )


def _are_usual_lines(lines: Sequence[str]) -> bool:
    return len(lines) <= MOST_PARTS and max(map(len, lines)) <= LONGEST_LINE


def _is_usual_url(url: str | None) -> bool:
    return url is None or (len(url) <= LONGEST_URL and is_followable(url))


def _without_traps(item: Item) -> Item:
    """The item without addresses that would run something when they are followed."""
    traps: dict[str, Any] = {name: None for name in _URLS if not is_followable(getattr(item, name) or "")}
    files = tuple(each for each in item.enclosures if is_followable(each.url))
    if not traps and len(files) == len(item.enclosures):
        return item
    return replace(item, **traps, enclosures=files)


def _is_short(text: str | None) -> bool:
    return text is None or (
        len(text) <= LONGEST_TEXT and (len(text) < MOST_TAGS or text.count("<") <= MOST_TAGS)
    )


def _bound(item: Item) -> Item:
    changes: dict[str, Any] = {}
    for name in _LINES:
        if len(getattr(item, name) or "") > LONGEST_LINE:
            changes[name] = getattr(item, name)[:LONGEST_LINE]
    for name in _TEXTS:
        if not _is_short(text := getattr(item, name)):
            changes[name] = bound_html(text).body
    for name in _URLS:
        if len(getattr(item, name) or "") > LONGEST_URL:
            changes[name] = None  # half an address leads nowhere
    categories = tuple(_fitting(each[:LONGEST_LINE] for each in item.categories))
    files = tuple(_fitting(_bound_file(each) for each in item.enclosures if len(each.url) <= LONGEST_URL))
    if categories != item.categories:
        changes["categories"] = categories
    if files != item.enclosures:
        changes["enclosures"] = files
    if item.extras and _weight(item.extras) > LONGEST_EXTRAS:
        changes["extras"] = None
    return replace(item, **changes, cut=True) if changes else item


def _weight(value: Any) -> int:
    """About how many characters a value takes, or more than are allowed."""
    weight, waiting = 0, [value]
    while waiting and weight <= LONGEST_EXTRAS:
        each = waiting.pop()
        weight += 4 + (len(each) if isinstance(each, str | list | dict) else 0)
        if isinstance(each, dict):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple):
            waiting += each
    return weight


def _fitting(parts: Iterable[T]) -> list[T]:
    """As many of the parts as there may be."""
    return [part for _, part in zip(range(MOST_PARTS), parts, strict=False)]


def _bound_file(file: Enclosure) -> Enclosure:
    if max(len(file.title or ""), len(file.media_type or "")) <= LONGEST_LINE:
        return file
    return replace(
        file, title=(file.title or "")[:LONGEST_LINE], media_type=(file.media_type or "")[:LONGEST_LINE]
    )
