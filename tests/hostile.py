"""Documents, texts and requests that try to take a process's time or memory. Each is made when it is asked for."""

import json
from collections.abc import Callable
from typing import Final

MILLION: Final = 1_000_000
WRAPPED: Final = b"http://search.yahoo.com/mrss/"


def rss(inside: bytes) -> bytes:
    return b'<rss version="2.0"><channel><title>Hostile</title>' + inside + b"</channel></rss>"


def item(body: bytes, number: int = 1) -> bytes:
    return b"<item><guid>%d</guid><title>River %d</title><description><![CDATA[%b]]></description></item>" % (
        number,
        number,
        body,
    )


def items(bodies: list[bytes]) -> bytes:
    return rss(b"".join(item(body, number) for number, body in enumerate(bodies)))


def json_feed(inside: bytes) -> bytes:
    return b'{"version": "https://jsonfeed.org/version/1.1", "title": "Hostile", "items": ' + inside + b"}"


# What an item's body may be made of, repeated; `{n}` counts.
BODIES: Final[dict[str, bytes]] = {
    "nested": b"<div>" * 190_000,
    "nested formats": b"".join(b"<font color=%d>" % n for n in range(60_000)),
    "misnested": b"<b><p></b><i></p>" * 50_000,
    "tables": b"<table><tr><td>" * 60_000,
    "drawings": b"<svg><desc><math><mi>" * 45_000,
    "less than": b"<" * 900_000,
    "open tags": b"<a " * 300_000,
    "open quotes": b"<a href=\"'" * 90_000,
    "attributes": b"<p " + b" ".join(b"a%d=b" % n for n in range(90_000)) + b">",
    "giant attribute": b'<p title="' + b"x" * 900_000 + b'">',
    "comments": b"<!--" * 200_000,
    "references": b"&#" * 400_000,
    "accents": "\u0315\u0300".encode() * 200_000,
    "relative links": b"<a href=x>" * 90_000,
    "schemes": b'<a href="java&#10;script:x">' * 30_000,
}

FEEDS: Final[dict[str, Callable[[], bytes]]] = {
    "one giant item": lambda: rss(item(b"<div>" * 1_500_000)),
    "less than": lambda: items([b"<" * 40_000] * 60),
    "many items": lambda: rss(b"".join(b"<item><guid>%d</guid></item>" % n for n in range(600_000))),
    "many entries": lambda: (
        b'<feed xmlns="http://www.w3.org/2005/Atom">'
        + b"".join(b"<entry><id>%d</id></entry>" % n for n in range(600_000))
        + b"</feed>"
    ),
    "many JSON items": lambda: json_feed(b"[" + b",".join(b'{"id":"%d"}' % n for n in range(600_000)) + b"]"),
    "deep elements": lambda: rss(b"<a>" * 900_000),
    "deep content": lambda: (
        b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id><content type="xhtml">'
        + b"<div>" * 900_000
        + b"</content></entry></feed>"
    ),
    "deep JSON": lambda: json_feed(b"[" * 1_900_000),
    "deep JSON values": lambda: json_feed(
        b'[{"id": "1", "x": ' + b'{"a":' * 1_000 + b"1" + b"}" * 1_000 + b"}]"
    ),
    "many attributes": lambda: rss(
        b"<item " + b" ".join(b'a%d=""' % n for n in range(900_000)) + b"><guid>1</guid></item>"
    ),
    "doubled attributes": lambda: rss(b"<item " + b'a="" ' * 2_000_000 + b"><guid>1</guid></item>"),
    "many namespaces": lambda: rss(
        b"<item " + b" ".join(b'xmlns:a%d="u"' % n for n in range(800_000)) + b"><guid>1</guid></item>"
    ),
    "giant attribute": lambda: rss(b'<item a="' + b"x" * 15 * MILLION + b'"><guid>1</guid></item>'),
    "giant title": lambda: rss(b"<item><guid>1</guid><title>" + b"x " * 8 * MILLION + b"</title></item>"),
    "giant address": lambda: rss(b"<item><link>" + b"../" * 5 * MILLION + b"</link></item>"),
    "many authors": lambda: rss(
        b"<item><guid>1</guid>" + b"<author>a@b.example (c)</author>" * 250_000 + b"</item>"
    ),
    "many files": lambda: rss(
        b"<item><guid>1</guid>" + b'<enclosure url="http://x.example/1"/>' * 250_000 + b"</item>"
    ),
    "many media": lambda: rss(
        b'<item xmlns:m="%b"><guid>1</guid>' % WRAPPED
        + b'<m:group><m:content url="http://x.example/1"/></m:group>' * 200_000
        + b"</item>"
    ),
    "ampersands": lambda: rss(
        b"<item><guid>1</guid><description>" + b"&" * 10 * MILLION + b"</description></item>"
    ),
    "references": lambda: rss(b"<item><guid>1</guid><title>" + b"&#1;" * 4 * MILLION + b"</title></item>"),
    "zeros": lambda: rss(b"\x00" * 15 * MILLION),
    "slow dates": lambda: rss(
        b"".join(
            b"<item><guid>%d</guid><pubDate>1111 %b 1 %b 1%b\x01</pubDate></item>"
            % (n, "년".encode(), "월".encode(), b" " * 100)
            for n in range(400)
        )
    ),
    "slow authors": lambda: rss(
        b"".join(b"<item><guid>%d</guid><author>%b</author></item>" % (n, b"a@" * 250) for n in range(100))
    ),
    "bodies": lambda: items(list(BODIES.values())),
}

PAGES: Final[dict[str, Callable[[], bytes]]] = {
    "deep page": lambda: b"<!doctype html><title>x</title>" + b"<div>" * 3 * MILLION,
    "page of links": lambda: (
        b"<!doctype html><title>x</title>"
        + b"".join(
            b'<link rel="alternate" type="application/rss+xml" href="/hostile/%d">' % n
            for n in range(200_000)
        )
    ),
    "page of attributes": lambda: (
        b"<!doctype html><body " + b" ".join(b"a%d=x" % n for n in range(MILLION)) + b">"
    ),
    "page of formats": lambda: b"<!doctype html>" + b"<b><p></b><i></p>" * 900_000,
    "giant page title": lambda: b"<!doctype html><title>" + b"x " * 9 * MILLION,
}

# Searches as people may type them, or programs.
SEARCHES: Final = (
    "river " * 8_000,
    " ".join(f"w{n}" for n in range(8_000)),
    " ".join(f"w{n}*" for n in range(8_000)),
    " ".join(f"-w{n}" for n in range(8_000)),
    '"' * 30_000,
    "((((" * 8_000,
    "a" * 60_000,
    "\u0315\u0300" * 5_000,
    "NEAR(a b) OR * AND NOT ^x {a}:b",
)

# Templates of steps that repeat, multiply or never end.
TEMPLATES: Final[dict[str, str]] = {
    "loop": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "product": '{{ "a" * 2000000000 }}',
    "doubling": "{% set x = namespace(s='aaaaaaaaaa') %}"
    "{% for i in range(40) %}{% set x.s = x.s + x.s %}{% endfor %}{{ x.s }}",
    "padding": '{{ "%999999999s" | format("a") }}',
    "centre": "{{ 'a' | center(2000000000) }}",
    "power": "{{ 9 ** 9 ** 9 }}",
    "macro": "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
    "filters": "{% if text" + "|upper|lower" * 2_000 + " %}{% endif %}",
}
DEEP_TEMPLATES: Final[dict[str, str]] = {
    "parentheses": "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
    "lists": "{{ " + "[" * 5_000 + "]" * 5_000 + " }}",
    "ifs": "{% if x %}" * 5_000,
    "nots": "{{ " + "not " * 10_000 + "1 }}",
    "minus": "{{ " + "-" * 40_000 + "1 }}",
    "sums": "{{ 1" + "+1" * 20_000 + " }}",
    "attributes": "{{ a" + ".a" * 20_000 + " }}",
    "blanks": "{{ a }}" * 7_000,
}
# JMESPath that doubles what it looks at, dozens of times.
EXPRESSIONS: Final[dict[str, str]] = {
    "doubling": "content_item.[@,@]" + ".[@,@][]" * 30,
    "strings": "to_string([@,@])" + "|to_string([@,@])" * 30,
    "deep": "(" * 4_000 + "a" + ")" * 4_000,
    "nots": "!" * 9_000 + "a",
    "pipes": "@" + "|@" * 4_000,
    "brackets": "a" + "[]" * 4_000,
}


def deep(levels: int) -> str:
    """JSON so deep."""
    return "[" * levels + "]" * levels


def template_of(key: str, text: str) -> dict[str, object]:
    """A pipeline's template in which a step has this to fill or to evaluate."""
    if key == "where":
        return {"name": "hostile", "steps": [{"step_type": "filter_content", "config": {"where": text}}]}
    config = {
        "target": "email",
        "smtp_host": "127.0.0.1",
        "smtp_port": 9,
        "smtp_security": "none",
        "sender": "me@example.org",
        "recipients": ["you@example.org"],
        key: text,
    }
    step = {"step_type": "publish_content", "config": config, "retries": 0}
    return {"name": "hostile", "steps": [step]}


def bodies_of_requests() -> dict[str, bytes]:
    """What a caller may send to the API as JSON."""
    return {
        "deep lists": deep(100_000).encode(),
        "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "deep steps": b'{"name": "x", "steps": ' + deep(900).encode() + b"}",
        "many steps": json.dumps(
            {"name": "x", "steps": [{"step_type": "filter_content"}] * 200_000}
        ).encode(),
        "many fields": json.dumps({f"f{n}": n for n in range(500_000)}).encode(),
        "long name": json.dumps({"name": "x" * 10 * MILLION, "steps": []}).encode(),
        "digits": b'{"name": ' + b"1" * 5 * MILLION + b', "steps": []}',
    }
