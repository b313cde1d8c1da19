"""A page costs what its size allows, however it is built."""

import time

import pytest

from headwater.formats.pages.discover import find_feeds
from headwater.formats.pages.document import MAX_TAGS, read_html
from headwater.formats.pages.metadata import read_page


@pytest.mark.timeout(30)
@pytest.mark.parametrize("page", [b"<div>" * 800_000, b"<ul>" * 10_000 + b"</h1>" * 800_000])
def test_deep_nesting_takes_no_time(page: bytes) -> None:
    head = b"<title>Deep</title><link rel=alternate type=application/rss+xml href=/feed>"
    assert read_page(head + page, url="https://e.org/").title == "Deep"
    assert [feed.url for feed in find_feeds(head + page, "https://e.org/")][:1] == ["https://e.org/feed"]


def test_a_page_is_read_up_to_so_many_tags() -> None:
    assert len(read_html(b"<p>x" * (MAX_TAGS + 5)).css("p")) == MAX_TAGS
    assert len(read_html(b"<p>x" * MAX_TAGS).css("p")) == MAX_TAGS


@pytest.mark.parametrize("between", [" ", "/", "=x "])
def test_read_html_tag_of_a_million_attributes_takes_moments(between: str) -> None:
    page = f"<p>before</p><div {between.join(f'a{number}' for number in range(1_000_000))}><p>after</p>"
    began = time.thread_time()
    document = read_html(page.encode())
    assert time.thread_time() - began < 2.0
    assert [node.text() for node in document.css("p")][:1] == ["before"]
