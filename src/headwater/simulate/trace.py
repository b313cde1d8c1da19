"""Traces: when sources published, and the window of time in which a policy is judged on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

from headwater.errors import InputError


@dataclass(frozen=True, slots=True)
class SourceTrace:
    """One source: ascending publication times; those up to `start` are what a first visit can see."""

    name: str
    times: tuple[float, ...]
    start: float
    end: float

    @property
    def days(self) -> float:
        return (self.end - self.start) / 86400.0


Trace = tuple[SourceTrace, ...]


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
            "{path} is no trace file ({error}): it must be an .npz with times, offsets, t0 and t1",
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
