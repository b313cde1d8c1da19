"""The guard: which addresses may be connected to, so that a feed's URL cannot reach the operator's network.

`Guard.check_url` refuses by what is written in the URL (scheme, port, spelling of an address). The decision
that counts is `Guard.check_address`, which the client asks about the very address it is about to connect to:
names that resolve to a private address, that change between look-up and use, and redirects all end there.

Refused unless the operator allows them (HEADWATER_ALLOW_HOSTS): everything but global unicast addresses, that
is loopback, private, link-local, carrier-grade NAT, multicast, reserved, unspecified, documentation and cloud
metadata addresses, in IPv4 and in every IPv6 form that carries an IPv4 address; and ports of services that
are not the web.

An allow list entry is a host name (`feeds.internal`, with all it resolves to), a host and port
(`localhost:8080`, that port included even if it is not a web port), an address or a network (`10.1.0.0/16`).

With a proxy it is the proxy that resolves names and connects, so only what the URL says can be checked here:
scheme, port, addresses written out, and names that by definition mean a private network. What else the proxy
may reach is for the proxy to decide. The operator's own proxy may have any address; a proxy that comes with a
single request must pass the guard like any other host.

Nothing here opens a connection or resolves a name.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from headwater.errors import FailureKind, FetchError, SettingError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_CLOSED_IPV4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT, and Alibaba Cloud's metadata
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's host agent: public by number, private by use
        "169.254.0.0/16",  # link-local, and the metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, and Oracle Cloud's metadata
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, retired
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# Of IPv6 only 2000::/3 is global unicast, so the list is of exceptions within it.
_GLOBAL_IPV6 = IPv6Network("2000::/3")
_CLOSED_IPV6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, retired; carries any IPv4 address
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)

# The ports browsers refuse too (the Fetch standard's list): other services may read HTTP as commands.
_CLOSED_PORTS = frozenset(
    {
        *(0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102),
        *(103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512),
        *(513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995),
        *(1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669),
        *(6679, 6697, 10080),
        # and data stores that an intranet often leaves without a password
        *(2375, 2379, 3306, 5432, 5984, 6379, 9042, 9200, 9300, 11211, 27017),
    }
)
_PRIVATE_NAMES = ("localhost", "localdomain", "local", "internal", "intranet", "lan", "home.arpa")
_NOT_IN_NAMES = re.compile(r"[\x00-\x20\x7f\s\"#%/:<>?@\[\\\]^`{|}]")
_NUMBER = re.compile(r"\A(?:[0-9]+|0x[0-9a-f]*)\Z")


class RefusedError(OSError):
    """The guard's no, in the form a connecting library passes on untouched: an error of the system."""

    def __init__(self, address: str) -> None:
        super().__init__(None, "address refused")
        self.address = address


class Guard:
    """Says yes or no, and always the same to the same question."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._names: set[str] = set()
        self._name_ports: set[tuple[str, int]] = set()
        self._networks: list[Network] = []
        self._network_ports: set[tuple[Address, int]] = set()
        # URLs that passed, by all that decides it: most requests go where the last ones went.
        self._passed: set[tuple[str, str, int, bool]] = set()
        for entry in allow:
            self._read(entry)

    def check_url(self, scheme: str, host: str, port: int, *, shown: str, proxied: bool = False) -> None:
        """Raise FetchError when what the URL says is already enough for a no. `shown` is the URL to name."""
        question = (scheme, host, port, proxied)
        if question in self._passed:
            return
        if scheme not in ("http", "https"):
            raise FetchError(
                FailureKind.BLOCKED, "{url}: only http and https addresses are fetched.", url=shown
            )
        if not host:
            raise FetchError(FailureKind.BLOCKED, "{url}: the address names no host.", url=shown)
        host = _normal_name(host)
        address = parse_address(host)
        if address is None and _NOT_IN_NAMES.search(host):
            raise FetchError(
                FailureKind.BLOCKED, "{url}: this is not an address that can be fetched.", url=shown
            )
        if address is None and looks_numeric(host):
            raise FetchError(
                FailureKind.BLOCKED,
                "{url}: the address is written in an unusual way; write it as four decimal numbers.",
                url=shown,
            )
        if port in _CLOSED_PORTS and not self._allows_port(host, address, port):
            raise FetchError(
                FailureKind.BLOCKED,
                "{url}: port {port} belongs to another service than the web. "
                "An operator can allow it with HEADWATER_ALLOW_HOSTS={host}:{port}.",
                url=shown,
                host=host,
                port=port,
            )
        if address is not None:
            if not self.permits(host, address, port):
                raise self.refusal(shown, host, str(_plain(address)))
        elif proxied and _is_private_name(host) and not self.allows_name(host, port):
            raise self.refusal(shown, host, host)
        if len(self._passed) >= 10_000:
            self._passed.clear()
        self._passed.add(question)

    def check_address(self, host: str, address: str, port: int) -> None:
        """Raise Refused unless `host` may be reached at `address`, which is an address and no name."""
        parsed = parse_address(address)
        if parsed is None or not self.permits(_normal_name(host), parsed, port):
            raise RefusedError(address)

    def permits(self, host: str, address: Address, port: int) -> bool:
        """Whether `host` (a normal name) may be reached at this address."""
        return is_public(address) or self.allows_name(host, port) or self._allows_address(address, port)

    def is_named(self, host: str, port: int) -> bool:
        """Whether the operator has named this host, or the address that stands in its place."""
        address = parse_address(host)
        return self.allows_name(host, port) or (address is not None and self._allows_address(address, port))

    def allows_name(self, host: str, port: int) -> bool:
        return host in self._names or (host, port) in self._name_ports

    def refusal(self, shown: str, host: str, address: str) -> FetchError:
        """The error for a URL whose address was refused."""
        return FetchError(
            FailureKind.BLOCKED,
            "{url}: {address} is not a public address, so it was not contacted. "
            "An operator can allow it with HEADWATER_ALLOW_HOSTS={host}.",
            url=shown,
            address=address,
            host=host,
        )

    def _allows_address(self, address: Address, port: int) -> bool:
        address = _plain(address)
        if (address, port) in self._network_ports:
            return True
        return any(address.version == net.version and address in net for net in self._networks)

    def _allows_port(self, host: str, address: Address | None, port: int) -> bool:
        if (host, port) in self._name_ports:
            return True
        return address is not None and (_plain(address), port) in self._network_ports

    def _read(self, entry: str) -> None:
        text = entry.strip()
        with suppress(ValueError):
            self._networks.append(_plain_network(ipaddress.ip_network(text.strip("[]"), strict=False)))
            return
        host, colon, port_text = text.rpartition(":")
        if not colon:
            host, port = text, None
        elif port_text.isascii() and port_text.isdigit() and 0 < int(port_text) < 65536:
            port = int(port_text)
        else:
            host, port = "", None
        host = _normal_name(host)
        address = parse_address(host)
        if port is not None and address is not None:
            self._network_ports.add((_plain(address), port))
        elif not re.fullmatch(r"[^\s/:@\[\]]+", host) or looks_numeric(host):
            raise SettingError(
                "HEADWATER_ALLOW_HOSTS: {entry} is not a host name, host:port, address or network.",
                entry=entry,
            )
        elif port is not None:
            self._name_ports.add((host, port))
        else:
            self._names.add(host)


def is_public(address: Address) -> bool:
    """Whether this is a global unicast address, with no other address hidden in it."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_IPV4)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address.scope_id is not None:
        return False
    number = int(address)
    if address in _NAT64:
        # Hosts without IPv4 reach all of the IPv4 web through this prefix.
        return is_public(IPv4Address(number & 0xFFFFFFFF))
    if address not in _GLOBAL_IPV6 or any(address in network for network in _CLOSED_IPV6):
        return False
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        return is_public(IPv4Address(number & 0xFFFFFFFF))
    return True


def parse_address(host: str) -> Address | None:
    """The address that `host` spells in the standard way, or None: it is a name, or spelt in an odd way."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def looks_numeric(host: str) -> bool:
    """Whether a system library might read this as an IPv4 address: its last part is a number."""
    return _NUMBER.match(host.rstrip(".").rpartition(".")[2]) is not None


def _plain(address: Address) -> Address:
    """An IPv4-mapped IPv6 address is the IPv4 address."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _plain_network(network: Network) -> Network:
    if network.version == 6 and network.prefixlen >= 96:
        first = _plain(network.network_address)
        if isinstance(first, IPv4Address):
            return IPv4Network((first, network.prefixlen - 96))
    return network


def _normal_name(host: str) -> str:
    """Lower case, compatibility characters (fullwidth digits, ideographic full stops) in their plain form."""
    if not host.isascii():
        host = unicodedata.normalize("NFKC", host).replace("。", ".")
        with suppress(UnicodeError):
            host = host.encode("idna").decode("ascii")
    return host.lower().rstrip(".")


def _is_private_name(host: str) -> bool:
    return "." not in host or any(host.endswith("." + suffix) for suffix in _PRIVATE_NAMES)
