"""Reads JSON Feed 1.0 and 1.1.

Whatever has the wrong type is as good as absent. Damaged JSON is read as far as possible; what is not a JSON object at
all is an error, and so is a damaged one without items.
"""

from typing import Any

import orjson

from headwater.errors import FailureKind, ParseError
from headwater.formats.broken_json import read_broken_json
from headwater.formats.charset import decode
from headwater.formats.dates import parse_date
from headwater.formats.feeds.extras.clean import clean_extras
from headwater.formats.feeds.extras.vocabulary import EXTENSIONS, JSON_EXTENSIONS
from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.scope import unique
from headwater.formats.html import collapse, escape_text
from headwater.formats.limits import MOST_ENTRIES, load_json
from headwater.formats.links import join, resolve_html
from headwater.model import Enclosure, Hints, Repair

Object = dict[str, Any]

OWN = "_headwater"  # the extension for what JSON Feed has no keys for


def read_json_feed(data: bytes, *, url: str | None = None, content_type: str | None = None) -> Feed:
    """The feed in `data`."""
    document, damage = _load(data, content_type)
    if not isinstance(document, dict):
        raise ParseError("This is JSON, but not a JSON Feed.")
    version = _text(document, "version") or ""
    if "jsonfeed.org" not in version and not _has_contents(document):
        raise ParseError("This is JSON, but not a JSON Feed.")
    base = url or _text(document, "feed_url") or _text(document, "home_page_url")
    own = _object(document, OWN)
    authors = _authors(document, base)
    items = _objects(document, "items")
    if not items and (damage or document.get("items")):
        raise ParseError(
            "The JSON is damaged: {reason}.",
            kind=FailureKind.MALFORMED,
            reason=(damage[0].detail if damage else None) or "no items",
        )
    return Feed(
        format="json-1.0" if version.rstrip("/").endswith("/1") else "json-1.1",
        title=collapse(_text(document, "title") or ""),
        id=_text(own, "id"),
        link=join(base, _text(document, "home_page_url")),
        description=_description(document),
        language=_text(document, "language"),
        icon=join(base, _text(document, "favicon")),
        image=join(base, _text(document, "icon")),
        authors=authors,
        categories=unique(_strings(own, "categories")),
        generator=_text(own, "generator"),
        rights=_text(own, "rights"),
        published=parse_date(_text(own, "date_published")),
        updated=parse_date(_text(own, "date_modified")),
        self_link=join(base, _text(document, "feed_url")),
        next_link=join(base, _text(document, "next_url")),
        hub_links=unique(join(base, _text(hub, "url")) or "" for hub in _objects(document, "hubs")),
        hints=_hints(_object(own, "hints")),
        extras=_extras(own, document),
        repairs=(*damage, *_repairs(version)),
        entries=tuple(_read_item(item, base, authors) for item in items[:MOST_ENTRIES]),
        left_out_count=max(len(items) - MOST_ENTRIES, 0),
    )


def _repairs(version: str) -> tuple[Repair, ...]:
    if version.rstrip("/").endswith(("jsonfeed.org/version/1", "jsonfeed.org/version/1.1")):
        return ()
    return (Repair("json_version", detail=collapse(version)[:100] or "none"),)


def _has_contents(document: Object) -> bool:
    """Whether a document without a version is a feed all the same: "items" alone is in every second API."""
    return any("content_html" in item or "content_text" in item for item in _objects(document, "items"))


def _load(data: bytes, content_type: str | None) -> tuple[Any, tuple[Repair, ...]]:
    """What the JSON says, and what was wrong with it."""
    try:
        return load_json(data), ()
    except orjson.JSONDecodeError:
        pass
    text = decode(data, content_type).text.lstrip("\ufeff").strip("\x00 \t\r\n")
    try:
        return load_json(text.encode("utf-8", "replace")), ()
    except orjson.JSONDecodeError as error:
        document = read_broken_json(text)
        if not isinstance(document, dict) or not document:
            raise ParseError(
                "The JSON is damaged: {reason}.", kind=FailureKind.MALFORMED, reason=error.msg
            ) from None
        return document, (Repair("ill_formed_json", error.lineno, error.msg),)


def _read_item(item: Object, base: str | None, feed_authors: tuple[Person, ...]) -> Entry:
    own = _object(item, OWN)
    link = join(base, _text(item, "url")) or join(base, _text(item, "external_url"))
    html = _text(item, "content_html")
    content = resolve_html(html, link or base) if html else _escaped(_text(item, "content_text"))
    return Entry(
        id=_text(item, "id"),
        link=link,
        title=collapse(_text(item, "title") or ""),
        authors=_authors(item, base) or feed_authors,  # the specification says so
        published=parse_date(_text(item, "date_published")),
        updated=parse_date(_text(item, "date_modified")),
        summary=_text(own, "summary_html") or _escaped(_text(item, "summary")),
        content=content,
        categories=unique(map(collapse, _strings(item, "tags"))),
        enclosures=_attachments(item, base),
        image=join(base, _text(item, "image") or _text(item, "banner_image")),
        language=_text(item, "language"),
        extras=_extras(own, item),
        **(_own_fields(own, base) if own else {}),
    )


def _own_fields(own: Object, base: str | None) -> Object:
    """The fields that JSON Feed has no keys for, as Headwater writes them."""
    return {
        "comments_url": join(base, _text(own, "comments_url")),
        "comments_feed": join(base, _text(own, "comments_feed")),
        "comments_count": _count(own, "comments_count"),
        "source_title": _text(own, "source_title"),
        "source_url": join(base, _text(own, "source_url")),
    }


def _extras(own: Object, holder: Object) -> dict[str, Any] | None:
    """What our own extension says, and what those of others say, under their names."""
    others = {key: value for key, value in holder.items() if key[:1] == "_" and key != OWN}
    if not own and not others:
        return None
    extensions = _object(own, EXTENSIONS)
    return clean_extras({**own, EXTENSIONS: {**extensions, JSON_EXTENSIONS: others}}, lambda text: text)


def _description(document: Object) -> str | None:
    own = _object(document, OWN)
    return _text(own, "description_html") or _escaped(_text(document, "description"))


def _escaped(text: str | None) -> str | None:
    return escape_text(text) if text else None


def _authors(holder: Object, base: str | None) -> tuple[Person, ...]:
    """1.0 has one author, 1.1 a list; both are seen in either, sometimes as mere names."""
    people: list[Person] = []
    for key in ("authors", "author"):
        given = holder.get(key)
        for author in given if isinstance(given, list) else (given,) if given else ():
            if isinstance(author, str) and (name := collapse(author)):
                people.append(Person(name=name))
            elif isinstance(author, dict) and (_text(author, "name") or _text(author, "url")):
                name = collapse(_text(author, "name") or "")
                people.append(Person(name or None, _email(author), join(base, _address(author))))
    return unique(people)


def _email(author: Object) -> str | None:
    url = _text(author, "url") or ""
    if url.lower().startswith("mailto:"):
        return url[7:].partition("?")[0] or None
    return _text(author, "_email") or _text(author, "email")


def _address(author: Object) -> str | None:
    url = _text(author, "url") or ""
    return None if url.lower().startswith("mailto:") else url or None


def _attachments(holder: Object, base: str | None) -> tuple[Enclosure, ...]:
    return tuple(
        Enclosure(
            url=url,
            media_type=_media_type(attachment),
            length=_count(attachment, "size_in_bytes"),
            title=_text(attachment, "title"),
            duration_seconds=_seconds(attachment, "duration_in_seconds"),
        )
        for attachment in _objects(holder, "attachments")
        if (url := join(base, _text(attachment, "url")))
    )


def _media_type(attachment: Object) -> str | None:
    kind = _text(attachment, "mime_type")
    return None if kind == "application/octet-stream" else kind  # "some bytes" says nothing


def _hints(own: Object) -> Hints:
    return Hints(
        ttl_seconds=_seconds(own, "ttl_seconds"),
        update_period_seconds=_seconds(own, "update_period_seconds"),
        skip_hours=_integers(own, "skip_hours", 23),
        skip_days=_integers(own, "skip_days", 6),
    )


def _integers(holder: Object, key: str, largest: int) -> tuple[int, ...]:
    values = holder.get(key)
    if not isinstance(values, list):
        return ()
    return tuple(
        sorted({v for v in values if isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= largest})
    )


_MAY_BE_NUMBERS = frozenset(("id", "date_published", "date_modified"))


def _text(holder: Object, key: str) -> str | None:
    value = holder.get(key)
    if isinstance(value, str):
        return value.strip() or None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and key in _MAY_BE_NUMBERS else None


def _strings(holder: Object, key: str) -> list[str]:
    values = holder.get(key)
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _object(holder: Object, key: str) -> Object:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def _objects(holder: Object, key: str) -> list[Object]:
    values = holder.get(key)
    if isinstance(values, dict):  # by their keys, as PHP writes a list that has gaps
        values = list(values.values())
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _count(holder: Object, key: str) -> int | None:
    value = holder.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value < 10**18 else None


def _seconds(holder: Object, key: str) -> float | None:
    value = holder.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < 10**12 else None
