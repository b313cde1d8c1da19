"""`headwater` as the examples of the documents type it: what would run for ever is ended once it runs.

It is asked to stop as soon as it handles the signal, and must then end as it should.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

FOR_EVER = ({"serve"}, {"worker"}, {"demo"}, {"collect", "--loop"}, {"status", "--watch"})


def handles_stopping(pid: int) -> bool:
    """Whether the process has its own way of ending."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def watch(command: list[str]) -> int:
    """As a user who looks at it and presses Ctrl-C."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    seen = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    return int(not seen or process.returncode not in (0, 130))


def main() -> int:
    command = [sys.executable, "-W", "error", "-m", "headwater", *sys.argv[1:]]
    if not any(words <= set(sys.argv[1:]) for words in FOR_EVER):
        os.execv(command[0], command)  # noqa: S606
    if "--watch" in sys.argv:
        return watch(command)
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 60
    while process.poll() is None and not handles_stopping(process.pid):
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.05)
    time.sleep(1.0)  # to do some of its work; any length will do
    process.terminate()
    return process.wait(60)


if __name__ == "__main__":
    sys.exit(main())
