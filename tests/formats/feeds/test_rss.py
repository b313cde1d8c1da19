"""RSS 0.90 to 2.0, RDF and the vocabularies around them: one rule a test."""

from datetime import UTC, datetime

import pytest

from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.parse import parse
from headwater.model import Enclosure, Hints

NAMESPACES = """
 xmlns:atom="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"
 xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:media="http://search.yahoo.com/mrss/"
 xmlns:podcast="https://podcastindex.org/namespace/1.0" xmlns:slash="http://purl.org/rss/1.0/modules/slash/"
 xmlns:sy="http://purl.org/rss/1.0/modules/syndication/" xmlns:wfw="http://wellformedweb.org/CommentAPI/"
 xmlns:georss="http://www.georss.org/georss"
"""


def channel(inner: str, url: str | None = "https://host.example/feed") -> Feed:
    return parse(f'<rss version="2.0"{NAMESPACES}><channel>{inner}</channel></rss>'.encode(), url=url)


def item(inner: str) -> Entry:
    (entry,) = channel(f"<item>{inner}</item>").entries
    return entry


def test_a_whole_item() -> None:
    entry = item(
        "<title>On &lt;b&gt;rivers&lt;/b&gt; &amp;amp; rain</title><link>https://e.org/1</link>"
        "<guid>urn:1</guid>"
        "<pubDate>Tue, 03 Mar 2020 10:11:12 GMT</pubDate><author>ann@e.org (Ann Lee)</author>"
        "<category>Water</category><category> Rain </category><category>Water</category>"
        "<description>Short</description><content:encoded><![CDATA[<p>Long</p>]]></content:encoded>"
        '<enclosure url="https://e.org/a.mp3" type="audio/mpeg" length="123"/>'
        "<itunes:duration>1:02:03</itunes:duration>"
        "<comments>https://e.org/1#c</comments><wfw:commentRss>https://e.org/1/feed</wfw:commentRss>"
        '<slash:comments>7</slash:comments><source url="https://s.org/feed">Source</source>'
        "<dc:language>en-GB</dc:language><georss:point>1 2</georss:point>"
        '<media:thumbnail url="https://e.org/t.png"/>'
        '<podcast:chapters url="https://e.org/c.json" type="application/json+chapters"/>'
        '<podcast:transcript url="https://e.org/t.vtt" type="text/vtt" language="en"/>'
        "<atom:updated>2020-03-04T00:00:00Z</atom:updated>"
    )
    assert entry == Entry(
        id="urn:1",
        link="https://e.org/1",
        title="On rivers & rain",
        authors=(Person(name="Ann Lee", email="ann@e.org"),),
        published=datetime(2020, 3, 3, 10, 11, 12, tzinfo=UTC),
        updated=datetime(2020, 3, 4, tzinfo=UTC),
        summary="Short",
        content="<p>Long</p>",
        categories=("Water", "Rain"),
        enclosures=(Enclosure("https://e.org/a.mp3", "audio/mpeg", 123, None, 3723.0),),
        image="https://e.org/t.png",
        language="en-GB",
        comments_url="https://e.org/1#c",
        comments_feed="https://e.org/1/feed",
        comments_count=7,
        source_title="Source",
        source_url="https://s.org/feed",
        extras={
            "points": [{"point": "1 2"}],
            "chapter_files": [{"url": "https://e.org/c.json", "type": "application/json+chapters"}],
            "transcripts": [{"url": "https://e.org/t.vtt", "type": "text/vtt", "language": "en"}],
        },
    )


def test_a_whole_channel() -> None:
    feed = channel(
        "<title>Streams</title><link>https://e.org/</link>"
        "<description>All &lt;i&gt;of&lt;/i&gt; them</description>"
        "<language>en</language><managingEditor>Ann Lee &lt;ann@e.org&gt;</managingEditor>"
        "<copyright>CC</copyright>"
        "<pubDate>Tue, 03 Mar 2020 10:11:12 GMT</pubDate>"
        "<lastBuildDate>Wed, 04 Mar 2020 00:00:00 GMT</lastBuildDate>"
        "<category>Water</category><generator>Pen</generator><ttl>90</ttl>"
        "<skipHours><hour>0</hour><hour>24</hour><hour>7</hour><hour>x</hour></skipHours>"
        "<skipDays><day>Sunday</day><day>monday</day><day>Blursday</day></skipDays>"
        "<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>"
        "<image><url>/logo.png</url><title>t</title><link>l</link></image><atom:icon>/i.ico</atom:icon>"
        '<atom:link rel="self" href="https://e.org/feed"/><atom:link rel="hub" href="https://hub.org/"/>'
        '<atom:link rel="next" href="https://e.org/feed?page=2"/><atom:id>urn:feed</atom:id>'
    )
    assert feed == Feed(
        format="rss-2.0",
        title="Streams",
        id="urn:feed",
        link="https://e.org/",
        description="All <i>of</i> them",
        language="en",
        icon="https://host.example/i.ico",
        image="https://host.example/logo.png",
        authors=(Person(name="Ann Lee", email="ann@e.org"),),
        categories=("Water",),
        generator="Pen",
        rights="CC",
        published=datetime(2020, 3, 3, 10, 11, 12, tzinfo=UTC),
        updated=datetime(2020, 3, 4, tzinfo=UTC),
        self_link="https://e.org/feed",
        next_link="https://e.org/feed?page=2",
        hub_links=("https://hub.org/",),
        hints=Hints(ttl_seconds=5400.0, update_period_seconds=21_600.0, skip_hours=(0, 7), skip_days=(0, 6)),
    )
    assert feed.author == "Ann Lee"
    assert feed.metadata.site_url == "https://e.org/"


@pytest.mark.parametrize(
    ("inner", "link"),
    [
        ("<link>https://e.org/a</link>", "https://e.org/a"),
        ("<link>  https://e.org/a\n</link>", "https://e.org/a"),
        ("<link><![CDATA[https://e.org/a?b&c]]></link>", "https://e.org/a?b&c"),
        ("<link/><guid>https://e.org/a</guid>", "https://e.org/a"),
        ('<guid isPermaLink="false">https://e.org/a</guid>', None),
        ('<guid isPermaLink="true">/a</guid>', "https://site.org/a"),
        ("<guid>tag:e.org,2020:1</guid>", None),
        ('<atom:link href="https://e.org/a"/>', "https://e.org/a"),
        ('<atom:link rel="self" href="https://e.org/feed"/>', None),
        ('<link rel="alternate" href="https://e.org/a"/>', "https://e.org/a"),
        ("<link>/a</link>", "https://site.org/a"),  # relative to the site, not to the feed's host
    ],
)
def test_link(inner: str, link: str | None) -> None:
    feed = channel(f"<link>https://site.org/</link><item>{inner}</item>")
    assert feed.entries[0].link == link


def test_relative_links_without_a_site_are_relative_to_the_document() -> None:
    assert item("<link>a</link>").link == "https://host.example/a"


def test_links_in_bodies_are_resolved() -> None:
    feed = channel(
        '<link>https://site.org/</link><item><description>&lt;a href="/x"&gt;</description></item>'
    )
    assert feed.entries[0].summary == '<a href="https://site.org/x">'


@pytest.mark.parametrize(
    ("inner", "people"),
    [
        ("<author>ann@e.org</author>", [Person(email="ann@e.org")]),
        ("<author>Ann Lee</author>", [Person(name="Ann Lee")]),
        (
            "<dc:creator>Ann Lee</dc:creator><dc:creator>Bo</dc:creator>",
            [Person(name="Ann Lee"), Person(name="Bo")],
        ),
        ("<dc:creator>Ann Lee (mailto:ann@e.org)</dc:creator>", [Person(name="Ann Lee (mailto:ann@e.org)")]),
        ("<itunes:author>Ann &amp;amp; Bo</itunes:author>", [Person(name="Ann & Bo")]),
        (
            "<atom:author><atom:name>Ann</atom:name><atom:email>ann@e.org</atom:email></atom:author>",
            [Person(name="Ann", email="ann@e.org")],
        ),
        (
            "<author><name>Ann</name><uri>/ann</uri></author>",
            [Person(name="Ann", url="https://host.example/ann")],
        ),
        ("", []),
    ],
)
def test_authors(inner: str, people: list[Person]) -> None:
    assert list(item(inner).authors) == people


@pytest.mark.parametrize(
    ("inner", "published", "updated"),
    [
        ("<pubDate>2020-03-03</pubDate>", 3, None),
        ("<dc:date>2020-03-03</dc:date>", 3, 3),
        ("<pubDate>nonsense</pubDate><dc:date>2020-03-03</dc:date>", 3, 3),
        ("<pubDate>2020-03-03</pubDate><dcterms:modified>2020-03-05</dcterms:modified>", 3, 5),
        ("<atom:published>2020-03-03</atom:published><atom:updated>2020-03-05</atom:updated>", 3, 5),
        ("<pubDate>soon</pubDate>", None, None),
    ],
)
def test_dates(inner: str, published: int | None, updated: int | None) -> None:
    entry = item(inner)
    assert (entry.published.day if entry.published else None) == published
    assert (entry.updated.day if entry.updated else None) == updated


def test_media_group() -> None:
    entry = item(
        "<media:group><media:title>Film</media:title><media:description>About</media:description>"
        '<media:content url="https://e.org/a.mp4" type="video/mp4" fileSize="9" duration="60"/>'
        '<media:content url="https://e.org/a.webm" type="video/webm"/>'
        '<media:content url="https://e.org/p.jpg" medium="image"/></media:group>'
    )
    assert entry.title == "Film"
    assert entry.summary == "About"
    assert [file.url for file in entry.enclosures] == ["https://e.org/a.mp4", "https://e.org/a.webm"]
    assert entry.enclosures[0] == Enclosure("https://e.org/a.mp4", "video/mp4", 9, None, 60.0)
    assert entry.image == "https://e.org/p.jpg"


def test_one_enclosure_for_each_address() -> None:
    entry = item(
        '<enclosure url="https://e.org/a.mp3" length="5" type="audio/mpeg"/>'
        '<media:content url="https://e.org/a.mp3" duration="30"><media:title>Talk</media:title>'
        "</media:content>"
    )
    assert entry.enclosures == (Enclosure("https://e.org/a.mp3", "audio/mpeg", 5, "Talk", 30.0),)


@pytest.mark.parametrize(
    ("document", "format_name", "count"),
    [
        ('<rss version="0.91"><channel><item/></channel></rss>', "rss-0.91", 1),
        ('<rss version="2.0"><channel/></rss>', "rss-2.0", 0),
        ("<rss/>", "rss", 0),
        ("<rss><item/><item/></rss>", "rss", 2),
        ("<channel><item/></channel>", "rss", 1),
        ('<CHANNEL HREF="x"><ITEM HREF="https://e.org/1"/></CHANNEL>', "cdf", 1),
        ('<rss xmlns="http://made.up/" version="2.0"><channel><item/></channel></rss>', "rss-2.0", 1),
        ('<r:rss xmlns:r="http://backend.userland.com/rss2" version="2.0"><r:channel><r:item/></r:channel>'
         "</r:rss>",
         "rss-2.0", 1),
        ('<Channel xmlns="http://purl.org/net/rss1.1#"><items><item/></items></Channel>', "rss", 1),
        ('<RSS version="2.0"><Channel><Item/></Channel></RSS>', "rss-2.0", 1),
    ],
)  # fmt: skip
def test_shapes(document: str, format_name: str, count: int) -> None:
    feed = parse(document.encode())
    assert (feed.format, len(feed.entries)) == (format_name, count)


def test_rdf() -> None:
    feed = parse(
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
        b' xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://e.org/rdf">'
        b"<title>T</title>"
        b"<link>https://e.org/</link><items><rdf:Seq><rdf:li resource='https://e.org/1'/></rdf:Seq></items>"
        b"</channel><image><url>/i.png</url></image>"
        b'<item rdf:about="https://e.org/1"><title>One</title><dc:date>2020-03-03T00:00:00Z'
        b"</dc:date></item></rdf:RDF>"
    )
    assert feed.format == "rss-1.0"
    assert (feed.title, feed.id, feed.link) == ("T", "https://e.org/rdf", "https://e.org/")
    (entry,) = feed.entries
    assert (entry.id, entry.link, entry.title) == ("https://e.org/1", "https://e.org/1", "One")


def test_netscape_rdf() -> None:
    feed = parse(
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://my.netscape.com/rdf/simple/0.9/">'
        b"<channel><title>T</title></channel><item><title>One</title></item></rdf:RDF>"
    )
    assert (feed.format, len(feed.entries)) == ("rss-0.90", 1)


def test_unescaped_markup_in_a_description_is_kept() -> None:
    entry = item("<description><p>Hi <b>you</b></p></description>")
    assert entry.summary == "<p>Hi <b>you</b></p>"


def test_xhtml_body() -> None:
    entry = item('<body xmlns="http://www.w3.org/1999/xhtml"><p>Hi<br/>you</p></body>')
    assert entry.content == "<p>Hi<br>you</p>"


def test_original_link_of_feedburner_is_the_address_of_an_item() -> None:
    data = (
        b'<rss version="2.0" xmlns:f="http://rssnamespace.org/feedburner/ext/1.0"><channel><item>'
        b"<link>http://feedproxy.google.com/~r/x/1</link><f:origLink>https://e.org/1</f:origLink></item></channel></rss>"
    )
    assert parse(data).entries[0].link == "https://e.org/1"


def test_nested_categories_are_read() -> None:
    data = (
        b"<rss><channel><item><title>x</title><categories><category>a</category><category>b</category></categories>"
        b"</item></channel></rss>"
    )
    assert parse(data).entries[0].categories == ("a", "b")
