"""The event loop that everything asynchronous runs on: uvloop where there is one, for half the cost of asyncio's."""

import asyncio
import contextlib
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

# Objects more than before: a megabyte or so of what pages leave behind. Several times as many are several megabytes,
# which come and go so slowly that they look like a leak; with several times fewer, every visit is interrupted.
GARBAGE_AFTER = 5_000
# What was in use at the time is looked at again after so many looks, and what was then, too, after so many of those.
AGAIN_AFTER = 2, 5
_M_ARENA_MAX, ARENAS = -8, 2


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end on its own loop."""
    # A visit leaves no cycles behind, so looking for them after every few hundred objects is a tenth of its cost;
    # and what is loaded by now stays, so it need not be looked at again.
    _share_arenas()
    gc.freeze()
    gc.collect()  # of nothing: what is frozen no longer counts as a reason to put off looking at everything
    gc.set_threshold(GARBAGE_AFTER, *AGAIN_AFTER)
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return asyncio.run(main)
    return uvloop.run(main)


def _share_arenas() -> None:
    """Let all threads allocate from a few places: glibc gives each its own, none of which shrinks again."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # another C library, which may do better unaided
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)
