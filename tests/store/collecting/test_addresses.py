"""Finding sources by address among several types, deleted ones left out."""

from headwater.model import url_key
from headwater.store.collecting.addresses import find_by_addresses, find_living, values_in_use
from headwater.store.collecting.sources import Addition, add_sources, remove_source
from headwater.store.core.database import Store
from tests.clock import NOON


def test_find_living_looks_through_all_types_or_those_given(store: Store) -> None:
    url = "https://one.example/feed"
    with store.writing() as connection:
        added = add_sources(
            connection,
            [
                Addition("feed", "rss.feed", url),
                Addition("map", "web.sitemap", url),
                Addition("other", "rss.feed", "https://two.example/"),
                Addition("gone", "api.json", url),
            ],
            NOON,
        )
        remove_source(connection, added["api.json", url_key(url)], NOON)
        assert sorted(each.name for each in find_living(connection, [url_key(url)])) == ["feed", "map"]
        assert [each.name for each in find_living(connection, [url_key(url)], ["web.sitemap"])] == ["map"]
        assert find_by_addresses(connection, ["http://TWO.example", "https://no.example/"]) == {
            url_key("https://two.example/"): 3
        }
        assert values_in_use(connection, "type") == ["rss.feed", "web.sitemap"]


def test_add_sources_skips_addresses_that_are_taken(store: Store) -> None:
    one = Addition("one", "rss.feed", "https://one.example/")
    paused = Addition("two", "rss.feed", "https://two.example/", enabled=False)
    with store.writing() as connection:
        assert list(add_sources(connection, [one], NOON)) == [one.key]
        assert list(add_sources(connection, [one, paused], NOON)) == [paused.key]
        rows = connection.exec_driver_sql(
            "SELECT name, schedule_enabled, due_at FROM sources ORDER BY id"
        ).all()
    assert [(row[0], bool(row[1]), row[2] is None) for row in rows] == [
        ("one", True, False),
        ("two", False, True),
    ]
