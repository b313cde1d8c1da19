"""Addresses as they may be shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.fetch.message import public_url, without_secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.example/f?api_key=S3CRET&page=2", "https://a.example/f?api_key=***&page=2"),
        ("https://a.example/f?apikey=S3CRET", "https://a.example/f?apikey=***"),
        ("https://a.example/f?x=1&token=S3CRET#top", "https://a.example/f?x=1&token=***#top"),
        ("https://a.example/f?accessToken=S3CRET", "https://a.example/f?accessToken=***"),
        ("https://a.example/f?key=S3CRET;b=2", "https://a.example/f?key=***;b=2"),
        ("https://a.example/f?%6Bey=S3CRET", "https://a.example/f?%6Bey=***"),
        ("https://me:S3CRET@a.example/f?a=1", "https://a.example/f?a=1"),
        ("https://S3CRET@a.example", "https://a.example"),
        ("https://a.example/f?feed-password=S3CRET", "https://a.example/f?feed-password=***"),
    ],
)
def test_without_secrets_stars_tokens_and_passwords(url: str, shown: str) -> None:
    assert without_secrets(url) == shown
    assert "S3CRET" not in public_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/f?author=me&keyword=x&monkey=1&compass=2",
        "https://a.example/users/@me/feed?q=a@b",
        "https://www.youtube.com/feeds/videos.xml?channel_id=UCabc",
        "https://a.example/f?token=",
        "hackernews:top",
        "",
    ],
)
def test_without_secrets_leaves_the_rest_as_it_is(url: str) -> None:
    assert without_secrets(url) == url


@given(st.text())
def test_without_secrets_takes_any_text_and_is_done_once(text: str) -> None:
    once = without_secrets(text)
    assert without_secrets(once) == once or "@" in text
