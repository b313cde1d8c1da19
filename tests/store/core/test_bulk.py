"""Many rows at once: what goes in comes out, whatever is in it."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Boolean, Column, Double, Integer, LargeBinary, MetaData, Table, Text, event, select

from headwater.errors import StoreError
from headwater.store.core.bulk import (
    RETURNED,
    VALUES,
    insert_returning,
    insert_rows,
    padding,
    run_by,
    select_by,
    sent_together,
    storable,
    update_rows,
)
from headwater.store.core.database import Store
from tests.examples import examples

TABLE = Table(
    "bulk_rows",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("words", Text),
    Column("number", Double),
    Column("is_true", Boolean),
    Column("raw", LargeBinary),
)
COLUMNS = ("id", "words", "number", "is_true", "raw")
ODD = (
    "",
    "NULL",
    "null",
    "a,b",
    "{}",
    '"',
    "\\",
    '\\"',
    "{'a': \"b\"}",
    "\n\t\r",
    " x ",
    "%s",
    "汉字 🌊",
    "\\x00",
)


def read(store: Store) -> list[tuple[Any, ...]]:
    with store.reading() as connection:
        return [tuple(row) for row in connection.execute(select(TABLE).order_by(TABLE.c.id))]


@pytest.fixture
def bulk_store(store: Store) -> Iterator[Store]:
    TABLE.create(store.engine)
    yield store
    TABLE.drop(store.engine)


def test_odd_values_come_back_as_they_were(bulk_store: Store) -> None:
    rows: list[tuple[Any, ...]] = [
        (number, words, number / 3, number % 2 == 0, words.encode()) for number, words in enumerate(ODD)
    ]
    rows.append((len(rows), None, None, None, None))
    rows.append((len(rows), "x", -1.5e-300, True, bytes(range(256))))
    with bulk_store.writing() as connection:
        insert_rows(connection, TABLE, COLUMNS, rows)
    assert read(bulk_store) == rows
    changed = [(f"{words}!", raw, id_) for id_, words, _, _, raw in rows]
    with bulk_store.writing() as connection:
        update_rows(connection, TABLE, ("id",), ("words", "raw"), changed)
    assert [(words, raw, id_) for id_, words, _, _, raw in read(bulk_store)] == changed


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(30)
)
@given(
    st.lists(
        st.tuples(
            st.none() | st.text().map(storable),
            st.none() | st.floats(allow_nan=False),
            st.none() | st.booleans(),
            st.none() | st.binary(max_size=40),
        ),
        max_size=20,
    )
)
def test_all_values_come_back_as_they_were(bulk_store: Store, values: list[tuple[Any, ...]]) -> None:
    rows = [(number, *each) for number, each in enumerate(values)]
    with bulk_store.writing() as connection:
        connection.execute(TABLE.delete())
        insert_rows(connection, TABLE, COLUMNS, rows)
    assert read(bulk_store) == rows


def test_insert_returning_sends_sqlite_short_statements_and_returns_all_rows(bulk_store: Store) -> None:
    rows = [(number, "x", 0.5, True, b"") for number in range(1000)]
    sent: list[int] = []
    event.listen(
        bulk_store.engine, "before_cursor_execute", lambda *arguments: sent.append(len(arguments[3]))
    )
    with bulk_store.writing() as connection:
        found = insert_returning(connection, TABLE, COLUMNS, rows, "ON CONFLICT DO NOTHING", "id")
    assert [row[0] for row in found] == list(range(1000))
    assert max(sent) <= RETURNED * len(COLUMNS)


def test_few_numbers_of_values_and_less_than_twice_as_many_as_are_asked_for() -> None:
    asked = {count + padding(count) for count in range(1, VALUES + 1)}
    assert len(asked) <= 15
    assert all(count <= count + padding(count) < 2 * count for count in range(2, VALUES + 1))
    assert padding(1) == 0
    assert max(asked) < 32_766, "as many as SQLite takes"


@pytest.mark.parametrize("count", [1, 2, 9, 33, 100])
def test_rows_are_found_and_changed_once_however_many_are_asked_for(bulk_store: Store, count: int) -> None:
    with bulk_store.writing() as connection:
        insert_rows(connection, TABLE, ("id", "number"), [(number, 0.0) for number in range(1, 201)])
        sql = "SELECT id FROM bulk_rows WHERE number = ? AND id {values}"
        found = select_by(connection, sql, range(1, count + 1), "bigint", 0.0)
        assert sorted(row.id for row in found) == list(range(1, count + 1))
        run_by(
            connection,
            "UPDATE bulk_rows SET number = number + 1 WHERE NOT id {values}",
            range(1, count + 1),
            "bigint",
        )
        changed = connection.execute(select(TABLE.c.id).where(TABLE.c.number == 1.0)).scalars()
        assert sorted(changed) == list(range(count + 1, 201))


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (None, None),
        ("plain", "plain"),
        ("新闻", "新闻"),
        ("a\x00b", "ab"),
        ("新\x00闻", "新闻"),
        ("a\ud800b", "a?b"),
    ],
)
def test_storable_drops_what_no_database_takes(text: str | None, stored: str | None) -> None:
    assert storable(text) == stored


def test_statements_sent_together_are_all_written(bulk_store: Store) -> None:
    with bulk_store.writing() as connection:
        with sent_together(connection):
            insert_rows(connection, TABLE, ("id", "words"), [(1, "a"), (2, "b")])
            update_rows(connection, TABLE, ("id",), ("words",), [("c", 2)])
            run_by(connection, "DELETE FROM bulk_rows WHERE id {values}", [1], "integer")
        assert connection.execute(select(TABLE.c.id, TABLE.c.words)).all() == [(2, "c")]


def test_statements_sent_together_of_which_one_fails_write_nothing(bulk_store: Store) -> None:
    with (
        pytest.raises(StoreError, match="failed"),
        bulk_store.writing() as connection,
        sent_together(connection),
    ):
        insert_rows(connection, TABLE, ("id", "words"), [(1, "a")])
        insert_rows(connection, TABLE, ("id", "words"), [(1, "b")])
        insert_rows(connection, TABLE, ("id", "words"), [(2, "c")])
    with bulk_store.reading() as connection:
        assert connection.execute(select(TABLE.c.id)).all() == []
