"""The kernel on packed states: compiled where the build has compiled it, else in the interpreter.

Both return the same states and plans. HEADWATER_COMPILE=0 forces the interpreter, to compare the two.
"""

import os
from array import array
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from zlib import crc32

from headwater.model import Observation
from headwater.schedule import kernel, layout
from headwater.schedule.kernel import digest, plan, summer
from headwater.schedule.kernel.workspace import MARGIN, OUT_SIZE, REACH, Workspace

_MODULES = ("digest", "plan", "packing", "replay", "summer", "workspace")


class Arithmetic(Protocol):
    def digest(self, state: bytes | None, visit: Observation, prior_rate: float | None) -> bytes:
        """The state after a visit that worked. The first visit's items are the source's history.

        `prior_rate`: events per second to assume of a source whose first visit shows no history.
        """
        ...

    def plan(
        self, state: bytes | None, now: float, price_seconds: float, min_seconds: float
    ) -> Sequence[float]:
        """What the kernel says (`kernel.workspace.OUT_…`). Without a state, the prior alone decides."""
        ...


class Interpreted:
    """On lists."""

    def __init__(self) -> None:
        self._work = Workspace(make_list, make_list)
        self._lock = Lock()

    def digest(self, state: bytes | None, visit: Observation, prior_rate: float | None) -> bytes:
        vector = layout.unpack_state(state)
        first = vector is None or visit.at < vector[layout.LAST_AT]
        if vector is None or first:
            vector = [0.0] * layout.SIZE
            digest.begin(vector, visit.at)
            _assume(vector, self._work, summer, visit, prior_rate)
        times = sorted(visit.item_times)
        with self._lock:
            digest.digest_visit(vector, self._work, visit.at, times, visit.items_found, first, visit.overflow)
        return layout.pack_state(vector)

    def plan(
        self, state: bytes | None, now: float, price_seconds: float, min_seconds: float
    ) -> Sequence[float]:
        vector = layout.unpack_state(state)
        if vector is None:
            vector = [0.0] * layout.SIZE
            digest.begin(vector, now)
        work = self._work
        with self._lock:
            work.sums[:] = sum_day(vector)
            plan.plan_visit(vector, work, now, price_seconds, min_seconds)
            return list(work.out)


def _assume(
    vector: layout.Vector, work: Any, summer: Any, visit: Observation, prior_rate: float | None
) -> None:
    """Begin with what is likely of a source: the clock of its stated dates, the rate of its kind."""
    vector[layout.RULE] = summer.guess_rule(work, visit.hints.utc_offset_seconds or 0.0, visit.at)
    if prior_rate is not None and all(time >= visit.at for time in visit.item_times):
        vector[layout.PRIOR] = prior_rate


def sum_day(vector: list[float]) -> list[float]:
    """What `profile.sum_day` does, at the interpreter's full speed: every plan needs it."""
    day = vector[layout.DAY : layout.DAY + layout.DAY_BINS]
    bins = day[-MARGIN:] + day + day[: REACH - layout.DAY_BINS - MARGIN]
    return list(accumulate(accumulate(bins[:-1], initial=0.0), initial=0.0))


class Compiled:
    """On arrays, by machine code. A call keeps the interpreter's lock, so threads can share the workspace."""

    def __init__(self, modules: dict[str, Any]) -> None:
        self._digest, self._plan = modules["digest"], modules["plan"]
        self._packing, self._summer = modules["packing"], modules["summer"]
        self._work = modules["workspace"].Workspace(make_floats, make_ints)
        self._out = self._work.out = make_floats(OUT_SIZE)
        self._vector = make_floats(layout.SIZE)
        self._newest: bytes | None = (
            None  # the state that the vector holds: usually a plan follows its digest
        )

    def digest(self, state: bytes | None, visit: Observation, prior_rate: float | None) -> bytes:
        vector = self._vector
        first = not self._load(state) or visit.at < vector[layout.LAST_AT]
        self._newest = None
        if first:
            self._digest.begin(vector, visit.at)
            _assume(vector, self._work, self._summer, visit, prior_rate)
        times = array("d", sorted(visit.item_times))
        self._digest.digest_visit(
            vector, self._work, visit.at, times, visit.items_found, first, visit.overflow
        )
        body = bytearray(layout.PACKED_BYTES - layout.SCALARS_OFFSET)
        view = memoryview(body)
        split = layout.GRAINS_OFFSET - layout.SCALARS_OFFSET
        self._packing.store(vector, view[:split].cast("d"), view[split:].cast("H"))
        self._newest = packed = layout.add_header(body)
        return packed

    def plan(
        self, state: bytes | None, now: float, price_seconds: float, min_seconds: float
    ) -> Sequence[float]:
        if not self._load(state):
            self._digest.begin(self._vector, now)
        self._plan.plan_from_scratch(self._vector, self._work, now, price_seconds, min_seconds)
        return self._out.tolist()

    def _load(self, state: bytes | None) -> bool:
        if state is not None and state is self._newest:
            return True
        self._newest = None
        if state is None or not layout.is_state(state):
            return False
        view = memoryview(state)
        scalars = view[layout.SCALARS_OFFSET : layout.GRAINS_OFFSET].cast("d")
        self._packing.load(self._vector, scalars, view[layout.GRAINS_OFFSET :].cast("H"))
        self._newest = state
        return True


def make_list(size: int) -> list[Any]:
    return [0] * size


def make_vector(values: Sequence[float]) -> "array[float]":
    return array("d", values)


def make_floats(size: int) -> "array[float]":
    return array("d", bytes(8 * size))


def make_ints(size: int) -> "array[int]":
    return array("l", bytes(array("l").itemsize * size))


@cache
def load_native() -> dict[str, Any] | None:
    """The compiled modules by name; None if there are none, or if they were made of other sources."""
    if os.environ.get("HEADWATER_COMPILE") == "0":
        return None
    sources = b"".join(path.read_bytes() for path in sorted(Path(kernel.__path__[0]).glob("*.p*")))
    stamp = Path(__file__).with_name("native") / "built_from"
    if not stamp.exists() or stamp.read_text().strip() != str(crc32(sources)):
        return None
    try:
        return {name: import_module(f"headwater.schedule.native.{name}") for name in _MODULES}
    except ImportError:  # compiled for another Python
        return None


@cache
def current() -> Arithmetic:
    """The arithmetic to use."""
    modules = load_native()
    return Interpreted() if modules is None else Compiled(modules)
