import pytest

from headwater.formats.pages.discover import Candidate, find_feeds, guess_feeds
from headwater.formats.pages.sites import known_feeds

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


CHANNEL = "UC" + "a" * 22


@pytest.mark.parametrize(
    ("page", "feed"),
    [
        (
            f"https://www.youtube.com/channel/{CHANNEL}",
            f"https://www.youtube.com/feeds/videos.xml?channel_id={CHANNEL}",
        ),
        ("https://youtube.com/playlist?list=PL1", "https://www.youtube.com/feeds/videos.xml?playlist_id=PL1"),
        ("https://www.youtube.com/user/ann", "https://www.youtube.com/feeds/videos.xml?user=ann"),
        ("https://www.reddit.com/r/python", "https://www.reddit.com/r/python/.rss"),
        ("https://old.reddit.com/u/ann/", "https://www.reddit.com/user/ann/.rss"),
        ("https://github.com/ann/lib", "https://github.com/ann/lib/releases.atom"),
        ("https://github.com/ann/lib.git", "https://github.com/ann/lib/releases.atom"),
        ("https://github.com/ann/lib/commits/main", "https://github.com/ann/lib/commits/main.atom"),
        ("https://github.com/ann", "https://github.com/ann.atom"),
        ("https://gitlab.com/ann/lib/-/issues", "https://gitlab.com/ann/lib/-/tags?format=atom"),
        ("https://mastodon.social/@ann", "https://mastodon.social/@ann.rss"),
        ("https://medium.com/@ann", "https://medium.com/feed/@ann"),
        ("https://ann.medium.com/post", "https://ann.medium.com/feed"),
        ("https://ann.substack.com/p/post", "https://ann.substack.com/feed"),
        ("https://ann.wordpress.com/", "https://ann.wordpress.com/feed/"),
        ("https://ann.blogspot.com/", "https://ann.blogspot.com/feeds/posts/default"),
        ("https://stackoverflow.com/questions/tagged/lxml", "https://stackoverflow.com/feeds/tag/lxml"),
        ("https://bsky.app/profile/ann.example", "https://bsky.app/profile/ann.example/rss"),
        ("https://dev.to/ann", "https://dev.to/feed/ann"),
        ("https://pypi.org/project/lxml/", "https://pypi.org/rss/project/lxml/releases.xml"),
        ("https://arxiv.org/list/cs.LG/recent", "https://rss.arxiv.org/rss/cs.LG"),
    ],
)
def test_known_sites_need_no_request(page: str, feed: str) -> None:
    assert known_feeds(page)[0] == feed


@pytest.mark.parametrize(
    "page",
    [
        "https://e.org/",
        "https://www.youtube.com/@ann",
        "https://substack.com/",
        "ftp://github.com/a/b",
        "",
        "http://[x",
    ],
)
def test_other_pages_have_no_rule(page: str) -> None:
    assert known_feeds(page) == []


def test_rules_stand_before_links() -> None:
    page = '<link rel="alternate" type="application/rss+xml" href="/x">'
    assert [c.how for c in found(page, "https://ann.substack.com/")] == ["rule", "link"]
