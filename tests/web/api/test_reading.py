"""The reading API: subscriptions, folders, entries, tags, bookmarks; and that they are one person's own."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.model import Item
from headwater.store.collecting.sources import add_source, list_sources
from headwater.store.core.database import Store
from headwater.store.people.keys import add_key
from headwater.store.people.subscriptions import subscribe
from headwater.store.people.users import add_user
from headwater.store.reading.items import ItemChange, write_items
from headwater.web.app import create_app
from tests.clock import FakeClock
from tests.origin import Origin
from tests.web.api.conftest import ADDRESS

MakeReader = Callable[[str], TestClient]


def arrive(store: Store, source_id: int, now: float, *names: str) -> None:
    """Items of a source, stored now and published in this order."""
    changes = tuple(
        ItemChange(
            "new",
            Item(name, url=f"https://items.example/{name}", title=name, content=f"<p>All about {name}</p>"),
            f"{source_id} {name}".encode(),
            f"{source_id} {name}".encode(),
            (),
            b"hash",
            now - 100 + place,
        )
        for place, name in enumerate(names)
    )
    with store.writing() as connection:
        write_items(connection, [(source_id, changes, now)])


@pytest.fixture
def app(store: Store, settings: Settings, clock: FakeClock) -> FastAPI:
    """A Headwater that may visit this machine."""
    local = replace(
        settings, allow_hosts=("127.0.0.1",), host_spacing_seconds=0.0, secrets={"X_TOKEN": "hush-hush"}
    )
    return create_app(store, local, clock=clock)


@pytest.fixture
def reader(app: FastAPI, store: Store, clock: FakeClock) -> MakeReader:
    """Makes a person with a key that may read, change and refresh."""

    def make(name: str) -> TestClient:
        with store.writing() as connection:
            user = add_user(connection, name=name, now=clock())
            _, secret = add_key(
                connection, name=name, scopes=("read", "edit", "refresh"), now=clock(), user_id=user.id
            )
        headers = {"Authorization": f"Bearer {secret}"}
        return TestClient(app, base_url=ADDRESS, raise_server_exceptions=False, headers=headers)

    return make


@pytest.fixture
def sources(store: Store, clock: FakeClock) -> list[int]:
    with store.writing() as connection:
        return [
            add_source(
                connection,
                name=name,
                type="rss.feed",
                url=f"https://{name}.example/",
                now=clock(),
                folder=folder,
            ).id
            for name, folder in (("alpha", "News / World"), ("beta", "News"), ("gamma", None))
        ]


def follow(store: Store, user_id: int, source_ids: list[int], now: float) -> list[int]:
    with store.writing() as connection:
        return [subscribe(connection, user_id, source_id, now)[0].id for source_id in source_ids]


def titles(client: TestClient, query: str = "") -> list[str]:
    answer = client.get(f"/api/entries{query}")
    assert answer.status_code == 200, answer.text
    return [entry["title"] for entry in answer.json()["entries"]]


def test_subscriptions_of_first_user_are_all_sources_with_folders_as_tree(
    caller: Callable[..., TestClient], sources: list[int]
) -> None:
    client = caller("read", "edit")
    found = client.get("/api/subscriptions").json()["subscriptions"]
    assert {each["source_id"] for each in found} == set(sources)
    folders = {each["id"]: each for each in client.get("/api/folders").json()["folders"]}
    by_title = {each["title"]: each for each in found}
    assert folders[by_title["beta"]["folder_id"]]["name"] == "News"
    world = folders[by_title["alpha"]["folder_id"]]
    assert (world["name"], folders[world["parent_id"]]["name"]) == ("World", "News")
    assert by_title["gamma"]["folder_id"] is None


def test_entries_filtered_marked_and_counted(
    reader: MakeReader, store: Store, clock: FakeClock, sources: list[int]
) -> None:
    ann = reader("ann")
    feeds = follow(store, 2, sources, clock())
    folder = ann.post("/api/folders", json={"name": "Mine"}).json()["id"]
    assert ann.patch(f"/api/subscriptions/{feeds[0]}", json={"folder_id": folder}).status_code == 200
    arrive(store, sources[0], clock(), "a1", "a2")
    arrive(store, sources[1], clock(), "b1", "b2", "b3")
    assert titles(ann) == ["b3", "b2", "a2", "b1", "a1"]
    assert titles(ann, "?sort=oldest")[:2] == ["a1", "b1"]
    assert titles(ann, f"?feed_id={feeds[0]}") == titles(ann, f"?folder_id={folder}") == ["a2", "a1"]
    by_title = {each["title"]: each["id"] for each in ann.get("/api/entries").json()["entries"]}
    answer = ann.patch(
        f"/api/entries/{by_title['b3']}", json={"is_read": True, "is_starred": True, "tags": ["x"]}
    )
    assert answer.json()["is_read"] is True
    assert answer.json()["tags"] == ["x"]
    assert titles(ann, "?is_read=false") == ["b2", "a2", "b1", "a1"]
    assert titles(ann, "?is_read=true") == titles(ann, "?is_starred=true") == titles(ann, "?tag=x") == ["b3"]
    assert titles(ann, "?is_starred=false") == ["b2", "a2", "b1", "a1"]
    counts = {
        each["id"]: each["unread_count"] for each in ann.get("/api/subscriptions").json()["subscriptions"]
    }
    assert counts == {feeds[0]: 2, feeds[1]: 2, feeds[2]: 0}
    assert ann.get("/api/folders").json()["folders"][0]["unread_count"] == 2
    assert ann.get("/api/tags").json()["tags"] == [{"name": "x", "count": 1}]
    assert ann.patch("/api/tags", json={"name": "x", "new_name": "y"}).json()["tags"] == [
        {"name": "y", "count": 1}
    ]
    assert ann.delete("/api/tags?name=y").status_code == 204
    assert ann.delete("/api/tags?name=y").status_code == 404
    bulk = ann.patch("/api/entries", json={"entry_ids": [*by_title.values(), 999], "is_read": True})
    assert bulk.json()["entry_ids"] == sorted(by_title.values())
    assert titles(ann, "?is_read=false") == []


def test_entries_page_by_page_show_each_once(
    reader: MakeReader, store: Store, clock: FakeClock, sources: list[int]
) -> None:
    ann = reader("ann")
    follow(store, 2, sources, clock())
    for source_id in sources:
        arrive(store, source_id, clock(), *(f"{source_id}-{number}" for number in range(7)))
    seen: list[str] = []
    cursor = ""
    while True:
        answer = ann.get(f"/api/entries?limit=4{cursor}").json()
        seen += [entry["title"] for entry in answer["entries"]]
        if answer["next"] is None:
            break
        cursor = f"&cursor={answer['next']}"
    assert len(seen) == len(set(seen)) == 21
    assert seen == titles(ann)


def test_mark_all_read_up_to_entry_leaves_later_arrivals_unread(
    reader: MakeReader, store: Store, clock: FakeClock, sources: list[int]
) -> None:
    ann = reader("ann")
    feeds = follow(store, 2, sources, clock())
    arrive(store, sources[0], clock(), "old", "seen")
    top = ann.get("/api/entries").json()["entries"][0]
    clock.advance(60)
    arrive(store, sources[0], clock(), "late")
    answer = ann.post("/api/entries/mark-all-read", json={"feed_id": feeds[0], "up_to_entry_id": top["id"]})
    assert answer.json() == {"marked": 2}
    assert titles(ann, "?is_read=false") == ["late"]
    assert ann.post("/api/entries/mark-all-read", json={"before": clock() - 30}).json() == {"marked": 0}
    assert ann.post("/api/entries/mark-all-read", json={}).json() == {"marked": 1}
    assert titles(ann, "?is_read=false") == []


def test_read_later_takes_days_of_preferences_and_shows_expiry(
    reader: MakeReader, store: Store, clock: FakeClock, sources: list[int]
) -> None:
    ann = reader("ann")
    follow(store, 2, sources, clock())
    arrive(store, sources[0], clock(), "one")
    entry_id = ann.get("/api/entries").json()["entries"][0]["id"]
    assert (
        ann.patch(f"/api/entries/{entry_id}", json={"read_later": True}).json()["read_later_until"]
        is not None
    )
    assert titles(ann, "?read_later=true") == ["one"]
    never = ann.patch(
        f"/api/entries/{entry_id}", json={"read_later": True, "read_later_days": "never"}
    ).json()
    assert (never["read_later"], never["read_later_until"]) == (True, None)
    assert ann.patch(f"/api/entries/{entry_id}", json={"read_later": False}).json()["read_later"] is False
    assert titles(ann, "?read_later=true") == []


def test_another_persons_numbers_answer_404(
    reader: MakeReader, store: Store, clock: FakeClock, sources: list[int]
) -> None:
    ann, bob = reader("ann"), reader("bob")
    feed = follow(store, 2, sources, clock())[0]
    arrive(store, sources[0], clock(), "one")
    folder = ann.post("/api/folders", json={"name": "Mine"}).json()["id"]
    entry = ann.get("/api/entries").json()["entries"][0]["id"]
    bookmark = ann.post("/api/bookmarks", json={"item_id": entry}).json()["id"]
    assert titles(bob) == []
    for method, path, body in (
        ("get", f"/api/subscriptions/{feed}", None),
        ("patch", f"/api/subscriptions/{feed}", {"title": "x"}),
        ("delete", f"/api/subscriptions/{feed}", None),
        ("post", f"/api/feeds/{feed}/refresh", None),
        ("patch", f"/api/folders/{folder}", {"name": "x"}),
        ("delete", f"/api/folders/{folder}", None),
        ("post", "/api/folders", {"name": "x", "parent_id": folder}),
        ("get", f"/api/entries/{entry}", None),
        ("patch", f"/api/entries/{entry}", {"is_starred": True}),
        ("get", f"/api/entries?feed_id={feed}", None),
        ("get", f"/api/entries?folder_id={folder}", None),
        ("post", "/api/entries/mark-all-read", {"feed_id": feed}),
        ("post", "/api/bookmarks", {"item_id": entry}),
        ("get", f"/api/bookmarks/{bookmark}", None),
        ("patch", f"/api/bookmarks/{bookmark}", {"note": "x"}),
        ("delete", f"/api/bookmarks/{bookmark}", None),
    ):
        answer = bob.request(method, path, json=body)
        assert answer.status_code == 404, (method, path, answer.text)
    assert bob.patch("/api/entries", json={"entry_ids": [entry], "is_starred": True}).json() == {
        "entry_ids": []
    }
    assert titles(ann, "?is_starred=true") == []


def test_folders_are_moved_reordered_and_deleted(reader: MakeReader) -> None:
    ann = reader("ann")
    news, tech, world = (
        ann.post("/api/folders", json={"name": name}).json()["id"] for name in ("N", "T", "W")
    )
    assert ann.post("/api/folders", json={"name": "N"}).status_code == 409
    assert ann.patch(f"/api/folders/{world}", json={"parent_id": news}).json()["parent_id"] == news
    assert ann.patch(f"/api/folders/{news}", json={"parent_id": world}).status_code == 400
    ann.patch(f"/api/folders/{tech}", json={"position": 0})
    assert [each["name"] for each in ann.get("/api/folders").json()["folders"]] == ["T", "N", "W"]
    assert ann.delete(f"/api/folders/{news}").status_code == 204
    assert [each["name"] for each in ann.get("/api/folders").json()["folders"]] == ["T"]


def test_subscribe_visits_new_address_once_and_shares_known_source(
    app: FastAPI, reader: MakeReader, store: Store, origin: Origin
) -> None:
    feed = b"""<rss version="2.0"><channel><title>Shared</title>
        <item><guid>1</guid><title>First</title></item></channel></rss>"""
    origin.route("/feed", body=feed)
    ann, bob = reader("ann"), reader("bob")
    first = ann.post("/api/subscriptions", json={"url": origin.url("/feed")})
    assert first.status_code == 201, first.text
    assert (first.json()["title"], first.json()["unread_count"]) == ("Shared", 1)
    again = ann.post("/api/subscriptions", json={"url": origin.url("/feed")})
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    other = bob.post("/api/subscriptions", json={"url": origin.url("/feed"), "title": "Bob's"})
    assert (other.status_code, other.json()["title"], other.json()["unread_count"]) == (201, "Bob's", 1)
    assert [request.path for request in origin.requests].count("/feed") == 1
    assert ann.delete(f"/api/subscriptions/{first.json()['id']}").status_code == 204
    assert titles(bob) == ["First"]
    assert titles(ann) == []


def test_opml_goes_in_and_out_with_folders(reader: MakeReader) -> None:
    ann, bob = reader("ann"), reader("bob")
    opml = b"""<opml version="2.0"><body><outline text="News"><outline text="World">
        <outline type="rss" text="A" xmlUrl="https://a.example/feed"/></outline></outline>
        <outline type="rss" text="B" xmlUrl="https://b.example/feed"/></body></opml>"""
    report = ann.post("/api/feeds/import", content=opml, headers={"Content-Type": "text/x-opml"}).json()
    assert report["added"] == 2
    written = ann.get("/api/feeds/export").content
    assert b'"World"' in written
    assert bob.post("/api/feeds/import", content=written).json()["added"] == 2
    assert bob.get("/api/feeds/export").content == written
    names = [each["name"] for each in bob.get("/api/folders").json()["folders"]]
    assert names == ["News", "World"]


def test_bookmarks_keep_copy_of_item_and_take_any_address(
    reader: MakeReader, store: Store, clock: FakeClock, sources: list[int]
) -> None:
    ann = reader("ann")
    follow(store, 2, sources, clock())
    arrive(store, sources[0], clock(), "one")
    entry = ann.get("/api/entries").json()["entries"][0]["id"]
    kept = ann.post("/api/bookmarks", json={"item_id": entry, "tags": ["x"]}).json()
    assert kept["content"] == "<p>All about one</p>"
    assert ann.post("/api/bookmarks", json={"item_id": entry}).status_code == 409
    page = ann.post("/api/bookmarks", json={"url": "https://pages.example/p", "note": "n"}).json()
    assert (page["is_pending"], page["note"]) == (True, "n")
    assert [each["id"] for each in ann.get("/api/bookmarks").json()["bookmarks"]] == [page["id"], kept["id"]]
    assert [each["id"] for each in ann.get("/api/bookmarks?tag=x").json()["bookmarks"]] == [kept["id"]]
    assert [each["id"] for each in ann.get("/api/bookmarks?search=ABOUT").json()["bookmarks"]] == [kept["id"]]
    assert ann.patch(f"/api/bookmarks/{page['id']}", json={"tags": ["y"]}).json()["tags"] == ["y"]
    assert ann.delete(f"/api/bookmarks/{page['id']}").status_code == 204
    assert ann.post("/api/bookmarks", json={}).status_code == 400


def test_source_with_credentials_is_not_shared_with_readers(
    reader: MakeReader, store: Store, clock: FakeClock
) -> None:
    with store.writing() as connection:
        url, config = "https://private.example/feed", {"user": "me", "password": "hush"}
        add_source(connection, name="Private", type="rss.feed", url=url, now=clock(), config=config)
    ann = reader("ann")
    refused = ann.post("/api/subscriptions", json={"url": url})
    assert refused.status_code == 409
    assert "hush" not in refused.text
    assert "Private" not in refused.text
    opml = f'<opml version="2.0"><body><outline type="rss" text="P" xmlUrl="{url}"/></body></opml>'
    assert ann.post("/api/feeds/import", content=opml).json()["rejected"] == 1
    assert ann.get("/api/subscriptions").json() == {"subscriptions": []}


@pytest.mark.parametrize("name", ["${X_TOKEN}", "%24%7BX_TOKEN%7D"])
def test_address_of_a_reader_brings_no_secret_out(reader: MakeReader, origin: Origin, name: str) -> None:
    ann = reader("ann")
    url = origin.route("/feed", body=b"<rss><channel><title>T</title></channel></rss>")
    for address in (url.replace("://", f"://me:{name}@"), url.replace("://", f"://{name}@")):
        refused = ann.post("/api/subscriptions", json={"url": address})
        assert (refused.status_code, "hush" in refused.text) == (400, False)
        opml = f'<opml version="2.0"><body><outline type="rss" text="P" xmlUrl="{address}"/></body></opml>'
        assert ann.post("/api/feeds/import", content=opml).json()["rejected"] == 1
    mailbox = f"imaps://me:{name}@mail.example/INBOX"
    opml = f"""<opml version="2.0"><body>
        <outline headwaterType="mail.imap" text="P" xmlUrl="{mailbox}"/></body></opml>"""
    assert ann.post("/api/feeds/import", content=opml).json()["rejected"] == 1
    assert origin.requests == []
    assert ann.get("/api/subscriptions").json() == {"subscriptions": []}


def with_rules(app: FastAPI, file: Path, rules: str) -> None:
    file.write_text(rules)
    context = app.state.context
    app.state.context = replace(context, settings=replace(context.settings, address_rules=file))


def test_rule_that_names_a_secret_is_for_admins(
    app: FastAPI, reader: MakeReader, store: Store, clock: FakeClock, origin: Origin, tmp_path: Path
) -> None:
    feed = b"<rss><channel><title>T</title></channel></rss>"
    url, public = origin.route("/feed", body=feed), origin.route("/public", body=feed)
    with_rules(
        app,
        tmp_path / "rules.toml",
        f"""
        [[rule]]
        name = "private"
        title = "Private"
        texts = ["private:{{name}}"]
        [[rule.offers]]
        url = "{url}?{{name}}"
        [rule.offers.config]
        bearer_token = "${{X_TOKEN}}"

        [[rule]]
        name = "both"
        title = "Both"
        texts = ["both:{{name}}"]
        [[rule.offers]]
        url = "{url}?{{name}}"
        [rule.offers.config]
        bearer_token = "{{name}}${{X_TOKEN}}"
        [[rule.offers]]
        url = "{public}"
        """,
    )
    ann = reader("ann")
    refused = ann.post("/api/subscriptions", json={"url": "private:a"})
    assert (refused.status_code, origin.requests) == (400, [])
    assert "ask an admin" in refused.text
    assert ann.post("/api/subscriptions", json={"url": "both:a"}).status_code == 201
    assert [request.path for request in origin.requests] == ["/public"]
    assert "authorization" not in origin.requests[0].headers
    with store.writing() as connection:
        _, secret = add_key(connection, name="boss", scopes=("admin",), now=clock())
    boss = ann
    boss.headers["Authorization"] = f"Bearer {secret}"
    assert boss.post("/api/subscriptions", json={"url": "private:a"}).status_code == 201
    assert origin.requests[-1].headers["authorization"] == "Bearer hush-hush"


def test_letters_of_an_address_are_their_owners(
    app: FastAPI, reader: MakeReader, store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    with store.writing() as connection:
        add_source(connection, name="Garden", type="mail.inbox", url="inbox://garden", now=clock())
    ann = reader("ann")
    opml = """<opml version="2.0"><body>
        <outline headwaterType="mail.inbox" text="G" xmlUrl="inbox://garden"/>
        <outline headwaterType="mail.inbox" text="P" xmlUrl="inbox://postmaster"/></body></opml>"""
    assert ann.post("/api/feeds/import", content=opml).json()["rejected"] == 2
    assert ann.get("/api/subscriptions").json() == {"subscriptions": []}
    offer = 'offers = [{ type = "mail.inbox", url = "inbox:{name}" }]'
    rule = f'[[rule]]\nname = "inbox"\ntitle = "Inbox"\ntexts = ["inbox-{{name}}"]\n{offer}'
    with_rules(app, tmp_path / "rules.toml", rule)
    assert ann.post("/api/subscriptions", json={"url": "inbox-garden"}).status_code == 409
    with store.reading() as connection:
        assert len(list_sources(connection)) == 1
