"""Starred and tagged entries come along from other readers' files."""

import json
from typing import Any

import pytest

from headwater.model import User
from headwater.sources.importing.reading import read_export
from headwater.sources.subscribing import import_for
from headwater.store.core.database import Store
from headwater.store.people.entries import Entry, EntryFilter, list_places, read_entries
from headwater.store.people.users import add_user
from tests.clock import NOON

FEED = "https://a.example/feed"
LINK = "https://a.example/1"

FRESHRSS = {
    "items": [
        {
            "guid": "one",
            "title": "A bridge",
            "published": 1_600_000_000,
            "author": "Ann",
            "alternate": [{"href": LINK}],
            "content": {"content": "<p>All about it</p>"},
            "categories": [
                "user/-/state/com.google/read",
                "user/-/state/com.google/starred",
                "user/-/label/city",
            ],
            "origin": {"feedUrl": FEED, "title": "A"},
        }
    ]
}
MINIFLUX = {
    "entries": [
        {
            "url": LINK,
            "title": "A bridge",
            "content": "<p>All about it</p>",
            "author": "Ann",
            "published_at": "2020-09-13T12:26:40Z",
            "status": "read",
            "starred": True,
            "tags": ["city"],
            "feed": {"feed_url": FEED, "title": "A"},
        }
    ]
}
TTRSS = f"""<articles schema-version="1"><article><guid>x</guid><title>A bridge</title>
<content>&lt;p&gt;All about it&lt;/p&gt;</content><marked>1</marked><unread>0</unread><tag_cache>city</tag_cache>
<link>{LINK}</link><feed_url>{FEED}</feed_url><feed_title>A</feed_title><updated>2020-09-13 12:26:40</updated>
</article></articles>"""


def reader(store: Store, name: str) -> User:
    with store.writing() as connection:
        return add_user(connection, name=name, now=NOON)


def entries(store: Store, user: User, **wanted: Any) -> list[Entry]:
    with store.reading() as connection:
        found = list_places(connection, user.id, EntryFilter(**wanted), limit=10)
        return read_entries(connection, user.id, [place.id for place in found])


@pytest.mark.parametrize(
    "file", [json.dumps(FRESHRSS), json.dumps(MINIFLUX), TTRSS], ids=["freshrss", "miniflux", "ttrss"]
)
def test_starred_entry_comes_along_with_its_text(store: Store, file: str) -> None:
    li = reader(store, "li")
    for _ in range(2):  # a second import changes nothing
        import_for(store, li, read_export(None, file.encode()), NOON)
        (entry,) = entries(store, li, is_starred=True)
        assert (entry.item.title, entry.item.url, entry.item.content) == (
            "A bridge",
            LINK,
            "<p>All about it</p>",
        )
        assert entry.item.published_at == 1_600_000_000
        assert entry.state.is_read
        assert entry.state.tags == ("city",)
    assert entries(store, li, is_read=False) == []


def test_file_of_one_person_adds_nothing_to_a_source_of_others(store: Store) -> None:
    li, ann = reader(store, "li"), reader(store, "ann")
    import_for(store, ann, read_export(None, json.dumps(FRESHRSS).encode()), NOON)
    forged = json.loads(json.dumps(FRESHRSS).replace('"one"', '"two"').replace(LINK, "https://evil.example/"))
    both = {"items": [*FRESHRSS["items"], *forged["items"]]}
    import_for(store, li, read_export(None, json.dumps(both).encode()), NOON)
    assert [entry.item.external_id for entry in entries(store, ann)] == ["one"]
    assert [entry.item.external_id for entry in entries(store, li, is_starred=True)] == ["one"]


def test_odd_values_of_a_file_are_left_out(store: Store) -> None:
    li = reader(store, "li")
    odd = json.loads(json.dumps(FRESHRSS))
    odd["items"][0] |= {"published": 1e300, "title": None, "author": 7, "content": 3, "guid": None}
    odd["items"][0]["categories"].append("user/-/label/" + "x" * 300)
    import_for(store, li, read_export(None, json.dumps(odd).encode()), NOON)
    (entry,) = entries(store, li, is_starred=True)
    assert (entry.item.title, entry.state.tags) == ("", ("city",))
