"""The reader's pages: lists, articles, marks, pictures through this site, bookmarks, installing."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.model import Enclosure, Item, Result
from headwater.sources.catalogue import find_pack
from headwater.store.core.database import Store
from headwater.store.people.entries import get_entry
from headwater.store.people.folders import list_folders
from headwater.store.people.reading import unread_counts
from headwater.store.people.subscriptions import list_subscriptions
from headwater.store.reading.results import NewResult, write_results
from headwater.web.app import create_app
from headwater.web.pages.reading.arranging import feed_address
from headwater.web.pages.reading.highlighting import excerpt_of, hits_of, mark_html, mark_text
from headwater.web.pictures import PictureAddresses, PictureStore, picture_type
from headwater.web.qr import qr_matrix
from tests.clock import NOON, FakeClock
from tests.origin import Answer, Origin
from tests.publish.test_outlets import store_items
from tests.web.pages.conftest import Visitor

OWNER = 1
PNG = b"\x89PNG\r\n\x1a\n" + bytes(300)
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture
def items(store: Store) -> list[int]:
    with store.writing() as connection:
        store_items(
            connection,
            Item("a", title="The river rises", url="https://a.example/a", content="<p>Water &amp; mud</p>"),
            Item("b", title="河水上涨", url="https://a.example/b", content="<p>水位</p>", language="zh"),
            folder="News",
        )
        store_items(connection, Item("c", title="A quiet day", published_at=NOON - 9), name="Other")
    return [1, 2, 3]


@pytest.fixture
def neighbour(store: Store, settings: Settings, clock: FakeClock) -> Iterator[Visitor]:
    """A visitor of a Headwater that may fetch from this machine."""
    app = create_app(store, replace(settings, allow_hosts=("127.0.0.1",)), clock=clock)
    with TestClient(app, base_url="http://127.0.0.1:8626") as client:
        yield Visitor(client)


def titles(page: str) -> list[str]:
    return re.findall(r'class="ttl"[^>]*>.*?<bdi>(.*?)</bdi>', page, re.DOTALL)


@pytest.mark.usefixtures("items")
def test_lists_show_what_their_address_asks_for(visitor: Visitor, store: Store) -> None:
    assert len(titles(visitor.see("/read"))) == 3
    with store.reading() as connection:
        folder = list_folders(connection, OWNER)[0].id
    assert sorted(titles(visitor.see(f"/read?folder={folder}"))) == ["The river rises", "河水上涨"]
    assert titles(visitor.see("/read?feed=2")) == ["A quiet day"]
    assert titles(visitor.see("/read?view=starred")) == []
    assert titles(visitor.see("/read?search=river")) == ["The <mark>river</mark> rises"]
    assert "nothing to look for" in visitor.see("/read?search=--")
    assert "there is no folder 99" in visitor.see("/read?folder=99")
    assert titles(visitor.see("/read?folder=99999999999999999999&view=nonsense&sort=sideways")) != []
    assert titles(visitor.see("/read/rows?view=all")) == titles(visitor.see("/read?view=all"))


@pytest.mark.usefixtures("items")
def test_forms_mark_star_put_aside_and_tag(visitor: Visitor, store: Store) -> None:
    fields = {"is_read": "yes", "is_starred": "yes", "read_later": "yes", "tags": "water, 水，mud"}
    answer = visitor.send("/read/entries/1", page="/read", back="/read?view=starred", **fields)
    assert answer.url.path == "/read" and titles(answer.text) == ["The river rises"]
    with store.reading() as connection:
        state = get_entry(connection, OWNER, 1).state
    assert state.is_read and state.starred_at and state.later_until
    assert set(state.tags) == {"water", "水", "mud"}
    visitor.send("/read/entries/1", page="/read", back="https://evil.example/", is_read="no", tags="water")
    with store.reading() as connection:
        state = get_entry(connection, OWNER, 1).state
    assert not state.is_read and state.tags == ("water",)
    assert visitor.send("/read/entries/77", page="/read", is_read="yes").status_code == 404


@pytest.mark.usefixtures("items")
def test_marking_a_list_leaves_what_came_later_unread(visitor: Visitor, store: Store) -> None:
    page = visitor.see("/read?view=unread")
    until = re.search(r'name="until" value="([^"]+)"', page)
    assert until
    with store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE items SET first_seen_at = {float(until[1]) + 60} WHERE id = 3")
    token = re.search(r'name="form_token" value="([^"]+)"', page)
    assert token
    answer = visitor.client.post(
        "/read/all-read?view=unread",
        data={"form_token": token[1], "until": until[1]},
        headers={"Accept": "application/json"},
    )
    assert answer.json()["marked"] == 2 and sorted(answer.json()["entry_ids"]) == [1, 2]
    with store.reading() as connection:
        assert sum(each.count for each in unread_counts(connection, OWNER)) == 1


@pytest.mark.usefixtures("items")
def test_counts_tell_what_is_new_since_the_list_was_shown(visitor: Visitor) -> None:
    counts = json.loads(visitor.see(f"/read/counts?view=all&since={NOON - 1_000_000}"))
    assert counts["unread"] == 3 and counts["fresh"] == 3
    assert counts["folders"] == {"1": 2} and counts["starred"] == 0


def test_hostile_item_is_harmless_and_loads_nothing_from_elsewhere(visitor: Visitor, store: Store) -> None:
    body = (
        f"<p>kept</p>{EVIL}<a href='javascript:alert(1)'>x</a>"
        "<img src='https://track.example/p.gif' width='1' height='1'>"
        "<picture><source srcset='https://pics.example/2x.png 2x'><img src='https://pics.example/1.png'"
        " srcset='https://pics.example/2.png 2x'></picture><video src='https://pics.example/v.mp4'"
        " poster='https://pics.example/v.png'></video>"
    )
    with store.writing() as connection:
        enclosures = (Enclosure("https://pics.example/e.mp3", "audio/mpeg", 9),)
        item = Item(
            "1", url="javascript:alert(1)", title=EVIL, author=EVIL, content=body, enclosures=enclosures
        )
        store_items(connection, item)
    for path in ("/read?item=1", "/read/items/1", "/read?search=kept&item=1"):
        answer = visitor.client.get(path)
        assert not re.search(r'<script>alert|<img src=.?x|="javascript:', answer.text), path
        assert not re.findall(r'(?:src|srcset|poster)="(?!/)', answer.text), path
        assert "track.example" not in answer.text
    policy = visitor.client.get("/read?item=1").headers["content-security-policy"]
    assert "img-src 'self';" in policy and "media-src 'self';" in policy and "http:" not in policy


def test_pictures_are_fetched_once_and_only_when_signed(
    visitor: Visitor, neighbour: Visitor, store: Store
) -> None:
    with Origin() as publisher:
        publisher.route("/p.png", Answer(body=PNG, content_type="text/html"))
        publisher.route("/page", Answer(body="<!doctype html><p>no picture", content_type="image/png"))
        urls = [publisher.url("/p.png"), publisher.url("/page")]
        with store.writing() as connection:
            shown = (Item(str(n), title=str(n), content=f'<img src="{url}">') for n, url in enumerate(urls))
            store_items(connection, *shown)
        found = re.findall(r'<img [^>]*src="(/picture[^"]+)"', visitor.see("/read/items/1"))
        refused = visitor.client.get(found[0].replace("&amp;", "&"))
        assert refused.status_code == 404, "the guard lets nothing of this network through"
        assert publisher.requests == []
        address = found[0].replace("&amp;", "&")
        for _ in range(2):
            answer = neighbour.client.get(address)
            assert answer.status_code == 200 and answer.content == PNG
        assert (
            answer.headers["content-type"] == "image/png"
            and "sandbox" in answer.headers["content-security-policy"]
        )
        assert len(publisher.requests) == 1
        assert neighbour.client.get(address[:-1] + "0x"[address.endswith("0")]).status_code == 404
        no_picture = re.findall(r'<img [^>]*src="(/picture[^"]+)"', neighbour.see("/read/items/2"))
        assert neighbour.client.get(no_picture[0].replace("&amp;", "&")).status_code == 404


def test_sound_passes_in_parts(neighbour: Visitor, store: Store) -> None:
    sound = bytes(range(256)) * 8
    with Origin() as publisher:
        publisher.route("/e.mp3", Answer(body=sound, content_type="audio/mpeg"))
        enclosures = (Enclosure(publisher.url("/e.mp3"), "audio/mpeg", len(sound)),)
        with store.writing() as connection:
            store_items(connection, Item("1", title="1", enclosures=enclosures))
        address = re.findall(r'src="(/sound[^"]+)"', neighbour.see("/read/items/1"))[0].replace("&amp;", "&")
        part = neighbour.client.get(address, headers={"Range": "bytes=256-511"})
        assert part.status_code == 206 and part.headers["content-range"].startswith("bytes 256-")
        assert part.content.startswith(sound[256:512])
        assert publisher.requests[0].headers["range"] == "bytes=256-511"
        assert publisher.requests[0].headers["accept-encoding"] == "identity"
        after = neighbour.client.get(address, headers={"Range": "bytes=4096-"})
        assert after.status_code == 416


def test_oldest_pictures_are_deleted_when_they_grow_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.web.pictures.MOST_KEPT_BYTES", 3_000)
    kept = PictureStore(tmp_path)
    for number in range(12):
        kept.put(f"https://a.example/{number}", PNG)
    there = [number for number in range(12) if kept.get(f"https://a.example/{number}", 0.0)]
    assert 11 in there and len(there) * len(PNG) <= 3_000


def test_pictures_kept_by_many_at_once_are_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(40):
        kept = PictureStore(tmp_path)  # a new one measures what is there, beside those that write
        urls = [f"https://a.example/{number}-{each // 2}" for each in range(16)]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(kept.put, urls, [PNG + bytes([each]) for each in range(16)]))
        assert all(kept.get(url, 0.0) for url in urls)
    assert caplog.records == []


def test_picture_that_cannot_be_kept_is_shown_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "pictures").write_text("a file where the directory should be")
    PictureStore(tmp_path / "pictures").put("https://a.example/1.png", PNG)
    assert "cannot be kept" in caplog.text


def test_what_is_no_picture_is_none() -> None:
    assert picture_type(PNG) == "image/png"
    assert picture_type(b"\0\0\1\0rest") == "image/x-icon"
    assert picture_type(b"<html>") is None and picture_type(b"%PDF-1") is None and picture_type(b"") is None


def test_addresses_of_pictures_leave_own_files_and_refuse_other_schemes() -> None:
    addresses = PictureAddresses("secret", {"https://a.example/kept.png": "/media/abc?s=1"})
    assert addresses.of("https://a.example/kept.png") == "/media/abc?s=1"
    assert addresses.of("javascript:alert(1)") is None and addresses.of("file:///etc/passwd") is None
    signed = addresses.of("https://a.example/1.png")
    assert signed is not None and addresses.of("https://a.example/1.png", "sound") != signed
    assert not PictureAddresses("other").is_signed(
        "picture", "https://a.example/1.png", addresses.sign("picture", "https://a.example/1.png")
    )


def test_hits_are_marked_in_words_phrases_and_characters() -> None:
    assert mark_text("Rivers & river", hits_of("river")) == "Rivers &amp; <mark>river</mark>"
    assert mark_text("Rivers", hits_of("riv*")) == "<mark>Rivers</mark>"
    assert mark_text("老河道与新河", hits_of("河")) == "老<mark>河</mark>道与新<mark>河</mark>"
    assert mark_text("a b c", hits_of('"a b" -c')) == "<mark>a b</mark> c"
    assert (
        mark_html('<a href="/river">river</a>', hits_of("river")) == '<a href="/river"><mark>river</mark></a>'
    )
    assert hits_of("--") is None
    assert "hit" in excerpt_of("word " * 200 + "hit " + "word " * 200, hits_of("hit"))


@pytest.mark.usefixtures("items")
def test_search_is_saved_opened_and_deleted(visitor: Visitor) -> None:
    visitor.send("/read/searches?search=river&view=unread", page="/read?search=river", name="Rivers")
    page = visitor.see("/read")
    assert "Rivers" in page
    opened = visitor.see("/read?view=unread&search=river")
    assert "Saved as Rivers" in opened
    visitor.send("/read/searches/1/remove", page="/read", back="/read")
    assert "Rivers</bdi>" not in visitor.see("/read")


@pytest.mark.usefixtures("items")
def test_preferences_choose_order_layout_and_first_list(visitor: Visitor) -> None:
    visitor.send("/read/preferences", page="/read", layout="cards", sort="oldest", start_view="later")
    page = visitor.see("/read")
    assert "layout-cards" in page and "Oldest first" in page and 'data-view="later"' in page
    assert visitor.send("/read/preferences", page="/read", layout="sideways").status_code in (400, 422)


@pytest.mark.usefixtures("items")
def test_feeds_are_arranged_by_forms(visitor: Visitor, store: Store) -> None:
    visitor.send("/read/folders", page="/read/feeds", name="Rivers", parent="")
    visitor.send("/read/feeds/2", page="/read/feeds", title="Mine", folder="2", muted="yes")
    with store.reading() as connection:
        feed = next(each for each in list_subscriptions(connection, OWNER) if each.id == 2)
        assert (feed.title, feed.folder_id, feed.is_muted) == ("Mine", 2, True)
    assert visitor.send("/read/folders", page="/read/feeds", name="Rivers", parent="").status_code == 422
    visitor.send("/read/folders/2/remove", page="/read/feeds")
    visitor.send("/read/feeds/2/remove", page="/read/feeds")
    with store.reading() as connection:
        assert [each.id for each in list_subscriptions(connection, OWNER)] == [1]
        assert [each.name for each in list_folders(connection, OWNER)] == ["News"]


@pytest.mark.usefixtures("items")
def test_of_many_feeds_the_tree_shows_those_of_the_folder_that_is_read(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.web.pages.reading.tree.MOST_FEEDS", 1)
    page = visitor.see("/read")
    assert 'data-count="feed-2"' in page and 'data-count="feed-1"' not in page
    assert 'href="/read/feeds?folder=1"' in page and "1 more feed" in page
    counts = json.loads(visitor.see("/read/counts"))
    assert counts["feeds"] == {"2": 1} and counts["folders"] == {"1": 2} and counts["unread"] == 3
    for path in ("/read?folder=1", "/read?feed=1"):
        page = visitor.see(path)
        assert 'data-count="feed-1"' in page and "more feed" not in page
    assert json.loads(visitor.see("/read/counts?folder=1"))["feeds"] == {"1": 2, "2": 1}


@pytest.mark.usefixtures("items")
def test_feeds_are_arranged_a_page_at_a_time(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.web.pages.reading.arranging.ON_A_PAGE", 1)

    def shown(path: str) -> list[str]:
        return re.findall(r'data-drag="(\d+)"', visitor.see(path))

    assert sorted([*shown("/read/feeds"), *shown("/read/feeds?page=2")]) == ["1", "2"]
    assert 'rel="next"' in visitor.see("/read/feeds") and 'rel="prev"' in visitor.see("/read/feeds?page=2")
    assert shown("/read/feeds?folder=1") == ["1"] and shown("/read/feeds?search=OTHER") == ["2"]
    assert "No feeds match." in visitor.see("/read/feeds?search=nothing_like%25this")
    back = "/read/feeds?page=2"
    answer = visitor.send("/read/feeds/1", page=back, back=back, title="Mine", folder="1")
    assert answer.url.path == "/read/feeds" and answer.url.query == b"page=2"


@pytest.mark.usefixtures("items")
def test_lists_of_feeds_are_imported_and_exported(visitor: Visitor, store: Store) -> None:
    opml = (
        b"<opml version='2.0'><body><outline text='Far'><outline text='B' xmlUrl='https://b.example/f'/></outline>"
        b"<outline text='bad' xmlUrl='no address'/></body></opml>"
    )
    told = visitor.send("/read/feeds/import", page="/read/add", files={"file": ("a.opml", opml)})
    assert "1 added, 0 known already, 1 rejected" in told.text and "no address" in told.text
    exported = visitor.client.get("/read/feeds/export")
    assert exported.headers["content-disposition"] == 'attachment; filename="headwater.opml"'
    assert "https://b.example/f" in exported.text and 'text="Far"' in exported.text
    for files in ({"file": ("a.opml", b"")}, {"file": ("a.opml", b"<html>")}, {"other": ("a", b"x")}):
        refused = visitor.send("/read/feeds/import", page="/read/add", files=files)
        assert refused.status_code == 422, refused.text
    with store.reading() as connection:
        assert len(list_subscriptions(connection, OWNER)) == 3


def test_a_pack_is_followed_with_one_click_in_a_folder_of_its_name(visitor: Visitor, store: Store) -> None:
    assert "Essays and life (Chinese)" in visitor.see("/"), "nothing is collected yet: the packs are offered"
    followed = visitor.send("/read/packs", page="/read/add", pack="podcasts")
    assert followed.status_code == 200 and "You follow Podcasts." in followed.text
    with store.reading() as connection:
        feeds = list_subscriptions(connection, OWNER)
        assert [folder.name for folder in list_folders(connection, OWNER)] == ["Podcasts"]
        assert len(feeds) == len(find_pack("podcasts").feeds) and all(feed.folder_id for feed in feeds)
    refused = visitor.send("/read/packs", page="/read/add", pack="podcast")
    assert refused.status_code == 404 and "did you mean podcasts?" in refused.text


@pytest.mark.usefixtures("items")
def test_bookmarks_are_kept_edited_found_and_deleted(visitor: Visitor) -> None:
    visitor.send("/bookmarks", page="/bookmarks", item="1", back="/bookmarks")
    visitor.send("/bookmarks", page="/bookmarks", url="https://b.example/page", tags="later")
    page = visitor.see("/bookmarks")
    assert "The river rises" in page and "b.example" in page
    assert "Water &amp; mud" in visitor.see("/bookmarks/1")
    visitor.send("/bookmarks/1", page="/bookmarks/1", title="Floods", note="Again", tags="water")
    assert "Floods" in visitor.see("/bookmarks?search=floods") and "b.example" not in visitor.see(
        "/bookmarks?tag=water"
    )
    assert visitor.send("/bookmarks", page="/bookmarks", url="javascript:alert(1)").status_code == 422
    visitor.send("/bookmarks/1/remove", page="/bookmarks")
    assert "Floods" not in visitor.see("/bookmarks")


def test_shared_and_linked_addresses_lead_to_adding(visitor: Visitor) -> None:
    assert feed_address("web+feed://a.example/feed") == "https://a.example/feed"
    assert feed_address("feed:http://a.example/feed") == "http://a.example/feed"
    assert feed_address(" https://a.example/ ") == "https://a.example/"
    assert 'value="https://a.example/f"' in visitor.see("/subscribe?url=web%2Bfeed%3A%2F%2Fa.example%2Ff")
    shared = visitor.see("/share?text=Look+https%3A%2F%2Fa.example%2Fx&title=A+title")
    assert "https://a.example/x" in shared and "A title" in shared
    assert "javascript:alert" not in visitor.see("/share?url=javascript%3Aalert(1)")


def test_reader_is_an_app_that_takes_shared_addresses(visitor: Visitor) -> None:
    manifest = json.loads(visitor.see("/manifest.webmanifest"))
    assert manifest["start_url"] == "/read" and manifest["share_target"]["action"] == "/share"
    for each in manifest["icons"]:
        assert visitor.client.get(each["src"]).status_code == 200
    assert "respondWith" in visitor.see("/service-worker.js")


def test_qr_code_is_as_a_scanner_reads_it() -> None:
    """Read by a scanner when it was recorded: every version has the same modules since."""
    rows = qr_matrix("http://127.0.0.1:8626/api/greader.php")
    assert rows is not None and len(rows) == 29
    told = "".join("01"[module] for row in rows for module in row)
    assert f"{int(told, 2):x}" == QR_OF_AN_ADDRESS
    assert qr_matrix("x" * 134) is not None and qr_matrix("x" * 135) is None


QR_OF_AN_ADDRESS = (
    "1fc4267f82455a0dd494976e9308bb749e35d823b520ff5555fc0245201df108c4485c8748b9d565c77bb9d40567c6b71720"
    "369b82650d8441b353d5084350bcc72cbdd26ad82bfd950c25bf000b2e8bff627d6e0a4763175d19fbba7cdcddd7d02760ab"
    "db75fde59db"
)


def test_article_has_the_times_of_its_transcript_and_why_it_scores(visitor: Visitor, store: Store) -> None:
    said = {"segments": [{"start": 75.0, "end": 80.0, "text": "Now the <b>river</b>."}]}
    made = (
        Result("transcript", body="Now the river.", language="en", data=said),
        Result("score", data={"score": 9.0, "reason": "It is about <rivers>."}),
    )
    sound = Enclosure("https://a.example/1.mp3", "audio/mpeg")
    with store.writing() as connection:
        store_items(connection, Item("p", title="Episode 1", enclosures=(sound,)))
        write_results(connection, [NewResult(1, 1, each, NOON) for each in made])
    page = visitor.see("/read?item=1&language=zh")
    assert '<button type="button" class="bare s" data-seek="1:15">1:15</button>' in page
    assert "Now the &lt;b&gt;river&lt;/b&gt;." in page
    assert "It is about &lt;rivers&gt;." in page
    assert "评分 9<" in page
    assert "<summary>文字稿 " in page
