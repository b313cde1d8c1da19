import gzip
from datetime import UTC, datetime

import pytest

from headwater.errors import ParseError
from headwater.formats.sitemaps import read as sitemap
from headwater.formats.sitemaps.read import Sitemap, SitemapUrl, read_sitemap
from headwater.model import Enclosure

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def locs(data: bytes) -> list[str]:
    return [url.loc for url in read_sitemap(data).urls]


def test_urlset() -> None:
    result = read_sitemap(
        f'<?xml version="1.0"?><!-- c -->'
        f'<urlset {NAMESPACE} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">'
        "<url><loc> https://e.org/a?b=1&amp;c=2 </loc><lastmod>2020-03-03</lastmod><priority>1</priority>"
        "<image:image><image:loc>https://e.org/i.png</image:loc></image:image></url><url><loc>/b</loc></url>"
        "<url><lastmod>2020-03-03</lastmod></url></urlset>".encode(),
        url="https://e.org/sitemap.xml",
    )
    assert result == Sitemap(
        "urlset",
        (
            SitemapUrl(
                "https://e.org/a?b=1&c=2",
                "2020-03-03",
                datetime(2020, 3, 3, tzinfo=UTC),
                image="https://e.org/i.png",
            ),
            SitemapUrl("https://e.org/b"),
        ),
    )


@pytest.mark.parametrize("namespace", ["", NAMESPACE, 'xmlns="http://www.google.com/schemas/sitemap/0.84"'])
def test_index(namespace: str) -> None:
    result = read_sitemap(
        f"\n<?xml version='1.0'?><sitemapindex {namespace}><sitemap><loc>https://e.org/1.xml.gz"
        f"</loc></sitemap>"
        "<sitemap>\nhttps://e.org/2.xml\n</sitemap></sitemapindex>".encode()
    )
    assert result.is_index
    assert [url.loc for url in result.urls] == ["https://e.org/1.xml.gz", "https://e.org/2.xml"]


def test_gzip() -> None:
    assert locs(gzip.compress(b"<urlset><url><loc>https://e.org/</loc></url></urlset>")) == ["https://e.org/"]


def test_text() -> None:
    result = read_sitemap(b"\xef\xbb\xbfhttps://e.org/1\r\n\r\nhttps://e.org/2\nhttps://e.org/1\n")
    assert result == Sitemap("text", (SitemapUrl("https://e.org/1"), SitemapUrl("https://e.org/2")))


def test_feeds_as_sitemaps() -> None:
    rss = read_sitemap(
        b"<rss><channel><link>https://e.org/</link><item><link>https://e.org/1</link><title>One</title>"
        b"<pubDate>Tue, 03 Mar 2020 00:00:00 GMT</pubDate></item><item><guid>https://e.org/2"
        b"</guid></item></channel></rss>"
    )
    assert rss.kind == "rss"
    assert rss.urls[0] == SitemapUrl(
        "https://e.org/1", "Tue, 03 Mar 2020 00:00:00 GMT", datetime(2020, 3, 3, tzinfo=UTC), "One"
    )
    assert rss.urls[1].loc == "https://e.org/2"
    atom = read_sitemap(
        b'<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://e.org/"/><entry>'
        b'<link rel="self" href="/x"/>'
        b'<link href="https://e.org/1"/><updated>2020-03-03</updated></entry></feed>'
    )
    assert (atom.kind, [url.loc for url in atom.urls]) == ("atom", ["https://e.org/1"])


def test_extensions_say_what_the_page_is_called() -> None:
    (news, video) = read_sitemap(
        f'<urlset {NAMESPACE} xmlns:n="http://www.google.com/schemas/sitemap-news/0.9"'
        ' xmlns:v="http://www.google.com/schemas/sitemap-video/1.1">'
        "<url><loc>https://e.org/1</loc><n:news><n:publication><n:name>Paper</n:name></n:publication>"
        "<n:title>Rain\n at last</n:title><n:publication_date>2020-03-03</n:publication_date></n:news></url>"
        "<url><loc>https://e.org/2</loc><v:video><v:thumbnail_loc>/t.png</v:thumbnail_loc>"
        "<v:title>Film</v:title><v:description>Moving</v:description></v:video></url></urlset>".encode(),
        url="https://e.org/sitemap.xml",
    ).urls
    assert news == SitemapUrl(
        "https://e.org/1", title="Rain at last", published=datetime(2020, 3, 3, tzinfo=UTC)
    )
    assert (video.title, video.description, video.image) == ("Film", "Moving", "https://e.org/t.png")


def test_news_and_videos_say_what_they_are_about() -> None:
    (news, video, bad) = read_sitemap(
        f'<urlset {NAMESPACE} xmlns:n="http://www.google.com/schemas/sitemap-news/0.9"'
        ' xmlns:v="http://www.google.com/schemas/sitemap-video/1.1">'
        "<url><loc>https://e.org/1</loc><n:news><n:publication><n:name>Paper</n:name><n:language>de</n:language>"
        "</n:publication><n:genres>Blog, Opinion</n:genres><n:keywords>rain, farms</n:keywords></n:news></url>"
        "<url><loc>https://e.org/2</loc><v:video><v:content_loc>/film.mp4?a=1</v:content_loc><v:duration>90</v:duration>"
        "<v:tag>one</v:tag><v:tag>two</v:tag><v:category>one</v:category></v:video></url>"
        "<url><loc>https://e.org/3</loc><v:video><v:content_loc>javascript:x</v:content_loc><v:duration>9999999"
        "</v:duration></v:video></url></urlset>".encode(),
        url="https://e.org/sitemap.xml",
    ).urls
    assert (news.language, news.categories) == ("de", ("rain", "farms", "Blog", "Opinion"))
    assert video.video == Enclosure("https://e.org/film.mp4?a=1", "video/mp4", duration_seconds=90.0)
    assert video.categories == ("one", "two")
    assert bad.video is None


@pytest.mark.parametrize(
    ("data", "cut_off"),
    [
        (b"<urlset><url><loc>https://e.org/1</loc></url><url><loc>https://e.o", True),
        (b"<urlset><url><loc>https://e.org/1</loc></url>", True),
        (b"<urlset><url><loc>https://e.org/1</loc></url></urlset>", False),
        (b"<urlset><url><loc>https://e.org/1</loc></url><url><x></url></urlset>\n", False),
        pytest.param(
            gzip.compress(b"<urlset><url><loc>https://e.org/1</loc></url></urlset>" * 99)[:-20],
            True,
            id="gzip",
        ),
    ],
)
def test_what_was_delivered_in_part_is_known_from_what_is_damaged(data: bytes, cut_off: bool) -> None:
    assert read_sitemap(data).cut_off is cut_off


def test_utf16() -> None:
    document = '<?xml version="1.0" encoding="utf-16"?><urlset><url><loc>https://e.org/ü</loc></url></urlset>'
    assert locs(document.encode("utf-16")) == ["https://e.org/ü"]


def test_damage_costs_only_what_is_damaged() -> None:
    result = read_sitemap(b"<urlset><url><loc>https://e.org/1</loc></url><url><loc>https://e.org/2</lo")
    assert [url.loc for url in result.urls] == ["https://e.org/1"]
    assert result.truncated
    bare = read_sitemap(
        b"<urlset><url><loc>https://e.org/?a=1&b=2</loc></url><url><loc>https://e.org/2</loc></url></urlset>"
    )
    assert [url.loc for url in bare.urls] == ["https://e.org/?a=1&b=2", "https://e.org/2"]
    assert not bare.truncated


def test_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "MAX_URLS", 3)
    many = b"<urlset>" + b"<url><loc>https://e.org/x</loc></url>" * 10 + b"</urlset>"
    result = read_sitemap(many)
    assert (len(result.urls), result.truncated) == (3, True)
    assert read_sitemap(b"\n".join(b"https://e.org/%d" % n for n in range(10))).truncated
    monkeypatch.setattr(sitemap, "MAX_BYTES", 100)
    assert read_sitemap(gzip.compress(many)).truncated
    deep = read_sitemap(b"<urlset>" + b"<a>" * 1000)
    assert (deep.urls, deep.truncated) == ((), True)


@pytest.mark.timeout(30)
def test_bombs() -> None:
    laughs = "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True)
    )
    document = (
        f'<!DOCTYPE x [<!ENTITY a "lol">{laughs}]><urlset><url><loc>https://e.org/&j;</loc></url></urlset>'
    )
    assert sum(map(len, locs(document.encode()))) < 1000
    assert read_sitemap(gzip.compress(b"<urlset>" + b" " * 200_000_000)).truncated


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "before", [b"<!---->", b"<!-- a -->\n", b"<?x?>", b"<!DOCTYPE a []>", b" ", b"<!DOCTYPE a ["]
)
def test_what_stands_before_the_root_is_read_in_one_pass(before: bytes) -> None:
    with pytest.raises(ParseError):
        read_sitemap(b"<?xml version='1.0'?>" + before * 3_000 + b" text")


def test_quotes_in_a_doctype_may_hold_its_end() -> None:
    document = b"""<!DOCTYPE x [<!ENTITY a ']> <b>'>]><urlset><url><loc>https://e.org/</loc></url></urlset>"""
    assert locs(document) == ["https://e.org/"]


def test_external_entities_are_left_out() -> None:
    document = b'<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/hostname">]><urlset><url><loc>https://e.org/&x;</loc></url></urlset>'
    assert locs(document) == ["https://e.org/"]


@pytest.mark.parametrize(
    "data",
    [b"", b"  ", b"hello world", b"<html></html>", b"<opml/>", b"\x1f\x8bnonsense", b"a\nb\nhttps://e.org/"],
)
def test_what_is_no_sitemap_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        read_sitemap(data)


def test_fifty_thousand_addresses() -> None:
    data = (
        b"<urlset>"
        + b"".join(b"<url><loc>https://e.org/%d</loc></url>" % n for n in range(50_000))
        + b"</urlset>"
    )
    result = read_sitemap(data)
    assert (len(result.urls), result.truncated) == (50_000, False)
