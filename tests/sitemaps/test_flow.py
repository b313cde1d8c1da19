"""The flow in a real Prefect: served with a cron, run twice; the second run finds only the change."""

import json
import os
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

SCRIPT = Path(__file__).with_name("served_flow.py")
ROOT = Path(__file__).resolve().parents[2]
DEPLOYMENT = "/deployments/name/Incremental%20Sitemap%20to%20RSS/incremental-rss-example"


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
                [sys.executable, *arguments],
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

    def run(self) -> str:
        """Run the deployment now; how that ended."""
        deployment = self.wait_for(DEPLOYMENT)
        assert deployment["schedules"][0]["schedule"]["cron"] == "0 */2 * * *"
        run = self.call(f"/deployments/{deployment['id']}/create_flow_run", {})
        ended = self.wait_for(
            f"/flow_runs/{run['id']}",
            lambda answer: answer["state_type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"),
        )
        return str(ended["state_type"])


def test_the_flow_takes_what_the_document_says() -> None:
    """Read from the flow itself, in a process of its own: Prefect starts threads when it is imported."""
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


@pytest.mark.timeout(600)
def test_served_by_prefect_the_second_run_finds_only_the_change(origin: Origin, tmp_path: Path) -> None:
    site = Site(origin, tmp_path)
    site.publish(**{f"p{n:02}": f"2024-01-{n:02}" for n in range(1, 29)})
    prefect = Prefect(tmp_path)
    feed = tmp_path / "rss_feeds" / "example_blog.xml"
    with prefect.process(
        "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(prefect.port), "--no-ui"
    ):
        prefect.wait_for("/health")
        with prefect.process(str(SCRIPT), origin.url("/sitemap.xml")):
            assert prefect.run() == "COMPLETED", (tmp_path / "prefect.log").read_text()[-3000:]
            first = feedparser.parse(feed.read_bytes())
            site.publish(new="2025-01-01")
            assert prefect.run() == "COMPLETED"
    second = feedparser.parse(feed.read_bytes())
    assert first.feed.title == "Example Updates (Incremental)"
    assert [name_of(entry.id) for entry in first.entries] == [f"p{n}" for n in range(28, 18, -1)]
    assert [entry.id for entry in second.entries] == [
        origin.url("/new"),
        *(entry.id for entry in first.entries),
    ]
    assert len(origin.received("/sitemap.xml")) == 2
    assert len(origin.received("/p28")) == 1
    assert len(origin.received("/new")) == 1
    assert (tmp_path / "rss_states" / "rss_incremental.db").is_file()
