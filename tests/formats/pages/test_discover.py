from headwater.formats.pages.discover import Candidate, find_feeds, guess_feeds

URL = "https://e.org/blog/"


def found(page: str, url: str = URL) -> list[Candidate]:
    return find_feeds(page.encode(), url)


def test_declared_links_come_first_and_comment_feeds_last() -> None:
    page = """<html><head>
      <link rel="alternate" type="application/rss+xml" title="Comments" href="/comments/feed">
      <LINK REL="Alternate Home" TYPE="application/atom+xml; x=y" TITLE=" All  posts " HREF="atom.xml">
      <link rel="alternate" type="application/feed+json" href="https://e.org/feed.json">
      <link rel="alternate" hreflang="de" href="/de/"><link rel="stylesheet" type="text/css" href="/feed.css">
      <link rel="alternate" type="text/xml" href="/about.xml">
      </head><body><a href="/rss">RSS</a></body></html>"""
    assert found(page) == [
        Candidate("https://e.org/blog/atom.xml", "All posts", "application/atom+xml"),
        Candidate("https://e.org/feed.json", None, "application/feed+json"),
        Candidate("https://e.org/comments/feed", "Comments", "application/rss+xml"),
        Candidate("https://e.org/rss", "RSS", None, "body"),
    ]


def test_base_element() -> None:
    page = '<base href="/other/"><link rel="alternate" type="application/rss+xml" href="feed">'
    assert found(page)[0].url == "https://e.org/other/feed"


def test_hints_in_the_body() -> None:
    page = (
        '<a href="/feed.xml">Subscribe</a><a href="/food">feed me</a>'
        '<a href="#rss">RSS</a><a href="javascript:x">RSS</a>'
    )
    assert [candidate.url for candidate in found(page)] == ["https://e.org/feed.xml"]


def test_nothing_in_nothing() -> None:
    assert found("") == []
    assert find_feeds(b"\xff\x00<", "not an address") == []


def test_guesses() -> None:
    urls = [candidate.url for candidate in guess_feeds("https://e.org/blog/post")]
    assert urls[0] == "https://e.org/blog/feed"
    assert "https://e.org/feed" in urls
    assert len(urls) == len(set(urls))
    assert guess_feeds("mailto:x@e.org") == []
    assert guess_feeds("http://[broken") == []


def test_rules_stand_before_links() -> None:
    page = '<link rel="alternate" type="application/rss+xml" href="/x">'
    assert [c.how for c in found(page, "https://ann.substack.com/")] == ["rule", "link"]
