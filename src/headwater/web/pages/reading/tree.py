"""The tree beside the list: smart views, folders with their feeds, tags, each with how much is unread.

A person with many feeds sees those of the folder that is shown; the others have a page with a search.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from headwater.store.people.entries import EntryFilter, count_entries
from headwater.store.people.folders import Folder, list_folders
from headwater.store.people.marks import list_tags
from headwater.store.people.reading import FolderCount, count_by_folder
from headwater.store.people.saved_searches import SavedSearch, list_saved_searches
from headwater.store.people.subscriptions import Subscription, find_subscriptions

MOST_FEEDS = 500  # in the whole tree; of more, those of one folder
MOST_IN_FOLDER = 100


@dataclass(frozen=True, slots=True)
class Branch:
    """A folder with the folders and feeds in it; `unread` counts all of them, `more` the feeds that are not here."""

    folder: Folder
    depth: int
    branches: tuple["Branch", ...]
    feeds: tuple[Subscription, ...]
    unread: int
    more: int


@dataclass(frozen=True, slots=True)
class Tree:
    branches: tuple[Branch, ...]
    feeds: tuple[Subscription, ...]  # in no folder
    more: int  # feeds in no folder that are not here
    feed_count: int
    tags: tuple[tuple[str, int], ...]
    unread: int
    starred: int
    later: int
    folders: tuple[Folder, ...]
    searches: tuple[SavedSearch, ...]


def read_tree(connection: Connection, user_id: int, shown_folder: int | None = None) -> Tree:
    """A person's tree, with its counts; of many feeds, those of the folder that is shown."""
    folders = list_folders(connection, user_id)
    counted = count_by_folder(connection, user_id)
    feed_count = sum(each.feeds for each in counted.values())
    by_folder = _feeds(connection, user_id, shown_folder, feed_count)
    children: dict[int | None, list[Folder]] = {}
    for folder in folders:
        children.setdefault(folder.parent_id, []).append(folder)
    unread = _unread(folders, counted)

    def more_in(folder_id: int | None) -> int:
        there = counted.get(folder_id)
        return there.feeds - len(by_folder.get(folder_id, ())) if there else 0

    def grow(folder: Folder, depth: int) -> Branch:
        return Branch(
            folder=folder,
            depth=depth,
            branches=tuple(grow(each, depth + 1) for each in children.get(folder.id, ())),
            feeds=tuple(by_folder.get(folder.id, ())),
            unread=unread[folder.id],
            more=more_in(folder.id),
        )

    smart = smart_counts(connection, user_id)
    return Tree(
        branches=tuple(grow(folder, 1) for folder in children.get(None, ())),
        feeds=tuple(by_folder.get(None, ())),
        more=more_in(None),
        feed_count=feed_count,
        tags=tuple(list_tags(connection, user_id)),
        unread=sum(each.unread for each in counted.values()),
        starred=smart["starred"],
        later=smart["later"],
        folders=tuple(folders),
        searches=tuple(list_saved_searches(connection, user_id)),
    )


def _feeds(
    connection: Connection, user_id: int, shown_folder: int | None, feed_count: int
) -> dict[int | None, list[Subscription]]:
    """The feeds that the tree shows, by folder."""
    if feed_count <= MOST_FEEDS:
        found = find_subscriptions(connection, user_id, limit=MOST_FEEDS)
    else:
        found = [
            feed
            for folder_id in {None, shown_folder}
            for feed in find_subscriptions(connection, user_id, folder_ids=(folder_id,), limit=MOST_IN_FOLDER)
        ]
    by_folder: dict[int | None, list[Subscription]] = {}
    for feed in sorted(found, key=lambda feed: (feed.position, feed.title.casefold())):
        by_folder.setdefault(feed.folder_id, []).append(feed)
    return by_folder


def smart_counts(connection: Connection, user_id: int) -> dict[str, int]:
    """How many entries are starred, and how many are put aside."""
    return {
        "starred": count_entries(connection, user_id, EntryFilter(is_starred=True)),
        "later": count_entries(connection, user_id, EntryFilter(read_later=True)),
    }


def read_counts(
    connection: Connection, user_id: int, shown_folder: int | None = None
) -> dict[str, int | Mapping[str, int]]:
    """What the numbers in the tree are now."""
    folders = list_folders(connection, user_id)
    counted = count_by_folder(connection, user_id)
    feeds = _feeds(connection, user_id, shown_folder, sum(each.feeds for each in counted.values()))
    return {
        "unread": sum(each.unread for each in counted.values()),
        **smart_counts(connection, user_id),
        "feeds": {str(feed.id): feed.unread_count for inside in feeds.values() for feed in inside},
        "folders": {str(folder_id): count for folder_id, count in _unread(folders, counted).items()},
    }


def _unread(folders: list[Folder], counted: Mapping[int | None, FolderCount]) -> dict[int, int]:
    """Unread entries in each folder and the folders in it."""
    totals = {folder.id: counted[folder.id].unread if folder.id in counted else 0 for folder in folders}
    for folder in reversed(folders):
        if folder.parent_id in totals:
            totals[folder.parent_id] += totals[folder.id]
    return totals
