"""How much of each step type may run at once and start in a time, and the pools of slots that follow. Pure.

A number alone (`transcribe_content=1`) is how many of a type one worker runs at once. A rate (`analyze_content=30/min`)
is how many may start in that time on all workers together. A type may have both.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

_UNITS = {"s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True)
class StepLimits:
    at_once: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)  # seconds between two starts


def read_limits(entries: Iterable[str]) -> StepLimits:
    """Limits from the entries of the setting: `transcribe_content=1`, `analyze_content=30/min`."""
    at_once: dict[str, int] = {}
    rates: dict[str, float] = {}
    for entry in entries:
        name, _, limit = entry.partition("=")
        number, slash, unit = limit.partition("/")
        if slash:
            rates[name] = _UNITS[unit] / int(number)
        else:
            at_once[name] = int(number)
    return StepLimits(at_once, rates)


@dataclass(frozen=True, slots=True)
class Pool:
    """Slots for the steps of some types."""

    step_types: frozenset[str]
    slots: int


def make_pools(step_types: Collection[str], concurrency: int, limits: StepLimits) -> list[Pool]:
    """One pool for all types without their own limit, and one for each of the others."""
    limited = {name: most for name, most in limits.at_once.items() if name in step_types}
    free = frozenset(step_types) - limited.keys()
    pools = [Pool(free, concurrency)]
    return pools + [Pool(frozenset({name}), min(most, concurrency)) for name, most in sorted(limited.items())]
