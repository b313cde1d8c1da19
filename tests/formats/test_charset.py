import pytest

from headwater.formats.charset import codec_for, decode
from headwater.formats.feed import parse
from headwater.formats.tree import NOTE_CHARSET


def rss(title: str, declaration: str = "") -> str:
    head = f'<?xml version="1.0" encoding="{declaration}"?>' if declaration else ""
    return f"{head}<rss version='2.0'><channel><title>{title}</title></channel></rss>"


@pytest.mark.parametrize(
    ("title", "declared", "encoding", "header"),
    [
        ("Grüße", "utf-8", "utf-8", None),
        ("Grüße", "", "utf-8", None),
        ("Grüße", "utf-8", "utf-8-sig", "text/xml; charset=iso-8859-1"),  # the mark beats the header
        ("Grüße", "utf-8", "iso-8859-1", "text/xml; charset=ISO-8859-1"),  # the header beats the declaration
        ("Grüße “x”", "iso-8859-1", "cp1252", None),  # Latin-1 means Windows-1252
        ("Grüße", "iso-8859-1", "utf-8", None),  # what is valid UTF-8 is UTF-8, whatever it says
        ("Grüße", "utf-8", "utf-8", "text/xml; charset=us-ascii"),
        ("日本語", "shift_jis", "cp932", None),
        ("日本語", "euc-jp", "euc_jp", None),
        ("简体中文", "gb2312", "gb18030", None),
        ("한국어", "euc-kr", "cp949", None),
        ("Привет", "koi8-r", "koi8-r", None),
        ("Привет", "utf-16", "utf-16", None),
        ("Привет", "utf-16", "utf-16-le", None),
        ("Привет", "utf-16", "utf-16-be", None),
        ("Привет", "utf-8", "utf-32", None),
        ("Grüße", "utf-16", "utf-8", None),  # says UTF-16 in plain ASCII
        ("Grüße", "no-such-thing", "utf-8", None),
        ("Grüße", "utf-8", "utf-8", "text/xml; charset=nonsense"),
    ],
)
def test_title_survives(title: str, declared: str, encoding: str, header: str | None) -> None:
    feed = parse(rss(title, declared).encode(encoding), content_type=header)
    assert feed.title == title


def test_undeclared_legacy_encoding_is_guessed_and_noted() -> None:
    title = "Сегодня в городе ожидается дождь, завтра будет солнечно и тепло"
    feed = parse(rss(title).encode("cp1251"))
    assert feed.title == title
    assert NOTE_CHARSET in feed.notes


def test_a_few_bad_bytes_in_utf8_do_not_change_the_encoding() -> None:
    data = rss("Grüße aus Köln, schöne Füße").encode().replace(b"aus", b"a\xffs")
    assert parse(data).title == "Grüße a\ufffds Köln, schöne Füße"


@pytest.mark.parametrize("name", ["rot13", "zlib", "undefined", "unicode_escape", "idna", "a\x00b", "ü"])
def test_only_text_encodings_are_believed(name: str) -> None:
    assert codec_for(name) is None


def test_decode_never_fails() -> None:
    for data in (b"", b"\xff", b"\xff\xfe\x00", b"\xef\xbb\xbf\xff", bytes(range(256))):
        assert isinstance(decode(data, "text/xml; charset=utf-16").text, str)
