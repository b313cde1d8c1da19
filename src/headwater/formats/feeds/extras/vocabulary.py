"""The elements of podcasts, media, places and licences, and the keys that they have in an item's JSON.

An element in none of these tables is kept under `extensions`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from headwater.formats.html import collapse

Kind = Literal["text", "integer", "number", "truth", "words"]

MAX_RECORDS: Final = 500  # of one key
MAX_NODES: Final = 200  # in the extensions of one entry
MAX_DEPTH: Final = 6
LONGEST_TEXT: Final = 4_000
LONGEST_EXTENSIONS: Final = 20_000  # characters in the extensions of one entry

NAMESPACES: Final = {
    "atom": "http://www.w3.org/2005/Atom",
    "cc": "http://backend.userland.com/creativeCommonsRssModule",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "georss": "http://www.georss.org/georss",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "psc": "http://podlove.org/simple-chapters",
    "rss": "http://backend.userland.com/rss2",  # for elements of RSS in Atom
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "thr": "http://purl.org/syndication/thread/1.0",
    "wfw": "http://wellformedweb.org/CommentAPI/",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A key with one value: the elements that state it (the first is the one that is written)."""

    key: str
    elements: tuple[str, ...]
    kind: Kind = "text"
    attribute: str | None = None  # where it is not the element's text
    of: str | None = None  # the key of the value that the same element states as its text


@dataclass(frozen=True, slots=True)
class Record:
    """A key with a list of objects, one for each element: what its text and its attributes are called in them."""

    key: str
    element: str
    attributes: dict[str, str] = field(default_factory=dict)
    text: str | None = None
    needs: str = ""  # the key without which an object says nothing
    within: str | None = None  # the element around them
    children: "tuple[Record, ...]" = ()
    others: tuple[str, ...] = ()  # keys that come from somewhere else than the element itself

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of an object that hold texts."""
        return (*self.attributes.values(), *self.others, *((self.text,) if self.text else ()))

    @property
    def parts(self) -> "tuple[tuple[str, Record], ...]":
        """The records inside, by their keys. Categories hold categories."""
        if self.key == "category_tree":
            return (("children", self),)
        return tuple((child.key, child) for child in self.children)


def _same(*names: str, **others: str) -> dict[str, str]:
    return {**{name: name for name in names}, **others}


VALUES: Final = (
    Value("season", ("podcast:season", "itunes:season"), "integer"),
    Value("season_name", ("podcast:season",), attribute="name", of="season"),
    Value("episode", ("podcast:episode", "itunes:episode"), "number"),
    Value("episode_display", ("podcast:episode",), attribute="display", of="episode"),
    Value("episode_type", ("itunes:episodeType",)),
    Value("explicit", ("itunes:explicit", "googleplay:explicit"), "truth"),
    Value("block", ("itunes:block", "googleplay:block"), "truth"),
    Value("complete", ("itunes:complete",), "truth"),
    Value("show_type", ("itunes:type",)),
    Value("subtitle", ("itunes:subtitle",)),
    Value("new_feed_url", ("itunes:new-feed-url",)),
    Value("podcast_guid", ("podcast:guid",)),
    Value("medium", ("podcast:medium",)),
    Value("locked", ("podcast:locked",), "truth"),
    Value("locked_owner", ("podcast:locked",), attribute="owner", of="locked"),
    Value("keywords", ("itunes:keywords", "media:keywords"), "words"),
)

_RECIPIENT: Final = Record(
    "recipients",
    "podcast:valueRecipient",
    _same("name", "type", "address", "split", "fee", customKey="custom_key", customValue="custom_value"),
    needs="address",
)
_REMOTE_ITEM: Final = Record(
    "remote_items",
    "podcast:remoteItem",
    _same("medium", "title", feedGuid="feed_guid", feedUrl="feed_url", itemGuid="item_guid"),
)

RECORDS: Final = (
    Record("transcripts", "podcast:transcript", _same("url", "type", "language", "rel"), needs="url"),
    Record("chapter_files", "podcast:chapters", _same("url", "type"), needs="url"),
    Record(
        "chapters",
        "psc:chapter",
        _same("start", "title", "image", href="url"),
        needs="start",
        within="psc:chapters",
    ),
    Record("persons", "podcast:person", _same("role", "group", img="image", href="url"), "name", "name"),
    Record("credits", "media:credit", _same("role", "scheme"), "name", "name"),
    Record("soundbites", "podcast:soundbite", _same("duration", startTime="start"), "title", "start"),
    Record("locations", "podcast:location", _same("rel", "geo", "osm", "country"), "name"),
    Record(
        "alternate_enclosures",
        "podcast:alternateEnclosure",
        _same("type", "length", "bitrate", "height", "lang", "title", "rel", "codecs", "default"),
        children=(
            Record("sources", "podcast:source", {"uri": "url", "contentType": "type"}, needs="url"),
            Record("integrity", "podcast:integrity", _same("type", "value")),
        ),
    ),
    Record(
        "value",
        "podcast:value",
        _same("type", "method", "suggested"),
        children=(
            _RECIPIENT,
            Record(
                "time_splits",
                "podcast:valueTimeSplit",
                _same(
                    "duration",
                    startTime="start",
                    remoteStartTime="remote_start",
                    remotePercentage="remote_percentage",
                ),
                children=(_REMOTE_ITEM, _RECIPIENT),
            ),
        ),
    ),
    Record("funding", "podcast:funding", _same("url"), "title", "url"),
    Record(
        "social",
        "podcast:socialInteract",
        _same("protocol", "priority", uri="url", accountId="account_id", accountUrl="account_url"),
        needs="protocol",
    ),
    Record("licenses", "podcast:license", _same("url"), "name"),
    Record(
        "trailers", "podcast:trailer", _same("url", "pubdate", "length", "type", "season"), "title", "url"
    ),
    Record("texts", "podcast:txt", _same("purpose"), "value", "value"),
    Record("category_tree", "itunes:category", {"text": "name"}, needs="name"),
    Record("thumbnails", "media:thumbnail", _same("url", "width", "height", "time"), needs="url"),
    Record("ratings", "media:rating", _same("scheme"), "value", "value"),
    Record("players", "media:player", _same("url", "width", "height"), needs="url"),
    Record(
        "media",
        "media:content",
        _same(
            *(
                "url",
                "type",
                "medium",
                "expression",
                "bitrate",
                "framerate",
                "samplingrate",
                "channels",
                "duration",
            ),
            *("height", "width", "lang"),
            fileSize="file_size",
            isDefault="is_default",
        ),
        needs="url",
        others=("group",),  # contents of one media:group have the same number
    ),
    Record("points", "georss:point", text="point", needs="point"),
    Record("in_reply_to", "thr:in-reply-to", _same("ref", "type", "source", href="url"), needs="ref"),
    Record("live", "podcast:liveItem", _same("status", "start", "end")),
)
ADDRESSES: Final = frozenset(
    ("url", "image", "account_url", "feed_url")
)  # keys of records that are addresses
CATEGORY_SCHEMES: Final = "category_schemes"  # objects of a name and a scheme
EXTENSIONS: Final = "extensions"
JSON_EXTENSIONS: Final = "json"  # under which the extensions of JSON Feeds stand, by their names
LICENSE_ELEMENTS: Final = ("cc:license",)


def every_key() -> Iterator[str]:
    yield from (value.key for value in VALUES)
    yield from (record.key for record in RECORDS)
    yield from (CATEGORY_SCHEMES, EXTENSIONS)


KEYS: Final = frozenset(every_key())

_YES: Final = frozenset(("yes", "true", "explicit", "1"))
_NO: Final = frozenset(("no", "false", "clean", "0"))


def as_kind(text: str, value: Value) -> Any:
    """What `text` means as a value of this kind; None: nothing."""
    text = collapse(text)[:LONGEST_TEXT]
    if not text:
        return None
    if value.kind == "text":
        return text
    if value.kind == "truth":
        word = text.lower()
        return True if word in _YES else False if word in _NO else None
    if value.kind == "words":
        return [word for each in text.split(",") if (word := each.strip())]
    if not text.isascii() or not text.replace(".", "", 1).isdigit() or len(text) > 12:
        return None
    number = float(text)
    return int(number) if number.is_integer() else number if value.kind == "number" else None


def as_digits(number: float) -> str:
    """A number as feeds write it: `3`, `3.5`."""
    return str(int(number)) if float(number).is_integer() else f"{number:g}"
