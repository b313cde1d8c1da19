"""Pages that stand in the way of an article are told apart, in linear time."""

import time

import pytest

from headwater.formats.pages.obstacles import Obstacle, find_obstacle, has_paywall

ARTICLE = "<html><body><article>" + "<p>The river rose for three days.</p>" * 30 + "</article></body></html>"


@pytest.mark.parametrize(
    ("page", "url", "obstacle"),
    [
        ("<title>Attention Required! | Cloudflare</title>", "https://a.example/", "block"),
        ('<script src="https://geo.captcha-delivery.com/c.js"></script>', "https://a.example/", "block"),
        ("<p>Please verify you are a human</p>", "https://a.example/", "block"),
        ("<p>nothing</p>", "https://consent.a.example/collect", "consent"),
        ("<p>nothing</p>", "https://guce.a.example/x", "consent"),
        ('<div id="onetrust-banner">Cookies</div>', "https://a.example/", "consent"),
        ("<p>Already a subscriber? Sign in</p>", "https://a.example/", "paywall"),
        ("<p>订阅后继续阅读</p>", "https://a.example/", "paywall"),
        ('<div class="x" id="__next"></div><script src="a.js"></script>', "https://a.example/", "script"),
        ("<noscript>Please enable JavaScript.</noscript>", "https://a.example/", "script"),
        ("<body><script>render()</script></body>", "https://a.example/", "script"),
        ("<p>Hi.</p>", "https://a.example/", None),
        (ARTICLE, "https://a.example/", None),
    ],
)
def test_find_obstacle_names_what_a_page_is(page: str, url: str, obstacle: Obstacle | None) -> None:
    assert find_obstacle(page, url) == obstacle


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ('{"isAccessibleForFree":"False"}', True),
        ('{"isAccessibleForFree": false}', True),
        ('{"isAccessibleForFree": true}', False),
        ("<p>subscribe to continue reading</p>", False),
    ],
)
def test_has_paywall_believes_what_the_page_says_of_itself(page: str, expected: bool) -> None:
    assert has_paywall(page) is expected


@pytest.mark.parametrize(
    "part", ["<div ", "<div id='root'", "<noscript", "isaccessibleforfree ", "access to this ", "<"]
)
def test_find_obstacle_takes_time_linear_in_the_page(part: str) -> None:
    def seconds(length: int) -> float:
        page = part * (length // len(part))
        begun = time.process_time()
        find_obstacle(page, "https://a.example/")
        return time.process_time() - begun

    short = max(min(seconds(30_000) for _ in range(3)), 0.002)
    assert seconds(240_000) < 8 * short * 6
