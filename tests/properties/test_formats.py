"""What must hold for all bytes and feeds: no error but our own, no loss out and back, no chance."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from headwater.errors import ParseError
from headwater.formats.dates import FIRST_YEAR, LAST_YEAR, parse_date
from headwater.formats.feeds.feed import Entry, Feed, Person, external_id
from headwater.formats.feeds.parse import parse
from headwater.formats.feeds.prepare import prepare
from headwater.formats.feeds.timing import PERIODS
from headwater.formats.feeds.write import write_feed
from headwater.formats.html import sanitize_html
from headwater.formats.opml import Outline, read_opml, write_opml
from headwater.formats.pages.discover import find_feeds
from headwater.formats.sitemaps.read import read_sitemap
from headwater.model import Enclosure, Hints
from tests.examples import examples
from tests.formats.feeds import test_damage

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SEEDS = (
    b'<?xml version="1.0" encoding="utf-8"?>'
    b'<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>'
    b"<title>T &amp; t</title><link>https://e.org/</link><item><title>One</title><guid>1</guid>"
    b"<dc:creator>A</dc:creator>"
    b"<description><![CDATA[<p>x</p>]]></description><pubDate>Tue, 03 Mar 2020 10:11:12 GMT"
    b"</pubDate></item></channel></rss>",
    b'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://e.org/"><title type="html">T'
    b"</title><entry><id>1</id>"
    b'<link href="a"/><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>x<br/>'
    b"</p></div></content>"
    b"<updated>2020-03-03T10:11:12Z</updated></entry></feed>",
    b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "content_html": "<p>",'
    b'"authors": [{"name": "A"}], "attachments": [{"url": "a", "size_in_bytes": 3}]}]}',
    b"<urlset><url><loc>https://e.org/</loc><lastmod>2020-03-03</lastmod></url></urlset>",
    b'<opml><head><title>T</title></head><body><outline text="F">'
    b'<outline xmlUrl="https://e.org/"/></outline></body></opml>',
    *test_damage.FEEDS.values(),
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        piece = draw(
            st.one_of(
                st.binary(max_size=8), st.sampled_from([b"<", b">", b"&", b"]]>", b"<![CDATA[", b"</", b"'"])
            )
        )
        data[start:end] = piece
    return bytes(data)


DOCUMENTS = st.one_of(
    st.binary(max_size=300), mutated(), st.text(max_size=200).map(lambda s: s.encode("utf-8", "replace"))
)


@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    DOCUMENTS,
    st.sampled_from([None, "text/xml; charset=utf-16", "text/xml; charset=latin-1", "x; charset=\x00"]),
)
@example(b"<rss><channel><item><x:y:z a:b:c='1'/></item>", None)
@example(b"<feed xmlns='\x01'><entry></b>", None)
def test_parse_raises_nothing_but_its_own_error_and_is_deterministic(
    data: bytes, content_type: str | None
) -> None:
    try:
        feed = parse(data, url="https://e.org/x", content_type=content_type)
    except ParseError as error:
        assert str(error)
        return
    assert feed == parse(data, url="https://e.org/x", content_type=content_type)
    for entry in feed.entries:
        assert external_id(entry)
        for moment in (entry.published, entry.updated):
            assert moment is None or moment.tzinfo is UTC


@settings(max_examples=examples(150), deadline=None)
@given(DOCUMENTS)
def test_the_other_readers_raise_nothing_but_their_own_error(data: bytes) -> None:
    for read in (read_sitemap, read_opml):
        try:
            read(data)
        except ParseError as error:
            assert str(error)
    find_feeds(data, "https://e.org/")


@settings(max_examples=examples(500), deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_sensible_date_or_none(text: str) -> None:
    moment = parse_date(text)
    assert moment is None or (moment.tzinfo is UTC and FIRST_YEAR - 1 <= moment.year <= LAST_YEAR + 1)


@given(st.integers(-30_000_000_000, 7_000_000_000).map(lambda seconds: EPOCH + timedelta(seconds=seconds)))
def test_dates_round_trip(moment: datetime) -> None:
    assert parse_date(moment.isoformat()) == moment
    assert parse_date(moment.strftime("%a, %d %b %Y %H:%M:%S +0000")) == moment
    assert parse_date(moment.strftime("%B %d, %Y %I:%M:%S %p")) == moment


@settings(deadline=None)
@given(st.text(max_size=200))
def test_sanitising_twice_changes_nothing(body: str) -> None:
    clean = sanitize_html(body)
    assert sanitize_html(clean) == clean
    assert "<script" not in clean.lower()


TEXT = st.text(max_size=25)
MARKUP = st.one_of(
    TEXT, st.sampled_from(["<p>a &amp; <b>b</b></p>", "<a href='x'>l</a>", "<script>x</script>", "&lt;i&gt;"])
)
URLS = st.builds(
    lambda host, path: f"https://{host}.example/{path}",
    st.sampled_from(["a", "b", "c"]),
    st.text(
        st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters='<>"\\^`{|}'), max_size=10
    ),
)
MAYBE_URL = st.none() | URLS
MOMENTS = st.none() | st.floats(-2e9, 4e9).map(lambda seconds: EPOCH + timedelta(seconds=seconds))
PEOPLE = st.lists(
    st.builds(Person, st.none() | TEXT, st.none() | st.just("a@e.org"), MAYBE_URL), max_size=2
).map(tuple)
FILES = st.builds(
    Enclosure,
    URLS,
    st.none() | st.sampled_from(["audio/mpeg", "image/png", "video/mp4"]),
    st.none() | st.integers(0, 10**12),
    st.none() | TEXT,
    st.none() | st.floats(0, 10**6),
)
EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "season": st.integers(0, 99),
        "episode": st.integers(0, 99) | st.just(1.5),
        "season_name": TEXT,
        "explicit": st.booleans(),
        "keywords": st.lists(TEXT, max_size=3),
        "persons": st.lists(
            st.fixed_dictionaries({"name": TEXT}, optional={"role": TEXT, "url": TEXT | URLS}), max_size=2
        ),
        "chapters": st.lists(st.fixed_dictionaries({"start": st.just("00:01"), "title": TEXT}), max_size=2),
        "thumbnails": st.lists(st.fixed_dictionaries({"url": URLS, "width": st.just("9")}), max_size=2),
        "category_tree": st.lists(
            st.fixed_dictionaries(
                {"name": TEXT, "children": st.lists(st.fixed_dictionaries({"name": TEXT}), max_size=1)}
            ),
            max_size=1,
        ),
        "extensions": st.dictionaries(
            st.sampled_from(["urn:x", "https://x.example/ns#", "", "json"]),
            st.dictionaries(st.sampled_from(["a", "b-c", "1"]), st.lists(TEXT, max_size=2), max_size=2),
            max_size=2,
        ),
        "live": st.just([{"status": "live", "start": "2026-01-01T00:00:00Z"}]),
        "nonsense": TEXT,
    },
)
ENTRIES = st.builds(
    Entry,
    id=st.none() | TEXT,
    link=MAYBE_URL,
    title=TEXT,
    authors=PEOPLE,
    published=MOMENTS,
    updated=MOMENTS,
    summary=st.none() | MARKUP,
    content=st.none() | MARKUP,
    categories=st.lists(TEXT, max_size=3).map(tuple),
    enclosures=st.lists(FILES, max_size=3).map(tuple),
    image=MAYBE_URL,
    language=st.none() | st.sampled_from(["en", "zh-CN"]),
    comments_url=MAYBE_URL,
    comments_feed=MAYBE_URL,
    comments_count=st.none() | st.integers(0, 9999),
    source_title=st.none() | TEXT,
    source_url=MAYBE_URL,
    extras=st.none() | EXTRAS,
)
PERIOD = st.builds(
    lambda period, times: period / times, st.sampled_from([*PERIODS.values()]), st.integers(1, 50)
)
FEEDS = st.builds(
    Feed,
    format=st.just(""),
    title=TEXT,
    id=st.none() | TEXT,
    link=MAYBE_URL,
    description=st.none() | MARKUP,
    language=st.none() | st.sampled_from(["en", "zh-CN"]),
    icon=MAYBE_URL,
    image=MAYBE_URL,
    authors=PEOPLE,
    categories=st.lists(TEXT, max_size=2).map(tuple),
    generator=st.none() | TEXT,
    rights=st.none() | TEXT,
    published=MOMENTS,
    updated=MOMENTS,
    self_link=MAYBE_URL,
    next_link=MAYBE_URL,
    hub_links=st.lists(URLS, max_size=2).map(tuple),
    hints=st.builds(
        Hints,
        ttl_seconds=st.none() | st.floats(1, 10**6),
        update_period_seconds=st.none() | PERIOD | st.floats(1, 10**6),
        skip_hours=st.lists(st.integers(0, 23), max_size=3).map(tuple),
        skip_days=st.lists(st.integers(0, 6), max_size=3).map(tuple),
    ),
    entries=st.lists(ENTRIES, max_size=2).map(tuple),
)


@pytest.mark.parametrize("format", ["rss", "atom", "json"])
@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(feed=FEEDS)
def test_publishing_and_reading_back_keeps_every_field(format: str, feed: Feed) -> None:
    published = prepare(feed, author_needed=format == "atom")
    assert prepare(published, author_needed=format == "atom") == published
    data = write_feed(feed, format)
    assert data == write_feed(published, format)
    again = parse(data)
    assert replace(again, format="") == published


@settings(deadline=None)
@given(
    st.lists(
        st.builds(Outline, URLS.map(str.strip), TEXT, st.none() | st.sampled_from(["A", "A / B", "C"])),
        max_size=5,
    )
)
def test_opml_round_trip(outlines: list[Outline]) -> None:
    again = {outline.url: outline for outline in read_opml(b"".join(write_opml(outlines))).outlines}
    assert set(again) == {outline.url for outline in outlines}
    for outline in outlines:
        if [other.url for other in outlines].count(outline.url) == 1:
            assert again[outline.url].folder == outline.folder
