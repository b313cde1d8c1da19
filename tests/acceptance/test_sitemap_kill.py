"""Killed at random moments, a run that makes a feed of a sitemap is completed by the next: each change is told once."""

import json
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from random import Random

import pytest

from tests.command import Headwater
from tests.origin import Answer, Origin
from tests.sitemaps.site import Site, name_of

pytestmark = pytest.mark.slow

KILLS = 30


def committed(database: Path) -> list[str]:
    """What the feed shows by the state, whatever its file says."""
    connection = sqlite3.connect(database)
    (entries,) = connection.execute("SELECT entries FROM site_memories").fetchone()
    connection.close()
    return [name_of(entry["url"]) for entry in json.loads(entries)]


def start(command: Headwater, origin: Origin, arguments: tuple[str, ...]) -> subprocess.Popen[str]:
    """A run that has made its first request."""
    seen, deadline = len(origin.requests), time.monotonic() + 30
    process = command.start(*arguments)
    while len(origin.requests) == seen and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    return process


def run_seconds(command: Headwater, origin: Origin, arguments: tuple[str, ...]) -> float:
    """How long a run takes on this machine, busy as it is, from its first request on."""
    process = start(command, origin, arguments)
    began = time.monotonic()
    process.communicate(timeout=60)
    return time.monotonic() - began


@pytest.mark.timeout(900)
def test_thirty_kills_and_every_change_is_told_once(tmp_path: Path, origin: Origin, rng: Random) -> None:
    site = Site(origin, tmp_path)
    origin.otherwise(Answer(b"<title>A page</title>", content_type="text/html", delay=0.05))
    site.publish(**{f"p{n:02}": f"2024-01-{n:02}" for n in range(1, 29)})
    command = Headwater(tmp_path, None)
    arguments = (
        *("sitemap-to-feed", origin.url("/sitemap.xml"), "--output", str(site.output)),
        *("--state", "rss_states", "--max-items", "1000"),
    )
    database = tmp_path / "rss_states" / "rss_incremental.db"
    expected = [name_of(url) for url in command.json(*arguments)["new_urls"]]
    site.publish(first="2025-01-01", second="2025-01-02")
    whole = run_seconds(command, origin, arguments)
    expected += ["first", "second"]
    before = after = killed = 0
    for number in range(15 * KILLS):
        if killed == KILLS:
            break
        change = {f"new{number}": "2025-01-01", f"also{number}": "2025-01-02"}
        site.publish(**change)
        process = start(command, origin, arguments)
        time.sleep(rng.uniform(0, 1.2 * whole))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        told_already = [name for name in change if name in committed(database)]
        assert told_already in ([], list(change)), "a run is told whole or not at all"
        before, after = before + (not told_already), after + bool(told_already)
        # The next run tells of what the killed one did not come to, and of nothing else.
        told = {name_of(url) for url in command.json(*arguments)["new_urls"]}
        assert told == (set() if told_already else set(change))
        expected += change
        assert sorted(site.shown()) == sorted(expected)
    assert killed == KILLS
    assert before and after, f"kills on both sides of the commit: {before} before, {after} after"
