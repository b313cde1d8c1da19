"""A consumer gets everything once at least, in order, with any number of writers."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, select

from headwater.errors import InputError, NotFoundError
from headwater.model import Item, Result
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.tables import items
from headwater.store.reading.cursors import (
    Page,
    acknowledge,
    count_before,
    create_cursor,
    get_cursor,
    list_cursors,
    read_cursor,
    remove_cursor,
    reset_cursor,
)
from headwater.store.reading.items import ChangeKind, ItemChange, write_items
from headwater.store.reading.positions import (
    _SPAN,
    _unfolded,
    last_settled_position,
    take_positions,
)
from headwater.store.reading.results import NewResult, write_results
from headwater.store.reading.search import index_all
from headwater.store.reading.selection import Selection
from tests.clock import NOON


def make_source(connection: Connection, name: str = "one", folder: str | None = None) -> int:
    url = f"https://{name}.example/"
    return add_source(connection, name=name, type="rss.feed", url=url, folder=folder, now=NOON).id


def change(kind: ChangeKind, title: str, **fields: str) -> ItemChange:
    key = title.encode().ljust(16, b"\0")
    item = Item(title, title=title, **fields)  # type: ignore[arg-type]
    return ItemChange(kind, item, key, key, (), repr(fields).encode(), NOON)


def write(connection: Connection, source_id: int, *titles: str) -> None:
    write_items(connection, [(source_id, tuple(change("new", title) for title in titles), NOON)])


class Reader:
    """The functions of cursors, each in its own transaction."""

    def __init__(self, store: Store) -> None:
        self.store = store
        with store.writing() as connection:
            self.source_id = make_source(connection)

    def create(self, name: str, **options: Any) -> None:
        with self.store.writing() as connection:
            create_cursor(connection, name, now=NOON, **options)

    def write(self, *titles: str) -> None:
        with self.store.writing() as connection:
            write(connection, self.source_id, *titles)

    def change(self, *contents: tuple[str, str]) -> None:
        changes = tuple(change("changed", title, content=content) for title, content in contents)
        with self.store.writing() as connection:
            write_items(connection, [(self.source_id, changes, NOON)])

    def page(self, name: str, limit: int = 100) -> Page:
        with self.store.reading() as connection:
            return read_cursor(connection, name, limit=limit)

    def titles(self, name: str, limit: int = 100) -> list[str]:
        return [placed.item.title for placed in self.page(name, limit).items]

    def acknowledge(self, name: str, position: int) -> None:
        with self.store.writing() as connection:
            acknowledge(connection, name, position, now=NOON)


@pytest.fixture
def reader(store: Store) -> Reader:
    return Reader(store)


def test_reading_again_gives_the_same_until_acknowledged(reader: Reader) -> None:
    reader.create("r")
    reader.write("a", "b", "c", "d")
    page = reader.page("r", limit=2)
    assert reader.titles("r", limit=2) == ["a", "b"]
    assert not page.is_last
    assert page.position == page.items[-1].position
    reader.acknowledge("r", page.items[0].position)
    assert reader.titles("r") == ["b", "c", "d"]
    with reader.store.reading() as connection:
        assert count_before(connection, get_cursor(connection, "r")) == 3
    reader.acknowledge("r", page.position)
    reader.acknowledge("r", page.items[0].position)
    assert reader.titles("r") == ["c", "d"], "an acknowledgement never goes back"
    last = reader.page("r")
    assert last.is_last
    reader.acknowledge("r", last.position)
    assert reader.titles("r") == []
    with pytest.raises(InputError, match="returned only up to"):
        reader.acknowledge("r", last.position + 1)
    with reader.store.writing() as connection:
        reset_cursor(connection, "r")
    assert reader.titles("r") == ["a", "b", "c", "d"]


def test_cursors_are_named_and_separate(reader: Reader) -> None:
    reader.write("a")
    reader.create("all")
    reader.create("later", from_now=True)
    reader.write("b")
    assert reader.titles("all") == ["a", "b"]
    assert reader.titles("later") == ["b"]
    with pytest.raises(InputError, match="there is a cursor all already"):
        reader.create("all")
    with pytest.raises(InputError, match="cannot be a cursor's name"):
        reader.create("no spaces")
    with reader.store.writing() as connection:
        assert [cursor.name for cursor in list_cursors(connection)] == ["all", "later"]
        remove_cursor(connection, "all")
    with pytest.raises(NotFoundError, match="there is no cursor all") as refused:
        reader.page("all")
    assert "headwater cursor list" in refused.value.render_with_hint()


def test_filters(reader: Reader) -> None:
    one = reader.source_id
    with reader.store.writing() as connection:
        two = make_source(connection, "two", folder="news")
        wet, dry = change("new", "Rain"), change("new", "Sun", content="100% DRY")
        write_items(connection, [(two, (wet, dry), NOON)])
        write_items(connection, [(one, (change("new", "Snow", summary="and rain"),), NOON)])
    index_all(reader.store, NOON)
    for name, wanted, expected in (
        ("source", Selection(source_ids=(one,)), ["Snow"]),
        ("folder", Selection(folders=("news",)), ["Rain", "Sun"]),
        ("type", Selection(types=("web.sitemap",)), []),
        ("search", Selection(search="RAIN"), ["Rain", "Snow"]),
        ("phrase", Selection(search='"100 dry"'), ["Sun"]),
        ("both", Selection(search="rain", folders=("news",)), ["Rain"]),
    ):
        reader.create(name, selection=wanted)
        assert reader.titles(name) == expected, name
        reader.acknowledge(name, reader.page(name).position)
        with reader.store.reading() as connection:
            behind = get_cursor(connection, name).position
            assert behind == last_settled_position(connection), "what was left out is behind it too"
    with pytest.raises(NotFoundError):
        reader.create("none", selection=Selection(source_ids=(99,)))
    with pytest.raises(InputError, match="nothing to look for"):
        reader.create("none", selection=Selection(search="-"))


def test_a_search_waits_for_what_is_not_in_the_index_yet(reader: Reader) -> None:
    """Or what is stored between two rounds of indexing would be passed over for good."""
    reader.create("rain", selection=Selection(search="rain"))
    reader.create("all")
    reader.write("Rain today", "Sun")
    index_all(reader.store, NOON)
    reader.write("Snow", "Rain tomorrow")
    assert reader.titles("all") == ["Rain today", "Sun", "Snow", "Rain tomorrow"]
    page = reader.page("rain")
    assert [placed.item.title for placed in page.items] == ["Rain today"]
    reader.acknowledge("rain", page.position)
    index_all(reader.store, NOON)
    assert reader.titles("rain") == ["Rain tomorrow"]


def test_changes_come_up_again_when_asked_for(reader: Reader) -> None:
    reader.create("new")
    reader.create("all", when="changed")
    reader.write("a", "b")
    for name in ("new", "all"):
        reader.acknowledge(name, reader.page(name).items[0].position)
    reader.change(("a", "x"), ("b", "y"))
    reader.change(("a", "z"))
    new, all_ = reader.page("new"), reader.page("all")
    assert [(placed.item.title, placed.item.version) for placed in new.items] == [("b", 2)]
    assert [(placed.item.title, placed.item.content) for placed in all_.items] == [("b", "y"), ("a", "z")]
    reader.acknowledge("all", all_.position)
    assert reader.titles("all") == []


def process(reader: Reader, *titles: str, summary: str = "in short") -> None:
    """Let a pipeline finish the items with these titles."""
    with reader.store.writing() as connection:
        for title in titles:
            item_id = connection.execute(select(items.c.id).where(items.c.title == title)).scalar_one()
            result = Result("summary", body=f"{summary} {title}")
            write_results(connection, [NewResult(item_id, 1, result, NOON)])
            [position] = take_positions(connection, 1)
            connection.execute(
                items.update().where(items.c.id == item_id).values(processed_position=position)
            )


def test_cursor_of_processed_items_waits_for_pipelines(reader: Reader) -> None:
    reader.create("done", when="processed")
    reader.write("a", "b", "c")
    assert reader.titles("done") == []
    process(reader, "c", "a")
    page = reader.page("done")
    assert [placed.item.title for placed in page.items] == ["c", "a"]
    assert [placed.item.results["summary"].result.body for placed in page.items] == [
        "in short c",
        "in short a",
    ]
    reader.acknowledge("done", page.items[0].position)
    assert reader.titles("done") == ["a"]
    reader.acknowledge("done", page.position)
    process(reader, "c", "b")
    assert reader.titles("done") == ["c", "b"], "what is processed again comes up again"


def test_cursor_of_processed_items_with_a_search_waits_for_the_index(reader: Reader) -> None:
    reader.create("found", when="processed", selection=Selection(search="heron"))
    reader.write("a", "b")
    index_all(reader.store, NOON)
    process(reader, "a")
    process(reader, "b", summary="heron")
    page = reader.page("found")
    assert page.items == ()
    reader.acknowledge("found", page.position)
    index_all(reader.store, NOON)
    assert reader.titles("found") == ["b"]


def test_a_number_is_never_given_twice(reader: Reader) -> None:
    """SQLite gives the id of a deleted last row to the next one; a place is given once."""
    reader.create("r")
    reader.write("a")
    reader.acknowledge("r", reader.page("r").position)
    with reader.store.writing() as connection:
        connection.execute(delete(items))
    reader.write("b")
    assert reader.titles("r") == ["b"]


def test_a_late_commit_is_not_missed(store: Store) -> None:
    """Of two writers the one that took its numbers first commits last."""
    if store.is_sqlite:
        pytest.skip("one writer at a time")
    with store.writing() as connection:
        one, two = make_source(connection, "one"), make_source(connection, "two")
        create_cursor(connection, "reader", now=NOON)
        write(connection, one, "first")
    with store.writing() as early:
        write(early, one, "early 1", "early 2")
        with store.writing() as late:
            write(late, two, "late")
        with store.reading() as reader:
            page = read_cursor(reader, "reader")
        assert [placed.item.title for placed in page.items] == ["first"]
        with store.writing() as reader:
            acknowledge(reader, "reader", page.position, now=NOON)
            with pytest.raises(InputError, match="returned only up to"):
                acknowledge(reader, "reader", page.position + 1, now=NOON)
    with store.reading() as reader:
        page = read_cursor(reader, "reader")
    assert [placed.item.title for placed in page.items] == ["early 1", "early 2", "late"]


def test_failed_writer_holds_no_reader_back(reader: Reader) -> None:
    reader.create("r")
    with pytest.raises(ZeroDivisionError), reader.store.writing() as connection:
        write(connection, reader.source_id, "never")
        raise ZeroDivisionError
    reader.write("after")
    assert reader.titles("r") == ["after"]


async def test_many_writers_and_a_reader_that_keeps_up(store: Store) -> None:
    """While many write at once, a reader that acknowledges everything it reads has read everything, in order."""
    writers, each = 6, 25
    with store.writing() as connection:
        create_cursor(connection, "reader", now=NOON)
        source_ids = [make_source(connection, f"s{number}") for number in range(writers)]

    async def write_some(source_id: int) -> None:
        for count in range(each):
            await store.write(write, source_id, f"{source_id}-{count}a", f"{source_id}-{count}b")

    def read_some(connection: Connection) -> Page:
        page = read_cursor(connection, "reader", limit=7)
        acknowledge(connection, "reader", page.position, now=NOON)
        return page

    writing = asyncio.gather(*(write_some(source_id) for source_id in source_ids))
    read: list[tuple[int, str]] = []
    while True:
        is_done = writing.done()
        page = await store.write(read_some)
        read += [(placed.position, placed.item.title) for placed in page.items]
        if is_done and page.is_last:
            break
    await writing
    assert [position for position, _ in read] == sorted({position for position, _ in read})
    assert len({title for _, title in read}) == len(read) == writers * each * 2


@given(near=st.integers(0, 2**62), away=st.integers(-(2**29), 2**29))
def test_a_locks_name_stands_for_the_nearest_number(near: int, away: int) -> None:
    number = max(0, near + away)
    assert _unfolded(number % _SPAN, near) == number
