"""Reads ActivityPub: actors, and the activities of their outboxes (ActivityStreams 2.0) as items. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from headwater.formats.dates import parse_date
from headwater.formats.html import collapse, plain_text
from headwater.formats.links import is_followable
from headwater.model import Enclosure, Item

ACCEPT: Final = (
    'application/activity+json, application/ld+json; profile="https://www.w3.org/ns/activitystreams"'
)
_ACTORS: Final = frozenset(("Person", "Service", "Group", "Organization", "Application"))
_COLLECTIONS: Final = frozenset(
    ("OrderedCollection", "Collection", "OrderedCollectionPage", "CollectionPage")
)
_CONTEXT: Final = "https://www.w3.org/ns/activitystreams"
_OBJECTS: Final = frozenset(
    ("Note", "Article", "Page", "Video", "Audio", "Image", "Event", "Question", "Document")
)
_PUBLIC: Final = frozenset((f"{_CONTEXT}#Public", "as:Public", "Public"))
TITLE_CHARACTERS: Final = 80
MOST_FILES: Final = 50

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Actor:
    id: str
    name: str | None = None
    summary: str | None = None
    url: str | None = None
    icon: str | None = None
    outbox: str | None = None


def is_activity_streams(document: Any) -> bool:
    """Whether a JSON document is an actor or a collection of ActivityPub."""
    if not isinstance(document, Mapping):
        return False
    context = document.get("@context")
    named = context if isinstance(context, list) else [context]
    return _CONTEXT in named and _types(document) & (_ACTORS | _COLLECTIONS) != set()


def read_actor(document: Any) -> Actor | None:
    """The actor that a document describes; None when it is something else."""
    if not isinstance(document, Mapping) or not _types(document) & _ACTORS:
        return None
    return Actor(
        _text(document.get("id")) or "",
        collapse(_text(document.get("name")) or _text(document.get("preferredUsername")) or "") or None,
        _text(document.get("summary")),
        _address(document.get("url")),
        _address(document.get("icon")),
        _address(document.get("outbox")),
    )


def read_page(document: Any) -> tuple[list[Any], str | Object | None, str | None]:
    """The activities on a page of a collection, its first page where it has none, and the next page's address."""
    if not isinstance(document, Mapping) or not _types(document) & _COLLECTIONS:
        return [], None, None
    listed = document.get("orderedItems", document.get("items"))
    items = listed if isinstance(listed, list) else [] if listed is None else [listed]
    first = document.get("first") if not items else None
    return items, first if isinstance(first, str | Mapping) else None, _address(document.get("next"))


def read_activity(activity: Any, *, boosts: bool, replies: bool) -> Item | None:
    """An activity as an item; None for one that makes nothing, or nothing that is wanted or public."""
    if not isinstance(activity, Mapping):
        return None
    types = _types(activity)
    if types & _OBJECTS:
        activity = {"type": "Create", "object": activity, "published": activity.get("published")}
        types = {"Create"}
    of = activity.get("object")
    if "Announce" in types:
        return _boost(activity, of) if boosts else None
    if "Create" not in types or not isinstance(of, Mapping) or not _is_public(activity, of):
        return None
    if of.get("inReplyTo") and not replies:
        return None
    return _item(of, activity)


def _boost(activity: Object, of: Any) -> Item | None:
    """What an actor passes on; often only its address is said."""
    if isinstance(of, Mapping) and _types(of) & _OBJECTS:
        return _item(of, activity)
    url = _address(of)
    if url is None:
        return None
    at = parse_date(_text(activity.get("published")))
    host, path = _place(url)
    return Item(
        external_id=_text(activity.get("id")) or url,
        url=url,
        title=f"↻ {host}{path}"[:200],
        published_at=at.timestamp() if at else None,
    )


def _item(of: Object, activity: Object) -> Item | None:
    external_id = _text(of.get("id")) or _text(activity.get("id")) or _address(of.get("url"))
    if external_id is None:
        return None
    content = _text(of.get("content"))
    if _text(of.get("mediaType")) == "text/plain" and content:
        content = content.replace("&", "&amp;").replace("<", "&lt;")
    warning = _text(of.get("summary"))
    published = parse_date(_text(of.get("published")) or _text(activity.get("published")))
    updated = parse_date(_text(of.get("updated")))
    files = _files(of)
    said = plain_text(content or warning or "")
    title = collapse(_text(of.get("name")) or "") or _shortened(warning or said)
    return Item(
        external_id=external_id,
        url=_address(of.get("url")) or external_id,
        title=title,
        author=_author(of),
        summary=warning,
        content=content,
        published_at=published.timestamp() if published else None,
        updated_at=updated.timestamp() if updated else None,
        language=_language(of),
        image_url=next((file.url for file in files if (file.media_type or "").startswith("image/")), None)
        or _address(of.get("image")),
        categories=_tags(of),
        enclosures=files,
    )


def _types(document: Object) -> set[str]:
    said = document.get("type")
    return {each for each in (said if isinstance(said, list) else [said]) if isinstance(each, str)}


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _address(value: Any) -> str | None:
    """An address said as a text, as an object, or as one of several; a page before other media."""
    if isinstance(value, list):
        pages = [each for each in value if isinstance(each, Mapping) and each.get("mediaType") == "text/html"]
        return next((found for each in (*pages, *value) if (found := _address(each))), None)
    if isinstance(value, Mapping):
        return _address(value.get("href") or value.get("url") or value.get("id"))
    text = _text(value)
    return text if text and text.lower().startswith(("http://", "https://")) and is_followable(text) else None


def _is_public(*documents: Object) -> bool:
    """Whether something is addressed to all; where it says nothing of whom, it was given to all who ask."""
    said: list[Any] = []
    for document in documents:
        for key in ("to", "cc"):
            value = document.get(key)
            said += value if isinstance(value, list) else [value] if value else []
    return not said or any(isinstance(each, str) and each in _PUBLIC for each in said)


def _files(of: Object) -> tuple[Enclosure, ...]:
    attached = of.get("attachment")
    listed = attached if isinstance(attached, list) else [attached]
    if _types(of) & {"Video", "Audio"} and isinstance(of.get("url"), list):
        listed = [*listed, *(each for each in of["url"] if _is_media(each))]
    found: dict[str, Enclosure] = {}
    for each in listed[:MOST_FILES]:
        if isinstance(each, Mapping) and (url := _address(each.get("url") or each.get("href"))):
            found.setdefault(url, Enclosure(url, _text(each.get("mediaType")), title=_text(each.get("name"))))
    return tuple(found.values())


def _is_media(link: Any) -> bool:
    kind = _text(link.get("mediaType")) if isinstance(link, Mapping) else None
    return (kind or "").startswith(("video/", "audio/"))


def _author(of: Object) -> str | None:
    by = of.get("attributedTo")
    first = by[0] if isinstance(by, list) and by else by
    if isinstance(first, Mapping):
        return _text(first.get("name")) or _text(first.get("id"))
    host, path = _place(_text(first) or "")
    name = path.rstrip("/").rpartition("/")[2].lstrip("@")
    return f"@{name}@{host}" if name and host else None


def _place(url: str) -> tuple[str, str]:
    """Host and path of an address; nothing for what is none."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.path
    except ValueError:
        return "", ""


def _language(of: Object) -> str | None:
    spoken = of.get("contentMap")
    return (
        next((key for key in spoken if isinstance(key, str)), None) if isinstance(spoken, Mapping) else None
    )


def _tags(of: Object) -> tuple[str, ...]:
    listed = of.get("tag")
    found = (
        (_text(each.get("name")) or "").lstrip("#")
        for each in (listed if isinstance(listed, list) else [listed])
        if isinstance(each, Mapping) and each.get("type") == "Hashtag"
    )
    return tuple(dict.fromkeys(each for each in found if each))


def _shortened(text: str) -> str:
    text = collapse(plain_text(text))
    return text if len(text) <= TITLE_CHARACTERS else text[: TITLE_CHARACTERS - 1].rsplit(" ", 1)[0] + "…"
