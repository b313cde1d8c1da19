"""Targets: each benchmark says what it measured and what it should be, for people and for the table of all."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

TELL_TO = "HEADWATER_TEST_BENCH_RESULTS"  # a file that collects the lines of all benchmarks


@dataclass(frozen=True, slots=True)
class Line:
    benchmark: str
    what: str
    figure: float
    unit: str
    target: str
    met: bool


class Verdict:
    """Counts the targets that were missed while telling them all."""

    def __init__(self, benchmark: str = "") -> None:
        self.missed = 0
        self._benchmark = benchmark

    def tell(
        self, what: str, figure: float, unit: str, *, most: float | None = None, least: float | None = None
    ) -> None:
        """Say a figure and whether it is what it should be; without a bound it is only told."""
        target = ""
        if most is not None:
            target = f"at most {most:g}{unit}"
        elif least is not None:
            target = f"at least {least:g}{unit}"
        met = (most is None or figure <= most) and (least is None or figure >= least)
        self.missed += not met
        word = ("met" if met else "MISSED") if target else ""
        print(f"  {what:58}{figure:8.2f}{unit:3}  {target:16} {word}".rstrip(), flush=True)
        if path := os.environ.get(TELL_TO):
            line = Line(self._benchmark, what, figure, unit, target, met)
            with Path(path).open("ab") as file:
                file.write(orjson.dumps(asdict(line)) + b"\n")

    def exit_code(self) -> int:
        print("every target met" if not self.missed else f"{self.missed} targets MISSED")
        return int(self.missed > 0)
