"""Lists of files as nginx, Apache, lighttpd, Caddy and Python write them, and the XML of buckets."""

from datetime import UTC, datetime

import pytest

from headwater.errors import ParseError
from headwater.formats.listings import File, is_bucket, is_directory, read_listing

URL = "https://e.org/pub/"
AT = datetime(2026, 11, 1, 10, 20, tzinfo=UTC)

NGINX = """<html><head><title>Index of /pub/</title></head><body><h1>Index of /pub/</h1><hr><pre><a href="../">../</a>
<a href="old/">old/</a>                                       01-Nov-2026 10:20                   -
<a href="a%20b.iso">a b.iso</a>                               01-Nov-2026 10:20          1048576
</pre><hr></body></html>"""
APACHE = """<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN"><html><head><title>Index of /pub</title></head><body>
<table><tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>
<tr><td><img src="/icons/back.gif"></td><td><a href="/">Parent Directory</a></td><td>&nbsp;</td><td>  - </td></tr>
<tr><td></td><td><a href="old/">old/</a></td><td align="right">2026-11-01 10:20  </td><td align="right">  - </td></tr>
<tr><td></td><td><a href="a%20b.iso">a b.iso</a></td><td>2026-11-01 10:20  </td><td>1.0M</td><td>&nbsp;</td></tr>
</table></body></html>"""
LIGHTTPD = """<html><head><title>Index of /pub/</title></head><body><table><tbody>
<tr class="d"><td class="n"><a href="../">..</a>/</td><td class="m">&nbsp;</td><td class="s">- &nbsp;</td></tr>
<tr class="d"><td class="n"><a href="old/">old</a>/</td><td class="m">2026-Nov-01 10:20:00</td><td>- &nbsp;</td></tr>
<tr><td class="n"><a href="a%20b.iso">a b.iso</a></td><td>2026-Nov-01 10:20:00</td><td>1.0M</td></tr>
</tbody></table></body></html>"""
PYTHON = """<!DOCTYPE HTML><html><head><title>Directory listing for /pub/</title></head><body>
<h1>Directory listing for /pub/</h1><hr><ul><li><a href="old/">old/</a></li><li><a href="a%20b.iso">a b.iso</a></li>
</body></html>"""


@pytest.mark.parametrize("page", [NGINX, APACHE, LIGHTTPD])
def test_files_are_read_with_date_and_size(page: str) -> None:
    assert is_directory(page.encode())
    assert read_listing(page.encode(), URL).files == (
        File(f"{URL}old/", "old", AT, None, True),
        File(f"{URL}a%20b.iso", "a b.iso", AT, 1_048_576),
    )


def test_files_without_dates_are_read_too() -> None:
    assert [each.name for each in read_listing(PYTHON.encode(), URL).files] == ["old", "a b.iso"]


def test_links_out_of_the_directory_are_no_files() -> None:
    page = (
        "<a href='https://evil.example/pub/x'>x</a><a href='/etc/x'>x</a><a href='../../x'>x</a><a href='a/b/c'>x</a>"
        "<a href='javascript:x'>x</a><a href='?C=S'>x</a><a href='#top'>x</a><a href='x?y'>x</a><a href='.'>x</a>"
        "<a href='good.txt#part'>good.txt</a>"
    )
    assert [each.url for each in read_listing(page.encode(), URL).files] == [f"{URL}good.txt"]
    with pytest.raises(ParseError, match="not a list of files"):
        read_listing(b"<a href='https://evil.example/x'>x</a>", URL)


def test_empty_directory_is_a_directory() -> None:
    assert read_listing(b"<title>Index of /pub/</title>", URL).files == ()


S3 = """<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>data</Name><Prefix/><KeyCount>2</KeyCount>
<MaxKeys>2</MaxKeys><IsTruncated>{truncated}</IsTruncated>{more}
<Contents><Key>2026/</Key><LastModified>2026-11-01T10:20:00.000Z</LastModified><Size>0</Size></Contents>
<Contents><Key>2026/a b.csv</Key><LastModified>2026-11-01T10:20:00.000Z</LastModified><ETag>"x"</ETag><Size>7</Size>
<Owner><ID>1</ID></Owner></Contents></ListBucketResult>"""


@pytest.mark.parametrize(
    ("truncated", "more", "marker"),
    [
        ("false", "", None),
        ("true", "<NextContinuationToken>1/x=</NextContinuationToken>", ("continuation-token", "1/x=")),
        ("true", "<NextMarker>2026/a b.csv</NextMarker>", ("marker", "2026/a b.csv")),
        ("true", "", ("marker", "2026/a b.csv")),
    ],
)
def test_bucket_is_read_and_says_what_comes_next(truncated: str, more: str, marker: object) -> None:
    data = S3.format(truncated=truncated, more=more).encode()
    assert is_bucket(data)
    found = read_listing(data, "https://data.s3.example/?list-type=2")
    assert found.files == (File("https://data.s3.example/2026/a%20b.csv", "2026/a b.csv", AT, 7),)
    assert (found.title, found.next_marker) == ("data", marker)


def test_bucket_of_azure_is_read() -> None:
    data = b"""<?xml version="1.0"?><EnumerationResults ContainerName="https://a.example/c"><Blobs><Blob>
    <Name>x.txt</Name><Properties><Last-Modified>Sun, 01 Nov 2026 10:20:00 GMT</Last-Modified>
    <Content-Length>9</Content-Length></Properties>
    </Blob></Blobs><NextMarker>2!8</NextMarker></EnumerationResults>"""
    found = read_listing(data, "https://a.example/c?restype=container&comp=list")
    assert found.files == (File("https://a.example/c/x.txt", "x.txt", AT, 9),)
    assert found.next_marker == ("marker", "2!8")


@pytest.mark.parametrize(
    "data",
    [b"<ListBucketResult ", b"<ListBucketResult ><", b"<x><ListBucketResult ></ListBucketResult ></x>"],
)
def test_damaged_bucket_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError):
        read_listing(data, URL)
