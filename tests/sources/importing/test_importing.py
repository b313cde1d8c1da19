"""Coming from other readers: their subscriptions come along, and what was read there does not come back as new."""

import contextlib
import csv
import gzip
import io
import json
import random
import re
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import ParseError
from headwater.sources.importing.reading import read_export
from headwater.sources.lists import import_export
from headwater.store.collecting.sources import list_sources
from headwater.store.core.database import Store
from tests.clock import NOON
from tests.command import Headwater
from tests.origin import Origin

ROOT = Path(__file__).resolve().parents[3]
READ, UNREAD = (1, 2, 3), (4, 5)


def link(n: int) -> str:
    return f"https://publisher.example/posts/{n}?a=1&b={n}"


def feed() -> str:
    """Ids that tell nothing of the address, as many publishers have them."""
    items = "".join(
        f"<item><guid isPermaLink='false'>tag:{n}</guid><title>Post {n}</title>"
        f"<link>{link(n).replace('&', '&amp;')}</link></item>"
        for n in (*READ, *UNREAD)
    )
    return f"<rss version='2.0'><channel><title>Posts</title>{items}</channel></rss>"


# FreshRSS's own tables, as far as they matter.
FRESHRSS_TABLES = """
CREATE TABLE category (id INTEGER PRIMARY KEY, name VARCHAR(191) NOT NULL, kind SMALLINT DEFAULT 0, attributes TEXT);
CREATE TABLE feed (id INTEGER PRIMARY KEY, url VARCHAR(32768) NOT NULL, kind SMALLINT DEFAULT 0,
    category INTEGER DEFAULT 0, name VARCHAR(191) NOT NULL, website VARCHAR(32768), httpAuth VARCHAR(1024));
CREATE TABLE entry (id BIGINT PRIMARY KEY, guid VARCHAR(767) NOT NULL, title VARCHAR(8192) NOT NULL,
    content TEXT, link VARCHAR(16383) NOT NULL, date BIGINT, hash BINARY(16),
    is_read BOOLEAN NOT NULL DEFAULT 0, is_favorite BOOLEAN NOT NULL DEFAULT 0, id_feed INTEGER);
INSERT INTO category (id, name) VALUES (1, 'Uncategorized'), (2, 'News &amp; more');
"""


def freshrss_database(path: Path, url: str) -> None:
    with sqlite3.connect(path) as database:
        database.executescript(FRESHRSS_TABLES)
        database.execute(
            "INSERT INTO feed VALUES (7, ?, 0, 2, 'Posts', '', NULL)", (url.replace("&", "&amp;"),)
        )
        database.execute("INSERT INTO feed VALUES (8, 'https://page.example/', 10, 1, 'A page', '', NULL)")
        for n in (*READ, *UNREAD):
            database.execute(
                "INSERT INTO entry VALUES (?, ?, 'Post', 'text', ?, 0, NULL, ?, 0, 7)",
                (n, f"tag:{n}", link(n).replace("&", "&amp;"), n in READ),
            )
    database.close()


def freshrss_zip(path: Path, url: str) -> None:
    items = [
        {
            "id": f"tag:google.com,2005:reader/item/{n:016x}",
            "guid": f"tag:{n}",
            "title": "Post",
            "canonical": [{"href": link(n)}],
            "categories": [
                "user/-/state/com.google/reading-list",
                f"user/-/state/com.google/{'read' if n in READ else 'unread'}",
            ],
            "origin": {"streamId": "feed/7", "title": "Posts", "feedUrl": url},
        }
        for n in (*READ, *UNREAD)
    ]
    escaped = url.replace("&", "&amp;")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("feed_2026-01-01_2_7.json", json.dumps({"id": "user/x/state", "items": items}))
        archive.writestr(
            "feeds_2026-01-01.opml.xml",
            "<opml version='2.0'><body><outline text='News &amp; more'>"
            f"<outline type='rss' text='Posts' xmlUrl='{escaped}'/></outline></body></opml>",
        )


def miniflux_json(path: Path, url: str) -> None:
    """`/v1/feeds`, then two pages of `/v1/entries`, in one file."""
    its_feed = {"id": 1, "feed_url": url, "title": "Posts", "category": {"id": 2, "title": "News & more"}}
    entries = [
        {"id": n, "url": link(n), "hash": "x", "status": "read" if n in READ else "unread", "feed": its_feed}
        for n in (*READ, *UNREAD)
    ]
    pages = [{"total": 5, "entries": entries[:2]}, {"total": 5, "entries": entries[2:]}]
    path.write_text("\n".join(json.dumps(each) for each in ([its_feed], *pages)))


def ttrss_xml(path: Path, url: str) -> None:
    articles = "".join(
        f"<article><guid><![CDATA[{{'ver':2,'hash':'SHA1:{n}'}}]]></guid><title><![CDATA[Post]]></title>"
        f"<content><![CDATA[<p>]]></content><marked>1</marked><link><![CDATA[{link(n)}]]></link>"
        f"<feed_title><![CDATA[Posts]]></feed_title><feed_url><![CDATA[{url}]]></feed_url></article>"
        for n in READ
    )
    path.write_bytes(gzip.compress(f'<articles schema-version="143">{articles}</articles>'.encode()))


def table(path: Path, url: str) -> None:
    """What `\\copy (SELECT …) TO … CSV HEADER` of tt-rss's or Miniflux's tables gives."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["feed_url", "feed_title", "category", "link", "unread"])
    for n in (*READ, *UNREAD):
        writer.writerow([url, "Posts", "News & more", link(n), "f" if n in READ else "t"])
    path.write_text(text.getvalue())


def reader_database(path: Path, url: str) -> None:
    """Made by the library itself."""
    import feedparser_sgmllib

    # The same module, under the name that reader's own feedparser knows.
    sys.modules.setdefault("sgmllib", feedparser_sgmllib)
    from reader import make_reader

    with make_reader(str(path)) as library:
        library.add_feed(url)
        for n in (*READ, *UNREAD):
            library.add_entry({"feed_url": url, "id": f"tag:{n}", "link": link(n), "title": "Post"})
        for n in READ:
            library.mark_entry_as_read((url, f"tag:{n}"))


FILES = {
    "freshrss": (freshrss_database, "News & more"),
    "freshrss zip": (freshrss_zip, "News & more"),
    "miniflux": (miniflux_json, "News & more"),
    "tt-rss": (ttrss_xml, None),
    "csv": (table, "News & more"),
    "reader": (reader_database, None),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("name", FILES)
def test_what_was_read_there_does_not_come_back(name: str, tmp_path: Path, origin: Origin) -> None:
    origin.route("/feed?x=1&y=2", body=feed(), content_type="application/rss+xml")
    origin.route("/feed", body=feed(), content_type="application/rss+xml")
    url = origin.url("/feed?x=1&y=2")
    make, folder = FILES[name]
    file = tmp_path / "export"
    make(file, url)
    headwater = Headwater(tmp_path, f"sqlite:///{tmp_path / 'headwater.db'}")
    report = headwater.json("import", str(file), "--from", name.split()[0])["entries"]
    added = [each for each in report if each["outcome"] == "added"]
    assert [(each["url"], each["folder"], each["seen"]) for each in added] == [(url, folder, 3)]
    if name == "freshrss":
        assert [each["reason"] for each in report if each["outcome"] == "rejected"]
    # What was read is remembered, not stored; but what tt-rss exports has a star, and comes along.
    starred = headwater.json("items")
    assert len(starred) == (3 if name.startswith("tt-rss") else 0)
    visited = headwater.json("collect")
    assert visited["items_new"] == len(UNREAD)
    titles = sorted(each["title"] for each in headwater.json("items"))
    assert titles[-2:] == ["Post 4", "Post 5"]
    assert len(titles) == len(starred) + 2
    # Nor later, when they are known by their ids alone.
    origin.route("/feed", body=feed().replace("Posts", "Our posts"), content_type="application/rss+xml")
    assert headwater.json("collect", "--source", "1")["items_new"] == 0
    assert len(headwater.json("items")) == len(titles)
    again = headwater.json("import", str(file))["entries"]
    assert {each["outcome"] for each in again} <= {"known", "rejected"}
    assert sum(each["seen"] for each in again) == 0


def test_one_programs_file_is_not_anothers(tmp_path: Path) -> None:
    file = tmp_path / "export"
    miniflux_json(file, "https://x.example/feed")
    with pytest.raises(ParseError, match="exported by miniflux, not by reader"):
        read_export(file, file.read_bytes(), "reader")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nothing",
        b"{}",
        b"[1]",
        b'{"items": [1]}',
        b'{"entries": [{}]}',
        b"PK\x03\x04 no zip",
        b"\x1f\x8b no gzip",
        b"<articles",
        b"a,b\n1,2\n",
        b"feed_url\n\xff\n",
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    try:
        found = read_export(file, data)
    except ParseError:
        return
    assert found.outlines == ()


def test_foreign_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "some.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE something (id INTEGER)")
    database.close()
    with pytest.raises(ParseError, match=r"neither FreshRSS's nor reader's"):
        read_export(file, file.read_bytes())
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ParseError, match="cannot be read"):
        read_export(file, file.read_bytes())


BOMB_BYTES = 30_000_000
MOST_MEGABYTES = 400
# VmHWM is the peak of this program alone; ru_maxrss of a child includes what the process that started it had.
READING = """
import sys
from pathlib import Path
from headwater.errors import ParseError
from headwater.sources.importing.reading import read_export
try:
    read_export(None, Path(sys.argv[1]).read_bytes())
except ParseError as error:
    print(error)
print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def zipped(data: bytes, *, padding: int = 0) -> bytes:
    """A zip of this document, and of bytes that make it as large as an honest one."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("starred.json", data)
        archive.writestr("padding", random.Random(1).randbytes(padding))
    return file.getvalue()


def repeated(start: bytes, piece: bytes, end: bytes = b"") -> bytes:
    return start + piece * (BOMB_BYTES // len(piece)) + end


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: gzip.compress(repeated(b"[", b"{},", b"{}]")), "more than 20000000 bytes"),
        (lambda: zipped(repeated(b'{"items": [', b"{},", b"{}]}")), "more than 20000000 bytes"),
        (lambda: zipped(repeated(b'{"items": [', b"{},", b"{}]}"), padding=1_100_000), "5000000 values"),
        (lambda: repeated(b"[", b"{},", b"{}]"), "5000000 values"),
        (lambda: repeated(b"", b"["), "5000000 values"),
        (lambda: repeated('["\N{GRINNING FACE}'.encode(), b"a"), "neither FreshRSS's nor Miniflux's"),
        (lambda: repeated(b'["', b'\\"'), "neither FreshRSS's nor Miniflux's"),
        (lambda: repeated(b"url\n", b"\n"), "5000000 cells"),
        (lambda: repeated(b"url\n", b"a,"), "5000000 cells"),
        (lambda: repeated(b"<articles>", b"<article/>", b"</articles>"), None),
        (lambda: repeated(b"<articles><article>", b"<a/>", b"</article></articles>"), None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_file_made_to_fill_the_memory_is_read_in_little(
    make: Callable[[], bytes], problem: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "bomb"
    file.write_bytes(make())
    done = subprocess.run(
        [sys.executable, "-c", READING, str(file)], capture_output=True, text=True, check=True, timeout=120
    )
    *said, megabytes = done.stdout.splitlines()
    assert (problem or "") in " ".join(said)
    assert bool(said) is (problem is not None)
    assert int(megabytes) < MOST_MEGABYTES


def test_compressed_export_of_usual_size_is_read() -> None:
    words = random.Random(1)
    entries = [
        {
            "origin": {"feedUrl": "https://a.example/"},
            "guid": f"tag:{n}",
            "categories": [],
            "summary": words.randbytes(200).hex(),
        }
        for n in range(60_000)
    ]
    found = read_export(None, gzip.compress(json.dumps({"items": entries}).encode()))
    assert [outline.url for outline in found.outlines] == ["https://a.example/"]


@settings(deadline=None)
@given(
    data=st.binary(max_size=300) | st.text(max_size=300).map(str.encode),
    start=st.sampled_from((b"", b"{", b"[", b"<articles>", b"PK\x03\x04", b"feed_url\n")),
)
def test_no_file_breaks_it(data: bytes, start: bytes) -> None:
    with contextlib.suppress(ParseError):
        read_export(None, start + data)


@pytest.mark.parametrize(
    "data",
    [
        "url,name\nhttps://a.example/f,First\nhttps://b.example/f,Second\n",
        "URL;Name;Folder\nhttps://a.example/f;First;\nhttps://b.example/f;Second;\n",
        "title\turl\nFirst\thttps://a.example/f\nSecond\thttps://b.example/f\n",
        "# mine\nhttps://a.example/f,First\n\nhttps://b.example/f,Second\n",
    ],
)
def test_tables_and_lists_are_read_by_their_looks(data: str, tmp_path: Path) -> None:
    found = read_export(tmp_path / "list", data.encode())
    assert [(each.url, each.title) for each in found.outlines] == [
        ("https://a.example/f", "First"),
        ("https://b.example/f", "Second"),
    ]


@pytest.mark.parametrize("database", ["ttrss", "miniflux"])
def test_tables_that_the_documents_ask_databases_for_are_read(database: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "import-from-others.md").read_text(encoding="utf-8")
    found = re.search(rf"psql {database} .*?SELECT (.*?)\n? +FROM", page, re.DOTALL)
    assert found
    columns = [re.split(r"[.\s]", each.strip())[-1] for each in found[1].split(",")]
    values = {
        "feed_url": "https://a.example/f",
        "feed_title": "First",
        "category": "News",
        **dict.fromkeys(("url", "link"), "https://a.example/1"),
        **{"status": "read", "unread": "f", "disabled": "t"},
    }
    data = ",".join(columns) + "\n" + ",".join(values[column] for column in columns) + "\n"
    (feed,) = read_export(tmp_path / "table.csv", data.encode()).outlines
    assert (feed.url, feed.title, feed.folder) == ("https://a.example/f", "First", "News")
    assert feed.paused is ("disabled" in columns)


def test_plain_list_is_imported_and_what_is_no_address_refused(store: Store) -> None:
    lines = b"https://a.example/f\nb.example/f\nnot-an-url\nlocalhost:8080/f\n"
    report = import_export(store, read_export(None, lines), NOON)
    assert [entry.outcome for entry in report] == ["added", "added", "rejected", "added"]


def test_feeds_disabled_there_arrive_paused_and_stars_are_counted(store: Store) -> None:
    feeds = [
        {"feed_url": "https://a.example/f", "title": "A", "disabled": True},
        {"feed_url": "https://b.example/f", "title": "B", "disabled": False},
    ]
    entries = [
        {"url": "https://a.example/1", "status": "read", "starred": True, "tags": ["x"], "feed": feeds[0]},
        {"url": "https://a.example/2", "status": "read", "starred": False, "tags": [], "feed": feeds[0]},
    ]
    found = read_export(None, (json.dumps(feeds) + json.dumps({"entries": entries})).encode())
    assert (found.stars, found.tags) == (1, 1)
    import_export(store, found, NOON)
    with store.reading() as connection:
        assert [source.schedule_enabled for source in list_sources(connection)] == [False, True]


def test_feeds_muted_in_freshrss_arrive_paused(tmp_path: Path) -> None:
    file = tmp_path / "db.sqlite"
    freshrss_database(file, "https://a.example/f")
    with sqlite3.connect(file) as database:
        database.execute("ALTER TABLE feed ADD COLUMN ttl INTEGER NOT NULL DEFAULT -3600")
        database.execute("UPDATE entry SET is_favorite = 1 WHERE id < 3")
    database.close()
    with contextlib.closing(read_export(file, file.read_bytes())) as found:
        assert [outline.paused for outline in found.outlines] == [True]
        assert found.stars == 2
