"""The way out for other programs: the guard holds for every connection, and the cap for all of them."""

import asyncio
import base64
import os
import subprocess
import sys

from headwater.fetch import Fetcher
from headwater.fetch.proxy import GuardedProxy
from tests.fetch import door
from tests.origin import Origin

GET = "import sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen(sys.argv[1], timeout=10).read())"


async def fetched_by_a_program(proxy: GuardedProxy, url: str, **environment: str) -> tuple[bool, bytes]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", GET, url),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], **proxy.environment(), **environment},
    )
    out, _ = await process.communicate()
    return process.returncode == 0, out


async def test_a_program_gets_what_the_guard_allows(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/file", body=b"data" * 1000)
    async with fetcher.open_to_child(max_bytes=100_000) as proxy:
        assert await fetched_by_a_program(proxy, origin.url("/file?x=1")) == (True, b"data" * 1000)
    assert origin.requests[0].target == "/file?x=1"
    assert "proxy-authorization" not in origin.requests[0].headers


async def test_an_answer_says_that_its_connection_ends(origin: Origin, fetcher: Fetcher) -> None:
    """A program that takes the connection for its next request, as some do after a redirect, would lose that."""
    origin.route("/file", body=b"first line\r\nsecond line")
    async with fetcher.open_to_child(max_bytes=100_000) as proxy:
        let_in = base64.b64encode(proxy.url.removeprefix("http://").partition("@")[0].encode()).decode()
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        target = origin.url("/file")
        writer.write(f"GET {target} HTTP/1.1\r\nProxy-Authorization: Basic {let_in}\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    assert head.splitlines()[:2] == [b"HTTP/1.1 200 OK", b"Connection: close"]
    assert body == b"first line\r\nsecond line"


async def test_redirects_meet_the_guard_too(origin: Origin) -> None:
    with Origin() as private:
        origin.route("/file", status=302, location=private.url("/secret"))
        async with (
            door(allow=[f"127.0.0.1:{origin.port}"]) as fetcher,
            fetcher.open_to_child(max_bytes=100_000) as proxy,
        ):
            assert (await fetched_by_a_program(proxy, origin.url("/file")))[0] is False
            assert proxy.refusal is not None
            assert "HEADWATER_ALLOW_HOSTS=127.0.0.1" in str(proxy.refusal)
            private_name = private.url("/secret", host="localhost")
            assert (await fetched_by_a_program(proxy, private_name))[0] is False
        assert private.connections == 0


async def test_the_cap_counts_everything(origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/endless", body=b"x" * 1000, fault="endless")
    async with fetcher.open_to_child(max_bytes=200_000) as proxy:
        ok, body = await fetched_by_a_program(proxy, origin.url("/endless"))
        assert not ok
        assert len(body) <= 200_000
        assert proxy.exhausted


async def test_tunnels_are_guarded_and_work() -> None:
    with Origin(tls="trusted") as secure:
        secure.route("/", body=b"in private")
        trust = {"SSL_CERT_FILE": str(secure.ca_file)}
        async with door() as fetcher, fetcher.open_to_child(max_bytes=100_000) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(f"CONNECT 127.0.0.1:{secure.port} HTTP/1.1\r\n\r\n".encode())
            assert b" 407 " in await reader.readline(), "no one gets in without the password"
            writer.close()
            assert await fetched_by_a_program(proxy, secure.url("/"), **trust) == (True, b"in private")
        async with Fetcher(user_agent="x") as fetcher, fetcher.open_to_child(max_bytes=100_000) as proxy:
            assert not (await fetched_by_a_program(proxy, secure.url("/"), **trust))[0]
            assert proxy.refusal is not None
            assert secure.connections == 1


async def test_the_operators_own_proxy_comes_next(origin: Origin) -> None:
    with Origin() as upstream:
        upstream.route("http://files.example/file", body=b"by way of the proxy")
        async with (
            door(proxy=upstream.url("", userinfo="me:secret")) as fetcher,
            fetcher.open_to_child(max_bytes=100_000) as proxy,
        ):
            answer = await fetched_by_a_program(proxy, "http://files.example/file")
        assert answer == (True, b"by way of the proxy")
        assert upstream.requests[0].headers["proxy-authorization"].startswith("Basic ")
