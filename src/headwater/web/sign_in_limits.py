"""Limits on wrong keys and passwords, counted in bounded memory, so that guessing is slow.

They count against the address they come from. Because one guesser may have many addresses, wrong passwords also count
over all addresses together: those of an account against the account, those of the settings' password in sum. Keys are
too long to be guessed: a right one is let in from wherever it comes.
"""

import ipaddress
from collections import OrderedDict, deque
from collections.abc import Callable

MOST_FAILURES = 10  # of one address, within
FAILURE_WINDOW_SECONDS = 60.0
MOST_PASSWORD_FAILURES = 100  # of all addresses, within
PASSWORD_WINDOW_SECONDS = 600.0
MOST_ACCOUNT_FAILURES = 10  # of one account from all addresses, within
ACCOUNT_WINDOW_SECONDS = 300.0
MOST_ADDRESSES = 10_000


class FailureCounter:
    """Counts failures by name: `most` within `window_seconds`, then a name has to wait."""

    def __init__(self, clock: Callable[[], float], most: int, window_seconds: float) -> None:
        self._clock = clock
        self._most = most
        self._window = window_seconds
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def add(self, name: str) -> None:
        times = self._failures.setdefault(name, deque(maxlen=self._most))
        times.append(self._clock())
        self._failures.move_to_end(name)
        while len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def seconds_to_wait(self, name: str) -> float:
        times = self._failures.get(name)
        if times is None or len(times) < self._most:
            return 0.0
        left = times[0] + self._window - self._clock()
        # A clock that was set back must not lock anyone out for longer.
        return left if 0 < left <= self._window else 0.0


class WrongSecrets:
    """Wrong keys, links and passwords, by address; and wrong passwords by account, wherever they come from."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._by_address = FailureCounter(clock, MOST_FAILURES, FAILURE_WINDOW_SECONDS)
        self._of_password = FailureCounter(clock, MOST_PASSWORD_FAILURES, PASSWORD_WINDOW_SECONDS)
        self._by_account = FailureCounter(clock, MOST_ACCOUNT_FAILURES, ACCOUNT_WINDOW_SECONDS)

    def add(self, address: str, *, is_password: bool = False, account: str | None = None) -> None:
        self._by_address.add(neighbourhood(address))
        if is_password:
            self._of_password.add("")
        if account is not None:
            self._by_account.add(account)

    def seconds_to_wait(
        self, address: str, *, is_password: bool = False, account: str | None = None
    ) -> float:
        """How long an address must wait before its next guess is looked at."""
        wait = self._by_address.seconds_to_wait(neighbourhood(address))
        if is_password:
            wait = max(wait, self._of_password.seconds_to_wait(""))
        if account is not None:
            wait = max(wait, self._by_account.seconds_to_wait(account))
        return wait


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
