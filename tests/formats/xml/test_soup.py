"""Feeds that are not well-formed XML: what sense there is in them is read."""

import pytest

from headwater.errors import ParseError
from headwater.formats.feeds.feed import Feed
from headwater.formats.feeds.parse import parse
from headwater.model import Repair


def titles(inner: str) -> list[str]:
    return [entry.title for entry in feed_of(inner).entries]


def feed_of(inner: str) -> Feed:
    return parse(f'<rss version="2.0"><channel><title>T</title>{inner}</channel></rss>'.encode())


@pytest.mark.parametrize(
    "inner",
    [
        "<item><title>One</title></item><item><title>Two</title></item><br>",
        "<item><title>One</title><description>a<br>b<p>c</description></item><item><title>Two</title></item>",
        "<item><title>One</title><description><b>x</i></b></description></item><item><title>Two</title></item>",
        "<item><title>One</title><item><title>Two</title></item>",  # an item is not closed
        "<item><title>One<link>x</link></item><item><title>Two</title></item>",  # a title is not closed
        "<item><title>One</titel></item><item><title>Two</title></item>",  # a misspelt end tag
        "<item><title>One</title></b></item><item><title>Two</title></item>",  # a stray end tag
        "<item><title>One</title></item><item><title>Two</title></item",
        "<item><title>One</title></item><item><title>Two",
        "<item a=b c='d><title>One</title></item><item><title>Two</title></item>",
        "<item><title>One</title><x:y>z</x:y></item><item><title>Two</title></item>",  # an undeclared prefix
        "<item><title>One</title><a b='1' b='2'/></item><item><title>Two</title></item>",
        "<item><title>One</title></item><!-- open <item><title>Two</title></item>",
        "<item><title>One</title><description>1 < 2</description></item><item><title>Two</title></item>",
    ],
)
def test_both_items_are_found(inner: str) -> None:
    assert titles(inner) == ["One", "Two"]


def test_the_feed_says_that_it_was_damaged() -> None:
    assert [each.kind for each in feed_of("<item></b></item>").repairs] == ["ill_formed"]
    assert feed_of("<item><title>&nbsp;</title></item>").repairs == (Repair("characters"),)
    assert feed_of("<item/>").repairs == ()


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("AT&T", "AT&T"),
        ("a & b", "a & b"),
        ("caf&eacute;&nbsp;&hellip;", "café …"),
        ("&unknown;", "&unknown;"),
        ("?a=1&copy=2;x", "?a=1&copy=2;x"),
        ("&#8217;&#x2019;", "’’"),
        ("it&#146;s", "it’s"),  # a Windows-1252 number
        ("a&#0;&#8;b", "ab"),
        ("a\x08b\x00", "ab"),
        ("<![CDATA[&eacute; &amp; &]]> &eacute;", "é & & é"),
    ],
)
def test_references(written: str, title: str) -> None:
    assert titles(f"<item><title>{written}</title></item>") == [title]


def test_entities_of_the_document_itself() -> None:
    feed = parse(
        b'<!DOCTYPE rss [<!ENTITY me "Ann">]><rss><channel><title>&me;&nbsp;&me;</title></channel></rss>'
    )
    assert feed.title == "Ann Ann"


def test_entities_of_a_doctype_that_points_elsewhere() -> None:
    feed = parse(
        b'<!DOCTYPE rss SYSTEM "http://e.org/rss.dtd"><rss><channel><title>a&uuml;b</title><link>x</link></channel></rss>'
    )
    assert (feed.title, feed.link) == ("aüb", "x")


@pytest.mark.parametrize(
    "before",
    [
        "\n\n",
        "junk ",
        "<?xml version='1.0'?>\n\n",
        "<!-- c -->",
        "\ufeff",
        "<?xml version='1.0'?><?xml version='1.0'?>",
    ],
)
def test_what_stands_before_the_feed(before: str) -> None:
    assert parse(f"{before}<rss><channel><title>T</title></channel></rss>".encode()).title == "T"


def test_atom_links_without_an_end() -> None:
    feed = parse(
        b'<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://e.org/"><title>T</title>'
        b'<entry><link href="https://e.org/1"><title>One</title></entry></feed>'
    )
    assert (feed.link, feed.title) == ("https://e.org/", "T")
    assert (feed.entries[0].link, feed.entries[0].title) == ("https://e.org/1", "One")


def test_undeclared_prefixes_mean_what_they_always_mean() -> None:
    feed = feed_of(
        "<item><dc:creator>Ann</dc:creator><content:encoded>Body</content:encoded>"
        '<itunes:duration>60</itunes:duration><atom:link href="https://e.org/1"/></item>'
    )
    (entry,) = feed.entries
    assert (entry.author, entry.content, entry.link) == ("Ann", "Body", "https://e.org/1")


def test_a_feed_inside_something_else() -> None:
    assert parse(b"<wrapper><rss><channel><title>T</title></channel></rss></wrapper>").title == "T"


ONE, TWO = (
    f"<item><title>{name}</title><link>https://example.org/{name}</link></item>" for name in ("One", "Two")
)


@pytest.mark.parametrize(
    "inner",
    [
        f'<site xmlns="com-wordpress:feed-additions:1">7</site>{ONE}{TWO}<br>',  # its namespace ends with it
        f'<site xmlns="com-wordpress:feed-additions:1">7{ONE}{TWO}',
        f'<x:a xmlns:x="urn:a"><x:b xmlns:x="urn:b"></x:a>{ONE}{TWO}',
        f"<description>left open{ONE}{TWO}",
        f"<image><url>https://example.org/a.png{ONE}{TWO}",
        f"<a><b><c>{ONE}<d><e>{TWO}",
        f"<title>T</description>{ONE}{TWO}",
        f"</channel></rss>{ONE}{TWO}<b>",  # ended before it began
        f"{ONE}</channel>{TWO}</i>",
        f"{ONE}</rss>{TWO}</i>",
        ONE + TWO.removeprefix("<item>"),  # no start tag
        ONE.replace("<title>", "", 1) + TWO,
        ONE.replace("</item>", "<description>x<content:encoded>y") + TWO,
        ONE.replace("</item>", '<a href="x>y</a></item>') + TWO,
        ONE.replace("</item>", "<b><![CDATA[x</b></item>")
        + TWO.replace("</item>", "<b><![CDATA[y]]></b></item></i>"),
        ONE.replace("</item>", "<b><![CDATA[x</b></item>") + TWO,
        ONE.replace("</item>", "<b>]]> <!-- x</b></item>") + TWO + "<!-- y -->",
        ONE.replace("</item>", "<b></c></b></d></item>") + TWO,
        ONE.replace("item>", "ITEM>") + TWO + "</b>",
        f"{ONE}<script>if (a < b && c > d) {{}}</script>{TWO}",
        f'{ONE}<a b="1" b="2" c=d e>{TWO}',
        f"{ONE}<1a></1a><-><>{TWO}",
        f"{ONE}<?php echo 1; {TWO}".replace("<?php", "<?php ?>"),
        f"{ONE}<!DOCTYPE html>{TWO}</i>",
        f"{ONE}\x00\x1b{TWO}</i>",
        f"{ONE}<o:p></o:p>{TWO}</o:p>",
    ],
)
def test_damage_anywhere_leaves_both_items_with_title_and_link(inner: str) -> None:
    assert [(entry.title, entry.link) for entry in feed_of(inner).entries] == [
        ("One", "https://example.org/One"),
        ("Two", "https://example.org/Two"),
    ]


@pytest.mark.parametrize("prefix", ["", "a:", "atom:"])
def test_damaged_atom_with_any_prefix_keeps_its_entries(prefix: str) -> None:
    declared = f":{prefix[:-1]}" if prefix else ""
    entries = "".join(
        f"<{prefix}entry><{prefix}title>{name}</{prefix}title><{prefix}summary>x<b></{prefix}entry>"
        for name in ("One", "Two")
    )
    feed = parse(
        f'<{prefix}feed xmlns{declared}="http://www.w3.org/2005/Atom"><{prefix}title>T{entries}'.encode()
    )
    assert [entry.title for entry in feed.entries] == ["One", "Two"]


def test_missing_quote_ends_where_the_next_attribute_begins() -> None:
    file = '<enclosure url="https://example.org/a.mp3 length="12" type="audio/mpeg"/>'
    entry = feed_of(f"<item><title>One</title>{file}</item>").entries[0]
    assert (entry.enclosures[0].url, entry.enclosures[0].length) == ("https://example.org/a.mp3", 12)


def test_prefix_whose_element_has_ended_keeps_its_meaning() -> None:
    entry = feed_of(
        '<x xmlns:d="http://purl.org/dc/elements/1.1/"></x><item><d:creator>Jane</d:creator></item></b>'
    ).entries[0]
    assert entry.author == "Jane"


def test_items_in_a_wrapper_of_the_publishers_own_are_read_and_noted() -> None:
    feed = feed_of(f"<stories><list>{ONE}{TWO}</list></stories>")
    assert [entry.title for entry in feed.entries] == ["One", "Two"]
    assert feed.repairs == (Repair("misplaced_items", detail="2"),)


def test_items_nested_too_deeply_are_an_error_and_not_an_empty_feed() -> None:
    with pytest.raises(ParseError, match="none of them can be read"):
        parse((b"<rss><channel>" + b"<a>" * 300 + b"<item>" + b"<b>" * 5).replace(b"<item>", b"<c:item >"))


def test_repair_names_the_line_and_the_reason() -> None:
    (repair,) = parse(
        b'<?xml version="1.0"?>\n\n<rss><channel>\n<title>x</title>\n<item><title>One</item></channel></rss>'
    ).repairs
    assert (repair.kind, repair.line) == ("ill_formed", 5)
    assert repair.detail == "Opening and ending tag mismatch: title and item."
