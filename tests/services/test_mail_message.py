"""E-mails as they are written, and what no title can do to them."""

import email
from email import policy
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import InputError
from headwater.formats.html import text_as_html
from headwater.services.mail_message import Letter, compose, header_line, read_address

FORGERY = "=?utf-8?q?Hi=0D=0AFrom:_evil@example.org=0D=0ABcc:_thief@example.org=0D=0A=0D=0AForged?="


def write(letter: Letter) -> EmailMessage:
    return email.message_from_bytes(compose(letter, "key").as_bytes(), EmailMessage, policy=policy.default)


def letter(subject: str = "Flood", text: str = "Rain.", html: str | None = None) -> Letter:
    return Letter(
        "River <news@example.org>", ["ann@example.org", "Bob <bob@example.org>"], subject, text, html
    )


HEADERS = [
    *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"),
]


@pytest.mark.parametrize(
    "subject",
    [
        FORGERY,
        "Flood\r\nBcc: thief@example.org",
        "=?utf-8?b?SGkNCkZyb206IGV2aWxAZXhhbXBsZS5vcmc=?=",
        "=\x00?utf-8?q?Hi=0D=0AFrom:_evil@example.org?=",
        # an encoded word inside an encoded word
        "=?utf-8?q?=3D=3Futf-8=3Fq=3FHi=3D0D=3D0AFrom=3A_evil=3F=3D?=",
        "a\u2028From: evil@example.org\x85Bcc: thief@example.org\x1dX: y",
        "=?utf-8?q?" + "x=0D=0AFrom:_evil@example.org=20" * 20 + "?=",
        "\ud800 half",
        "",
    ],
)
def test_compose_with_a_hostile_subject_writes_its_own_headers_only(subject: str) -> None:
    message = write(letter(subject))
    assert sorted(message.keys()) == sorted(HEADERS)
    assert message["From"] == "River <news@example.org>"
    assert message["To"] == "ann@example.org, Bob <bob@example.org>"
    assert len(str(message["Subject"]).splitlines()) <= 1
    (plain, _) = message.iter_parts()
    assert plain.get_content().strip() == "Rain."


_WORDS = st.sampled_from(
    [
        "=?utf-8?q?",
        "=?utf-8?b?",
        "?=",
        "=0D=0A",
        "DQo=",
        "\r\n",
        "From:",
        " ",
        "x",
        "=3D=3F",
        "\u2028",
        "é",
        "=",
        "?",
    ]
)


@settings(deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(_WORDS, max_size=25).map("".join)))
def test_compose_with_any_subject_has_one_of_each_header_and_its_own_body(subject: str) -> None:
    message = write(letter(subject))
    assert sorted(message.keys()) == sorted(HEADERS)
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    assert str(message["Subject"]).split() == header_line(subject).split()


@settings(deadline=None)
@given(st.text(max_size=300), st.text(max_size=300))
def test_compose_with_any_text_keeps_both_parts(text: str, html: str) -> None:
    plain, markup = write(letter(text=text, html=html)).iter_parts()
    assert isinstance(plain, EmailMessage)
    assert isinstance(markup, EmailMessage)
    assert (plain.get_content_type(), markup.get_content_type()) == ("text/plain", "text/html")


def test_compose_gives_a_date_and_a_message_id_of_the_senders_domain() -> None:
    message = write(letter())
    assert message["Date"].datetime.tzinfo is not None
    assert message["Message-ID"].endswith("@example.org>")
    assert message["Message-ID"] == write(letter("another"))["Message-ID"], "the key alone makes it"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content_type() == "multipart/alternative"
    elsewhere = compose(
        Letter("a@bücher.example", ["b@example.org"], "x", "y", reply_to="c@example.org"), "key"
    )
    assert elsewhere["Message-ID"].endswith("@xn--bcher-kva.example>")
    assert elsewhere["Reply-To"] == "c@example.org"


def test_compose_sanitises_html() -> None:
    _, markup = write(letter(html="<p onclick='x()'>Hi <b>you</b><script>alert(1)</script></p>")).iter_parts()
    assert isinstance(markup, EmailMessage)
    assert "<p>Hi <b>you</b></p>" in markup.get_content()
    assert "script" not in markup.get_content()


def test_text_as_html_escapes_and_links() -> None:
    assert text_as_html("a <b>\nc\n\n\nsee https://a.example/?x=1&y=2.") == (
        "<p>a &lt;b&gt;<br>\nc</p>\n"
        '<p>see <a href="https://a.example/?x=1&amp;y=2">https://a.example/?x=1&amp;y=2</a>.</p>'
    )


@pytest.mark.parametrize(
    "text",
    [
        *(
            "unknown",
            "@example.org",
            "a@",
            "",
            "a@example.org, b@example.org",
            "a@example.org\r\nBcc: b@example.org",
        ),
        *("=?utf-8?q?a=0D=0A?= <a@example.org>", "a b@example.org", "<a@example.org> x"),
    ],
)
def test_read_address_refuses_what_is_not_one_address(text: str) -> None:
    with pytest.raises(InputError, match="is not an e-mail address"):
        read_address(text)
