import pytest

from headwater.formats.links import is_followable, join, resolve_html

BASE = "https://e.org/blog/post"


@pytest.mark.parametrize(
    ("url", "joined"),
    [
        ("https://x.org/a", "https://x.org/a"),
        ("/a?b=c#d", "https://e.org/a?b=c#d"),
        ("a", "https://e.org/blog/a"),
        ("../a", "https://e.org/a"),
        ("/a/../b", "https://e.org/b"),
        ("//x.org/a", "https://x.org/a"),
        ("?q", "https://e.org/blog/post?q"),
        ("mailto:a@e.org", "mailto:a@e.org"),
        ("urn:uuid:1", "urn:uuid:1"),
        (" https://x.org/\n  long/path ", "https://x.org/  long/path"),
        ("http://[broken", "http://[broken"),
        ("", None),
        ("  ", None),
        (None, None),
    ],
)
def test_join(url: str | None, joined: str | None) -> None:
    assert join(BASE, url) == joined


def test_join_without_a_base_leaves_relative_addresses() -> None:
    assert join(None, "/a") == "/a"


@pytest.mark.parametrize(
    ("body", "resolved"),
    [
        ('<a href="/a">x</a>', '<a href="https://e.org/a">x</a>'),
        ("<a href='b'>x</a>", '<a href="https://e.org/blog/b">x</a>'),
        ("<a href=b>x</a>", '<a href="https://e.org/blog/b">x</a>'),
        ('<IMG SRC="i.png">', '<IMG SRC="https://e.org/blog/i.png">'),
        ('<a href="/a?b=1&amp;c=2">x</a>', '<a href="https://e.org/a?b=1&amp;c=2">x</a>'),
        ('<a href="#top">x</a>', '<a href="#top">x</a>'),
        ('<a href="https://x.org/">x</a>', '<a href="https://x.org/">x</a>'),
        ('<source srcset="/b.png 2x">', '<source srcset="https://e.org/b.png 2x">'),
        (
            '<img src="a.png" srcset="a.png, /b.png 2x">',
            '<img src="https://e.org/blog/a.png" srcset="https://e.org/blog/a.png, https://e.org/b.png 2x">',
        ),
        ('write href="/a" in a tag', 'write href="/a" in a tag'),  # text that talks about markup
        ('&lt;a href="/a"&gt;', '&lt;a href="/a"&gt;'),
        ('<a data-href="/a">x</a>', '<a data-href="/a">x</a>'),
        ('<A HREF="/a">x</A><img src="/b">', '<A HREF="https://e.org/a">x</A><img src="https://e.org/b">'),
        ('<a href="https://x.org/?a=b&amp;/src=c">x</a>', '<a href="https://x.org/?a=b&amp;/src=c">x</a>'),
        ('<a href="/a?x=/src=y">x</a>', '<a href="https://e.org/a?x=/src=y">x</a>'),
        ('<a href="http://open>x</a> <img src=/b>', '<a href="http://open>x</a> <img src="https://e.org/b">'),
        ('<img srcset="https://x.org/a 1x, /b 2x">', '<img srcset="https://x.org/a 1x, https://e.org/b 2x">'),
        ("<img srcset=/a>", "<img srcset=/a>"),
        ("=f=", "=f="),
        (
            '<p>write href="http://e.org/ and mind the quotes</p><a href="/y">y</a>',
            '<p>write href="http://e.org/ and mind the quotes</p><a href="https://e.org/y">y</a>',
        ),
    ],
)
def test_resolve_html(body: str, resolved: str) -> None:
    assert resolve_html(body, BASE) == resolved


def test_resolve_html_needs_an_absolute_base() -> None:
    assert resolve_html('<a href="/a">x</a>', None) == '<a href="/a">x</a>'
    assert resolve_html('<a href="/a">x</a>', "blog/") == '<a href="/a">x</a>'


@pytest.mark.parametrize(
    "trap",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " javascript:alert(1)",
        "\x01javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,<script>",
        "vbscript:x",
        "file:///etc/passwd",
    ],
)
def test_address_that_runs_something_is_not_followable(trap: str) -> None:
    assert not is_followable(trap)


@pytest.mark.parametrize(
    "address",
    ["https://a.example/x:y", "/a:b", "a/b:c", "?q=javascript:x", "#x:y", "post", "", "mailto:a@b.example"],
)
def test_address_that_leads_somewhere_is_followable(address: str) -> None:
    assert is_followable(address)
