"""Preferences: how a person wants to read, on whatever device; and how single folders differ from that.

They are kept with the user as JSON, of which only what is known and allowed counts: what an older or a newer Headwater
wrote there stays as it is. A folder's own view is kept with the folder, so that it is deleted with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import orjson
from sqlalchemy import Connection, select

from headwater.errors import InputError
from headwater.model import Json
from headwater.store.core.tables import folders
from headwater.store.people.folders import get_folder, lock_user
from headwater.store.people.users import change_user, get_user

Layout = Literal["list", "cards", "magazine", "expanded"]
Days = Literal[1, 7, 30, "never"]
READ_LATER_DAYS: Final = 7

# What may be chosen; the first is the default.
CHOICES: Final[Mapping[str, tuple[Any, ...]]] = {
    "language": (None, "en", "zh"),
    "theme": ("auto", "light", "dark"),
    "density": ("normal", "compact", "relaxed"),
    "size": ("normal", "small", "large"),
    "layout": ("list", "cards", "magazine", "expanded"),
    "sort": ("newest", "oldest"),
    "start_view": ("unread", "all", "starred", "later"),
    "unread_only": (True, False),
    "mark_read_on_scroll": (False, True),
    "same_story_once": (True, False),
    "single_keys": (True, False),
    "read_later_days": (READ_LATER_DAYS, 1, 30, "never"),
}
FOLDER_CHOICES: Final = ("layout", "sort", "unread_only", "same_story_once")


@dataclass(frozen=True, slots=True)
class Preferences:
    """How a person reads. `folder_views` holds what single folders do otherwise, by their numbers."""

    language: str | None = None
    theme: str = "auto"
    density: str = "normal"
    size: str = "normal"
    layout: Layout = "list"
    sort: Literal["newest", "oldest"] = "newest"
    start_view: str = "unread"
    unread_only: bool = True
    mark_read_on_scroll: bool = False
    same_story_once: bool = True
    single_keys: bool = True
    read_later_days: Days = READ_LATER_DAYS
    folder_views: dict[int, Json] = field(default_factory=dict, hash=False)


def known_preferences(stored: Mapping[str, Any]) -> Preferences:
    """What is allowed of a person's stored preferences, and defaults for the rest."""
    return Preferences(**_known(stored, tuple(CHOICES)))


def read_preferences(connection: Connection, user_id: int) -> Preferences:
    known = known_preferences(get_user(connection, user_id).preferences)
    known.folder_views.update(list_folder_views(connection, user_id))
    return known


def list_folder_views(connection: Connection, user_id: int) -> dict[int, Json]:
    """What folders do otherwise than a person's preferences, by the folders' numbers."""
    query = select(folders.c.id, folders.c.view).where(folders.c.user_id == user_id, folders.c.view != "{}")
    found = {row[0]: _known(orjson.loads(row[1]), FOLDER_CHOICES) for row in connection.execute(query)}
    return {folder_id: view for folder_id, view in sorted(found.items()) if view}


def change_preferences(
    connection: Connection,
    user_id: int,
    changes: Mapping[str, Any],
    folder_views: Mapping[int, Mapping[str, Any] | None] | None = None,
) -> Preferences:
    """Set some preferences; None takes one back to its default, in a folder to the person's."""
    lock_user(connection, user_id)
    stored = get_user(connection, user_id).preferences
    change_user(connection, user_id, preferences=_merged(stored, changes, tuple(CHOICES)))
    for folder_id, view in (folder_views or {}).items():
        get_folder(connection, user_id, folder_id)
        query = select(folders.c.view).where(folders.c.id == folder_id)
        before = orjson.loads(connection.execute(query).scalar_one())
        after = {} if view is None else _merged(before, view, FOLDER_CHOICES)
        connection.execute(
            folders.update().where(folders.c.id == folder_id).values(view=orjson.dumps(after).decode())
        )
    return read_preferences(connection, user_id)


def _merged(stored: Mapping[str, Any], changes: Mapping[str, Any], names: tuple[str, ...]) -> Json:
    for name, value in changes.items():
        if name not in names:
            raise InputError("there is no preference {name}", name=name[:100])
        if value is not None and not _is_allowed(name, value):
            known = ", ".join(str(each).lower() for each in CHOICES[name] if each is not None)
            raise InputError(
                "{name} cannot be {value}; choose from {known}",
                name=name,
                value=str(value)[:100],
                known=known,
            )
    return {name: value for name, value in {**stored, **changes}.items() if value is not None}


def _known(stored: Mapping[str, Any], names: tuple[str, ...]) -> Json:
    return {name: stored[name] for name in names if name in stored and _is_allowed(name, stored[name])}


def _is_allowed(name: str, value: Any) -> bool:
    # 1 and True are equal, and yet not the same.
    return any(value == each and type(value) is type(each) for each in CHOICES[name])
