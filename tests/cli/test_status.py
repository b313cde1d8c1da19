"""`headwater status`, `refresh` and `collect --dry-run`, on both databases."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwater.store.collecting.outages import mark_outage
from headwater.store.core.database import Store
from tests.command import Headwater
from tests.origin import Answer, Origin

FEED = """<rss version="2.0"><channel><title>One</title><link>https://one.example/</link>
<item><title>First</title><guid>1</guid></item><item><title>Second</title><guid>2</guid></item></channel></rss>"""


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


@pytest.fixture
def alone(tmp_path: Path) -> Headwater:
    return Headwater(tmp_path, None)


def test_status_before_and_after_a_collection(
    headwater: Headwater, origin: Origin, database_url: str
) -> None:
    origin.route("/good", body=FEED)
    origin.route("/bad", status=500)
    empty = headwater.json("status")
    assert empty["sources"]["total"] == empty["due"] == empty["in_flight"] == 0
    assert empty["last_24h"]["success_rate"] is None
    for path in ("/good", "/bad"):
        headwater.ok("source", "add", origin.url(path), "--no-check", "--name", path[1:])
    before = headwater.json("status")
    assert (before["sources"]["active"], before["due"]) == (2, 2)
    assert 0 < before["lag_seconds"] < 60
    headwater.run("collect")
    after = headwater.json("status")
    assert (after["due"], after["lag_seconds"], after["in_flight"]) == (0, 0, 0)
    assert after["sources"]["failing"] == after["last_24h"]["errors"] == {"server_error": 1}
    assert after["last_24h"]["visits"] == {"new": 1, "failed": 1}
    assert (after["last_24h"]["items_new"], after["last_24h"]["success_rate"]) == (2, 0.5)
    assert {visit["source_name"] for visit in after["last_visits"]} == {"good", "bad"}
    assert [visit["source_name"] for visit in after["next_visits"]] == ["bad", "good"]
    with Store.open(database_url) as store, store.writing() as connection:
        mark_outage(connection, "here", time.time() - 600, time.time())
    told = headwater.ok("status")
    for words in (
        "Our network is down",
        "on here, since 10 min",
        "2 (1 on time, 1 failing)",
        "1 server error",
        "50.0 %",
    ):
        assert words in told


def test_refresh_puts_sources_first_in_line(headwater: Headwater, origin: Origin) -> None:
    origin.otherwise(Answer(FEED.encode()))
    ids = [
        str(headwater.json("source", "add", origin.url(path), "--name", path[1:])["id"])
        for path in ("/a", "/b", "/c")
    ]
    assert headwater.json("collect")["visits"] == 0
    assert headwater.json("refresh", ids[1]) == {"queued": 1}
    (due,) = headwater.json("collect", "--dry-run")
    assert (due["name"], due["why"][:24]) == ("b", "a refresh was asked for ")
    assert headwater.json("collect")["visits"] == 1
    headwater.ok("source", "pause", ids[0])
    assert "3 sources" not in headwater.ok("refresh", "--all")
    assert headwater.json("collect")["visits"] == 2
    assert "is paused; resume it with: headwater source resume" in headwater.refused("refresh", ids[0])
    assert "there is no source 99" in headwater.refused("refresh", ids[1], "99")
    assert headwater.json("collect")["visits"] == 0, "a command with a mistake does nothing"


@pytest.mark.parametrize("arguments", [(), ("1", "--all")])
def test_refresh_wants_to_know_which(alone: Headwater, arguments: tuple[str, ...]) -> None:
    assert "say which sources to refresh" in alone.refused("refresh", *arguments)


def test_a_dry_run_says_what_is_due_and_why_and_makes_no_request(
    headwater: Headwater, origin: Origin
) -> None:
    assert "There is nothing to visit" in headwater.ok("collect", "--dry-run")
    origin.otherwise(Answer(FEED.encode()))
    headwater.ok("source", "add", origin.url("/planned"), "--config", "fetch_interval_minutes=0.01")
    headwater.ok("source", "add", origin.url("/new"), "--no-check", "--name", "new")
    time.sleep(1.0)
    seen = len(origin.requests)
    new, planned = headwater.json("collect", "--dry-run")
    assert new["why"] == "not visited yet; first in line"
    assert planned["why"].startswith("fixed interval of ")
    assert "fixed interval" in headwater.ok("collect", "--dry-run")
    assert len(origin.requests) == seen
    assert headwater.json("status")["due"] == 2, "nothing was taken"
    assert "leave out --loop" in headwater.refused("collect", "--dry-run", "--loop")
    headwater.ok("collect")


def test_watching_goes_on_until_interrupted(headwater: Headwater) -> None:
    process = headwater.start("status", "--watch", "--json")
    assert process.stdout is not None
    lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert lines[0]["at"] < lines[1]["at"]


def test_log_lines_for_machines(alone: Headwater, origin: Origin) -> None:
    origin.route("/bad", status=500)
    alone.ok("source", "add", origin.url("/bad"), "--no-check", "--name", "bad \x1b[31m\u2028 name")
    process = alone.start("collect", "--loop", HEADWATER_LOG_FORMAT="json")
    assert process.stderr is not None
    failure = json.loads(process.stderr.readline())
    process.terminate()
    _, rest = process.communicate(timeout=40)
    assert process.returncode == 0
    assert (failure["level"], failure["logger"]) == ("info", "headwater.visits")
    assert (failure["source_id"], failure["outcome"], failure["error_kind"]) == (1, "failed", "server_error")
    assert failure["http_status"] == 500
    summary = json.loads(rest.splitlines()[0])
    assert (summary["visits"], summary["failed"]) == (1, 1)


class Terminal:
    """A command on its own terminal."""

    def __init__(self, headwater: Headwater, *arguments: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "headwater", *arguments],
            cwd=headwater.directory,
            env=headwater.environment | {"TERM": "xterm", "COLUMNS": "100"} | environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""

    def read_until(self, text: str, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.shown and time.monotonic() < deadline:
            if not self._read(0.2) and self.process.poll() is not None:
                break
        assert text in self.shown, self.shown

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            part = os.read(self._master, 65_536)
        except OSError:  # the other side is gone
            return False
        self.shown += part.decode(errors="replace")
        return bool(part)

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        deadline = time.monotonic() + 40
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.1)
        while self._read(0.1):
            pass
        os.close(self._master)
        return self.process.wait(timeout=5)


def test_the_loop_on_a_terminal_shows_numbers_and_leaves_it_as_it_was(
    alone: Headwater, origin: Origin
) -> None:
    origin.route("/feed", body=FEED)
    origin.route("/bad", status=500)
    for path in ("/feed", "/bad"):
        alone.ok("source", "add", origin.url(path), "--no-check", "--name", path[1:])
    terminal = Terminal(alone, "collect", "--loop")
    terminal.read_until("2 (")
    for words in ("In flight", "New items", "Next visit", "source 2 bad: "):
        terminal.read_until(words)
    assert terminal.end(signal.SIGTERM) == 0
    assert terminal.shown.rindex("\x1b[?25h") > terminal.shown.rindex("\x1b[?25l"), "the cursor is back"
    assert "2 visits: 2 new items" in terminal.shown.replace("\r", "")


def test_watching_on_a_terminal_leaves_it_as_it_was(alone: Headwater) -> None:
    terminal = Terminal(alone, "status", "--watch")
    terminal.read_until("Longest wait")
    assert terminal.end(signal.SIGINT) == 0
    assert terminal.shown.rindex("\x1b[?1049l") > terminal.shown.rindex("\x1b[?1049h")
    assert terminal.shown.rindex("\x1b[?25h") > terminal.shown.rindex("\x1b[?25l")


def started(headwater: Headwater, origin: Origin, **environment: str) -> subprocess.Popen[str]:
    """A loop in the middle of a visit that does not end on its own: just fast enough not to be given up."""
    origin.route("/slow", Answer(FEED.encode().ljust(100_000), fault="drip", drip_seconds=0.005))
    headwater.ok("source", "add", origin.url("/slow"), "--no-check")
    process = headwater.start("collect", "--loop", **environment)
    deadline = time.monotonic() + 30
    while not origin.requests and time.monotonic() < deadline:
        time.sleep(0.02)
    assert origin.requests
    return process


def test_a_second_signal_ends_it_at_once(headwater: Headwater, origin: Origin) -> None:
    process = started(headwater, origin)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert process.poll() is None, "the first waits for the visit"
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - begun < 10
    assert headwater.json("status")["in_flight"] == 0, "its lease was given back"
    assert headwater.json("status")["due"] == 1


def test_a_visit_that_does_not_end_is_cut_off_after_half_a_minute(alone: Headwater, origin: Origin) -> None:
    process = started(alone, origin)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 1
    assert 29 < time.monotonic() - begun < 50
    assert (alone.json("status")["in_flight"], alone.json("status")["due"]) == (0, 1)


def test_a_visit_that_ends_in_time_is_kept(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", Answer(FEED.encode(), delay=2.0))
    headwater.ok("source", "add", origin.url("/feed"), "--no-check")
    process = headwater.start("collect", "--loop")
    deadline = time.monotonic() + 30
    while not origin.requests and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=40)
    assert process.returncode == 0
    assert "1 visit: 2 new items" in out
