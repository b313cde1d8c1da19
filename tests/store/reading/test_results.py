"""Results stay with their item, one current of each kind and name; they are found, filtered, sorted and deleted."""

from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from headwater.errors import InputError
from headwater.model import Item, Result, read_result_key, read_tags
from headwater.store.core.database import Store
from headwater.store.core.tables import item_results, items, items_to_index, result_tags
from headwater.store.reading.items import ItemChange, get_item, list_items, write_items
from headwater.store.reading.listing import best_items, newest_items
from headwater.store.reading.results import (
    MOST_REPLACED,
    NewResult,
    result_history,
    results_of,
    traits_of,
    write_results,
)
from headwater.store.reading.retention import delete_idle_items
from headwater.store.reading.search import index_all, index_batch, index_new_items
from headwater.store.reading.selection import Selection
from tests.clock import NOON
from tests.pipeline.making import make_items


def made(item_id: int, kind: Any, body: str | None = None, at: float = NOON, **more: Any) -> NewResult:
    version = more.pop("version", 1)
    return NewResult(
        item_id, version, Result(kind, body=body, **more), at, run_id=3, template_id=2, step_type="make"
    )


def score(item_id: int, value: float) -> NewResult:
    return made(item_id, "score", data={"score": value, "reason": "because"})


def found(connection: Connection, **conditions: Any) -> list[int]:
    return sorted(item.id for item in newest_items(connection, Selection(**conditions), limit=100))


def test_write_results_replaces_the_current_one_of_the_same_kind_and_name(store: Store) -> None:
    [item_id, other] = make_items(store, 2)
    with store.writing() as connection:
        write_results(
            connection,
            [
                made(item_id, "summary", "first"),
                made(item_id, "translation", "你好", name="zh", language="zh", data={"title": "题"}),
                made(item_id, "translation", "hallo", name="de"),
                made(other, "summary", "of another item"),
            ],
        )
        write_results(connection, [made(item_id, "summary", "second", NOON + 5, version=2)])
        results = get_item(connection, item_id).results
        assert {key: each.result.body for key, each in results.items()} == {
            "translation:zh": "你好",
            "translation:de": "hallo",
            "summary": "second",
        }
        summary = results["summary"]
        assert (summary.item_version, summary.run_id, summary.template_id, summary.step_type) == (
            2,
            3,
            2,
            "make",
        )
        assert results["translation:zh"].result.data == {"title": "题"}
        [old] = result_history(connection, item_id)
        assert (old.result.body, old.made_at, old.replaced_at, old.item_version) == (
            "first",
            NOON,
            NOON + 5,
            1,
        )
        assert results_of(connection, [other])[other]["summary"].result.body == "of another item"


def test_write_results_of_one_key_twice_at_once_keeps_both_and_shows_the_last(store: Store) -> None:
    [item_id] = make_items(store, 1)
    with store.writing() as connection:
        write_results(connection, [made(item_id, "summary", "one"), made(item_id, "summary", "two")])
        assert get_item(connection, item_id).results["summary"].result.body == "two"
        assert [each.result.body for each in result_history(connection, item_id)] == ["one"]


def test_write_results_keeps_a_bounded_history(store: Store) -> None:
    [item_id] = make_items(store, 1)
    with store.writing() as connection:
        for number in range(MOST_REPLACED + 4):
            write_results(connection, [made(item_id, "summary", str(number))])
            write_results(connection, [made(item_id, "full_text", str(number))])
        bodies = [each.result.body for each in result_history(connection, item_id)]
        newest = [str(number) for number in range(MOST_REPLACED + 2, 2, -1)]
        assert bodies[::2] == newest == bodies[1::2]


def test_result_with_characters_no_database_takes_is_stored(store: Store) -> None:
    [item_id] = make_items(store, 1)
    with store.writing() as connection:
        write_results(connection, [made(item_id, "analysis", "a\x00b \ud800", data={"x": "\x00"})])
        stored = get_item(connection, item_id).results["analysis"].result
        assert stored.body == "ab ?"
        assert stored.data["x"] in ("\x00", "")


def test_items_are_selected_by_result_tag_and_score(store: Store) -> None:
    one, two, three, four = make_items(store, 4)
    with store.writing() as connection:
        write_results(
            connection,
            [
                score(one, 9.0),
                score(two, 7.0),
                score(three, 2.5),
                made(one, "tags", data=["Climate", "  Rivers  and  Lakes "]),
                made(two, "tags", data=["climate"]),
                made(two, "translation", "x", name="zh"),
                made(three, "translation", "x", name="de"),
            ],
        )
        assert found(connection, min_score=7.0) == [one, two]
        assert found(connection, tags=("CLIMATE",)) == [one, two]
        assert found(connection, tags=("rivers and lakes", "nothing")) == [one]
        assert found(connection, has=("translation",)) == [two, three]
        assert found(connection, has=("translation:zh",)) == [two]
        assert found(connection, has=("translation:de", "translation:zh")) == [two, three]
        assert found(connection, tags=("climate",), has=("translation:zh",), min_score=1.0) == [two]
        # What is replaced no longer counts.
        write_results(connection, [score(one, 1.0), made(one, "tags", data=["sport"])])
        assert found(connection, min_score=7.0) == [two]
        assert found(connection, tags=("climate",)) == [two]
        assert four not in found(connection, min_score=0.0)
        with pytest.raises(InputError, match="there is no result nonsense"):
            found(connection, has=("nonsense",))


def test_best_items_come_page_by_page_and_only_with_a_score(store: Store) -> None:
    ids = make_items(store, 7)
    with store.writing() as connection:
        write_results(connection, [score(item_id, float(n % 3)) for n, item_id in enumerate(ids[:6])])
        seen: list[int] = []
        after: tuple[float, int] | None = None
        while True:
            page = best_items(connection, after=after, limit=2)
            seen += [each.item.id for each in page[:2]]
            if len(page) <= 2:
                break
            after = (page[1].score, page[1].item.id)
        assert seen == [ids[5], ids[2], ids[4], ids[1], ids[3], ids[0]]
        assert [each.item.id for each in best_items(connection, Selection(min_score=2.0), limit=9)] == [
            ids[5],
            ids[2],
        ]


def test_traits_of_items_name_results_without_reading_bodies(store: Store) -> None:
    one, two = make_items(store, 2)
    with store.writing() as connection:
        write_results(connection, [score(one, 4.0), made(one, "tags", data=["A", "a", "b"])])
        write_results(connection, [made(one, "translation", "x", name="zh")])
        traits = traits_of(connection, [one, two])
        assert set(traits) == {one}
        assert traits[one].result_keys == ("score", "tags", "translation:zh")
        assert (traits[one].pipeline_score, traits[one].tags) == (4.0, ("a", "b"))


@pytest.mark.parametrize("data", [None, "climate", {"a": 1}, 7])
def test_read_tags_of_something_else_is_empty(data: Any) -> None:
    assert read_tags(data) == []


@pytest.mark.parametrize(
    ("key", "read"), [("summary", ("summary", "")), ("translation:zh", ("translation", "zh"))]
)
def test_read_result_key_names_kind_and_name(key: str, read: tuple[str, str]) -> None:
    assert read_result_key(key) == read


@pytest.mark.parametrize("key", ["", "summary:x", "nothing", ":zh"])
def test_read_result_key_of_something_else_is_refused(key: str) -> None:
    with pytest.raises(InputError):
        read_result_key(key)


async def test_search_finds_what_pipelines_made_and_forgets_what_was_replaced(store: Store) -> None:
    one, two = make_items(store, 2)
    index_all(store, NOON)
    with store.writing() as connection:
        write_results(
            connection,
            [
                made(one, "full_text", "<p>The <b>heron</b> stood &amp; waited</p>", format="html"),
                made(one, "translation", "苍鹭站着", name="zh", data={"title": "河边的鸟"}),
                made(two, "transcript", "a kingfisher dived", data={"segments": [{"text": "unindexed"}]}),
                made(two, "analysis", data={"verdict": {"mood": ["serene"]}}),
                made(two, "media", data={"files": ["hidden"]}),
            ],
        )
    await index_new_items(store, NOON)
    with store.reading() as connection:
        assert found(connection, search="heron") == [one]
        assert found(connection, search='"heron stood"') == [one]
        assert found(connection, search="苍鹭") == [one]
        assert found(connection, search="河边") == [one]
        assert found(connection, search="kingfisher") == [two]
        assert found(connection, search="serene") == [two]
        assert found(connection, search="hidden") == found(connection, search="unindexed") == []
        assert found(connection, search="item heron") == [one], "words of item and result together"
    with store.writing() as connection:
        write_results(connection, [made(one, "full_text", "an egret")])
    index_all(store, NOON)
    with store.reading() as connection:
        assert found(connection, search="heron") == []
        assert found(connection, search="egret") == [one]
        assert connection.execute(select(func.count()).select_from(items_to_index)).scalar_one() == 0


def test_restarted_index_has_the_words_of_results(store: Store) -> None:
    [item_id] = make_items(store, 1)
    with store.writing() as connection:
        write_results(connection, [made(item_id, "summary", "a bittern")])
        connection.execute(items_to_index.delete())  # as after restoring a backup
    index_batch(store, NOON)
    with store.reading() as connection:
        assert found(connection, search="bittern") == [item_id]


def test_long_results_are_found_by_their_last_words(store: Store) -> None:
    [item_id] = make_items(store, 1)
    long = " ".join(f"w{n}" for n in range(9_000))
    with store.writing() as connection:
        write_results(
            connection, [made(item_id, "full_text", long), made(item_id, "transcript", "the last curlew")]
        )
    index_all(store, NOON)
    with store.reading() as connection:
        assert found(connection, search="curlew") == [item_id]
        assert found(connection, search="w8999") == [item_id]


def test_results_written_while_an_item_is_indexed_are_indexed_next(store: Store) -> None:
    from headwater.store.reading.search import _read_outdated, _words_of_rows, _write_outdated

    [item_id] = make_items(store, 1)
    with store.writing() as connection:
        write_results(connection, [made(item_id, "summary", "old")])
    with store.reading() as connection:
        changed = _read_outdated(connection, 10)
    with store.writing() as connection:
        write_results(connection, [made(item_id, "summary", "newest")])
    with store.writing() as connection:
        _write_outdated(connection, changed, _words_of_rows(changed.rows, changed.results))
    index_all(store, NOON)
    with store.reading() as connection:
        assert found(connection, search="newest") == [item_id]


def test_changed_item_keeps_its_results_and_their_words(store: Store) -> None:
    [item_id] = make_items(store, 1)
    with store.writing() as connection:
        write_results(connection, [made(item_id, "summary", "of the grebe")])
        item = Item("id-1", title="A new title")
        change = ItemChange("changed", item, b"1", b"1", (), b"another", NOON)
        write_items(connection, [(1, (change,), NOON)])
        stored = get_item(connection, item_id)
        assert stored.version == 2
        assert stored.results["summary"].item_version == 1
    index_all(store, NOON)
    with store.reading() as connection:
        assert found(connection, search="grebe title") == [item_id]


def test_deleted_item_takes_its_results_along(store: Store) -> None:
    one, two = make_items(store, 2)
    with store.writing() as connection:
        for item_id in (one, two):
            write_results(connection, [made(item_id, "summary", "x"), made(item_id, "tags", data=["a"])])
        assert delete_idle_items(connection, [one]) == 1
        assert set(connection.execute(select(item_results.c.item_id)).scalars()) == {two}
        assert list(connection.execute(select(result_tags.c.item_id)).scalars()) == [two]
    index_all(store, NOON)
    with store.reading() as connection:
        assert [item.id for item in list_items(connection)] == [two]
        assert connection.execute(select(func.count()).select_from(items)).scalar_one() == 1
