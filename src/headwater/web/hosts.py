"""Under which names we are found, and whether only this machine finds us."""

import ipaddress

from headwater.config import Settings


def is_loopback(host: str) -> bool:
    return host == "localhost" or ipaddress.ip_address(host).is_loopback


def is_open(settings: Settings) -> bool:
    """Whether whoever uses this machine may look without a key: only this machine finds us, and no password is set."""
    return settings.password is None and is_loopback(settings.host)


def allowed_hosts(host: str) -> list[str]:
    """The names under which a browser finds us; `host` is the one we were told to listen on.

    Beyond this machine we may have any name; there everything needs a key, which no hostile page has.
    """
    if not is_loopback(host):
        return ["*"]
    return ["127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host]
