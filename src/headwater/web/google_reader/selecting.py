"""From the parameters of a request to entries: which stream, without what, since when, how many."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fastapi import Request
from sqlalchemy import Connection

from headwater.language import translate
from headwater.model import User
from headwater.store.people.entries import EntryFilter, Place, Sort, list_places
from headwater.store.people.folders import folder_paths, list_folders, with_subfolders
from headwater.store.people.marks import list_tags
from headwater.store.people.subscriptions import Subscription, list_subscriptions
from headwater.web.api.paging import decode_cursor, encode_cursor
from headwater.web.google_reader.names import Stream, read_seconds, read_stream
from headwater.web.google_reader.shapes import Paths, label_of

MOST_FIELDS = 50_000
MOST_PARTS = 1_000  # fields of a form in parts
READ_AT_ONCE_BYTES = 20_000
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_BYTES = tuple(bytes((number,)) for number in range(256))
MOST_PLACES = 200_000
NOTHING = EntryFilter(source_ids=())


class Parameters:
    """The parameters of a request, from its address and its form alike; names may be repeated."""

    def __init__(self, values: Mapping[str, list[str]]) -> None:
        self._values = values

    @classmethod
    async def read(cls, request: Request) -> "Parameters":
        values: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            values.setdefault(name, []).append(value)
        body = b"" if request.method in ("GET", "HEAD") else await request.body()
        kind = request.headers.get("content-type", "")
        if kind.startswith("multipart/form-data"):  # as Readrops signs in
            if len(body) > READ_AT_ONCE_BYTES:
                return cls(values)
            form = await request.form(max_files=0, max_fields=MOST_PARTS)
            for name, part in form.multi_items():
                values.setdefault(name, []).append(str(part))
        elif body and "xml" not in kind and "opml" not in kind:
            is_long = len(body) > READ_AT_ONCE_BYTES
            for name, value in await asyncio.to_thread(_pairs, body) if is_long else _pairs(body):
                values.setdefault(name, []).append(value)
        return cls(values)

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def first(self, name: str, default: str | None = None) -> str | None:
        return next(iter(self.all(name)), default)

    def number(self, name: str, default: int, most: int) -> int:
        text = (self.first(name) or "").strip()
        return min(int(text), most) if text.isascii() and text.isdigit() and len(text) < 20 else default


def _pairs(form: bytes) -> list[tuple[str, str]]:
    """The names and values of a form; none of one with too many fields.

    The library's own reader takes 200 bytes of memory for each percent sign.
    """
    if form.count(b"&") >= MOST_FIELDS:
        return []
    parts = (part.partition(b"=") for part in form.split(b"&") if part)
    return [(_unescape(name), _unescape(value)) for name, _, value in parts]


def _unescape(text: bytes) -> str:
    plain = _ESCAPE.sub(lambda escape: _BYTES[int(escape[1], 16)], text.replace(b"+", b" "))
    return plain.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Shelf:
    """A person's subscriptions and folders, by which streams are understood."""

    feeds: tuple[Subscription, ...]
    paths: Paths
    inside: Mapping[int, frozenset[int]]  # by folder, it and the folders in it
    tags: frozenset[str]

    @property
    def by_source(self) -> dict[int, Subscription]:
        return {each.source_id: each for each in self.feeds}

    @property
    def loose(self) -> list[Subscription]:
        """The subscriptions that are in no folder."""
        return [each for each in self.feeds if each.folder_id not in self.paths]

    def folder_named(self, label: str) -> int | None:
        return next((number for number, path in self.paths.items() if label_of(path) == label), None)

    def feed_of(self, stream: Stream) -> Subscription | None:
        if stream.kind == "feed":
            return next((each for each in self.feeds if each.id == stream.number), None)
        if stream.kind == "address":
            wanted = stream.name.rstrip("/")
            return next((each for each in self.feeds if each.url.rstrip("/") == wanted), None)
        return None

    def sources_of(self, stream: Stream) -> tuple[int, ...] | None:
        """The sources of a stream that is a set of subscriptions; None: it is not one."""
        if stream.kind == "all":
            return tuple(each.source_id for each in self.feeds)
        if stream.kind in ("feed", "address"):
            feed = self.feed_of(stream)
            return () if feed is None else (feed.source_id,)
        if stream.kind == "label" and (folder := self.folder_named(stream.name)) is not None:
            inside = self.inside[folder]
            return tuple(
                each.source_id for each in self.feeds if each.folder_id in inside and not each.is_muted
            )
        return None


def read_shelf(connection: Connection, user_id: int) -> Shelf:
    tree = list_folders(connection, user_id)
    return Shelf(
        tuple(list_subscriptions(connection, user_id)),
        folder_paths(tree),
        {folder.id: frozenset(with_subfolders(tree, folder.id)) for folder in tree},
        frozenset(tag for tag, _ in list_tags(connection, user_id)),
    )


def needs_folders(request: Request) -> bool:
    """Whether an app ends with an error at a subscription that is in no folder."""
    return request.headers.get("user-agent", "").startswith("ReadYou")


def loose_label(user: User) -> str:
    """The folder that such apps are shown for what is in no folder."""
    return str(translate("Uncategorized", "zh" if user.preferences.get("language") == "zh" else "en"))


def is_loose_label(user: User, shelf: Shelf, label: str) -> bool:
    """Whether such an app means no folder; a folder of this name comes first."""
    return label == loose_label(user) and shelf.folder_named(label) is None


def filter_of(shelf: Shelf, stream: Stream, parameters: Parameters) -> EntryFilter:
    """Which entries a request means."""
    wanted = _only(shelf, EntryFilter(), stream)
    for text in parameters.all("it"):
        wanted = _only(shelf, wanted, read_stream(text))
    for text in parameters.all("xt"):
        wanted = _without(shelf, wanted, read_stream(text))
    since, until = read_seconds(parameters.first("ot")), read_seconds(parameters.first("nt"))
    return replace(wanted, since=since, until=until)


def _only(shelf: Shelf, wanted: EntryFilter, stream: Stream) -> EntryFilter:
    match stream.kind:
        case "all":
            return wanted
        case "read" | "unread":
            return replace(wanted, is_read=stream.kind == "read")
        case "starred":
            return replace(wanted, is_starred=True)
        case "none":
            return NOTHING
    chosen = shelf.sources_of(stream)
    if chosen is None:  # a label that is not a folder
        return replace(wanted, tag=stream.name)
    if wanted.source_ids is not None:
        chosen = tuple(set(chosen) & set(wanted.source_ids))
    return replace(wanted, source_ids=chosen)


def _without(shelf: Shelf, wanted: EntryFilter, stream: Stream) -> EntryFilter:
    match stream.kind:
        case "read":
            return replace(wanted, is_read=False)
        case "unread":
            return replace(wanted, is_read=True)
        case "starred":
            return replace(wanted, is_starred=False)
        case "feed" | "address" | "label":
            left_out = set(shelf.sources_of(stream) or ())
            kept = wanted.source_ids
            if kept is None:
                kept = tuple(each.source_id for each in shelf.feeds if not each.is_muted)
            return replace(wanted, source_ids=tuple(each for each in kept if each not in left_out))
    return wanted


def find_places(
    connection: Connection,
    user_id: int,
    wanted: EntryFilter,
    parameters: Parameters,
    *,
    usual: int,
    most: int,
) -> tuple[list[Place], str | None]:
    """One page of entries, and where the next one begins."""
    limit = max(parameters.number("n", usual, most), 1)
    after = decode_cursor(parameters.first("c") or None, float, int)
    sort: Sort = "oldest" if parameters.first("r") == "o" else "newest"
    found = list_places(
        connection,
        user_id,
        wanted,
        sort=sort,
        after=None if after is None else (after[0], after[1]),
        limit=limit,
    )
    if len(found) <= limit:
        return found, None
    return found[:limit], continue_after(found[limit - 1])


def continue_after(place: Place) -> str:
    """What makes the next page begin after this entry."""
    return encode_cursor(place.item_at, place.id)
