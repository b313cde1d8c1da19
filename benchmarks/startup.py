"""How long the command takes to start, as a ratio to Python's own start: `python -m benchmarks.startup`."""

import subprocess
import sys
import time
from statistics import median

from benchmarks.verdict import Verdict

RUNS = 15
TARGET_SECONDS = 0.3

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "headwater --version": [sys.executable, "-m", "headwater", "--version"],
    "headwater --help": [sys.executable, "-m", "headwater", "--help"],
    "headwater config --json": [sys.executable, "-m", "headwater", "config", "--json"],
}


def seconds(command: list[str]) -> float:
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return median(times)


def main() -> int:
    measured = {name: seconds(command) for name, command in COMMANDS.items()}
    floor = measured["python -c pass"]
    for name, taken in measured.items():
        print(f"{name:28} {taken * 1000:7.0f} ms   {taken / floor:5.1f} x python's own start")
    verdict = Verdict("startup")
    verdict.tell(
        "headwater --version", measured["headwater --version"] * 1000, " ms", most=TARGET_SECONDS * 1000
    )
    verdict.tell("times Python's own start", measured["headwater --version"] / floor, "×")
    return verdict.exit_code()


if __name__ == "__main__":
    sys.exit(main())
