"""Every benchmark, one after the other, and one table of all their figures and targets: `make bench`.

Each compares with a peer or a floor of the same run, so read its ratios. `--quick` takes small sizes: good to see that
everything runs, not to judge by. Exit status 1 when a target is missed or a benchmark breaks down.
"""

import argparse
import os
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson

import benchmarks
from benchmarks.verdict import TELL_TO, Line

_NO_BENCHMARKS = ("__main__", "verdict")
QUICK: dict[str, tuple[str, ...]] = {
    "browser": ("--scale", "0.001", "--rounds", "1", "--articles", "20"),
    "engine": (
        *("--sources", "100", "--reader-sources", "10", "--rounds", "1", "--few", "1000", "--many", "20000"),
        *("--claims", "1", "--fleet", "2000", "--fleet-visits", "300", "--crowd", "500"),
    ),
    "fetch": ("--requests", "200", "--rounds", "3", "--bomb-megabytes", "64"),
    "freshness": ("--sources", "2", "--minutes", "60", "--days", "12"),
    "misbehaving": ("--requests", "2000"),
    "moving": ("10000",),
    "pipeline": ("--runs", "30", "--rounds", "1"),
    "reading": ("--sources", "2000", "--items", "40000", "--users", "20"),
    "storage": ("--sources", "100", "--rounds", "3"),
}


def find_benchmarks() -> list[str]:
    """All there are: a module here is one unless it says otherwise above."""
    return sorted(
        module.name
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if module.name not in _NO_BENCHMARKS
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--quick", action="store_true", help="small sizes")
    arguments.add_argument("--only", nargs="+", choices=find_benchmarks(), metavar="NAME")
    options = arguments.parse_args()
    broken = []
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory) / "results"
        results.touch()
        for name in options.only or find_benchmarks():
            print(f"\n== {name}", flush=True)
            told = results.stat().st_size
            more = QUICK.get(name, ()) if options.quick else ()
            done = subprocess.run(
                [sys.executable, "-m", f"benchmarks.{name}", *more],
                check=False,
                env=os.environ | {TELL_TO: str(results)},
            )
            if done.returncode and (done.returncode != 1 or results.stat().st_size == told):
                broken.append(name)
        lines = [Line(**orjson.loads(line)) for line in results.read_bytes().splitlines()]
    print_table(lines)
    for name in broken:
        print(f"{name} broke down")
    return int(bool(broken) or any(not line.met for line in lines))


def print_table(lines: list[Line]) -> None:
    print(f"\n{'benchmark':11}{'what':60}{'figure':>12}  {'target':20}")
    for line in lines:
        word = ("met" if line.met else "MISSED") if line.target else ""
        figure = f"{line.figure:.4g}{line.unit}"
        print(f"{line.benchmark:11}{line.what:60}{figure:>12}  {line.target:20}{word}".rstrip())
    judged = [line for line in lines if line.target]
    print(f"{sum(line.met for line in judged)} of {len(judged)} targets met")


if __name__ == "__main__":
    sys.exit(main())
