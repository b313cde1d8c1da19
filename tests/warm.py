"""Starts `headwater` commands from a warm interpreter, so that a test need not wait for a second of imports each time.

One helper process for each pytest process has imported Headwater and its libraries, and forks a child for each command.
The child has the command's own directory, environment, arguments and streams: what a test starts is a real process that
reads its own settings. It takes an eighth of the CPU time of a new interpreter.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

# What commands import, Headwater's own modules among them; each reads its settings when it runs.
MODULES = (
    "headwater.cli.app",
    "headwater.collect.engine",
    "headwater.pipeline.worker",
    "headwater.store.core.migrate",
    "headwater.web.server",
    "psycopg",
    "rich.console",
    "rich.table",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "uvloop",
)


class WarmCommand(subprocess.Popen[str]):
    """`python -W error -m headwater ARGUMENTS`, forked from the warm interpreter; used as any `Popen`."""

    def __init__(self, arguments: tuple[str, ...], directory: Path, environment: dict[str, str]) -> None:
        self._job = {"arguments": arguments, "directory": str(directory), "environment": environment}
        super().__init__(["headwater", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _execute_child(self, *arguments: Any) -> None:
        """Ask the warm interpreter for the child, with the pipes that `Popen` made."""
        p2cread, _, _, c2pwrite, _, errwrite = arguments[10:16]
        self._ended, ended = os.pipe()
        stdin = os.open(os.devnull, os.O_RDONLY) if p2cread == -1 else p2cread
        self.pid = _interpreter().start(self._job, [stdin, c2pwrite, errwrite, ended])
        self._child_created = True
        self._closed_child_pipe_fds = True
        for descriptor in (stdin, c2pwrite, errwrite, ended):
            os.close(descriptor)

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        def wait(pid: int, flags: int) -> tuple[int, int]:
            return self._try_wait(flags)

        result: int | None = super()._internal_poll(_deadstate, _waitpid=wait)  # type: ignore[misc]
        return result

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """As `os.waitpid`: the status comes from the warm interpreter, whose child the command is."""
        if wait_flags & os.WNOHANG and not select.select([self._ended], [], [], 0)[0]:
            return 0, 0
        status = int.from_bytes(os.read(self._ended, 4), "little")
        os.close(self._ended)
        return self.pid, status


class _Interpreter:
    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": os.environ.get("HOME", "/"),
                "HEADWATER_LANGUAGE": "en",
                "OPENBLAS_NUM_THREADS": "1",
            }
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "tests.warm", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parent.parent,
                env=environment,
            )
        atexit.register(self.close)

    def start(self, job: dict[str, Any], descriptors: list[int]) -> int:
        socket.send_fds(self._socket, [json.dumps(job).encode()], descriptors)
        return int.from_bytes(self._socket.recv(4), "little")

    def close(self) -> None:
        self._socket.close()
        self._process.wait(timeout=10)


@cache
def _interpreter() -> _Interpreter:
    return _Interpreter()


class _Server:
    """Forks a child for each job, and tells the exit status of each through the pipe that came with the job."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._ended: dict[int, int] = {}
        self._wake, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the tests, not before them
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def serve(self) -> list[str] | None:
        """The arguments of the command, in each child; None in the server, when the tests are over."""
        while True:
            ready = select.select([self._connection.fileno(), self._wake], [], [])[0]
            if self._wake in ready:
                os.read(self._wake, 512)
                self._reap()
            if self._connection.fileno() in ready:
                message, descriptors, _, _ = socket.recv_fds(self._connection, 1 << 20, 4)
                if not message:
                    return None
                pid = os.fork()
                if pid == 0:
                    return self._become(json.loads(message), descriptors)
                self._ended[pid] = descriptors.pop()
                for descriptor in descriptors:
                    os.close(descriptor)
                self._connection.send(pid.to_bytes(4, "little"))

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = found
                descriptor = self._ended.pop(pid)
                with contextlib.suppress(BrokenPipeError):
                    os.write(descriptor, status.to_bytes(4, "little"))
                os.close(descriptor)

    def _become(self, job: dict[str, Any], descriptors: list[int]) -> list[str]:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        self._connection.detach()
        os.closerange(3, 1024)
        os.chdir(job["directory"])
        os.environ.clear()
        os.environ.update(job["environment"])
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
        sys.path[:1] = [job["directory"], *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        return list(job["arguments"])


def main() -> None:
    for module in MODULES:
        importlib.import_module(module)
    typer.main.get_command = cache(typer.main.get_command)  # made of the same declarations in every child
    typer.main.get_command(importlib.import_module("headwater.cli.app").app)
    gc.freeze()  # a child that looks for garbage leaves these pages shared
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        arguments = _Server(connection).serve()
    if arguments is not None:
        sys.argv = ["headwater", *arguments]
        _end(_run())


def _run() -> int:
    """Run the command; its exit status, with what the interpreter would say of an error."""
    try:
        runpy.run_module("headwater", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - as the interpreter does at its end
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(status: int) -> None:
    """End as the interpreter does, but leave out taking every module apart, which takes longer than most commands.

    What nothing holds any more is collected, so that a socket left open still makes itself heard.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            try:
                stream.flush()
            except OSError:
                status = 120  # as the interpreter says that its reader has gone
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main()
