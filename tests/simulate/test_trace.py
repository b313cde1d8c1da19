"""Reading traces and making them from one's own history."""

from pathlib import Path

import numpy as np
import pytest

from headwater.errors import InputError
from headwater.simulate.trace import load_trace, trace_from_history
from tests.histories import DAY, MONDAY


def test_a_trace_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.npz"
    times = np.array([30, 10, 20, 5], dtype=np.int64)
    np.savez(path, times=times, offsets=[0, 3, 4], t0=[15, 1], t1=[40, 9], kind=["blog", "news"])
    first, second = load_trace(path)
    assert (first.times, first.start, first.end) == ((10.0, 20.0, 30.0), 15.0, 40.0)
    assert (second.name, second.times) == ("news 1", (5.0,))


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04broken"])
def test_what_is_no_trace_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a trace file"):
        load_trace(path)
    with pytest.raises(InputError, match="is not a trace file"):
        load_trace(tmp_path / "missing.npz")


def test_own_history_becomes_a_trace() -> None:
    trace = trace_from_history({"a": [MONDAY, MONDAY + 10 * DAY], "b": [], "c": [MONDAY + 5 * DAY]})
    assert [source.name for source in trace] == ["a", "c"]
    assert trace[0].start == MONDAY + DAY
    assert {source.end for source in trace} == {MONDAY + 10 * DAY}
    with pytest.raises(InputError, match="no history"):
        trace_from_history({"a": []})
