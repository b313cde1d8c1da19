"""Foreign HTML: read in linear time, and bounded so that parsers need no more than that."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from headwater.formats.compare import compare
from headwater.formats.html import plain_text, sanitize_html
from headwater.formats.links import resolve_html
from headwater.markup import DEEPEST, LONGEST_TEXT, bound_html, read_pieces, unescape_text, visible_text
from headwater.model import Item
from headwater.store.reading.search import words_of, words_of_item

# Each is repeated: what nests, what never ends, what looks like the beginning of something.
BOMBS = {
    "nested": "<div>",
    "nested formats": "<font color={n}>",
    "misnested": "<b><p></b><i></p>",
    "tables": "<table><tr><td>",
    "less than": "<",
    "open tags": "<a ",
    "open quotes": "<a href=\"'",
    "attributes": " a{n}=b",
    "comments": "<!--",
    "declarations": "<![",
    "scripts": "<script>",
    "script ends": "</script ",
    "ends": "</div>",
    "references": "&#",
    "digits": "&#1111111111",
    "accents": "\u0315\u0300",
    "ligatures": "\ufdfa",
    "links": "<a href=x>",
    "equals": 'href="',
    "spaces": " \n",
    "words": "x y ",
    "schemes": "script :",
}


def grown(bomb: str, count: int) -> str:
    return "".join(bomb.replace("{n}", str(n)) for n in range(count))


READERS: dict[str, Callable[[str], object]] = {
    "bound": bound_html,
    "sanitize": sanitize_html,
    "plain": plain_text,
    "resolve": lambda body: resolve_html(body, "https://example.org/a/b"),
    "words": lambda text: words_of_item(Item("1", content=text)),
    "compare": lambda text: compare(text, text[::-1]),
    "compare shifted": lambda text: compare("a " + text, "b " + text[len(text) // 3 :] + " c"),
    "unescape": unescape_text,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_reading_foreign_text_takes_linear_time(reader: str, bomb: str) -> None:
    seconds = []
    for count in (20_000, 80_000):
        text = "<p " * (bomb == "attributes") + grown(BOMBS[bomb], count)
        began = time.thread_time()
        READERS[reader](text)
        seconds.append(time.thread_time() - began)
    # Four times as long a text: at most some times as much work, or so little that it does not matter.
    assert seconds[1] < max(10 * seconds[0], 3.0), seconds


def deepest(node: LexborNode | None) -> int:
    depth, level = 0, [node] if node else []
    while level:
        depth += 1
        level = [child for each in level for child in each.iter(include_text=False)]
    return depth


WRITTEN = "div b font a p li ul table tr td span h1 object button select option svg desc template form i em"
NAMES = WRITTEN.split()
TAGS = st.sampled_from(
    [f"<{name}>" for name in NAMES] + [f"</{name}>" for name in NAMES] + ["x", "<br>", "<!--"]
)


@settings(deadline=None)
@given(st.lists(TAGS, min_size=1, max_size=12), st.integers(200, 600))
def test_bound_html_of_any_tag_soup_parses_to_a_shallow_tree(soup: list[str], times: int) -> None:
    body, _ = bound_html("".join(soup) * times)
    assert deepest(LexborHTMLParser(body).body) <= max(
        3 * DEEPEST, 700
    )  # so deep is what is short enough to be left alone


@given(st.text(max_size=200), st.integers(1, 60))
def test_read_pieces_loses_nothing_but_what_is_hidden(text: str, times: int) -> None:
    body = text.replace("<!", "").replace("<?", "").replace("<s", "").replace("<S", "") * times
    assert "".join(piece.text for piece in read_pieces(body)) == body


def test_bound_html_of_a_long_article_changes_nothing_that_is_shown() -> None:
    link = "<a href='https://example.org/?a=1&b=2'>a <b>link</b></a>"
    article = f"<h2>One</h2><p>Text with {link} & more<br>…</p><ul><li>x<li>y</ul>"
    body, cut = bound_html(article * 100)
    assert not cut
    assert sanitize_html(body) == sanitize_html(article) * 100


def test_bound_html_keeps_the_text_of_what_is_nested_too_deeply() -> None:
    body, cut = bound_html("<div>" * 10_000 + "heart" + "</div>" * 10_000)
    assert cut
    assert visible_text(body, 1000).strip() == "heart"


def test_bound_html_drops_a_giant_attribute_and_keeps_what_follows() -> None:
    picture = f'<p>before</p><img src="data:image/png;base64,{"A" * 2 * LONGEST_TEXT}"><p>after</p>'
    assert bound_html(picture).body == "<p>before</p><p>after</p>"


def test_words_of_text_with_endless_accents_and_digits_are_found() -> None:
    assert words_of("Cafe\u0301 Ünïcode 新闻 한국") == ["cafe", "unicode", "新", "闻", "한", "국"]
    assert words_of_item(Item("1", title="&#" + "1" * 5_000 + "; river"))[-1] == "river"
