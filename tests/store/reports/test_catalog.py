"""Sources as a table: what is found, in what order, and how many, in rows of any writer."""

import pytest

from headwater.store.collecting.sources import add_source, change_source, remove_source, restore_source
from headwater.store.core.bulk import insert_rows
from headwater.store.core.database import Store
from headwater.store.core.tables import collection_records, sources
from headwater.store.reports import catalog
from headwater.store.reports.catalog import (
    Sort,
    SourceFilter,
    count_sources,
    find_sources,
    sources_page,
)
from tests.clock import NOON

NAMES = ("beta", "Alpha", "gamma_1", "gamma*2", "gamma[3]", "100 %", "back\\slash", "ünder")


@pytest.fixture
def named(store: Store) -> Store:
    with store.writing() as connection:
        for number, name in enumerate(NAMES, 1):
            add_source(
                connection,
                name=name,
                type="rss.feed",
                url=f"https://N{number}.example/Feed",
                now=NOON + number,
            )
    return store


def found(store: Store, search: str = "", sort: Sort = "new", **more: object) -> list[int]:
    wanted = SourceFilter(search, **more)  # type: ignore[arg-type]
    with store.reading() as connection:
        listed = [source.id for source in find_sources(connection, wanted, now=NOON, sort=sort)]
        assert count_sources(connection, wanted, now=NOON) == len(listed)
        paged = sources_page(connection, wanted, now=NOON, after=None, limit=100)
        assert sorted(listed) == [source.id for source in paged]
    return listed


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("ALPHA", [2]),
        ("gamma", [5, 4, 3]),
        ("gamma_", [3]),
        ("a*2", [4]),
        ("[3]", [5]),
        ("0 %", [6]),
        ("k\\s", [7]),
        ("ünder", [8]),
        ("n7.EXAMPLE", [7]),
        ("unknown", []),
        ("?", []),
    ],
)
def test_a_search_means_every_letter_it_says(named: Store, words: str, ids: list[int]) -> None:
    assert found(named, words) == ids
    assert found(named, words, state="pending") == ids
    assert found(named, words, sort="errors") == sorted(ids)


def test_names_are_known_however_a_row_was_written(named: Store) -> None:
    with named.writing() as connection:
        change_source(connection, 1, NOON, name="omega")
        connection.execute(sources.update().where(sources.c.id == 2).values(url="https://moved.example/"))
        remove_source(connection, 3, NOON)
        remove_source(connection, 4, NOON)
        restore_source(connection, 4, NOON)
        connection.execute(sources.delete().where(sources.c.id == 5))
    assert found(named, "omega") == [1]
    assert found(named, "beta") == []
    assert found(named, "moved") == [2]
    assert found(named, "gamma") == [4]
    assert found(named, "gamma", state="removed") == [3]


def test_sorts_with_and_without_a_filter_agree(named: Store) -> None:
    with named.writing() as connection:
        remove_source(connection, 4, NOON)
        for number, at in ((1, NOON - 5), (2, NOON - 9), (3, NOON - 1)):
            change_source(connection, number, NOON, last_fetched_at=at)
        change_source(
            connection, 2, NOON, consecutive_failures=3, last_error_kind="timeout", last_error="late"
        )
    for sort in ("next", "last", "-last", "errors"):
        assert found(named, sort=sort) == found(named, sort=sort, type="rss.feed"), sort
    assert found(named, sort="last") == [5, 6, 7, 8, 2, 1, 3]
    assert found(named, sort="-last") == [3, 1, 2, 5, 6, 7, 8]
    assert found(named, sort="errors")[0] == 2
    by_name = found(named, sort="name")
    assert by_name == found(named, sort="-name")[::-1]
    assert by_name.index(2) < by_name.index(1) < by_name.index(3)
    assert found(named, state="on_time") == [3, 1]
    assert found(named, state="pending") == [8, 7, 6, 5]
    assert found(named, state="failing") == [2]


def test_pages_of_a_sort_follow_each_other(named: Store) -> None:
    with named.writing() as connection:
        for number in (1, 2, 3):
            change_source(connection, number, NOON, last_fetched_at=NOON - number)
    with named.reading() as connection:
        for sort in ("name", "-name", "next", "-next", "last", "-last", "errors", "new"):
            pages = [
                source.id
                for offset in range(0, 10, 2)
                for source in find_sources(
                    connection, SourceFilter(), now=NOON, sort=sort, offset=offset, limit=2
                )
            ]
            whole = find_sources(connection, SourceFilter(), now=NOON, sort=sort)
            assert pages == [source.id for source in whole], sort


def test_the_last_visited_are_found_among_the_newest_visits(named: Store) -> None:
    with named.writing() as connection:
        for number in range(1, 9):
            change_source(connection, number, NOON, last_fetched_at=NOON - number)
        # The newest ones are all of one source, so that there are too few others among them.
        rows = [(1 + number // 8, number, "new", NOON - number, NOON) for number in range(20)]
        columns = ("source_id", "lease_no", "status", "started_at", "finished_at")
        insert_rows(connection, collection_records, columns, rows)
        for limit in (1, 2, 3, 8):
            listed = find_sources(connection, SourceFilter(), now=NOON, sort="-last", limit=limit)
            assert [source.id for source in listed] == list(range(1, limit + 1))
        later = find_sources(connection, SourceFilter(), now=NOON, sort="-last", offset=1, limit=1)
        assert [source.id for source in later] == [2]


def test_a_search_counts_only_so_far(named: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "MOST_COUNTED", 3)
    with named.reading() as connection:
        assert count_sources(connection, SourceFilter("example"), now=NOON) == 4
        assert count_sources(connection, SourceFilter(), now=NOON) == len(NAMES)
