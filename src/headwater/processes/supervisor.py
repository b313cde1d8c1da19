"""Keeps a command, and whatever it starts, from outliving the process that wants it.

    owner ── pipe ── supervisor ── command ── whatever it starts

The supervisor adopts what its descendants leave behind (Linux: child subreaper), so that nothing gets away from it by
starting its own session. It kills them all when the command has ended, when the owner closes the pipe, and when
the owner dies, which closes the pipe too. Run by its path as `supervisor.py PIPE COMMAND…`: it loads nothing but the
standard library.
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 3.0  # for descendants to end after they were killed


def main() -> None:
    """Start the command; end with its status, or when the pipe is closed."""
    pipe = int(sys.argv[1])
    os.set_inheritable(pipe, False)
    _adopt_orphans()
    command = os.fork()
    if command == 0:
        _become(sys.argv[2:])
    _let_go(0, 1)  # or the reader of the command's output would wait for us to end, too
    status = _watch(command, pipe)
    kill_descendants(os.getpid())
    code = 1 if status is None else os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)  # as shells tell of a signal


def _become(command: list[str]) -> None:
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201 - its own error, as a shell says it
    os._exit(127)


def _let_go(*descriptors: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor)


def _watch(command: int, pipe: int) -> int | None:
    """Until the command ends (its status) or the pipe is closed (None). Reaps what is adopted meanwhile."""
    pidfd = os.pidfd_open(command) if hasattr(os, "pidfd_open") else None
    while True:
        watched = [pipe] if pidfd is None else [pipe, pidfd]
        ready, _, _ = select.select(watched, [], [], 0.2 if pidfd is None else 1.0)
        for pid, status in _reap():
            if pid == command:
                return status
        if pipe in ready and not os.read(pipe, 4096):
            return None


def _reap() -> Iterator[tuple[int, int]]:
    """The children that have ended, each with its status."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def kill_descendants(pid: int) -> None:
    """Kill every descendant of a process, until none is left. Its children reappear under it as they are orphaned."""
    deadline = time.monotonic() + KILL_SECONDS
    while (descendants := _descendants(pid)) and time.monotonic() < deadline:
        for each in descendants:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        time.sleep(0.002)
    if os.getpid() == pid:
        for _ in _reap():
            pass


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


def _adopt_orphans() -> None:
    """Be the parent of what descendants leave behind (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    main()
