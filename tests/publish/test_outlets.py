"""What is published is valid, whatever publishers wrote, and stays the same as long as nothing has changed."""

import io
import json
import re
from pathlib import Path

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from sqlalchemy import Connection

from headwater.errors import InputError, NotFoundError
from headwater.model import Enclosure, Item
from headwater.publish.outlets import render_outlet, write_outlet
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.tables import sources
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.outlets import (
    Outlet,
    add_outlet,
    change_outlet,
    get_outlet,
    publish_items,
    read_edition,
    remove_outlet,
)
from headwater.store.reading.selection import Selection
from headwater.views.outlets import FORMATS, path_of
from tests.clock import NOON
from tests.feed_rules import find_faults

HOSTILE = (
    "control \x00\x08\x0b\x1b characters",
    "CDATA ]]> ends <![CDATA[ begins",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "emoji \U0001f469\u200d\U0001f4bb and \ud800 half of one",
    "\u202eright to left\u202c עברית",
    "&lt;b&gt; &amp;amp; &nbsp; <b>",
    "\uffff\ufffe\U0010ffff",
)
JSON_FEED = {
    "type": "object",
    "required": ["version", "title", "items"],
    "properties": {
        "version": {"const": "https://jsonfeed.org/version/1.1"},
        "title": {"type": "string", "minLength": 1},
        "home_page_url": {"type": "string", "pattern": "^https?://"},
        "feed_url": {"type": "string", "pattern": "^https?://"},
        "authors": {"type": "array", "items": {"$ref": "#/$defs/author"}},
        "hubs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "url"],
                "properties": {"type": {"type": "string"}, "url": {"type": "string"}},
            },
        },
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id"],
                "anyOf": [{"required": ["content_html"]}, {"required": ["content_text"]}],
                "properties": {
                    "id": {"type": "string", "minLength": 1},
                    "url": {"type": "string", "pattern": "^https?://"},
                    "title": {"type": "string"},
                    "content_html": {"type": "string"},
                    "date_published": {
                        "type": "string",
                        "pattern": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$",
                    },
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "authors": {"type": "array", "items": {"$ref": "#/$defs/author"}},
                },
            },
        },
    },
    "$defs": {"author": {"type": "object", "anyOf": [{"required": ["name"]}, {"required": ["url"]}]}},
}


def store_items(connection: Connection, *items: Item, name: str = "one", folder: str | None = None) -> int:
    source = add_source(
        connection, name=name, type="rss.feed", url=f"https://{name}.example/", now=NOON, folder=folder
    )
    changes = tuple(
        ItemChange("new", item, key, key, (), b"h", item.published_at or NOON)
        for item in items
        for key in [item.external_id.encode("utf-8", "replace")]
    )
    write_items(connection, [(source.id, changes, NOON)])
    return source.id


def read_back(body: bytes, format: str) -> list[str]:
    """The entries' ids, by a reader that is not ours; what it finds wrong with the document fails the test."""
    if format == "json":
        document = json.loads(body)
        Draft202012Validator(JSON_FEED).validate(document)
        return [item["id"] for item in document["items"]]
    assert find_faults(body) == []
    feed = feedparser.parse(io.BytesIO(body))
    assert not feed.bozo, feed.get("bozo_exception")
    assert feed.feed.title
    return [entry.id for entry in feed.entries]


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_content_is_published_valid_and_harmless(store: Store, format: str) -> None:
    items = [
        Item(
            f"id {number}",
            url=f"https://one.example/{number}",
            title=text,
            author=text,
            summary=text,
            content=f"<p>{text}</p>",
            published_at=NOON - number,
            categories=(text,),
            image_url="javascript:alert(1)",
        )
        for number, text in enumerate(HOSTILE)
    ]
    with store.writing() as connection:
        store_items(connection, *items)
        add_outlet(connection, Outlet("all", HOSTILE[2], description=HOSTILE[1]), NOON)
        edition = read_edition(connection, "all")
        published = render_outlet(connection, edition, format, "https://mine.example/outlets")
    ids = read_back(published.body, format)
    assert len(ids) == len(set(ids)) == len(HOSTILE)
    assert b"javascript:" not in published.body
    if format == "json":
        bodies = [item["content_html"] for item in json.loads(published.body)["items"]]
    else:
        entries = feedparser.parse(io.BytesIO(published.body), sanitize_html=False).entries
        bodies = [entry.get("summary", "") for entry in entries]
        bodies += [part.value for entry in entries for part in entry.get("content", [])]
    assert len(bodies) >= len(HOSTILE)
    assert not any("<script" in body or "onerror" in body for body in bodies)
    assert f"https://mine.example/outlets/{path_of('all', format)}".encode() in published.body


@pytest.mark.parametrize("format", FORMATS)
def test_relative_addresses_belong_to_the_source_and_not_to_us(store: Store, format: str) -> None:
    item = Item(
        "1",
        url="/post/1",
        title="one",
        content='<p><a href="more">more</a><img src="/a.png"></p>',
        image_url="b.png",
        enclosures=(Enclosure("c.mp3", media_type="audio/mpeg"),),
    )
    with store.writing() as connection:
        store_items(connection, item)
        add_outlet(connection, Outlet("all", "All"), NOON)
        edition = read_edition(connection, "all")
        body = render_outlet(connection, edition, format, "https://mine.example/outlets").body.decode()
    ours = {"https://mine.example/outlets", f"https://mine.example/outlets/{path_of('all', format)}"}
    assert set(re.findall(r"https://mine[^\"<&]*", body)) <= ours
    found = set(re.findall(r"https://one[^\\\"<&]*", body))
    assert {
        "https://one.example/post/1",
        "https://one.example/post/more",
        "https://one.example/a.png",
    } <= found
    assert "https://one.example/post/c.mp3" in found


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4, unique_by=lambda pair: pair[0]))
def test_any_text_is_published_valid(texts: list[tuple[str, str]]) -> None:
    from headwater.formats.feeds.feed import Entry, Feed
    from headwater.formats.feeds.write import write_feed

    entries = tuple(Entry(id=f"urn:x:{n}", title=a, content=b) for n, (a, b) in enumerate(texts))
    for format in FORMATS:
        body = write_feed(
            Feed(format, title=texts[0][0] or "t", link="https://a.example/", entries=entries), format
        )
        assert len(read_back(body, format)) == len(texts)


def test_the_tag_changes_with_what_is_shown_and_only_then(store: Store) -> None:
    with store.writing() as connection:
        source_id = store_items(connection, Item("a", title="a"), Item("b", title="b"))
        store_items(connection, Item("c", title="c"), name="two")
        add_outlet(connection, Outlet("one", "One", Selection(source_ids=(source_id,))), NOON)
        tag = read_edition(connection, "one").tag
        assert len(read_edition(connection, "one").item_ids) == 2
        assert read_edition(connection, "one").tag == tag
        write_items(
            connection,
            [
                (
                    source_id,
                    (ItemChange("changed", Item("a", title="A"), b"a", b"a", (), b"i", NOON),),
                    NOON + 5,
                )
            ],
        )
        changed = read_edition(connection, "one")
        assert changed.tag != tag
        assert changed.changed_at == NOON + 5
        change_outlet(connection, "one", NOON + 9, title="Other")
        assert read_edition(connection, "one").tag != changed.tag


def test_two_sources_with_the_same_article_show_it_once_and_ids_are_the_worlds(store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("https://x.example/1", title="a"), Item("7", title="seven"))
        store_items(
            connection, Item("https://x.example/1", title="a"), Item("7", title="other seven"), name="two"
        )
        add_outlet(connection, Outlet("all", "All"), NOON)
        body = render_outlet(connection, read_edition(connection, "all"), "atom").body
    ids = read_back(body, "atom")
    assert len(ids) == 3
    assert all(each.startswith(("https://x.example/", "urn:headwater:item:")) for each in ids)


@pytest.mark.parametrize("format", FORMATS)
def test_a_sources_address_is_not_published_and_ids_survive_its_move(store: Store, format: str) -> None:
    with store.writing() as connection:
        source_id = store_items(connection, Item("7", title="seven"))
        add_outlet(connection, Outlet("all", "All"), NOON)
        seen = []
        for address in ("https://patron.example/rss?auth=s3cret", "https://moved.example/private/s3cret"):
            connection.execute(sources.update().where(sources.c.id == source_id).values(url=address))
            edition = read_edition(connection, "all")
            body = render_outlet(connection, edition, format, "https://mine.example").body
            assert b"s3cret" not in body
            seen.append(read_back(body, format))
    assert seen[0] == seen[1]


def test_a_selection_by_folder_and_by_pipelines(store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="a"), folder="News")
        store_items(connection, Item("b", title="b"), name="two")
        add_outlet(connection, Outlet("news", "News", Selection(folders=("News",))), NOON)
        add_outlet(connection, Outlet("picked", "Picked", Selection(outlet="picked")), NOON)
        (item_id,) = read_edition(connection, "news").item_ids
        assert read_edition(connection, "picked").item_ids == ()
        publish_items(connection, [("picked", item_id, NOON + 5)])
        publish_items(connection, [("picked", item_id, NOON + 9)])
        edition = read_edition(connection, "picked")
        assert (edition.item_ids, edition.changed_at) == ((item_id,), NOON + 5)


@pytest.mark.parametrize(
    ("outlet", "problem"),
    [
        (Outlet("Not A Name", "x"), "cannot be an outlet's name"),
        (Outlet("../etc", "x"), "cannot be an outlet's name"),
        (Outlet("a", "x", item_limit=0), "1 to 1000 items"),
        (Outlet("a", "x", hub_url="ftp://hub"), "address of a hub"),
        (Outlet("a", "x", Selection(search="-")), "nothing to look for"),
        (Outlet("a", "x", Selection(source_ids=(99,))), "no source 99"),
        (Outlet("taken", "x"), "is an outlet taken already"),
    ],
)
def test_what_cannot_be_an_outlet_is_refused_and_nothing_stored(
    store: Store, outlet: Outlet, problem: str
) -> None:
    with store.writing() as connection:
        add_outlet(connection, Outlet("taken", "first"), NOON)
        with pytest.raises(InputError, match=problem):
            add_outlet(connection, outlet, NOON)
        assert get_outlet(connection, "taken").title == "first"
        remove_outlet(connection, "taken")
        with pytest.raises(NotFoundError):
            get_outlet(connection, "taken")


def test_a_private_outlet_has_a_secret(store: Store) -> None:
    with store.writing() as connection:
        tokens = {add_outlet(connection, Outlet(name, name), NOON, private=True).token for name in ("a", "b")}
    assert len(tokens) == 2
    assert all(token and len(token) >= 32 for token in tokens)


def test_files_do_not_tell_the_secret_of_a_private_outlet(store: Store, tmp_path: Path) -> None:
    with store.writing() as connection:
        token = add_outlet(connection, Outlet("mine", "Mine"), NOON, private=True).token
        for path, _ in write_outlet(connection, "mine", tmp_path, FORMATS, "https://mine.example"):
            assert token
            assert token not in path.read_text()


def test_files_are_written_whole_and_only_when_they_change(store: Store, tmp_path: Path) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="a"))
        add_outlet(connection, Outlet("all", "All"), NOON)
        first = write_outlet(connection, "all", tmp_path / "out", FORMATS)
        assert [written for _, written in first] == [True] * 3
        assert [written for _, written in write_outlet(connection, "all", tmp_path / "out", FORMATS)] == [
            False
        ] * 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["all.atom", "all.json", "all.xml"]
