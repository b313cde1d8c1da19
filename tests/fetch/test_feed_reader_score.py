"""How a reader should behave towards publishers, after the criteria of the public feed-reader-score tests.

Here they are put to the door alone: a reader that keeps what the door returns and gives it back. When it
comes again is the schedule's business.
"""

from collections.abc import AsyncIterator

import pytest

from headwater.errors import FetchError
from headwater.fetch import Fetcher, Request, Response
from headwater.model import Validators
from tests.fetch import USER_AGENT, door
from tests.origin import Answer, Origin

FEED = b"<rss><channel/></rss>"


class Reader:
    """Keeps the validators of its last good answer, as a source does."""

    def __init__(self, fetcher: Fetcher, url: str) -> None:
        self._fetcher = fetcher
        self._url = url
        self.validators = Validators()

    async def poll(self) -> Response | None:
        try:
            response = await self._fetcher.get(Request(self._url, self.validators))
        except FetchError:
            return None
        self.validators = response.validators
        return response


@pytest.fixture
async def reader(origin: Origin) -> AsyncIterator[Reader]:
    async with door() as fetcher:
        yield Reader(fetcher, origin.url("/feed"))


def conditions(origin: Origin) -> list[tuple[str | None, str | None]]:
    return [
        (request.headers.get("if-none-match"), request.headers.get("if-modified-since"))
        for request in origin.requests
    ]


async def test_after_the_first_no_unconditional_request(origin: Origin, reader: Reader) -> None:
    origin.route("/feed", body=FEED, etag='"1"', last_modified="Fri, 13 Nov 2026 08:00:00 GMT")
    for _ in range(5):
        await reader.poll()
    assert conditions(origin) == [(None, None)] + [('"1"', "Fri, 13 Nov 2026 08:00:00 GMT")] * 4


async def test_no_condition_that_was_not_received(origin: Origin, reader: Reader) -> None:
    origin.route("/feed", body=FEED)
    for _ in range(3):
        await reader.poll()
    assert conditions(origin) == [(None, None)] * 3


async def test_each_validator_alone(origin: Origin, reader: Reader) -> None:
    origin.route("/feed", [Answer(FEED, etag='"1"'), Answer(FEED + b" ", last_modified="then"), Answer(FEED)])
    for _ in range(4):
        await reader.poll()
    assert conditions(origin) == [(None, None), ('"1"', None), (None, "then"), (None, None)]


async def test_a_changed_validator_replaces_the_old_one(origin: Origin, reader: Reader) -> None:
    origin.route("/feed", [Answer(FEED, etag='"1"'), Answer(FEED + b" ", etag='"2"'), Answer(status=304)])
    for _ in range(4):
        await reader.poll()
    assert [etag for etag, _ in conditions(origin)] == [None, '"1"', '"2"', '"2"']


async def test_failures_do_not_lose_the_validators(origin: Origin, reader: Reader) -> None:
    origin.route(
        "/feed", [Answer(FEED, etag='"1"'), Answer(status=500, etag='"error"'), Answer(FEED, etag='"1"')]
    )
    for _ in range(3):
        await reader.poll()
    assert [etag for etag, _ in conditions(origin)] == [None, '"1"', '"1"']


async def test_validators_come_from_the_feed_not_from_the_redirect(origin: Origin, reader: Reader) -> None:
    origin.route("/feed", status=302, location="/real", etag='"redirect"', last_modified="never")
    origin.route("/real", body=FEED, etag='"real"')
    first = await reader.poll()
    second = await reader.poll()
    assert first is not None
    assert second is not None
    assert second.unchanged
    assert [etag for etag, _ in conditions(origin)] == [None, None, '"real"', '"real"']


async def test_no_cookie_is_ever_sent_back(origin: Origin) -> None:
    origin.route(
        "/feed", status=302, location="/real", headers=[("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    )
    origin.route("/real", body=FEED, headers={"Set-Cookie": "c=3; Path=/; Max-Age=99999"})
    async with door() as fetcher:
        # by name: cookie jars of themselves keep nothing for a bare address
        reader = Reader(fetcher, origin.url("/feed", host="localhost"))
        for _ in range(3):
            await reader.poll()
    assert len(origin.requests) == 6
    assert not [request for request in origin.requests if "cookie" in request.headers]


async def test_no_referrer_not_even_after_a_redirect(origin: Origin, reader: Reader) -> None:
    origin.route("/feed", status=301, location="/real")
    origin.route("/real", body=FEED)
    await reader.poll()
    assert not [
        request for request in origin.requests if {"referer", "origin", "from"} & set(request.headers)
    ]


async def test_one_honest_user_agent_with_a_way_to_reach_us(origin: Origin, reader: Reader) -> None:
    origin.route("/feed", status=301, location="/real")
    origin.route("/real", body=FEED)
    await reader.poll()
    assert {request.headers["user-agent"] for request in origin.requests} == {USER_AGENT}


async def test_one_request_for_one_poll(origin: Origin, reader: Reader) -> None:
    """No HEAD first, no second try, no favicon, no robots.txt."""
    origin.route(
        "/feed",
        [Answer(FEED), Answer(status=500), Answer(fault="garbage"), Answer(fault="cut-body", body=FEED)],
    )
    for polls in range(1, 5):
        await reader.poll()
        assert [(request.method, request.target) for request in origin.requests] == [("GET", "/feed")] * polls


async def test_lost_kept_connection_is_retried_once(origin: Origin, reader: Reader) -> None:
    """It may close in the moment of its use, which is not a fault. Once more, not twice."""
    origin.route("/feed", [Answer(FEED), Answer(fault="reset"), Answer(fault="reset"), Answer(FEED)])
    assert await reader.poll() is not None
    assert await reader.poll() is None
    assert len(origin.requests) == 3


async def test_a_new_connection_that_is_lost_is_not(origin: Origin, reader: Reader) -> None:
    origin.route("/feed", fault="reset")
    assert await reader.poll() is None
    assert len(origin.requests) == 1


async def test_a_publisher_that_asks_for_time_is_not_asked_again(origin: Origin, reader: Reader) -> None:
    origin.route("/feed", status=429, headers={"Retry-After": "3600"})
    for _ in range(5):
        assert await reader.poll() is None
    assert len(origin.requests) == 1


async def test_compression_is_asked_for(origin: Origin, reader: Reader) -> None:
    origin.route("/feed", body=FEED * 100, encoding="gzip")
    response = await reader.poll()
    assert response is not None
    assert response.bytes_received < len(FEED) * 50
    assert "gzip" in origin.requests[0].headers["accept-encoding"]
