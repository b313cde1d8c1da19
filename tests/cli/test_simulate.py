"""The commands simulate, tune and explain, on a small trace file."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from headwater.cli.simulate import register
from headwater.model import Plan
from tests.histories import DAY, MONDAY
from tests.simulate.test_engine import make_trace


def histories() -> Mapping[str, Sequence[float]]:
    return {source.name: source.times for source in make_trace(30)}


def find_plan(source: str) -> tuple[Plan, bytes | None]:
    return Plan(MONDAY, {"policy": "interval", "interval": 3600.0, "source": source}), None


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    register(made, histories, find_plan)
    return made


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    trace = make_trace(30)
    path = tmp_path / "trace.npz"
    times = np.concatenate([source.times for source in trace])
    offsets = np.cumsum([0, *[len(source.times) for source in trace]])
    start, end = MONDAY + 20 * DAY, MONDAY + 30 * DAY
    np.savez(path, times=times, offsets=offsets, t0=[start] * len(trace), t1=[end] * len(trace))
    return path


def test_simulate_prints_a_table_json_and_a_picture(
    app: typer.Typer, trace_file: Path, tmp_path: Path
) -> None:
    run = CliRunner().invoke
    plot = tmp_path / "plot.svg"
    common = ["simulate", "--traces", str(trace_file), "--policies", "fixed,adaptive", "--budget", "12,4"]
    result = run(app, [*common, "--plot", str(plot)])
    assert result.exit_code == 0, result.output
    assert "adaptive" in result.output and "p95" in result.output
    assert plot.read_text(encoding="utf-8").startswith("<svg")
    rows = json.loads(run(app, [*common, "--json"]).stdout)
    assert [(row["policy"], row["budget"]) for row in rows] == [
        ("fixed", 12),
        ("fixed", 4),
        ("adaptive", 12),
        ("adaptive", 4),
    ]


def test_simulate_takes_own_history_and_own_budgets(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["simulate", "--policies", "cadence", "--budget", "own", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[0]["budget"] is None


def test_tune_proposes_a_budget(app: typer.Typer, trace_file: Path) -> None:
    result = CliRunner().invoke(app, ["tune", "--traces", str(trace_file), "--delay", "30"])
    assert result.exit_code == 0, result.output
    assert "set the budget to" in result.output


def test_mistakes_are_named(app: typer.Typer, trace_file: Path) -> None:
    run = CliRunner().invoke
    for arguments, message in (
        (["simulate", "--budget", "lots"], "is no budget"),
        (["simulate", "--traces", "/nowhere.npz"], "is no trace file"),
        (["simulate", "--policies", "magic"], "there is no policy magic"),
        (["tune"], "give either"),
    ):
        result = run(app, arguments)
        assert result.exit_code == 2, result.output
        assert message in result.output


def test_explain(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["explain", "7"])
    assert result.output.startswith("fixed interval of 60 min; next visit")
    assert json.loads(CliRunner().invoke(app, ["explain", "7", "--json"]).stdout)["reason"]["source"] == "7"
