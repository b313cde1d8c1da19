"""A memory budget for large responses: all that are held at once, by all callers, fit into it.

A response that turns out to be large reserves memory for its largest possible size, and waits while the budget is used
up. The memory is released when the caller has ended: a visit holds its response until it is parsed and handed on.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Final

SMALL_BYTES: Final = 200_000  # a response up to this size reserves nothing
BUDGET_BYTES: Final = 8_000_000  # reading takes many times as much


class MemoryBudget:
    """So many bytes, given out first come, first served. Safe to use from several event loops."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._lock = Lock()

    async def take(self, count: int) -> None:
        """Wait for `count` bytes. A caller that wants more than the whole budget gets it when no other holds any."""
        with self._lock:
            if not self._waiting and self._fits(count):
                self._used += count
                return
            waiting = (count, asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
        try:
            await waiting[1]
        except asyncio.CancelledError:
            with self._lock:
                was_waiting = waiting in self._waiting
                if was_waiting:
                    self._waiting.remove(waiting)
            if not was_waiting:
                self.give(count)  # it had just been given
            raise

    def give(self, count: int) -> None:
        with self._lock:
            self._used -= count
            while self._waiting and self._fits(self._waiting[0][0]):
                wanted, future = self._waiting.popleft()
                self._used += wanted
                future.get_loop().call_soon_threadsafe(_tell, future)

    def _fits(self, count: int) -> bool:
        return not self._used or self._used + count <= self._most


def _tell(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_budget: Final = MemoryBudget(BUDGET_BYTES)


@dataclass(slots=True)
class _Holder:
    held: int = 0


_current: ContextVar[_Holder | None] = ContextVar("holder", default=None)


@contextmanager
def holding_responses() -> Iterator[None]:
    """Within this, memory reserved for a response is held until the end; the outermost counts."""
    if _current.get() is not None:
        yield
        return
    holder = _Holder()
    token = _current.set(holder)
    try:
        yield
    finally:
        _current.reset(token)
        if holder.held:
            _budget.give(holder.held)


async def reserve_memory(count: int) -> None:
    """Reserve `count` bytes for a response, within `holding_responses`; what is held already counts for it."""
    holder = _current.get()
    if holder is None:
        raise RuntimeError("memory is reserved within holding_responses only")
    if count > holder.held:
        # Given back first: two that each hold some and wait for more would wait for ever.
        if held := holder.held:
            holder.held = 0
            _budget.give(held)
        await _budget.take(count)
        holder.held = count
