"""The `headwater` command as tests run it: real processes in their own directory."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.warm import WarmCommand

READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")  # variables that count only for a new interpreter


def _suits_warm_interpreter(environment: dict[str, str]) -> bool:
    """Whether a command may be forked: the texts of `--help` are in the language they were imported in."""
    read_at_start = any(name.startswith(READ_AT_START) for name in environment if name != "PYTHONPATH")
    return environment.get("HEADWATER_LANGUAGE") == "en" and not read_at_start


class Headwater:
    """The command, in its own directory, on one database."""

    def __init__(self, directory: Path, database_url: str | None, *, python: str = sys.executable) -> None:
        self.directory = directory
        self.python = python
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "HEADWATER_ALLOW_HOSTS": "127.0.0.1",
            "HEADWATER_HOST_SPACING_SECONDS": "0",
            "HEADWATER_LANGUAGE": "en",
        }
        if database_url:
            self.environment["HEADWATER_DATABASE_URL"] = database_url

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        whole = self.environment | environment
        if self.python == sys.executable and _suits_warm_interpreter(whole):
            return WarmCommand(arguments, self.directory, whole)
        return subprocess.Popen(
            [self.python, "-W", "error", "-m", "headwater", *arguments],
            cwd=self.directory,
            env=whole,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def ok(self, *arguments: str, **environment: str) -> str:
        code, out, err = self.run(*arguments, **environment)
        assert (code, err) == (0, ""), (arguments, code, err)
        return out

    def json(self, *arguments: str, **environment: str) -> Any:
        return json.loads(self.ok(*arguments, "--json", **environment))

    def work_until_ended(self, *run_ids: int, seconds: float = 120.0) -> list[Any]:
        """Let a worker process take these runs to their ends; answers them."""
        worker = self.start("worker")
        deadline = time.monotonic() + seconds
        try:
            while True:
                runs = [self.json("runs", "show", str(run_id)) for run_id in run_ids]
                if not any(run["status"] in ("pending", "running") for run in runs):
                    return runs
                assert time.monotonic() < deadline, runs
        finally:
            worker.terminate()
            worker.communicate(timeout=60)

    def refused(self, *arguments: str, **environment: str) -> str:
        """Run what must fail: the one line it says, with nothing on the standard output."""
        code, out, err = self.run(*arguments, **environment)
        assert code != 0
        assert out == ""
        assert err.startswith("error: ")
        assert err.count("\n") == 1, err
        return err.removeprefix("error: ").strip()
