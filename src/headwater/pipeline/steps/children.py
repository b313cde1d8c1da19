"""Work in child processes: for libraries that block, leak or may not be trusted to stop.

A child is this very interpreter running one module's `work_in_child`, fed one JSON line a task. It is kept for the
next task and replaced after some, so that what its libraries hoard is given back. A task that is given up (its step
was cancelled, its time is over) is ended by killing the child with all of its own children. A child ends with the
worker that started it, however that one ends.
"""

import asyncio
import atexit
import contextlib
import importlib
import os
import signal
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

import orjson

from headwater.pipeline.child import adopt_orphans, kill_descendants
from headwater.pipeline.steps.base import MOST_OUTPUT_BYTES, PassingStepError, StepError, too_large

_AROUND_BYTES = 65_536  # of an answer, beside the output
_MOST_AT_ONCE = 64  # threads that wait for children; the engine's own limits are far lower


class ChildPool:
    """Children that all run one module. Safe to use from any event loop."""

    def __init__(self, module: str, *, tasks_per_child: int, most_idle: int = 2) -> None:
        self._module = module
        self._tasks_per_child = tasks_per_child
        self._most_idle = most_idle
        self._idle: list[_Child] = []
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    async def call(self, task: dict[str, Any]) -> dict[str, Any]:
        """What the module's `work_in_child` answers to the task; its StepError when it raises one."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="headwater-child")
            atexit.register(self.close)
        child = self._take()
        line = orjson.dumps(task) + b"\n"
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, child.exchange, line)
        except BaseException:
            child.kill()
            raise
        if answer is None:
            child.kill()
            raise self._died(child)
        if not answer.endswith(b"\n"):  # there is more of it, or it died in the midst of it
            child.kill()
            raise too_large() if len(answer) > MOST_OUTPUT_BYTES else self._died(child)
        self._give(child)
        return _read_answer(answer)

    def _died(self, child: "_Child") -> StepError:
        return PassingStepError(
            "the process that ran {module} died (status {status})",
            module=self._module.rpartition(".")[2],
            status=child.status(),
        )

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.kill()

    def _take(self) -> "_Child":
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.is_alive():
                    return child
                child.kill()
        return _Child(self._module)

    def _give(self, child: "_Child") -> None:
        with self._lock:
            if child.tasks < self._tasks_per_child and len(self._idle) < self._most_idle:
                self._idle.append(child)
                return
        child.kill()


class _Child:
    def __init__(self, module: str) -> None:
        self.tasks = 0
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", __name__, module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a group of its own, to be killed as one
        )

    def exchange(self, line: bytes) -> bytes | None:
        """Blocking: send a task, await its answer; None when the child is gone."""
        task_in, answer_out = self._process.stdin, self._process.stdout
        if task_in is None or answer_out is None:
            return None
        self.tasks += 1
        try:
            task_in.write(line)
            task_in.flush()
            return answer_out.readline(MOST_OUTPUT_BYTES + _AROUND_BYTES) or None
        except (OSError, ValueError):
            return None

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def status(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self._process.pid, signal.SIGSTOP)  # it starts no more of them
                kill_descendants(self._process.pid)  # those with a session of their own, too
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        # Not the output: a thread may be reading its end, and closes nothing under itself.
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        if self._process.stdout is not None:
            with contextlib.suppress(OSError, ValueError):
                self._process.stdout.close()


def _read_answer(line: bytes) -> dict[str, Any]:
    answer = orjson.loads(line)
    if "output" in answer:
        return dict(answer["output"])
    kind = PassingStepError if answer["passing"] else StepError
    raise kind(answer["template"], **answer["values"])


def die_with_parent() -> None:
    """Have this process killed when the one that started it ends, where the system can do that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() == 1:
            os._exit(1)  # it ended before we could ask


def _serve(module_name: str, tasks: IO[bytes], answers: IO[bytes]) -> None:
    module = importlib.import_module(module_name)
    for line in tasks:
        answer: dict[str, Any]
        try:
            answer = {"output": module.work_in_child(orjson.loads(line))}
        except StepError as error:
            answer = {"template": error.template, "values": error.values, "passing": error.passing}
        except Exception as error:  # noqa: BLE001 - the parent tells it
            traceback.print_exc()
            answer = {
                "template": "{kind}: {problem}",
                "values": {"kind": type(error).__name__, "problem": str(error)[:500]},
                "passing": False,
            }
        answers.write(orjson.dumps(answer, default=str, option=orjson.OPT_NON_STR_KEYS) + b"\n")
        answers.flush()


def _main() -> None:
    die_with_parent()
    adopt_orphans()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    _serve(sys.argv[1], sys.stdin.buffer, answers)


if __name__ == "__main__":
    _main()
