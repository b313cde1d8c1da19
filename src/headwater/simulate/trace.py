"""Traces: when sources published, and the span of time in which a policy is judged on them."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path
from zipfile import BadZipFile

from headwater.errors import InputError

FEWEST_DAYS = 7.0
FEWEST_ITEMS = 20


@dataclass(frozen=True, slots=True)
class SourceTrace:
    """One source: the times at which its items appear, ascending. Those up to `start` are what a first visit sees.

    `stated` are the items' dates, if they differ from those times; infinity is a missing date. A pinned source is
    visited at that interval, whatever the policy.
    """

    name: str
    times: tuple[float, ...]
    start: float
    end: float
    stated: tuple[float, ...] | None = None
    pinned_seconds: float | None = None

    @property
    def days(self) -> float:
        return (self.end - self.start) / 86400.0


Trace = tuple[SourceTrace, ...]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for every policy in a comparison. The defaults are production's."""

    window: int = 20  # number of items a source shows at once
    min_interval_seconds: float = 300.0
    max_interval_seconds: float = 86400.0
    dormant_seconds: float = 0.0  # longest wait for a source that has been silent for long


@dataclass(frozen=True, slots=True)
class Evidence:
    """How much history there is to judge by: what appeared after the first visits."""

    sources: int
    items: int
    days: float  # that most sources were watched

    @property
    def is_enough(self) -> bool:
        """Whether policies can be told apart: they think in days and weeks, and one item proves nothing."""
        return self.days >= FEWEST_DAYS and self.items >= FEWEST_ITEMS


def weigh_evidence(trace: Trace) -> Evidence:
    days = sorted(source.days for source in trace)
    items = sum(len(source.times) - bisect_right(source.times, source.start) for source in trace)
    return Evidence(len(trace), items, days[len(days) // 2] if days else 0.0)


def load_trace(path: Path) -> Trace:
    """A trace file: NumPy's .npz with `times`, `offsets`, `t0` and `t1`, one offset more than sources."""
    import numpy as np

    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            times, offsets = data["times"].astype(float), data["offsets"]
            starts, ends = data["t0"].astype(float), data["t1"].astype(float)
            kinds = data["kind"] if "kind" in data else ["source"] * len(starts)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise InputError(
            "{path} is not a trace file ({error}): it must be an .npz with times, offsets, t0 and t1",
            path=str(path),
            error=str(error),
        ) from error
    return tuple(
        SourceTrace(
            f"{kinds[index]} {index}",
            tuple(sorted(times[offsets[index] : offsets[index + 1]].tolist())),
            float(starts[index]),
            float(ends[index]),
        )
        for index in range(len(starts))
    )


def trace_from_history(
    histories: Mapping[str, Sequence[float]], *, warm_share: float = 0.1, until: float | None = None
) -> Trace:
    """A trace from publication times by source: what the first tenth of the time shows is known at first."""
    filled = {name: sorted(times) for name, times in histories.items() if len(times) > 0}
    if not filled:
        raise InputError("there is no history to replay yet: collect for a few days, or give a trace file")
    end = max(times[-1] for times in filled.values()) if until is None else until
    begin = min(times[0] for times in filled.values())
    traces = []
    for name, times in filled.items():
        start = max(begin, times[0]) + warm_share * (end - max(begin, times[0]))
        if end > start:
            traces.append(SourceTrace(name, tuple(times), start, end))
    return tuple(traces)


def falsify_dates(trace: Trace, dates: str) -> Trace:
    """The same items with other dates: "none", "day" for whole days, or so many hours ahead of the true ones."""
    if dates == "true":
        return trace
    state: Callable[[float], float]
    if dates == "none":
        state = lambda time: inf  # noqa: E731
    elif dates == "day":
        state = lambda time: time // 86400.0 * 86400.0  # noqa: E731
    else:
        ahead = 3600.0 * _read_hours(dates)
        state = lambda time: time + ahead  # noqa: E731
    return tuple(replace(source, stated=tuple(map(state, source.times))) for source in trace)


def _read_hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = inf
    if not isfinite(hours):
        raise InputError("dates cannot be {dates}: use true, none, day, or hours such as -5", dates=text)
    return hours
