import codecs

import pytest

from headwater.formats.charset import codec_for, decode
from headwater.formats.feeds.parse import parse
from headwater.model import Repair


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
        ("Grüße", "cp037", "utf-8", None),  # says EBCDIC in plain ASCII
        ("简体中文的标题", "gb2312", "utf-8", None),  # valid UTF-8 beyond chance
        ("タイトルです", "shift_jis", "utf-8", None),
        ("联通", "gb2312", "gb18030", None),  # which is valid UTF-8 by chance
        ("Grüße", "no-such-thing", "utf-8", None),
        ("Grüße", "utf-8", "utf-8", "text/xml; charset=nonsense"),
    ],
)
def test_title_survives(title: str, declared: str, encoding: str, header: str | None) -> None:
    feed = parse(rss(title, declared).encode(encoding), content_type=header)
    assert feed.title == title


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("before", ["", "\n \t", "\ufeff"])
def test_wide_encoding_is_seen_without_a_mark(encoding: str, before: str) -> None:
    assert decode((before + rss("Grüße", "utf-8")).encode(encoding)).text.lstrip("\ufeff").lstrip() == rss(
        "Grüße", "utf-8"
    )


@pytest.mark.parametrize(
    "mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE]
)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16-le", "utf-16-be"])
def test_mark_that_the_bytes_contradict_is_passed_over(mark: bytes, encoding: str) -> None:
    assert parse(mark + rss("Grüße", "iso-8859-1").encode(encoding)).title == "Grüße"


def test_wide_text_that_was_encoded_twice_and_cut_is_decoded_twice() -> None:
    twice = rss("Grüße, schöne Füße".encode().decode("cp1252"))
    assert parse(b"\xff\xfe" + twice.encode("utf-16-le") + b"x").title == "Grüße, schöne Füße"


def test_utf8_with_entries_in_windows_1252_is_read_as_both() -> None:
    parts = [f"<item><title>Río – “é” {n}</title></item>" for n in range(8)]
    items = b"".join(part.encode("cp1252" if n % 2 else "utf-8") for n, part in enumerate(parts))
    feed = parse(rss("T").replace("</channel>", "%b</channel>").encode() % items)
    assert [entry.title for entry in feed.entries] == [f"Río – “é” {n}" for n in range(8)]


def test_undeclared_legacy_encoding_is_guessed_and_noted() -> None:
    title = "Сегодня в городе ожидается дождь, завтра будет солнечно и тепло"
    feed = parse(rss(title).encode("cp1251"))
    assert feed.title == title
    assert feed.repairs == (Repair("encoding", detail="cp1251"),)


def test_a_few_bad_bytes_in_utf8_do_not_change_the_encoding() -> None:
    data = rss("Grüße aus Köln, schöne Füße").encode().replace(b"aus", b"a\xffs")
    assert parse(data).title == "Grüße a\ufffds Köln, schöne Füße"


@pytest.mark.parametrize("name", ["rot13", "zlib", "undefined", "unicode_escape", "idna", "a\x00b", "ü"])
def test_only_text_encodings_are_believed(name: str) -> None:
    assert codec_for(name) is None


def test_decode_never_fails() -> None:
    for data in (b"", b"\xff", b"\xff\xfe\x00", b"\xef\xbb\xbf\xff", bytes(range(256))):
        assert isinstance(decode(data, "text/xml; charset=utf-16").text, str)


ITALIAN = "Perché la città è così più bella, già lunedì? È vero: però no."


@pytest.mark.parametrize(
    ("text", "language", "encoding"),
    [
        (ITALIAN, "it", "cp1252"),
        (ITALIAN, "", "cp1252"),
        ("Le café était très français à Noël, où êtes-vous?", "", "cp1252"),
        ("Zażółć gęślą jaźń, proszę państwa", "pl", "cp1250"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy", "cs", "cp1250"),
        ("Сегодня в городе дождь", "ru", "cp1251"),
        ("Καλημέρα κόσμε", "el", "cp1253"),
        ("Türkçe ışık ığdır şöyle", "tr", "cp1254"),
        ("日本語のニュースです", "ja", "cp932"),
        ("今天的新闻很多", "zh-cn", "gb18030"),
    ],
)
def test_legacy_encoding_labelled_utf8_is_chosen_by_language_and_look(
    text: str, language: str, encoding: str
) -> None:
    said = f"<language>{language}</language>" if language else ""
    document = rss(text, "utf-8").replace("<channel>", f"<channel>{said}")
    assert parse(document.encode(encoding)).title == text


@pytest.mark.parametrize("text", [ITALIAN, "“Quoted” – it’s…", "日本語 😀 Привет", "naïve"])
def test_text_encoded_twice_is_read_and_noted(text: str) -> None:
    once = rss(text).encode().decode("cp1252", "headwater-test-c1")
    feed = parse(once.encode())
    assert feed.title == text
    assert [repair.kind for repair in feed.repairs] == ["double_encoding"]


@pytest.mark.parametrize("text", ["Ã© is what é looks like, said André", "Â is a letter", "São Tomé"])
def test_text_that_only_looks_like_it_was_encoded_twice_stays(text: str) -> None:
    feed = parse(rss(text).encode())
    assert (feed.title, feed.repairs) == (text, ())


def test_lone_foreign_letter_in_utf8_is_read_as_latin() -> None:
    data = rss("Grüße, Zoë, Köln").encode() + "<!-- caf\xe9 -->".encode("cp1252")
    assert parse(data.replace("Zoë".encode(), b"Zo\xeb")).title == "Grüße, Zoë, Köln"


def _pass_undefined(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("headwater-test-c1", _pass_undefined)
