from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from lxml import etree

from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.parse import parse
from headwater.formats.feeds.prepare import prepare, update_frequency
from headwater.formats.feeds.write import MEDIA_TYPES, write_feed
from headwater.model import Enclosure, Hints

FULL = Feed(
    format="rss-2.0",
    title="Streams <b> & rivers",
    id="urn:feed",
    link="https://e.org/",
    description="<p>All of <em>them</em></p>",
    language="en",
    icon="https://e.org/i.ico",
    image="https://e.org/l.png",
    authors=(Person("Ann", "ann@e.org", "https://e.org/ann"),),
    categories=("Water", "Rain & snow"),
    generator="Pen",
    rights="CC",
    published=datetime(2020, 3, 1, tzinfo=UTC),
    updated=datetime(2020, 3, 4, tzinfo=UTC),
    self_link="https://e.org/feed",
    next_link="https://e.org/feed?page=2&x=1",
    hub_links=("https://hub.org/", "https://hub2.org/"),
    hints=Hints(ttl_seconds=5400.0, update_period_seconds=21_600.0, skip_hours=(0, 7), skip_days=(0, 6)),
    entries=(
        Entry(
            id="urn:1",
            link="https://e.org/1?a=1&b=2",
            title="1 < 2 &amp; <i>so</i> on ]]> 中文",
            authors=(Person("Bo"), Person("Cy", "cy@e.org")),
            published=datetime(2020, 3, 3, 10, 11, 12, tzinfo=UTC),
            updated=datetime(2020, 3, 4, tzinfo=UTC),
            summary="Short &amp; <b>good</b>",
            content="<p>Long ]]&gt; <code>a &lt; b</code></p>",
            categories=("Water",),
            enclosures=(
                Enclosure("https://e.org/a.mp3", "audio/mpeg", 123, "Talk", 61.5),
                Enclosure("https://e.org/unknown"),
                Enclosure("https://e.org/p.png", "image/png"),
            ),
            image="https://e.org/t.png",
            language="en-GB",
            comments_url="https://e.org/1#c",
            comments_feed="https://e.org/1/feed",
            comments_count=7,
            source_title="Source",
            source_url="https://s.org/feed",
            extras={
                "chapter_files": [{"url": "https://e.org/c.json", "type": "application/json+chapters"}],
                "transcripts": [{"url": "https://e.org/t.vtt", "type": "text/vtt", "language": "en"}],
            },
        ),
        Entry(
            id="urn:2",
            title="urn:2",
            authors=(Person("Ann", "ann@e.org", "https://e.org/ann"),),
            updated=datetime(2020, 3, 2, tzinfo=UTC),
            source_title="Only a title",
        ),
    ),
)


@pytest.mark.parametrize("format", MEDIA_TYPES)
def test_reading_back_gives_the_same_feed(format: str) -> None:
    assert prepare(FULL) == FULL
    again = parse(write_feed(FULL, format))
    assert again.format == {"rss": "rss-2.0", "atom": "atom-1.0", "json": "json-1.1"}[format]
    assert replace(again, format=FULL.format) == FULL


@pytest.mark.parametrize("format", MEDIA_TYPES)
def test_the_same_feed_gives_the_same_bytes(format: str) -> None:
    assert write_feed(FULL, format) == write_feed(FULL, format)


@pytest.mark.parametrize("format", MEDIA_TYPES)
def test_bodies_are_sanitised_and_control_characters_dropped(format: str) -> None:
    feed = Feed(
        format="rss-2.0",
        title="a\x00b\x0b\ud800c",
        link="https://e.org/",
        entries=(Entry(id="1", title="\x1bT", content="<p onclick=x()>hi\x08<script>alert(1)</script></p>"),),
    )
    data = write_feed(feed, format)
    again = parse(data)
    assert again.repairs == ()
    assert again.title == "abc"
    assert again.entries[0].title == "T"
    assert again.entries[0].content == "<p>hi</p>"


def test_what_is_demanded_is_filled_in() -> None:
    noon = datetime(2020, 3, 3, 12, 0, 0, 5, tzinfo=timezone(timedelta(hours=1)))
    bare = Feed(
        format="",
        entries=(Entry(title="T", published=noon), Entry(link="/1")),
        self_link="https://e.org/feed",
    )
    feed = prepare(bare)
    eleven = datetime(2020, 3, 3, 11, tzinfo=UTC)
    assert (feed.title, feed.link, feed.id) == (
        "https://e.org/feed",
        "https://e.org/feed",
        "https://e.org/feed",
    )
    assert feed.description == "https://e.org/feed"
    assert feed.updated == eleven
    first, second = feed.entries
    assert first.id and first.id.startswith("hash:")
    assert (first.published, first.updated) == (eleven, eleven)
    assert (second.id, second.link, second.updated) == ("/1", "https://e.org/1", eleven)
    assert prepare(feed) == feed


def test_atom_always_has_an_author() -> None:
    feed = Feed(format="", title="Streams", entries=(Entry(id="1"),))
    assert parse(write_feed(feed, "atom")).author == "Streams"
    assert parse(write_feed(feed, "rss")).author is None


def test_rss_is_as_its_readers_want_it() -> None:
    root: Any = etree.fromstring(write_feed(FULL, "rss"))
    assert root.get("version") == "2.0"
    (guid,) = root.xpath("channel/item[1]/guid")
    assert (guid.text, guid.get("isPermaLink")) == ("urn:1", "false")
    assert root.xpath("count(channel/item[1]/enclosure)") == 1
    assert root.xpath("channel/item[1]/pubDate/text()") == ["Tue, 03 Mar 2020 10:11:12 +0000"]
    namespaces = {"atom": "http://www.w3.org/2005/Atom", "dc": "http://purl.org/dc/elements/1.1/"}
    assert root.xpath("channel/atom:link[@rel='self']/@href", namespaces=namespaces) == ["https://e.org/feed"]
    assert root.xpath("channel/item[1]/dc:creator/text()", namespaces=namespaces) == ["Bo", "Cy"]


def test_json_feed_is_as_its_readers_want_it() -> None:
    document = orjson.loads(write_feed(FULL, "json"))
    assert document["version"] == "https://jsonfeed.org/version/1.1"
    first, second = document["items"]
    assert first["summary"] == "Short & good"
    assert first["attachments"][1]["mime_type"] == "application/octet-stream"
    assert second["content_text"] == ""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (3600, ("hourly", 1)),
        (1800, ("hourly", 2)),
        (86_400, ("daily", 1)),
        (21_600, ("daily", 4)),
        (1_000_003.7, ("yearly", 32)),  # nothing fits: something near it
    ],
)
def test_update_frequency(seconds: float, said: tuple[str, int]) -> None:
    assert update_frequency(seconds) == said


def test_unknown_formats_are_an_error() -> None:
    with pytest.raises(KeyError):
        write_feed(FULL, "pdf")
