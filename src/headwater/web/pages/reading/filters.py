"""Which entries a person wants to see: read from a page's address, and written into links. Pure but for folders."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args
from urllib.parse import urlencode

from fastapi import Request

from headwater.model import Json
from headwater.store.people.entries import EntryFilter, Sort
from headwater.store.people.preferences import Preferences

View = Literal["unread", "starred", "later", "all"]
VIEWS: tuple[View, ...] = get_args(View)
SORTS: tuple[Sort, ...] = get_args(Sort)
LONGEST_SEARCH = 500
LONGEST_TAG = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """A list of entries. At most one of `feed_id`, `folder_id`, `tag` and `search` is given."""

    view: View = "unread"
    feed_id: int | None = None
    folder_id: int | None = None
    tag: str | None = None
    search: str | None = None
    sort: Sort = "newest"
    names_sort: bool = False  # whether the address names the order: else it is the person's

    @property
    def is_narrow(self) -> bool:
        """Whether it is about less than everything."""
        return any((self.feed_id, self.folder_id, self.tag, self.search))

    def query(self, **more: object) -> str:
        """The query of this list's address, with `more` parameters."""
        values = {
            "view": self.view,
            "feed": self.feed_id,
            "folder": self.folder_id,
            "tag": self.tag,
            "search": self.search,
            "sort": self.sort if self.names_sort else None,
            **more,
        }
        return urlencode({name: value for name, value in values.items() if value is not None})

    def address(self, **more: object) -> str:
        return f"/read?{self.query(**more)}"

    def as_filter(self, source_ids: Sequence[int] | None, *, since: float | None = None) -> EntryFilter:
        """What the store is asked for; `source_ids`: of the feed or folder, None: of all."""
        return EntryFilter(
            source_ids=None if source_ids is None else tuple(source_ids),
            is_read=False if self.view == "unread" else None,
            is_starred=True if self.view == "starred" else None,
            read_later=True if self.view == "later" else None,
            tag=self.tag,
            search=self.search,
            since=since,
        )

    def as_saved(self) -> Json:
        """The list as a saved search keeps it."""
        values = {
            "search": self.search,
            "feed_id": self.feed_id,
            "folder_id": self.folder_id,
            "tag": self.tag,
            "is_read": False if self.view == "unread" else None,
            "is_starred": True if self.view == "starred" else None,
            "read_later": True if self.view == "later" else None,
            "sort": self.sort if self.names_sort else None,
        }
        return {name: value for name, value in values.items() if value is not None}

    def with_view(self, view: View) -> "Wanted":
        return replace(self, view=view)


def wanted_of(saved: Json) -> Wanted:
    """The list of a saved search."""
    view: View = "all"
    if saved.get("is_starred"):
        view = "starred"
    elif saved.get("read_later"):
        view = "later"
    elif saved.get("is_read") is False:
        view = "unread"
    return Wanted(
        view,
        saved.get("feed_id"),
        saved.get("folder_id"),
        saved.get("tag"),
        saved.get("search"),
        saved.get("sort") or "newest",
        names_sort="sort" in saved,
    )


def read_wanted(request: Request, preferences: Preferences) -> Wanted:
    """What the address asks for, and else the person's preferences; what it says wrongly is left out."""
    given = request.query_params
    tag = given.get("tag", "").strip()[:LONGEST_TAG] or None
    search = given.get("search", "").strip()[:LONGEST_SEARCH] or None
    feed_id, folder_id = _number(given.get("feed")), _number(given.get("folder"))
    if tag or search:
        usual = "all"
    elif feed_id or folder_id:
        usual = "unread" if preferences.unread_only else "all"
    else:
        usual = preferences.start_view
    asked = given.get("view")
    return Wanted(
        view=next((each for each in VIEWS if each == (asked if asked in VIEWS else usual)), "unread"),
        feed_id=feed_id,
        folder_id=None if feed_id else folder_id,
        tag=tag,
        search=search,
        sort=next((each for each in SORTS if each == given.get("sort")), preferences.sort),
        names_sort=given.get("sort") in SORTS,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 18 else None
