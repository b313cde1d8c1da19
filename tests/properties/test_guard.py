"""The guard against everything an address can be written as."""

import ipaddress
import socket
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.errors import FailureKind, FetchError, SettingError
from headwater.fetch.guard import Guard, RefusedError, is_public, looks_numeric, parse_address

# The registries as the standard library knows them: a second opinion on our own tables.
PRIVATE = [
    ipaddress.ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"),
    )
]
private_ipv4 = st.one_of(*(st.integers(int(net[0]), int(net[-1])).map(IPv4Address) for net in PRIVATE))


def refuses(host: str, scheme: str = "http") -> bool:
    try:
        Guard().check_url(scheme, host, 80, shown="u")
    except FetchError as error:
        assert error.kind is FailureKind.BLOCKED
        return True
    return False


@st.composite
def spellings(draw: st.DrawFn, addresses: st.SearchStrategy[IPv4Address]) -> str:
    """One of the ways in which a C library reads an IPv4 address: 1 to 4 parts, each in base 8, 10 or 16."""
    number = int(draw(addresses))
    parts = draw(st.integers(1, 4))
    values = [(number >> shift) & 0xFF for shift in (24, 16, 8)[: parts - 1]]
    values.append(number & ((1 << (32 - 8 * (parts - 1))) - 1))
    written = []
    for value in values:
        form = draw(st.sampled_from(["{:d}", "0x{:x}", "0X{:X}", "0{:o}", "0x0000{:x}", "000{:o}"]))
        written.append(form.format(value))
    return ".".join(written)


@given(st.ip_addresses(v=4))
@example(IPv4Address("192.0.0.9"))
def test_what_the_standard_library_calls_private_is_closed(address: IPv4Address) -> None:
    if is_public(address):
        assert address.is_global or address in ipaddress.ip_network("192.0.0.0/24")
        assert not address.is_private
        assert not address.is_multicast
        assert not address.is_reserved
        assert not address.is_loopback
        assert not address.is_link_local


@given(st.ip_addresses(v=6))
def test_of_ipv6_only_global_unicast_is_open(address: IPv6Address) -> None:
    if (
        is_public(address)
        and address.ipv4_mapped is None
        and address not in ipaddress.ip_network("64:ff9b::/96")
    ):
        assert int(address) >> 125 == 1
        assert not address.is_private
        assert not address.is_multicast
        assert not address.is_loopback
        assert address.sixtofour is None
        assert address.teredo is None


@given(private_ipv4)
def test_every_form_that_carries_a_private_address_is_closed(address: IPv4Address) -> None:
    number = int(address)
    forms: list[IPv4Address | IPv6Address] = [
        address,
        IPv6Address(number),  # ::a.b.c.d
        IPv6Address((0xFFFF << 32) | number),  # ::ffff:a.b.c.d
        IPv6Address((0xFFFF << 48) | number),  # ::ffff:0:a.b.c.d
        IPv6Address((0x64FF9B << 96) | number),  # 64:ff9b::a.b.c.d
        IPv6Address((0x64FF9B0001 << 80) | number),  # 64:ff9b:1::a.b.c.d
        IPv6Address((0x2002 << 112) | (number << 80)),  # 2002:ab:cd::
        IPv6Address((0x20010000 << 96) | (number ^ 0xFFFFFFFF)),  # Teredo
        IPv6Address((0x20010000 << 96) | (number << 64)),
        IPv6Address((0x2606470000000000 << 64) | (0x5EFE << 32) | number),  # ISATAP
        IPv6Address((0x2606470000000000 << 64) | (0x02005EFE << 32) | number),
    ]
    for form in forms:
        assert not is_public(form), form
        with pytest.raises(RefusedError):
            Guard().check_address("feeds.example", str(form), 443)
        assert refuses(f"[{form}]" if form.version == 6 else str(form))
        if isinstance(form, IPv6Address):
            assert refuses(form.exploded)
            assert refuses(form.exploded.upper())


@given(spellings(private_ipv4))
def test_odd_spellings_of_private_addresses_are_refused(host: str) -> None:
    assert refuses(host)
    assert refuses(host + ".")
    assert refuses(host.translate({ord("0") + n: 0xFF10 + n for n in range(10)}))  # fullwidth digits


@given(spellings(st.integers(0, (1 << 32) - 1).map(IPv4Address)))
def test_no_spelling_passes_that_is_not_the_canonical_one(host: str) -> None:
    if not refuses(host):
        address = parse_address(host)
        assert address is not None
        assert str(address) == host
        assert is_public(address)


@given(st.text(st.sampled_from("0123456789abcdefxX.:%[]。．１ "), max_size=30) | st.text(max_size=20))
def test_whatever_a_system_library_reads_as_a_private_address_is_refused(host: str) -> None:
    try:
        packed = socket.inet_aton(host)
    except (OSError, ValueError, UnicodeError):
        return
    if is_public(IPv4Address(packed)):
        return
    assert refuses(host)


@given(st.text(max_size=40), st.integers(0, 65535), st.booleans())
def test_a_question_gets_an_answer(host: str, port: int, proxied: bool) -> None:
    guard = Guard()
    answers = []
    for _ in range(2):
        try:
            guard.check_url("http", host, port, shown="u", proxied=proxied)
            answers.append(True)
        except FetchError as error:
            assert error.kind is FailureKind.BLOCKED
            answers.append(False)
    assert answers[0] == answers[1]


@given(st.text(max_size=40))
def test_an_entry_is_understood_or_refused(entry: str) -> None:
    try:
        guard = Guard([entry])
    except SettingError:
        return
    # A slip opens no door: an entry is never everything.
    refused = 0
    for host, address in (
        ("a.example", "10.0.0.1"),
        ("b.example", "169.254.169.254"),
        ("c.example", "fd00::1"),
    ):
        try:
            guard.check_address(host, address, 80)
        except RefusedError:
            refused += 1
    assert refused >= 2 or "/" in entry


@given(st.ip_addresses(), st.integers(1, 65535))
def test_an_allowed_address_is_reached_however_it_is_written(
    address: IPv4Address | IPv6Address, port: int
) -> None:
    guard = Guard([str(address)])
    guard.check_address("any.example", str(address), port)
    guard.check_address("any.example", address.exploded, port)
    if isinstance(address, IPv4Address):
        guard.check_address("any.example", f"::ffff:{address}", port)


def test_numbers_at_the_end() -> None:
    assert all(map(looks_numeric, ["1", "a.1", "a.0x", "a.0x1f", "1.", "a.00"]))
    assert not any(map(looks_numeric, ["", "a", "1.a", "1a", "a.x1", "a.0xg", "a.1-"]))
