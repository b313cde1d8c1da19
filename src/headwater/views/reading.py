"""What a person reads: subscriptions, folders, entries, tags, bookmarks."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.markup import visible_text
from headwater.store.people.bookmarks import Bookmark
from headwater.store.people.entries import Copy, Entry, EntryState
from headwater.store.people.folders import Folder
from headwater.store.people.subscriptions import Subscription
from headwater.views.items import EXAMPLE as ITEM
from headwater.views.items import EnclosureView, item_json
from headwater.views.shape import Json, Shape, Time, with_example
from headwater.wording import iso

EXCERPT_CHARACTERS = 300


class FolderView(BaseModel):
    """A folder of subscriptions."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: folder_json(_FOLDER, unread_count=3))

    id: int
    parent_id: int | None = Field(description="The folder that it is in; null: it is at the top.")
    name: str
    position: int = Field(description="Its place among the folders beside it.")
    unread_count: int = Field(description="Unread entries in it and in the folders in it.")


class SubscriptionView(BaseModel):
    """A source that you read."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: subscription_json(_SUBSCRIPTION))

    id: int
    source_id: int
    title: str = Field(description="Your title, else the source's name.")
    own_title: str | None = Field(description="Your title; null: none.")
    folder_id: int | None = Field(description="The folder that it is in; null: none.")
    position: int = Field(description="Its place in its folder.")
    is_muted: bool = Field(description="True: left out of the lists of several subscriptions.")
    type: str
    url: str
    site_url: str | None
    icon_url: str | None
    unread_count: int
    last_error: str | None = Field(description="What went wrong at the last visit; null: nothing.")
    last_fetched_at: Time | None = Field(description="When its source was last visited; null: never.")
    created_at: Time = Field(description="When you subscribed.")


class CopyView(BaseModel):
    """An entry of another of your subscriptions that tells the same story."""

    id: int
    feed_id: int | None
    feed_title: str
    title: str
    url: str | None
    is_read: bool


class EntryView(BaseModel):
    """An item of one of your subscriptions, with your reading state."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: entry_json(_ENTRY))

    id: int
    feed_id: int | None = Field(description="Your subscription; null: you do not subscribe to it any more.")
    feed_title: str
    folder_id: int | None
    source_id: int
    url: str | None
    title: str
    author: str | None
    excerpt: str = Field(description="The beginning of its text, without markup.")
    image_url: str | None
    published_at: Time | None
    item_at: Time = Field(description="When it was published, else first seen: lists are sorted by it.")
    first_seen_at: Time = Field(description="When a visit found it.")
    is_read: bool
    is_starred: bool
    read_later: bool
    read_later_until: Time | None = Field(
        description="When it leaves the list; null: it stays, or is not on it."
    )
    tags: list[str]
    also_in: list[CopyView] = Field(
        description="Where else the same story is told; marking this one as read marks those too."
    )


class WholeEntryView(EntryView):
    """An entry with its text. HTML in it is as its publisher wrote it: sanitise it before you show it."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: whole_entry_json(_ENTRY))

    summary: str | None
    content: str | None
    comments_url: str | None
    categories: list[str]
    enclosures: list[EnclosureView]


class TagView(BaseModel):
    """A tag that you use."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"example": {"name": "later", "count": 3}}
    )

    name: str
    count: int = Field(description="How many entries have it.")


class BookmarkView(BaseModel):
    """A page or an item that you keep, with a copy of its text."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: bookmark_json(_BOOKMARK))

    id: int
    item_id: int | None = Field(description="The item it was made from; null: an address, or it was deleted.")
    url: str
    title: str | None
    excerpt: str | None
    image_url: str | None
    note: str | None
    tags: list[str]
    is_pending: bool = Field(description="True: its page is yet to be fetched.")
    error: str | None = Field(description="Why its page could not be read; null: it could, or is pending.")
    created_at: Time
    updated_at: Time


class WholeBookmarkView(BookmarkView):
    """A bookmark with its copy of the text."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: whole_bookmark_json(_BOOKMARK))

    content: str | None


def _excerpt_of(entry: Entry) -> str:
    """The beginning of an entry's text."""
    text = visible_text(entry.item.summary or entry.item.content or "", 2 * EXCERPT_CHARACTERS)
    return " ".join(text.split())[:EXCERPT_CHARACTERS]


_copy_json: Shape[Copy] = Shape(CopyView)
folder_json: Shape[Folder] = Shape(FolderView, ("unread_count",))
subscription_json: Shape[Subscription] = Shape(SubscriptionView)
_ENTRY_PARTS: dict[str, Any] = {
    "id": lambda entry: entry.item.id,
    "feed_id": lambda entry: entry.subscription_id,
    "source_id": lambda entry: entry.item.source_id,
    "url": lambda entry: entry.item.url,
    "title": lambda entry: entry.item.title,
    "author": lambda entry: entry.item.author,
    "excerpt": _excerpt_of,
    "image_url": lambda entry: entry.item.image_url,
    "published_at": lambda entry: iso(entry.item.published_at),
    "item_at": lambda entry: iso(entry.item.item_at),
    "first_seen_at": lambda entry: iso(entry.item.first_seen_at),
    "is_read": lambda entry: entry.state.is_read,
    "is_starred": lambda entry: entry.state.starred_at is not None,
    "read_later": lambda entry: entry.state.later_at is not None,
    "read_later_until": lambda entry: iso(entry.state.later_until),
    "tags": lambda entry: list(entry.state.tags),
    "also_in": lambda entry: [_copy_json(copy) for copy in entry.also_in],
}
entry_json: Shape[Entry] = Shape(EntryView, **_ENTRY_PARTS)
whole_entry_json: Shape[Entry] = Shape(
    WholeEntryView,
    **_ENTRY_PARTS,
    summary=lambda entry: entry.item.summary,
    content=lambda entry: entry.item.content,
    comments_url=lambda entry: entry.item.comments_url,
    categories=lambda entry: list(entry.item.categories),
    enclosures=lambda entry: item_json(entry.item)["enclosures"],
)
_BOOKMARK_PARTS: dict[str, Any] = {
    "tags": lambda bookmark: list(bookmark.tags),
    "is_pending": lambda bookmark: bookmark.fetch_at is not None,
}
bookmark_json: Shape[Bookmark] = Shape(BookmarkView, **_BOOKMARK_PARTS)
whole_bookmark_json: Shape[Bookmark] = Shape(WholeBookmarkView, **_BOOKMARK_PARTS)


def folders_json(tree: list[Folder], unread: Mapping[int, int]) -> list[Json]:
    """The folders in the order of the tree; `unread` counts what is in each without those in it."""
    totals = {folder.id: unread.get(folder.id, 0) for folder in tree}
    for folder in reversed(tree):
        if folder.parent_id in totals:
            totals[folder.parent_id] += totals[folder.id]
    return [folder_json(folder, unread_count=totals[folder.id]) for folder in tree]


_FOLDER: Folder = Folder(1, None, "News", 1)
_SUBSCRIPTION: Subscription = Subscription(
    id=1,
    source_id=1,
    own_title=None,
    folder_id=1,
    position=0,
    is_muted=False,
    created_at=1_767_225_600.0,
    source_name="Example",
    type="rss.feed",
    url="https://example.org/feed.xml",
    site_url="https://example.org/",
    icon_url=None,
    source_status="ok",
    last_error=None,
    last_fetched_at=1_772_015_400.0,
    last_stored_at=1_772_015_400.0,
    unread_count=3,
)
_ENTRY: Entry = Entry(ITEM, 1, 1, "Example", EntryState(False, 1_772_015_900.0))
_BOOKMARK: Bookmark = Bookmark(
    id=1,
    item_id=None,
    url="https://example.org/page",
    title="A page",
    excerpt="What it is about.",
    image_url=None,
    content="<p>At length</p>",
    note=None,
    tags=("later",),
    fetch_at=None,
    error=None,
    created_at=1_772_015_900.0,
    updated_at=1_772_015_900.0,
)
