import pytest

from headwater.formats.html import plain_text, sanitize_html
from headwater.markup import LONGEST_LINE


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("plain", "plain"),
        (" two \n lines\t", "two lines"),
        ("AT&T", "AT&T"),
        ("AT&amp;T &#8217; &eacute;", "AT&T ’ é"),
        ("<b>bold</b> and <i class='x'>it</i>", "bold and it"),
        ("one<br/>two<p>three</p>", "one two three"),
        ("x < y > z", "x < y > z"),
        ("List<String> of <T>", "List<String> of <T>"),
        ("a<!-- b -->c<!-- d", "ac"),
        ("a<script>alert('<b>')</script>b", "ab"),
        ("a<style>p {}", "a"),
        ("<!DOCTYPE html><html><head><title>T</title></head></html>", "T"),
    ],
)
def test_plain_text(markup: str, text: str) -> None:
    assert plain_text(markup) == text


def test_lines_have_an_end() -> None:
    assert len(plain_text("a" * 10 * LONGEST_LINE)) == LONGEST_LINE


@pytest.mark.parametrize(
    "payload",
    [
        "<script>alert(1)</script>",
        "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
        "<img src=x onerror=alert(1)>",
        "<a href='javascript:alert(1)'>x</a>",
        "<a href=' &#14; java&#9;script:alert(1)'>x</a>",
        "<a href='\u2028javascript:alert(1)'>x</a>",
        "<a href='\xa0JAVASCRIPT:alert(1)'>x</a>",
        "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
        "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
        "<svg><script>alert(1)</script></svg>",
        "<svg onload=alert(1)>",
        "<math><mtext><style><img src=x onerror=alert(1)></style></mtext></math>",
        "<form action='javascript:alert(1)'><input type=submit></form>",
        "<div style='background:url(javascript:alert(1))'>x</div>",
        "<object data='x.swf'></object><embed src='x.swf'>",
        "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
        "<base href='javascript:alert(1)//'>",
        "<template><img src=x onerror=alert(1)></template>",
        "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    ],
)
def test_nothing_runs(payload: str) -> None:
    clean = sanitize_html(f"before {payload} after").lower()
    for trace in (
        "<script",
        "javascript:",
        "onerror",
        "onload",
        "style=",
        "<iframe",
        "<svg",
        "<math",
        "<form",
    ):
        assert trace not in clean, clean
    for trace in ("<object", "<embed", "<meta", "<base", "<template", "data:", "srcdoc"):
        assert trace not in clean, clean
    assert clean.startswith("before")
    assert sanitize_html(clean) == clean


def test_good_html_stays() -> None:
    body = '<p>Text with <strong>weight</strong> and <img src="https://e.org/a.png" alt="a"></p>'
    assert sanitize_html(body) == body
    link = sanitize_html('<a href="https://e.org/data:1">x</a>')
    assert 'href="https://e.org/data:1"' in link
    assert "noopener" in link
