"""The server keeps the search index up to date."""

import pytest

from headwater.store.core.database import Store
from headwater.web import indexing
from headwater.web.indexing import Indexer
from tests.clock import NOON
from tests.store.reading.test_search import found, store_texts


def store_many(store: Store, source: str, texts: dict[str, str]) -> None:
    with store.writing() as connection:
        store_texts(connection, texts, source=source)


async def test_what_is_new_is_found_and_what_was_late_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "REST", 0.0)
    monkeypatch.setattr(indexing, "BATCH", 4)
    now = NOON
    indexer = Indexer(store, lambda: now)
    store_many(store, "one", {f"n{number}": "wave" for number in range(11)})
    await indexer.catch_up()
    assert len(found(store, "wave")) == 11
    store_many(store, "two", {"more": "ripple"})
    await indexer.catch_up()
    assert found(store, "ripple") == {"more"}
    # As if a commit had been late: an item whose number is lower than one that was indexed.
    with store.writing() as connection:
        column = "rowid" if store.is_sqlite else "item_id"
        connection.exec_driver_sql(f"DELETE FROM item_words WHERE {column} = 5")
    await indexer.catch_up()
    assert len(found(store, "wave")) == 10
    monkeypatch.setattr(indexing, "LOOK_BACK_SECONDS", 0.0)
    await indexer.catch_up()
    assert len(found(store, "wave")) == 11
