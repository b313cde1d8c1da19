"""A heavy step that ignores everything is stopped at its timeout, its children too, and the worker goes on."""

import asyncio
import time
from pathlib import Path

import psutil
import pytest

from headwater.pipeline import advance as advance_module
from headwater.pipeline.worker import Worker
from headwater.store.core.database import Store
from headwater.store.pipelines.starting import cancel
from tests.pipeline.making import make_runs, make_settings, read_run, step, until, until_ended, working

pytestmark = pytest.mark.usefixtures("step_plugin")
NAMES = ("step", "child", "orphan")


def processes(directory: Path) -> list[int]:
    return [int((directory / name).read_text()) for name in NAMES]


def all_gone(pids: list[int]) -> bool:
    return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)


async def test_a_step_that_ignores_everything_is_stopped_with_its_children(
    store: Store, tmp_path: Path
) -> None:
    directory = tmp_path / "pids"
    directory.mkdir()
    [run_id] = make_runs(
        store, 1, step("stubborn_test", pids=str(directory), timeout=5, critical=False), step("note_test")
    )
    async with working(Worker(store, make_settings(tmp_path), None)):
        [run] = await until_ended(store, run_id)
    assert run.status == "completed"
    assert run.steps[0].error_message == "it did not end within 5 s"
    assert [each.status for each in run.steps] == ["skipped", "completed"], "the worker goes on"
    assert all_gone(processes(directory))


async def test_what_it_says_is_cut_off_while_it_is_read(store: Store, tmp_path: Path) -> None:
    [run_id] = make_runs(store, 1, step("talk_test", letters=100_000_000))
    async with working(Worker(store, make_settings(tmp_path), None)):
        [run] = await until_ended(store, run_id)
    assert run.steps[0].error_message == "its output is larger than 16 MB"


async def test_cancelling_kills_it_at_once(store: Store, tmp_path: Path) -> None:
    directory = tmp_path / "pids"
    directory.mkdir()
    [run_id] = make_runs(store, 1, step("stubborn_test", pids=str(directory)))
    async with working(Worker(store, make_settings(tmp_path), None)):
        await until((directory / "step").exists)
        with store.writing() as connection:
            cancel(connection, run_id, time.time())
        [run] = await until_ended(store, run_id, seconds=15)
    assert run.status == "skipped"
    assert all_gone(processes(directory))


async def test_a_stubborn_coroutine_is_left_behind(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.plugin_steps import Note

    monkeypatch.setattr(advance_module, "STUBBORN_SECONDS", 0.1)
    over = asyncio.Event()

    async def stubborn(self: Note, context: object, config: object) -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    monkeypatch.setattr(Note, "run", stubborn)
    [run_id] = make_runs(store, 1, step("note_test", timeout=0.1))
    async with working(Worker(store, make_settings(tmp_path), None)):
        await until(lambda: read_run(store, run_id).status == "failed")
    over.set()
    await asyncio.sleep(0.01)
