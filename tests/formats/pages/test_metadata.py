from datetime import UTC, datetime

import pytest

from headwater.formats.pages.metadata import Page, read_page

URL = "https://e.org/a/b"


def test_what_a_page_says_of_itself() -> None:
    page = read_page(
        b"""<html lang="de"><head><title> Ein
        Titel </title><meta name="Description" content="Was es ist"><meta property="og:image" content="/i.png">
        <meta name="author" content="Ann"><script type="application/ld+json">{"datePublished": "2020-03-03",
        "dateModified":"2020-03-04T00:00:00Z"}</script></head><body><main>Text</main></body></html>""",
        url=URL,
        content_type="text/html; charset=utf-8",
    )
    assert (page.title, page.description, page.language, page.author) == (
        "Ein Titel",
        "Was es ist",
        "de",
        "Ann",
    )
    assert page.image == "https://e.org/i.png"
    assert page.published == datetime(2020, 3, 3, tzinfo=UTC)
    assert page.modified == datetime(2020, 3, 4, tzinfo=UTC)


def test_the_hash_is_of_the_main_text_alone() -> None:
    def text_hash(body: str) -> str | None:
        return read_page(f"<body>{body}</body>".encode(), url=URL).text_hash

    one = text_hash("<nav>1</nav><article>The  <b>text</b></article><footer>3 minutes ago</footer>")
    assert one == text_hash("<nav>2</nav><script>x()</script><article class=x>The <b>text</b>\n</article>")
    assert one != text_hash("<article>Another text</article>")
    assert text_hash("<nav>only</nav>") is None


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe", b"<" * 10_000, b"<title>" + b"x" * 100_000])
def test_nonsense_does_no_harm(data: bytes) -> None:
    assert isinstance(read_page(data, url=URL), Page)


def test_what_is_no_page_says_nothing() -> None:
    assert read_page(b"%PDF-1.7 <title>x</title>", url=URL, content_type="application/pdf") == Page()
