"""Feeds injured in many ways keep nearly all entries, and never lose all of them in silence."""

import json
import re
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from headwater.errors import ParseError
from headwater.formats.feeds.parse import parse

ITEMS = 12
NAMESPACES = (
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/"'
    ' xmlns:media="http://search.yahoo.com/mrss/" xmlns:atom="http://www.w3.org/2005/Atom"'
)


def make_rss() -> bytes:
    items = "".join(
        f"<item>\n<title>River {n} &amp; Söhne</title>\n<link>https://e.org/{n}</link>\n<dc:creator>Ann</dc:creator>\n"
        f'<guid isPermaLink="false">tag:e.org,{n}</guid>\n<category>Water</category>\n'
        f"<description>&lt;p&gt;Short &lt;b&gt;text&lt;/b&gt;&lt;/p&gt;</description>\n"
        f'<content:encoded><![CDATA[<p>Long <a href="/x">text</a> 1 < 2</p>]]></content:encoded>\n'
        f'<media:content url="https://e.org/{n}.png" medium="image"/>\n</item>\n'
        for n in range(ITEMS)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" {NAMESPACES}>\n<channel>\n<title>Rivers</title>\n'
        '<link>https://e.org/</link>\n<atom:link rel="self" href="https://e.org/feed"/>\n<description>All</description>\n'
        '<site xmlns="com-wordpress:feed-additions:1">7</site>\n<image><url>https://e.org/i.png</url></image>\n'
        f"{items}</channel>\n</rss>\n"
    ).encode()


def make_atom() -> bytes:
    entries = "".join(
        f'<entry>\n<title type="html">River {n}</title>\n<link rel="alternate" href="https://e.org/{n}"/>\n'
        f"<id>tag:e.org,{n}</id>\n<updated>2026-01-02T03:04:05Z</updated>\n<author><name>Ann</name></author>\n"
        f'<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Long <b>text</b></p></div></content>\n'
        "</entry>\n"
        for n in range(ITEMS)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n<title>Rivers</title>\n'
        f'<link href="https://e.org/"/>\n<id>tag:e.org,feed</id>\n{entries}</feed>\n'
    ).encode()


def make_rdf() -> bytes:
    items = "".join(
        f'<item rdf:about="https://e.org/{n}">\n<title>River {n}</title>\n<link>https://e.org/{n}</link>\n'
        "<dc:date>2026-01-02</dc:date>\n</item>\n"
        for n in range(ITEMS)
    )
    return (
        '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        f' xmlns="http://purl.org/rss/1.0/" {NAMESPACES}>\n<channel rdf:about="https://e.org/"><title>Rivers</title>'
        f"<items><rdf:Seq/></items></channel>\n{items}</rdf:RDF>\n"
    ).encode()


def make_json() -> bytes:
    items = [
        {
            "id": f"tag:e.org,{n}",
            "url": f"https://e.org/{n}",
            "title": f"River {n} & Söhne",
            "content_html": '<p>Long <a href="/x">text</a></p>',
            "date_published": "2026-01-02T03:04:05Z",
            "tags": ["Water", "Stone"],
            "attachments": [{"url": f"https://e.org/{n}.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 9}],
        }
        for n in range(ITEMS)
    ]
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "Rivers", "items": items}
    return json.dumps(feed, indent=1, ensure_ascii=False).encode()


JSON = make_json()
FEEDS = {"rss": make_rss(), "atom": make_atom(), "rdf": make_rdf()}
Injury = Callable[[bytes, Random], bytes]


def insert(extra: bytes) -> Injury:
    """Something in a text of an item."""

    def injure(data: bytes, rng: Random) -> bytes:
        texts = [
            match for match in re.finditer(rb">[^<>\n]{3,}<", data) if match.start() > data.find(b"River 0")
        ]
        at = rng.choice(texts).start() + 2
        return data[:at] + extra + data[at:]

    return injure


def insert_between(extra: bytes) -> Injury:
    """Something between two items."""

    def injure(data: bytes, rng: Random) -> bytes:
        at = rng.choice([match.end() for match in re.finditer(rb"</(?:item|entry)>", data)])
        return data[:at] + extra + data[at:]

    return injure


def change(pattern: bytes, replacement: bytes, count: int = 0) -> Injury:
    return lambda data, rng: re.sub(pattern, replacement, data, count=count)


def lose(pattern: bytes) -> Injury:
    """One of the places that a pattern finds."""

    def injure(data: bytes, rng: Random) -> bytes:
        match = rng.choice(list(re.finditer(pattern, data)))
        return data[: match.start()] + data[match.end() :]

    return injure


def at_random(injure: Callable[[bytes, int, Random], bytes]) -> Injury:
    return lambda data, rng: injure(data, rng.randrange(data.find(b"River 0"), len(data)), rng)


def recode(data: bytes, encoding: str) -> bytes:
    return re.sub(_DECLARATION, b"", data).strip().decode().encode(encoding)


def swap_end_tags(data: bytes, rng: Random) -> bytes:
    ends = list(re.finditer(rb"</[\w:]+>", data))
    first = rng.randrange(len(ends) - 1)
    one, two = ends[first], ends[first + 1]
    return data[: one.start()] + two[0] + data[one.end() : two.start()] + one[0] + data[two.end() :]


_DECLARATION = rb"<\?xml[^>]*\?>"
INJURIES: dict[str, Injury] = {
    "end tag lost": lose(rb"</\w[\w:]*>"),
    "start tag lost": lose(rb"<(?!rss|feed|rdf|\?xml)\w[\w:]*[^<>/]*>"),
    "quote lost": lose(rb'"(?=[ />])'),
    "root start lost": change(rb"<(?:rss|feed|rdf:RDF)\b[^>]*>", b"", 1),
    "root misspelt": change(rb"<(rss|feed|rdf:RDF)\b", rb"<x\1", 1),
    "root closed at once": change(rb"(<(?:rss|feed|rdf:RDF)\b[^>]*)>", rb"\1/>", 1),
    "root closed at once, odd namespace": change(
        rb"(<(?:rss|feed|rdf:RDF)\b[^>]*)>", rb'\1 xmlns:x="a b"/>', 1
    ),
    "root end lost": change(rb"</(?:rss|feed|rdf:RDF)>", b""),
    "channel and root ends lost": change(rb"</(?:channel|rss|feed|rdf:RDF)>", b""),
    "item ends lost": change(rb"</(?:item|entry)>", b""),
    "title ends lost": change(rb"</title>", b""),
    "link ends lost": change(rb"</link>", b""),
    "title ends misspelt": change(rb"</title>", b"</titel>"),
    "spaces in end tags": change(rb"</(\w+)>", rb"</ \1 >"),
    "namespaces undeclared": change(rb'\sxmlns:[\w-]+="[^"]*"', b""),
    "upper case": lambda data, rng: re.sub(rb"</?[a-zA-Z:]+", lambda match: match[0].upper(), data),
    "bare less-than": insert(b" 3<4 <3 a<b "),
    "bare ampersands": insert(b" & &nbsp; &foo; &#xZZ; &#0; "),
    "HTML in text": insert(b'<br><p>x<img src="x.png" alt="5 > 4" width=10>'),
    "script in text": insert(b"<script>if (a<b && c>d) { write('<p>'); }</script>"),
    "CDATA without end": insert(b"<![CDATA["),
    "CDATA in the head without end": change(rb"Rivers</title>", b"<![CDATA[Rivers", 1),
    "CDATA in the head begun often": change(rb"Rivers</title>", b"<![CDATA[" * 9 + b"Rivers", 1),
    "quote lost in the head": change(rb'(<(?:atom:)?link [^>]*href="[^">]*)"', rb"\1", 1),
    "tag cut in the head": change(rb"</title>\s*<", b'</title><x y="', 1),
    "CDATA end and comment": insert(b"]]> <!-- x "),
    "control characters": insert(b"\x08\x00\x1b"),
    "foreign bytes": insert("Ünï “x”".encode("cp1252")),
    "warning between items": insert_between(
        b"<br />\n<b>Notice</b>: x in <b>/a.php</b> on line <b>12</b><br />"
    ),
    "comment without end": insert_between(b"<!-- advertisement "),
    "byte order mark between items": insert_between(b"\xef\xbb\xbf"),
    "DOCTYPE between items": insert_between(b"<!DOCTYPE html>"),
    "warning before": lambda data, rng: b"<br />\n<b>Warning</b>: x on line <b>3</b><br />\n" + data,
    "declaration doubled": lambda data, rng: b'<?xml version="1.0"?>\n' + data,
    "page after": lambda data, rng: data + b"<!DOCTYPE html><html><body><form><input></form></body></html>",
    "JSON after": lambda data, rng: data + b'{"error": "x"}',
    "page around": lambda data, rng: (
        b"<html><body><div>" + re.sub(_DECLARATION, b"", data) + b"</div></body></html>"
    ),
    "document doubled": lambda data, rng: data + data,
    "UTF-16 declared": change(_DECLARATION, b'<?xml version="1.0" encoding="utf-16"?>'),
    "unknown encoding declared": change(_DECLARATION, b'<?xml version="1.0" encoding="x-unknown"?>'),
    "UTF-16 without a mark": lambda data, rng: (
        re.sub(_DECLARATION, b"", data).strip().decode().encode("utf-16-le")
    ),
    "UTF-16 without a mark, space before": lambda data, rng: recode(b"\n \n" + data, "utf-16-be"),
    "UTF-16 behind the mark of the other": lambda data, rng: b"\xff\xfe" + recode(data, "utf-16-be"),
    "UTF-16 behind the mark of UTF-8": lambda data, rng: b"\xef\xbb\xbf" + recode(data, "utf-16-le"),
    "UTF-16 with a byte too many": lambda data, rng: b"\xff\xfe" + recode(data, "utf-16-le") + b"x",
    "UTF-32 without a mark": lambda data, rng: recode(data, "utf-32-le"),
    "UTF-8 behind the mark of UTF-16": lambda data, rng: b"\xff\xfe" + data,
    "EBCDIC declared": change(_DECLARATION, b'<?xml version="1.0" encoding="cp037"?>'),
    "XML 1.1": change(_DECLARATION, b'<?xml version="1.1"?>'),
    "end tags swapped": swap_end_tags,
    "root doubled": change(rb"(<(?:rss|feed|rdf:RDF)\b[^>]*>)", rb"\1\1", 1),
    "root end doubled": change(rb"(</(?:rss|feed|rdf:RDF)>)", rb"\1\1"),
    "root ends in the middle": insert_between(b"</channel></rss></feed></rdf:RDF>"),
    "namespaces rebound": change(rb"<(item|entry)([ >])", rb'<\1 xmlns:dc="urn:x" xmlns:media="urn:y"\2'),
    "declaration between items": insert_between(b'\xef\xbb\xbf<?xml version="1.0"?>'),
    "spaces before names of tags": change(rb"<(/?)(title|link|item|entry|guid|id)>", rb"< \1\2>"),
    "quotes of a word processor": change(rb'="([^" ]*)"', "=“\\1”".encode()),
    "DOCTYPE without an end": change(_DECLARATION, b'<!DOCTYPE rss [<!ENTITY nbsp "&#160;">'),
    "references without semicolons": change(rb"&(amp|lt|gt);(?!\w)", rb"&\1"),
    "page with a list around": lambda data, rng: (
        b"<!DOCTYPE html><html><body><nav><ul><li><a href=/>Home</ul></nav><main>"
        + data
        + b"</main></body></html>"
    ),
    "chunks not joined": lambda data, rng: b"".join(
        b"%x\r\n%b\r\n" % (len(part), part) for part in re.findall(rb"(?s).{1,1500}", data)
    ),
    "NUL between tags": change(rb">\s*<", b">\x00<"),
    "byte changed": at_random(
        lambda data, at, rng: data[:at] + bytes((rng.randrange(256),)) + data[at + 1 :]
    ),
    "bytes lost": at_random(lambda data, at, rng: data[:at] + data[at + rng.randrange(40) :]),
    "bytes doubled": at_random(lambda data, at, rng: data[: at + rng.randrange(40)] + data[at:]),
}
JSON_INJURIES: dict[str, Injury] = {
    "comma behind the last": change(rb"(\n\s*[}\]])", rb",\1"),
    "commas lost": change(rb'",\n', b'"\n'),
    "quote in a text": change(rb'"River 7', rb'"River "7"'),
    "control characters": change(rb'"River', b'"\x08\tRiver'),
    "wrong escapes": change(rb'"River', rb'"\\x\\qRiver'),
    "half a surrogate": change(rb"Long", rb"\\ud83d Long"),
    "words of Python": change(rb'"tags":', b'"a": True, "b": None, "c": NaN, "tags":'),
    "names without quotes": change(rb'"(\w+)":', rb"\1:"),
    "single quotes": lambda data, rng: data.replace(b"'", b"").replace(b'\\"', b"").replace(b'"', b"'"),
    "comments": change(rb'"tags"', b'/* "tags": [ */ // x\n"tags"'),
    "end of an item lost": change(rb"\n  \},\n(?=  \{)", b",\n", 1),
    "start of an item lost": change(rb"(\},\n)  \{", rb"\1", 1),
    "end of a list lost": change(rb'"Stone"\s*\]', b'"Stone"', 1),
    "junk behind": lambda data, rng: data + b'\n<!-- cached -->{"error": 1}',
    "document doubled": lambda data, rng: data + data,
    "object for a list": lambda data, rng: json.dumps(
        {**json.loads(data), "items": dict(enumerate(json.loads(data)["items"]))}
    ).encode(),
    "Windows-1252": lambda data, rng: data.decode().encode("cp1252"),
    "UTF-16": lambda data, rng: data.decode().encode("utf-16"),
    "foreign bytes": change(rb"Long", b"Long \xff\xfe"),
    "byte lost": at_random(lambda data, at, rng: data[:at] + data[at + 1 :]),
}
TRIALS = 12
LEAST_KEPT = 0.9  # an injury may cost the item that it is in


def entries_of(data: bytes) -> Counter[tuple[str, str | None]]:
    return Counter((entry.title, entry.link) for entry in parse(data).entries)


@pytest.mark.parametrize("injury", INJURIES)
@pytest.mark.parametrize("format", FEEDS)
def test_parse_injured_feed_keeps_entries(format: str, injury: str) -> None:
    data = FEEDS[format]
    whole = entries_of(data)
    kept = 0
    for seed in range(TRIALS):
        found = entries_of(INJURIES[injury](data, Random(seed)))
        assert found, f"seed {seed} lost every entry in silence"
        kept += (whole & found).total()
    assert kept >= LEAST_KEPT * TRIALS * ITEMS


@pytest.mark.parametrize("injury", JSON_INJURIES)
def test_parse_injured_json_feed_keeps_entries(injury: str) -> None:
    whole = Counter(entry.link for entry in parse(JSON).entries)
    kept = 0
    for seed in range(TRIALS):
        found = Counter(entry.link for entry in parse(JSON_INJURIES[injury](JSON, Random(seed))).entries)
        assert found, f"seed {seed} lost every entry in silence"
        kept += (whole & found).total()
    assert kept >= LEAST_KEPT * TRIALS * ITEMS


def test_parse_json_feed_cut_anywhere_keeps_whole_entries_or_fails() -> None:
    for end in range(0, len(JSON), 37):
        whole_entries = JSON[:end].count(b"\n  }")
        try:
            feed = parse(JSON[:end])
        except ParseError:
            assert whole_entries == 0
        else:
            assert len(feed.entries) >= whole_entries
            assert [repair.kind for repair in feed.repairs] == ["ill_formed_json"]


@pytest.mark.parametrize("items", [b'"x"', b"[1, 2]", b'["a"]'])
def test_parse_json_feed_whose_items_cannot_be_read_fails(items: bytes) -> None:
    with pytest.raises(ParseError):
        parse(b'{"version": "https://jsonfeed.org/version/1.1", "items": ' + items + b"}")


@pytest.mark.parametrize("format", FEEDS)
def test_parse_feed_cut_anywhere_keeps_whole_entries_or_fails(format: str) -> None:
    data = FEEDS[format]
    for end in range(0, len(data), 37):
        whole_entries = len(re.findall(rb"</(?:item|entry)>", data[:end]))
        try:
            found = parse(data[:end]).entries
        except ParseError:
            assert whole_entries == 0
        else:
            assert len(found) >= whole_entries
