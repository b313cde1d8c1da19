"""Sources are added once, found, switched and removed."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from headwater.errors import InputError, NotFoundError
from headwater.store.collecting.sources import (
    add_source,
    change_sources,
    find_source,
    get_source,
    iterate_sources,
    list_sources,
    next_enabled_ids,
    place_in_line,
    remove_source,
)
from headwater.store.core.database import Store
from headwater.store.core.settings import get_setting, interval_settings, set_setting
from headwater.store.core.tables import sources
from tests.clock import NOON
from tests.examples import examples


def test_added_sources_are_listed_in_order(store: Store) -> None:
    with store.writing() as connection:
        for name in ("b", "a"):
            add_source(
                connection,
                name=name,
                type="rss.feed",
                url=f"https://{name}.example",
                now=NOON,
                config={"x": [1]},
            )
        found = list_sources(connection)
    assert [source.name for source in found] == ["b", "a"]
    assert found[0].config == {"x": [1]}
    assert (found[0].status, found[0].is_active, found[0].schedule_enabled) == ("ok", True, True)


@pytest.mark.parametrize(
    "again", ["https://One.example/feed/", "http://one.example:80/feed#x", "https://one.example/feed"]
)
def test_the_same_address_in_another_spelling_is_a_duplicate(store: Store, again: str) -> None:
    with store.writing() as connection:
        first = add_source(connection, name="one", type="rss.feed", url="https://one.example/feed", now=NOON)
        with pytest.raises(InputError, match=f"is there already: source {first.id}, one"):
            add_source(connection, name="two", type="rss.feed", url=again, now=NOON)
        assert len(list_sources(connection)) == 1
        add_source(connection, name="as sitemap", type="web.sitemap", url=again, now=NOON)


def test_removed_source_can_be_added_again(store: Store) -> None:
    with store.writing() as connection:
        first = add_source(connection, name="one", type="rss.feed", url="https://one.example", now=NOON)
        remove_source(connection, first.id, NOON)
        with pytest.raises(NotFoundError, match="no source"):
            get_source(connection, first.id)
        second = add_source(connection, name="one", type="rss.feed", url="https://one.example", now=NOON)
        assert second.id != first.id


def test_settings_are_kept_as_json(store: Store) -> None:
    with store.writing() as connection:
        assert get_setting(connection, "price") is None
        set_setting(connection, "price", {"nu": 1.5}, NOON)
        set_setting(connection, "price", {"nu": 2.5}, NOON)
        set_setting(connection, "fetch_interval.rss", 7, NOON)
        assert get_setting(connection, "price") == {"nu": 2.5}
        assert interval_settings(connection) == {"rss": 7.0}


TIMES = st.none() | st.floats(0.0, 4e9)


@given(
    st.booleans(),
    st.booleans(),
    st.sampled_from(("ok", "error", "retired")),
    TIMES,
    TIMES,
    st.sampled_from(
        (
            {},
            {"schedule_enabled": False},
            {"schedule_enabled": True},
            {"is_deleted": True},
            {"is_deleted": False},
            {"status": "ok"},
            {"refresh_requested_at": NOON},
        )
    ),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None
)
def test_change_of_many_puts_each_where_place_in_line_says(
    store: Store,
    enabled: bool,
    deleted: bool,
    status: str,
    next_fetch_at: float | None,
    requested_at: float | None,
    values: dict[str, Any],
) -> None:
    before = {
        "schedule_enabled": enabled,
        "is_deleted": deleted,
        "status": status,
        "next_fetch_at": next_fetch_at,
        "refresh_requested_at": requested_at,
    }
    after: dict[str, Any] = before | values
    with store.writing() as connection:
        connection.execute(sources.delete())
        source = add_source(connection, name="One", type="rss.feed", url="https://one.example/", now=NOON)
        connection.execute(sources.update().values(before))
        change_sources(connection, [source.id], NOON, **values)
        place = connection.execute(select(sources.c.due_at)).scalar_one()
    expected = place_in_line(
        enabled=after["schedule_enabled"] and not after["is_deleted"],
        status=after["status"],
        next_fetch_at=after["next_fetch_at"],
        created_at=NOON,
        requested_at=after["refresh_requested_at"],
    )
    assert place == expected


def test_find_source_takes_number_name_and_address(store: Store) -> None:
    with store.writing() as connection:
        one = add_source(connection, name="Düne", type="rss.feed", url="https://one.example/f", now=NOON)
        add_source(connection, name="Twins", type="rss.feed", url="https://two.example/", now=NOON)
        add_source(connection, name="twins", type="rss.feed", url="https://three.example/", now=NOON)
        digits = add_source(connection, name="2048", type="rss.feed", url="https://four.example/", now=NOON)
        for text in (str(one.id), "Düne", "http://one.example/f/"):
            assert find_source(connection, text).id == one.id
        assert find_source(connection, "2048").id == digits.id
        assert find_source(connection, "Twins").url == "https://two.example/", "as it is written comes first"
        with pytest.raises(InputError) as ambiguous:
            find_source(connection, "TWINS")
        assert "https://two.example/" in str(ambiguous.value) and "https://three.example/" in str(
            ambiguous.value
        )
        remove_source(connection, one.id, NOON)
        with pytest.raises(NotFoundError):
            find_source(connection, "Düne")
        assert find_source(connection, "Düne", removed=True).id == one.id
        again = add_source(connection, name="Düne", type="rss.feed", url="https://one.example/f", now=NOON)
        assert find_source(connection, "Düne", removed=True).id == again.id, "one that is there comes first"


def test_iterate_sources_by_folder_keeps_folders_together_and_pages_bounded(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.store.collecting.sources.PAGE", 2)
    with store.writing() as connection:
        for number, folder in enumerate(("b", None, "a", "b", None, "a", "a")):
            url = f"https://{number}.example"
            add_source(connection, name=str(number), type="rss.feed", url=url, now=NOON, folder=folder)
        remove_source(connection, 4, NOON)
        change_sources(connection, [2], NOON, schedule_enabled=False)
        assert [source.id for source in iterate_sources(connection)] == [1, 2, 3, 5, 6, 7]
        assert [(source.folder, source.id) for source in iterate_sources(connection, by_folder=True)] == [
            *((None, 2), (None, 5), ("a", 3), ("a", 6), ("a", 7), ("b", 1))
        ]
        assert next_enabled_ids(connection, 0, 3) == [1, 3, 5]
        assert next_enabled_ids(connection, 5, 3) == [6, 7]
