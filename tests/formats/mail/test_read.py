"""Letters of many shapes become items; damaged and hostile ones too."""

import time
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.formats.html import sanitize_html
from headwater.formats.mail.read import MOST_BYTES, decode_words, read_letter, read_sender
from tests.dovecot import letter


def raw(head: str, body: bytes = b"Hello") -> bytes:
    return head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body


def test_read_letter_usual_gives_item() -> None:
    found = read_letter(letter(7))
    assert found.sender == "news@garden.example"
    assert found.from_name == "Garden Letters"
    item = found.item
    assert item.external_id == "<letter-7@garden.example>"
    assert item.title == "Letter 7"
    assert item.author == "Garden Letters"
    assert item.content == "<p>Text of <b>letter 7</b>.</p>"
    assert item.summary == "Text of letter 7."
    assert item.published_at == 1_790_000_000 + 7 * 3600


def test_read_letter_plain_text_becomes_paragraphs() -> None:
    item = read_letter(raw("From: a@b.example\nSubject: S", b"One\r\n\r\nTwo <3 https://e.example/x")).item
    assert (
        item.content == '<p>One</p>\n<p>Two &lt;3 <a href="https://e.example/x">https://e.example/x</a></p>'
    )


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("gb18030", "春天的花园"),
        ("big5", "春天的花園"),
        ("iso-2022-jp", "春の庭"),
        ("koi8-r", "Весенний сад"),
    ],
)
@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "8bit"])
def test_read_letter_charset_and_encoding_are_decoded(charset: str, text: str, encoding: str) -> None:
    import base64
    import quopri

    data = text.encode(charset)
    coded = {"base64": base64.encodebytes(data), "quoted-printable": quopri.encodestring(data), "8bit": data}
    head = f"From: a@b.example\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: {encoding}"
    assert read_letter(raw(head, coded[encoding])).item.content == f"<p>{text}</p>"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("=?utf-8?q?G=C3=A4rten?=", "Gärten"),
        ("=?gb2312?B?tLrM7A==?=", "春天"),
        ("=?utf-8?Q?Two?=\r\n =?utf-8?Q?_parts?=", "Two parts"),
        ("=?utf-8?q?a=0D=0ABcc:x@y.example?=", "a Bcc:x@y.example"),
        ("=?no-such?q?x=41?=", "xA"),
        ("plain", "plain"),
    ],
)
def test_decode_words_gives_one_line(written: str, read: str) -> None:
    assert decode_words(written) == read


def test_read_letter_undeclared_bytes_in_subject_are_read() -> None:
    data = b"From: a@b.example\r\nSubject: " + "Fräulein".encode() + b"\r\n\r\nx"
    assert read_letter(data).item.title == "Fräulein"


def test_read_letter_without_identity_is_told_by_what_it_says() -> None:
    one, two = (read_letter(raw("From: a@b.example\nSubject: S", body)).item for body in (b"x", b"y"))
    assert one.external_id.startswith("letter:")
    assert one.external_id != two.external_id
    assert one.external_id == read_letter(raw("From: a@b.example\nSubject: S", b"x")).item.external_id


def test_read_letter_attachments_are_named_and_left_out() -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "a@b.example", "With a file"
    message.set_content("See the file.")
    message.add_attachment(b"x" * 100, maintype="application", subtype="pdf", filename="Bericht.pdf")
    item = read_letter(message.as_bytes()).item
    assert item.content == "<p>See the file.</p>"
    assert item.extras is not None
    assert item.extras["letter"]["attachments"] == ["Bericht.pdf"]


def test_read_letter_text_before_a_large_attachment_is_kept() -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "a@b.example", "Large"
    message.set_content("First the text.")
    message.add_attachment(b"\0" * 20_000_000, maintype="video", subtype="mp4", filename="film.mp4")
    item = read_letter(message.as_bytes()).item
    assert item.content == "<p>First the text.</p>"


def test_read_letter_notes_what_the_server_found() -> None:
    said = "mx.example.org; dkim=pass header.d=garden.example; spf=softfail smtp.mailfrom=x"
    item = read_letter(letter(Authentication_Results=said)).item
    assert item.extras is not None
    assert item.extras["letter"]["authentication"] == {"dkim": "pass", "spf": "softfail"}


def test_read_letter_list_name_is_what_it_is_called() -> None:
    assert read_letter(letter(List_Id='"Garden weekly" <garden.example>')).from_name == "Garden weekly"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n\r\n",
        b"no header at all",
        raw("From: \nContent-Type: multipart/mixed", b"--x\r\n\r\nhi"),
        raw("From: =?x?y?z?=\nDate: 99 Foo 99999\nContent-Type: text/html; charset=\x00"),
        raw("Content-Type: multipart/mixed; boundary=x", b"--x\r\n" * 20_000),
        raw("Content-Type: text/plain\nContent-Transfer-Encoding: base64", b"!!!" * 1000),
        raw("Content-Type: message/rfc822", b"Content-Type: message/rfc822\r\n\r\n" * 3_000),
        raw("From: " + "a@b.example," * 50_000),
        raw("Subject: " + "=?utf-8?q?x?= " * 50_000),
        raw("Subject: " + "=?a?q?x" * 3_000),
        raw("Content-Type: text/plain" + ";" * 2_900_000),
        raw("Content-Disposition: attachment" + ";" * 2_900_000),
        raw("Content-Type: text/plain; " + "; ".join(f"charset*{n}=b" for n in range(100_000))),
    ],
    ids=range(14),
)
def test_read_letter_damaged_is_read_in_time(data: bytes) -> None:
    began = time.process_time()
    read_letter(data)
    read_sender(data)
    assert time.process_time() - began < 2


def test_read_letter_nested_parts_are_read_in_time() -> None:
    """Each open part makes every line dearer to read; a letter with too many is shown as it came."""
    head = "".join(f'Content-Type: multipart/mixed; boundary="b{n}"\r\n\r\n--b{n}\r\n' for n in range(2_000))
    data = b"From: a@b.example\r\n" + head.encode() + b"x\r\n" * 900_000
    began = time.process_time()
    found = read_letter(data[:MOST_BYTES])
    assert time.process_time() - began < 5
    assert found.sender == "a@b.example"


@settings(deadline=None)
@given(st.binary(max_size=3_000))
def test_read_letter_never_fails(data: bytes) -> None:
    found = read_letter(b"From: a@b.example\r\n" + data)
    sanitize_html(found.item.content or "")
    assert "\n" not in found.item.title


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '<a href="javascript:alert(1)">x</a>',
        "<svg onload=alert(1)>",
        "<iframe src=https://e.example></iframe>",
        "<style>@import 'https://e.example'</style>",
        "<form action=https://e.example><input name=p></form>",
        "<head><script>alert(1)</script>",
        "<title><script>alert(1)</script>",
        '<base href="https://e.example">',
        '<meta http-equiv=refresh content="0;url=https://e.example">',
    ],
)
def test_read_letter_with_attack_shows_nothing_that_runs(attack: str) -> None:
    data = raw("From: a@b.example\nContent-Type: text/html", f"<p>a</p>{attack}<p>b</p>".encode())
    shown = sanitize_html(read_letter(data).item.content or "").lower()
    for word in (
        "<script",
        "onerror",
        "javascript:",
        "<svg",
        "<iframe",
        "@import",
        "<form",
        "<base",
        "<meta",
    ):
        assert word not in shown
