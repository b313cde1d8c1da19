"""Feeds that are not well-formed XML: what sense there is in them is read."""

import pytest

from headwater.formats.feed import Feed, parse
from headwater.formats.tree import NOTE_ILL_FORMED, NOTE_REPAIRED


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
    assert feed_of("<item></b></item>").notes == (NOTE_ILL_FORMED,)
    assert feed_of("<item><title>&nbsp;</title></item>").notes == (NOTE_REPAIRED,)
    assert feed_of("<item/>").notes == ()


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
