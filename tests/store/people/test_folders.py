"""Folders: a tree of one person, in an order."""

import pytest

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.store.core.database import Store
from headwater.store.people.folders import (
    DEEPEST,
    add_folder,
    change_folder,
    folder_paths,
    list_folders,
    make_folder_path,
    move_folder,
    remove_folder,
    with_subfolders,
)
from headwater.store.people.subscriptions import change_subscription, list_subscriptions


def test_list_folders_puts_children_after_parents_in_order(store: Store, ann: int) -> None:
    with store.writing() as connection:
        deep = make_folder_path(connection, ann, ["News", "World", "Asia"])
        make_folder_path(connection, ann, ["Tech"])
        assert make_folder_path(connection, ann, ["News", "World", "Asia"]) == deep
        tree = list_folders(connection, ann)
        assert [folder.name for folder in tree] == ["News", "World", "Asia", "Tech"]
        assert folder_paths(tree)[deep or 0] == ("News", "World", "Asia")
        assert len(with_subfolders(tree, tree[0].id)) == 3
        change_folder(connection, ann, tree[3].id, position=0)
        assert next(folder.name for folder in list_folders(connection, ann)) == "Tech"
        assert make_folder_path(connection, ann, [""]) is None


def test_folders_refuse_loops_taken_names_and_great_depth(store: Store, ann: int) -> None:
    with store.writing() as connection:
        outer = add_folder(connection, ann, "A")
        inner = add_folder(connection, ann, "B", outer.id)
        with pytest.raises(InputError):
            move_folder(connection, ann, outer.id, inner.id)
        with pytest.raises(ConflictError):
            add_folder(connection, ann, " A ")
        with pytest.raises(ConflictError):
            change_folder(connection, ann, add_folder(connection, ann, "C").id, name="A")
        with pytest.raises(InputError):
            add_folder(connection, ann, "  ")
        with pytest.raises(NotFoundError):
            move_folder(connection, 1, outer.id, None)
        last = inner
        with pytest.raises(InputError):
            for depth in range(DEEPEST):
                last = add_folder(connection, ann, f"D{depth}", last.id)
        with pytest.raises(InputError):
            move_folder(connection, ann, outer.id, make_folder_path(connection, ann, ["X", "Y"]))


def test_remove_folder_keeps_subscriptions(store: Store, ann: int) -> None:
    with store.writing() as connection:
        folder = make_folder_path(connection, ann, ["A", "B"])
        (subscription,) = list_subscriptions(connection, ann)
        change_subscription(connection, ann, subscription.id, folder_id=folder)
        remove_folder(connection, ann, list_folders(connection, ann)[0].id)
        assert list_folders(connection, ann) == []
        assert [each.folder_id for each in list_subscriptions(connection, ann)] == [None]
