"""From what went wrong on the network to the FetchError that says so, its kind by the failure itself.

No message here contains what the failing library said in its own words about requests: those may carry
credentials. System error texts and certificate errors, which cannot, are passed on.
"""

from typing import Literal

from headwater.errors import FailureKind, FetchError
from headwater.fetch.decode import TooLargeError
from headwater.fetch.guard import Guard, RefusedError
from headwater.fetch.transfer import (
    BodyError,
    InsecureError,
    LostError,
    NotHttpError,
    Phase,
    ProxyFailedError,
    SlowError,
    TransferError,
    UnknownHostError,
    UnreachableError,
    UntrustedError,
)

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


_WITHHELD = (
    "{url}: the server does not allow access (status {status}). A redirect leads there from another origin, so the"
    " source's credentials were not sent; change the source's address if they are meant for this one."
)


_REFUSED = (
    "{url}: the server refuses the source's credentials (status 401); check its user name and password, token or"
    " cookies."
)


def status_error(
    shown: str,
    status: int,
    retry_after_seconds: float | None,
    *,
    withheld: bool = False,
    tried: bool = False,
) -> FetchError:
    """The error for an answer that is neither good nor a redirect.

    `withheld`: it comes from another origin than the one that the request's credentials are for; `tried`: it was sent
    them.
    """
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
    elif withheld and status in (401, 403):
        template = _WITHHELD
    elif tried and status == 401:
        template = _REFUSED
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


def _body_error(error: BodyError, shown: str, limit: int) -> FetchError:
    if isinstance(error.problem, TooLargeError):
        return FetchError(
            FailureKind.TOO_LARGE,
            "{url}: the answer is larger than the {limit} bytes allowed.",
            http_status=error.status,
            url=shown,
            limit=limit,
        )
    return FetchError(
        FailureKind.BROKEN,
        "{url}: the compressed answer cannot be read, or is cut off ({encoding}).",
        http_status=error.status,
        url=shown,
        encoding=str(error.problem),
    )


_TIMEOUTS: dict[Phase, str] = {
    "speed": "{url}: the answer comes too slowly, a few bytes a second.",
    "connect": "{url}: the server took too long to connect.",
    "read": "{url}: the server stopped sending.",
    "total": "{url}: the answer took too long in all.",
}


def network_error(
    error: TransferError | RefusedError, guard: Guard, shown: str, host: str, limit: int
) -> FetchError:
    """The error for what went wrong on the way; `limit` is that of the body."""
    match error:
        case BodyError():
            return _body_error(error, shown, limit)
        case RefusedError():
            return guard.refusal(shown, host, error.address)
        case UntrustedError():
            return FetchError(
                FailureKind.TLS,
                "{url}: the server's certificate cannot be trusted ({reason}). Your own authority is trusted if"
                " HEADWATER_CA_FILE names its certificate.",
                url=shown,
                reason=error.reason,
            )
        case InsecureError():
            return FetchError(FailureKind.TLS, "{url}: no secure connection could be made.", url=shown)
        case UnknownHostError():
            return FetchError(
                FailureKind.DNS, "{url}: the host {host} cannot be found.", url=shown, host=host
            )
        case UnreachableError():
            return FetchError(
                FailureKind.CONNECT,
                "{url}: no connection to {host} ({reason}).",
                url=shown,
                host=host,
                reason=error.reason,
            )
        case ProxyFailedError(status=None):
            return FetchError(FailureKind.CONNECT, "{url}: the proxy cannot be reached.", url=shown)
        case ProxyFailedError(status=407):
            return status_error(shown, 407, None)
        case ProxyFailedError():
            return FetchError(
                FailureKind.CONNECT,
                "{url}: the proxy refused to connect (status {status}).",
                url=shown,
                status=error.status,
            )
        case SlowError():
            return FetchError(FailureKind.TIMEOUT, _TIMEOUTS[error.phase], url=shown)
        case NotHttpError(begun=False):
            return FetchError(FailureKind.BROKEN, "{url}: what the server sent is not HTTP.", url=shown)
        case LostError(begun=False):
            return FetchError(
                FailureKind.BROKEN, "{url}: the server closed the connection without an answer.", url=shown
            )
        case _:
            return FetchError(FailureKind.BROKEN, "{url}: the answer was cut off or damaged.", url=shown)
