"""Search finds the same in both databases: words, phrases, beginnings, exclusions, Chinese inside a sentence."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Row

from headwater.errors import InputError
from headwater.model import Item
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.settings import get_setting
from headwater.store.reading import cursors, listing, search
from headwater.store.reading.items import ItemChange, list_items, write_items
from headwater.store.reading.listing import newest_items
from headwater.store.reading.outlets import Outlet, add_outlet, read_edition, remove_outlet
from headwater.store.reading.search import (
    BATCH,
    LATE_SECONDS,
    POSITION,
    index_all,
    index_batch,
    read_query,
    words_of,
)
from headwater.store.reading.selection import Selection
from tests.clock import NOON

TEXTS = {
    "river": "The <b>river</b> floods again",
    "café": "Un café à Paris &amp; Zürich",
    "news": "今天的新闻：河水上涨",
    "script": "<script>river()</script>a quiet day",
    "quotes": "it's \"said\" 'so' \\ & | ! ( ) : * <->",
}


def store_texts(connection: Connection, texts: dict[str, str], at: float = NOON, source: str = "one") -> None:
    source_id = add_source(
        connection, name=source, type="rss.feed", url=f"https://{source}.example/", now=at
    ).id
    changes = tuple(
        ItemChange("new", Item(name, title=text), name.encode(), name.encode(), (), b"h", at)
        for name, text in texts.items()
    )
    write_items(connection, [(source_id, changes, at)])


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
        ("-river", {"café", "news", "script", "quotes"}),
        ("-river -新闻 -caf*", {"script", "quotes"}),
        ('-"floods again" -"again floods"', {"café", "news", "script", "quotes"}),
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
        assert all(term.words for term in read_query(query))
    except InputError as error:
        assert "nothing to look for" in str(error)


@pytest.mark.parametrize("query", ["x" * 10_001, "w " * 101, "-w " * 101])
def test_query_that_is_too_long_is_refused(query: str) -> None:
    with pytest.raises(InputError, match="at most"):
        read_query(query)


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
    assert [len(index_batch(store, NOON)) for _ in range(3)] == [BATCH, 3, 0]
    # As if another worker's commit had been late: an item whose number is lower than one indexed already.
    with store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM item_words" if store.is_sqlite else "TRUNCATE item_words")
    assert [len(index_batch(store, NOON + LATE_SECONDS + 1)) for _ in range(2)] == [BATCH, 3]


def test_who_indexes_batch_after_batch_looks_back_at_the_end(store: Store) -> None:
    with store.writing() as connection:
        store_texts(connection, {f"n{number}": "wave" for number in range(25)})
    counts: list[int] = []

    def count(indexed: int) -> None:
        counts.append(indexed)
        if len(counts) == 2:  # as if another worker's commit had come behind it
            with store.writing() as connection:
                connection.exec_driver_sql(
                    f"DELETE FROM item_words WHERE {'rowid' if store.is_sqlite else 'item_id'} <= 2"
                )

    index_all(store, NOON, 10, count)
    assert counts == [10, 10, 5, 2]


def test_what_is_in_the_index_for_long_is_not_looked_through_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LATE_NUMBERS", 1)

    def position() -> object:
        with store.reading() as connection:
            return get_setting(connection, POSITION)

    with store.writing() as connection:
        store_texts(connection, {f"n{number}": "wave" for number in range(10)})
    assert len(index_batch(store, NOON, 5)) == 5
    assert len(index_batch(store, NOON + LATE_SECONDS + 1, 5)) == 5
    assert position() is None, "there may be more behind a full batch"
    assert len(index_batch(store, NOON + LATE_SECONDS - 1, 5)) == 0
    assert position() is None, "a late commit may still come"
    assert len(index_batch(store, NOON + LATE_SECONDS + 1, 5)) == 0
    assert position() == 9


def test_changed_items_are_found_by_what_they_say_now_and_deleted_ones_not_at_all(store: Store) -> None:
    with store.writing() as connection:
        store_texts(connection, {"it": "old words"})
    index_batch(store, NOON)
    with store.writing() as connection:
        change = ItemChange("changed", Item("it", title="fresh words"), b"it", b"it", (), b"h2", NOON)
        write_items(connection, [(1, (change,), NOON)])
    assert found(store, "old") == set()
    assert found(store, "fresh") == {"it"}
    with store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM items")
        assert connection.exec_driver_sql("SELECT count(*) FROM item_words").scalar_one() == 0


@pytest.mark.parametrize("common", [-1.0, 2.0])
@pytest.mark.parametrize("many", [1, 1_000])
@pytest.mark.parametrize("walked", [1, 1_000])
def test_the_same_is_found_however_common_the_words_seem(
    store: Store, monkeypatch: pytest.MonkeyPatch, common: float, many: int, walked: int
) -> None:
    """Whether matches are looked for among the newest items or gathered, and whether the first was in vain."""
    monkeypatch.setattr(search, "COMMON", common)
    monkeypatch.setattr(search, "MANY_MATCHES", many)
    monkeypatch.setattr(listing, "WALKED_ITEMS", walked)
    monkeypatch.setattr(cursors, "WALKED_ITEMS", walked)
    with store.writing() as connection:
        store_texts(
            connection, {f"{number}": f"wave {'odd' * (number % 2)} n{number}" for number in range(9)}
        )
    index_all(store, NOON)
    with store.writing() as connection:
        for query, names in (
            ("wave", "012345678"),
            ("od*", "1357"),
            ("wave -odd", "02468"),
            ("-odd", "02468"),
            ("n7", "7"),
        ):
            wanted = Selection(search=query)
            newest = list(reversed(names))
            first = newest_items(connection, wanted, limit=2)
            assert [item.title[-1] for item in first] == newest[:3]
            rest = newest_items(connection, wanted, after=(first[0].item_at, first[0].id), limit=9)
            assert [item.title[-1] for item in rest] == newest[1:]
            of_one = newest_items(connection, Selection(search=query, source_ids=(1,)), limit=9)
            assert [item.title[-1] for item in of_one] == newest
            add_outlet(connection, Outlet("two", "Two", wanted, item_limit=2), NOON)
            assert list(read_edition(connection, "two").item_ids) == [item.id for item in first[:2]]
            remove_outlet(connection, "two")
            cursors.create_cursor(connection, "all", now=NOON, selection=wanted)
            placed = cursors.read_cursor(connection, "all", limit=9).items
            assert [each.item.external_id for each in placed] == list(names)
            cursors.remove_cursor(connection, "all")


_FILL = (
    """
    INSERT INTO items (id, source_id, external_id, id_hash, title, item_at, first_seen_at, content_hash, position,
        changed_position)
    SELECT n, 1, n, convert_to('' || n, 'UTF8'), '', n, n, '', n, n FROM generate_series(1, 20000) AS new (n)
    """,
    # A third have `sea`; three of the oldest have `oldest`, ten `old`, many `fad`. Of other words there are more than
    # PostgreSQL remembers.
    """
    INSERT INTO item_words
    SELECT n, to_tsvector('simple',
        (SELECT string_agg('w' || k || 'n' || n % (90 + k), ' ') FROM generate_series(1, 12) AS each (k))
        || CASE WHEN n % 3 = 0 THEN ' sea' ELSE '' END || CASE WHEN n <= 10 THEN ' old' ELSE '' END
        || CASE WHEN n <= 3 THEN ' oldest' ELSE '' END || CASE WHEN n <= 800 THEN ' fad' ELSE '' END)
    FROM generate_series(1, 20000) AS new (n)
    """,
    "ANALYZE items, item_words",
    "SET LOCAL max_parallel_workers_per_gather = 0",  # who count for themselves what they read
)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_word_is_not_looked_for_in_all_items(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL expects more items of a word it does not know than there are, and would go through all for them."""
    monkeypatch.setattr(listing, "WALKED_ITEMS", 500)
    monkeypatch.setattr(search, "MANY_MATCHES", 5_000)

    def rows_read() -> int:
        counted = connection.exec_driver_sql(
            "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname = 'items'"
        )
        return int(counted.scalar_one())

    with store.writing() as connection:
        add_source(connection, name="one", type="rss.feed", url="https://one.example/", now=NOON)
        for statement in _FILL:
            connection.exec_driver_sql(statement.replace("%", "%%"))
        for query in ("old", "old*", "oldest", "sea", "sea old", "fad"):
            before = rows_read()
            assert len(newest_items(connection, Selection(search=query), limit=1)) == 2
            assert rows_read() - before < 2_500, query


def test_index_of_hostile_texts_is_made_before_the_transaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.writing() as connection:
        store_texts(connection, {f"n{number}": "<" * 40_000 + "wave" for number in range(5)})
    open_at: list[bool] = []
    writing = store.writing

    @contextmanager
    def watched() -> Iterator[Connection]:
        with writing() as connection:
            open_at.append(True)
            yield connection
            open_at.pop()

    def words(text: str) -> list[str]:
        assert not open_at, "words are made while others wait to write"
        return words_of(text)

    monkeypatch.setattr(store, "writing", watched)
    monkeypatch.setattr(search, "words_of", words)
    index_all(store, NOON)
    monkeypatch.undo()
    assert found(store, "wave") == set(), "it stands behind what is read of an item"


def test_item_that_changes_while_its_words_are_made_keeps_those_of_its_change(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.writing() as connection:
        store_texts(connection, {"it": "old words"})

    def change_meanwhile(rows: Sequence[Row[Any]], results: object) -> search.Words:
        if not rows:
            return {}
        change = ItemChange("changed", Item("it", title="fresh words"), b"it", b"it", (), b"h2", NOON)
        with store.writing() as connection:
            write_items(connection, [(1, (change,), NOON)])
        return {row.id: (row.version, ["old"]) for row in rows}

    monkeypatch.setattr(search, "_words_of_rows", change_meanwhile)
    index_batch(store, NOON)
    assert found(store, "old") == set()
    assert found(store, "fresh") == {"it"}
