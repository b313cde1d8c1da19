"""The state of sites whose sitemaps become feeds, in its own directory or in Headwater's database.

    rss_states/
    ├── rss_incremental.db
    └── backups/rss_state_YYYY-MM-DD.json

The four public methods of `IncrementalStateManager` are for programs that fetch sitemaps themselves; a run of
`sitemaps.run` keeps a ledger beside the same tables. What counts as new or modified is decided in one place for both,
`formats.sitemap_ledger.judge`.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from headwater.errors import BusySiteError, IncrementalStateCorrupted, InputError, StoreError
from headwater.files import make_private_directory
from headwater.formats.dates import parse_date
from headwater.formats.sitemaps.ledger import DAYS_TO_KEEP, GRACE_DAYS, MOST_GONE, Ledger, judge, key_of
from headwater.formats.sitemaps.read import SitemapUrl
from headwater.store.collecting.sites import (
    SiteMemory,
    create_site_tables,
    delete_urls,
    forget_urls,
    list_sites,
    newest_sight,
    read_site,
    read_site_memory,
    read_url_times,
    read_urls,
    write_content_hashes,
    write_site,
    write_site_memory,
    write_urls,
)
from headwater.store.core.database import Store

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES = 4_000_000
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """An address of a sitemap with its `lastmod`, as text or as what it means."""

    url: str
    lastmod: datetime | str | None = None


@dataclass
class SiteState:
    """What is known of a site. `processed_urls` maps addresses to their last known `lastmod`."""

    site_name: str
    last_run: datetime | None = None
    last_sitemap_etag: str | None = None
    processed_urls: dict[str, datetime | None] = field(default_factory=dict)


@dataclass
class IncrementalResult:
    """What became of a sitemap's addresses since they were last processed."""

    new_urls: list[str] = field(default_factory=list)
    modified_urls: list[str] = field(default_factory=list)
    unchanged_urls: list[str] = field(default_factory=list)
    total_processed: int = 0


@dataclass(frozen=True, slots=True)
class Commit:
    """All that one run writes, in one transaction."""

    memory: bytes | None  # None: as it was
    entries: str | None
    etag: str | None = None
    config_hash: str | None = None
    content_hashes: dict[str, str] = field(default_factory=dict)
    forgotten: frozenset[int] = frozenset()


Entries = Sequence[SitemapEntry | SitemapUrl]


class IncrementalStateManager:
    """Remembers, site by site, which addresses have been processed.

    `base_path` is a directory, or the address of a database (postgresql://…) that several machines can share.
    A state file that is damaged raises IncrementalStateCorrupted; `set_aside` makes room for a new one.
    """

    def __init__(self, base_path: str | Path = "./rss_states", *, store: Store | None = None) -> None:
        self._url = base_path if isinstance(base_path, str) and "://" in base_path else None
        self.base_path = Path("." if self._url else base_path)
        self.db_filename = "rss_incremental.db"
        self._store = store
        self._opens = store is None
        self._is_file = self._opens and self._url is None

    @property
    def database(self) -> Path:
        return self.base_path / self.db_filename

    @property
    def backups(self) -> Path | None:
        """Where backups are; a database is backed up by its operator."""
        return self.base_path / "backups" if self._is_file else None

    # -- the public methods ------------------------------------------------------------------------------

    async def get_site_state(self, site_name: str) -> SiteState:
        """What is known of a site; of one that was never processed, nothing."""
        return await self._read(_read_state, site_name)

    async def detect_changes(self, site_name: str, current_entries: Entries) -> IncrementalResult:
        """Compare all entries of a sitemap with what has been processed.

        It also notes that they are there, which is what keeps `cleanup_old_states` from forgetting them.
        """
        entries = _read_entries(current_entries)
        known = await self._read(read_url_times, site_name)
        result = compare(known, entries)
        if result.modified_urls or result.unchanged_urls:
            await self._write(_note_sight, site_name, [url for url in entries if url in known])
        return result

    async def update_state(
        self,
        site_name: str,
        processed_entries: Entries,
        *,
        sitemap_etag: str | None = None,
        config_hash: str | None = None,
    ) -> None:
        """Remember entries as processed: from now on they are unchanged until their `lastmod` moves on."""
        entries = _read_entries(processed_entries)
        await self._write(_write_processed, site_name, list(entries.items()), sitemap_etag, config_hash)

    async def cleanup_old_states(self, days_to_keep: int = DAYS_TO_KEEP) -> int:
        """Forget addresses that left their sitemap so many days ago, and all but 1,000 of the others that left.

        What is still in a sitemap is kept, however long ago it was processed. Says how many were forgotten.
        """
        return await self._write(_clean_up, days_to_keep)

    # -- for runs ----------------------------------------------------------------------------------------

    async def begin(self, site_name: str) -> SiteMemory | None:
        """What the last run left; IncrementalStateCorrupted when it cannot be read."""
        await self._write(_note_site, site_name)
        return await self._read(read_site_memory, site_name)

    async def note_addresses(
        self, site_name: str, urls: Sequence[SitemapUrl], *, start_over: bool = False
    ) -> None:
        """Add addresses to the list of a site; `start_over`: to an empty one."""
        await self._write(_note_urls, site_name, urls, start_over)

    async def commit(self, site_name: str, before: SiteMemory | None, commit: Commit) -> None:
        """Write what a run found; BusySiteError, and nothing written, when another run was quicker."""
        await self._write(_commit, site_name, before, commit)
        if commit.memory is not None and len(commit.memory) > LARGE_BYTES:
            self.open().engine.dispose()  # SQLite keeps a copy of what it was last given with the connection

    def set_aside(self) -> Path | None:
        """Move a damaged state file out of the way. Says where to."""
        if not self._is_file:
            return None
        self.close()
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        place = self.database.with_name(f"rss_incremental.damaged-{stamp}.db")
        for ending in ("-wal", "-shm"):
            self.database.with_name(self.db_filename + ending).unlink(missing_ok=True)
        if self.database.exists():
            self.database.replace(place)
        return place

    def close(self) -> None:
        if self._opens and self._store is not None:
            self._store.close()
            self._store = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def open(self) -> Store:
        """The store, opened on first use."""
        if self._store is None:
            if self._is_file:
                self._make_directory()
            store = Store(self._url or f"sqlite:///{self.database}")
            try:
                with store.writing() as connection:
                    create_site_tables(connection)
            except StoreError as error:
                store.close()
                raise self._translated(error) from error
            self._store = store
        return self._store

    def _make_directory(self) -> None:
        try:
            make_private_directory(self.base_path)
        except OSError as error:
            raise InputError(
                "cannot make the directory {path}: {problem}", path=self.base_path, problem=error.strerror
            ) from None

    async def _read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            return await self.open().read(work, *args, **kwargs)
        except StoreError as error:
            raise self._translated(error) from error

    async def _write(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            return await self.open().write(work, *args, **kwargs)
        except StoreError as error:
            raise self._translated(error) from error

    def _translated(self, error: StoreError) -> StoreError:
        cause = error.__cause__
        code = getattr(cause.orig, "sqlite_errorcode", 0) & 0xFF if isinstance(cause, DBAPIError) else 0
        if code not in DAMAGED:
            return error
        return IncrementalStateCorrupted(
            "the state file {path} is damaged: {problem}; `headwater sitemap restore` brings back a backup",
            path=self.database,
            problem=str(error.values.get("problem", "")),
        )


def compare(known: dict[str, datetime | None], entries: dict[str, datetime | None]) -> IncrementalResult:
    """Which entries are new, modified, unchanged. Pure."""
    result = IncrementalResult(total_processed=len(entries))
    lists = {"new": result.new_urls, "modified": result.modified_urls, "unchanged": result.unchanged_urls}
    for url, modified in entries.items():
        before = known.get(url)
        verdict = judge(
            url in known,
            before.timestamp() if before else None,
            modified.timestamp() if modified else None,
        )
        lists[verdict].append(url)
    return result


def _read_entries(entries: Entries) -> dict[str, datetime | None]:
    found: dict[str, datetime | None] = {}
    for entry in entries:
        url = entry.loc if isinstance(entry, SitemapUrl) else entry.url
        modified = entry.modified if isinstance(entry, SitemapUrl) else entry.lastmod
        if isinstance(modified, str):
            modified = parse_date(modified)
        if modified is not None and modified.tzinfo is None:
            modified = modified.replace(tzinfo=UTC)
        found[url] = modified
    return found


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _read_state(connection: Connection, site_name: str) -> SiteState:
    row = read_site(connection, site_name)
    if row is None:
        return SiteState(site_name)
    return SiteState(site_name, row.last_run, row.last_sitemap_etag, read_url_times(connection, site_name))


def _note_site(connection: Connection, site_name: str) -> None:
    if read_site(connection, site_name) is None:
        write_site(connection, site_name, _now())


def _note_sight(connection: Connection, site_name: str, urls: Iterable[str]) -> None:
    write_urls(connection, site_name, ((url, None) for url in urls), _now())


def _note_urls(connection: Connection, site_name: str, urls: Sequence[SitemapUrl], start_over: bool) -> None:
    if start_over:
        forget_urls(connection, site_name)
    write_urls(connection, site_name, ((url.loc, url.modified) for url in urls), _now())


def _write_processed(
    connection: Connection,
    site_name: str,
    entries: Sequence[tuple[str, datetime | None]],
    etag: str | None,
    config_hash: str | None,
) -> None:
    now = _now()
    write_site(connection, site_name, now, last_run=now, etag=etag, config_hash=config_hash)
    write_urls(connection, site_name, entries, now)


def _commit(connection: Connection, site_name: str, before: SiteMemory | None, commit: Commit) -> None:
    now = _now()
    write_site(connection, site_name, now, last_run=now, etag=commit.etag, config_hash=commit.config_hash)
    if commit.memory is not None:
        after = SiteMemory((before.runs if before else 0) + 1, commit.memory, commit.entries or "[]")
        if not write_site_memory(connection, site_name, before.runs if before else None, after):
            raise BusySiteError("another run is processing {site}; try again when it is done", site=site_name)
    write_content_hashes(connection, site_name, commit.content_hashes)
    if commit.forgotten:
        _delete_keys(connection, site_name, lambda key: key in commit.forgotten)


def _delete_keys(connection: Connection, site_name: str, is_forgotten: Callable[[int], bool]) -> None:
    urls = [
        row.url
        for piece in read_urls(connection, site_name)
        for row in piece
        if is_forgotten(key_of(row.url))
    ]
    delete_urls(connection, site_name, urls)


def _clean_up(connection: Connection, days_to_keep: int) -> int:
    forgotten = 0
    for site in list_sites(connection):
        memory = read_site_memory(connection, site.site_name)
        ledger = _read_ledger(memory.memory) if memory else None
        # Days of the site's own: one that was not looked at for a month has not lost all its pages.
        seen = newest_sight(connection, site.site_name) or _now()
        old = seen - timedelta(days=days_to_keep)
        recent = seen - timedelta(days=min(GRACE_DAYS, days_to_keep) + 1)
        left: list[tuple[Any, str]] = []
        for piece in read_urls(connection, site.site_name):
            left += [(row.last_seen or seen, row.url) for row in piece if (row.last_seen or seen) < recent]
        if ledger is not None:
            listed = _listed(ledger, [url for _, url in left])
            left = [each for each in left if each[1] not in listed]
        left.sort()
        surplus = max(len(left) - MOST_GONE, 0)
        urls = [url for at, (last, url) in enumerate(left) if last < old or at < surplus]
        delete_urls(connection, site.site_name, urls)
        forgotten += len(urls)
    return forgotten


def _listed(ledger: Ledger, urls: Sequence[str]) -> set[str]:
    """Those of the addresses that a ledger knows."""
    import numpy as np

    keys = np.fromiter(map(key_of, urls), np.uint64, len(urls))
    known, _ = ledger.known(keys)
    return {url for url, is_known in zip(urls, known.tolist(), strict=True) if is_known}


def _read_ledger(memory: bytes) -> Ledger | None:
    try:
        return Ledger.from_bytes(memory)
    except (ValueError, KeyError, TypeError):
        return None
