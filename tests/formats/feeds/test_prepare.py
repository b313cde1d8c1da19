"""What the writers publish passes the validators of the field, with the most hostile content there is."""

import io
import re
from datetime import UTC, datetime
from typing import Any

import feedparser
import jsonschema
import orjson
import pytest
from lxml import etree

from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.write import MEDIA_TYPES, write_feed
from headwater.model import Enclosure

HOSTILE = {
    "control characters": "a\x00b\x08c\x0bd\x1be\x7ff\ufffeg\uffffh",
    "end of CDATA": "]]> <![CDATA[ ]]]]><![CDATA[> &#x5d;]&gt;",
    "script": "<script>alert(1)</script><img src=x onerror=alert(1)><a href='java\tscript:alert(1)'>x</a>",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \U0001f9d1\U0001f3fd",
    "right to left": "\u202eevil\u202c مرحبا שלום \u200f",
    "markup": "</title></item><item> & &amp; &lt; < > \" ' &nbsp; &bogus; <b>",
    "lone surrogate": "x\ud800y\udfffz",
    "long": "word " * 20_000,
    "nothing": "",
    "white space": " \t\n\r\u2028\u2029 ",
}
MOMENT = datetime(2025, 1, 2, 3, 4, 5, 678, tzinfo=UTC)

# https://www.jsonfeed.org/version/1.1/, as a schema.
TEXT: dict[str, Any] = {"type": "string"}
ADDRESS: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9+.-]*:"}
DATE: dict[str, Any] = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$",
}
AUTHORS: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": TEXT, "url": ADDRESS, "avatar": ADDRESS},
        "anyOf": [{"required": ["name"]}, {"required": ["url"]}, {"required": ["avatar"]}],
        "patternProperties": {"^_": {}},
        "additionalProperties": False,
    },
}
JSON_FEED: dict[str, Any] = {
    "type": "object",
    "required": ["version", "title", "items"],
    "properties": {
        "version": {"const": "https://jsonfeed.org/version/1.1"},
        "title": {"type": "string", "minLength": 1},
        "home_page_url": ADDRESS,
        "feed_url": ADDRESS,
        "description": TEXT,
        "user_comment": TEXT,
        "next_url": ADDRESS,
        "icon": ADDRESS,
        "favicon": ADDRESS,
        "authors": AUTHORS,
        "language": TEXT,
        "expired": {"type": "boolean"},
        "hubs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "url"],
                "properties": {"type": TEXT, "url": ADDRESS},
                "additionalProperties": False,
            },
        },
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id"],
                "anyOf": [{"required": ["content_html"]}, {"required": ["content_text"]}],
                "properties": {
                    "id": {"type": "string", "minLength": 1},
                    "url": ADDRESS,
                    "external_url": ADDRESS,
                    "title": TEXT,
                    "content_html": TEXT,
                    "content_text": TEXT,
                    "summary": TEXT,
                    "image": ADDRESS,
                    "banner_image": ADDRESS,
                    "date_published": DATE,
                    "date_modified": DATE,
                    "authors": AUTHORS,
                    "tags": {"type": "array", "items": TEXT},
                    "language": TEXT,
                    "attachments": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["url", "mime_type"],
                            "properties": {
                                "url": ADDRESS,
                                "mime_type": TEXT,
                                "title": TEXT,
                                "size_in_bytes": {"type": "number"},
                                "duration_in_seconds": {"type": "number"},
                            },
                            "patternProperties": {"^_": {}},
                            "additionalProperties": False,
                        },
                    },
                },
                "patternProperties": {"^_": {}},
                "additionalProperties": False,
            },
        },
    },
    "patternProperties": {"^_": {}},
    "additionalProperties": False,
}


def hostile_feed() -> Feed:
    entries = [
        Entry(
            id=f"urn:{number}",
            link=f"https://e.org/{number}?q=]]>&x=<y>",
            title=text,
            summary=text,
            content=f"<p>{text}</p>",
            published=MOMENT,
            authors=(Person(name=text, email=text, url="https://e.org/a"),),
            categories=(text,),
            enclosures=(Enclosure("https://e.org/f.mp3", text, 7, text, 1.5),),
        )
        for number, text in enumerate(HOSTILE.values())
    ]
    every = " ".join(HOSTILE.values())
    return Feed(
        format="",
        title=every,
        description=every,
        rights=every,
        generator=every,
        link="https://e.org/",
        self_link="https://e.org/feed",
        hub_links=("https://hub.example/",),
        authors=(Person(name=every),),
        entries=tuple(entries),
    )


@pytest.mark.parametrize("format", ["rss", "atom"])
def test_feedparser_reads_it_back_without_complaint(format: str) -> None:
    feed = feedparser.parse(
        io.BytesIO(write_feed(hostile_feed(), format)),
        response_headers={"content-type": MEDIA_TYPES[format]},
    )
    assert not feed.bozo, feed.get("bozo_exception")
    assert [entry.id for entry in feed.entries] == [f"urn:{n}" for n in range(len(HOSTILE))]
    assert [link.href for link in feed.feed.links if link.rel == "self"] == ["https://e.org/feed"]
    assert [link.href for link in feed.feed.links if link.rel == "hub"] == ["https://hub.example/"]
    titles = dict(zip(HOSTILE, (entry.title for entry in feed.entries), strict=True))
    assert titles["emoji"] == HOSTILE["emoji"]
    assert titles["right to left"].startswith("\u202eevil")
    assert titles["control characters"].startswith("abcde")


@pytest.mark.parametrize("format", ["rss", "atom"])
def test_it_is_xml_that_a_strict_parser_takes_and_nothing_in_it_runs(format: str) -> None:
    document = write_feed(hostile_feed(), format)
    root = etree.fromstring(document, etree.XMLParser(resolve_entities=False, recover=False))
    text = document.decode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", text)
    for element in root.iter(etree.Element):
        body = "".join(str(part) for part in element.itertext())
        if str(element.tag).endswith(("encoded", "content", "summary", "description", "subtitle")):
            assert not re.search(r"<script|onerror=|script:", body, re.IGNORECASE), element.tag


def test_rss_has_what_the_validator_asks_for() -> None:
    root: Any = etree.fromstring(write_feed(hostile_feed(), "rss"))
    (channel,) = root.findall("channel")
    for name in ("title", "link", "description"):
        assert len(channel.findall(name)) == 1
        assert channel.findtext(name).strip()
    dates = [channel.findtext("lastBuildDate"), *(item.findtext("pubDate") for item in channel.iter("item"))]
    for date in dates:
        assert re.fullmatch(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000", date)
    guids = [item.findtext("guid") for item in channel.iter("item")]
    assert len(set(guids)) == len(guids) == len(HOSTILE)
    for item in channel.iter("item"):
        assert item.findtext("title") or item.findtext("description")
        for enclosure in item.findall("enclosure"):
            assert {"url", "length", "type"} == set(enclosure.attrib)


def test_atom_has_what_its_rfc_asks_for() -> None:
    atom = "{http://www.w3.org/2005/Atom}"
    root: Any = etree.fromstring(write_feed(hostile_feed(), "atom"))
    assert root.tag == f"{atom}feed"
    for element in (root, *root.findall(f"{atom}entry")):
        for name in ("id", "title", "updated"):
            assert len(element.findall(atom + name)) == 1
        assert element.findtext(f"{atom}id")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", element.findtext(f"{atom}updated"))
        alternates = [link for link in element.findall(f"{atom}link") if link.get("rel") == "alternate"]
        assert len(alternates) == 1
    for author in root.iter(f"{atom}author"):
        assert author.findtext(f"{atom}name")


def test_json_feed_is_valid_by_its_schema() -> None:
    document = orjson.loads(write_feed(hostile_feed(), "json"))
    jsonschema.validate(document, JSON_FEED, jsonschema.Draft202012Validator)
    assert len({item["id"] for item in document["items"]}) == len(HOSTILE)
    for item in document["items"]:
        assert not re.search(r"<script|onerror=|script:", item.get("content_html", ""), re.IGNORECASE)


@pytest.mark.parametrize("format", MEDIA_TYPES)
def test_an_empty_feed_is_valid_too(format: str) -> None:
    data = write_feed(Feed(format=""), format)
    if format == "json":
        jsonschema.validate(orjson.loads(data), JSON_FEED, jsonschema.Draft202012Validator)
    else:
        assert not feedparser.parse(io.BytesIO(data)).bozo
