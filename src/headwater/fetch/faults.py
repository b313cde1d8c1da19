"""From what went wrong on the network to the FetchError that says so, its kind by the failure itself.

No message here contains what the failing library said in its own words about requests: those may carry
credentials. System error texts and certificate errors, which cannot, are passed on.
"""

import ssl
from typing import Literal

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientHttpProxyError,
    ClientOSError,
    ClientPayloadError,
    ClientProxyConnectionError,
    ClientResponseError,
    ConnectionTimeoutError,
    InvalidURL,
    ServerDisconnectedError,
    SocketTimeoutError,
)

from headwater.errors import FailureKind, FetchError
from headwater.fetch.guard import Guard, RefusedError

_KINDS = {
    401: FailureKind.UNAUTHORIZED,
    403: FailureKind.FORBIDDEN,
    404: FailureKind.NOT_FOUND,
    407: FailureKind.UNAUTHORIZED,
    410: FailureKind.GONE,
    429: FailureKind.RATE_LIMITED,
    451: FailureKind.FORBIDDEN,
}
_STATUS_TEMPLATES = {
    401: "{url}: the server wants credentials (status 401); set a user name and password or a token.",
    403: "{url}: the server does not allow access (status 403).",
    404: "{url}: there is nothing at this address (status 404).",
    407: "{url}: the proxy wants a user name and password (status 407).",
    410: "{url}: this is gone for good (status 410).",
    429: "{url}: the server asks for fewer requests (status 429).",
    451: "{url}: not available for legal reasons (status 451).",
}


def status_error(shown: str, status: int, retry_after_seconds: float | None) -> FetchError:
    """The error for an answer that is neither good nor a redirect."""
    kind = _KINDS.get(status)
    if kind is None:
        if 400 <= status < 500:
            kind = FailureKind.CLIENT_ERROR
        elif 500 <= status < 600:
            kind = FailureKind.SERVER_ERROR
        else:
            kind = FailureKind.BROKEN
    if kind is FailureKind.SERVER_ERROR:
        template = "{url}: the server has a problem (status {status})."
    else:
        template = _STATUS_TEMPLATES.get(status, "{url}: the server answered with status {status}.")
    return FetchError(
        kind, template, http_status=status, retry_after_seconds=retry_after_seconds, url=shown, status=status
    )


_REDIRECT_TEMPLATES = {
    "nowhere": "{url}: it redirects to no usable address (status {status}).",
    "endless": "{url}: it redirects too many times.",
    "circle": "{url}: its redirects go in a circle.",
}


def redirect_error(fault: Literal["nowhere", "endless", "circle"], shown: str, status: int) -> FetchError:
    """The error for a redirect that is not followed."""
    return FetchError(
        FailureKind.REDIRECT, _REDIRECT_TEMPLATES[fault], http_status=status, url=shown, status=status
    )


def network_error(error: Exception, guard: Guard, shown: str, host: str, proxied: bool) -> FetchError:
    """The error for an exception that left aiohttp."""
    if isinstance(error, ClientConnectorError) and isinstance(error.os_error, RefusedError):
        return guard.refusal(shown, host, error.os_error.address)
    if isinstance(error, ClientConnectorCertificateError):
        return _certificate_error(error.certificate_error, shown)
    if isinstance(error, ClientConnectorSSLError):
        return FetchError(FailureKind.TLS, "{url}: no secure connection could be made.", url=shown)
    if isinstance(error, ClientProxyConnectionError):
        return FetchError(FailureKind.CONNECT, "{url}: the proxy cannot be reached.", url=shown)
    if isinstance(error, ClientConnectorDNSError):
        if proxied:
            return FetchError(FailureKind.CONNECT, "{url}: the proxy cannot be reached.", url=shown)
        return FetchError(FailureKind.DNS, "{url}: the host {host} cannot be found.", url=shown, host=host)
    if isinstance(error, ClientConnectorError):
        return FetchError(
            FailureKind.CONNECT,
            "{url}: no connection to {host} ({reason}).",
            url=shown,
            host=host,
            reason=error.strerror or type(error.os_error).__name__,
        )
    if isinstance(error, ClientHttpProxyError):
        if error.status == 407:
            return status_error(shown, 407, None)
        return FetchError(
            FailureKind.CONNECT,
            "{url}: the proxy refused to connect (status {status}).",
            url=shown,
            status=error.status,
        )
    return _timeout_error(error, shown) or _transfer_error(error, shown)


def _timeout_error(error: Exception, shown: str) -> FetchError | None:
    if isinstance(error, ConnectionTimeoutError):
        return FetchError(FailureKind.TIMEOUT, "{url}: the server took too long to connect.", url=shown)
    if isinstance(error, SocketTimeoutError):
        return FetchError(FailureKind.TIMEOUT, "{url}: the server stopped sending.", url=shown)
    if isinstance(error, TimeoutError):
        return FetchError(FailureKind.TIMEOUT, "{url}: the answer took too long in all.", url=shown)
    return None


def _transfer_error(error: Exception, shown: str) -> FetchError:
    if isinstance(error, ClientPayloadError):
        return FetchError(FailureKind.BROKEN, "{url}: the answer was cut off or damaged.", url=shown)
    if isinstance(error, ServerDisconnectedError | ClientOSError):
        return FetchError(
            FailureKind.BROKEN, "{url}: the server closed the connection without an answer.", url=shown
        )
    if isinstance(error, InvalidURL):
        return FetchError(
            FailureKind.BLOCKED, "{url}: this is not an address that can be fetched.", url=shown
        )
    if isinstance(error, ClientResponseError):
        return FetchError(FailureKind.BROKEN, "{url}: what the server sent is not HTTP.", url=shown)
    return FetchError(
        FailureKind.BROKEN, "{url}: the transfer failed ({reason}).", url=shown, reason=type(error).__name__
    )


def _certificate_error(error: Exception, shown: str) -> FetchError:
    reason = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else "?"
    return FetchError(
        FailureKind.TLS,
        "{url}: the server's certificate cannot be trusted ({reason}).",
        url=shown,
        reason=reason,
    )
