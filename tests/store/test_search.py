"""Search finds the same in both databases: words, phrases, beginnings, exclusions, Chinese inside a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection

from headwater.errors import InputError
from headwater.model import Item
from headwater.store import search
from headwater.store.database import Store
from headwater.store.items import ItemChange, list_items, write_items
from headwater.store.search import (
    BATCH,
    LATE_SECONDS,
    POSITION,
    Front,
    index_all,
    index_new_items,
    read_query,
    words_of,
)
from headwater.store.selection import Selection
from headwater.store.settings import get_setting
from headwater.store.sources import add_source
from tests.clock import NOON

TEXTS = {
    "river": "The <b>river</b> floods again",
    "café": "Un café à Paris &amp; Zürich",
    "news": "今天的新闻：河水上涨",
    "script": "<script>river()</script>a quiet day",
    "quotes": "it's \"said\" 'so' \\ & | ! ( ) : * <->",
}


def store_texts(connection: Connection, texts: dict[str, str], at: float = NOON) -> None:
    source = add_source(connection, name="one", type="rss.feed", url="https://one.example/", now=at)
    changes = tuple(
        ItemChange("new", Item(name, title=text), name.encode(), name.encode(), (), b"h", at)
        for name, text in texts.items()
    )
    write_items(connection, [(source.id, changes, at)])


def found(store: Store, query: str) -> set[str]:
    with store.reading() as connection:
        return {item.external_id for item in list_items(connection, selection=Selection(search=query))}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("river", {"river"}),
        ("RIVER floods", {"river"}),
        ("river -floods", set()),
        ('"floods again"', {"river"}),
        ('"again floods"', set()),
        ("flo*", {"river"}),
        ("flo", set()),
        ("cafe", {"café"}),
        ("ZÜRICH", {"café"}),
        ("新闻", {"news"}),
        ("闻新", set()),
        ("河水 -新闻", set()),
        ("quiet", {"script"}),
        ("it's", {"quotes"}),
        ("said so", {"quotes"}),
    ],
)
def test_a_query_finds(store: Store, query: str, names: set[str]) -> None:
    with store.writing() as connection:
        store_texts(connection, TEXTS)
    index_all(store, NOON)
    assert found(store, query) == names


@given(st.text(max_size=40))
def test_any_query_is_read_or_refused(query: str) -> None:
    try:
        assert any(not term.excluded for term in read_query(query))
    except InputError as error:
        assert "nothing to look for" in str(error)


@pytest.mark.parametrize(
    "text", ["river", "a'b\\c", "\u00e9\u0301", "\ufdfa", "ﬁne ½ ①", "x" * 5_000, "\U0001f600"]
)
def test_what_is_indexed_is_found_by_its_own_words(store: Store, text: str) -> None:
    with store.writing() as connection:
        store_texts(connection, {"it": text})
    index_all(store, NOON)
    if words_of(text):
        assert found(store, text) == {"it"}


def test_many_are_indexed_in_batches_and_late_commits_are_not_forgotten(store: Store) -> None:
    with store.writing() as connection:
        store_texts(connection, {f"n{number}": "wave" for number in range(BATCH + 3)})
        assert index_new_items(connection, NOON) == BATCH
        assert index_new_items(connection, NOON) == 3
        assert index_new_items(connection, NOON) == 0
        # As if another worker's commit had been late: an item whose number is lower than one indexed already.
        connection.exec_driver_sql("DELETE FROM item_words" if store.is_sqlite else "TRUNCATE item_words")
        assert index_new_items(connection, NOON + LATE_SECONDS + 1) == BATCH
        assert index_new_items(connection, NOON + LATE_SECONDS + 1) == 3


def test_who_indexes_batch_after_batch_looks_back_at_the_end(store: Store) -> None:
    front = Front()
    with store.writing() as connection:
        store_texts(connection, {f"n{number}": "wave" for number in range(25)})
        assert [index_new_items(connection, NOON, 10, front) for _ in range(2)] == [10, 10]
        # As if another worker's commit had come behind it.
        connection.exec_driver_sql(
            f"DELETE FROM item_words WHERE {'rowid' if store.is_sqlite else 'item_id'} <= 2"
        )
        assert [index_new_items(connection, NOON, 10, front), front.is_done] == [5, False]
        assert [index_new_items(connection, NOON, 10, front), front.is_done] == [2, True]


def test_what_is_in_the_index_for_long_is_not_looked_through_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LATE_NUMBERS", 1)
    with store.writing() as connection:
        store_texts(connection, {f"n{number}": "wave" for number in range(10)})
        assert index_new_items(connection, NOON, 5) == 5
        assert index_new_items(connection, NOON + LATE_SECONDS + 1, 5) == 5
        assert get_setting(connection, POSITION) is None, "there may be more behind a full batch"
        assert index_new_items(connection, NOON + LATE_SECONDS - 1, 5) == 0
        assert get_setting(connection, POSITION) is None, "a late commit may still come"
        assert index_new_items(connection, NOON + LATE_SECONDS + 1, 5) == 0
        assert get_setting(connection, POSITION) == 9


def test_changed_items_are_found_by_what_they_say_now_and_deleted_ones_not_at_all(store: Store) -> None:
    with store.writing() as connection:
        store_texts(connection, {"it": "old words"})
        index_new_items(connection, NOON)
        change = ItemChange("changed", Item("it", title="fresh words"), b"it", b"it", (), b"h2", NOON)
        write_items(connection, [(1, (change,), NOON)])
    assert found(store, "old") == set()
    assert found(store, "fresh") == {"it"}
    with store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM items")
        assert connection.exec_driver_sql("SELECT count(*) FROM item_words").scalar_one() == 0
