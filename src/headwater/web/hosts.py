"""Who reaches us and under which name: named proxies, known hosts, and whether a request needs a sign-in."""

import ipaddress
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.config import Settings
from headwater.errors import Text
from headwater.web.api.problems import problem_answer

FROM_TRUSTED_PROXY: Final = "headwater.from_trusted_proxy"  # in the scope of a request
FORWARDING_HEADERS: Final = ("forwarded", "via", "x-real-ip")  # and all that begin with x-forwarded-


def is_loopback(host: str) -> bool:
    return host == "localhost" or ipaddress.ip_address(host).is_loopback


def is_open(settings: Settings) -> bool:
    """Whether people on this machine need no sign-in: nothing else reaches us, and no setting says otherwise."""
    others = (settings.password, settings.public_url, settings.auth_header, settings.oidc_issuer)
    return all(setting is None for setting in others) and is_loopback(settings.host)


def is_open_to(request: HTTPConnection, settings: Settings) -> bool:
    """Whether this request needs no sign-in: no proxy forwarded it to us."""
    return is_open(settings) and not is_forwarded(request.scope)


def user_named_by_proxy(request: HTTPConnection, settings: Settings) -> str | None:
    """The user that a trusted proxy has signed in; a header that others send says nothing."""
    if settings.auth_header is None or not request.scope.get(FROM_TRUSTED_PROXY):
        return None
    named = request.headers.getlist(settings.auth_header)
    # Two headers: one of them may come from the client, and no one can say which.
    return named[0].strip() or None if len(named) == 1 else None


def is_forwarded(scope: Scope) -> bool:
    """Whether a proxy has sent the request, as far as that shows. No browser speaks HTTP/1.0; nginx does."""
    names = {name.decode("latin-1") for name, _ in scope["headers"]}
    return (
        scope.get("http_version") == "1.0"
        or any(name in names for name in FORWARDING_HEADERS)
        or any(name.startswith("x-forwarded-") for name in names)
    )


def public_address(settings: Settings, port: int) -> str:
    """Where a person finds the dashboard, without a slash at the end."""
    if settings.public_url is not None:
        return settings.public_url.rstrip("/")
    host = settings.host
    if host == "localhost" or ipaddress.ip_address(host).is_unspecified:
        return f"http://localhost:{port}"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def link_address(settings: Settings, port: int, token: str) -> str:
    """The address that a sign-in link leads to."""
    return f"{public_address(settings, port)}/login?link={token}"


def invitation_address(settings: Settings, port: int, token: str) -> str:
    """The address at which an invitation is accepted."""
    return f"{public_address(settings, port)}/signup?invitation={token}"


def known_hosts(settings: Settings) -> frozenset[str] | None:
    """The names under which a browser finds us; None: any.

    Without this, a hostile page could reach an open dashboard under its own name that resolves to loopback.
    Beyond this machine we may have any name; there everything needs a key, which no hostile page has.
    """
    if not is_loopback(settings.host):
        return None
    names = {"127.0.0.1", "localhost", "::1", settings.host}
    if settings.public_url is not None:
        names.add(host_name(urlsplit(settings.public_url).netloc))
    return frozenset(names)


def host_name(netloc: str) -> str:
    """The name in a Host header, without its port; empty if it is none."""
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


def is_own_origin(origin: str, request: HTTPConnection, settings: Settings) -> bool:
    """Whether a page at `origin`, or a referring page, is one of ours: a proxy may have put its own name in Host."""
    try:
        netloc = urlsplit(origin).netloc
    except ValueError:
        return False
    public = urlsplit(settings.public_url).netloc if settings.public_url else ""
    return netloc != "" and netloc in (request.headers.get("host"), public)


class KnownHosts:
    """Refuses requests for names that are not ours."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._hosts is not None:
            host = Headers(scope=scope).get("host", "")
            if host_name(host) not in self._hosts:
                refusal = Text(
                    "{host} is not a name of this server; set HEADWATER_PUBLIC_URL to the address that people use",
                    host=host[:200],
                )
                await problem_answer(scope, 400, refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class TrustedProxies:
    """Believes the proxies that the settings name, and no others: whose request it is, by which scheme and host."""

    def __init__(self, app: ASGIApp, networks: Iterable[str]) -> None:
        self._app = app
        self._networks = [ipaddress.ip_network(network) for network in networks]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("client") and self._trusts(scope["client"][0]):
            scope = {**scope, **self._as_forwarded(scope), FROM_TRUSTED_PROXY: True}
        await self._app(scope, receive, send)

    def _as_forwarded(self, scope: Scope) -> dict[str, Any]:
        headers = Headers(scope=scope)
        changes: dict[str, Any] = {"client": (self._sender(headers, scope["client"][0]), 0)}
        if (scheme := _last(headers, "x-forwarded-proto")) in ("http", "https"):
            changes["scheme"] = scheme
        if host := _last(headers, "x-forwarded-host"):
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            changes["headers"] = [(b"host", host.encode("latin-1")), *others]
        return changes

    def _sender(self, headers: Headers, peer: str) -> str:
        """The last address that is none of our proxies: what stands before it, anyone could have written."""
        sender = peer
        for text in reversed(_values(headers, "x-forwarded-for")):
            address = _address(text)
            if address is None:
                break
            sender = address
            if not self._trusts(address):
                break
        return sender

    def _trusts(self, peer: str) -> bool:
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None) or address
        return any(mapped in network for network in self._networks)


def _values(headers: Headers, name: str) -> list[str]:
    return [part.strip() for part in ",".join(headers.getlist(name)).split(",")]


def _last(headers: Headers, name: str) -> str:
    return _values(headers, name)[-1]


def _address(text: str) -> str | None:
    """An address as proxies write it, perhaps with a port."""
    for candidate in (text, text.rpartition(":")[0]):
        try:
            return str(ipaddress.ip_address(candidate.strip("[]")))
        except ValueError:
            continue
    return None
