"""`parse`, `discover`, `import` and `export` as a user has them."""

import json
from pathlib import Path

import pytest

from headwater.formats.opml import read_opml
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from tests.command import Headwater
from tests.origin import Origin

FEED = (
    b'<rss version="2.0"><channel><title>One</title><item><title>First</title><guid>1</guid>'
    b"<pubDate>Mon, 06 Nov 2023 10:00:00 GMT</pubDate></item></channel></rss>"
)
OPML = """<opml version="2.0"><body>
  <outline text="News"><outline text="Deep">
    <outline text="One" xmlUrl="{base}/one"/>
    <outline text="Not the web" xmlUrl="gopher://old.example/"/>
  </outline></outline>
  <outline text="One again" xmlUrl="{base}/one/"/>
  <outline text="A map" xmlUrl="{base}/map" headwaterType="sitemap"/>
  <outline text="Strange" xmlUrl="{base}/strange" headwaterType="nonsense"/>
  <outline text="Nothing"/>
</body></opml>"""


@pytest.fixture
def headwater(tmp_path: Path) -> Headwater:
    return Headwater(tmp_path, None)


def test_parse_a_file_an_address_and_standard_input(
    headwater: Headwater, origin: Origin, tmp_path: Path
) -> None:
    (tmp_path / "feed.xml").write_bytes(FEED)
    origin.route("/feed", body=FEED)
    for place in ("feed.xml", origin.url("/feed")):
        feed = headwater.json("parse", place)
        assert (feed["format"], feed["title"]) == ("rss-2.0", "One")
        assert feed["entries"][0]["published"] == "2023-11-06T10:00:00+00:00"
    shown = headwater.ok("parse", "feed.xml")
    assert "Format: rss-2.0" in shown
    assert "First" in shown
    assert not (tmp_path / ".local").exists(), "parsing stores nothing"


def test_parse_says_what_is_wrong(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<!doctype html><html><title>x</title></html>")
    assert headwater.refused("parse", "page.html") == "page.html: This is a web page, not a feed."
    assert headwater.refused("parse", "").startswith("an empty name is not a file")
    assert "nowhere.invalid" in headwater.refused("parse", "nowhere.invalid/feed")
    assert "cannot read" not in headwater.refused("parse", "feed://nowhere.invalid/feed")
    assert headwater.refused("parse", "missing.xml").startswith("cannot read missing.xml")


def test_discover(headwater: Headwater, origin: Origin) -> None:
    page = (
        '<link rel="alternate" type="application/atom+xml" title="Dead" href="/dead">'
        '<link rel="alternate" type="application/feed+json" title="All" href="/json">'
        '<link rel="alternate" type="application/rss+xml" href="/hub">'
    )
    origin.route("/page", body=page, content_type="text/html")
    origin.route("/bare", body="<p>nothing here</p>", content_type="text/html")
    origin.route("/rss.xml", body=FEED)
    origin.route("/@jane.rss", body=FEED)
    origin.route(
        "/json", body='{"version":"https://jsonfeed.org/version/1.1","title":"Own","items":[{"id":"1"}]}'
    )
    origin.route("/hub", body=FEED, headers={"Link": "<https://hub.example/>; rel=hub"})
    headwater.ok("source", "add", origin.url("/json"))
    first, second, dead = headwater.json("discover", origin.url("/page"))
    assert (first["url"], first["title"], first["items"]) == (origin.url("/json"), "Own", 1)
    assert first["source_id"] is not None
    assert (second["url"], second["hub"], second["source_id"]) == (
        origin.url("/hub"),
        "https://hub.example/",
        None,
    )
    assert (dead["title"], dead["items"]) == ("Dead", None)
    assert "404" in dead["problem"]
    (guessed,) = headwater.json("discover", origin.url("/bare"))
    assert (guessed["url"], guessed["how"], guessed["title"]) == (origin.url("/rss.xml"), "guess", "One")
    (itself,) = headwater.json("discover", origin.url("/rss.xml"))
    assert (itself["how"], itself["checked"]) == (None, True)
    ruled, outbox = headwater.json("discover", origin.url("/@jane"))
    assert (ruled["url"], ruled["how"], ruled["items"]) == (origin.url("/@jane.rss"), "rule", 1)
    assert (outbox["type"], outbox["items"]) == ("api.activitypub", None), "what does not work stands last"


def test_discover_page_without_feed_offers_to_watch_it(headwater: Headwater, origin: Origin) -> None:
    origin.route("/bare", body="<p>nothing here</p>", content_type="text/html")
    (watched,) = headwater.json("discover", origin.url("/bare"))
    assert (watched["how"], watched["type"], watched["url"]) == (
        "watch",
        "web.scraper",
        origin.url("/bare"),
    )
    assert watched["config"]["watch"] is True
    assert len(origin.requests) <= 9


def test_import_reports_every_entry_and_export_keeps_folders(
    headwater: Headwater, origin: Origin, tmp_path: Path
) -> None:
    base = origin.url("").rstrip("/")
    (tmp_path / "list.opml").write_text(OPML.format(base=base))
    report = {entry["title"]: entry for entry in headwater.json("import", "list.opml")["entries"]}
    assert {title: entry["outcome"] for title, entry in report.items()} == {
        "One": "added",
        "A map": "added",
        "One again": "known",
        "Not the web": "rejected",
        "Strange": "rejected",
        "Nothing": "rejected",
    }
    assert report["Strange"]["reason"].startswith("there is no source type nonsense")
    assert not origin.requests, "importing sends no request; the collector visits them next"
    sources = {source["name"]: source for source in headwater.json("source", "list")}
    assert sources["One"]["folder"] == "News / Deep"
    assert sources["A map"]["type"] == "web.sitemap"

    headwater.ok("export", "out.opml")
    written = read_opml((tmp_path / "out.opml").read_bytes())
    assert {(outline.title, outline.folder, outline.type) for outline in written.outlines} == {
        ("One", "News / Deep", None),
        ("A map", None, "web.sitemap"),
    }
    assert headwater.ok("export").startswith("<?xml")
    code, out, err = headwater.run("import", "out.opml")
    assert (code, out) == (0, "0 added, 2 known already, 0 rejected\n")
    assert err.count("\n") == 2


def test_import_refuses_what_is_no_list(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "feed.xml").write_bytes(FEED)
    assert "not an OPML file" in headwater.refused("import", "feed.xml")
    (tmp_path / "empty").write_bytes(b"")
    assert headwater.refused("import", "empty") == "empty: This file is empty."
    (tmp_path / "letter").write_text("Dear reader,\n\nthis is not a list.\n")
    assert "neither a list of addresses" in headwater.refused("import", "letter")
    assert "cannot write" in headwater.refused("export", "no/such/place.opml")
    (tmp_path / "taken").mkdir()
    assert "cannot write taken" in headwater.refused("export", "taken")
    assert "cannot write ." in headwater.refused("export", ".")
    assert not (tmp_path / "taken.part").exists(), "nothing is left behind"
    assert json.loads(headwater.ok("source", "list", "--json")) == []


def test_export_writes_tokens_only_when_asked(headwater: Headwater, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'headwater.db'}") as store, store.writing() as connection:
        url = "https://one.example/feed?token=S3CRET"
        add_source(connection, name="one", type="rss.feed", url=url, now=0.0)
    headwater.environment["HEADWATER_DATABASE_URL"] = f"sqlite:///{tmp_path / 'headwater.db'}"
    code, out, err = headwater.run("export")
    assert (code, "S3CRET" in out, "token=***" in out) == (0, False, True)
    assert "1 address holds a secret" in err and "--with-secrets" in err
    assert "S3CRET" in headwater.ok("export", "--with-secrets")
