"""A person's folders: a tree with an order, changed by hand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.store.core.bulk import is_sqlite, storable
from headwater.store.core.tables import folders, users

DEEPEST = 8
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder; `parent_id` is None at the top of the tree."""

    id: int
    parent_id: int | None
    name: str
    position: int


_COLUMNS = [folders.c[name] for name in Folder.__dataclass_fields__]


def list_folders(connection: Connection, user_id: int) -> list[Folder]:
    """A person's folders in the order of the tree: each after its parent, siblings by position."""
    query = select(*_COLUMNS).where(folders.c.user_id == user_id)
    found = [Folder(*row) for row in connection.execute(query)]
    children: dict[int | None, list[Folder]] = {}
    for folder in sorted(found, key=lambda each: (each.position, each.name, each.id)):
        children.setdefault(folder.parent_id, []).append(folder)
    ordered: list[Folder] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        folder = waiting.pop()
        ordered.append(folder)
        waiting += children.get(folder.id, [])[::-1]
    return ordered


def get_folder(connection: Connection, user_id: int, folder_id: int) -> Folder:
    query = select(*_COLUMNS).where(folders.c.id == folder_id, folders.c.user_id == user_id)
    row = connection.execute(query).first()
    if row is None:
        raise NotFoundError("there is no folder {id}", id=folder_id)
    return Folder(*row)


def add_folder(connection: Connection, user_id: int, name: str, parent_id: int | None = None) -> Folder:
    """Make a folder, last among its siblings. ConflictError if there is one of this name."""
    lock_user(connection, user_id)
    name = read_folder_name(name)
    there = list_folders(connection, user_id)
    if parent_id is not None:
        get_folder(connection, user_id, parent_id)
        if len(ancestors_of(there, parent_id)) + 1 >= DEEPEST:
            raise InputError("folders can be nested {limit} deep", limit=DEEPEST)
    _refuse_taken_name(there, name, parent_id)
    return _insert(connection, user_id, name, parent_id)


def make_folder_path(connection: Connection, user_id: int, names: Sequence[str]) -> int | None:
    """The number of the folder at this path, made with its parents where they are missing; None for no names."""
    lock_user(connection, user_id)
    parent_id: int | None = None
    there = {(each.parent_id, each.name): each.id for each in list_folders(connection, user_id)}
    for name in [read_folder_name(each) for each in names if each.strip()][:DEEPEST]:
        known = there.get((parent_id, name))
        parent_id = _insert(connection, user_id, name, parent_id).id if known is None else known
    return parent_id


def change_folder(
    connection: Connection,
    user_id: int,
    folder_id: int,
    *,
    name: str | None = None,
    position: int | None = None,
) -> Folder:
    """Rename a folder, or give it another place among its siblings."""
    lock_user(connection, user_id)
    folder = get_folder(connection, user_id, folder_id)
    if name is not None and (name := read_folder_name(name)) != folder.name:
        _refuse_taken_name(list_folders(connection, user_id), name, folder.parent_id)
        connection.execute(folders.update().where(folders.c.id == folder_id).values(name=name))
    if position is not None:
        _place(connection, user_id, folder_id, folder.parent_id, position)
    return get_folder(connection, user_id, folder_id)


def move_folder(connection: Connection, user_id: int, folder_id: int, parent_id: int | None) -> Folder:
    """Put a folder, with what is in it, into another one (None: the top)."""
    lock_user(connection, user_id)
    folder = get_folder(connection, user_id, folder_id)
    there = list_folders(connection, user_id)
    if parent_id is not None:
        get_folder(connection, user_id, parent_id)
        if folder_id in (parent_id, *ancestors_of(there, parent_id)):
            raise InputError("a folder cannot be moved into itself")
        if len(ancestors_of(there, parent_id)) + 1 + _height(there, folder_id) > DEEPEST:
            raise InputError("folders can be nested {limit} deep", limit=DEEPEST)
    if folder.parent_id != parent_id:
        _refuse_taken_name(there, folder.name, parent_id)
        position = _last_position(connection, user_id, parent_id) + 1
        connection.execute(
            folders.update().where(folders.c.id == folder_id).values(parent_id=parent_id, position=position)
        )
    return get_folder(connection, user_id, folder_id)


def remove_folder(connection: Connection, user_id: int, folder_id: int) -> None:
    """Delete a folder and the folders in it. Subscriptions in them stay, in no folder."""
    lock_user(connection, user_id)
    get_folder(connection, user_id, folder_id)
    connection.execute(folders.delete().where(folders.c.id == folder_id))


def ancestors_of(tree: Iterable[Folder], folder_id: int) -> list[int]:
    """The numbers of the folders that a folder is in, the nearest first."""
    parents = {each.id: each.parent_id for each in tree}
    found: list[int] = []
    while (parent := parents.get(folder_id)) is not None and parent not in found:
        found.append(parent)
        folder_id = parent
    return found


def with_subfolders(tree: Iterable[Folder], folder_id: int) -> list[int]:
    """The numbers of a folder and of all folders in it. The tree is in the order of `list_folders`."""
    found = {folder_id}
    for folder in tree:
        if folder.parent_id in found:
            found.add(folder.id)
    return sorted(found)


def folder_paths(tree: Iterable[Folder]) -> dict[int, tuple[str, ...]]:
    """The names from the top to each folder. The tree is in the order of `list_folders`."""
    paths: dict[int, tuple[str, ...]] = {}
    for folder in tree:
        above = paths.get(folder.parent_id, ()) if folder.parent_id is not None else ()
        paths[folder.id] = (*above, folder.name)
    return paths


def read_folder_name(name: str) -> str:
    name = " ".join((storable(name) or "").split())
    if not name:
        raise InputError("a folder needs a name")
    if len(name) > LONGEST_NAME:
        raise InputError("a folder's name has at most {limit} characters", limit=LONGEST_NAME)
    return name


def lock_user(connection: Connection, user_id: int) -> None:
    """Keep others from changing this person's folders and subscriptions until the transaction ends."""
    if not is_sqlite(connection):
        connection.execute(select(users.c.id).where(users.c.id == user_id).with_for_update(key_share=True))


def _refuse_taken_name(tree: Iterable[Folder], name: str, parent_id: int | None) -> None:
    if any(each.name == name and each.parent_id == parent_id for each in tree):
        raise ConflictError("there is a folder {name} already", name=name)


def _height(tree: Sequence[Folder], folder_id: int) -> int:
    """How many levels a folder and those in it take."""
    inside = set(with_subfolders(tree, folder_id))
    return 1 + max(len(inside & set(ancestors_of(tree, each))) for each in inside)


def _last_position(connection: Connection, user_id: int, parent_id: int | None) -> int:
    query = select(func.max(folders.c.position)).where(
        folders.c.user_id == user_id, folders.c.parent_id.is_not_distinct_from(parent_id)
    )
    return connection.execute(query).scalar() or 0


def _insert(connection: Connection, user_id: int, name: str, parent_id: int | None) -> Folder:
    position = _last_position(connection, user_id, parent_id) + 1
    row = connection.execute(
        folders.insert()
        .values(user_id=user_id, parent_id=parent_id, name=name, position=position)
        .returning(*_COLUMNS)
    ).one()
    return Folder(*row)


def _place(
    connection: Connection, user_id: int, folder_id: int, parent_id: int | None, position: int
) -> None:
    """Number the siblings again, with this one at `position` (0: first)."""
    siblings = [each.id for each in list_folders(connection, user_id) if each.parent_id == parent_id]
    siblings.remove(folder_id)
    siblings.insert(max(position, 0), folder_id)
    for place, sibling in enumerate(siblings, 1):
        connection.execute(folders.update().where(folders.c.id == sibling).values(position=place))
