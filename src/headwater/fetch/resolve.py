"""From a host's name to the addresses it may be reached at: resolved, checked, and those very ones connected to."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from headwater.fetch.guard import Guard, RefusedError, parse_address

Resolve = Callable[[str, int], Awaitable[list[str]]]

_DNS_SECONDS = 60.0
_MOST_NAMES = 10_000


class GuardedResolver:
    """Resolves names on its own threads (the system's resolver blocks), and filters what comes back."""

    def __init__(self, guard: Guard, resolve: Resolve | None = None) -> None:
        self._guard = guard
        self._resolve = resolve or self._ask_system
        # A dead name server holds a thread for many seconds; the loop's own threads have other work.
        self._threads = ThreadPoolExecutor(32, thread_name_prefix="headwater-dns")
        self._known: dict[tuple[str, int, bool], tuple[float, tuple[str, ...]]] = {}

    async def resolve(self, host: str, port: int, *, guarded: bool = True) -> tuple[str, ...]:
        """The addresses of `host`; RefusedError when none may be connected to, OSError when there are none.

        Not `guarded`: for the operator's own proxy, which may have any address.
        """
        until, addresses = self._known.get((host, port, guarded), (0.0, ()))
        if until > time.monotonic():
            return addresses
        found = [host] if parse_address(host) is not None else await self._resolve(host, port)
        addresses = tuple(self._allowed(host, found, port) if guarded else found)
        if not addresses:
            raise OSError(None, "no address")
        if len(self._known) >= _MOST_NAMES:
            self._known.clear()
        self._known[host, port, guarded] = time.monotonic() + _DNS_SECONDS, addresses
        return addresses

    async def locate(self, host: str, port: int, *, guarded: bool = True) -> str | None:
        """The addresses in the form that libcurl takes instead of a look-up; None for an IP address."""
        addresses = await self.resolve(host, port, guarded=guarded)
        if addresses == (host,):
            return None
        places = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
        return f"+{host}:{port}:{places}"

    def _allowed(self, host: str, addresses: list[str], port: int) -> list[str]:
        allowed: list[str] = []
        refused: RefusedError | None = None
        for address in addresses:
            try:
                self.check(host, address, port)
                allowed.append(address)
            except RefusedError as refusal:
                refused = refusal
        if refused is not None and not allowed:
            raise refused
        return allowed

    def known_addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host as far as they were resolved lately."""
        return (
            [host]
            if parse_address(host) is not None
            else list(self._known.get((host, port, True), (0.0, ()))[1])
        )

    def check(self, host: str, address: str, port: int) -> None:
        """Raise RefusedError unless `host` may be reached at this address."""
        self._guard.check_address(host, address, port)

    async def _ask_system(self, host: str, port: int) -> list[str]:
        def ask() -> list[str]:
            try:
                infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
            except UnicodeError:
                raise OSError(None, "not a host name") from None
            return [str(info[4][0]) for info in infos]

        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
