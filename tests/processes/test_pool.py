"""Children do one module's work, are replaced in time, and die when they are given up or left alone."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from headwater.errors import PassingStepError, StepError
from headwater.processes.pool import MOST_OUTPUT_BYTES, ChildPool


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """What the children of these tests do."""
    print("noise on the standard output")
    match task["do"]:
        case "who":
            return {"pid": os.getpid()}
        case "fail":
            raise PassingStepError("try {what} again", what="it")
        case "break":
            raise KeyError("nothing")
        case "die":
            os._exit(7)
        case "talk":
            return {"text": "x" * task["bytes"]}
        case "hang":
            child = subprocess.Popen(["sleep", "600"])
            Path(task["note"]).write_text(f"{os.getpid()} {child.pid}")
            time.sleep(600)
        case "scatter":  # a grandchild with its own session, whose parent has gone
            start = "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=2).pid)"
            orphan = subprocess.check_output([sys.executable, "-c", start], text=True)
            Path(task["note"]).write_text(f"{os.getpid()} {orphan}")
            time.sleep(600)
    return {}


def pool(tasks: int = 100) -> ChildPool:
    return ChildPool(__name__, tasks_per_child=tasks)


async def test_a_child_is_kept_and_replaced() -> None:
    children = pool(tasks=2)
    first, second, third = [(await children.call({"do": "who"}))["pid"] for _ in range(3)]
    assert first == second != third
    children.close()
    assert not psutil.pid_exists(third)


async def test_an_answer_is_cut_off_while_it_is_read() -> None:
    children = pool()
    assert len((await children.call({"do": "talk", "bytes": MOST_OUTPUT_BYTES}))["text"]) == MOST_OUTPUT_BYTES
    with pytest.raises(StepError, match="larger than 16 MB"):
        await children.call({"do": "talk", "bytes": 2 * MOST_OUTPUT_BYTES})
    assert (await children.call({"do": "who"}))["pid"]
    children.close()


async def test_errors_come_back_as_what_they_are() -> None:
    children = pool()
    with pytest.raises(PassingStepError, match="try it again"):
        await children.call({"do": "fail"})
    with pytest.raises(StepError, match="KeyError") as caught:
        await children.call({"do": "break"})
    assert not caught.value.passing
    with pytest.raises(PassingStepError, match="died"):
        await children.call({"do": "die"})
    assert (await children.call({"do": "who"}))["pid"]
    children.close()


async def noted(note: Path) -> list[int]:
    while not (note.exists() and len(note.read_text().split()) == 2):
        await asyncio.sleep(0.01)
    return [int(pid) for pid in note.read_text().split()]


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def until_gone(pids: list[int]) -> None:
    async with asyncio.timeout(10):
        while not all(gone(pid) for pid in pids):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("work", ["hang", "scatter"])
async def test_giving_up_kills_the_child_and_its_children(tmp_path: Path, work: str) -> None:
    children = pool()
    call = asyncio.create_task(children.call({"do": work, "note": str(tmp_path / "note")}))
    pids = await noted(tmp_path / "note")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until_gone(pids)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can do this")
@pytest.mark.parametrize("work", ["hang", "scatter"])
async def test_child_and_its_children_end_with_the_worker(tmp_path: Path, work: str) -> None:
    note = tmp_path / "note"
    script = (
        "import asyncio\n"
        "from headwater.processes.pool import ChildPool\n"
        f"pool = ChildPool({__name__!r}, tasks_per_child=1)\n"
        f"asyncio.run(pool.call({{'do': {work!r}, 'note': {str(note)!r}}}))\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    pids = await noted(note)
    worker.kill()
    worker.wait()
    await until_gone(pids)
