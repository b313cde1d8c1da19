"""Work in child processes: for libraries that block, leak or cannot be trusted to stop.

A child is this interpreter running one module's `work_in_child`, fed one JSON line a task, under a supervisor. It is
kept for the next task and replaced after some, so that memory its libraries leak is freed. A task that is given up (its
step was cancelled, its time is over) is ended by killing the child and its descendants. A child ends with the worker
that started it, whichever way the worker ends.
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
from pathlib import Path
from typing import IO, Any

import orjson

from headwater.errors import PassingStepError, StepError
from headwater.processes.supervised import SupervisedProcess

MOST_OUTPUT_BYTES = 16_000_000  # of one answer
_AROUND_BYTES = 65_536  # of an answer, beside the output
_DYING_SECONDS = 1.0
_MOST_AT_ONCE = 64  # threads that wait for children; the engine's own limits are far lower


def too_large() -> StepError:
    return StepError("its output is larger than {most} MB", most=MOST_OUTPUT_BYTES // 1_000_000)


class ChildPool:
    """Children that all run one module. Safe to use from any event loop."""

    def __init__(
        self, module: str, *, tasks_per_child: int, most_idle: int = 2, most_megabytes: int = 0
    ) -> None:
        """`most_megabytes`: of memory that a child may take beyond what it begins with; 0: as much as there is."""
        self._module = module
        self._most_megabytes = most_megabytes
        self._tasks_per_child = tasks_per_child
        self._most_idle = most_idle
        self._idle: list[_Child] = []
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    async def call(self, task: dict[str, Any]) -> dict[str, Any]:
        """What the module's `work_in_child` answers to the task; its StepError when it raises one."""
        child = self._take()
        loop = asyncio.get_running_loop()
        try:
            answer = await loop.run_in_executor(self._executor(), child.exchange, orjson.dumps(task) + b"\n")
        except BaseException:
            child.kill()
            raise
        if answer is None:
            await asyncio.to_thread(child.wait)
        return self._read(child, answer)

    def call_blocking(self, task: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The same for a thread that waits, so long at most; then TimeoutError."""
        child = self._take()
        try:
            exchange = self._executor().submit(child.exchange, orjson.dumps(task) + b"\n")
            answer = exchange.result(seconds)
        except BaseException:
            child.kill()
            raise
        if answer is None:
            child.wait()
        return self._read(child, answer)

    def _read(self, child: "_Child", answer: bytes | None) -> dict[str, Any]:
        if answer is None:
            raise self._died(child)
        if not answer.endswith(b"\n"):  # there is more of it, or it died in the midst of it
            child.kill()
            raise too_large() if len(answer) > MOST_OUTPUT_BYTES else self._died(child)
        self._give(child)
        return _read_answer(answer)

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="headwater-child")
                atexit.register(self.close)
            return self._threads

    def _died(self, child: "_Child") -> StepError:
        return PassingStepError(
            "the process that ran {module} died ({status}); it may have used too much memory",
            module=self._module.rpartition(".")[2],
            status=_name_status(child.status()),
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
        return _Child(self._module, self._most_megabytes)

    def _give(self, child: "_Child") -> None:
        with self._lock:
            if child.tasks < self._tasks_per_child and len(self._idle) < self._most_idle:
                self._idle.append(child)
                return
        child.kill()


class _Child:
    def __init__(self, module: str, most_megabytes: int) -> None:
        self.tasks = 0
        self._process = SupervisedProcess(
            [sys.executable, "-m", __name__, module, str(most_megabytes)], stdin=subprocess.PIPE
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
        return self._process.status() is None

    def status(self) -> int | None:
        return self._process.status()

    def wait(self) -> None:
        """Wait for a child that has closed its output: it has ended, or is about to."""
        self._process.wait(_DYING_SECONDS)
        self._process.end()

    def kill(self) -> None:
        self._process.end()


def _name_status(status: int | None) -> str:
    number = -1 if status is None else -status if status < 0 else status - 128
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"status {status}"


def _read_answer(line: bytes) -> dict[str, Any]:
    answer = orjson.loads(line)
    if "output" in answer:
        return dict(answer["output"])
    kind = PassingStepError if answer["passing"] else StepError
    raise kind(answer["template"], **answer["values"])


def _limit_memory(megabytes: int) -> None:
    """Let this process fail to get more memory than so much, where the system can do that."""
    if megabytes and sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _serve(module_name: str, tasks: IO[bytes], answers: IO[bytes], megabytes: int) -> None:
    module = importlib.import_module(module_name)
    _limit_memory(megabytes)
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the worker
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is not an answer
    sys.stdout = sys.stderr  # which is written line by line: a child that is killed loses none
    _serve(sys.argv[1], sys.stdin.buffer, answers, int(sys.argv[2]))


if __name__ == "__main__":
    _main()
