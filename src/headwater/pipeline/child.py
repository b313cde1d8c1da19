"""Heavy steps in processes of their own, which are killed with all their children when their time is over.

    worker ── pipe ── keeper ── fork ── the step's `work` ── whatever it starts

The keeper adopts what its descendants leave behind (Linux: child subreaper), so that nothing gets away from it by
starting a session of its own. It kills them all when the work has ended, when the worker asks for it by closing the
pipe, and when the worker dies, which closes the pipe too. Run as `python -m headwater.pipeline.child`.
"""

import asyncio
import contextlib
import os
import select
import signal
import struct
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.pipeline.steps.base import HeavyStep, StepContext, StepResult

_LENGTH = struct.Struct(">Q")
_SET_CHILD_SUBREAPER = 36
_PIECE_BYTES = 65_536  # also enough for what is around an output
KEEPER_SECONDS = 3.0  # for the keeper to end the others; after that it is killed as well


async def work_in_child_process(
    step: "HeavyStep", context: "StepContext", config: dict[str, Any]
) -> "StepResult":
    """What `step.work` answers in a process of its own. Cancelled, it leaves no process behind."""
    import orjson

    task = orjson.dumps(
        {
            "step_type": step.step_type,
            "config": config,
            "content_item": context.content_item,
            "previous_steps": context.previous_steps,
            "runtime_config": context.runtime_config,
            "idempotency_key": context.idempotency_key,
            "files": str(context.files),
        }
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # signals of a terminal are for the worker
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: S101 - asked for above
    try:
        # Its end may come before it has read everything: then its silence is what counts.
        with contextlib.suppress(ConnectionError):
            process.stdin.write(_LENGTH.pack(len(task)) + task)
            await process.stdin.drain()
        answer = await _read_all(process.stdout)
        status = await process.wait()
    finally:
        await asyncio.shield(_end(process))
    return _read_answer(answer, status)


async def _read_all(answers: asyncio.StreamReader) -> bytes:
    """All that comes; an error as soon as it is more than an output may be, for it may never end."""
    from headwater.pipeline.steps.base import MOST_OUTPUT_BYTES, too_large

    found = bytearray()
    while part := await answers.read(_PIECE_BYTES):
        found += part
        if len(found) > MOST_OUTPUT_BYTES + _PIECE_BYTES:
            raise too_large()
    return bytes(found)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(KEEPER_SECONDS):
            await _wait(process)
    except TimeoutError:
        kill_descendants(process.pid)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await _wait(process)


async def _wait(process: asyncio.subprocess.Process) -> None:
    """Until it has ended. What it has said and nobody wanted to hear is read, or its pipe would stay open."""
    while process.stdout is not None and await process.stdout.read(_PIECE_BYTES):
        pass
    await process.wait()


def _read_answer(answer: bytes, status: int) -> "StepResult":
    import orjson

    from headwater.pipeline.steps.base import PassingStepError, StepError, StepResult

    try:
        told = orjson.loads(answer)
    except orjson.JSONDecodeError:
        raise PassingStepError(
            "the process that ran it died ({status}); it may have used too much memory", status=_named(status)
        ) from None
    if "output" in told:
        return StepResult(told["output"], end_run=told["end_run"], outlet=told["outlet"])
    raise (PassingStepError if told["passing"] else StepError)("{problem}", problem=told["problem"])


def _named(status: int) -> str:
    number = -status if status < 0 else status - 128
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"status {status}"


def main() -> None:
    """The keeper: start the work, and let nothing outlive it."""
    adopt_orphans()
    size = _LENGTH.unpack(_read_exactly(_LENGTH.size))[0]
    task = _read_exactly(size)
    worker = os.fork()
    if worker == 0:
        _work(task)
    # What it answers goes through its own copy of the pipe; ours must not hold it open.
    os.close(1)
    status = _watch(worker)
    kill_descendants(os.getpid())
    code = 1 if status is None else os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)  # as shells tell of a signal


def _watch(worker: int) -> int | None:
    """Until the work ends (its status) or the pipe is closed (None). Reaps what is adopted meanwhile."""
    pidfd = os.pidfd_open(worker) if hasattr(os, "pidfd_open") else None
    while True:
        watched = [0] if pidfd is None else [0, pidfd]
        ready, _, _ = select.select(watched, [], [], 0.2 if pidfd is None else 1.0)
        if 0 in ready and not os.read(0, 4096):
            return None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == worker:
                return status
            if pid == 0:
                break


def kill_descendants(pid: int) -> None:
    """Kill every descendant of a process, until none is left. Its children reappear under it as they are orphaned."""
    deadline = time.monotonic() + KEEPER_SECONDS
    while (descendants := _descendants(pid)) and time.monotonic() < deadline:
        for each in descendants:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.getpid() == pid and os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)


def _descendants(pid: int) -> list[int]:
    if sys.platform != "linux":
        return _same_group(pid)
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The second field is a name in brackets and may hold anything.
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    children.setdefault(int(parent), []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        waiting.extend(new := children.get(waiting.pop(), []))
        found.extend(new)
    return found


def _same_group(pid: int) -> list[int]:
    """Where there is no /proc: the process group is all that can be known."""
    with contextlib.suppress(OSError):
        if os.getpid() == pid:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(pid, signal.SIGTERM)
    return []


def adopt_orphans() -> None:
    """Be the parent of what descendants leave behind (Linux), and leave the terminal's Ctrl-C to the worker."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read_exactly(size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = os.read(0, size - len(found))
        if not part:
            os._exit(1)  # the worker has gone
        found += part
    return found


def _work(data: bytes) -> None:
    """In the forked process: do the step's work and write its answer. Never returns."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    try:
        answer = _answer(data)
        view = memoryview(answer)
        while view:
            view = view[os.write(answers, view) :]
        sys.stdout.flush()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the process ends here, whatever happens
        traceback.print_exc()
    finally:
        os._exit(1)


def _answer(data: bytes) -> bytes:
    import orjson

    from headwater.errors import HeadwaterError
    from headwater.pipeline.registry import find_step
    from headwater.pipeline.steps.base import HeavyStep, StepContext, StepError

    task = orjson.loads(data)
    try:
        step = find_step(task["step_type"])
        assert isinstance(step, HeavyStep)  # noqa: S101 - or nobody would have started us
        files = Path(task["files"])
        context = StepContext(
            content_item=task["content_item"],
            previous_steps=task["previous_steps"],
            runtime_config=task["runtime_config"],
            idempotency_key=task["idempotency_key"],
            files=files,
        )
        result = step.work(context, step.config_model.model_validate(task["config"]))
        return orjson.dumps({"output": result.output, "end_run": result.end_run, "outlet": result.outlet})
    except StepError as error:
        return orjson.dumps({"problem": str(error), "passing": error.passing})
    except HeadwaterError as error:
        return orjson.dumps({"problem": str(error), "passing": False})
    except Exception as error:  # noqa: BLE001 - the worker tells it
        traceback.print_exc()
        problem = f"unexpected {type(error).__name__}: {' '.join(str(error).split())[:1000]}"
        return orjson.dumps({"problem": problem, "passing": False})


if __name__ == "__main__":
    main()
