from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from headwater.errors import FailureKind, ParseError
from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.parse import parse
from headwater.model import Enclosure

URL = "https://host.example/feed.json"


def document(**values: Any) -> bytes:
    return orjson.dumps({"version": "https://jsonfeed.org/version/1.1", "items": [], **values})


def test_a_whole_feed() -> None:
    feed = parse(
        document(
            title="Streams",
            home_page_url="/",
            feed_url=URL,
            next_url="/2.json",
            description="a < b",
            icon="/l.png",
            favicon="/i.ico",
            language="en",
            authors=[{"name": "Ann", "url": "https://e.org/ann"}],
            hubs=[{"type": "WebSub", "url": "https://hub.org/"}],
        ),
        url=URL,
    )
    assert feed == Feed(
        format="json-1.1",
        title="Streams",
        link="https://host.example/",
        description="a &lt; b",
        language="en",
        icon="https://host.example/i.ico",
        image="https://host.example/l.png",
        authors=(Person("Ann", None, "https://e.org/ann"),),
        self_link=URL,
        next_link="https://host.example/2.json",
        hub_links=("https://hub.org/",),
    )


def test_a_whole_item() -> None:
    feed = parse(
        document(
            items=[
                {
                    "id": 17,
                    "url": "/1",
                    "title": "a <b> c",
                    "content_html": '<a href="x">',
                    "summary": "1 < 2",
                    "image": "/t.png",
                    "date_published": "2020-03-03T10:11:12+02:00",
                    "date_modified": "2020-03-04T00:00:00Z",
                    "tags": ["a", "b", "a", 3],
                    "language": "en",
                    "author": {"name": "Ann", "url": "mailto:ann@e.org"},
                    "attachments": [
                        {
                            "url": "/a.mp3",
                            "mime_type": "audio/mpeg",
                            "size_in_bytes": 9,
                            "duration_in_seconds": 60,
                        },
                        {"mime_type": "audio/mpeg"},
                        "nonsense",
                    ],
                }
            ]
        ),
        url=URL,
    )
    assert feed.entries == (
        Entry(
            id="17",
            link="https://host.example/1",
            title="a <b> c",
            authors=(Person("Ann", "ann@e.org"),),
            published=datetime(2020, 3, 3, 8, 11, 12, tzinfo=UTC),
            updated=datetime(2020, 3, 4, tzinfo=UTC),
            summary="1 &lt; 2",
            content='<a href="https://host.example/x">',
            categories=("a", "b"),
            enclosures=(Enclosure("https://host.example/a.mp3", "audio/mpeg", 9, None, 60.0),),
            image="https://host.example/t.png",
            language="en",
        ),
    )


def test_authors_are_inherited_as_the_standard_says() -> None:
    feed = parse(
        document(author={"name": "Feed"}, items=[{"id": "1"}, {"id": "2", "authors": [{"name": "Own"}]}])
    )
    assert [entry.author for entry in feed.entries] == ["Feed", "Own"]


def test_external_url_and_plain_text() -> None:
    feed = parse(document(items=[{"id": "1", "external_url": "https://x.org/", "content_text": "a < b"}]))
    assert feed.entries[0].link == "https://x.org/"
    assert feed.entries[0].content == "a &lt; b"


def test_version_1_and_a_byte_order_mark() -> None:
    data = b"\xef\xbb\xbf\n" + document(version="https://jsonfeed.org/version/1", title="T")
    assert (parse(data).format, parse(data).title) == ("json-1.0", "T")


def test_a_forgotten_version() -> None:
    assert parse(b'{"title": "T", "items": [{"id": "1", "content_text": "x"}]}').title == "T"


def test_wrong_types_are_as_good_as_absent() -> None:
    feed = parse(
        document(title=["x"], authors=1, items=[1, None, {"id": {}, "tags": "x", "attachments": {}}])
    )
    assert feed.title == ""
    assert feed.entries == (Entry(),)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"{", FailureKind.MALFORMED),
        (b'{"version": "https://jsonfeed.org/version/1", "items": [', FailureKind.MALFORMED),
        (b"[1, 2]", FailureKind.NOT_A_FEED),
        (b'{"name": "package", "version": "1.0.0"}', FailureKind.NOT_A_FEED),
        (b'{"items": [{"id": 1}, {"id": 2}]}', FailureKind.NOT_A_FEED),
        (b"[" * 100_000, FailureKind.MALFORMED),
    ],
)
def test_refuses(data: bytes, kind: FailureKind) -> None:
    with pytest.raises(ParseError) as caught:
        parse(data)
    assert caught.value.kind is kind


def test_number_where_an_address_or_text_belongs_is_ignored() -> None:
    document = (
        b'{"version":"https://jsonfeed.org/version/1.1","title":7,"items":[{"id":1,"url":1.2,"title":3}]}'
    )
    (entry,) = parse(document).entries
    assert (entry.id, entry.link, entry.title) == ("1", None, "")


@pytest.mark.parametrize(
    ("version", "format", "repairs"),
    [
        ("https://jsonfeed.org/version/1", "json-1.0", 0),
        ("https://jsonfeed.org/version/1.1", "json-1.1", 0),
        ("https://jsonfeed.org/version/2", "json-1.1", 1),
        ("https://jsonfeed.org/version/1.2", "json-1.1", 1),
    ],
)
def test_unknown_version_is_read_as_the_newest_and_noted(version: str, format: str, repairs: int) -> None:
    feed = parse(f'{{"version":"{version}","items":[]}}'.encode())
    assert (feed.format, len(feed.repairs)) == (format, repairs)
