"""The table of all benchmarks: every one takes part, and a target that is missed is an exit status."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.__main__ import QUICK, find_benchmarks, print_table
from benchmarks.verdict import Line, Verdict

ROOT = Path(__file__).resolve().parent.parent


def test_every_benchmark_takes_part_in_the_table() -> None:
    names = find_benchmarks()
    assert {"engine", "fetch", "parse", "pipeline", "schedule", "sitemap", "startup", "storage"} <= set(names)
    assert set(QUICK) <= set(names)
    for name in names:
        path = ROOT / "benchmarks" / name
        source = (path / "__main__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
        assert f'Verdict("{name}")' in source, f"benchmarks/{name} tells no figure under its own name"


def test_one_table_of_figures_and_targets() -> None:
    """One that takes a second; the others are too long for the suite."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--only", "schedule"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    table = done.stdout[done.stdout.index("\nbenchmark") :]
    assert re.search(
        r"^schedule +adaptive: state of a source +\d+ B +at most 1024 B +met$", table, re.MULTILINE
    )
    assert re.search(r"\d of [34] targets met", table)
    assert done.returncode == int("MISSED" in table), done.stdout


def test_a_missed_target_is_told_and_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEADWATER_TEST_BENCH_RESULTS", str(tmp_path / "lines"))
    verdict = Verdict("one")
    verdict.tell("ratio", 3.0, "×", most=2.5)
    verdict.tell("other ratio", 3.0, "×", least=2.5)
    verdict.tell("no target", 3.0, "×")
    assert (verdict.missed, verdict.exit_code()) == (1, 1)
    assert [("MISSED" in line, "met" in line) for line in capsys.readouterr().out.splitlines()[:3]] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert (tmp_path / "lines").read_bytes().count(b"\n") == 3
    print_table([Line("one", "ratio", 3.0, "×", "at most 2.5×", False)])
    assert "0 of 1 targets met" in capsys.readouterr().out
