"""The guard: what may be connected to, however it is spelt and whatever it resolves to."""

import ipaddress
import socket

import pytest

from headwater.errors import FailureKind, FetchError, SettingError
from headwater.fetch import Request
from headwater.fetch.guard import Guard, RefusedError, is_public
from tests.fetch import door
from tests.origin import Origin

CLOSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "2607:f8b0::5efe:10.0.0.1",
    "2607:f8b0::200:5efe:10.0.0.1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "2607:f8b0::1%lo",
]
OPEN = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80b::200e",
]


@pytest.mark.parametrize("address", CLOSED)
def test_closed_addresses(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    with pytest.raises(RefusedError):
        Guard().check_address("feeds.example", address, 443)


@pytest.mark.parametrize("address", OPEN)
def test_open_addresses(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))
    Guard().check_address("feeds.example", address, 443)


def test_what_is_no_address_is_refused_at_connect_time() -> None:
    for text in ("localhost", "", "2130706433", "0x7f000001", "010.0.0.1", "8.8.8.8.example"):
        with pytest.raises(RefusedError):
            Guard().check_address("feeds.example", text, 80)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0X7F.1",
        "017700000001",
        "127.1",
        "0177.0.0.1",
        "0x7f.0.0.0x1",
        "10.0.258",
        "1.2.3.4.5",
        "127.0.0.0x1",
        "127.0.0.01",
        "256.256.256.256",
        "0",
        "127。0。0。1",
        "１２７.０.０.１",
        "①②⑦.0.0.1",
        "127.0.0.1.",
        "[::1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
    ],
)
def test_spellings(host: str) -> None:
    with pytest.raises(FetchError) as caught:
        Guard().check_url("http", host, 80, shown="http://x/")
    assert caught.value.kind is FailureKind.BLOCKED


async def test_spellings_all_the_way() -> None:
    with Origin() as origin:
        origin.otherwise(b"reached")
        hosts = [
            "2130706433",
            "0x7f.1",
            "127.1",
            "127。0。0。1",
            "１２７.0.0.1",
            "127.0.0.1.",
            "localhost",
            "LOCALHOST.",
        ]
        hosts += ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "localhost.", "0", "0.0.0.0"]
        async with door(allow=[]) as fetcher:
            for host in hosts:
                with pytest.raises(FetchError) as caught:
                    await fetcher.get(Request(f"http://{host}:{origin.port}/"))
                assert caught.value.kind in (FailureKind.BLOCKED, FailureKind.DNS), host
        assert origin.connections == 0


@pytest.mark.parametrize("scheme", ["ftp", "file", "gopher", "data", "ws", "", "HTTPX"])
def test_schemes(scheme: str) -> None:
    with pytest.raises(FetchError) as caught:
        Guard(["feeds.example"]).check_url(scheme, "feeds.example", 80, shown="x")
    assert caught.value.kind is FailureKind.BLOCKED


@pytest.mark.parametrize("port", [0, 22, 25, 53, 110, 5432, 6379, 6667, 11211])
def test_ports_of_other_services(port: int) -> None:
    with pytest.raises(FetchError) as caught:
        Guard(["feeds.example"]).check_url("http", "feeds.example", port, shown="x")
    assert f"HEADWATER_ALLOW_HOSTS=feeds.example:{port}" in str(caught.value)
    if port:
        Guard([f"feeds.example:{port}"]).check_url("http", "feeds.example", port, shown="x")


@pytest.mark.parametrize("port", [80, 443, 591, 3000, 8000, 8080, 8443, 9000, 65535])
def test_ports_of_the_web(port: int) -> None:
    Guard().check_url("http", "feeds.example", port, shown="x")


# -- the allow list ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "host", "address", "port", "allowed"),
    [
        ("feeds.internal", "feeds.internal", "10.0.0.5", 80, True),
        ("feeds.internal", "FEEDS.internal.", "10.0.0.5", 80, True),
        (" Feeds.Internal ", "feeds.internal", "10.0.0.5", 80, True),
        ("feeds.internal", "other.internal", "10.0.0.5", 80, False),
        ("feeds.internal", "x.feeds.internal", "10.0.0.5", 80, False),
        ("feeds.internal:8080", "feeds.internal", "10.0.0.5", 8080, True),
        ("feeds.internal:8080", "feeds.internal", "10.0.0.5", 80, False),
        ("10.0.0.0/8", "any.example", "10.0.0.5", 80, True),
        ("10.0.0.0/8", "any.example", "::ffff:10.0.0.5", 80, True),
        ("10.0.0.0/8", "any.example", "192.168.0.1", 80, False),
        ("::ffff:10.0.0.0/104", "any.example", "10.0.0.5", 80, True),
        ("::ffff:10.0.0.0/104", "any.example", "192.168.0.5", 80, False),
        ("10.0.0.5", "any.example", "10.0.0.5", 80, True),
        ("10.0.0.5", "any.example", "10.0.0.6", 80, False),
        ("10.0.0.5:8080", "any.example", "10.0.0.5", 8080, True),
        ("10.0.0.5:8080", "any.example", "10.0.0.5", 80, False),
        ("[::1]:8080", "any.example", "::1", 8080, True),
        ("[::1]:8080", "any.example", "::1", 80, False),
        ("::1", "any.example", "::1", 80, True),
        ("[fd00::1]", "any.example", "fd00::1", 80, True),
        ("fd00::/8", "any.example", "fd12::1", 80, True),
        ("fd00::/8", "any.example", "fe80::1", 80, False),
        ("10.0.0.0/8", "any.example", "64:ff9b::10.0.0.5", 80, False),
        ("bücher.example", "xn--bcher-kva.example", "10.0.0.5", 80, True),
    ],
)
def test_the_allow_list(entry: str, host: str, address: str, port: int, allowed: bool) -> None:
    guard = Guard([entry])
    if allowed:
        guard.check_address(host, address, port)
    else:
        with pytest.raises(RefusedError):
            guard.check_address(host, address, port)


@pytest.mark.parametrize(
    "entry",
    [
        "",
        " ",
        "http://host/",
        "host:port",
        "host:0",
        "host:70000",
        "10.0.0.0/40",
        "a b",
        "2130706433",
        "1.2.3",
    ],
)
def test_entries_that_mean_nothing_are_refused(entry: str) -> None:
    with pytest.raises(SettingError) as caught:
        Guard([entry])
    assert "HEADWATER_ALLOW_HOSTS" in str(caught.value)


async def test_the_allow_list_through_the_door() -> None:
    with Origin() as origin:
        origin.otherwise(b"reached")
        for allow, host, reached in (
            (["localhost"], "localhost", True),
            (["localhost"], "127.0.0.1", False),
            ([f"localhost:{origin.port}"], "localhost", True),
            (["localhost:1"], "localhost", False),
            (["127.0.0.1"], "localhost", True),
            (["127.0.0.0/8"], "127.0.0.1", True),
            (["10.0.0.0/8"], "127.0.0.1", False),
            ([f"127.0.0.1:{origin.port}"], "localhost", True),
        ):
            async with door(allow=allow) as fetcher:
                request = Request(origin.url("/", host=host))
                if reached:
                    assert (await fetcher.get(request)).body == b"reached"
                else:
                    with pytest.raises(FetchError) as caught:
                        await fetcher.get(request)
                    assert caught.value.kind is FailureKind.BLOCKED
                    assert f"HEADWATER_ALLOW_HOSTS={host}" in str(caught.value)


# -- names ------------------------------------------------------------------------------------------------


async def test_a_name_that_resolves_to_a_private_address() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1", "::ffff:127.0.0.1", "fd00::1"]

    with Origin() as origin:
        async with door(allow=[], resolve=resolve) as fetcher:
            with pytest.raises(FetchError) as caught:
                await fetcher.get(Request(f"http://feeds.example:{origin.port}/"))
        assert caught.value.kind is FailureKind.BLOCKED
        assert origin.connections == 0


async def test_of_a_mixed_answer_only_the_allowed_part_is_used() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["10.0.0.1", "192.0.2.7", "127.0.0.2"]

    with Origin(host="127.0.0.2") as origin:
        origin.otherwise(b"reached")
        async with door(allow=["127.0.0.2"], resolve=resolve, connect_seconds=0.2) as fetcher:
            assert (await fetcher.get(Request(f"http://feeds.example:{origin.port}/"))).body == b"reached"
            told = await fetcher._resolver.locate("feeds.example", origin.port)
            assert told == f"+feeds.example:{origin.port}:127.0.0.2"


async def test_an_answer_that_changes_between_check_and_use() -> None:
    """The address that was checked is the one connected to, however the name resolves the next time."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.2"] if len(asked) == 1 else ["127.0.0.1"]

    with Origin(host="127.0.0.2") as allowed, Origin() as private:
        allowed.otherwise(b"allowed")
        private.otherwise(b"private")
        async with door(allow=["127.0.0.2"], resolve=resolve) as fetcher:
            first = await fetcher.get(Request(f"http://rebind.example:{allowed.port}/"))
            assert first.body == b"allowed"
            assert asked == ["rebind.example"]  # not once to check and once to connect
            with pytest.raises(FetchError) as caught:
                await fetcher.get(Request(f"http://rebind.example:{private.port}/"))
            assert caught.value.kind is FailureKind.BLOCKED
        assert private.connections == 0


async def test_even_a_resolver_that_lies_cannot_get_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket is the last word: here the check after resolving is made to say yes to everything."""

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    real = Guard.check_address
    calls: list[str] = []

    def first_time_yes(self: Guard, host: str, address: str, port: int) -> None:
        calls.append(address)
        if len(calls) > 1:
            real(self, host, address, port)

    monkeypatch.setattr(Guard, "check_address", first_time_yes)
    with Origin() as origin:
        async with door(allow=[], resolve=resolve) as fetcher:
            with pytest.raises(FetchError) as caught:
                await fetcher.get(Request(f"http://feeds.example:{origin.port}/"))
        assert caught.value.kind is FailureKind.BLOCKED
        assert (calls, origin.connections) == (["127.0.0.1", "127.0.0.1"], 0)


async def test_names_that_do_not_exist() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def resolve_to_nothing(host: str, port: int) -> list[str]:
        return []

    for resolver in (resolve, resolve_to_nothing):
        async with door(resolve=resolver) as fetcher:
            with pytest.raises(FetchError) as caught:
                await fetcher.get(Request("http://feeds.example/"))
            assert caught.value.kind is FailureKind.DNS
    async with door() as fetcher:
        for url in ("http://does-not-exist.invalid/", f"http://{'a' * 300}/", "http://a..b/"):
            with pytest.raises(FetchError) as caught:
                await fetcher.get(Request(url))
            assert caught.value.kind in (FailureKind.DNS, FailureKind.BLOCKED)


# -- proxies ----------------------------------------------------------------------------------------------


async def test_the_operators_proxy_may_be_anywhere_but_not_a_requests_own() -> None:
    with Origin() as proxy:
        proxy.route("http://feeds.example/feed", body=b"through")
        async with door(allow=[], proxy=proxy.url("")) as fetcher:
            assert (await fetcher.get(Request("http://feeds.example/feed"))).body == b"through"
        async with door(allow=[]) as fetcher:
            with pytest.raises(FetchError) as caught:
                await fetcher.get(Request("http://feeds.example/feed", proxy=proxy.url("")))
            assert caught.value.kind is FailureKind.BLOCKED
        async with door(allow=[]) as fetcher:
            with pytest.raises(FetchError) as caught:
                await fetcher.get(Request("http://feeds.example/feed", proxy=proxy.url("", host="localhost")))
            assert caught.value.kind is FailureKind.BLOCKED


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1/",
        "http://localhost/",
        "http://router/",
        "http://nas.local/",
        "http://metadata.google.internal/",
        "http://[::1]/",
        "http://feeds.example:22/",
    ],
)
async def test_what_a_proxy_is_not_asked_for(url: str) -> None:
    with Origin() as proxy:
        proxy.otherwise(b"through")
        async with door(allow=[], proxy=proxy.url("")) as fetcher:
            with pytest.raises(FetchError) as caught:
                await fetcher.get(Request(url))
            assert caught.value.kind is FailureKind.BLOCKED
        assert not proxy.requests
