"""What the adaptive policy costs: bytes of state, microseconds per visit, milliseconds of import.

Run as `python -m benchmarks.schedule`. CPU time, so that a busy machine disturbs little.
"""

import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

from benchmarks.verdict import Verdict
from headwater.model import Observation
from headwater.schedule import arithmetic
from headwater.schedule.adaptive import AdaptivePolicy
from headwater.schedule.cadence import CadencePolicy
from headwater.schedule.policy import Policy

_DAY = 86400.0
_START = 1_700_000_000.0
MOST_MICROSECONDS = {"interpreted": 200, "compiled": 25}
MOST_STATE_BYTES = 1024
MOST_IMPORT_MS = 100


def make_history(kind: str, days: int = 120) -> list[float]:
    """A made-up source: busy and even, office hours, on the hour, or rare."""
    rng = Random(kind)
    times = []
    per_day = {"busy": 60, "office": 8, "hourly": 24, "rare": 0.1}[kind]
    at = _START
    while at < _START + days * _DAY:
        at += rng.expovariate(per_day * (3 if kind == "office" else 1) / _DAY)
        if kind == "hourly":
            at = at // 3600 * 3600 + 3600 + rng.uniform(0, 90)
        if kind == "office" and not 8 <= at % _DAY / 3600 < 16:
            continue
        times.append(at)
    return times


def measure(policy: Policy, times: list[float], visits: int = 1500) -> tuple[float, float, int]:
    """Microseconds per digest and per plan, and bytes of state, after some weeks of learning."""
    rng = Random(0)
    now = _START + 20 * _DAY
    seen = bisect_right(times, now)
    state = policy.digest(None, Observation(now, "new", tuple(times[:seen]), seen, first=True))
    digesting = planning = 0.0
    for _ in range(visits):
        begun = time.process_time()
        now = policy.plan(state, now, rng).next_at
        planning += time.process_time() - begun
        new = bisect_right(times, now)
        visit = Observation(now, "new" if new > seen else "unchanged", tuple(times[seen:new]))
        seen = new
        begun = time.process_time()
        state = policy.digest(state, visit)
        digesting += time.process_time() - begun
    return digesting / visits * 1e6, planning / visits * 1e6, len(state or b"")


def measure_import(modules: str) -> float:
    """Milliseconds that importing takes in a fresh interpreter, beyond starting it."""
    code = f"import time; begun = time.process_time(); import {modules}; print(time.process_time() - begun)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
        for _ in range(5)
    ]
    return min(runs) * 1000


@contextmanager
def use(kind: str) -> Iterator[None]:
    """Plan in the interpreter, or compiled."""
    native = arithmetic.load_native()
    chosen: arithmetic.Arithmetic = arithmetic.Interpreted()
    if kind == "compiled" and native is not None:
        chosen = arithmetic.Compiled(native)
    with patch.object(arithmetic, "current", lambda: chosen):
        yield


def main() -> int:
    verdict = Verdict("schedule")
    adaptive, cadence = AdaptivePolicy(), CadencePolicy()
    variants: list[tuple[str, Policy]] = [("interpreted", adaptive), ("compiled", adaptive), ("", cadence)]
    if arithmetic.load_native() is None:
        print("plans are not compiled here: this needs a C compiler when the package is built")
        del variants[1]
    slowest, largest_state = dict.fromkeys(("interpreted", "compiled", ""), 0.0), 0
    print(f"{'policy':<10}{'':<13}{'source':<9}{'digest µs':>10}{'plan µs':>10}{'both µs':>10}{'state B':>9}")
    for way, policy in variants:
        for kind in ("busy", "office", "hourly", "rare"):
            with use(way):
                digest, plan, size = measure(policy, make_history(kind))
            both = digest + plan
            print(f"{policy.name:<10}{way:<13}{kind:<9}{digest:>10.1f}{plan:>10.1f}{both:>10.1f}{size:>9}")
            slowest[way] = max(slowest[way], both)
            if policy is adaptive:
                largest_state = max(largest_state, size)
    for way, policy in variants:
        if policy is adaptive:
            what = f"adaptive, {way}: a visit learnt and the next planned"
            verdict.tell(what, slowest[way], " µs", most=MOST_MICROSECONDS[way])
    modules = ", ".join(f"headwater.schedule.{name}" for name in ("compose", "adaptive", "cadence", "price"))
    verdict.tell("adaptive: state of a source", largest_state, " B", most=MOST_STATE_BYTES)
    verdict.tell("import of all the collector needs", measure_import(modules), " ms", most=MOST_IMPORT_MS)
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())
