"""Sources are added once, found, switched and removed."""

import pytest

from headwater.errors import InputError, NotFoundError
from headwater.store.database import Store
from headwater.store.settings import get_setting, interval_settings, set_setting
from headwater.store.sources import add_source, get_source, list_sources, remove_source
from tests.clock import NOON


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


def test_a_removed_source_can_be_added_anew(store: Store) -> None:
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
