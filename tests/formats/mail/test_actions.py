"""What a reader can do with a letter is found in its headers and links."""

import pytest

from headwater.formats.mail.actions import find_links
from headwater.formats.mail.read import read_letter
from headwater.model import Item
from tests.dovecot import letter


def html_letter(body: str, subject: str = "News", **headers: str) -> Item:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = ["From: a@b.example", f"Subject: {subject}", "Content-Type: text/html; charset=utf-8", *lines]
    return read_letter(("\r\n".join(head) + "\r\n\r\n" + body).encode()).item


def told(item: Item) -> dict[str, object]:
    assert item.extras is not None
    return dict(item.extras["letter"])


def test_unsubscribing_with_one_click_is_found() -> None:
    item = read_letter(
        letter(
            List_Unsubscribe="<mailto:out@garden.example>, <https://garden.example/out?u=1>",
            List_Unsubscribe_Post="List-Unsubscribe=One-Click",
        )
    ).item
    said = told(item)
    assert said["unsubscribe_url"] == "https://garden.example/out?u=1"
    assert said["unsubscribe_mail"] == "mailto:out@garden.example"
    assert said["unsubscribe_one_click"] is True


@pytest.mark.parametrize(
    ("address", "post", "one_click"),
    [
        ("https://g.example/out", "", None),
        ("https://g.example/out", "something else", None),
        ("http://g.example/out", "List-Unsubscribe=One-Click", False),
    ],
)
def test_unsubscribing_needs_a_page_without_the_header_or_tls(
    address: str, post: str, one_click: bool | None
) -> None:
    said = told(read_letter(letter(List_Unsubscribe=f"<{address}>", List_Unsubscribe_Post=post or "x")).item)
    assert said.get("unsubscribe_one_click") is one_click


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "https://", "ftp://x.example", "data:text/html,x"]
)
def test_unsubscribing_takes_web_addresses_only(address: str) -> None:
    assert "unsubscribe_url" not in told(read_letter(letter(List_Unsubscribe=f"<{address}>")).item)


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ("Please confirm your subscription", "Confirm"),
        ("Confirm your email address", "Yes, subscribe me"),
        ("Verify your email", "Verify email"),
        ("请确认订阅", "确认订阅"),
        ("邮箱验证", "点击验证"),
    ],
)
def test_confirmation_is_found(subject: str, words: str) -> None:
    body = f'<a href="https://g.example/">Home</a><a href="https://g.example/yes?t=1">{words}</a>'
    assert told(html_letter(body, subject))["confirm_url"] == "https://g.example/yes?t=1"


@pytest.mark.parametrize("subject", ["News of May", "We confirm nothing", "五月新闻"])
def test_confirmation_is_found_in_letters_that_ask_for_it_only(subject: str) -> None:
    assert "confirm_url" not in told(html_letter('<a href="https://g.example/yes">Confirm</a>', subject))


@pytest.mark.parametrize(
    "words",
    [
        "View in browser",
        "View this email in your browser",
        "Read online",
        "web version",
        "在浏览器中查看",
        "网页版",
    ],
)
def test_web_address_is_found_by_its_words(words: str) -> None:
    body = f'<p><a href="https://g.example/shop">Shop</a> <a href="https://g.example/n/5"><span>{words}</span></a></p>'
    assert html_letter(body).url == "https://g.example/n/5"


def test_web_address_in_the_header_counts_first() -> None:
    item = html_letter(
        '<a href="https://g.example/n/5">View online</a>', Archived_At="<https://g.example/archive/5>"
    )
    assert item.url == "https://g.example/archive/5"


def test_web_address_is_none_where_no_link_says_so() -> None:
    assert html_letter('<a href="https://g.example/x">Our shop</a>').url is None


def test_find_links_is_bounded() -> None:
    assert len(find_links('<a href="https://x.example">y</a>' * 100_000)) == 2_000
