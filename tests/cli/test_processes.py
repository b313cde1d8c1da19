"""Processes that collect: they tell what they did, stop with the one that started them, and are restarted."""

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson
import psutil
import pytest

from tests.cli.test_serve import free_port
from tests.command import Headwater
from tests.origin import Origin

pytestmark = pytest.mark.slow

FEED = b"<rss><channel><title>A</title><item><guid>%d</guid><title>t</title></item></channel></rss>"


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def collectors_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            if "headwater.cli.processes" in child.cmdline():
                found.append(child)
    return found


@contextmanager
def running(headwater: Headwater, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = headwater.start(*arguments)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


def test_two_processes_collect_every_source_once(headwater: Headwater) -> None:
    with Origin() as origin:
        for number in range(40):
            origin.route(f"/{number}", body=FEED % number)
        (headwater.directory / "feeds.txt").write_text("\n".join(origin.url(f"/{n}") for n in range(40)))
        headwater.ok("import", "feeds.txt")
        with running(headwater, "collect", "--loop", "--processes", "2", "--json") as process:
            wait_for(lambda: len(collectors_of(process)) == 2)
            wait_for(lambda: len({request.path for request in origin.requests}) == 40)
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=60)
    told = orjson.loads(out)
    assert (process.returncode, told["visits"], told["items_new"]) == (0, 40, 40)
    assert len(headwater.json("items", "--limit", "100")) == 40


def test_serve_collects_beside_the_dashboard_and_replaces_a_collector_that_died(headwater: Headwater) -> None:
    port = free_port()
    with Origin() as origin, running(headwater, "serve", "--port", str(port)) as process:
        wait_for(lambda: len(collectors_of(process)) == 1)
        first = collectors_of(process)[0]
        url = origin.route("/feed", body=FEED % 1)
        headwater.ok("source", "add", url, "--no-check")
        wait_for(lambda: origin.requests)
        first.kill()
        wait_for(lambda: any(child.pid != first.pid for child in collectors_of(process)))
        second = origin.route("/second", body=FEED % 2)
        headwater.ok("source", "add", second, "--no-check")
        wait_for(lambda: origin.received("/second"))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            assert orjson.loads(answer.read())["collector"] == "ok"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "a collector ended (exit status -9)" in err


def test_collectors_are_gone_when_the_process_that_started_them_is_killed(headwater: Headwater) -> None:
    with running(headwater, "collect", "--loop", "--processes", "2") as process:
        wait_for(lambda: len(collectors_of(process)) == 2)
        children = collectors_of(process)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        psutil.wait_procs(children, timeout=20)
        assert not any(child.is_running() for child in children)


def test_settings_that_a_collector_refuses_end_the_command(headwater: Headwater) -> None:
    headwater.environment["HEADWATER_CA_FILE"] = "missing.pem"
    code, _, err = headwater.run("collect", "--loop", "--processes", "2")
    assert code == 1
    assert "HEADWATER_CA_FILE: missing.pem" in err


def test_serve_with_no_processes_collects_in_its_own_process(headwater: Headwater) -> None:
    with (
        Origin() as origin,
        running(headwater, "serve", "--port", str(free_port()), "--processes", "0") as process,
    ):
        url = origin.route("/feed", body=FEED % 1)
        headwater.ok("source", "add", url, "--no-check")
        wait_for(lambda: origin.requests)
        assert not collectors_of(process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_processes_without_loop_are_refused(headwater: Headwater) -> None:
    assert "--loop" in headwater.refused("collect", "--processes", "2")
