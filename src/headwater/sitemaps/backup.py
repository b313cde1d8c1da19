"""Dated backups of the state, one a day for a week, and how one of them becomes the state again."""

import base64
import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson
from sqlalchemy import Connection

from headwater.errors import InputError, NotFoundError
from headwater.files import write_whole
from headwater.sitemaps.state import IncrementalStateManager
from headwater.store.collecting.sites import (
    SiteMemory,
    create_site_tables,
    list_sites,
    read_site_memory,
    read_urls,
    text,
    write_site,
    write_site_memory,
    write_url_rows,
)
from headwater.store.core.database import Store

KEEP: Final = 7
_FORMAT: Final = 1
_PIECE: Final = 3 * 65_536  # of three bytes come four letters
_NAME = re.compile(r"rss_state_(\d{4}-\d{2}-\d{2})\.json")


async def back_up_daily(manager: IncrementalStateManager, now: float) -> Path | None:
    """Write today's backup, if there is none yet, and drop the oldest. Says where it is, if it is new."""
    if manager.backups is None:
        return None
    path = manager.backups / f"rss_state_{datetime.fromtimestamp(now, UTC):%Y-%m-%d}.json"
    if path.exists():
        return None
    await manager.open().read(_write, path)
    for old in list_backups(manager)[KEEP:]:
        with contextlib.suppress(OSError):
            old.unlink()
    return path


def list_backups(manager: IncrementalStateManager) -> list[Path]:
    """The backups there are, newest first."""
    if manager.backups is None or not manager.backups.is_dir():
        return []
    found = [path for path in manager.backups.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: path.name, reverse=True)


def find_backup(manager: IncrementalStateManager, wanted: str | None) -> Path:
    """The newest backup, or that of a day, or the file itself; NotFoundError says what there is."""
    backups = list_backups(manager)
    if wanted is None and backups:
        return backups[0]
    for path in backups:
        if path.name == f"rss_state_{wanted}.json":
            return path
    if wanted is not None and Path(wanted).is_file():
        return Path(wanted)
    raise NotFoundError(
        "there is no backup {wanted} in {path}; there are {known}",
        wanted=wanted or "",
        path=manager.backups,
        known=", ".join(path.name for path in backups) or "–",
    )


def restore(manager: IncrementalStateManager, backup: Path) -> int:
    """Make a backup the state, in one step. Says how many addresses it holds."""
    try:
        document = orjson.loads(backup.read_bytes())
        sites = list({_FORMAT: document["sites"]}[document["format"]])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError("{path} is not a backup: {problem}", path=backup, problem=str(error)) from None
    manager.close()
    beside = manager.database.with_name("rss_incremental.restoring.db")
    _remove(beside)
    manager.base_path.mkdir(parents=True, exist_ok=True)
    try:
        with Store(f"sqlite:///{beside}") as store:
            with store.writing() as connection:
                create_site_tables(connection)
                count = sum(_restore_site(connection, site) for site in sites)
            with store.engine.connect() as connection:  # everything into the one file that is moved
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    except (ValueError, KeyError, TypeError) as error:
        _remove(beside)
        raise InputError("{path} is not a backup: {problem}", path=backup, problem=str(error)) from None
    for ending in ("-wal", "-shm"):
        manager.database.with_name(manager.db_filename + ending).unlink(missing_ok=True)
    beside.replace(manager.database)
    return count


def _remove(database: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)


def _write(connection: Connection, path: Path) -> None:
    write_whole(path, _document(connection), make_directory=True)


def _document(connection: Connection) -> Iterator[bytes]:
    """The backup, piece by piece: a site may have a million addresses."""
    yield b'{"format":%d,"sites":[' % _FORMAT
    for number, site in enumerate(list_sites(connection)):
        memory = read_site_memory(connection, site.site_name)
        head: dict[str, Any] = {
            "site_name": site.site_name,
            "last_run": text(site.last_run),
            "last_sitemap_etag": site.last_sitemap_etag,
            "config_hash": site.config_hash,
            "runs": memory.runs if memory else 0,
            "entries": memory.entries if memory else "[]",
        }
        yield (b"," if number else b"") + b"\n" + orjson.dumps(head)[:-1] + b',"memory":'
        yield from _encoded(memory.memory) if memory else (b"null",)
        yield b',"urls":['
        comma = b""
        for piece in read_urls(connection, site.site_name):
            rows = [
                [
                    row.url,
                    text(row.last_modified),
                    row.content_hash,
                    text(row.first_seen),
                    text(row.last_seen),
                ]
                for row in piece
            ]
            yield comma + orjson.dumps(rows)[1:-1]
            comma = b",\n"
        yield b"]}"
    yield b"]}\n"


def _encoded(memory: bytes) -> Iterator[bytes]:
    yield b'"'
    view = memoryview(memory)
    for start in range(0, len(view), _PIECE):
        yield base64.b64encode(view[start : start + _PIECE])
    yield b'"'


def _restore_site(connection: Connection, site: dict[str, Any]) -> int:
    name = site["site_name"]
    last_run = datetime.fromisoformat(site["last_run"]).replace(tzinfo=UTC) if site["last_run"] else None
    write_site(
        connection,
        name,
        datetime.now(UTC),
        last_run=last_run,
        etag=site["last_sitemap_etag"],
        config_hash=site["config_hash"],
    )
    write_url_rows(connection, [(name, *row) for row in site["urls"]])
    if site["memory"] is not None:
        memory = SiteMemory(site["runs"], base64.b64decode(site["memory"]), site["entries"])
        write_site_memory(connection, name, None, memory)
    return len(site["urls"])
