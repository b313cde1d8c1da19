"""One source under the adaptive policy, visit by visit, with the arithmetic that production uses."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from typing import Any
from zlib import crc32

from headwater.schedule import arithmetic, layout
from headwater.schedule.kernel import replay
from headwater.schedule.kernel.ladder import find_usual_rate
from headwater.schedule.kernel.workspace import Workspace
from headwater.simulate.results import SourceResult
from headwater.simulate.trace import Conditions, SourceTrace


class Running:
    """A source from its start on. The first visit is not counted."""

    def __init__(self, source: SourceTrace, conditions: Conditions) -> None:
        machine = _load_machine()
        self._machine = machine
        self._source = source
        self._state = machine.make_floats(layout.SIZE)
        self._times = machine.make_vector(source.times)
        self._stated = machine.make_vector(source.stated or source.times)
        first = bisect_right(source.times, source.start)
        self._delays = machine.make_floats(max(len(source.times) - first, 1))
        self._cursor = cursor = machine.make_floats(replay.CURSOR_SIZE)
        cursor[replay.WINDOW] = conditions.window
        cursor[replay.SHORTEST] = conditions.min_interval_seconds
        cursor[replay.LONGEST] = conditions.max_interval_seconds
        cursor[replay.DORMANT] = conditions.dormant_seconds
        cursor[replay.SEED] = 1.0 + crc32(source.name.encode()) % 2147483646
        cursor[replay.FIRST] = cursor[replay.POSITION] = first
        cursor[replay.NEXT_AT] = self._next_at = source.start
        self.usual_rate = 0.0

    def advance(self, until: float, price_seconds: float) -> int:
        """Make every visit that is due up to a time, but not after the source's end. Returns how many."""
        if self._next_at > until:
            return 0
        before = self.visits
        self._machine.advance(
            self._state,
            self._machine.work,
            self._cursor,
            self._times,
            self._stated,
            self._delays,
            min(until, self._source.end),
            price_seconds,
        )
        self._next_at = self._cursor[replay.NEXT_AT]
        self.usual_rate = find_usual_rate(self._state)
        return self.visits - before

    @property
    def visits(self) -> int:
        return int(self._cursor[replay.VISITS])

    @property
    def found(self) -> int:
        """Number of items found since the first visit."""
        return int(self._cursor[replay.POSITION] - self._cursor[replay.FIRST])

    def delays(self, since: int = 0) -> Sequence[float]:
        """The delays of the items found, from a number on."""
        return list(self._delays[since : self.found])

    def counts(self) -> tuple[int, int, int, int]:
        """Visits, useless visits, missed items and found items so far."""
        cursor = self._cursor
        return self.visits, int(cursor[replay.USELESS]), int(cursor[replay.MISSED]), self.found

    def result(self) -> SourceResult:
        return SourceResult(self._source.days, *self.counts()[:3], self.delays())


class Pinned:
    """One source at its fixed interval, which no price changes."""

    def __init__(self, source: SourceTrace, conditions: Conditions) -> None:
        self._source, self._window = source, conditions.window
        self._first = self._position = bisect_right(source.times, source.start)
        self._next_at = source.start + (source.pinned_seconds or 0.0)
        self._delays: list[float] = []
        self.visits = self._useless = self._missed = 0

    def advance(self, until: float, price_seconds: float) -> int:
        before = self.visits
        while self._next_at <= min(until, self._source.end):
            new = bisect_right(self._source.times, self._next_at, self._position)
            self._delays += [self._next_at - time for time in self._source.times[self._position : new]]
            self.visits += 1
            self._useless += new == self._position
            self._missed += max(0, new - self._window - self._position)
            self._position = new
            self._next_at += self._source.pinned_seconds or 0.0
        return self.visits - before

    @property
    def found(self) -> int:
        return self._position - self._first

    def delays(self, since: int = 0) -> Sequence[float]:
        return self._delays[since:]

    def counts(self) -> tuple[int, int, int, int]:
        return self.visits, self._useless, self._missed, self.found


class _Machine:
    """Where replays run: compiled on arrays, or in the interpreter on lists."""

    def __init__(self) -> None:
        native = arithmetic.load_native()
        self.advance: Any = replay.advance
        self.make_floats: Any = arithmetic.make_list
        self.make_vector: Any = list
        self.work: Any = Workspace(arithmetic.make_list, arithmetic.make_list)
        if native is not None:
            self.advance = native["replay"].advance
            self.make_floats = arithmetic.make_floats
            self.make_vector = arithmetic.make_vector
            self.work = native["workspace"].Workspace(arithmetic.make_floats, arithmetic.make_ints)


@cache
def _load_machine() -> _Machine:
    return _Machine()
