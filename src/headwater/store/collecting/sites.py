"""Sites whose sitemaps become feeds: `site_states`, `url_states` and what is remembered beside them.

Times in these tables are UTC without a zone, as `YYYY-MM-DD HH:MM:SS`, so that any tool can read them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from headwater.store.core.bulk import insert_rows, is_sqlite, storable
from headwater.store.core.tables import metadata, site_memories, site_states, url_states

_URL = ("site_name", "url", "last_modified", "content_hash", "first_seen", "last_seen")
_PIECE = 5_000  # rows held at once when a whole site is read


@dataclass(frozen=True, slots=True)
class SiteRow:
    site_name: str
    last_run: datetime | None
    last_sitemap_etag: str | None
    config_hash: str | None


@dataclass(frozen=True, slots=True)
class UrlRow:
    url: str
    last_modified: datetime | None
    content_hash: str | None
    first_seen: datetime | None
    last_seen: datetime | None


@dataclass(frozen=True, slots=True)
class SiteMemory:
    runs: int
    memory: bytes
    entries: str


def create_site_tables(connection: Connection) -> None:
    """The tables of a state file, which holds nothing else."""
    metadata.create_all(connection, [site_states, url_states, site_memories])


def list_sites(connection: Connection) -> list[SiteRow]:
    query = select(*_site_columns()).order_by(site_states.c.site_name)
    return [SiteRow(*_cleaned(row)) for row in connection.execute(query)]


def read_site(connection: Connection, site_name: str) -> SiteRow | None:
    query = select(*_site_columns()).where(site_states.c.site_name == site_name)
    row = connection.execute(query).first()
    return SiteRow(*_cleaned(row)) if row else None


def _site_columns() -> tuple[Any, ...]:
    columns = site_states.c
    return columns.site_name, columns.last_run, columns.last_sitemap_etag, columns.config_hash


def _cleaned(row: Any) -> tuple[Any, ...]:
    name, last_run, etag, config_hash = row
    return name, aware(last_run), etag, config_hash


def write_site(
    connection: Connection,
    site_name: str,
    now: datetime,
    *,
    last_run: datetime | None = None,
    etag: str | None = None,
    config_hash: str | None = None,
) -> None:
    """Note a run, or that there is such a site; what is None stays as it is."""
    columns = ("site_name", "last_run", "last_sitemap_etag", "config_hash", "created_at", "updated_at")
    row = (site_name, text(last_run), storable(etag), config_hash, text(now), text(now))
    changes = ", ".join(
        f"{name} = COALESCE(excluded.{name}, site_states.{name})" for name in (*columns[1:4], columns[5])
    )
    insert_rows(connection, site_states, columns, [row], f"ON CONFLICT (site_name) DO UPDATE SET {changes}")


def write_urls(
    connection: Connection,
    site_name: str,
    urls: Iterable[tuple[str, datetime | None]],
    now: datetime,
) -> None:
    """Note addresses with their `lastmod`; of one that is known the later date stays."""
    seen = text(now)
    rest = iter(urls)
    while piece := {storable(url): modified for url, modified in islice(rest, _PIECE)}:
        rows = [(site_name, url, text(modified), None, seen, seen) for url, modified in piece.items()]
        write_url_rows(connection, rows)


def write_url_rows(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    latest = "MAX" if is_sqlite(connection) else "GREATEST"
    insert_rows(
        connection,
        url_states,
        _URL,
        rows,
        "ON CONFLICT (site_name, url) DO UPDATE SET last_seen = excluded.last_seen,"
        " content_hash = COALESCE(excluded.content_hash, url_states.content_hash), last_modified ="
        f" CASE WHEN excluded.last_modified IS NULL THEN url_states.last_modified"
        f" WHEN url_states.last_modified IS NULL THEN excluded.last_modified"
        f" ELSE {latest}(excluded.last_modified, url_states.last_modified) END",
    )


def write_content_hashes(connection: Connection, site_name: str, hashes: Mapping[str, str]) -> None:
    for url, content_hash in hashes.items():
        connection.execute(
            update(url_states)
            .where(url_states.c.site_name == site_name, url_states.c.url == url)
            .values(content_hash=content_hash)
        )


def read_urls(connection: Connection, site_name: str) -> Iterator[list[UrlRow]]:
    """The addresses of a site, some at a time."""
    columns = [url_states.c[name] for name in _URL[1:]]
    query = select(*columns).where(url_states.c.site_name == site_name).order_by(url_states.c.url)
    result = connection.execute(query, execution_options={"yield_per": _PIECE})
    for piece in result.partitions():
        yield [
            UrlRow(url, aware(modified), content_hash, aware(first), aware(last))
            for url, modified, content_hash, first, last in piece
        ]


def read_url_times(connection: Connection, site_name: str) -> dict[str, datetime | None]:
    columns = url_states.c
    rows = connection.execute(
        select(columns.url, columns.last_modified).where(columns.site_name == site_name)
    )
    return {url: aware(modified) for url, modified in rows}


def newest_sight(connection: Connection, site_name: str) -> datetime | None:
    """When any address of the site was last seen."""
    query = select(func.max(url_states.c.last_seen)).where(url_states.c.site_name == site_name)
    return aware(connection.execute(query).scalar())


def delete_urls(connection: Connection, site_name: str, urls: Sequence[str]) -> None:
    for start in range(0, len(urls), _PIECE):
        part = list(urls[start : start + _PIECE])
        connection.execute(
            delete(url_states).where(url_states.c.site_name == site_name, url_states.c.url.in_(part))
        )


def forget_urls(connection: Connection, site_name: str) -> None:
    """All addresses of a site that starts again."""
    connection.execute(delete(url_states).where(url_states.c.site_name == site_name))


def read_site_memory(connection: Connection, site_name: str) -> SiteMemory | None:
    columns = site_memories.c
    row = connection.execute(
        select(columns.runs, columns.memory, columns.entries).where(columns.site_name == site_name)
    ).first()
    return SiteMemory(row.runs, bytes(row.memory), row.entries) if row else None


def write_site_memory(connection: Connection, site_name: str, before: int | None, after: SiteMemory) -> bool:
    """Keep the memory if no one else has written since `before`; says whether."""
    values = {"runs": after.runs, "memory": after.memory, "entries": after.entries}
    if before is None:
        if read_site_memory(connection, site_name) is not None:
            return False
        connection.execute(insert(site_memories).values(site_name=site_name, **values))
        return True
    columns = site_memories.c
    done = connection.execute(
        update(site_memories).where(columns.site_name == site_name, columns.runs == before).values(**values)
    )
    return done.rowcount == 1


def text(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ") if moment else None


def aware(moment: datetime | str | None) -> datetime | None:
    if moment is None:
        return None
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
