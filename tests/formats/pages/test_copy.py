"""The copy of a page in which parts are chosen: its words and structure, and nothing that runs or loads."""

from selectolax.lexbor import LexborHTMLParser

from headwater.formats.pages.copy import MAX_DEPTH, copy_page

HOSTILE = b"""<!doctype html><title>t</title><body onload="x()"><script>alert(1)</script>
<style>body{background:url(//evil.example)}</style><iframe src="//evil.example"></iframe><link rel=stylesheet href=/x>
<noscript><p title="</noscript><img src=x onerror=alert(1)>">hidden</p></noscript>
<svg><a xlink:href="javascript:1">q</a></svg><math><mtext><script>1</script></mtext></math>
<form action="//evil.example"><input name=n autofocus onfocus="x()"></form>
<ul class="list big"><li id=a class=entry style="x" data-picked=item onclick="x()"><a href="javascript:x()">First</a>
<img src="//evil.example/p.png" srcset="x 2x" alt="pier"><time datetime="2026-01-02">2 Jan</time></li></ul>"""


def test_copy_keeps_the_structure_and_nothing_that_runs_or_loads() -> None:
    copy = LexborHTMLParser(copy_page(HOSTILE))
    kept = {name for node in copy.css("*") for name in node.attributes}
    assert kept <= {"class", "id", "datetime", "dir", "lang", "alt"}
    tags = {node.tag for node in copy.css("body *")}
    assert tags.isdisjoint({"script", "style", "iframe", "link", "svg", "math", "noscript", "meta"})
    assert "evil.example" not in (copy.html or "")
    entry = copy.css_first("ul.list.big > li#a.entry")
    assert entry is not None
    assert [node.text() for node in entry.css("a")] == ["First"]
    assert [node.attributes["datetime"] for node in entry.css("time")] == ["2026-01-02"]


def test_copy_of_a_page_that_is_too_deep_is_empty() -> None:
    assert copy_page(b"<div>" * (MAX_DEPTH + 5)) == ""
    assert copy_page(b"<p>" + b"<b>x</b>" * 30_000).count("<b>") < 30_000
    assert copy_page(b"") == ""
