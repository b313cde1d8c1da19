"""The tree beside the list: smart views, folders with their feeds, tags, each with how much is unread."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from headwater.store.people.entries import EntryFilter, count_entries
from headwater.store.people.folders import Folder, list_folders
from headwater.store.people.marks import list_tags
from headwater.store.people.reading import Unread, unread_counts
from headwater.store.people.saved_searches import SavedSearch, list_saved_searches
from headwater.store.people.subscriptions import Subscription, list_subscriptions


@dataclass(frozen=True, slots=True)
class Branch:
    """A folder with the folders and feeds in it; `unread` counts all of them."""

    folder: Folder
    depth: int
    branches: tuple["Branch", ...]
    feeds: tuple[Subscription, ...]
    unread: int


@dataclass(frozen=True, slots=True)
class Tree:
    branches: tuple[Branch, ...]
    feeds: tuple[Subscription, ...]  # in no folder
    tags: tuple[tuple[str, int], ...]
    unread: int
    starred: int
    later: int
    folders: tuple[Folder, ...]
    searches: tuple[SavedSearch, ...]

    @property
    def is_empty(self) -> bool:
        return not self.feeds and not any(_has_feeds(each) for each in self.branches)


def read_tree(connection: Connection, user_id: int) -> Tree:
    """A person's tree, with its counts."""
    folders = list_folders(connection, user_id)
    feeds = sorted(
        list_subscriptions(connection, user_id), key=lambda feed: (feed.position, feed.title.casefold())
    )
    by_folder: dict[int | None, list[Subscription]] = {}
    for feed in feeds:
        by_folder.setdefault(feed.folder_id, []).append(feed)
    children: dict[int | None, list[Folder]] = {}
    for folder in folders:
        children.setdefault(folder.parent_id, []).append(folder)

    def grow(folder: Folder, depth: int) -> Branch:
        branches = tuple(grow(each, depth + 1) for each in children.get(folder.id, ()))
        inside = tuple(by_folder.get(folder.id, ()))
        unread = sum(feed.unread_count for feed in inside if not feed.is_muted)
        return Branch(folder, depth, branches, inside, unread + sum(each.unread for each in branches))

    branches = tuple(grow(folder, 1) for folder in children.get(None, ()))
    counts = smart_counts(connection, user_id)
    return Tree(
        branches=branches,
        feeds=tuple(by_folder.get(None, ())),
        tags=tuple(list_tags(connection, user_id)),
        unread=sum(feed.unread_count for feed in feeds if not feed.is_muted),
        starred=counts["starred"],
        later=counts["later"],
        folders=tuple(folders),
        searches=tuple(list_saved_searches(connection, user_id)),
    )


def smart_counts(connection: Connection, user_id: int) -> dict[str, int]:
    """How many entries are starred, and how many are put aside."""
    return {
        "starred": count_entries(connection, user_id, EntryFilter(is_starred=True)),
        "later": count_entries(connection, user_id, EntryFilter(read_later=True)),
    }


def read_counts(connection: Connection, user_id: int) -> dict[str, int | Mapping[str, int]]:
    """What the numbers in the tree are now."""
    unread = unread_counts(connection, user_id)
    return {
        "unread": sum(each.count for each in unread if not each.is_muted),
        **smart_counts(connection, user_id),
        "feeds": {str(each.subscription_id): each.count for each in unread},
        "folders": _by_folder(list_folders(connection, user_id), unread),
    }


def _by_folder(folders: list[Folder], unread: list[Unread]) -> dict[str, int]:
    """Unread entries in each folder and the folders in it."""
    totals = {folder.id: 0 for folder in folders}
    for each in unread:
        if each.folder_id in totals and not each.is_muted:
            totals[each.folder_id] += each.count
    for folder in reversed(folders):
        if folder.parent_id in totals:
            totals[folder.parent_id] += totals[folder.id]
    return {str(folder_id): count for folder_id, count in totals.items()}


def _has_feeds(branch: Branch) -> bool:
    return bool(branch.feeds) or any(map(_has_feeds, branch.branches))
