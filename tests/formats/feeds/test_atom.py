from datetime import UTC, datetime

import pytest

from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.parse import parse
from headwater.model import Enclosure


def feed_of(inner: str, attributes: str = "", url: str | None = "https://host.example/feed") -> Feed:
    document = f'<feed xmlns="http://www.w3.org/2005/Atom" {attributes}>{inner}</feed>'
    return parse(document.encode(), url=url)


def entry_of(inner: str) -> Entry:
    (entry,) = feed_of(f"<entry>{inner}</entry>").entries
    return entry


def test_a_whole_feed() -> None:
    feed = feed_of(
        "<title>Streams</title><subtitle>All</subtitle><id>urn:f</id><updated>2020-03-03T10:11:12Z</updated>"
        '<link href="https://e.org/"/><link rel="self" href="/atom"/><link rel="hub" href="https://hub.org/"/>'
        "<author><name>Ann</name><email>ann@e.org</email><uri>https://e.org/ann</uri></author>"
        '<category term="w" label="Water"/><icon>/i.ico</icon><logo>/l.png</logo><rights>CC</rights>'
        "<generator>Pen</generator>",
        'xml:lang="en"',
    )
    assert feed == Feed(
        format="atom-1.0",
        title="Streams",
        id="urn:f",
        link="https://e.org/",
        description="All",
        language="en",
        icon="https://host.example/i.ico",
        image="https://host.example/l.png",
        authors=(Person("Ann", "ann@e.org", "https://e.org/ann"),),
        categories=("Water",),
        generator="Pen",
        rights="CC",
        updated=datetime(2020, 3, 3, 10, 11, 12, tzinfo=UTC),
        self_link="https://host.example/atom",
        hub_links=("https://hub.org/",),
    )


def test_a_whole_entry() -> None:
    entry = entry_of(
        '<title type="html">On &lt;b&gt;rivers&lt;/b&gt;</title><id>urn:1</id>'
        '<link rel="alternate" type="application/json" href="/1.json"/><link href="/1"/>'
        '<link rel="enclosure" href="/a.mp3" type="audio/mpeg" length="9" title="Talk"/>'
        '<link rel="replies" type="text/html" href="/1#c"/>'
        '<link rel="replies" type="application/atom+xml" href="/1/c.atom"/>'
        "<published>2020-03-03T00:00:00Z</published><updated>2020-03-04T00:00:00Z</updated>"
        '<summary>1 &lt; 2</summary><content type="html">&lt;p&gt;Long&lt;/p&gt;</content>'
        '<source><title>Origin</title><link rel="self" href="https://o.org/feed"/></source>'
        '<thr:total xmlns:thr="http://purl.org/syndication/thread/1.0">4</thr:total>'
    )
    assert entry == Entry(
        id="urn:1",
        link="https://host.example/1",
        title="On rivers",
        published=datetime(2020, 3, 3, tzinfo=UTC),
        updated=datetime(2020, 3, 4, tzinfo=UTC),
        summary="1 &lt; 2",
        content="<p>Long</p>",
        enclosures=(Enclosure("https://host.example/a.mp3", "audio/mpeg", 9, "Talk"),),
        comments_url="https://host.example/1#c",
        comments_feed="https://host.example/1/c.atom",
        comments_count=4,
        source_title="Origin",
        source_url="https://o.org/feed",
    )


@pytest.mark.parametrize(
    ("content", "body"),
    [
        ('<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>a<br/>b</p></div></content>',
         "<p>a<br>b</p>"),
        ('<content type="xhtml"><x:div xmlns:x="http://www.w3.org/1999/xhtml"><x:p>a</x:p></x:div></content>',
         "<p>a</p>"),
        ('<content type="text">a &lt;b&gt; c</content>', "a &lt;b&gt; c"),
        ("<content>a &amp; b</content>", "a &amp; b"),
        ('<content type="text/html">&lt;p&gt;a&lt;/p&gt;</content>', "<p>a</p>"),
        ('<content type="application/octet-stream">PHA+aGk8L3A+</content>', "<p>hi</p>"),
        ('<content mode="base64" type="text/html">PHA+aGk8L3A+</content>', "<p>hi</p>"),
        ('<content mode="escaped" type="text/html">&lt;p&gt;a&lt;/p&gt;</content>', "<p>a</p>"),
        ('<content type="html">&lt;a href="x"&gt;</content>', '<a href="https://host.example/x">'),
        ('<content type="html" xml:base="https://b.org/d/">&lt;a href="x"&gt;</content>',
         '<a href="https://b.org/d/x">'),
        ('<content type="html"></content>', None),
        ('<content type="xhtml"><p>code: xmlns="y"</p></content>', '<p>code: xmlns="y"</p>'),
    ],
)  # fmt: skip
def test_content(content: str, body: str | None) -> None:
    assert entry_of(content).content == body


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ('<title type="text">a &lt;b&gt; c</title>', "a <b> c"),
        ('<title type="html">a &lt;b&gt;c&lt;/b&gt; &amp;amp; d</title>', "a c & d"),
        ('<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a <b>c</b></div></title>', "a c"),
        ("<title>\n two  lines </title>", "two lines"),
        ("<title/>", ""),
    ],
)
def test_title(title: str, text: str) -> None:
    assert entry_of(title).title == text


def test_xml_base_is_inherited() -> None:
    feed = feed_of(
        '<entry xml:base="sub/"><link href="x"/><id>rel</id></entry>', 'xml:base="https://b.org/d/"'
    )
    assert feed.entries[0].link == "https://b.org/d/sub/x"
    assert feed.entries[0].id == "https://b.org/d/sub/rel"


def test_the_address_of_the_document_does_not_change_ids() -> None:
    assert entry_of("<id>17</id>").id == "17"


def test_authors_are_inherited_as_the_standard_says() -> None:
    feed = feed_of(
        "<author><name>Feed</name></author><entry/><entry><author><name>Own</name></author></entry>"
        "<entry><source><author><name>Origin</name></author></source></entry>"
    )
    assert [entry.author for entry in feed.entries] == ["Feed", "Own", "Origin"]


def test_atom_03() -> None:
    feed = parse(
        b'<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title>T</title><tagline>All</tagline>'
        b"<modified>2004-03-03T00:00:00Z</modified><entry><issued>2004-03-01T00:00:00Z</issued>"
        b"<modified>2004-03-02T00:00:00Z</modified></entry></feed>"
    )
    assert (feed.format, feed.description) == ("atom-0.3", "All")
    assert feed.updated == datetime(2004, 3, 3, tzinfo=UTC)
    assert feed.entries[0].published == datetime(2004, 3, 1, tzinfo=UTC)
    assert feed.entries[0].updated == datetime(2004, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("document", "count"),
    [
        ('<entry xmlns="http://www.w3.org/2005/Atom"><title>One</title></entry>', 1),
        ("<feed><entry/><entry/></feed>", 2),
        ('<feed xmlns="http://made.up/"><entry/></feed>', 1),
        ('<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry/></a:feed>', 1),
    ],
)
def test_shapes(document: str, count: int) -> None:
    feed = parse(document.encode())
    assert (feed.format, len(feed.entries)) == ("atom-1.0", count)


def test_content_elsewhere_is_the_link() -> None:
    assert entry_of('<content src="/1.html" type="text/html"/>').link == "https://host.example/1.html"


def test_relation_names_may_be_addresses() -> None:
    entry = entry_of('<link rel="http://www.iana.org/assignments/relation/alternate" href="/1"/>')
    assert entry.link == "https://host.example/1"


def test_entry_without_link_is_at_its_id_when_that_is_an_address() -> None:
    entries = "".join(
        f"<entry><id>{each}</id><title>x</title></entry>" for each in ("https://e.org/1", "tag:e.org,1")
    )
    feed = parse(f'<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>'.encode())
    assert [entry.link for entry in feed.entries] == ["https://e.org/1", None]
