"""Sources in the browser: found, added, steered, edited, taken out and brought back."""

import html
import re

import orjson
import pytest

from headwater.model import Item
from headwater.store.collecting.push import FoundHub, change_subscription, write_subscription_changes
from headwater.store.collecting.sources import add_source, get_source, list_sources
from headwater.store.core.database import Store
from headwater.store.core.tables import sources
from headwater.views.sources import source_json
from headwater.web.pages.sources import FEWEST_VISITS, SOURCES_ON_A_PAGE
from tests.clock import NOON
from tests.origin import Origin
from tests.publish.test_outlets import store_items
from tests.web.pages.conftest import Visitor

EVIL = "<script>alert(1)</script>"
FEED = (
    f"<rss version='2.0'><channel><title>{html.escape(EVIL)}</title>"
    "<item><guid>1</guid><title>one</title></item></channel></rss>"
)


def test_the_table_is_searched_filtered_sorted_and_turned(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        for number in range(SOURCES_ON_A_PAGE + 2):
            add_source(
                connection,
                name=f"s{number:03} 100%_x" if number else EVIL,
                type="rss.feed" if number % 2 else "web.sitemap",
                url=f"https://{number}.example/",
                now=NOON,
                folder="News" if number < 3 else None,
            )
    page = visitor.see("/sources?sort=-name")
    names = re.findall(r'<a href="/sources/\d+"><bdi>(s\d+)', page)
    assert names == sorted(names, reverse=True)
    assert len(names) == SOURCES_ON_A_PAGE
    assert "<script>alert" not in visitor.see("/sources?page=2&sort=-name")
    assert "&lt;script&gt;" in visitor.see("/sources?page=2&sort=-name")
    assert visitor.see("/sources?search=s007").count('name="source"') == 1
    assert visitor.see("/sources?search=0%25_x").count('name="source"') == SOURCES_ON_A_PAGE
    assert "No sources match" in visitor.see("/sources?search=%25%25")
    assert visitor.see("/sources?folder=News&type=rss.feed").count('name="source"') == 1
    assert visitor.see("/sources?state=due").count('name="source"') == SOURCES_ON_A_PAGE
    assert "No sources match" in visitor.see("/sources?state=paused")
    for wrong in ("?sort=x", "?state=x", "?page=0"):
        assert visitor.client.get(f"/sources{wrong}").status_code == 422


def test_from_any_page_to_a_source_with_its_items(local: Visitor, store: Store, origin: Origin) -> None:
    feed = origin.route("/feed", body=FEED)
    page = origin.route(
        "/", body='<link rel="alternate" type="application/rss+xml" href="/feed" title="News">'
    )
    found = local.see(f"/sources/add?url={page}")
    assert f'value="{feed}"' in found
    added = local.send("/sources/add", page="/sources/add", url=feed, new_folder="F")
    assert added.status_code == 200
    assert "one" in added.text
    assert EVIL not in added.text
    with store.reading() as connection:
        (source,) = list_sources(connection)
    assert (source.folder, source.fetch_count) == ("F", 1)
    again = local.send("/sources/add", page="/sources/add", url=feed)
    assert (again.status_code, "is there already" in again.text) == (400, True)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"url": "http://10.0.0.1/feed"}, "10.0.0.1"),
        ({"url": "nonsense://x"}, "not an address of the web"),
        ({"url": "https://x.example/", "type": "rss.fed"}, "did you mean"),
        ({"url": "https://x.example/", "config": "{"}, "not JSON"),
        ({"url": "https://x.example/", "config": "[]"}, "not a JSON object"),
        ({"url": "https://x.example/", "config": '{"nokey": 1}'}, "there is no key nokey"),
    ],
)
def test_what_cannot_be_added_is_told_and_nothing_stored(
    visitor: Visitor, store: Store, fields: dict[str, str], problem: str
) -> None:
    answer = visitor.send("/sources/add", page="/sources/add", **fields)
    assert answer.status_code == 400
    assert problem in html.unescape(answer.text)
    with store.reading() as connection:
        assert list_sources(connection) == []


def test_a_source_is_steered(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(
            connection, *(Item(str(n), title=f"t{n}", published_at=NOON - n * 3600) for n in range(30))
        )
    page = visitor.see("/sources/1")
    assert "t0" in page
    assert 'class="heat"' in page
    assert "first in line" in page

    for action, enabled in (("refresh", True), ("pause", False), ("resume", True)):
        assert visitor.send(f"/sources/1/{action}", page="/sources/1").status_code == 200
        with store.reading() as connection:
            assert get_source(connection, 1).schedule_enabled is enabled
            asked = connection.exec_driver_sql("SELECT refresh_requested_at FROM sources").scalar()
            assert asked is not None
    assert visitor.send("/sources/1/explode", page="/sources/1").status_code == 400
    visitor.send("/sources/1/remove", page="/sources/1")
    assert visitor.client.get("/sources/1").status_code == 404
    assert "one" in visitor.see("/sources?state=removed")
    visitor.send("/sources/bulk", page="/sources?state=removed", what="restore", source=["1"])
    assert "t0" in visitor.see("/sources/1"), "its items are still there"


def test_an_edit_is_checked_and_keeps_secrets(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        add_source(
            connection,
            name="one",
            type="rss.feed",
            url="https://one.example/",
            now=NOON,
            config={"bearer_token": "hush", "fetch_interval_minutes": 30},
        )
    page = visitor.see("/sources/1")
    assert "hush" not in page
    config = '{"bearer_token": "***", "fetch_interval_minutes": 60}'
    visitor.send(
        "/sources/1/edit", page="/sources/1", name="uno", folder="", policy="interval", config=config
    )
    with store.reading() as connection:
        source = get_source(connection, 1)
    assert source.config == {"bearer_token": "hush", "fetch_interval_minutes": 60}
    assert (source.name, source.policy) == ("uno", "interval")
    for fields in (
        {"name": " ", "policy": "", "config": config},
        {"name": "x", "policy": "magic", "config": config},
        {"name": "x", "policy": "", "config": '{"fetch_interval_minutes": "soon"}'},
    ):
        assert visitor.send("/sources/1/edit", page="/sources/1", folder="", **fields).status_code == 400
    with store.reading() as connection:
        assert get_source(connection, 1) == source


def test_lists_go_in_and_out(visitor: Visitor, store: Store) -> None:
    opml = b"""<opml version="2.0"><body><outline text="F"><outline text="A" xmlUrl="https://a.example/f"/></outline>
    <outline text="bad" xmlUrl="nonsense://"/></body></opml>"""
    answer = visitor.send("/sources/import", page="/sources/add", files={"file": ("a.opml", opml)})
    assert "1 added, 0 known already, 1 rejected" in answer.text
    assert 'xmlUrl="https://a.example/f"' in visitor.client.get("/sources/export").text
    again = visitor.send("/sources/import", page="/sources/add", files={"file": ("a.opml", opml)})
    assert "0 added, 1 known already" in again.text
    assert visitor.send("/sources/import", page="/sources/add").status_code == 400


def test_what_if_replays_the_sources_own_history(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        few = [Item(str(n), title="t", published_at=NOON - n * 7200) for n in range(3)]
        many = [Item(str(n), title="t", published_at=NOON - n * 21600) for n in range(60)]
        store_items(connection, *few)
        store_items(connection, *many, name="two")
    assert "too little to compare" in visitor.see("/sources/1/what-if")
    assert "too little to compare" in visitor.see("/sources/2/what-if"), "after one visit"
    with store.writing() as connection:
        connection.execute(sources.update().values(fetch_count=FEWEST_VISITS))
    assert "too little to compare" in visitor.see("/sources/1/what-if")
    part = visitor.see("/sources/2/what-if")
    assert all(policy in part for policy in ("adaptive", "cadence", "interval"))
    assert "in force" in part


def test_a_source_that_is_pushed_says_so(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        source_id = store_items(connection, Item("a", title="one"))
        hub = FoundHub("https://hub.example/", "https://one.example/", "token", "secret")
        write_subscription_changes(connection, [(source_id, hub, NOON)])
        change_subscription(connection, source_id, state="active", pushes=3, last_pushed_at=NOON)
    assert "push: active" in visitor.see("/sources")
    page = visitor.see(f"/sources/{source_id}")
    assert "push: active" in page
    assert "3 deliveries" in page
    assert "推送：生效" in visitor.see("/sources?language=zh")


def test_a_feed_is_shown_before_it_is_added(local: Visitor, store: Store, origin: Origin) -> None:
    feed = origin.route("/feed", body=FEED)
    assert "one" in local.see(f"/sources/preview?url={feed}")
    assert "bad" in local.see(f"/sources/preview?url={origin.url('/nowhere')}")
    with store.reading() as connection:
        assert list_sources(connection) == []


def test_edit_of_address_is_checked_and_shown(local: Visitor, store: Store, origin: Origin) -> None:
    feed = origin.route("/new", body=FEED)
    with store.writing() as connection:
        add_source(connection, name="one", type="rss.feed", url=origin.url("/old"), now=NOON)
    form = {"name": "one", "folder": "", "policy": "", "config": "{}", "interval": "15", "check": "1"}
    refused = local.send("/sources/1/edit", page="/sources/1", url=origin.url("/missing"), **form)
    assert refused.status_code == 400
    assert "so nothing was changed" in refused.text
    local.send("/sources/1/edit", page="/sources/1", url=feed, new_folder="News", **form)
    with store.reading() as connection:
        source = get_source(connection, 1)
    assert (source.url, source.folder) == (feed, "News")
    assert source.config == {"fetch_interval_minutes": 15}
    page = local.see("/sources/1")
    assert 'name="interval" inputmode="decimal" value="15"' in page
    assert "<option selected>News</option>" in page
    assert (
        local.send("/sources/1/edit", page="/sources/1", url=feed, **form | {"interval": "soon"}).status_code
        == 400
    )


def test_bulk_edit_changes_the_ticked_or_all_that_the_filter_finds(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        for number in range(4):
            add_source(
                connection, name=f"n{number}", type="rss.feed", url=f"https://{number}.example/", now=NOON
            )
    form = {"what": "edit", "folder": "", "policy": "=interval", "interval": "30", "query": ""}
    visitor.send("/sources/bulk", page="/sources", source="1", new_folder="News", **form)
    visitor.send(
        "/sources/bulk", page="/sources", all="1", **form | {"query": "search=n1", "folder": "=News"}
    )
    unknown = visitor.send("/sources/bulk", page="/sources", source="3", **form | {"folder": "=Nowhere"})
    assert "there is no folder Nowhere" in unknown.text
    with store.reading() as connection:
        found = [(each.folder, each.policy, dict(each.config)) for each in list_sources(connection)]
    edited = ("News", "interval", {"fetch_interval_minutes": 30})
    assert found == [edited, edited, (None, None, {}), (None, None, {})]
    visitor.send(
        "/sources/bulk", page="/sources", what="edit", source="1", folder="-", policy="-", interval="-"
    )
    with store.reading() as connection:
        source = get_source(connection, 1)
    assert (source.folder, source.policy, source.config) == (None, None, {})


def test_page_and_api_of_source_show_what_was_repaired(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        source = add_source(connection, name="One", type="rss.feed", url="https://one.example/", now=NOON)
        repairs = [{"kind": "ill_formed", "line": 7, "detail": "Tag <b> is open."}]
        connection.execute(
            sources.update().where(sources.c.id == source.id).values(repairs=orjson.dumps(repairs).decode())
        )
    sentence = "Line 7: The XML is not well-formed; it was read as far as possible. Tag &lt;b&gt; is open."
    assert sentence in visitor.see(f"/sources/{source.id}")
    with store.reading() as connection:
        (shown,) = source_json(get_source(connection, source.id), {})["repairs"]
    assert (shown["kind"], shown["line"], shown["text"]) == ("ill_formed", 7, html.unescape(sentence))


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Referer": "http://evil.example/"},
        {},
    ],
    ids=["cross-site", "same-site", "old browser", "no word"],
)
def test_another_sites_link_causes_no_request(
    local: Visitor, origin: Origin, headers: dict[str, str]
) -> None:
    origin.route("/feed", body=FEED)
    feed = origin.url("/feed")
    answer = local.client.get("/sources/preview", params={"url": feed}, headers=headers)
    assert answer.status_code == 403
    page = local.client.get("/sources/add", params={"url": feed}, headers=headers)
    assert (page.status_code, feed in page.text) == (200, True), (
        "the address waits for a person to press a button"
    )
    assert origin.received("/feed") == []


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "same-origin"}, {"Referer": "http://127.0.0.1:8626/sources/add"}],
    ids=["modern", "plain HTTP"],
)
def test_our_own_page_shows_a_preview(local: Visitor, origin: Origin, headers: dict[str, str]) -> None:
    origin.route("/feed", body=FEED)
    feed = origin.url("/feed")
    assert local.client.get("/sources/preview", params={"url": feed}, headers=headers).status_code == 200
    assert origin.received("/feed")
