from datetime import UTC, datetime

import pytest

from headwater.errors import ParseError
from headwater.formats.opml import (
    REASON_BAD_ADDRESS,
    REASON_DUPLICATE,
    REASON_NO_ADDRESS,
    Outline,
    Rejected,
    read_opml,
    write_opml,
)
from headwater.language import translate

OUTLINES = (
    Outline("https://e.org/feed?a=1&b=2", 'One <&> "it\'s"', "News / World", "https://e.org/", "About"),
    Outline("https://f.org/feed", "Two", "News"),
    Outline("https://g.org/sitemap.xml", "Three", None, type="web.sitemap"),
)


def test_round_trip() -> None:
    data = b"".join(write_opml(OUTLINES, title="Mine", created=datetime(2020, 3, 3, tzinfo=UTC)))
    opml = read_opml(data)
    assert opml.title == "Mine"
    assert set(opml.outlines) == set(OUTLINES)
    assert opml.rejected == ()
    assert b"Tue, 03 Mar 2020 00:00:00 +0000" in data


def test_bad_entries_are_reported_one_by_one() -> None:
    opml = read_opml(
        b'<opml version="1.0"><body><outline text="F"><outline text="Good" xmlUrl="https://e.org/feed"/>'
        b'<outline text="Empty"/><outline text="Mail" xmlUrl="mailto:x@e.org"/>'
        b'<outline text="Again" xmlUrl="https://e.org/feed"/></outline></body></opml>'
    )
    assert opml.outlines == (Outline("https://e.org/feed", "Good", "F"),)
    assert opml.rejected == (
        Rejected("Empty", "", REASON_NO_ADDRESS, "F"),
        Rejected("Mail", "mailto:x@e.org", REASON_BAD_ADDRESS, "F"),
        Rejected("Again", "https://e.org/feed", REASON_DUPLICATE, "F"),
    )
    for entry in opml.rejected:
        assert translate(entry.reason, "zh") != entry.reason


@pytest.mark.parametrize(
    "document",
    [
        '<OPML><BODY><OUTLINE TEXT="T" XMLURL="https://e.org/feed"/></BODY></OPML>',
        '<opml><body><outline text="T" xmlUrl=" https://e.org/feed "></body></opml>',
        '<opml><body><outline text="T" url="feed://https://e.org/feed"/></body></opml>',
        '<opml><body><outline title="T" xmlUrl="feed:https://e.org/feed"/></body></opml>',
        '\n<?xml version="1.0" encoding="utf-8"?><opml><body><outline text="T" xmlUrl="https://e.org/feed"',
        '<opml><outline text="T" xmlUrl="https://e.org/feed"/></opml>',
    ],
)
def test_tolerant_reading(document: str) -> None:
    assert read_opml(document.encode()).outlines == (Outline("https://e.org/feed", "T"),)


def test_bare_ampersands() -> None:
    opml = read_opml(b'<opml><body><outline text="A & B" xmlUrl="https://e.org/?a=1&b=2"/></body></opml>')
    assert opml.outlines == (Outline("https://e.org/?a=1&b=2", "A & B"),)


def test_category_stands_in_for_a_folder() -> None:
    opml = read_opml(
        b'<opml><body><outline text="T" xmlUrl="https://e.org/" category="/News,/Old"/></body></opml>'
    )
    assert opml.outlines[0].folder == "News"


def test_what_is_no_opml_is_refused() -> None:
    for data in (b"<rss/>", b"<html><body></body></html>", b"hello"):
        with pytest.raises(ParseError):
            read_opml(data)


def test_one_address_may_be_there_as_two_types() -> None:
    written = b"".join(
        write_opml([Outline("http://a.example/"), Outline("http://a.example/", type="web.sitemap")])
    )
    read = read_opml(written)
    assert [outline.type for outline in read.outlines] == [None, "web.sitemap"]
    assert read.rejected == ()


@pytest.mark.slow
def test_read_opml_list_of_a_hundred_thousand_feeds_is_read_whole() -> None:
    outlines = "".join(
        f'<outline type="rss" text="Feed {n}" title="Feed {n}" xmlUrl="https://e.org/{n}?a=1" htmlUrl="https://e.org/"/>'
        for n in range(100_000)
    )
    opml = read_opml(f'<opml version="2.0"><body>{outlines}</body></opml>'.encode())
    assert len(opml.outlines) == 100_000
    assert not opml.rejected
