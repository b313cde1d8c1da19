"""The state as programs use it: four methods, on its own directory and on Headwater's database."""

import sqlite3
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from inspect import Parameter, iscoroutinefunction, signature
from pathlib import Path

import pytest
from sqlalchemy import update

from headwater import (
    IncrementalResult,
    IncrementalStateCorrupted,
    IncrementalStateManager,
    SitemapEntry,
    SiteState,
)
from headwater.errors import InputError, NotFoundError
from headwater.formats.sitemaps.read import SitemapUrl
from headwater.sitemaps.backup import back_up_daily, find_backup, list_backups, restore
from headwater.store.core.database import Store
from headwater.store.core.tables import url_states

MAY, JUNE = datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)


@pytest.fixture(params=["own", "shared"])
def manager(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> IncrementalStateManager:
    if request.param == "own":
        return IncrementalStateManager(tmp_path / "rss_states")
    return IncrementalStateManager(store=store)


def entries(*urls: str, lastmod: datetime | None = MAY) -> list[SitemapEntry]:
    return [SitemapEntry(url, lastmod) for url in urls]


def test_the_documents_shapes() -> None:
    assert [field.name for field in fields(SiteState)] == [
        "site_name",
        "last_run",
        "last_sitemap_etag",
        "processed_urls",
    ]
    assert [field.name for field in fields(IncrementalResult)] == [
        "new_urls",
        "modified_urls",
        "unchanged_urls",
        "total_processed",
    ]
    given = {
        "get_site_state": {"site_name": Parameter.empty},
        "detect_changes": {"site_name": Parameter.empty, "current_entries": Parameter.empty},
        "update_state": {"site_name": Parameter.empty, "processed_entries": Parameter.empty},
        "cleanup_old_states": {"days_to_keep": 30},
    }
    for name, parameters in given.items():
        method = getattr(IncrementalStateManager, name)
        assert iscoroutinefunction(method)
        taken = [each for each in signature(method).parameters.values() if each.kind is not each.KEYWORD_ONLY]
        assert {each.name: each.default for each in taken[1:]} == parameters
    assert signature(IncrementalStateManager).parameters["base_path"].default == "./rss_states"


async def test_new_modified_unchanged(manager: IncrementalStateManager) -> None:
    with manager:
        assert await manager.get_site_state("s") == SiteState("s")
        first = await manager.detect_changes("s", entries("a", "b", "c"))
        assert (first.new_urls, first.modified_urls, first.total_processed) == (["a", "b", "c"], [], 3)
        await manager.update_state("s", entries("a", "b", "c"), sitemap_etag='"1"', config_hash="x")
        state = await manager.get_site_state("s")
        assert state.processed_urls == {"a": MAY, "b": MAY, "c": MAY}
        assert state.last_sitemap_etag == '"1"'
        assert state.last_run is not None and state.last_run.tzinfo is UTC
        second = await manager.detect_changes(
            "s",
            [
                SitemapEntry("a", "2024-06-01"),
                SitemapEntry("b", datetime(2024, 4, 1)),  # noqa: DTZ001 - went back, and has no zone
                SitemapEntry("c"),
                SitemapUrl("d", modified=JUNE),
            ],
        )
        assert (second.new_urls, second.modified_urls) == (["d"], ["a"])
        assert second.unchanged_urls == ["b", "c"]
        assert (await manager.detect_changes("other", entries("a"))).new_urls == ["a"]


async def test_the_file_layout_and_the_tables(tmp_path: Path) -> None:
    with IncrementalStateManager(str(tmp_path / "rss_states")) as manager:
        await manager.update_state("s", entries("a"))
        await back_up_daily(manager, MAY.timestamp())
    assert sorted(path.name for path in (tmp_path / "rss_states").iterdir()) == [
        "backups",
        "rss_incremental.db",
    ]
    assert (tmp_path / "rss_states/backups/rss_state_2024-05-01.json").is_file()
    database = sqlite3.connect(tmp_path / "rss_states" / "rss_incremental.db")
    rows = database.execute("SELECT site_name, url, last_modified FROM url_states").fetchall()
    columns = [row[1] for row in database.execute("PRAGMA table_info(site_states)")]
    indexes = {row[1] for row in database.execute("PRAGMA index_list(url_states)")}
    database.close()
    assert rows == [("s", "a", "2024-05-01 00:00:00")]
    assert columns == [
        "site_name",
        "last_run",
        "last_sitemap_etag",
        "config_hash",
        "created_at",
        "updated_at",
    ]
    assert {"idx_url_lastmod", "idx_url_lastseen"} <= indexes


def age(manager: IncrementalStateManager, days: float, *urls: str) -> None:
    moment = (datetime.now(UTC) - timedelta(days=days)).replace(tzinfo=None)
    with manager.open().writing() as connection:
        connection.execute(update(url_states).where(url_states.c.url.in_(urls)).values(last_seen=moment))


async def test_clean_up_never_makes_what_is_still_there_new(manager: IncrementalStateManager) -> None:
    with manager:
        await manager.update_state("s", entries("stays", "left", "left lately"))
        age(manager, 40, "stays", "left")
        age(manager, 20, "left lately")
        await manager.detect_changes("s", entries("stays"))  # the sitemap as it is now
        assert await manager.cleanup_old_states(days_to_keep=30) == 1
        again = await manager.detect_changes("s", entries("stays", "left", "left lately"))
        assert again.new_urls == ["left"]


async def test_a_site_that_was_not_looked_at_forgets_nothing(manager: IncrementalStateManager) -> None:
    with manager:
        await manager.update_state("s", entries("a", "b"))
        age(manager, 100, "a", "b")
        assert await manager.cleanup_old_states() == 0


async def test_clean_up_by_number_takes_the_longest_gone(manager: IncrementalStateManager) -> None:
    urls = [f"u{n:04}" for n in range(1_010)]
    with manager:
        await manager.update_state("s", entries("stays", *urls))
        age(manager, 20, *urls)
        age(manager, 21, *urls[:10])
        assert await manager.cleanup_old_states() == 10
        left = set((await manager.get_site_state("s")).processed_urls)
        assert left == {"stays", *urls[10:]}


async def test_a_damaged_file_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "rss_incremental.db").write_bytes(b"no database" * 1000)
    with IncrementalStateManager(tmp_path) as manager:
        with pytest.raises(IncrementalStateCorrupted, match=r"rss_incremental\.db is damaged"):
            await manager.get_site_state("s")
        manager.set_aside()
        assert (await manager.get_site_state("s")).processed_urls == {}


async def test_backups_come_daily_are_kept_for_a_week_and_can_be_restored(tmp_path: Path) -> None:
    with IncrementalStateManager(tmp_path) as manager:
        await manager.update_state("s", entries("a"))
        assert await back_up_daily(manager, MAY.timestamp())
        await manager.update_state("s", entries("b"))
        assert await back_up_daily(manager, MAY.timestamp()) is None
        for day in range(1, 10):
            await back_up_daily(manager, MAY.timestamp() + day * 86_400)
        names = [path.name for path in list_backups(manager)]
        assert (len(names), names[0]) == (7, "rss_state_2024-05-10.json")
        with pytest.raises(NotFoundError, match="rss_state_2024-05-10"):
            find_backup(manager, "2024-05-01")
        assert restore(manager, find_backup(manager, "2024-05-04")) == 2
        await manager.update_state("s", entries("c"))
        assert restore(manager, find_backup(manager, None)) == 2
        assert set((await manager.get_site_state("s")).processed_urls) == {"a", "b"}
        (tmp_path / "bad.json").write_text('{"format": 99}')
        with pytest.raises(InputError, match="is not a backup"):
            restore(manager, tmp_path / "bad.json")
        assert set((await manager.get_site_state("s")).processed_urls) == {"a", "b"}


async def test_headwaters_own_database_is_backed_up_only_by_headwater(store: Store) -> None:
    assert await back_up_daily(IncrementalStateManager(store=store), 0.0) is None
