"""The replay's loops: compiled with the kernel where that is possible, else as they are."""

from typing import Any

from headwater.schedule.compiled import compile_kernel, is_compiled
from headwater.simulate import replay


def load_functions() -> Any:
    """A module with the kernel's and the replay's functions."""
    return compile_kernel(replay, name="replay", shares_interpreter=True) if is_compiled() else replay
