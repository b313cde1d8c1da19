"""A watched page as items: itself, which changes with it, or each time it begins to say something.

What always changes (times, counters, advertisements) is left out of what is compared, so that a new version means that
the page says something else.
"""

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.formats.expressions import evaluate
from headwater.formats.html import escape_text
from headwater.formats.limits import load_json
from headwater.formats.pages.watch import Watched, first_number, read_watched
from headwater.model import Item

LONGEST_VALUE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Watch:
    """What is watched, and what counts as news."""

    selector: str | None = None
    ignore: tuple[str, ...] = ()
    says: tuple[str, ...] = ()  # news: that one of these begins to stand there
    number: bool = False  # news: that the first number is another one
    below: float | None = None  # … and lower than this
    above: float | None = None
    value: str | None = None  # a JMESPath expression, for JSON


@dataclass(frozen=True, slots=True)
class Seen:
    """What a visit has seen: the items that are news, and what to remember."""

    items: tuple[Item, ...]
    title: str
    memory: dict[str, Any]


def watch_page(
    body: bytes,
    watch: Watch,
    before: dict[str, Any],
    *,
    url: str,
    content_type: str | None = None,
    clock: Callable[[], float] = time.time,
) -> Seen | None:
    """What is new on a page since `before`; None when what is watched is not there."""
    watched = _read(body, watch, url, content_type)
    if watched is None:
        return None
    if watch.says:
        return _when_it_says(watched, watch.says, before, url, clock())
    if watch.number:
        return _when_number_changes(watched, watch, before, url)
    mark = hashlib.blake2b(watched.text.encode("utf-8", "replace"), digest_size=16).hexdigest()
    memory = {"watched": mark}
    if before.get("watched") == mark:
        return Seen((), watched.title, memory)
    return Seen((_item(watched, url, watched.html),), watched.title, memory)


def _read(body: bytes, watch: Watch, url: str, content_type: str | None) -> Watched | None:
    if watch.value is None:
        return read_watched(body, watch.selector, watch.ignore, url=url, content_type=content_type)
    found = evaluate(watch.value, load_json(body))
    if found is None:
        return None
    text = _as_text(found)
    return Watched("", f"<p>{escape_text(text)}</p>", (text,))


def _as_text(found: Any) -> str:
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)[:LONGEST_VALUE]


def _item(watched: Watched, url: str, content: str, title: str | None = None) -> Item:
    return Item(external_id=url, url=url, title=title or watched.title or url, content=content)


def _when_it_says(
    watched: Watched, phrases: Sequence[str], before: dict[str, Any], url: str, now: float
) -> Seen:
    text = _folded(watched.text)
    said = [phrase for phrase in phrases if _folded(phrase) in text]
    known = before.get("said")
    new = [phrase for phrase in said if not isinstance(known, list) or phrase not in known]
    items = tuple(
        Item(
            external_id=f"{url}#{phrase}@{int(now)}",
            url=url,
            title=f"“{phrase}”: {watched.title or url}",
            content=f"<p>{escape_text(_around(watched.text, phrase))}</p>",
            published_at=now,
        )
        for phrase in new
    )
    return Seen(items, watched.title, {"said": said})


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _around(text: str, phrase: str) -> str:
    """The line in which a phrase stands."""
    return next((line for line in text.split("\n") if _folded(phrase) in _folded(line)), phrase)[
        :LONGEST_VALUE
    ]


def _when_number_changes(watched: Watched, watch: Watch, before: dict[str, Any], url: str) -> Seen:
    number = first_number(watched.text)
    if number is None:
        return Seen((), watched.title, before)
    memory = {"number": number}
    was = before.get("number")
    counts = (watch.below is None or number < watch.below) and (watch.above is None or number > watch.above)
    if number == was or not counts:
        return Seen((), watched.title, memory)
    shown = re.sub(r"\.0\Z", "", str(number))
    change = "" if was is None else f"<del>{escape_text(re.sub(r'[.]0$', '', str(was)))}</del> → "
    title = f"{shown} · {watched.title}" if watched.title else shown
    return Seen((_item(watched, url, f"<p>{change}<ins>{shown}</ins></p>", title),), watched.title, memory)
