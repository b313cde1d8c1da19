"""The starter catalogue: sound data, and adding a pack makes sources without a request."""

from urllib.parse import urlsplit

import pytest

from headwater.errors import NotFoundError
from headwater.sources.adding import read_new_source
from headwater.sources.catalogue import find_pack, pack_as_list, read_catalogue
from headwater.sources.lists import import_export
from headwater.store.collecting.sources import list_sources
from headwater.store.core.database import Store
from tests.clock import NOON


def test_catalogue_has_150_feeds_in_both_languages_each_once() -> None:
    packs = read_catalogue()
    urls = [feed.url for pack in packs for feed in pack.feeds]
    assert len(urls) >= 150
    assert len(set(urls)) == len(urls)
    assert len({pack.key for pack in packs}) == len(packs)
    in_chinese = sum(len(pack.feeds) for pack in packs if pack.language == "zh")
    assert min(in_chinese, len(urls) - in_chinese) >= 40


def test_catalogue_every_entry_is_a_feed_with_a_name() -> None:
    for pack in read_catalogue():
        assert pack.title
        assert pack.title_zh
        for feed in pack.feeds:
            wanted = read_new_source(feed.url, "rss.feed")
            assert wanted.url == feed.url
            assert feed.title == feed.title.strip() != ""
            assert urlsplit(feed.url).hostname


def test_pack_that_is_added_makes_sources_in_its_folder_once(store: Store) -> None:
    pack = find_pack("Science and space")
    report = import_export(store, pack_as_list(pack, "Science"), NOON)
    assert {entry.outcome for entry in report} == {"added"}
    again = import_export(store, pack_as_list(pack, "Science"), NOON)
    assert {entry.outcome for entry in again} == {"known"}
    with store.reading() as connection:
        sources = list_sources(connection)
    assert len(sources) == len(pack.feeds)
    assert {(source.folder, source.fetch_count) for source in sources} == {("Science", 0)}


def test_find_pack_unknown_key_suggests_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="did you mean science"):
        find_pack("sience")
