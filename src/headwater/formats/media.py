"""What the media, iTunes and podcast vocabularies add to an entry: files, images, chapters, transcripts.

Works for RSS items and Atom entries alike, from their grouped children. It decides nothing about titles or
dates.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from headwater.formats.elements import Children, Element, Scope, first_text, pick, positive_integer
from headwater.formats.html import collapse
from headwater.model import Enclosure

_IMAGE_SUFFIXES: Final = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif")


def media_children(scope: Scope, children: Children) -> Iterator[Children]:
    """The entry's own children, then those of each media:group and media:content, where titles and thumbnails
    hide."""
    yield children
    if "media:group" not in children and "media:content" not in children:
        return
    for group in pick(children, "media:group"):
        inner = scope.children(group)
        yield inner
        for content in pick(inner, "media:content"):
            yield scope.children(content)
    for content in pick(children, "media:content"):
        yield scope.children(content)


def read_duration(text: str | None) -> float | None:
    """Seconds from `3723`, `62:03` or `1:02:03`."""
    parts = (text or "").strip().split(":")
    if not 1 <= len(parts) <= 3:
        return None
    total = 0.0
    for part in parts:
        if not part.replace(".", "", 1).isdigit() or not part.isascii() or len(part) > 16:
            return None
        total = total * 60 + float(part)
    return total or None


def media_files(scope: Scope, children: Children) -> Iterator[Enclosure]:
    """media:content (also inside groups) as enclosures, images left to `entry_image`."""
    if "media:content" not in children and "media:group" not in children:
        return
    for content in (*pick(children, "media:content"), *_grouped_contents(scope, children)):
        url = scope.attribute_link(content, "url")
        media_type = (content.get("type") or "").strip() or None
        if not url or _is_image(content, url, media_type):
            continue
        yield Enclosure(
            url=url,
            media_type=media_type,
            length=positive_integer(content.get("fileSize")),
            title=collapse(first_text(scope.children(content), "media:title") or "") or None,
            duration_seconds=read_duration(content.get("duration")),
        )


def _grouped_contents(scope: Scope, children: Children) -> Iterator[Element]:
    for group in pick(children, "media:group"):
        yield from pick(scope.children(group), "media:content")


def _is_image(content: Element, url: str, media_type: str | None) -> bool:
    if media_type:
        return media_type.startswith("image/")
    medium = (content.get("medium") or "").strip().lower()
    if medium:
        return medium == "image"
    return url.lower().partition("?")[0].endswith(_IMAGE_SUFFIXES)


def merge_files(files: Iterable[Enclosure], duration: float | None) -> tuple[Enclosure, ...]:
    """One enclosure for each address, knowing what any of them knew; a lone one takes `duration`."""
    merged: dict[str, Enclosure] = {}
    for file in files:
        known = merged.get(file.url)
        if known is not None:
            file = Enclosure(
                url=file.url,
                media_type=known.media_type or file.media_type,
                length=known.length or file.length,
                title=known.title or file.title,
                duration_seconds=known.duration_seconds or file.duration_seconds,
            )
        merged[file.url] = file
    if duration is not None and len(merged) == 1:
        (only,) = merged.values()
        if only.duration_seconds is None:
            return (Enclosure(only.url, only.media_type, only.length, only.title, duration),)
    return tuple(merged.values())


def entry_duration(children: Children) -> float | None:
    return read_duration(first_text(children, "itunes:duration"))


def entry_image(scope: Scope, children: Children, files: tuple[Enclosure, ...]) -> str | None:
    """The picture that stands for an entry."""
    for element in pick(children, "itunes:image", "podcast:image"):
        if url := scope.attribute_link(element, "href", "url"):
            return url
    if "media" in scope.names.prefixes and (url := _media_image(scope, children)):
        return url
    for element in pick(children, "image"):
        inner = scope.children(element)
        text = first_text(inner, "url") if inner else (element.text or "").strip()
        if url := scope.link(element, text) or scope.attribute_link(element, "href", "url"):
            return url
    for file in files:
        if (file.media_type or "").startswith("image/"):
            return file.url
    return None


def _media_image(scope: Scope, children: Children) -> str | None:
    for inner in media_children(scope, children):
        for element in pick(inner, "media:thumbnail"):
            if url := scope.attribute_link(element, "url"):
                return url
    for element in (*pick(children, "media:content"), *_grouped_contents(scope, children)):
        url = scope.attribute_link(element, "url")
        if url and _is_image(element, url, (element.get("type") or "").strip() or None):
            return url
    return None


def entry_chapters(scope: Scope, children: Children) -> Enclosure | None:
    for element in pick(children, "podcast:chapters"):
        if url := scope.attribute_link(element, "url", "href"):
            return Enclosure(url=url, media_type=(element.get("type") or "").strip() or None)
    return None


def entry_transcripts(scope: Scope, children: Children) -> tuple[Enclosure, ...]:
    """Transcripts; the language of one, when stated, is its title."""
    found = []
    for element in pick(children, "podcast:transcript"):
        if url := scope.attribute_link(element, "url", "href"):
            language = (element.get("language") or "").strip() or None
            found.append(
                Enclosure(url=url, media_type=(element.get("type") or "").strip() or None, title=language)
            )
    return tuple(found)
