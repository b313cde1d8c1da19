"""The flow with a real Prefect server in the environment that the documentation describes: its cron fires unaided."""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

import feedparser
import pytest

from tests.origin import Origin
from tests.sitemaps.site import Site, name_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "turn-a-sitemap-into-a-feed.md"
ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


def printed(language: str, containing: str) -> str:
    """The one example of the page with these words in it."""
    (block,) = (
        text
        for text in re.findall(
            rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
        if containing in text
    )
    return str(block)


def server_command() -> list[str]:
    """Prefect in its own environment, made once by the printed lines; the command that starts its server."""
    *making, starting = printed("sh", "prefect server start").splitlines()
    mark = ROOT / ".venv-prefect" / ".ready"
    with (ROOT / ".venv-prefect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of tests that run at the same time, one makes it
        if not mark.is_file() or mark.read_text() != "\n".join(making):
            shutil.rmtree(mark.parent, ignore_errors=True)
            subprocess.run(["sh", "-ec", "\n".join(making)], cwd=ROOT, check=True, timeout=1500)
            mark.write_text("\n".join(making))
    command, *arguments = starting.split()
    return [str(ROOT / command), *arguments]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Prefect:
    """A Prefect server of the test's own, spoken to over its API, and a process that serves the flow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port = free_port()
        self.api = f"http://127.0.0.1:{port}/api"
        self.port = port
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "HEADWATER_ALLOW_HOSTS": "127.0.0.1",
            "HEADWATER_HOST_SPACING_SECONDS": "0",
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_API_URL": self.api,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_RUNNER_POLL_FREQUENCY": "1",
            "PREFECT_LOGGING_LEVEL": "WARNING",
            "DO_NOT_TRACK": "1",
            "NO_PROXY": "127.0.0.1",
        }

    @contextmanager
    def process(self, *arguments: str) -> Iterator[None]:
        with (self.folder / "prefect.log").open("ab") as log:
            process = subprocess.Popen(
                arguments,
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def call(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.api + path, data, {"Content-Type": "application/json"})
        deadline = time.monotonic() + 60
        while True:
            try:
                with build_opener(ProxyHandler({})).open(request, timeout=30) as answer:
                    return json.loads(answer.read())
            except HTTPError as error:
                # What Prefect says while another writer holds its SQLite; its own client asks again too.
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
                    raise
            time.sleep(0.2)

    def wait_for(self, path: str, good: Callable[[Any], bool] = lambda answer: True) -> Any:
        deadline = time.monotonic() + 150
        while True:
            try:
                answer = self.call(path)
                if good(answer):
                    return answer
            except (URLError, TimeoutError, ConnectionError):
                pass
            assert time.monotonic() < deadline, (self.folder / "prefect.log").read_text()[-3000:]
            time.sleep(0.2)

    def runs(self) -> list[Any]:
        """The runs that Prefect's scheduler made and that have ended, the first one first."""
        only = {"flow_runs": {"state": {"type": {"any_": ENDED}}}, "sort": "EXPECTED_START_TIME_ASC"}
        found: list[Any] = self.call("/flow_runs/filter", only)
        assert all(run["auto_scheduled"] for run in found)
        return found

    def wait_for_runs(self, count: int) -> list[str]:
        """Wait until the cron has fired so often; how the runs ended."""
        deadline = time.monotonic() + 400
        while len(found := self.runs()) < count:
            assert time.monotonic() < deadline, (self.folder / "prefect.log").read_text()[-3000:]
            time.sleep(0.5)
        return [run["state_type"] for run in found]


def test_the_flow_takes_what_the_document_says() -> None:
    """Read from the flow itself, in a separate process: Prefect starts threads when it is imported."""
    code = (
        "import inspect, json; from headwater.sitemaps.flow import incremental_sitemap_to_rss_flow as flow;"
        "taken = inspect.signature(flow.fn).parameters.values();"
        "print(json.dumps([flow.name, {each.name: None if each.default is each.empty else each.default"
        " for each in taken}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name, parameters = json.loads(done.stdout.splitlines()[-1])
    assert name == "Incremental Sitemap to RSS"
    assert list(parameters.items())[:6] == [
        ("sitemap_url", None),
        ("site_name", None),
        ("channel_config", None),
        ("enable_incremental", True),
        ("max_items", 50),
        ("fetch_titles", True),  # the document gives it to the deployment, beside its configuration
    ]
    assert "incremental_config" in parameters


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_cron_of_prefect_fires_and_finds_only_the_change(origin: Origin, tmp_path: Path) -> None:
    site = Site(origin, tmp_path)
    site.publish(**{f"p{n:02}": f"2024-01-{n:02}" for n in range(1, 29)})
    program = printed("python", "incremental_sitemap_to_rss_flow.serve")
    program = program.replace('cron="0 */2 * * *"', 'cron="* * * * *"')
    program = program.replace("https://example.org/sitemap.xml", origin.url("/sitemap.xml"))
    (tmp_path / "feeds.py").write_text(program)
    starting = printed("sh", "feeds.py")
    assert starting.strip() == "PREFECT_API_URL=http://127.0.0.1:4200/api python feeds.py"
    prefect = Prefect(tmp_path)
    feed = tmp_path / "rss_feeds" / "example_blog.xml"
    with prefect.process(*server_command(), "--host", "127.0.0.1", "--port", str(prefect.port), "--no-ui"):
        prefect.wait_for("/health")
        with prefect.process(sys.executable, "feeds.py"):
            assert prefect.wait_for_runs(1)[0] == "COMPLETED", (tmp_path / "prefect.log").read_text()[-3000:]
            first = feedparser.parse(feed.read_bytes())
            before = len(prefect.runs())
            site.publish(new="2025-01-01")
            assert set(prefect.wait_for_runs(before + 1)) == {"COMPLETED"}
            times = [run["expected_start_time"][:16] for run in prefect.runs()]
    second = feedparser.parse(feed.read_bytes())
    assert len(set(times)) == len(times) >= 2, "one run a minute"
    assert first.feed.title == "Example"
    assert [name_of(entry.id) for entry in first.entries] == [f"p{n}" for n in range(28, 18, -1)]
    assert [entry.id for entry in second.entries] == [
        origin.url("/new"),
        *(entry.id for entry in first.entries),
    ]
    assert len(origin.received("/p28")) == 1
    assert len(origin.received("/new")) == 1
    assert (tmp_path / "rss_states" / "rss_incremental.db").is_file()
