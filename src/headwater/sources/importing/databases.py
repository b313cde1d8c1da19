"""SQLite files of other readers: FreshRSS's database or SQLite export, and `reader`'s database."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from headwater.errors import ParseError
from headwater.formats.opml import Outline, Rejected
from headwater.sources.importing.export import Export, Seen
from headwater.store.core.database import first_line

NOT_A_FEED = "It is not a feed: the other reader makes it from a page with its own rules."
_FRESHRSS_FEEDS = (0, 30)  # its kinds RSS/Atom and JSON Feed
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#039;", "'"), ("&amp;", "&"))


def read_database(path: Path) -> Export:
    """Whose file it is shows in its tables; ParseError when it is of no program we know."""
    connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)
    try:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if {"feed", "entry", "category"} <= tables:
            return _freshrss(connection)
        if {"feeds", "entries", "feed_tags"} <= tables:
            return _reader(connection)
    except sqlite3.Error as error:
        connection.close()
        raise ParseError("This database cannot be read: {problem}", problem=first_line(error)) from None
    except BaseException:
        connection.close()
        raise
    connection.close()
    raise ParseError("This is a database, but neither FreshRSS's nor reader's.")


def _freshrss(connection: sqlite3.Connection) -> Export:
    outlines: list[Outline] = []
    rejected: list[Rejected] = []
    numbers: dict[str, int] = {}
    muted = "feed.ttl < 0" if _has(connection, "feed", "ttl") else "0"  # which is how it keeps that
    rows = connection.execute(
        f"SELECT feed.id, feed.url, feed.name, feed.kind, category.name, category.id, {muted} FROM feed"  # noqa: S608
        " LEFT JOIN category ON category.id = feed.category ORDER BY feed.id"
    )
    for number, url, name, kind, category, category_id, is_muted in rows:
        url, name = unescaped(url), unescaped(name)
        folder = None if category_id in (None, 1) else unescaped(category)  # 1 is what it calls uncategorized
        if kind not in _FRESHRSS_FEEDS:
            rejected.append(Rejected(name, url, NOT_A_FEED, folder))
            continue
        outlines.append(Outline(url, name, folder, paused=bool(is_muted)))
        numbers[url] = number

    def seen(outline: Outline) -> Iterator[Seen]:
        entries = connection.execute(
            "SELECT guid, link FROM entry WHERE id_feed = ? AND is_read", (numbers[outline.url],)
        )
        with closing(entries):
            for guid, link in entries:
                yield Seen(unescaped(guid), unescaped(link))

    stars = _count(connection, "entry WHERE is_favorite") if _has(connection, "entry", "is_favorite") else 0
    tags = _count(connection, "entrytag") if _has(connection, "entrytag", "id_entry") else 0
    return Export("freshrss", tuple(outlines), tuple(rejected), seen, connection.close, stars, tags)


def _reader(connection: sqlite3.Connection) -> Export:
    disabled = "NOT updates_enabled" if _has(connection, "feeds", "updates_enabled") else "0"
    rows = connection.execute(
        f"SELECT url, coalesce(user_title, title, ''), {disabled} FROM feeds ORDER BY url"  # noqa: S608
    )
    outlines = tuple(Outline(url, title, paused=bool(is_disabled)) for url, title, is_disabled in rows)

    def seen(outline: Outline) -> Iterator[Seen]:
        entries = connection.execute("SELECT id, link FROM entries WHERE feed = ? AND read", (outline.url,))
        with closing(entries):
            for external_id, link in entries:
                yield Seen(external_id, link)

    stars = _count(connection, "entries WHERE important") if _has(connection, "entries", "important") else 0
    tags = _count(connection, "feed_tags WHERE substr(key, 1, 1) <> '.'")
    return Export("reader", outlines, (), seen, connection.close, stars, tags)


def _has(connection: sqlite3.Connection, table: str, column: str) -> bool:
    return any(row[1] == column for row in connection.execute(f"PRAGMA table_info({table})"))


def _count(connection: sqlite3.Connection, rows: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0])  # noqa: S608


def unescaped(text: str | None) -> str:
    """FreshRSS keeps texts as they stand in HTML, with these five escapes and no others."""
    text = text or ""
    if "&" in text:
        for escape, letter in _ESCAPES:
            text = text.replace(escape, letter)
    return text
