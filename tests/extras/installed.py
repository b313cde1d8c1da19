"""Headwater as it is installed in its own environment."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.command import Headwater
from tests.origin import Origin

FEED = (
    "<rss version='2.0'><channel><title>A feed</title><item><title>Three days of rain</title>"
    "<guid isPermaLink='false'>1</guid><link>{page}</link>{more}</item></channel></rss>"
)


class Installed(Headwater):
    def __init__(self, environment: Path, home: Path) -> None:
        super().__init__(home, None, python=str(environment / "bin" / "python"))
        self.environment["PATH"] = f"{environment / 'bin'}:/usr/bin:/bin"
        self.environment["NO_PROXY"] = "127.0.0.1"

    def execute(self, source: str, *arguments: str, **environment: str) -> str:
        """Run a few lines of Python; what they print."""
        done = subprocess.run(
            [self.python, "-c", source, *arguments],
            cwd=self.directory,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-600:]
        return done.stdout.strip()

    def run_steps(
        self, origin: Origin, steps: list[dict[str, Any]], *, more: str = ""
    ) -> list[dict[str, Any]]:
        """A feed of one item, whose page is at /page, goes through these steps; their outputs."""
        origin.route("/feed", body=FEED.format(page=origin.url("/page"), more=more))
        template = self.directory / "template.json"
        template.write_text(json.dumps({"name": "check", "steps": steps}))
        self.ok("pipeline", "add", str(template))
        self.ok("source", "add", origin.url("/feed"))
        (item,) = self.json("items")
        self.ok("runs", "start", "check", str(item["id"]))
        (run,) = self.json("runs", "list")
        (ended,) = self.work_until_ended(run["id"], seconds=300.0)
        assert ended["status"] == "completed", json.dumps(ended)[:600]
        return [step["output_data"] for step in ended["steps"]]

    def until(self, what: str, seconds: float, done: Any) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, what
            time.sleep(0.5)
