"""SOCKS proxies, for our own requests and for those of programs that go out through us."""

import asyncio

import pytest

from headwater.errors import FailureKind, FetchError
from headwater.fetch import Request
from headwater.fetch.socks import open_tunnel
from headwater.fetch.url import read_proxy
from tests.fetch import door
from tests.fetch.test_proxy import fetched_by_a_program
from tests.origin import Origin
from tests.socks import SocksProxy


async def test_get_through_socks_leaves_names_to_the_proxy(origin: Origin) -> None:
    origin.route("/feed?a=1", body=b"news")
    async with SocksProxy(origin.port) as proxy, door(proxy=proxy.url()) as fetcher:
        response = await fetcher.get(Request("http://feeds.example/feed?a=1"))
        assert response.body == b"news"
        assert proxy.asked == [("feeds.example", 80)]
    assert origin.requests[0].headers["host"] == "feeds.example"


async def test_get_through_socks_with_tls_checks_the_certificate() -> None:
    with Origin(tls="trusted") as origin:
        origin.route("/feed", body=b"news")
        async with (
            SocksProxy(origin.port) as proxy,
            door(proxy=proxy.url(), ca_file=origin.ca_file, allow=["localhost"]) as fetcher,
        ):
            assert (await fetcher.get(Request(origin.url("/feed", host="localhost")))).body == b"news"
            with pytest.raises(FetchError) as caught:
                await fetcher.get(Request("https://other.example/feed"))
            assert caught.value.kind is FailureKind.TLS


async def test_get_through_socks_with_login_sends_it_to_the_proxy_alone(origin: Origin) -> None:
    origin.route("/feed", body=b"news")
    async with (
        SocksProxy(origin.port, login=("me", "hush")) as proxy,
        door(proxy=proxy.url("me:hush")) as fetcher,
        door(proxy=proxy.url("me:wrong")) as stranger,
    ):
        assert (await fetcher.get(Request("http://feeds.example/feed"))).body == b"news"
        with pytest.raises(FetchError) as caught:
            await stranger.get(Request("http://feeds.example/feed"))
        assert caught.value.kind is FailureKind.CONNECT
        assert proxy.logins == [("me", "hush"), ("me", "wrong")]
    assert not {"authorization", "proxy-authorization"} & set(origin.requests[0].headers)


async def test_get_through_socks_that_refuses_fails_by_name_of_the_proxy(origin: Origin) -> None:
    async with SocksProxy(origin.port, refuses=True) as proxy, door(proxy=proxy.url()) as fetcher:
        with pytest.raises(FetchError, match="proxy") as caught:
            await fetcher.get(Request("http://feeds.example/feed"))
        assert caught.value.kind is FailureKind.CONNECT


@pytest.mark.parametrize("login", [None, ("me", "hush")])
async def test_program_goes_out_through_the_socks_proxy(
    origin: Origin, login: tuple[str, str] | None
) -> None:
    origin.route("/file", body=b"data")
    async with (
        SocksProxy(origin.port, login=login) as proxy,
        door(proxy=proxy.url("me:hush" if login else "")) as fetcher,
        fetcher.open_to_child(max_bytes=100_000) as way_out,
    ):
        assert await fetched_by_a_program(way_out, "http://files.example/file") == (True, b"data")
        assert proxy.asked == [("files.example", 80)]
    assert origin.requests[0].target == "/file"


@pytest.mark.parametrize(
    "options", [{"refuses": True}, {"login": ("me", "hush")}], ids=["refuses", "wants a login"]
)
async def test_tunnel_that_is_not_made_is_an_error(origin: Origin, options: dict[str, object]) -> None:
    async with SocksProxy(origin.port, **options) as proxy:  # type: ignore[arg-type]
        with pytest.raises(OSError, match="proxy"):
            await open_tunnel(read_proxy(proxy.url(), is_ours=True), "a.example", 80)


@pytest.mark.parametrize("words", [b"", b"\x05", b"HTTP/1.1 400 Bad\r\n", b"\x05\x00\x05\x00\x00\x09more"])
async def test_tunnel_through_what_is_no_socks_proxy_is_an_error(words: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(OSError):
            await open_tunnel(read_proxy(f"socks5://127.0.0.1:{port}", is_ours=True), "a.example", 80)
