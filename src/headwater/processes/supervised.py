"""Starting a process under a supervisor, and running a program to its end."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from headwater.errors import StepError
from headwater.processes import supervisor

END_SECONDS = 3.0  # for the supervisor to end the others; after that it is killed as well
MOST_BYTES = 50_000_000  # of a program's output that is read
_PIECE_BYTES = 65_536
# By its path and alone, so that it starts at once and whatever the environment says.
_SUPERVISOR = (sys.executable, "-I", "-S", supervisor.__file__)


class SupervisedProcess:
    """A command under a supervisor. `end` leaves nothing behind that it has started."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: int | None = subprocess.DEVNULL,
        stderr: int | None = None,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        pipe, self._lifeline = os.pipe()
        self._lock = threading.Lock()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, and a command of ours
                [*_SUPERVISOR, str(pipe), *command],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=None if environment is None else dict(environment),
                cwd=directory,
                pass_fds=(pipe,),
                start_new_session=True,  # signals of a terminal are for the owner
            )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(pipe)

    @property
    def stdin(self) -> IO[bytes] | None:
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes] | None:
        return self._process.stdout

    @property
    def stderr(self) -> IO[bytes] | None:
        return self._process.stderr

    def status(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float | None = None) -> int | None:
        """Its status, once it has ended; None when it has not after so long."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Kill it with all its descendants, if it still runs. Blocking, for a moment."""
        with self._lock:
            if self._lifeline < 0:
                return
            os.close(self._lifeline)
            self._lifeline = -1
        if self.wait(END_SECONDS) is None:
            supervisor.kill_descendants(self._process.pid)
            self._process.kill()
            self._process.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            # A thread that reads one meets its end and closes nothing under itself.
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.close()


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a program."""

    status: int
    output: bytes
    errors: str


async def run_program(
    command: Sequence[str], *, environment: Mapping[str, str], directory: Path | None = None
) -> Ended:
    """Run a program to its end. Cancelled, it is killed with everything it has started."""
    process = await asyncio.to_thread(
        SupervisedProcess, command, stderr=subprocess.PIPE, environment=environment, directory=directory
    )
    try:
        output, errors = await asyncio.gather(
            asyncio.to_thread(_read, process.stdout), asyncio.to_thread(_read, process.stderr)
        )
        status = await asyncio.to_thread(process.wait) or 0
    finally:
        await asyncio.shield(asyncio.to_thread(process.end))
    return Ended(status, output, errors.decode("utf-8", "replace"))


def _read(stream: IO[bytes] | None) -> bytes:
    found = bytearray()
    with contextlib.suppress(OSError, ValueError):
        while stream is not None and (part := stream.read1(_PIECE_BYTES)):  # type: ignore[attr-defined]
            found += part
            if len(found) > MOST_BYTES:
                raise StepError("the program wrote more than {most} MB", most=MOST_BYTES // 1_000_000)
    return bytes(found)
