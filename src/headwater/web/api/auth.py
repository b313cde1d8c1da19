"""Who may: a Bearer key with the scope that a route asks for.

A route says `dependencies=[needs("read")]`. Keys that are wrong count against the address they come from: too many,
and it is refused for a while without a look at what it brings.
"""

import ipaddress
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from headwater.errors import Text
from headwater.store.keys import ApiKey, find_key, is_use_worth_noting, note_use
from headwater.web.api.problems import Refusal
from headwater.web.context import Context, InContext
from headwater.web.hosts import is_open

Scope = Literal["read", "refresh", "admin"]

MOST_FAILURES = 10  # of one address, within
FAILURE_WINDOW_SECONDS = 60.0
MOST_ADDRESSES = 10_000
LONGEST_KEY = 200
CHALLENGE = 'Bearer realm="Headwater"'

_bearer = HTTPBearer(
    auto_error=False, scheme_name="key", description="An API key: `headwater key add NAME --scope read`."
)


class FailedKeys:
    """Counts wrong keys by the address they came from, in bounded memory."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def add(self, address: str) -> None:
        name = neighbourhood(address)
        times = self._failures.setdefault(name, deque(maxlen=MOST_FAILURES))
        times.append(self._clock())
        self._failures.move_to_end(name)
        while len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def seconds_to_wait(self, address: str) -> float:
        """How long an address must wait before its next key is looked at."""
        times = self._failures.get(neighbourhood(address))
        if times is None or len(times) < MOST_FAILURES:
            return 0.0
        left = times[0] + FAILURE_WINDOW_SECONDS - self._clock()
        # A clock that was set back must not lock anybody out for longer.
        return left if 0 < left <= FAILURE_WINDOW_SECONDS else 0.0


def neighbourhood(address: str) -> str:
    """What counts as one caller: an IPv4 address, or the /64 that one IPv6 customer has to choose from."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(ipaddress.ip_network((int(known) >> 64 << 64, 64)))
    return str(known)


async def recognise(request: Request, context: Context, secret: str | None, challenge: str) -> ApiKey:
    """The key that a request brings, or a refusal with `challenge`."""
    if secret is None:
        raise Refusal(
            401,
            Text("this needs an API key, sent as: Authorization: Bearer KEY"),
            {"WWW-Authenticate": challenge},
        )
    failed_keys: FailedKeys = request.app.state.failed_keys
    address = request.client.host if request.client else ""
    wait = failed_keys.seconds_to_wait(address)
    if wait:
        raise Refusal(
            429,
            Text(
                "too many wrong keys came from {address}; wait {seconds:.0f} s", address=address, seconds=wait
            ),
            {"Retry-After": str(int(wait) + 1)},
        )
    key = await context.store.read(find_key, secret) if len(secret) <= LONGEST_KEY else None
    if key is None:
        failed_keys.add(address)
        raise Refusal(
            401,
            Text(
                "this API key is not known here, or was revoked; `headwater key list` shows the keys there are"
            ),
            {"WWW-Authenticate": f'{challenge}, error="invalid_token"'},
        )
    now = context.clock()
    if is_use_worth_noting(key, now):
        await context.store.write(note_use, key.id, now)
    return key


def require(key: ApiKey, scope: Scope) -> None:
    """Refuse a key that has not the scope."""
    if not key.allows(scope):
        raise Refusal(
            403,
            Text("key {name} has not the scope {scope}, which this needs", name=key.name, scope=scope),
            {"WWW-Authenticate": f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'},
        )


Given = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def needs(scope: Scope) -> Any:
    """A dependency that lets only holders of a key with `scope` pass, and tells which key it is."""

    async def check(request: Request, context: InContext, given: Given) -> ApiKey:
        key = await recognise(request, context, given.credentials if given else None, CHALLENGE)
        require(key, scope)
        return key

    return Depends(check)


def welcomes(scope: Scope) -> Any:
    """The same, but that whoever uses this machine passes without a key (None) where the pages are open to them."""

    async def check(request: Request, context: InContext, given: Given) -> ApiKey | None:
        if given is None and is_open(context.settings):
            return None
        key = await recognise(request, context, given.credentials if given else None, CHALLENGE)
        require(key, scope)
        return key

    return Depends(check)
