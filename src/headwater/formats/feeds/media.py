"""Files, pictures and durations: enclosures, and what the media and iTunes vocabularies say of them.

It works for RSS items and Atom entries alike, from their grouped children.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from headwater.formats.feeds.fields import (
    Fields,
    Source,
    read_attribute_address,
    sources,
)
from headwater.formats.feeds.relations import Links
from headwater.formats.feeds.scope import Children, Element, Scope, first_text, positive_integer
from headwater.formats.html import collapse
from headwater.model import Enclosure

_IMAGE_SUFFIXES: Final = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif")
MEDIA_NAMES: Final = frozenset(("media:group", "media:content"))  # elements to spread
FILE_NAMES: Final = frozenset(("enclosure", "media:content"))


def spread_media(scope: Scope, children: Children) -> Children:
    """The children, with those of media:group and media:content, where titles and thumbnails hide, among them."""
    found = {name: [*elements] for name, elements in children.items() if name != "media:content"}
    contents = found["media:content"] = []

    def spread(elements: Iterable[Element]) -> None:
        for content in elements:
            contents.append(content)
            for child in content:
                if (name := scope.names[child.tag])[:6] == "media:" or name[:1] == "?":
                    found.setdefault(name, []).append(child)

    spread(children.get("media:content", ()))
    for group in children.get("media:group", ()):
        grouped = scope.children(group)
        for name, elements in grouped.items():
            if name != "media:content" and (name[:6] == "media:" or name[:1] == "?"):
                found.setdefault(name, []).extend(elements)
        spread(grouped.get("media:content", ()))
    return found


def read_duration(text: str | None) -> float | None:
    """Seconds from `3723`, `62:03` or `1:02:03`."""
    if not text:
        return None
    parts = text.strip().split(":")
    if len(parts) > 3:
        return None
    total = 0.0
    for part in parts:
        if not part.replace(".", "", 1).isdigit() or not part.isascii() or len(part) > 16:
            return None
        total = total * 60 + float(part)
    return total or None


def add_files(found: Fields, scope: Scope, children: Children, links: Links) -> None:
    """Add the enclosures of an entry, and its picture where one of them is a picture and no other stands for it."""
    files = merge_files(
        (*_enclosures(scope, children), *links.enclosures, *_media_files(scope, children)),
        read_duration(first_text(children, "itunes:duration")),
    )
    found["enclosures"] = files
    if "image" not in found:
        for file in files:
            if file.media_type and file.media_type.startswith("image/"):
                found["image"] = file.url
                break


def _enclosures(scope: Scope, children: Children) -> Iterator[Enclosure]:
    for element in children.get("enclosure", ()):
        url = scope.link(element, element.get("url")) or scope.attribute_link(element, "href", "link")
        if url := url or scope.link(element, element.text):
            yield Enclosure(
                url=url,
                media_type=(element.get("type") or "").strip() or None,
                length=positive_integer(element.get("length") or element.get("size")),
            )


def _media_files(scope: Scope, children: Children) -> Iterator[Enclosure]:
    """media:content as enclosures, except for pictures."""
    for content in children.get("media:content", ()):
        url = scope.attribute_link(content, "url")
        media_type = (content.get("type") or "").strip() or None
        if not url or is_image(url, media_type, content.get("medium")):
            continue
        title = first_text(scope.children(content), "media:title") if len(content) else None
        yield Enclosure(
            url=url,
            media_type=media_type,
            length=positive_integer(content.get("fileSize")),
            title=collapse(title or "") or None,
            duration_seconds=read_duration(content.get("duration")),
        )


def is_image(url: str, media_type: str | None, medium: str | None) -> bool:
    """Whether a file is a picture: by its type, else its medium, else the name of the file."""
    if media_type:
        return media_type.startswith("image/")
    if medium and (medium := medium.strip().lower()):
        return medium == "image"
    return url.lower().partition("?")[0].endswith(_IMAGE_SUFFIXES)


def merge_files(files: Iterable[Enclosure], duration: float | None) -> tuple[Enclosure, ...]:
    """One enclosure for each address, with what any of them states.

    `duration` is that of the sound or film: of a lone file, else of the first that is one or has no type.
    """
    merged: dict[str, Enclosure] = {}
    for file in files:
        merged[file.url] = _merge(merged[file.url], file) if file.url in merged else file
    if duration is not None and merged and not any(file.duration_seconds for file in merged.values()):
        first = next(filter(_is_playable, merged.values()), next(iter(merged.values())))
        merged[first.url] = _merge(first, Enclosure(first.url, duration_seconds=duration))
    return tuple(merged.values())


def _merge(file: Enclosure, other: Enclosure) -> Enclosure:
    return Enclosure(
        url=file.url,
        media_type=file.media_type or other.media_type,
        length=file.length or other.length,
        title=file.title or other.title,
        duration_seconds=file.duration_seconds or other.duration_seconds,
    )


def _is_playable(file: Enclosure) -> bool:
    return not file.media_type or file.media_type.startswith(("audio/", "video/"))


def _content_image(scope: Scope, element: Element) -> str | None:
    """The address of a media:content that is a picture."""
    url = scope.attribute_link(element, "url")
    media_type = (element.get("type") or "").strip() or None
    return url if url and is_image(url, media_type, element.get("medium")) else None


def _image(scope: Scope, element: Element) -> str | None:
    """An `image` element: with the address inside, as RSS has it, or in an attribute."""
    text = first_text(scope.children(element), "url") if len(element) else (element.text or "").strip()
    return scope.link(element, text) or read_attribute_address(scope, element)


# The picture of an entry.
IMAGES: Final[tuple[Source, ...]] = (
    *sources(read_attribute_address, "itunes:image podcast:image"),
    ("media:thumbnail", lambda scope, element: scope.attribute_link(element, "url")),
    ("media:content", _content_image),
    ("image", _image),
)
