"""RSSHub: a route on an instance, and its error pages read for what they say."""

import pytest

from headwater.errors import FailureKind, InputError
from headwater.sources.adding import read_new_source
from tests.collectors.visits import Visits
from tests.fake_services import CAPTCHA, as_json, as_page, hub_error
from tests.origin import Answer, Origin

FEED = (
    '<rss version="2.0"><channel><title>A route</title><item><title>One</title><guid>1</guid></item>'
    "</channel></rss>"
)


async def test_a_route_is_a_feed(origin: Origin) -> None:
    origin.route("/github/issue/x?limit=5", body=FEED, etag='"1"')
    async with Visits(
        origin, "rss.hub", config={"route": "/github/issue/x?limit=5", "instance": origin.url("/")}
    ) as runs:
        assert await runs.cost() == (1, 1)
        assert (await runs.visit()).unchanged
    assert origin.requests[1].headers["if-none-match"] == '"1"'


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (hub_error("NotFoundError: wrong path", 404), FailureKind.NOT_FOUND, "NotFoundError: wrong path"),
        (
            hub_error("Error: this route is empty, please check the original site"),
            FailureKind.CHANGED_STRUCTURE,
            "this route is empty",
        ),
        (
            hub_error("ConfigNotFoundError: needs a &lt;token&gt;"),
            FailureKind.CLIENT_ERROR,
            "needs a <token>",
        ),
        (
            hub_error("RejectError: Authentication failed", 403),
            FailureKind.FORBIDDEN,
            "Authentication failed",
        ),
        (hub_error("FetchError: 502 Bad Gateway"), FailureKind.SERVER_ERROR, "502 Bad Gateway"),
        (hub_error("FetchError: x", 200), FailureKind.SERVER_ERROR, "FetchError"),
        (as_json({"error": {"message": "wrong path"}}, status=404), FailureKind.NOT_FOUND, "wrong path"),
        (
            as_page("<!doctype html><html><title>Welcome to RSSHub!</title></html>"),
            FailureKind.SERVER_ERROR,
            "front page",
        ),
        (as_page(CAPTCHA, status=403), FailureKind.FORBIDDEN, "captcha"),
        (Answer(status=404), FailureKind.NOT_FOUND, "404"),
        (Answer(status=503, headers={"Retry-After": "9"}), FailureKind.SERVER_ERROR, "503"),
        (Answer(status=429), FailureKind.RATE_LIMITED, "429"),
        (as_page("<html><body>hello</body></html>"), FailureKind.NOT_A_FEED, "web page"),
    ],
)
async def test_bad_days(origin: Origin, answer: Answer, kind: FailureKind, words: str) -> None:
    origin.route("/x", answer)
    async with Visits(origin, "rss.hub", origin.url("/x")) as runs:
        error = await runs.failure()
    assert error.kind is kind
    assert words in str(error)


@pytest.mark.parametrize(
    ("url", "config", "address"),
    [
        (None, {"route": "/a/b"}, "https://rsshub.app/a/b"),
        ("rsshub://a/b?limit=1", {}, "https://rsshub.app/a/b?limit=1"),
        ("rsshub://a", {"instance": "https://mine.example/"}, "https://mine.example/a"),
        ("https://mine.example/a", {}, "https://mine.example/a"),
        ("https://mine.example", {"route": "/a"}, "https://mine.example/a"),
    ],
)
def test_addresses(url: str | None, config: dict[str, str], address: str) -> None:
    wanted = read_new_source(url, "rss.hub", config)
    assert wanted.url == address
    assert read_new_source(None, "rss.hub", wanted.config).url == address


def test_an_address_with_its_own_scheme_is_recognised() -> None:
    assert read_new_source("rsshub://a/b").type.name == "rss.hub"


@pytest.mark.parametrize("config", [{}, {"route": "a"}, {"route": 5}, {"route": "/a", "instance": "mine"}])
def test_wrong_configs(config: dict[str, object]) -> None:
    with pytest.raises(InputError):
        read_new_source(None, "rss.hub", config)
