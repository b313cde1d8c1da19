"""The door's own behaviour against an origin that does what real ones do."""

import asyncio
import logging
import subprocess
import sys
import threading
import time
from hashlib import sha1
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.config import load_settings
from headwater.errors import FailureKind, FetchError, InputError, SettingError
from headwater.fetch import BasicAuth, BearerAuth, Fetcher, Request
from headwater.fetch.client import make_fetcher
from headwater.fetch.url import keeps_credentials, read_proxy, read_url
from headwater.model import Hints, Validators
from tests.examples import examples
from tests.fetch import USER_AGENT, door
from tests.origin import Answer, Encoding, Origin, Received, compress

FEED = b"<rss><channel><title>\xe4\xb8\xad\xe6\x96\x87</title></channel></rss>"


async def failure(fetcher: Fetcher, request: Request | str) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await fetcher.get(request if isinstance(request, Request) else Request(request))
    return caught.value


# -- what comes back --------------------------------------------------------------------------------------


async def test_a_good_answer(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route(
        "/feed",
        body=FEED,
        etag='"v1"',
        last_modified="Fri, 13 Nov 2026 08:00:00 GMT",
        content_type="text/xml",
    )
    response = await fetcher.get(Request(url))
    assert (response.status, response.body, response.url) == (200, FEED, url)
    assert response.validators == Validators(
        etag=b'"v1"',
        last_modified=b"Fri, 13 Nov 2026 08:00:00 GMT",
        body_hash=sha1(FEED, usedforsecurity=False).digest(),
    )
    assert not response.unchanged
    assert response.content_type == "text/xml"
    assert response.headers["ETAG"] == '"v1"'
    assert (response.requests, response.redirects, response.permanent_url) == (1, (), None)
    assert response.elapsed_seconds > 0


async def test_not_modified(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=FEED, etag='"v1"')
    first = await fetcher.get(Request(url))
    second = await fetcher.get(Request(url, first.validators))
    assert (second.status, second.body, second.unchanged) == (304, b"", True)
    assert second.validators == first.validators


async def test_a_304_may_bring_new_validators(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", status=304, etag='"v2"')
    known = Validators(etag=b'"v1"', last_modified=b"long ago", body_hash=b"hash")
    response = await fetcher.get(Request(url, known))
    assert response.validators == Validators(etag=b'"v2"', last_modified=b"long ago", body_hash=b"hash")


async def test_unrequested_304_is_broken(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", status=304)
    error = await failure(fetcher, Request(url, Validators(body_hash=b"hash")))
    assert (error.kind, error.http_status) == (FailureKind.BROKEN, 304)


async def test_the_same_bytes_are_unchanged(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", [Answer(FEED), Answer(FEED), Answer(FEED + b" ")])
    first = await fetcher.get(Request(url))
    second = await fetcher.get(Request(url, first.validators))
    third = await fetcher.get(Request(url, second.validators))
    assert [r.unchanged for r in (first, second, third)] == [False, True, False]
    assert (second.status, second.body) == (200, FEED)


@pytest.mark.parametrize(
    "etag",
    [
        b'W/"weak"',
        b"unquoted",
        b'"it\'s "quoted" within"',
        b'"with, comma"',
        b'"67ab43-gzip"',
        b'""',
        b"0",
        "“中文”".encode(),
        b'"latin-1 \xe9\xff"',
        b'"\xc3\x28 no utf-8"',
        b'"tab\there"',
    ],
)
async def test_validators_go_back_byte_for_byte(origin: Origin, fetcher: Fetcher, etag: bytes) -> None:
    url = origin.route("/feed", body=FEED, etag=etag)
    first = await fetcher.get(Request(url))
    assert first.validators.etag == etag
    second = await fetcher.get(Request(url, first.validators))
    assert second.unchanged
    assert dict(origin.requests[1].raw_headers)[b"If-None-Match"] == etag


@pytest.mark.parametrize("date", [b"yesterday", b"0", b"2026-11-13T08:00:00Z", b"Freitag, 13. M\xe4rz"])
async def test_dates_that_are_none_go_back_too(origin: Origin, fetcher: Fetcher, date: bytes) -> None:
    url = origin.route("/feed", body=FEED, last_modified=date)
    first = await fetcher.get(Request(url))
    second = await fetcher.get(Request(url, first.validators))
    assert second.unchanged
    assert dict(origin.requests[1].raw_headers)[b"If-Modified-Since"] == date


async def test_empty_validators_are_none(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=FEED, etag="", last_modified="")
    response = await fetcher.get(Request(url))
    assert (response.validators.etag, response.validators.last_modified) == (None, None)


async def test_validators_that_could_split_the_request_are_not_sent(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=FEED)
    await fetcher.get(Request(url, Validators(etag=b'"x"\r\nX-Evil: 1', last_modified=b"a\x00b")))
    names = {name.lower() for name, _ in origin.requests[0].raw_headers}
    assert not names & {b"if-none-match", b"if-modified-since", b"x-evil"}


@pytest.mark.parametrize("encoding", get_args(Encoding))
async def test_encodings(origin: Origin, fetcher: Fetcher, encoding: Encoding) -> None:
    body = FEED * 5000
    url = origin.route("/feed", body=body, encoding=encoding, chunked=True)
    response = await fetcher.get(Request(url))
    assert response.body == body
    assert response.bytes_received < len(body) / 10
    assert encoding in origin.requests[0].headers["accept-encoding"]


async def test_bytes_received_are_those_of_the_wire(origin: Origin, fetcher: Fetcher) -> None:
    body = bytes(range(256)) * 100
    packed = compress(body, "gzip")
    url = origin.route("/feed", body=body, encoding="gzip")
    response = await fetcher.get(Request(url))
    assert len(packed) < response.bytes_received < len(packed) + 300
    # What came is what was sent, but for the status line's phrase.
    assert abs(response.bytes_received - origin.bytes_sent) < 10


@pytest.mark.parametrize("status", [200, 203, 204])
async def test_an_empty_body_passes_through(origin: Origin, fetcher: Fetcher, status: int) -> None:
    response = await fetcher.get(Request(origin.route("/feed", status=status, body=b"")))
    assert (response.status, response.body, response.unchanged) == (status, b"", False)


# -- statuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, FailureKind.UNAUTHORIZED),
        (403, FailureKind.FORBIDDEN),
        (404, FailureKind.NOT_FOUND),
        (407, FailureKind.UNAUTHORIZED),
        (410, FailureKind.GONE),
        (418, FailureKind.CLIENT_ERROR),
        (429, FailureKind.RATE_LIMITED),
        (451, FailureKind.FORBIDDEN),
        (500, FailureKind.SERVER_ERROR),
        (503, FailureKind.SERVER_ERROR),
        (599, FailureKind.SERVER_ERROR),
        (300, FailureKind.BROKEN),
        (305, FailureKind.BROKEN),
        (301, FailureKind.REDIRECT),
    ],
)
async def test_a_status_becomes_its_kind_of_failure(
    origin: Origin, fetcher: Fetcher, status: int, kind: FailureKind
) -> None:
    url = origin.route("/feed", status=status, body="sorry")
    error = await failure(fetcher, url)
    assert (error.kind, error.http_status) == (kind, status)
    assert url in str(error)
    assert str(status) in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "120"}, 120.0),
        ({"Date": "Sat, 14 Nov 2026 10:00:00 GMT", "Retry-After": "Sat, 14 Nov 2026 11:00:00 GMT"}, 3600.0),
        ({"Date": "Sat, 14 Nov 2026 10:00:00 GMT", "Retry-After": "Sat, 14 Nov 2026 09:00:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
async def test_retry_after_of_a_failure(
    origin: Origin, fetcher: Fetcher, status: int, headers: dict[str, str], seconds: float | None
) -> None:
    error = await failure(fetcher, origin.route("/feed", status=status, headers=headers))
    assert error.retry_after_seconds == seconds


@pytest.mark.parametrize(
    ("headers", "hints"),
    [
        ({}, Hints()),
        ({"Cache-Control": "public, max-age=300"}, Hints(max_age_seconds=300)),
        ({"Cache-Control": 'Max-Age="300"', "Age": "100"}, Hints(max_age_seconds=200)),
        ({"Cache-Control": "max-age=300", "Age": "500"}, Hints(max_age_seconds=0)),
        ({"Cache-Control": "no-cache, max-age=300"}, Hints(max_age_seconds=0)),
        ({"Cache-Control": "no-store"}, Hints(max_age_seconds=0)),
        ({"Cache-Control": "s-maxage=9, private"}, Hints()),
        ({"Cache-Control": "max-age=soon"}, Hints()),
        ({"Expires": "0"}, Hints(max_age_seconds=0)),
        (
            {
                "Date": "Sat, 14 Nov 2026 10:00:00 GMT",
                "Expires": "Sat, 14 Nov 2026 10:30:00 GMT",
                "Age": "60",
            },
            Hints(max_age_seconds=1740),
        ),
        (
            {"Cache-Control": "max-age=60", "Expires": "Sat, 14 Nov 2037 10:30:00 GMT"},
            Hints(max_age_seconds=60),
        ),
        ({"Retry-After": "7200"}, Hints(retry_after_seconds=7200)),
        ({"Retry-After": "7200", "Cache-Control": "max-age=1"}, Hints(1, 7200)),
    ],
)
@pytest.mark.parametrize("status", [200, 304])
async def test_the_publishers_hints(
    origin: Origin, fetcher: Fetcher, headers: dict[str, str], hints: Hints, status: int
) -> None:
    url = origin.route("/feed", status=status, body=FEED if status == 200 else b"", headers=headers)
    response = await fetcher.get(Request(url, Validators(etag=b'"v"')))
    assert response.hints == hints


# -- redirects --------------------------------------------------------------------------------------------


async def test_redirects_are_seen_hop_by_hop(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/a", status=301, location="b?x=1")
    origin.route("/b", status=308, location=f"//127.0.0.1:{origin.port}/c")
    origin.route("/c", status=302, location="/d")
    origin.route("/d", status=301, location="/feed#part")
    origin.route("/feed", body=FEED)
    response = await fetcher.get(Request(origin.url("/a")))
    assert [(hop.status, hop.url) for hop in response.redirects] == [
        (301, origin.url("/b?x=1")),
        (308, origin.url("/c")),
        (302, origin.url("/d")),
        (301, origin.url("/feed")),
    ]
    assert (response.url, response.requests) == (origin.url("/feed"), 5)
    # The permanent chain ended at /c: what a temporary redirect leads to is not where the source has moved.
    assert response.permanent_url == origin.url("/c")


@pytest.mark.parametrize(
    ("status", "moved"), [(301, True), (308, True), (302, False), (303, False), (307, False)]
)
async def test_only_permanent_redirects_move_a_source(
    origin: Origin, fetcher: Fetcher, status: int, moved: bool
) -> None:
    origin.route("/old", status=status, location="/new")
    new = origin.route("/new", body=FEED)
    response = await fetcher.get(Request(origin.url("/old")))
    assert response.permanent_url == (new if moved else None)


async def test_the_condition_goes_with_the_redirect(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/old", status=302, location="/new")
    origin.route("/new", body=FEED, etag='"v1"')
    first = await fetcher.get(Request(origin.url("/old")))
    second = await fetcher.get(Request(origin.url("/old"), first.validators))
    assert second.unchanged
    assert second.requests == 2


async def test_credentials_stay_with_their_origin(origin: Origin, fetcher: Fetcher) -> None:
    secret = {"headers": {"X-Api-Key": "k", "Accept-Language": "zh"}, "cookies": {"sid": "c"}}
    with Origin() as other:
        # another port is another origin
        origin.route("/a", status=302, location="/b")
        origin.route("/b", status=302, location=other.url("/c"))
        other.route("/c", status=302, location=origin.url("/d"))
        origin.route("/d", body=FEED)
        await fetcher.get(Request(origin.url("/a"), auth=BasicAuth("user", "pass"), **secret))  # type: ignore[arg-type]
        for received in (*origin.received("/a"), *origin.received("/b")):
            assert received.headers["authorization"] == "Basic dXNlcjpwYXNz"
            assert received.headers["x-api-key"] == "k"
            assert received.headers["cookie"] == "sid=c"
        for received in (*other.received("/c"), *origin.received("/d")):
            assert not {"authorization", "x-api-key", "cookie"} & set(received.headers)
            assert received.headers["accept-language"] == "zh"


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.sampled_from((301, 302, 307, 308)))
@settings(max_examples=examples(25), deadline=None)
def test_credentials_are_sent_until_the_first_hop_to_another_origin_and_never_after(
    places: list[int], status: int
) -> None:
    with Origin() as one, Origin() as two, Origin() as three:
        chain = [one, *((one, two, three)[place] for place in places)]
        for number, (here, there) in enumerate(pairwise(chain)):
            here.route(f"/{number}", status=status, location=there.url(f"/{number + 1}"))
        chain[-1].route(f"/{len(places)}", body=FEED)

        async def get() -> None:
            async with door(host_spacing_seconds=0.0) as fetcher:
                await fetcher.get(Request(one.url("/0"), auth=BearerAuth("hunter2")))

        asyncio.run(get())
        away = False
        for number, here in enumerate(chain):
            away = away or here is not one
            (received,) = here.received(f"/{number}")
            assert ("authorization" in received.headers) is not away


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("http://a.example/x", "http://a.example:80/y", True),
        ("https://A.example/x", "https://a.example:443/y", True),
        ("http://a.example/x", "https://a.example/x", True),
        ("https://a.example/x", "http://a.example/x", False),
        ("http://a.example:8080/x", "https://a.example/x", False),
        ("http://a.example/x", "https://a.example:8443/x", False),
        ("https://a.example/x", "https://a.example:8443/x", False),
        ("https://a.example/x", "https://b.a.example/x", False),
        ("http://a.example/x", "https://b.example/x", False),
    ],
)
def test_keeps_credentials_only_for_the_origin_or_its_upgrade_to_https(
    before: str, after: str, kept: bool
) -> None:
    assert keeps_credentials(read_url(before)[0], read_url(after)[0]) is kept


async def test_a_redirect_cannot_bring_credentials(origin: Origin, fetcher: Fetcher) -> None:
    with Origin() as other:
        origin.route("/a", status=302, location=other.url("/b", userinfo="evil:pass"))
        other.route("/b", body=FEED)
        response = await fetcher.get(Request(origin.url("/a")))
        assert "authorization" not in other.requests[0].headers
        assert response.url == other.url("/b")


async def test_what_a_location_says_is_not_rewritten(origin: Origin, fetcher: Fetcher) -> None:
    target = "/f%65ed/%7Euser?sig=a%2Bb%2f+c&x=%5B1%5D&y='"
    origin.route("/a", status=302, location=target)
    origin.route(target, body=FEED)
    assert (await fetcher.get(Request(origin.url("/a")))).body == FEED
    assert origin.requests[-1].target == target


async def test_a_location_with_bare_characters_is_escaped(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/a", Answer(status=302, headers=[("Location", "/caf\xe9 \u4e2d".encode("utf-8"))]))
    origin.route("/caf%C3%A9%20%E4%B8%AD", body=FEED)
    assert (await fetcher.get(Request(origin.url("/a")))).body == FEED


async def test_the_deadline_is_for_all_hops_together(origin: Origin) -> None:
    for number in range(8):
        origin.route(f"/{number}", status=302, location=f"/{number + 1}", delay=0.3)
    began = time.monotonic()
    async with door(total_seconds=1.0) as fetcher:
        error = await failure(fetcher, origin.url("/0"))
    assert error.kind is FailureKind.TIMEOUT
    assert time.monotonic() - began < 2.0


# -- what is sent -----------------------------------------------------------------------------------------


async def test_nothing_is_sent_that_was_not_asked_for(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=FEED, headers={"Set-Cookie": "track=me; Path=/"})
    await fetcher.get(Request(url))
    await fetcher.get(Request(url))
    for received in origin.requests:
        assert set(received.headers) == {"host", "user-agent", "accept", "accept-encoding"}
        assert received.headers["user-agent"] == USER_AGENT


async def test_one_connection_serves_many_requests(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=FEED, etag='"v"')
    missing = origin.url("/missing")
    for _ in range(3):
        await fetcher.get(Request(url))
        await fetcher.get(Request(url, Validators(etag=b'"v"')))
        await failure(fetcher, missing)
    assert origin.connections == 1


async def test_source_headers_cookies_and_auth(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=FEED)
    await fetcher.get(
        Request(
            url,
            headers={"x-token": "t", "ACCEPT": "text/plain", "User-agent": "Other/1"},
            cookies={"a": "1", "b": "x y"},
            auth=BearerAuth("abc"),
        )
    )
    received = origin.requests[0].headers
    assert received["x-token"] == "t"
    assert received["accept"] == "text/plain"
    assert received["user-agent"] == "Other/1"
    assert received["cookie"] == "a=1; b=x y"
    assert received["authorization"] == "Bearer abc"
    assert len(origin.requests[0].raw_headers) == len(received)  # nothing twice


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, "set a user name and password or a token"),
        ({"headers": {"x-feed": "all"}}, "set a user name and password or a token"),
        ({"auth": BearerAuth("abc")}, "refuses the source's credentials"),
        ({"auth": BasicAuth("ann", "wrong")}, "check its user name and password, token or cookies"),
        ({"cookies": {"session": "old"}}, "refuses the source's credentials"),
    ],
)
async def test_refused_request_tells_missing_credentials_from_wrong_ones(
    origin: Origin, fetcher: Fetcher, sent: dict[str, Any], words: str
) -> None:
    with pytest.raises(FetchError) as caught:
        await fetcher.get(Request(origin.route("/feed", status=401), **sent))
    assert caught.value.kind is FailureKind.UNAUTHORIZED
    assert words in caught.value.render("en")


async def test_credentials_in_the_url_are_sent_as_basic_auth(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/old", status=301, location="/feed")
    origin.route("/feed", body=FEED)
    response = await fetcher.get(Request(origin.url("/old", userinfo="us%40er:pa%20ss")))
    assert origin.requests[0].headers["authorization"] == BasicAuth("us@er", "pa ss").header()
    assert response.url == origin.url("/feed")
    assert response.permanent_url is None  # moving it would lose the credentials


@pytest.mark.parametrize(
    "bad",
    [
        {"headers": {"X-A": "a\r\nX-B: b"}},
        {"headers": {"X A": "a"}},
        {"headers": {"Host": "elsewhere"}},
        {"headers": {"If-None-Match": '"x"'}},
        {"headers": {"Referer": "https://x.example"}},
        {"cookies": {"a": "b; c=d"}},
        {"cookies": {"a": "b\n"}},
        {"auth": BearerAuth("a\nb")},
    ],
)
def test_what_cannot_be_sent_is_refused_before(bad: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Request("https://feeds.example/", **bad)  # type: ignore[arg-type]


# -- secrets ----------------------------------------------------------------------------------------------


async def test_secrets_appear_nowhere(origin: Origin, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secrets = ("hunter2", "t0ken", "c00kie", "k3y", "pr0xy")
    origin.route("/ok", body=FEED)
    for fault in ("close", "garbage", "cut-body", "cut-chunk"):
        origin.route(f"/{fault}", body=FEED, fault=fault)
    origin.route("/hop", status=302, location=origin.url("/401", userinfo="u:hunter2"))
    origin.route("/401", status=401)
    paths = ["/ok", "/close", "/garbage", "/cut-body", "/cut-chunk", "/hop", "/401"]
    urls = [origin.url(path, userinfo="user:hunter2") for path in paths]
    urls += [
        "http://u:hunter2@[",
        "http://u:hunter2@10.0.0.1/",
        "ftp://u:hunter2@h/",
        "http://u:hunter2@h:99999/",
    ]
    seen: list[str] = []
    async with door(proxy=origin.url("", userinfo="p:pr0xy")) as proxied, door() as direct:
        for fetcher in (direct, proxied):
            for url in urls:
                request = Request(
                    url, headers={"X-Key": "k3y"}, cookies={"c": "c00kie"}, auth=BearerAuth("t0ken")
                )
                seen.append(repr(request))
                try:
                    seen.append(repr(await fetcher.get(request)))
                except FetchError as error:
                    seen += [str(error), repr(error), repr(error.values), error.render("zh")]
                    assert error.__suppress_context__ or error.__context__ is None
    with pytest.raises(SettingError) as caught:
        door(proxy="ftp://p:pr0xy@localhost:1080")
    seen += [str(caught.value), repr(BasicAuth("u", "hunter2")), repr(BearerAuth("t0ken")), caplog.text]
    assert len(seen) > 40
    for text in seen:
        assert not [secret for secret in secrets if secret in text], text


# -- proxies ----------------------------------------------------------------------------------------------


async def test_a_proxy_for_http(origin: Origin) -> None:
    with Origin() as proxy:
        proxy.route("http://feeds.example/feed", body=FEED)
        async with door(proxy=proxy.url("", userinfo="u:p")) as fetcher:
            response = await fetcher.get(Request("http://feeds.example/feed"))
        assert response.body == FEED
        assert proxy.requests[0].target == "http://feeds.example/feed"
        assert proxy.requests[0].headers["proxy-authorization"] == BasicAuth("u", "p").header()


async def test_a_proxy_for_https_sees_only_the_tunnel() -> None:
    with Origin(tls="trusted") as origin, Origin() as proxy:
        origin.route("/feed", body=FEED)
        async with door(proxy=proxy.url("", userinfo="u:p"), ca_file=origin.ca_file) as fetcher:
            response = await fetcher.get(Request(origin.url("/feed"), headers={"X-Key": "k"}))
        assert response.body == FEED
        assert [request.method for request in proxy.requests] == ["CONNECT"]
        assert proxy.requests[0].headers["proxy-authorization"] == BasicAuth("u", "p").header()
        assert "x-key" not in proxy.requests[0].headers
        assert "proxy-authorization" not in origin.requests[0].headers


async def test_a_proxy_of_the_request_replaces_the_default(origin: Origin) -> None:
    with Origin() as proxy:
        proxy.route("http://feeds.example/feed", body=FEED)
        async with door(proxy="http://127.0.0.1:9") as fetcher:
            response = await fetcher.get(Request("http://feeds.example/feed", proxy=proxy.url("")))
        assert response.body == FEED


async def test_a_proxy_that_is_not_there(fetcher: Fetcher) -> None:
    with Origin() as gone:
        url = gone.url("")
    error = await failure(fetcher, Request("http://feeds.example/", proxy=url))
    assert error.kind is FailureKind.CONNECT
    assert "proxy" in str(error)


@pytest.mark.parametrize(("status", "kind"), [(407, FailureKind.UNAUTHORIZED), (502, FailureKind.CONNECT)])
async def test_a_proxy_that_refuses(fetcher: Fetcher, status: int, kind: FailureKind) -> None:
    with Origin() as proxy:
        proxy.route("feeds.example:443", status=status)
        error = await failure(fetcher, Request("https://feeds.example/", proxy=proxy.url("")))
        assert error.kind is kind


@pytest.mark.parametrize("proxy", ["ftp://localhost:1080", "localhost", "http://", "http://h:99999"])
def test_a_proxy_must_be_one(proxy: str) -> None:
    with pytest.raises(SettingError):
        door(proxy=proxy)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://proxy.example", "http://proxy.example:80"),
        ("https://[::1]:8", "https://[::1]:8"),
        ("socks5://u:p@localhost/etc/passwd", "socks5h://localhost:1080"),
    ],
)
def test_read_proxy_gives_libcurl_an_address_without_gaps(text: str, address: str) -> None:
    assert read_proxy(text, is_ours=True).address == address


# -- authorities ------------------------------------------------------------------------------------------


async def test_ca_file_of_the_settings_is_trusted_besides_the_system(tmp_path: Path) -> None:
    with Origin(tls="trusted") as origin:
        url = origin.route("/feed", body=FEED)
        environment = {"HEADWATER_ALLOW_HOSTS": "127.0.0.1"}
        async with make_fetcher(load_settings(directory=tmp_path, environment=environment)) as fetcher:
            error = await failure(fetcher, Request(url))
        assert error.kind is FailureKind.TLS
        assert "HEADWATER_CA_FILE" in str(error)
        environment["HEADWATER_CA_FILE"] = str(origin.ca_file)
        async with make_fetcher(load_settings(directory=tmp_path, environment=environment)) as fetcher:
            assert (await fetcher.get(Request(url))).body == FEED


@pytest.mark.parametrize("content", [None, "", "no certificate"])
async def test_ca_file_that_holds_no_certificate_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(SettingError, match=r"HEADWATER_CA_FILE: .*ca\.pem"):
        async with door(ca_file=path):
            pass


# -- concurrency and life ---------------------------------------------------------------------------------


async def test_requests_in_all_are_limited(origin: Origin) -> None:
    url = origin.route("/feed", body=FEED, delay=0.02)
    async with door(concurrency=3, host_concurrency=10) as fetcher:
        await asyncio.gather(*(fetcher.get(Request(url)) for _ in range(12)))
    assert origin.most_at_once == 3


async def test_a_host_gets_two_requests_at_once(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=FEED, delay=0.02)
    await asyncio.gather(*(fetcher.get(Request(url)) for _ in range(8)))
    assert origin.most_at_once == 2


async def test_waiting_for_one_host_holds_up_no_other(origin: Origin) -> None:
    slow = origin.route("/slow", body=FEED, delay=1.0)
    async with door(concurrency=3) as fetcher:
        with Origin(host="127.0.0.2") as other:
            fast = other.route("/fast", body=FEED)
            waiting = [asyncio.create_task(fetcher.get(Request(slow))) for _ in range(4)]
            await asyncio.sleep(0.1)
            began = time.monotonic()
            await fetcher.get(Request(fast))
            assert time.monotonic() - began < 0.5
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


async def test_cancelled_requests_give_everything_back(origin: Origin) -> None:
    hanging = origin.route("/hang", fault="hang")
    half = origin.route("/half", body=b"x" * 100, fault="drip")
    good = origin.route("/feed", body=FEED)
    async with door(concurrency=2) as fetcher:
        for url in (hanging, half):
            tasks = [asyncio.create_task(fetcher.get(Request(url))) for _ in range(6)]
            await asyncio.sleep(0.1)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in results)
        results2 = await asyncio.gather(*(fetcher.get(Request(good)) for _ in range(4)))
        assert [response.body for response in results2] == [FEED] * 4


async def test_a_host_gets_its_turn_back_from_who_gives_up_waiting_for_a_slot(origin: Origin) -> None:
    hanging = origin.route("/hang", fault="hang")
    with Origin(host="127.0.0.2") as other:
        good = other.route("/feed", body=FEED)
        async with door(concurrency=1, host_concurrency=1) as fetcher:
            holder = asyncio.create_task(fetcher.get(Request(hanging)))
            await asyncio.sleep(0.05)
            waiter = asyncio.create_task(fetcher.get(Request(good)))
            await asyncio.sleep(0.05)
            for task in (waiter, holder):
                task.cancel()
            await asyncio.gather(waiter, holder, return_exceptions=True)
            async with asyncio.timeout(2):
                assert (await fetcher.get(Request(good))).body == FEED


async def test_a_slow_host_is_told_by_the_others_answer(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/busy", status=429, headers={"Retry-After": "1000"})
    origin.route("/feed", body=FEED)
    await failure(fetcher, origin.url("/busy"))
    error = await failure(fetcher, origin.url("/feed"))
    assert (error.kind, error.http_status) == (FailureKind.RATE_LIMITED, None)
    assert error.retry_after_seconds is not None
    assert 990 < error.retry_after_seconds <= 1000
    assert not origin.received("/feed")


async def test_a_body_larger_than_the_cap_of_the_request(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=b"x" * 1001)
    assert (await failure(fetcher, Request(url, max_bytes=1000))).kind is FailureKind.TOO_LARGE
    assert len((await fetcher.get(Request(url, max_bytes=1001))).body) == 1001


async def test_deadlines_of_the_request(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", fault="hang")
    for deadline in ({"total_seconds": 0.2}, {"read_seconds": 0.2}):
        began = time.monotonic()
        error = await failure(fetcher, Request(url, **deadline))  # type: ignore[arg-type]
        assert error.kind is FailureKind.TIMEOUT
        assert time.monotonic() - began < 1.5


async def test_an_ipv6_origin(fetcher: Fetcher) -> None:
    with Origin(host="::1") as origin:
        url = origin.route("/feed", body=FEED)
        assert (await fetcher.get(Request(url))).body == FEED
        assert origin.requests[0].headers["host"] == f"[::1]:{origin.port}"


async def test_the_response_may_depend_on_the_request(origin: Origin, fetcher: Fetcher) -> None:
    def answer(request: Received) -> bytes:
        return request.target.encode()

    origin.route("/feed", answer)
    assert (await fetcher.get(Request(origin.url("/feed?a=1&b=%20")))).body == b"/feed?a=1&b=%20"
    assert (await fetcher.get(Request(origin.url("/feed#fragment")))).body == b"/feed"


async def test_closing_leaves_no_thread_and_no_connection(origin: Origin) -> None:
    url = origin.route("/feed", body=FEED).replace("127.0.0.1", "localhost")
    async with door() as fetcher:
        await fetcher.get(Request(url))
        assert [thread for thread in threading.enumerate() if thread.name.startswith("headwater-dns")]
    for _ in range(50):
        await asyncio.sleep(0.02)
        if not [thread for thread in threading.enumerate() if thread.name.startswith("headwater-dns")]:
            break
    else:
        pytest.fail("the resolver's threads are still there")
    assert origin.open_connections == 0


async def test_a_fetcher_is_used_within_its_context(origin: Origin) -> None:
    with pytest.raises(RuntimeError):
        await door().get(Request(origin.url("/")))


@pytest.mark.parametrize("module", ["headwater.fetch", "headwater.fetch.guard", "headwater.fetch.robots"])
def test_importing_it_does_not_load_the_client_library(module: str) -> None:
    code = f"import sys, {module}; sys.exit('pycurl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


async def test_idle_connections_are_kept_to_few_hosts(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.fetch.transport.KEPT_CONNECTIONS", 2)

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    origin.otherwise(b"here")
    async with door(resolve=resolve) as fetcher:
        for turn in range(2):
            for number in range(4):
                await fetcher.get(Request(f"http://host{number}.example:{origin.port}/{turn}"))
        await asyncio.sleep(0.1)
        assert origin.open_connections <= 2
        assert origin.connections == 8
        await fetcher.get(Request(f"http://host3.example:{origin.port}/again"))
        assert origin.connections == 8, "the connection used last is there"


async def test_a_status_can_be_an_answer_to_read(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/banned", body=b'{"reason": "banned"}', status=404, headers={"X-Left": "7"})
    response = await fetcher.get(Request(url, answers=frozenset({404})))
    assert (response.status, response.body, response.headers["x-left"]) == (404, b'{"reason": "banned"}', "7")
    assert (await failure(fetcher, Request(url, answers=frozenset({403})))).kind is FailureKind.NOT_FOUND


async def test_a_limit_that_is_an_answer_rests_the_host_all_the_same(
    origin: Origin, fetcher: Fetcher
) -> None:
    url = origin.route("/busy", status=429, headers={"Retry-After": "100"})
    assert (await fetcher.get(Request(url, answers=frozenset({429})))).status == 429
    assert (await failure(fetcher, url)).http_status is None
    assert len(origin.requests) == 1


async def test_a_host_rests_when_told_to(origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/feed", body=b"x")
    fetcher.rest(url, 90)
    error = await failure(fetcher, url)
    assert error.kind is FailureKind.RATE_LIMITED
    assert error.retry_after_seconds == pytest.approx(90, abs=5)


async def test_a_post_sends_its_body_once_and_follows_nothing(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/hook", lambda request: request.method.encode() + b" " + request.body)
    elsewhere = origin.route("/moved", status=307, location="/hook", body="over there")
    good = await fetcher.post(
        Request(origin.url("/hook"), body=b"{}", headers={"Content-Type": "application/json"})
    )
    moved = await fetcher.post(Request(elsewhere, body=b"secret", auth=BearerAuth("token")))
    assert (good.status, good.body) == (200, b"POST {}")
    assert origin.received("/hook")[0].headers["content-type"] == "application/json"
    assert moved.status == 307
    assert len(origin.received("/hook")) == 1


async def test_a_post_answers_whatever_the_status_and_within_its_cap(
    origin: Origin, fetcher: Fetcher
) -> None:
    origin.route("/busy", status=429, body="slow down", headers={"Retry-After": "7"})
    origin.route("/long", status=200, body="x" * 2000)
    busy = await fetcher.post(Request(origin.url("/busy"), body=b"x"))
    assert (busy.status, busy.body, busy.hints.retry_after_seconds) == (429, b"slow down", 7.0)
    with pytest.raises(FetchError) as caught:
        await fetcher.post(Request(origin.url("/long"), body=b"x", max_bytes=1000))
    assert caught.value.kind == FailureKind.TOO_LARGE


async def test_a_post_passes_the_guard(origin: Origin) -> None:
    async with Fetcher(user_agent="test") as guarded:
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(FetchError, match=f"HEADWATER_ALLOW_HOSTS={host}"):
                await guarded.post(Request(origin.url("/hook", host=host), body=b"x"))
    assert origin.requests == []


@pytest.mark.parametrize(
    ("url", "secure"),
    [
        ("http://hub.example/a?b=c", "https://hub.example/a?b=c"),
        ("http://hub.example:80/", "https://hub.example/"),
        ("http://hub.example:8080/", "https://hub.example:8080/"),
        ("https://hub.example/", "https://hub.example/"),
        ("http://hub.lan/", "http://hub.lan/"),
        ("http://10.1.2.3/", "http://10.1.2.3/"),
        ("http://other.example:81/", "http://other.example:81/"),
        ("http://other.example/", "https://other.example/"),
    ],
)
def test_secure_url_is_over_https_unless_the_operator_named_the_host(url: str, secure: str) -> None:
    fetcher = Fetcher(user_agent=USER_AGENT, allow=["hub.lan", "10.0.0.0/8", "other.example:81"])
    assert fetcher.secure_url(url) == secure
