"""Prepares a feed for publishing: everything the formats demand is there, and nothing in it can do harm.

Pure and stable: preparing a prepared feed changes nothing, and reading back what the writers make of one
gives it again, field by field.
"""

import math
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar

from headwater.formats.feeds.extras.clean import clean_extras
from headwater.formats.feeds.feed import Entry, Feed, Person, external_id
from headwater.formats.feeds.media import is_image
from headwater.formats.feeds.timing import PERIODS
from headwater.formats.html import collapse, escape_text, sanitize_html
from headwater.formats.links import is_followable, join, resolve_html
from headwater.formats.xml.entities import drop_illegal
from headwater.model import Enclosure, Hints, Json

NO_TYPE: Final = (
    "application/octet-stream"  # what JSON Feed, which demands a type, is told when none is known
)
_YEAR: Final = PERIODS["yearly"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Kept = TypeVar("Kept")


def prepare(feed: Feed, *, author_needed: bool = False) -> Feed:
    """`feed` as it is published: bodies sanitised, addresses absolute, ids, titles and dates filled in.

    `author_needed`: every entry must have an author, as Atom demands; a feed without one stands for itself.
    """
    base = _text(feed.link) or _text(feed.self_link)
    prepared = [_prepare_entry(entry, base) for entry in feed.entries]
    # Live ones last, as they are read: they have their own element.
    entries = tuple(sorted(prepared, key=lambda entry: "live" in (entry.extras or {})))
    dates = [date for entry in entries for date in (entry.updated, entry.published) if date]
    updated = _whole_second(feed.updated) or max(dates, default=_EPOCH)
    link = _address(None, _text(feed.link)) or _address(None, _text(feed.self_link))
    title = _line(feed.title) or _line(link) or "Feed"
    authors = _people(feed.authors, base)
    if author_needed and not authors and not all(entry.authors for entry in entries):
        authors = (Person(name=title),)
    return replace(
        feed,
        title=title,
        id=_text(feed.id) or _text(feed.self_link) or link or f"urn:{external_id(Entry(title=title))}",
        link=link,
        description=_body(feed.description, base) or escape_text(title),
        language=_line(feed.language),
        icon=_address(base, _text(feed.icon)),
        image=_address(base, _text(feed.image)),
        authors=authors,
        categories=_lines(feed.categories),
        generator=_text(feed.generator),
        rights=_text(feed.rights),
        published=_whole_second(feed.published),
        updated=updated,
        self_link=_address(base, _text(feed.self_link)),
        next_link=_address(base, _text(feed.next_link)),
        archive_link=None,
        hub_links=_unique([_address(base, _text(hub)) for hub in feed.hub_links]),
        hints=_hints(feed.hints),
        extras=clean_extras(feed.extras, partial(_safe_address, base)),
        entries=tuple(
            replace(
                entry, updated=entry.updated or entry.published or updated, authors=entry.authors or authors
            )
            for entry in entries
        ),
    )


def _prepare_entry(entry: Entry, base: str | None) -> Entry:
    extras = clean_extras(entry.extras, partial(_safe_address, base))
    files = _unique([_file(file, base) for file in entry.enclosures])
    files = tuple({file.url: file for file in reversed(files)}.values())[::-1]
    first_image = next((file.url for file in files if (file.media_type or "").startswith("image/")), None)
    link = _address(base, _text(entry.link))
    own_id = _text(external_id(entry)) or external_id(Entry(title=entry.title))
    summary = _body(entry.summary, base or link)
    content = _body(entry.content, base or link)
    return Entry(
        id=own_id,
        link=link,
        # RSS demands a title where there is no description.
        title=_line(entry.title) or ("" if summary else _line(link) or _line(own_id) or ""),
        authors=_people(entry.authors, base),
        published=_whole_second(entry.published),
        updated=_whole_second(entry.updated),
        summary=summary,
        content=content,
        categories=_lines(entry.categories),
        enclosures=files,
        image=_address(base, _text(entry.image)) or _pictured(extras) or first_image,
        language=_line(entry.language),
        comments_url=_address(base, _text(entry.comments_url)),
        comments_feed=_address(base, _text(entry.comments_feed)),
        comments_count=entry.comments_count if entry.comments_count and entry.comments_count > 0 else None,
        source_title=_line(entry.source_title),
        source_url=_address(base, _text(entry.source_url)),
        extras=extras,
    )


def _pictured(extras: Json | None) -> str | None:
    """The picture among an entry's thumbnails and media, if no other stands for it."""
    for each in (extras or {}).get("thumbnails", ()):
        return str(each["url"])
    for each in (extras or {}).get("media", ()):
        if is_image(each["url"], each.get("type"), each.get("medium")):
            return str(each["url"])
    return None


def _safe_address(base: str | None, text: str) -> str | None:
    return _address(base, text)


def _address(base: str | None, text: str | None) -> str | None:
    """An address made absolute, if a reader can follow it without running anything."""
    address = join(base, text)
    return address if address is not None and is_followable(address) else None


def _text(text: str | None) -> str | None:
    return (drop_illegal(text).strip() or None) if text else None


def _line(text: str | None) -> str | None:
    return (collapse(drop_illegal(text)) or None) if text else None


def _lines(texts: tuple[str, ...]) -> tuple[str, ...]:
    return _unique([_line(text) for text in texts])


def _unique(values: list[Kept | None]) -> tuple[Kept, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))


def _body(body: str | None, base: str | None) -> str | None:
    body = _text(body)
    return sanitize_html(resolve_html(body, base)).strip() or None if body else None


def _whole_second(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC).replace(microsecond=0) if moment else None


def _people(people: tuple[Person, ...], base: str | None) -> tuple[Person, ...]:
    cleaned = []
    for person in people:
        name, email, url = _line(person.name), _line(person.email), _address(base, _text(person.url))
        if label := name or email or _line(url):  # Atom demands a name
            cleaned.append(Person(name=label, email=email, url=url))
    return tuple(dict.fromkeys(cleaned))


def _file(file: Enclosure, base: str | None) -> Enclosure | None:
    url = _address(base, _text(file.url))
    if not url:
        return None
    seconds = file.duration_seconds
    return Enclosure(
        url=url,
        media_type=_media_type(file.media_type),
        length=file.length if file.length and 0 < file.length < 10**18 else None,
        title=_line(file.title),
        duration_seconds=round(seconds, 3) or None if seconds and 0 < seconds < 10**9 else None,
    )


def _media_type(text: str | None) -> str | None:
    kind = (_line(text) or "").lower()
    return kind if kind and kind != NO_TYPE else None


def _hints(hints: Hints) -> Hints:
    """What a feed can say of its timing; the rest is the HTTP server's to say."""
    ttl, period = hints.ttl_seconds, hints.update_period_seconds
    return Hints(
        ttl_seconds=min(math.ceil(ttl / 60) * 60.0, _YEAR) if ttl and ttl > 0 else None,
        update_period_seconds=_expressible(period) if period and period > 0 else None,
        skip_hours=tuple(sorted({hour for hour in hints.skip_hours if 0 <= hour <= 23})),
        skip_days=tuple(sorted({day for day in hints.skip_days if 0 <= day <= 6})),
    )


def update_frequency(seconds: float) -> tuple[str, int]:
    """A period as the syndication module says it: "so many times each hour, day, …"."""
    for name, length in PERIODS.items():
        times = length / seconds
        if times >= 1 and abs(times - round(times)) < 1e-9 * times:
            return name, round(times)
    return "yearly", min(max(round(_YEAR / seconds), 1), 10**9)


def _expressible(seconds: float) -> float:
    name, times = update_frequency(seconds)
    return PERIODS[name] / times
