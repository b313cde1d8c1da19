"""Politeness: how many requests a host gets at once, how far apart, and its rest when it asks for one.

A turn is taken with `enter` before a request and given back with `leave` after it. A host that answers 429,
or 503 with Retry-After, rests: its other requests wait if the rest is short and fail at once if it is long,
with the time at which to come back. So do requests that would stand too long in their host's queue. A 503
without Retry-After may be one broken page of a large host, so it only slows the host down: one request at a
time, further apart, until an answer is good again.

In the common case a turn costs a look-up and a comparison. Hosts that are idle are forgotten. Nothing here
touches the network; the clock is a parameter.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from headwater.errors import FailureKind, FetchError

_SLOW_SPACING = 5.0
_FIRST_REST = 60.0
_MOST_REST = 3600.0
_SHORT_REST = 5.0
_SWEEP_AT = 1024


class _Host:
    __slots__ = ("active", "is_slow", "next_at", "rest_until", "rests", "timer", "waiters")

    def __init__(self) -> None:
        self.active = 0
        self.next_at = 0.0
        self.rest_until = 0.0
        self.rests = 0
        self.is_slow = False
        self.timer: asyncio.TimerHandle | None = None
        self.waiters: deque[asyncio.Future[None]] | None = None

    def is_idle(self, now: float) -> bool:
        return (
            not self.active
            and not self.waiters
            and self.next_at <= now
            and self.rest_until <= now
            # What a host did wrong is remembered for a while after its rest, so that rests grow.
            and (not (self.rests or self.is_slow) or self.rest_until + _MOST_REST <= now)
        )


class Politeness:
    """One for all requests of a Fetcher; used from one event loop."""

    def __init__(
        self,
        *,
        concurrency: int = 2,
        spacing_seconds: float = 0.5,
        patience_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._concurrency = concurrency
        self._spacing = spacing_seconds
        self._patience = patience_seconds
        self._clock = clock
        self._hosts: dict[str, _Host] = {}
        self._sweep_at = _SWEEP_AT

    def __len__(self) -> int:
        return len(self._hosts)

    def try_enter(self, name: str) -> bool:
        """Take this host's turn if it can be had at once."""
        host = self._hosts.get(name)
        now = self._clock()
        if host is None:
            host = self._add(name, now)
        if (
            host.active < self._limit(host)
            and host.next_at <= now
            and host.rest_until <= now
            and not host.waiters
        ):
            host.active += 1
            host.next_at = now + self._gap(host)
            return True
        return False

    async def enter(self, name: str, shown: str) -> None:
        """Wait for this host's turn; FetchError when it will not come soon. `shown` is the URL to name."""
        if not self.try_enter(name):
            await self._wait(name, self._hosts[name], shown, self._clock())

    def leave(self, name: str, status: int = 0, retry_after_seconds: float | None = None) -> None:
        """Give the turn back. `status` is the answer's, 0 when there was none."""
        host = self._hosts[name]
        host.active -= 1
        if status == 429 or (status == 503 and retry_after_seconds is not None):
            self._rest(host, retry_after_seconds)
        elif status == 503:
            host.is_slow = True
            host.rest_until = max(host.rest_until, self._clock())
        elif 200 <= status < 400 and (host.is_slow or host.rests):
            host.is_slow, host.rests = False, 0
        if host.waiters:
            self._serve(name, host)

    def rest(self, name: str, seconds: float) -> None:
        """Let a host rest, as after a 429 with this Retry-After."""
        self._rest(self._hosts.get(name) or self._add(name, self._clock()), seconds)

    def _limit(self, host: _Host) -> int:
        return 1 if host.is_slow or host.rests else self._concurrency

    def _gap(self, host: _Host) -> float:
        return max(self._spacing, _SLOW_SPACING) if host.is_slow or host.rests else self._spacing

    def _rest(self, host: _Host, retry_after_seconds: float | None) -> None:
        now = self._clock()
        if retry_after_seconds is None:
            retry_after_seconds = _FIRST_REST * 2 ** min(host.rests, 10)
        if host.rest_until <= now:  # answers to requests sent before the rest count once
            host.rests += 1
        host.rest_until = max(host.rest_until, now + min(retry_after_seconds, _MOST_REST))

    def _add(self, name: str, now: float) -> _Host:
        if len(self._hosts) >= self._sweep_at:
            self._hosts = {key: host for key, host in self._hosts.items() if not host.is_idle(now)}
            self._sweep_at = max(_SWEEP_AT, 2 * len(self._hosts))
        host = self._hosts[name] = _Host()
        return host

    async def _wait(self, name: str, host: _Host, shown: str, now: float) -> None:
        if host.rest_until - now > _SHORT_REST:
            raise self._resting(name, host, shown, now)
        if host.waiters is None:
            host.waiters = deque()
        if host.next_at - now + len(host.waiters) * self._gap(host) > self._patience:
            raise crowded(name, shown, self._patience)  # its turn would come too late: say so now
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        host.waiters.append(turn)
        self._serve(name, host)
        try:
            async with asyncio.timeout(self._patience):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave(name)  # the turn came in the same moment as the end of the waiting
            elif host.waiters and turn in host.waiters:
                host.waiters.remove(turn)
            if isinstance(error, TimeoutError | _LongRestError):
                now = self._clock()
                if host.rest_until > now:
                    raise self._resting(name, host, shown, now) from None
                raise crowded(name, shown, self._patience) from None
            raise

    def _serve(self, name: str, host: _Host) -> None:
        """Give turns to the waiting, as many as may have one now, and come back when the next may."""
        if host.timer is not None:
            host.timer.cancel()
            host.timer = None
        waiters = host.waiters
        while waiters:
            if waiters[0].done():
                waiters.popleft()
                continue
            now = self._clock()
            if host.rest_until - now > _SHORT_REST:
                for turn in waiters:
                    if not turn.done():
                        turn.set_exception(_LongRestError())
                waiters.clear()
                return
            if host.active >= self._limit(host):
                return  # each caller that leaves comes here again
            ready_at = max(host.next_at, host.rest_until)
            if ready_at > now:
                loop = asyncio.get_running_loop()
                host.timer = loop.call_later(ready_at - now, self._serve, name, host)
                return
            host.active += 1
            host.next_at = now + self._gap(host)
            waiters.popleft().set_result(None)

    def _resting(self, name: str, host: _Host, shown: str, now: float) -> FetchError:
        seconds = host.rest_until - now
        return FetchError(
            FailureKind.RATE_LIMITED,
            "{url}: not asked, because {host} wants no requests for another {seconds} seconds.",
            retry_after_seconds=seconds,
            url=shown,
            host=name,
            seconds=round(seconds),
        )


def crowded(name: str, shown: str, seconds: float) -> FetchError:
    """The error of a request whose turn would come too late. `seconds`: when to try again."""
    return FetchError(
        FailureKind.RATE_LIMITED,
        "{url}: not asked, because too many requests to {host} are waiting already; try again later.",
        retry_after_seconds=seconds,
        url=shown,
        host=name,
    )


class Slots:
    """How many requests run at once in all. A semaphore whose common case needs no await."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiters: deque[asyncio.Future[None]] = deque()

    def try_take(self) -> bool:
        if self._free > 0:
            self._free -= 1
            return True
        return False

    async def take(self) -> None:
        if self.try_take():
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(slot)
        try:
            await slot
        except BaseException:
            if slot.done() and not slot.cancelled():
                self.give()  # the slot came in the same moment as the end of the waiting
            raise

    def give(self) -> None:
        while self._waiters:
            slot = self._waiters.popleft()
            if not slot.done():
                slot.set_result(None)
                return
        self._free += 1


class _LongRestError(Exception):
    """Tells a waiter that its host has begun a rest longer than the waiter's patience."""
