"""Of two edits at once neither undoes the other unseen."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from headwater.errors import ChangedError
from headwater.model import Item, Plan
from headwater.sources.editing import Edit, edit_source
from headwater.store.collecting.queue import settle_batch
from headwater.store.collecting.sources import get_source
from headwater.store.core.database import Store
from headwater.store.core.versions import check_outlet_version, version_of
from headwater.store.reading.outlets import Outlet, add_outlet, change_outlet
from tests.clock import NOON
from tests.publish.test_outlets import store_items
from tests.store.collecting.test_queue import claim, done


def test_edits_of_one_version_at_the_same_moment_save_one(store: Store) -> None:
    with store.writing() as connection:
        source_id = store_items(connection, Item("1"))
        version = version_of(get_source(connection, source_id))
    together = Barrier(4)

    def edit(number: int) -> bool:
        together.wait(30)
        try:
            with store.writing() as connection:
                edit_source(connection, source_id, Edit(name=f"name {number}", version=version), NOON)
        except ChangedError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(edit, range(4))) == [False, False, False, True]


def test_a_visit_is_no_edit(store: Store) -> None:
    with store.writing() as connection:
        source_id = store_items(connection)
        before = version_of(get_source(connection, source_id))
        (source,) = claim(connection)
        settle_batch(connection, [done(source, NOON, Plan(NOON + 3600))])
        assert version_of(get_source(connection, source_id)) == before


def test_check_outlet_refuses_a_version_of_before(store: Store) -> None:
    with store.writing() as connection:
        outlet = add_outlet(connection, Outlet("all", "All"), NOON)
        check_outlet_version(connection, "all", version_of(outlet))
        change_outlet(connection, "all", NOON, title="Everything")
        check_outlet_version(connection, "all", None)
        check_outlet_version(connection, "all", "*")
        with pytest.raises(ChangedError):
            check_outlet_version(connection, "all", version_of(outlet))
