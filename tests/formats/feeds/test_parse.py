"""What the door to reading promises: a feed or a ParseError, in bounded time, whatever the bytes are."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from headwater.errors import FailureKind, ParseError
from headwater.formats.feeds.feed import Entry, Feed, Person, external_id, to_item
from headwater.formats.feeds.parse import parse
from headwater.formats.limits import MOST_ENTRIES
from headwater.formats.xml import tree
from headwater.language import translate
from headwater.model import Repair, RepairKind

END = b"</channel></rss>"
HEAD = b'<rss version="2.0"><channel><title>T</title>'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "The document is empty."),
        (b" \n\x00", "The document is empty."),
        (b"garbage", "This is neither XML nor JSON, so not a feed."),
        (b"<!doctype html><html><body>x<br></body></html>", "This is a web page, not a feed."),
        (b"<html xmlns='http://www.w3.org/1999/xhtml'><body/></html>", "This is a web page, not a feed."),
        (b"<urlset/>", "This is a sitemap, not a feed."),
        (b"<opml/>", "This is an OPML list of feeds, not a feed."),
        (b"<note><to>x</to></note>", "This is not a feed: its root element is <note>."),
    ],
)
def test_what_is_no_feed_is_named(data: bytes, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(data)
    assert str(caught.value) == message
    assert translate(caught.value.template, "zh") != caught.value.template


def test_too_large_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_BYTES", 100)
    with pytest.raises(ParseError) as caught:
        parse(HEAD + b" " * 100)
    assert caught.value.kind is FailureKind.TOO_LARGE


@pytest.mark.parametrize("kind", get_args(RepairKind))
def test_repair_of_any_kind_is_told_in_both_languages(kind: RepairKind) -> None:
    repair = Repair(kind, 12, "x")
    assert repair.render("en").startswith("Line 12: ")
    assert repair.render("zh").startswith("第 12 行：")
    assert not set("abcdefghij") & set(repair.render("zh").replace("JSON Feed", "").replace("XML", ""))


def bomb() -> bytes:
    names = "abcdefghijkl"
    entities = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise(names))
    first = f'<!ENTITY a "{"lol" * 100}">'
    return f"<!DOCTYPE x [{first}{entities}]><rss><channel><title>&l;</title></channel></rss>".encode()


@pytest.mark.parametrize(
    "data",
    [
        bomb(),
        b'<!DOCTYPE x [<!ENTITY a "' + b"A" * 50_000 + b'">]><rss><channel>' + b"&a;" * 50_000 + END,
        HEAD + b"<item>" + b"<a>" * 100_000 + b"x" + b"</a>" * 100_000 + b"</item></channel></rss>",
        HEAD + b"<item>" + b"<a>" * 300_000,
        HEAD + b"<item>" * 50_000,
        HEAD + b"<item><title>" + b"A" * 12_000_000 + b"</title></item></channel></rss>",
        HEAD + b"<" * 1_000_000,
        HEAD + b"&" * 1_000_000,
        HEAD + b"<!--" * 300_000,
        HEAD + b"<![CDATA[" * 300_000,
        HEAD + b'<a "<a" ' * 300_000,
        HEAD + b"<a>" * 150 + b"</b>" * 300_000,
        HEAD + b"<item><title>" + b"&lt;script" * 100_000 + b"</title></item></channel></rss>",
        HEAD + b"<item><title>" + b"&lt;!--" * 100_000 + b"</title></item></channel></rss>",
        HEAD + b"<item><author>" + b"a@" * 100_000 + b"</author></item></channel></rss>",
        HEAD + b"<item><description>" + b" src=a" * 200_000 + b"</description></item></channel></rss>",
        HEAD + b"<a " + b"".join(b"a%d='x' " % n for n in range(100_000)) + b">",
        b"\x00" * 1_000_000 + HEAD,
        HEAD + b"<item><title>\xff\xfe\x80 a\x00b</title></item></channel></rss>",
    ],
    ids=["laughs", "quadratic", "deep", "open", "items", "title", "lt", "amp", "comments", "cdata", "quote",
         "ends", "scripts", "title-text", "emails", "addresses", "attributes", "nul", "utf8"],
)  # fmt: skip
@pytest.mark.timeout(20)
def test_hostile_feeds_are_read_in_bounded_time(data: bytes) -> None:
    feed = parse(data, url="http://e.org/")
    assert feed.format.startswith("rss")
    assert len(feed.title) < 100_000


MEMORY = """
from headwater.formats.feeds.parse import parse
head = b'<rss version="2.0"><channel><title>T</title>'
parse(head + b"<item><title>" + b"A" * 20_000_000 + b"</title></item></channel></rss>")
parse(head + b"<item><title>" + "é ".encode("latin-1") * 10_000_000)
parse(head + b"".join(b"<item><title>t%d</title><guid>%d</guid></item>" % (n, n) for n in range(50_000)))
# The process's own high-water mark: its rusage would count what its parent held at the fork.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_hostile_feeds_are_read_in_bounded_memory() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, check=True, timeout=60)
    assert int(done.stdout) < 300 * 1024


@pytest.mark.timeout(60)
def test_parse_of_fifty_thousand_items_reads_the_first_and_counts_the_rest() -> None:
    items = b"".join(b"<item><title>t%d</title><guid>%d</guid></item>" % (n, n) for n in range(50_000))
    feed = parse(HEAD + items + b"</channel></rss>")
    assert (len(feed.entries), feed.left_out_count) == (MOST_ENTRIES, 50_000 - MOST_ENTRIES)
    assert not feed.repairs, "what is read of it is read strictly"
    assert feed.entries[-1].id == str(MOST_ENTRIES - 1)


def test_no_file_is_read_and_nothing_is_fetched(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("very secret")
    for subset in (
        f'<!ENTITY x SYSTEM "{secret.as_uri()}">',
        f'<!ENTITY % x SYSTEM "{secret.as_uri()}"> %x;',
    ):
        document = f"<!DOCTYPE rss [{subset}]><rss><channel><title>a&x;b</title></channel></rss>"
        assert "very secret" not in repr(parse(document.encode()))


def test_the_bytes_are_never_taken_for_a_file_name(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(HEAD + b"</channel></rss>")
    with pytest.raises(ParseError):
        parse(str(path).encode())


def test_identity_of_an_entry() -> None:
    assert external_id(Entry(id="urn:1", link="https://e.org/1", title="t")) == "urn:1"
    assert external_id(Entry(link="https://e.org/1", title="t")) == "https://e.org/1"
    hashed = external_id(Entry(title="t", content="c"))
    assert hashed.startswith("hash:")
    assert hashed == external_id(Entry(title="t", content="c", summary="s"))
    others = [Entry(title="t", content="d"), Entry(title="tc"), Entry(title="t"), Entry(), Entry(content="c")]
    assert len({hashed, *map(external_id, others)}) == 6


def test_an_entry_becomes_an_item() -> None:
    feed = parse(
        b'<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><author><name>Ann</name>'
        b"</author><entry><id>1</id>"
        b"<title>T</title><updated>1970-01-01T00:01:00Z</updated><link href='https://e.org/1'/>"
        b"</entry></feed>"
    )
    item = to_item(feed.entries[0], feed)
    assert (item.external_id, item.url, item.title, item.author) == ("1", "https://e.org/1", "T", "Ann")
    assert (item.published_at, item.updated_at, item.language) == (None, 60.0, "en")
    assert to_item(Entry(), Feed(format="rss-2.0", authors=(Person("Bo"),))).author == "Bo"
    assert to_item(Entry()).author is None


def test_parse_takes_text_as_well_as_bytes() -> None:
    text = "<?xml version='1.0' encoding='iso-8859-1'?><rss><channel><title>Düne 新闻</title></channel></rss>"
    assert parse(text).title == "Düne 新闻", "it is decoded already, whatever it says of itself"
    assert parse('{"version": "https://jsonfeed.org/version/1.1", "title": "é", "items": []}').title == "é"
    with pytest.raises(TypeError, match="parse takes the bytes or the text of a feed, not PosixPath"):
        parse(Path("feed.xml"))  # type: ignore[arg-type]
