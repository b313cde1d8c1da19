"""A feed inside of something else is read; a page that mentions a feed stays a page."""

import gzip
import html
import json
from collections.abc import Callable

import pytest

from headwater.errors import FailureKind, ParseError
from headwater.formats.feeds.parse import parse
from headwater.formats.xml import tree
from tests.formats.feeds.test_damage import FEEDS, ITEMS, JSON

DOCUMENTS = {**FEEDS, "json": JSON}
VIEWER = (
    b'<html><head><meta name="color-scheme" content="light dark"></head><body><pre style="white-space: pre-wrap;">'
    b"%b</pre></body></html>"
)


def escape(data: bytes) -> bytes:
    return html.escape(data.decode(), quote=False).encode()


@pytest.mark.parametrize(
    "wrap",
    [gzip.compress, lambda data: gzip.compress(gzip.compress(data)), lambda data: gzip.compress(data)[:-4]],
    ids=["gzip", "twice", "without its end"],
)
@pytest.mark.parametrize("format", DOCUMENTS)
def test_zipped_feed_is_read(format: str, wrap: Callable[[bytes], bytes]) -> None:
    feed = parse(wrap(DOCUMENTS[format]))
    assert feed == parse(DOCUMENTS[format])


def test_gzip_bomb_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_BYTES", 1_000_000)
    monkeypatch.setattr("headwater.formats.feeds.parse.MAX_BYTES", 1_000_000)
    with pytest.raises(ParseError) as caught:
        parse(gzip.compress(b" " * 50_000_000))
    assert caught.value.kind is FailureKind.TOO_LARGE


def test_damaged_gzip_is_an_error() -> None:
    with pytest.raises(ParseError) as caught:
        parse(b"\x1f\x8b" + bytes(40))
    assert caught.value.kind is FailureKind.MALFORMED


@pytest.mark.parametrize("format", DOCUMENTS)
def test_feed_that_a_browser_shows_as_text_is_read(format: str) -> None:
    feed = parse(VIEWER % escape(DOCUMENTS[format]))
    assert len(feed.entries) == ITEMS
    assert [(repair.kind, repair.detail) for repair in feed.repairs] == [("wrapped", "HTML")]


@pytest.mark.parametrize("format", FEEDS)
def test_escaped_feed_is_read(format: str) -> None:
    feed = parse(b"\n" + escape(FEEDS[format]))
    assert [entry.link for entry in feed.entries] == [entry.link for entry in parse(FEEDS[format]).entries]
    assert feed.repairs[0].kind == "wrapped"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"callback(", b");"),
        (b")]}',\n", b""),
        (b"<br />\n<b>Warning</b>: Undefined [x] {1} in <b>/x.php</b><br />\n", b""),
        (b"Notice: Undefined offset\n", b"\n<!-- cached -->"),
    ],
)
def test_json_feed_with_something_around_it_is_read(before: bytes, after: bytes) -> None:
    feed = parse(before + JSON + after)
    assert len(feed.entries) == ITEMS
    assert feed.repairs[0].kind == "wrapped"


@pytest.mark.parametrize(
    "page",
    [
        b"<html><body><h1>How to write RSS</h1><pre>%b</pre></body></html>" % escape(FEEDS["rss"]),
        b"<html><body><p>%b</p></body></html>" % escape(FEEDS["atom"]),
        b"<html><head><script>var feed = %b;</script></head><body>x</body></html>"
        % json.dumps({"title": "x", "items": []}).encode(),
    ],
)
def test_page_that_mentions_a_feed_is_a_page(page: bytes) -> None:
    with pytest.raises(ParseError, match="web page"):
        parse(page)
