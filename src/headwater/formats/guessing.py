"""Where the items of a JSON document are, and what is what in them: a mapping to start with. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headwater.formats.dates import parse_date
from headwater.formats.tables import guess_parts

MOST_DEPTH: Final = 4
LOOK_AT: Final = 20  # items of a list
_NEXT: Final = (
    "next",
    "next_page",
    "nextPage",
    "next_url",
    "nextUrl",
    "next_cursor",
    "nextCursor",
    "nextPageToken",
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def propose_mapping(document: Any) -> dict[str, Any] | None:
    """The config that reads the items of a JSON document; None where nothing in it looks like a list of items."""
    best: tuple[int, dict[str, Any]] | None = None
    for path, listed in _lists(document, "", 0):
        config = _mapping(listed)
        if config is None:
            continue
        score = len(config) + min(len(listed), LOOK_AT)
        if best is None or score > best[0]:
            best = score, {"items": path or "@", **config}
    if best is None:
        return None
    config = best[1]
    if cursor := _cursor(document):
        config |= {"pagination": "cursor", "cursor": cursor}
    return config


def _lists(value: Any, path: str, depth: int) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    if isinstance(value, list):
        objects = [each for each in value[:LOOK_AT] if isinstance(each, Mapping)]
        if objects and len(objects) == len(value[:LOOK_AT]):
            yield path, objects
    elif isinstance(value, Mapping) and depth < MOST_DEPTH:
        for key, each in list(value.items())[:100]:
            name = _quoted(str(key))
            yield from _lists(each, f"{path}.{name}" if path else name, depth + 1)


def _quoted(key: str) -> str:
    return key if _NAME.match(key) else '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _mapping(objects: list[Mapping[str, Any]]) -> dict[str, str] | None:
    """Which keys of these objects mean what; None where they have neither a title nor an address."""
    simple = [
        key
        for key in dict.fromkeys(str(key) for each in objects for key in each)
        if any(isinstance(each.get(key), str | int | float) for each in objects)
        or (key.lower() in ("title", "tags", "categories", "labels", "author", "authors", "user", "owner"))
    ]
    found: dict[str, str] = {part: _quoted(key) for part, key in guess_parts(simple).items()}
    for part, key in list(guess_parts(simple).items()):
        values = [each.get(key) for each in objects if each.get(key) not in (None, "")]
        better = _fitting(part, found[part], values)
        if better is None:
            del found[part]
        else:
            found[part] = better
    if not found.keys() & {"title", "url"}:
        return None
    return found


def _fitting(part: str, path: str, values: list[Any]) -> str | None:
    """The path to what a part needs; None where its values are nothing of the kind."""
    if not values:
        return None
    first = values[0]
    if isinstance(first, Mapping):  # {"rendered": …} as in WordPress, {"login": …} as of people
        inner = next(
            (key for key in ("rendered", "name", "login", "username", "title") if key in first), None
        )
        return f"{path}.{inner}" if inner and part in ("title", "author", "content", "summary") else None
    if isinstance(first, list):
        if part not in ("categories", "author") or not first:
            return None
        if isinstance(first[0], str):
            return path
        inner = next(
            (key for key in ("name", "title", "label") if isinstance(first[0], Mapping) and key in first[0]),
            None,
        )
        return f"{path}[].{inner}" if inner else None
    if part == "url":
        return path if isinstance(first, str) and first.startswith(("http", "/")) else None
    if part in ("date", "updated"):
        is_date = (isinstance(first, int | float) and first > 1e8) or (
            isinstance(first, str) and parse_date(first)
        )
        return path if is_date else None
    if part == "image":
        return path if isinstance(first, str) and first.startswith(("http", "/")) else None
    return path


def _cursor(document: Any) -> str | None:
    """Where the document says what comes next."""
    for path in ("", "links", "meta", "paging", "pagination", "_links", "pageInfo"):
        inside = document.get(path) if path and isinstance(document, Mapping) else document
        if not isinstance(inside, Mapping):
            continue
        for name in _NEXT:
            value = inside.get(name)
            if isinstance(value, str) and value:
                return f"{path}.{name}" if path else name
            if isinstance(value, Mapping) and isinstance(value.get("href"), str):
                return f"{path}.{name}.href" if path else f"{name}.href"
    return None
