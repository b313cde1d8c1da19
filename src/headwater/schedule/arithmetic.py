"""The kernel's arithmetic on packed states: as it is, or compiled where many visits make that pay.

Both give the same states and plans. Compiling takes some seconds once, loading what was compiled half a second
and some memory; so whoever makes few visits does without, and `use_compiled` is called off the event loop.
"""

import logging
import subprocess
import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

from headwater.model import Observation
from headwater.schedule import kernel, layout
from headwater.schedule.compiled import compile_kernel, is_compiled

log = logging.getLogger(__name__)

COMPILE_SECONDS = 300.0

# Working space of a plan: weights, rates, the day's sums, the hour, and four numbers of every cell.
SPACE_SIZES = (
    layout.SHAPES + 2,
    layout.LEVELS,
    kernel.SUMS_SIZE,
    kernel.HOUR_SPACE,
    *[kernel.CELL_SPACE] * 4,
)


class Arithmetic(Protocol):
    def digest(self, state: bytes | None, visit: Observation) -> bytes:
        """The state after a visit that worked. The first visit's items are the source's history."""
        ...

    def plan(self, state: bytes | None, now: float, price_seconds: float) -> Sequence[float]:
        """The kernel's answers (`kernel.OUT_…`). Without a state the prior alone says how soon to look."""
        ...


class Plain:
    """In lists, by the interpreter."""

    def digest(self, state: bytes | None, visit: Observation) -> bytes:
        vector = layout.unpack_state(state)
        begun = vector is None or visit.at < vector[layout.LAST_AT]
        if vector is None or begun:
            vector = [0.0] * layout.SIZE
            kernel.begin(vector, visit.at)
        kernel.digest_visit(
            vector,
            visit.at,
            sorted(visit.item_times),
            visit.items_found,
            begun,
            visit.overflow,
            [0.0] * SPACE_SIZES[0],
        )
        return layout.pack_state(vector)

    def plan(self, state: bytes | None, now: float, price_seconds: float) -> Sequence[float]:
        vector = layout.unpack_state(state)
        if vector is None:
            vector = [0.0] * layout.SIZE
            kernel.begin(vector, now)
        weights, rates, _, hour, times, counts, moments, costs = ([0.0] * size for size in SPACE_SIZES)
        out = [0.0] * kernel.OUT_SIZE
        hull = [0] * kernel.CELL_SPACE
        kernel.plan_visit(
            vector,
            now,
            price_seconds,
            weights,
            rates,
            sum_day(vector),
            hour,
            times,
            counts,
            moments,
            costs,
            hull,
            out,
        )
        return out


def sum_day(vector: list[float]) -> list[float]:
    """What `kernel.sum_day` does, in the interpreter's own loops: every plan needs it."""
    day = vector[layout.DAY : layout.DAY + layout.DAY_BINS]
    bins = day[-kernel.MARGIN :] + day + day[: kernel.REACH - layout.DAY_BINS - kernel.MARGIN]
    return list(accumulate(accumulate(bins[:-1], initial=0.0), initial=0.0))


class Compiled:
    """In arrays, by machine code. No call lets go of the interpreter, so threads can share the working space."""

    def __init__(self) -> None:
        import numpy as np

        self._np = np
        self._functions = compile_kernel()
        self._no_times = np.empty(0)
        self._newest: tuple[bytes, Any] = b"", None
        self._space = [np.zeros(size) for size in SPACE_SIZES]
        self._hull = np.zeros(kernel.CELL_SPACE, dtype=np.int64)
        # Compiles, or loads, what the calls below need.
        visit = Observation(at=1.0e9, outcome="new", item_times=(9.0e8,), items_found=1, first=True)
        self.plan(self.digest(self.digest(None, visit), visit), 1.0e9, 1.0)

    def digest(self, state: bytes | None, visit: Observation) -> bytes:
        np = self._np
        vector = self._unpack(state)
        begun = vector is None or visit.at < vector[layout.LAST_AT]
        if begun:
            vector = np.empty(layout.SIZE)
            self._functions.begin(vector, float(visit.at))
        times = np.array(sorted(visit.item_times), dtype=float) if visit.item_times else self._no_times
        self._functions.digest_visit(
            vector,
            float(visit.at),
            times,
            int(visit.items_found),
            bool(begun),
            bool(visit.overflow),
            self._space[0],
        )
        body = vector[: layout.SCALARS].tobytes() + vector[layout.SCALARS :].astype("<u2").tobytes()
        packed = layout.add_header(body)
        self._newest = packed, vector
        return packed

    def plan(self, state: bytes | None, now: float, price_seconds: float) -> Sequence[float]:
        np = self._np
        newest, vector = self._newest  # as a rule a plan follows its digest
        if state is not newest:
            vector = self._unpack(state)
        if vector is None:
            vector = np.empty(layout.SIZE)
            self._functions.begin(vector, float(now))
        out = np.empty(kernel.OUT_SIZE)
        self._functions.plan_from_state(
            vector, float(now), float(price_seconds), *self._space, self._hull, out
        )
        found: list[float] = out.tolist()
        return found

    def _unpack(self, state: bytes | None) -> Any:
        if not layout.is_state(state):
            return None
        np = self._np
        vector = np.empty(layout.SIZE)
        vector[: layout.SCALARS] = np.frombuffer(state, "<f8", layout.SCALARS, layout.SCALARS_OFFSET)
        vector[layout.SCALARS :] = np.frombuffer(
            state, "<u2", layout.SIZE - layout.SCALARS, layout.GRAINS_OFFSET
        )
        return vector


_current: Arithmetic = Plain()


def current() -> Arithmetic:
    """The arithmetic to use."""
    return _current


def use_compiled() -> None:
    """Change over to the compiled arithmetic, if there can be one. Takes its time the first time on a machine."""
    global _current  # noqa: PLW0603 - one for the process: it is the same mathematics
    if isinstance(_current, Compiled) or not is_compiled():
        return
    try:
        # First in a process of its own, which leaves it in the cache: compiling takes 50 MB that loading does not.
        subprocess.run(  # noqa: S603 - our own words
            [sys.executable, "-c", f"from {__name__} import Compiled; Compiled()"],
            capture_output=True,
            timeout=COMPILE_SECONDS,
            check=False,
        )
        _current = Compiled()
    except Exception:  # whatever a compiler may run into: there is another way
        log.warning("the plans' arithmetic cannot be compiled; it runs as it is", exc_info=True)
