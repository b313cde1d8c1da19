"""Threads for work whose time depends on what others wrote, so that the event loop goes on answering meanwhile.

Python runs one thread at a time: many threads would not work faster, they would only take turns away from those
that answer. Each kind of work has its own few threads, and waits for nothing but its own kind.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES: Final = 500_000  # reading such a document may take a hundred times its size in memory


class Lane:
    """A few threads for one kind of work."""

    def __init__(self, name: str, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"headwater-{name}")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work(…)` returns, off the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(work, *args, **kwargs))


showing: Final = Lane("show", 2)  # items, for pages
publishing: Final = Lane("publish", 1)  # large outlets
LARGE_CHARACTERS: Final = 200_000  # of texts; cleaning fewer takes a moment


def lane_for(characters: int) -> Lane:
    """Where so many characters of texts are cleaned: large ones wait for each other, and nothing waits for them."""
    return publishing if characters > LARGE_CHARACTERS else showing


_reading: Final = Lane("read", 2)
_reading_large: Final = Lane("read-large", 1)


async def read_aside(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work(…)` makes of a document of `size` bytes, off the event loop; large ones one after the other."""
    if size < LARGE_BYTES:
        return await _reading.run(work, *args, **kwargs)

    def read() -> T:
        _give_memory_back()
        try:
            return work(*args, **kwargs)
        finally:
            _give_memory_back()

    return await _reading_large.run(read)


def _give_memory_back() -> None:
    """What earlier work took goes back to the system before, and after, a large document is read."""
    gc.collect()
    with suppress(OSError, AttributeError):  # glibc alone has it
        ctypes.CDLL(None).malloc_trim(0)
