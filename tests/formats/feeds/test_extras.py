"""What podcasts, media and other vocabularies say survives the whole way: feed, item, database, API, outlet, feed."""

from typing import Any

import pytest

from headwater.formats.feeds.extras.clean import clean_extras
from headwater.formats.feeds.extras.vocabulary import (
    KEYS,
    LONGEST_EXTENSIONS,
    MAX_NODES,
    MAX_RECORDS,
    NAMESPACES,
    RECORDS,
    VALUES,
)
from headwater.formats.feeds.feed import Entry, Feed, to_item
from headwater.formats.feeds.parse import parse
from headwater.formats.feeds.write import write_feed
from headwater.model import Enclosure
from headwater.publish.outlets import render_outlet
from headwater.store.core.database import Store
from headwater.store.reading.items import get_item
from headwater.store.reading.outlets import Outlet, add_outlet, read_edition
from headwater.store.reading.search import index_batch
from headwater.store.reading.selection import Selection
from headwater.views.items import item_json
from headwater.views.outlets import FORMATS
from tests.clock import NOON
from tests.feed_rules import find_faults
from tests.publish.test_outlets import read_back, store_items

DECLARED = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
SLASH, DC, DCTERMS = (NAMESPACES[prefix] for prefix in ("slash", "dc", "dcterms"))

# An element of an item, the key it has, and what is under that key.
ITEM_ELEMENTS: list[tuple[str, str, Any]] = [
    ("<itunes:season>2</itunes:season>", "season", 2),
    ("<podcast:season name='Two'>2</podcast:season>", "season_name", "Two"),
    ("<itunes:episode>7</itunes:episode>", "episode", 7),
    ("<podcast:episode display='Ch. 3'>3.5</podcast:episode>", "episode", 3.5),
    ("<podcast:episode display='Ch. 3'>3</podcast:episode>", "episode_display", "Ch. 3"),
    ("<itunes:episodeType>trailer</itunes:episodeType>", "episode_type", "trailer"),
    ("<itunes:explicit>yes</itunes:explicit>", "explicit", True),
    ("<itunes:explicit>clean</itunes:explicit>", "explicit", False),
    ("<itunes:block>Yes</itunes:block>", "block", True),
    ("<itunes:subtitle>In short</itunes:subtitle>", "subtitle", "In short"),
    ("<itunes:keywords>a, b,,c</itunes:keywords>", "keywords", ["a", "b", "c"]),
    ("<media:keywords>x, y</media:keywords>", "keywords", ["x", "y"]),
    (
        "<podcast:transcript url='/t.vtt' type='text/vtt' language='en' rel='captions'/>",
        "transcripts",
        [{"url": "https://one.example/t.vtt", "type": "text/vtt", "language": "en", "rel": "captions"}],
    ),
    (
        "<podcast:chapters url='https://e.org/c.json' type='application/json+chapters'/>",
        "chapter_files",
        [{"url": "https://e.org/c.json", "type": "application/json+chapters"}],
    ),
    (
        "<psc:chapters version='1.2'><psc:chapter start='00:00:00' title='Intro'/><psc:chapter start='00:01:02.5'"
        " title='Next' href='https://e.org/n' image='https://e.org/n.png'/></psc:chapters>",
        "chapters",
        [
            {"start": "00:00:00", "title": "Intro"},
            {
                "start": "00:01:02.5",
                "title": "Next",
                "url": "https://e.org/n",
                "image": "https://e.org/n.png",
            },
        ],
    ),
    (
        "<podcast:person role='guest' group='cast' img='https://e.org/j.png' href='https://e.org/j'>Jo</podcast:person>",
        "persons",
        [
            {
                "name": "Jo",
                "role": "guest",
                "group": "cast",
                "image": "https://e.org/j.png",
                "url": "https://e.org/j",
            }
        ],
    ),
    (
        "<podcast:soundbite startTime='73.0' duration='60.0'>Best</podcast:soundbite>",
        "soundbites",
        [{"start": "73.0", "duration": "60.0", "title": "Best"}],
    ),
    (
        "<podcast:location geo='geo:30.2672,97.7431' osm='R113314'>Austin, TX</podcast:location>",
        "locations",
        [{"name": "Austin, TX", "geo": "geo:30.2672,97.7431", "osm": "R113314"}],
    ),
    (
        "<podcast:alternateEnclosure type='audio/opus' length='32' bitrate='64000' default='true' title='Small'>"
        "<podcast:source uri='https://e.org/a.opus'/>"
        "<podcast:source uri='ftp://e.org/a.opus' contentType='audio/opus'/>"
        "<podcast:integrity type='sri' value='sha384-x'/></podcast:alternateEnclosure>",
        "alternate_enclosures",
        [
            {
                "type": "audio/opus",
                "length": "32",
                "bitrate": "64000",
                "default": "true",
                "title": "Small",
                "sources": [
                    {"url": "https://e.org/a.opus"},
                    {"url": "ftp://e.org/a.opus", "type": "audio/opus"},
                ],
                "integrity": [{"type": "sri", "value": "sha384-x"}],
            }
        ],
    ),
    (
        "<podcast:value type='lightning' method='keysend' suggested='0.00000005000'><podcast:valueRecipient name='Jo'"
        " type='node' address='02d5' split='50' fee='true' customKey='7' customValue='x'/><podcast:valueTimeSplit"
        " startTime='60' duration='237' remotePercentage='95'><podcast:remoteItem feedGuid='a' itemGuid='b'/>"
        "</podcast:valueTimeSplit></podcast:value>",
        "value",
        [
            {
                "type": "lightning",
                "method": "keysend",
                "suggested": "0.00000005000",
                "recipients": [
                    {
                        "name": "Jo",
                        "type": "node",
                        "address": "02d5",
                        "split": "50",
                        "fee": "true",
                        "custom_key": "7",
                        "custom_value": "x",
                    }
                ],
                "time_splits": [
                    {
                        "duration": "237",
                        "start": "60",
                        "remote_percentage": "95",
                        "remote_items": [{"feed_guid": "a", "item_guid": "b"}],
                    }
                ],
            }
        ],
    ),
    (
        "<podcast:socialInteract protocol='activitypub' uri='https://e.org/@j/1' accountId='@j'/>",
        "social",
        [{"protocol": "activitypub", "url": "https://e.org/@j/1", "account_id": "@j"}],
    ),
    (
        "<podcast:license url='https://e.org/l'>my-license</podcast:license>",
        "licenses",
        [{"name": "my-license", "url": "https://e.org/l"}],
    ),
    (
        "<cc:license>https://creativecommons.org/licenses/by/4.0/</cc:license>",
        "licenses",
        [{"url": "https://creativecommons.org/licenses/by/4.0/"}],
    ),
    ("<podcast:txt purpose='verify'>S6lpp</podcast:txt>", "texts", [{"purpose": "verify", "value": "S6lpp"}]),
    (
        "<media:thumbnail url='https://e.org/s.png' width='75' height='50' time='12:05:01'/>"
        "<media:thumbnail url='https://e.org/l.png' width='750'/>",
        "thumbnails",
        [
            {"url": "https://e.org/s.png", "width": "75", "height": "50", "time": "12:05:01"},
            {"url": "https://e.org/l.png", "width": "750"},
        ],
    ),
    (
        "<media:rating scheme='urn:mpaa'>pg</media:rating>",
        "ratings",
        [{"scheme": "urn:mpaa", "value": "pg"}],
    ),
    (
        "<media:player url='https://e.org/p' width='400' height='200'/>",
        "players",
        [{"url": "https://e.org/p", "width": "400", "height": "200"}],
    ),
    (
        "<media:credit role='producer' scheme='urn:ebu'>Jo</media:credit>",
        "credits",
        [{"role": "producer", "scheme": "urn:ebu", "name": "Jo"}],
    ),
    (
        "<media:group><media:content url='https://e.org/a.mp4' type='video/mp4' width='640' height='360'"
        " isDefault='true'/><media:content url='https://e.org/b.webm' type='video/webm' bitrate='128'/></media:group>",
        "media",
        [
            {
                "url": "https://e.org/a.mp4",
                "type": "video/mp4",
                "height": "360",
                "width": "640",
                "is_default": "true",
                "group": "1",
            },
            {"url": "https://e.org/b.webm", "type": "video/webm", "bitrate": "128", "group": "1"},
        ],
    ),
    ("<georss:point>45.256 -71.92</georss:point>", "points", [{"point": "45.256 -71.92"}]),
    ("<geo:lat>45.2</geo:lat><geo:long>-71.9</geo:long>", "points", [{"point": "45.2 -71.9"}]),
    (
        "<thr:in-reply-to ref='tag:e.org,2026:1' href='https://e.org/1' type='text/html'/>",
        "in_reply_to",
        [{"ref": "tag:e.org,2026:1", "url": "https://e.org/1", "type": "text/html"}],
    ),
    ("<slash:section>news</slash:section>", "extensions", {SLASH: {"section": ["news"]}}),
    ("<dc:publisher>P</dc:publisher><dc:creator>C</dc:creator>", "extensions", {DC: {"publisher": ["P"]}}),
    ("<dcterms:audience>all</dcterms:audience>", "extensions", {DCTERMS: {"audience": ["all"]}}),
    ("<georss:line>1 2 3 4</georss:line>", "extensions", {NAMESPACES["georss"]: {"line": ["1 2 3 4"]}}),
    (
        "<podcast:images srcset='https://e.org/i.png 300w'/>",
        "extensions",
        {NAMESPACES["podcast"]: {"images": [{"attributes": {"srcset": "https://e.org/i.png 300w"}}]}},
    ),
    (
        "<x:a xmlns:x='urn:example:x' k='v'>t<x:b>1</x:b><x:b>2</x:b></x:a>",
        "extensions",
        {
            "urn:example:x": {
                "a": [
                    {"text": "t", "attributes": {"k": "v"}, "children": {"urn:example:x": {"b": ["1", "2"]}}}
                ]
            }
        },
    ),
    (
        "<category domain='https://e.org/tags'>News</category>",
        "category_schemes",
        [{"name": "News", "scheme": "https://e.org/tags"}],
    ),
]
FEED_ELEMENTS: list[tuple[str, str, Any]] = [
    ("<podcast:guid>917393e3</podcast:guid>", "podcast_guid", "917393e3"),
    ("<podcast:locked owner='a@e.org'>yes</podcast:locked>", "locked", True),
    ("<podcast:locked owner='a@e.org'>no</podcast:locked>", "locked_owner", "a@e.org"),
    ("<podcast:medium>music</podcast:medium>", "medium", "music"),
    ("<itunes:type>serial</itunes:type>", "show_type", "serial"),
    ("<itunes:complete>Yes</itunes:complete>", "complete", True),
    ("<itunes:new-feed-url>https://e.org/new</itunes:new-feed-url>", "new_feed_url", "https://e.org/new"),
    (
        "<itunes:category text='Arts'><itunes:category text='Books'/></itunes:category><itunes:category text='News'/>",
        "category_tree",
        [{"name": "Arts", "children": [{"name": "Books"}]}, {"name": "News"}],
    ),
    (
        "<podcast:funding url='https://e.org/give'>Give</podcast:funding>",
        "funding",
        [{"url": "https://e.org/give", "title": "Give"}],
    ),
    (
        "<podcast:trailer url='https://e.org/t.mp3' pubdate='Thu, 01 Apr 2021 08:00:00 EST' type='audio/mpeg'>Coming"
        "</podcast:trailer>",
        "trailers",
        [
            {
                "url": "https://e.org/t.mp3",
                "pubdate": "Thu, 01 Apr 2021 08:00:00 EST",
                "type": "audio/mpeg",
                "title": "Coming",
            }
        ],
    ),
]


def podcast(item: str = "", channel: str = "") -> bytes:
    return (
        f'<rss version="2.0" {DECLARED}><channel><title>T</title><link>https://one.example/</link>'
        f"<description>D</description>{channel}<item><guid>tag:one.example,2026:1</guid><title>One</title>"
        f"<description>d</description>{item}</item></channel></rss>"
    ).encode()


def names(elements: list[tuple[str, str, Any]]) -> list[str]:
    return [f"{key}:{markup[1:].partition('>')[0].split()[0]}" for markup, key, _ in elements]


def publish(store: Store, feed: Feed, format: str) -> bytes:
    """What an outlet makes of the items of a feed; the API shows what it keeps of them on the way."""
    with store.writing() as connection:
        store_items(connection, *(to_item(entry, feed) for entry in feed.entries))
        add_outlet(connection, Outlet("all", "All", Selection()), NOON)
        body = render_outlet(connection, read_edition(connection, "all"), format, "https://mine.example").body
    read_back(body, format)  # another reader finds nothing wrong with it
    return body


@pytest.mark.parametrize(("markup", "key", "value"), ITEM_ELEMENTS, ids=names(ITEM_ELEMENTS))
def test_element_of_item_is_read_and_survives_every_format(markup: str, key: str, value: Any) -> None:
    (entry,) = parse(podcast(markup)).entries
    assert (entry.extras or {})[key] == value
    for format in FORMATS:
        body = write_feed(parse(podcast(markup)), format)
        (again,) = parse(body).entries
        assert again.extras == entry.extras, format
        assert format == "json" or find_faults(body) == []


@pytest.mark.parametrize(("markup", "key", "value"), FEED_ELEMENTS, ids=names(FEED_ELEMENTS))
def test_element_of_feed_is_read_kept_with_the_source_and_survives_every_format(
    markup: str, key: str, value: Any
) -> None:
    feed = parse(podcast(channel=markup))
    assert (feed.metadata.details or {})[key] == value
    for format in FORMATS:
        body = write_feed(feed, format)
        assert parse(body).extras == feed.extras, format
        assert format == "json" or find_faults(body) == []


@pytest.mark.parametrize("format", FORMATS)
def test_everything_of_an_item_survives_database_api_and_outlet(store: Store, format: str) -> None:
    markup = "".join(
        element for element, key, _ in ITEM_ELEMENTS if key not in ("season", "episode", "licenses")
    )
    feed = parse(
        podcast(markup + "<source url='https://o.org/f'>O</source><enclosure url='https://e.org/1.mp3'/>")
    )
    (again,) = parse(publish(store, feed, format)).entries
    (entry,) = feed.entries
    assert again.extras == entry.extras
    assert (again.source_title, again.source_url) == ("O", "https://o.org/f")
    with store.reading() as connection:
        shown = item_json(get_item(connection, 1))["extra"]
    assert {key: shown[key] for key in entry.extras or {}} == entry.extras


def test_live_item_is_an_item_and_survives_every_format() -> None:
    live = (
        "<podcast:liveItem status='live' start='2026-01-01T00:00:00Z'><guid>l</guid><title>Live</title>"
        "</podcast:liveItem>"
    )
    feed = parse(podcast(channel=live))
    assert [entry.title for entry in feed.entries] == ["One", "Live"]
    for format in FORMATS:
        again = parse(write_feed(feed, format)).entries[1]
        assert (again.extras or {})["live"] == [{"status": "live", "start": "2026-01-01T00:00:00Z"}]


def test_all_enclosures_are_kept_and_the_audio_has_the_duration() -> None:
    files = "".join(
        f"<enclosure url='https://e.org/{name}' type='{kind}' length='9'/>"
        for name, kind in (("a.pdf", "application/pdf"), ("a.mp3", "audio/mpeg"), ("b.mp3", "audio/mpeg"))
    )
    (entry,) = parse(podcast(f"{files}<itunes:duration>1:02:03</itunes:duration>")).entries
    assert [(file.url[-5:], file.duration_seconds) for file in entry.enclosures] == [
        ("a.pdf", None),
        ("a.mp3", 3723.0),
        ("b.mp3", None),
    ]
    for format in FORMATS:
        (again,) = parse(write_feed(parse(podcast(files)), format)).entries
        assert len(again.enclosures) == 3


def test_item_is_found_by_its_keywords_persons_and_chapters(store: Store) -> None:
    markup = "".join(markup for markup, key, _ in ITEM_ELEMENTS if key in ("keywords", "persons", "chapters"))
    publish(store, parse(podcast(markup.replace("Jo<", "Josephine<").replace("Intro", "Prelude"))), "rss")
    index_batch(store, NOON)
    with store.reading() as connection:
        for word in ("josephine", "prelude"):
            found = connection.exec_driver_sql("SELECT words FROM item_words").scalar_one()
            assert word in str(found)


def test_every_key_has_an_element_tested() -> None:
    tested = {key for _, key, _ in (*ITEM_ELEMENTS, *FEED_ELEMENTS)} | {"live"}
    assert tested == KEYS
    assert len({each.key for each in (*VALUES, *RECORDS)}) == len(VALUES) + len(RECORDS)


def test_entry_without_extras_has_none() -> None:
    (entry,) = parse(
        podcast("<pubDate>x</pubDate><link>https://e.org/</link><slash:comments>3</slash:comments>")
    ).entries
    assert entry.extras is None


def test_extensions_are_capped() -> None:
    many = "".join(f"<x:a xmlns:x='urn:example:x'>{'t' * 500}</x:a>" for _ in range(3 * MAX_NODES))
    (entry,) = parse(podcast(many + "<podcast:txt>a</podcast:txt>" * (2 * MAX_RECORDS))).entries
    extras = entry.extras or {}
    assert sum(len(text) for text in extras["extensions"]["urn:example:x"]["a"]) <= LONGEST_EXTENSIONS
    assert len(extras["texts"]) == MAX_RECORDS


def test_published_extras_have_no_unsafe_address_and_no_foreign_shape() -> None:
    extras = {
        "persons": [{"name": "Jo", "url": "javascript:alert(1)"}, "x", {"role": "no name"}],
        "players": [{"url": "javascript:alert(1)"}],
        "season": "two",
        "keywords": "x",
        "extensions": {"urn:example:x": {"1a": ["x"], "ok": ["a\x00b", 7]}, "": {"y": ["z"]}},
        "nonsense": 1,
    }
    for format in FORMATS:
        body = write_feed(Feed("", title="T", entries=(Entry(id="1", title="One", extras=extras),)), format)
        (entry,) = parse(body).entries
        assert entry.extras == {
            "persons": [{"name": "Jo"}],
            "extensions": {"urn:example:x": {"ok": ["ab"]}},
        }, format
    assert clean_extras({"season": 2, "season_name": "x"}, lambda text: text) == {
        "season": 2,
        "season_name": "x",
    }


def test_extensions_of_json_feeds_survive_as_they_were() -> None:
    document = b'{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"id":"1","_blue":{"about":["x",1]}}]}'
    (entry,) = parse(document).entries
    assert (entry.extras or {})["extensions"] == {"json": {"_blue": {"about": ["x", 1]}}}
    (again,) = parse(write_feed(parse(document), "json")).entries
    assert again.extras == entry.extras


def test_enclosure_is_the_only_file_where_media_says_the_same() -> None:
    (entry,) = parse(
        podcast(
            "<enclosure url='https://e.org/a.mp3' type='audio/mpeg'/><media:content url='https://e.org/a.mp3'/>"
        )
    ).entries
    assert entry.enclosures == (Enclosure("https://e.org/a.mp3", "audio/mpeg"),)
    assert entry.extras is None
