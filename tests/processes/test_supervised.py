"""A program runs to its end under its supervisor, and ends with its caller."""

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from headwater.errors import StepError
from headwater.processes import supervised
from headwater.processes.supervised import SupervisedProcess, run_program
from tests.processes.test_pool import noted, until_gone

ENVIRONMENT = {"PATH": os.environ["PATH"]}


async def test_run_program_tells_status_output_and_errors(tmp_path: Path) -> None:
    script = (
        "import os, sys; print(os.getcwd()); print(sorted(os.environ)); sys.stderr.write('oh'); sys.exit(3)"
    )
    ended = await run_program(
        [sys.executable, "-I", "-c", script], environment={"ONLY": "this"}, directory=tmp_path
    )
    assert (ended.status, ended.errors) == (3, "oh")
    directory, names = ended.output.decode().splitlines()
    assert directory == str(tmp_path)
    assert "ONLY" in names and "HOME" not in names


async def test_run_program_that_is_not_there_says_so() -> None:
    ended = await run_program(["no-such-program-anywhere"], environment=ENVIRONMENT)
    assert (ended.status, ended.errors) == (127, "no-such-program-anywhere: No such file or directory\n")


async def test_run_program_killed_by_a_signal_ends_as_in_a_shell() -> None:
    ended = await run_program(["sh", "-c", "kill -9 $$"], environment=ENVIRONMENT)
    assert ended.status == 128 + 9


async def test_run_program_that_never_stops_talking_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "MOST_BYTES", 100_000)
    with pytest.raises(StepError, match="wrote more than"):
        await run_program(["yes"], environment=ENVIRONMENT)


async def test_cancelled_program_is_killed_with_what_it_started(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = f"setsid sleep 600 & echo $$ $! > {note}; wait"
    running = asyncio.create_task(run_program(["sh", "-c", script], environment=ENVIRONMENT))
    pids = await noted(note)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until_gone(pids)


def test_end_of_a_process_that_has_ended_is_nothing() -> None:
    process = SupervisedProcess(["true"])
    assert process.wait() == 0
    process.end()
    process.end()
    assert process.status() == 0


def test_process_has_no_descriptors_of_ours() -> None:
    before = psutil.Process().num_fds()
    for _ in range(5):
        process = SupervisedProcess(["true"])
        process.wait()
        process.end()
    assert psutil.Process().num_fds() == before
